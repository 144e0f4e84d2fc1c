"""What a run would pay now, by the ledger alone: which payouts, in which way, at what cost; and what waits,
and why."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, cast

from django.db.models import Count, Sum

from crowd.ground.amounts import amount_of
from crowd.models import Payout, Posting
from crowd.money.expense_cap import over_cap, posting_expenses, rates_of
from crowd.money.payout_readiness import SENDS, Ids, Standing, standings
from crowd.platforms.base import Kind, Payment

State = Payout.State
Among = Callable[[Standing], bool]
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
    """One payout that can be sent now, and the way to send it. `of` is the key of its submission."""

    row: int
    of: int
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
    """Payouts that are not sent now, and why. `is_over_cap`: they could be sent if the cap were higher."""

    why: str
    payouts: int
    cents: int
    names: tuple[str, ...]
    is_over_cap: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run would pay. The platform's fees come on top; `fees_cents` is the expected sum of them.
    `spent_cents` and `cap_cents` include fees; `lacking_cents` are bonuses that wait for the account's
    money."""

    posting: int
    currency: str
    payables: tuple[Payable, ...]
    waiting: tuple[Waiting, ...]
    people: int
    spent_cents: int
    cap_cents: int
    fees_cents: int = 0
    lacking_cents: int = 0

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


def plan_of(
    posting: Posting, ids: Ids | None = None, among: Among | None = None, *, lacking: str = ""
) -> Plan:
    """What a run would pay now, by the ledger alone: the platform is not asked. `ids` are those that its list
    has just shown, for people whose ids are not stored; `among` takes a part of the payouts. `lacking` says
    why bonuses have to wait, if they have: rewards were set aside when the posting was published."""
    before, rates = posting_expenses(posting), rates_of(posting)
    able: list[tuple[Standing, Payable]] = []
    waiting: list[tuple[str, Standing]] = []
    chosen = [each for each in standings(posting, ids) if among is None or among(each)]
    for standing in sorted(chosen, key=lambda s: KINDS.index(cast(Kind, s.row.kind))):
        if lacking and standing.way.action == "bonus":
            waiting.append((lacking, standing))
        elif standing.way.action in ("approve", "bonus"):
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
        waiting=_waiting(waiting, lacking),
        people=len({standing.row.submission_id for standing, _ in planned}),
        spent_cents=before.all_cents,
        cap_cents=posting.cap_cents,
        lacking_cents=sum(standing.row.cents for why, standing in waiting if lacking and why == lacking),
        fees_cents=math.ceil(total - before.all) - sum(payable.cents for _, payable in planned),
    )


def _payable(standing: Standing) -> Payable:
    return Payable(
        row=standing.row.pk,
        of=standing.row.submission_id,
        kind=cast(Kind, standing.row.kind),
        way="approve" if standing.way.action == "approve" else "bonus",
        cents=standing.row.cents,
        reference=standing.row.reference,
        submission=standing.submission,
        person=standing.person,
    )


def _waiting(waiting: Sequence[tuple[str, Standing]], lacking: str) -> tuple[Waiting, ...]:
    by_reason: dict[str, list[Standing]] = {}
    for why, standing in waiting:
        by_reason.setdefault(why, []).append(standing)
    return tuple(
        Waiting(
            why,
            len(group),
            sum(standing.row.cents for standing in group),
            tuple(dict.fromkeys(standing.name for standing in group)),
            # What could be sent and waits all the same exceeds the cap, or what the account holds.
            why != lacking and all(standing.way.action in SENDS for standing in group),
        )
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
