"""What a run would pay now, by the ledger alone: which payouts, in which way, at what cost; and what waits,
and why."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal, cast

from django.db.models import Count, Sum

from crowd.ground.amounts import amount_of
from crowd.models import Payout, Posting
from crowd.money.cap import rates_of, spent
from crowd.money.standings import Standing, standings
from crowd.platforms.base import Kind, Payment

State = Payout.State
KINDS: tuple[Kind, ...] = ("base", "screen_out", "compensation", "bonus")
WORDS: dict[str, str] = {
    "base": "The reward of the study.",
    "bonus": "Bonus for your answers in the study.",
    "screen_out": "For the time you gave at the beginning of the study.",
    "compensation": "Compensation for the time you gave to the study.",
}
"""What the participant reads. The ledger's own reasons name rules and researchers, so they are not shown."""


@dataclass(frozen=True, slots=True)
class Payable:
    """One payout that can be sent now, and the way to send it."""

    row: int
    kind: Kind
    way: Literal["approve", "bonus"]
    cents: int
    reference: str
    submission: str = field(repr=False)
    person: str = field(repr=False)

    def payment(self) -> Payment:
        return Payment(self.reference, self.submission, self.person, self.cents, WORDS[self.kind])


@dataclass(frozen=True, slots=True)
class Waiting:
    """Payouts that are not sent now, and why."""

    why: str
    payouts: int
    cents: int
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run would pay. The platform's fees come on top; `fees_cents` is the expected sum of them.
    `spent_cents` and `cap_cents` include fees."""

    posting: int
    currency: str
    payables: tuple[Payable, ...]
    waiting: tuple[Waiting, ...]
    people: int
    spent_cents: int
    cap_cents: int
    fees_cents: int = 0

    @property
    def total_cents(self) -> int:
        return sum(payable.cents for payable in self.payables)

    @property
    def total(self) -> str:
        return amount_of(self.total_cents, self.currency)

    def lines(self) -> list[tuple[str, str, int, int]]:
        """Kind, way, payouts and cents, in the order they are sent."""
        counts: Counter[tuple[str, str]] = Counter()
        cents: Counter[tuple[str, str]] = Counter()
        for payable in self.payables:
            counts[payable.kind, payable.way] += 1
            cents[payable.kind, payable.way] += payable.cents
        return [
            (kind, way, counts[kind, way], cents[kind, way])
            for kind in KINDS
            for way in ("approve", "bonus")
            if counts[kind, way]
        ]


def plan_of(posting: Posting) -> Plan:
    """What a run would pay now, by the ledger alone: the platform is not asked."""
    before, rates = spent(posting), rates_of(posting)
    able: list[tuple[Standing, Payable]] = []
    waiting: list[tuple[str, Standing]] = []
    for standing in sorted(standings(posting), key=lambda s: KINDS.index(cast(Kind, s.row.kind))):
        if standing.way.action in ("approve", "bonus"):
            able.append((standing, _payable(standing)))
        else:
            why = standing.way.why or "The platform has settled it; the next look writes it down."
            waiting.append((why, standing))
    costs = [payable.cents + rates.on(payable.way, payable.cents) for _, payable in able]
    wanted = before.all + sum(costs)
    planned, total = [], before.all
    for (standing, payable), cost in zip(able, costs, strict=True):
        if total + cost > posting.cap_cents:
            waiting.append((over_cap(posting, wanted), standing))
            continue
        total += cost
        planned.append((standing, payable))
    return Plan(
        posting=posting.pk,
        currency=posting.currency,
        payables=tuple(payable for _, payable in planned),
        waiting=_waiting(waiting),
        people=len({standing.row.session_id for standing, _ in planned}),
        spent_cents=before.all_cents,
        cap_cents=posting.cap_cents,
        fees_cents=math.ceil(total - before.all) - sum(payable.cents for _, payable in planned),
    )


def only(plan: Plan, way: Literal["approve", "bonus"], submissions: Collection[str]) -> Plan:
    """The part of a plan that goes one way to some submissions."""
    payables = tuple(p for p in plan.payables if p.way == way and p.submission in submissions)
    people = len({p.submission for p in payables})
    return replace(plan, payables=payables, waiting=(), people=people)


def _payable(standing: Standing) -> Payable:
    return Payable(
        row=standing.row.pk,
        kind=cast(Kind, standing.row.kind),
        way="approve" if standing.way.action == "approve" else "bonus",
        cents=standing.row.cents,
        reference=standing.row.reference,
        submission=standing.submission,
        person=standing.person,
    )


def over_cap(posting: Posting, wanted: Fraction) -> str:
    return (
        f"The posting's cap of {amount_of(posting.cap_cents, posting.currency)} would be exceeded. Raise it "
        f"to at least {amount_of(math.ceil(wanted), posting.currency)}, fees included."
    )


def _waiting(waiting: Sequence[tuple[str, Standing]]) -> tuple[Waiting, ...]:
    by_reason: dict[str, list[Standing]] = {}
    for why, standing in waiting:
        by_reason.setdefault(why, []).append(standing)
    return tuple(
        Waiting(why, len(group), sum(s.row.cents for s in group), tuple(s.name for s in group))
        for why, group in by_reason.items()
    )


def sums_of(posting: Posting) -> dict[str, tuple[int, int]]:
    """State -> (number of payouts, cents); `confirmed` is the part of `sent` that the platform lists."""
    rows = Payout.objects.filter(posting=posting).order_by()
    sums = {
        state: (count, cents)
        for state, count, cents in rows.values_list("state").annotate(n=Count("id"), c=Sum("cents"))
    }
    shown = rows.filter(state=State.SENT, confirmed_at__isnull=False).aggregate(n=Count("id"), c=Sum("cents"))
    return {**sums, "confirmed": (shown["n"], shown["c"] or 0)}
