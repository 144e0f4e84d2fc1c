"""Platforms by name -> dotted paths of door and market; imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import Any, cast

from crowd.platforms.base import Door, Unsupported

PLATFORMS = {
    "local": ("crowd.platforms.local:Local", ""),
    "link": ("crowd.platforms.link:Link", ""),
    "prolific": ("crowd.platforms.prolific.door:ProlificDoor", "crowd.platforms.prolific.market:Prolific"),
    "mturk": ("crowd.platforms.mturk.door:MTurkDoor", "crowd.platforms.mturk.market:MTurk"),
}
"""A platform without a market has no interface for machines: people come by a link, and are paid by hand."""


def get_door(name: str) -> Door:
    """The door of a platform; KeyError where there is none."""
    return cast(Door, _found(PLATFORMS[name][0])())


def market_class(name: str) -> Any:
    """The market of a platform, to be made with an account. Raises Unsupported where it has none."""
    path = PLATFORMS[name][1]
    if not path:
        raise Unsupported(
            f"{name} has no interface for machines: it can neither list its people nor pay them. "
            "Offer the study elsewhere, or pay by hand."
        )
    return _found(path)


def has_market(name: str) -> bool:
    return bool(PLATFORMS[name][1])


def _found(path: str) -> Any:
    module, _, attribute = path.partition(":")
    return getattr(import_module(module), attribute)
