"""Amounts of money: whole cents, as people read and type them. Pure."""

from __future__ import annotations

import math
import re
from fractions import Fraction

from experiments.errors import StudyError

AMOUNT_MAX_CENTS = 100_000_000
AMOUNT = re.compile(r"(\d{1,3}(?:,\d{3})+|\d{1,12})(?:\.(\d{2}))?(?: ?([A-Z]{3}))?", re.ASCII)


class BadAmount(StudyError):
    """What was typed is no amount that can be paid."""


def amount_of(cents: int, currency: str = "") -> str:
    """Cents as people read them: 1,234.50 GBP."""
    return f"{cents // 100:,}.{cents % 100:02d} {currency}".rstrip()


def plain(cents: int) -> str:
    """The same for a spreadsheet: 1234.50."""
    return f"{cents // 100}.{cents % 100:02d}"


def cents_of(typed: str, currency: str = "") -> int:
    """An amount as a person types it, in cents: 120, 120.50, 1,234.50 or 120.50 GBP.

    Raises BadAmount if it is no amount, not above 0, above 1,000,000.00, or in another `currency`.
    """
    match = AMOUNT.fullmatch(typed.strip())
    unit = f" {currency}" if currency else ""
    if match is None:
        raise BadAmount(f"{typed.strip()[:40]!r} is no amount. Give it as 120 or 120.50{unit}.")
    if match[3] and currency and match[3] != currency:
        raise BadAmount(f"This posting pays in {currency}, not in {match[3]}. Give the amount in {currency}.")
    cents = int(match[1].replace(",", "")) * 100 + int(match[2] or 0)
    if not 0 < cents <= AMOUNT_MAX_CENTS:
        raise BadAmount(f"Give at least 0.01 and at most {amount_of(AMOUNT_MAX_CENTS)}{unit}.")
    return cents


def is_typed(typed: str, cents: int, currency: str) -> bool:
    """Whether what a person typed to confirm a sum is that sum."""
    try:
        return cents_of(typed, currency) == cents
    except BadAmount:
        return False


def share_of(cents: int, share: float | Fraction) -> int:
    """A share of an amount in whole cents, halves rounded up. A share is read as decimal text: 0.285 of 100
    is 28.5, although no float is exactly 0.285."""
    exact = share if isinstance(share, Fraction) else Fraction(str(share))
    return math.floor(cents * exact + Fraction(1, 2))


def split(reward_cents: int, base_share: float) -> tuple[int, int]:
    """The reward as (what approving pays, what follows as a bonus); together they are the reward. No platform
    approves for nothing, so the base is at least one cent."""
    base = min(reward_cents, max(1, share_of(reward_cents, base_share)))
    return base, reward_cents - base


def percent(share: float | Fraction) -> str:
    """A share of the reward in words."""
    if share == 1:
        return "the full reward"
    return "nothing" if share == 0 else f"{float(share):.0%} of the reward"
