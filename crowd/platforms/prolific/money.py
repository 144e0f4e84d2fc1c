"""Amounts at Prolific's interface: minor units everywhere except in the list of bonuses."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

from crowd.platforms.base import Account, PlatformError, PostingSpec, Quote, UnsupportedRequest
from crowd.platforms.prolific.specs import (
    check_spec,
    estimated_minutes,
    filters,
    pays_screened,
    screen_out_slots,
)
from crowd.platforms.prolific.wire import ProlificError, ProlificWire, segment

COUNTED_FROM = 25
"""Prolific reports fewer eligible people than this as 0."""
AUTOMATIC = (
    "Prolific approves each person who enters the code for people who finished, at once and before any check "
    "of ours; the cap cannot stop it."
)
AMOUNT_MAX = 10**12
"""No amount or count of Prolific's is as large, in minor units."""
DIGITS = re.compile(r"-?[0-9]{1,13}(\.[0-9]{1,6})?")


def major(cents: int) -> str:
    """150 minor units as the `1.50` that Prolific's list of bonuses takes."""
    return str(Decimal(cents).scaleb(-2))


def whole(value: Any, name: str) -> int:
    """What a person gets or is offered, as an int. Prolific's schema says float; a fraction is refused, not
    rounded."""
    amount = number(value)
    if amount is None or amount != int(amount):
        raise PlatformError(
            f"Prolific says {name} = {str(value)[:40]}, which is no whole number.", permanent=True
        )
    return int(amount)


def exact(value: Any, name: str) -> Fraction:
    """What the platform takes for itself: 0 or more, and it may have a fraction."""
    amount = number(value)
    if amount is None or amount < 0:
        raise PlatformError(f"Prolific says {name} = {str(value)[:40]}, which is no amount.", permanent=True)
    return Fraction(amount)


def number(value: Any) -> Decimal | None:
    """The amount, count or time that an answer holds, as a number or as the digits of one; None if it holds
    neither."""
    if isinstance(value, str) and DIGITS.fullmatch(value):
        value = Decimal(value)
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    return Decimal(value) if -AMOUNT_MAX < value < AMOUNT_MAX else None


def balance(wire: ProlificWire, account: Account) -> tuple[str, int | None]:
    """Currency of the workspace, and what it holds: whole minor units, a fraction left out. None if Prolific
    does not say it as a number."""
    if not account.workspace:
        raise UnsupportedRequest("Prolific asks for a workspace. Set PROLIFIC_WORKSPACE.")
    data = wire.get(f"workspaces/{segment(account.workspace)}/balance/")
    currency = data.get("currency_code") if isinstance(data, dict) else None
    if not isinstance(currency, str):
        raise PlatformError("Prolific does not say in which currency the workspace is held.", permanent=True)
    held = number(data.get("available_balance"))
    return currency.upper(), None if held is None else math.floor(held)


def currency_of(wire: ProlificWire, account: Account, wanted: str) -> int | None:
    """What the workspace holds; Unsupported if its currency is another one."""
    currency, held = balance(wire, account)
    if currency != wanted:
        raise UnsupportedRequest(
            f"The workspace on Prolific pays in {currency}, the study in {wanted}. Set reward.currency to "
            f"{currency}, or use a workspace in {wanted}."
        )
    return held


def quote(wire: ProlificWire, account: Account, spec: PostingSpec) -> Quote:
    """What the posting costs at most."""
    check_spec(spec, account)
    held = currency_of(wire, account, spec.currency)
    rewards = spec.reward_cents * spec.places
    total = _calculate_cost(wire, spec)
    if total < rewards:
        raise PlatformError(
            f"Prolific's calculator says {total} for rewards of {rewards}: its unit is not the expected one.",
            permanent=True,
        )
    share = Fraction(total - rewards, rewards)
    lines = [
        (f"rewards: {spec.places} places", rewards),
        ("Prolific's fee and VAT on rewards", total - rewards),
    ]
    if spec.bonus_max_cents:
        bonuses = spec.bonus_max_cents * spec.places
        lines += [
            (f"bonuses at most: {spec.places} people", bonuses),
            ("fee and VAT on bonuses", _fee(spec.bonus_max_cents, share) * spec.places),
        ]
    screened = screen_out_slots(spec) if spec.screened_cents else 0
    if screened or pays_screened(spec):
        screened = max(1, screened)
        lines += [
            (f"reserve for people screened out: {screened} people", spec.screened_cents * screened),
            ("fee and VAT on the reserve", _fee(spec.screened_cents, share) * screened),
        ]
    notes = [*_notes(wire, account, spec), *_eligible(wire, account, spec)]
    if spec.options.get("approve") == "automatic":
        notes.append(AUTOMATIC)
    return Quote(spec.currency, tuple(lines), held, tuple(notes))


def check_balance(wire: ProlificWire, spec: PostingSpec, held: int | None) -> None:
    """Raises Unsupported if the workspace does not hold what publishing sets aside: the rewards, the payments
    to people screened out if Prolific makes them, and the fees on both."""
    if held is None:
        return
    needed = _calculate_cost(wire, spec)
    if pays_screened(spec):
        needed += needed * spec.screened_cents * screen_out_slots(spec) // (spec.reward_cents * spec.places)
    if held < needed:
        raise UnsupportedRequest(
            f"The workspace on Prolific holds {major(held)} {spec.currency}, and {spec.places} more places "
            f"cost {major(needed)} with fees: {major(needed - held)} is missing. Add money there, or "
            "offer fewer places."
        )


def _calculate_cost(wire: ProlificWire, spec: PostingSpec) -> int:
    """Rewards with fee and VAT of this account, as Prolific itself calculates them."""
    body = {"reward": spec.reward_cents, "total_available_places": spec.places}
    data = wire.send("POST", "study-cost-calculator/", body, reads=True).data
    total = number(data.get("total_cost")) if isinstance(data, dict) else None
    if total is None:
        raise PlatformError("Prolific's cost calculator gives no total_cost.", permanent=True)
    return math.ceil(Fraction(total))


def _fee(cents: int, share: Fraction) -> int:
    """Fee and VAT on one payment at most: the share that the calculator showed, and a cent for rounding."""
    return math.ceil(cents * share) + 1 if share else 0


def _notes(wire: ProlificWire, account: Account, spec: PostingSpec) -> list[str]:
    """What Prolific says about the hourly pay. Below its minimum it refuses the study, so we do."""
    params = {"workspace_id": account.workspace, "currency": spec.currency}
    try:
        data = wire.get("reward-recommendations/", params)
    except ProlificError as refused:
        if refused.permanent:
            return ["Prolific does not state its minimum pay for this workspace."]
        raise
    rates = data.get("results", data) if isinstance(data, dict) else data
    rates = rates if isinstance(rates, list) else [rates]
    minutes = estimated_minutes(spec.expected_minutes)
    hourly = Fraction(spec.reward_cents * 60, minutes)
    for rate in rates:
        if not isinstance(rate, dict) or rate.get("currency") != spec.currency:
            continue
        least, better = rate.get("min_reward_per_hour"), rate.get("recommended_reward_per_hour")
        if isinstance(least, int | Decimal) and hourly < Fraction(least):
            raise UnsupportedRequest(
                f"The reward comes to {_money(hourly, spec)} per hour for {minutes} minutes; Prolific "
                f"demands {_money(Fraction(least), spec)}. Raise reward.amount_cents to "
                f"{math.ceil(Fraction(least) * minutes / 60)} or more."
            )
        if isinstance(better, int | Decimal) and hourly < Fraction(better):
            return [
                f"The reward comes to {_money(hourly, spec)} per hour; Prolific recommends "
                f"{_money(Fraction(better), spec)}."
            ]
    return []


def _eligible(wire: ProlificWire, account: Account, spec: PostingSpec) -> Iterator[str]:
    """How many people the filters leave, if Prolific says it."""
    body = {"filters": filters(spec), "workspace_id": account.workspace}
    try:
        data = wire.send("POST", "eligibility-count/", body, reads=True).data
    except ProlificError as refused:
        if not refused.permanent:
            raise
        return
    count = number(data.get("count")) if isinstance(data, dict) else None
    if count is not None:
        people = f"{int(count)} people" if count >= COUNTED_FROM else f"fewer than {COUNTED_FROM} people"
        yield f"Prolific counts {people} who may take part, for {spec.places} places."


def _money(cents: Fraction, spec: PostingSpec) -> str:
    return f"{major(math.floor(cents))} {spec.currency}"
