"""What Mechanical Turk takes on top of what people get. One place for the rates, which Amazon may change."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

NINE = 9
"""The most people that one HIT may have under the fee step."""


@dataclass(frozen=True, slots=True)
class TurkRates:
    """Shares of what is paid, 0-1. `many` is added to the fee of a reward if a HIT has `many_from` places or
    more, `masters` if it asks for Masters. No fee is lower than `minimum_cents`."""

    every: Decimal = Decimal("0.20")
    many: Decimal = Decimal("0.20")
    masters: Decimal = Decimal("0.05")
    many_from: int = NINE + 1
    minimum_cents: int = 1


def fee_cents(cents: int, rates: TurkRates, *, places: int = 1, masters: bool = False) -> int:
    """The fee of one payment, in cents: of a reward with the `places` of its HIT, of a bonus without.

    Rounded half up per payment. A reward of 0 still costs the lowest fee.
    """
    share = rates.every
    if places >= rates.many_from:
        share += rates.many
    if masters:
        share += rates.masters
    return max(round_cents(cents * share), rates.minimum_cents)


def rates_of(options: Mapping[str, Any]) -> TurkRates:
    """The rates of a study's checked options."""
    return TurkRates(
        every=Decimal(str(options["fee_share"])),
        many=Decimal(str(options["fee_share_many"])),
        masters=Decimal(str(options["fee_share_masters"])),
    )


def base_cents(reward_cents: int, base_share: float) -> int:
    """The reward of a HIT, paid for every submission: a share of the study's reward, at least one cent."""
    return max(round_cents(reward_cents * Decimal(str(base_share))), min(reward_cents, 1))


def round_cents(cents: Decimal) -> int:
    return int(cents.quantize(Decimal(1), rounding=ROUND_HALF_UP))


def dollars(cents: int) -> str:
    """Cents as Mechanical Turk wants them: '1.40'."""
    return f"{cents // 100}.{cents % 100:02d}"


def floored_cents(amount: object) -> int | None:
    """A balance in whole cents, a fraction left out; None if it is no amount."""
    try:
        return math.floor(Decimal(str(amount)) * 100)
    except (ArithmeticError, ValueError):
        return None


def cents_of(amount: str) -> int:
    """Mechanical Turk's dollars as cents. Raises ValueError for a fraction of a cent."""
    cents = Decimal(amount) * 100
    if cents != cents.to_integral_value():
        raise ValueError(f"{amount!r} is no whole number of cents")
    return int(cents)
