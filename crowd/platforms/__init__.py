"""Platforms by name. One line and one folder make a platform; what a line names is imported on first use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from importlib import import_module
from typing import Any, cast

from crowd.platforms.base import Account, Entry, Notification, Service, Signature, UnsupportedRequest
from crowd.platforms.traits import Platform, Traits
from stimuli.registry import Table

PLATFORMS: Table[Platform] = Table(
    "platform",
    {
        "local": "crowd.platforms.local:PLATFORM",
        "link": "crowd.platforms.link:PLATFORM",
        "prolific": "crowd.platforms.prolific:PLATFORM",
        "mturk": "crowd.platforms.mturk:PLATFORM",
    },
)
HERE = "local"
"""The platform that an address means which names none."""
ReadNotice = Callable[[Mapping[str, str], bytes, str, datetime], list[Notification]]
PullNotices = Callable[[Account, Callable[[list[Notification]], object]], object]


def traits_of(name: str) -> Traits:
    """The traits of a platform. Raises UnknownName."""
    return PLATFORMS.load(name).traits


def has_service(name: str) -> bool:
    """Whether machines can list and pay this platform's people. Raises UnknownName."""
    return bool(PLATFORMS.load(name).service)


def platforms_with_service() -> list[str]:
    """The platforms with an interface for machines."""
    return [name for name in PLATFORMS if has_service(name)]


def entry_of(name: str, options: Mapping[str, Any]) -> Entry:
    """Arrivals and exits of a platform, as the study's table describes them. Raises UnknownName."""
    return cast(Entry, _import_object(PLATFORMS.load(name).entry)(options))


def service_class(name: str) -> type[Service]:
    """The interface of a platform, to be made with an account. Raises Unsupported if it has none, UnknownName
    if there is no such platform."""
    if not has_service(name):
        raise UnsupportedRequest(
            f"{name} has no interface for machines: it can neither list its people nor pay them. "
            "Offer the study elsewhere, or pay by hand."
        )
    return cast(type[Service], _import_object(PLATFORMS.load(name).service))


def signature_of(name: str) -> Signature:
    """What verifies signed entry. Raises Unsupported if the platform signs nothing."""
    path = PLATFORMS.load(name).signature
    if not path:
        raise UnsupportedRequest(f"{traits_of(name).title} signs no entry. Leave signed_entry out.")
    return cast(Signature, _import_object(path)())


def notice_of(name: str) -> ReadNotice | None:
    """What reads a delivery over the web; None if the platform makes none."""
    path = PLATFORMS.load(name).notice
    return cast(ReadNotice, _import_object(path)) if path else None


def queues() -> Iterator[tuple[str, PullNotices]]:
    """The platforms whose notifications are taken from a queue, and what takes them."""
    for name in PLATFORMS:
        path = PLATFORMS.load(name).queue
        if path:
            yield name, cast(PullNotices, _import_object(path))


def settings_of_all() -> dict[str, type]:
    """The settings that the platforms ask for: name -> text or flag."""
    names: dict[str, type] = {}
    for name in PLATFORMS:
        traits = traits_of(name)
        names |= dict.fromkeys(traits.account.values(), str)
        names |= {setting: bool for setting in (traits.switch,) if setting}
        names |= {setting: str for setting in (traits.notice_secret,) if setting}
    return names


def _import_object(path: str) -> Any:
    module, _, attribute = path.partition(":")
    return getattr(import_module(module), attribute)
