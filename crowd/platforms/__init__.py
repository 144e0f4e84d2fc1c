"""Platforms by name: the door of each, and the market of those that have one; imported on first use."""

from __future__ import annotations

from typing import Any

from crowd.platforms.base import Door, Unsupported
from stimuli.registry import Table

PLATFORMS: Table[type[Door]] = Table(
    "platform",
    {
        "local": "crowd.platforms.local:Local",
        "link": "crowd.platforms.link:Link",
        "prolific": "crowd.platforms.prolific.door:ProlificDoor",
        "mturk": "crowd.platforms.mturk.door:MTurkDoor",
    },
)

MARKETS: Table[Any] = Table(
    "platform with a market",
    {
        "prolific": "crowd.platforms.prolific.market:Prolific",
        "mturk": "crowd.platforms.mturk.market:MTurk",
    },
)
"""A platform without a `Market` has no interface for machines: people come by a link, and are paid by hand.
"""


def get_door(name: str) -> Door:
    """The door of a platform. Raises UnknownName."""
    return PLATFORMS.load(name)()


def market_class(name: str) -> Any:
    """The market of a platform, to be made with an account. Raises Unsupported if it has none, UnknownName
    if there is no such platform.
    """
    if not has_market(name):
        raise Unsupported(
            f"{name} has no interface for machines: it can neither list its people nor pay them. "
            "Offer the study elsewhere, or pay by hand."
        )
    return MARKETS.load(name)


def has_market(name: str) -> bool:
    """Whether machines can list and pay this platform's people. Raises UnknownName."""
    return PLATFORMS.full_name(name) in MARKETS
