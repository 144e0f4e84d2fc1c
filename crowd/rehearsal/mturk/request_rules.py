"""The platform's rules for the members of a request beyond their shape: limits, money, switches."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from crowd.rehearsal.mturk.records import TurkRefusal

Members = Mapping[str, Any]
TITLE, DESCRIPTION, KEYWORDS, ANNOTATION = 128, 2000, 1000, 255
SECONDS = (30, 31_536_000)
APPROVAL = (0, 2_592_000)
PLACES = (1, 1_000_000_000)
FEEDBACK, REASON, SUBJECT, MESSAGE, WORKERS = 1024, 10_000, 200, 4096, 100
QUESTION_BYTES = 65_535
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def refuse(message: str) -> TurkRefusal:
    return TurkRefusal("InvalidParameterValue", message)


def text(members: Members, name: str, most: int, least: int = 0) -> str:
    """A text of `least` to `most` characters; empty if it is not given."""
    value = str(members.get(name, ""))
    if not least <= len(value) <= most:
        raise refuse(f"{name} must have {least} to {most} characters; it has {len(value)}.")
    if _CONTROL.search(value):
        raise refuse(f"{name} must not contain control characters.")
    return value


def number(members: Members, name: str, bounds: tuple[int, int], default: int | None = None) -> int:
    value = int(members[name]) if default is None else int(members.get(name, default))
    if not bounds[0] <= value <= bounds[1]:
        raise refuse(f"{name} must lie between {bounds[0]} and {bounds[1]}; it is {value}.")
    return value


def money(members: Members, name: str, least: Decimal = Decimal(0)) -> Decimal:
    """US dollars; the pattern of the model has admitted digits and at most two places."""
    amount = Decimal(str(members[name]).rstrip("."))
    if amount < least:
        raise refuse(f"{name} must be at least {least} USD; it is {amount}.")
    return amount


def one_of(members: Members, *names: str) -> str:
    """The single one of these members that is given."""
    given = [name for name in names if name in members]
    if len(given) != 1:
        raise refuse(f"Exactly one of {' and '.join(names)} must be given; {len(given)} are.")
    return given[0]
