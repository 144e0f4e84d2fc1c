"""Paying what the ledger owes: a plan first, then each batch as a row, a committed intent, one call, the
outcome. Whatever dies in between leaves rows that the next run settles by looking."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from fractions import Fraction
from typing import Literal, cast

from django.db import transaction
from django.db.models import Count, F, Sum
from django.utils import timezone

from crowd import audit
from crowd.accounts import market_of, posted_of
from crowd.fees import rates_of, spent
from crowd.locks import Held
from crowd.models import Payout, PayoutBatch, Posting
from crowd.payouts import amount_of
from crowd.platforms.base import Kind, Market, Payment, PlatformError, Prepared, Settled, Unsupported
from crowd.standings import Standing, standings

State, Batch = Payout.State, PayoutBatch.State
APPROVALS_MAX = 50
BONUSES_MAX = 200
KINDS: tuple[Kind, ...] = ("base", "screen_out", "compensation", "bonus")
LIKE_MAX = 3
"""So many single refusals stand for the rest of their batch: it is the account, not the people."""
WORDS: dict[str, str] = {
    "base": "The reward of the study.",
    "bonus": "Bonus for your answers in the study.",
    "screen_out": "For the time you gave at the beginning of the study.",
    "compensation": "Compensation for the time you gave to the study.",
}
"""What the person reads; the ledger's own reason names rules and researchers."""


@dataclass(frozen=True, slots=True)
class Payable:
    """One payout that can be sent now, and by which way."""

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
    """What a run would pay. The platform's fees come on top: `fees_cents` is what they are expected to be;
    `spent_cents` has them, as the cap has."""

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
        return sum(one.cents for one in self.payables)

    @property
    def total(self) -> str:
        return amount_of(self.total_cents, self.currency)

    def lines(self) -> list[tuple[str, str, int, int]]:
        """Kind, way, payouts and cents, in the order they are sent."""
        found: Counter[tuple[str, str]] = Counter()
        cents: Counter[tuple[str, str]] = Counter()
        for one in self.payables:
            found[one.kind, one.way] += 1
            cents[one.kind, one.way] += one.cents
        return [
            (kind, way, found[kind, way], cents[kind, way])
            for kind in KINDS
            for way in ("approve", "bonus")
            if found[kind, way]
        ]


@dataclass(slots=True)
class Outcome:
    """What a run has done. `problems`: why payouts were certainly not paid, and how many; `stopped` says why
    the run ended early. Nothing is lost by either."""

    sent: int = 0
    sent_cents: int = 0
    back: int = 0
    unknown: int = 0
    fees_cents: int = 0
    stopped: str = ""
    problems: Counter[str] = field(default_factory=Counter)


def plan_of(posting: Posting) -> Plan:
    """What a run would pay now, from the rows alone: the platform is not asked."""
    found = standings(posting)
    before, rates = spent(posting), rates_of(posting)
    able: list[tuple[Standing, Payable]] = []
    held: list[tuple[str, Standing]] = []
    for one in sorted(found, key=lambda s: KINDS.index(cast(Kind, s.row.kind))):
        if one.way.action in ("approve", "bonus"):
            able.append((one, _payable(one)))
        else:
            held.append((one.way.why or "The platform has settled it; the next look writes it down.", one))
    costs = [payable.cents + rates.on(payable.way, payable.cents) for _, payable in able]
    wanted = before.all + sum(costs)
    kept, total = [], before.all
    for (one, payable), cost in zip(able, costs, strict=True):
        if total + cost > posting.cap_cents:
            held.append((_over_cap(posting, wanted), one))
            continue
        total += cost
        kept.append((one, payable))
    return Plan(
        posting=posting.pk,
        currency=posting.currency,
        payables=tuple(payable for _, payable in kept),
        waiting=_waiting(held),
        people=len({one.row.session_id for one, _ in kept}),
        spent_cents=before.all_cents,
        cap_cents=posting.cap_cents,
        fees_cents=math.ceil(total - before.all) - sum(payable.cents for _, payable in kept),
    )


def only(plan: Plan, way: Literal["approve", "bonus"], submissions: Collection[str]) -> Plan:
    """The part of a plan that goes one way to some submissions."""
    payables = tuple(p for p in plan.payables if p.way == way and p.submission in submissions)
    people = len({p.submission for p in payables})
    return replace(plan, payables=payables, waiting=(), people=people)


def _payable(one: Standing) -> Payable:
    return Payable(
        row=one.row.pk,
        kind=cast(Kind, one.row.kind),
        way="approve" if one.way.action == "approve" else "bonus",
        cents=one.row.cents,
        reference=one.row.reference,
        submission=one.submission,
        person=one.person,
    )


def _over_cap(posting: Posting, wanted: Fraction) -> str:
    return (
        f"The posting's cap of {amount_of(posting.cap_cents, posting.currency)} would be exceeded. Raise it "
        f"to at least {amount_of(math.ceil(wanted), posting.currency)}, fees included."
    )


def _waiting(held: Sequence[tuple[str, Standing]]) -> tuple[Waiting, ...]:
    by_reason: dict[str, list[Standing]] = {}
    for why, one in held:
        by_reason.setdefault(why, []).append(one)
    return tuple(
        Waiting(why, len(ones), sum(one.row.cents for one in ones), tuple(one.name for one in ones))
        for why, ones in by_reason.items()
    )


def settle(posting: Posting, plan: Plan, by: str, *, held: Held, market: Market | None = None) -> Outcome:
    """Pays a plan, once. To be called under the study's lock, which `held` proves; `by` is written down."""
    run = _Run(posting, by, held, market or market_of(posting))
    try:
        for chunk in _chunks([p for p in plan.payables if p.way == "approve"], APPROVALS_MAX):
            run.attempt(run.approve, chunk)
        for batch in _batches([p for p in plan.payables if p.way == "bonus"]):
            run.attempt(run.pay, batch)
    finally:
        audit.record(posting.study, by, _log_line(posting, plan, run.outcome))
    return run.outcome


def _log_line(posting: Posting, plan: Plan, outcome: Outcome) -> str:
    line = (
        f"Settled {posting.platform} ({posting.mode}): sent {outcome.sent} of {len(plan.payables)} payouts, "
        f"{amount_of(outcome.sent_cents, posting.currency)} of {plan.total}, for {plan.people} people"
    )
    if outcome.unknown:
        line += f"; {outcome.unknown} unknown"
    return f"{line}; stopped: {outcome.stopped}" if outcome.stopped else f"{line}."


def _chunks(found: Sequence[Payable], size: int) -> Iterator[Sequence[Payable]]:
    for start in range(0, len(found), size):
        yield found[start : start + size]


def _batches(found: Sequence[Payable]) -> Iterator[Sequence[Payable]]:
    """As few as may be, for a platform may carry out one at a time; nobody twice in the same one."""
    rest = list(found)
    while rest:
        taken: dict[str, Payable] = {}
        later = []
        for one in rest:
            if one.submission in taken or len(taken) == BONUSES_MAX:
                later.append(one)
            else:
                taken[one.submission] = one
        yield list(taken.values())
        rest = later


class _Run:
    """One run over one posting."""

    def __init__(self, posting: Posting, by: str, held: Held, market: Market) -> None:
        self.posting, self.by, self.held, self.market = posting, by, held, market
        self.posted = posted_of(posting)
        self.outcome = Outcome()
        self._failures = 0
        self._alike: Counter[str] = Counter()

    def attempt(self, act: Callable[[Sequence[Payable]], None], chunk: Sequence[Payable]) -> None:
        """One chunk. A permanent refusal of many is asked again in halves: one person's trouble is not
        everybody's."""
        if self.outcome.stopped:
            return
        try:
            act(chunk)
            self._failures = 0
        except (PlatformError, Unsupported) as error:
            sentence = str(error)
            if isinstance(error, PlatformError) and error.uncertain:
                self._stop_if_again(sentence)
            elif isinstance(error, PlatformError) and not error.permanent:
                self._say(chunk, sentence)
                self._stop_if_again(sentence)
            elif len(chunk) > 1 and self._alike[sentence] < LIKE_MAX:
                middle = len(chunk) // 2
                self.attempt(act, chunk[:middle])
                self.attempt(act, chunk[middle:])
            else:
                self._alike[sentence] += 1
                self._say(chunk, sentence)

    def _stop_if_again(self, sentence: str) -> None:
        """One lost call is an accident; two in a row are a platform that cannot be reached."""
        self._failures += 1
        self.outcome.stopped = sentence if self._failures > 1 else ""

    def _say(self, chunk: Sequence[Payable], sentence: str) -> None:
        """They stay due, with the reason."""
        own = Payout.objects.filter(pk__in=[p.row for p in chunk], state=State.DUE)
        own.update(error=sentence)
        self.outcome.problems[sentence] += len(chunk)

    def approve(self, chunk: Sequence[Payable]) -> None:
        """The platform pays its reward for each."""
        self.held.check()
        batch, chunk = self._commit(chunk, "base", None)
        if batch is None:
            return
        by_submission = {p.submission: p.reference for p in chunk}
        settled = self._call(
            batch, chunk, lambda: self.market.approve(self.posted, list(by_submission))
        )  # fmt: skip
        self._write(
            batch,
            chunk,
            [Settled(by_submission.get(s.reference, ""), s.state, s.message) for s in settled],
        )

    def pay(self, chunk: Sequence[Payable]) -> None:
        """Announced first; its id is committed before the one call that pays."""
        self.held.check()
        payments = [p.payment() for p in chunk]
        batch = PayoutBatch.objects.create(
            posting=self.posting,
            purpose="bonus",
            cents=sum(p.cents for p in chunk),
            currency=self.posting.currency,
            by=self.by,
        )
        try:
            prepared = self._prepare(batch, payments)
        except (PlatformError, Unsupported) as error:
            self._drop(batch, str(error))
            # Announcing pays nothing, whatever became of it.
            permanent = not isinstance(error, PlatformError) or error.permanent
            raise PlatformError(str(error), permanent=permanent) from error
        found, kept = self._commit(chunk, "bonus", batch)
        if found is None or len(kept) != len(chunk):
            return
        settled = self._call(batch, chunk, lambda: self.market.pay(self.posted, prepared, payments))
        self.outcome.fees_cents += prepared.fees_cents
        self._write(batch, chunk, settled)

    def _prepare(self, batch: PayoutBatch, payments: Sequence[Payment]) -> Prepared:
        prepared = self.market.prepare(self.posted, payments)
        if prepared.cents != batch.cents:
            raise PlatformError(
                f"{self.posting.platform} understood {amount_of(prepared.cents, batch.currency)} where "
                f"{amount_of(batch.cents, batch.currency)} was meant; nothing was paid.",
                permanent=True,
            )
        PayoutBatch.objects.filter(pk=batch.pk).update(
            external_id=prepared.external_id, fees_cents=prepared.fees_cents, state=Batch.PREPARED
        )
        return prepared

    def _drop(self, batch: PayoutBatch, why: str) -> None:
        PayoutBatch.objects.filter(pk=batch.pk).update(state=Batch.DROPPED, error=why)

    def _commit(
        self, chunk: Sequence[Payable], purpose: str, batch: PayoutBatch | None
    ) -> tuple[PayoutBatch | None, Sequence[Payable]]:
        """The intent, committed before the call: these rows are being sent, within the cap.

        An announced batch is sent whole or not at all; approvals go without whoever was withheld meanwhile.
        """
        now, announced = timezone.now(), batch is not None
        with transaction.atomic():
            posting = Posting.objects.select_for_update().get(pk=self.posting.pk)
            due = Payout.objects.filter(pk__in=[p.row for p in chunk], state=State.DUE)
            ready = set(due.select_for_update().values_list("pk", flat=True))
            kept = [p for p in chunk if p.row in ready]
            cents = sum(p.cents for p in kept)
            after = spent(posting).all + cents + self._fees(posting, cents, batch)
            fits = after <= posting.cap_cents
            if not kept or not fits or (announced and len(kept) < len(chunk)):
                why = "The payouts changed after the batch was announced; run settle again." if fits else (
                    _over_cap(posting, after)
                )  # fmt: skip
                self.outcome.problems[why] += len(chunk)
                if batch is not None:
                    self._drop(batch, why)
                return None, ()
            if batch is None:
                batch = PayoutBatch.objects.create(
                    posting=posting, purpose=purpose, cents=cents, currency=posting.currency, by=self.by
                )
            PayoutBatch.objects.filter(pk=batch.pk).update(state=Batch.PAYING, called_at=now)
            due.update(state=State.SENDING, batch=batch, called_at=now, attempts=F("attempts") + 1, error="")
        return batch, kept

    def _fees(self, posting: Posting, cents: int, batch: PayoutBatch | None) -> Fraction:
        """Of an announced batch as the platform told them, of approvals at its rate."""
        if batch is None:
            return rates_of(posting).on("approve", cents)
        return Fraction(PayoutBatch.objects.values_list("fees_cents", flat=True).get(pk=batch.pk))

    def _call(
        self, batch: PayoutBatch, chunk: Sequence[Payable], act: Callable[[], list[Settled]]
    ) -> list[Settled]:
        """The one call. Whatever it raises, the rows say what is known: unknown, unless certainly nothing
        was sent. Anything else leaves them `sending`, which the next run takes as unknown."""
        try:
            return act()
        except (PlatformError, Unsupported) as error:
            uncertain = isinstance(error, PlatformError) and error.uncertain
            state: Literal["unknown", "failed"] = "unknown" if uncertain else "failed"
            self._write(batch, chunk, [Settled(p.reference, state, str(error)) for p in chunk])
            raise

    def _write(self, batch: PayoutBatch, chunk: Sequence[Payable], settled: Sequence[Settled]) -> None:
        """The outcome. A payment that the platform says nothing of is unknown."""
        said = {one.reference: one for one in settled}
        silent = "The platform's answer does not mention it."
        found = [(p, said.get(p.reference) or Settled(p.reference, "unknown", silent)) for p in chunk]
        now = timezone.now()
        with transaction.atomic():
            for state, message in dict.fromkeys((s.state, s.message) for _, s in found):
                part = [p for p, s in found if (s.state, s.message) == (state, message)]
                self._write_part(part, state, message, now)
            unknown = any(s.state == "unknown" for _, s in found)
            paid = any(s.state == "sent" for _, s in found)
            end = Batch.UNKNOWN if unknown else Batch.PAID if paid else Batch.DROPPED
            error = next((s.message for _, s in found if s.state != "sent"), "")
            PayoutBatch.objects.filter(pk=batch.pk).update(state=end, error=error)

    def _write_part(self, part: Sequence[Payable], state: str, message: str, now: datetime) -> None:
        rows = Payout.objects.filter(pk__in=[p.row for p in part], state=State.SENDING)
        if state == "sent":
            self.outcome.sent += rows.update(state=State.SENT, sent_at=now, error="")
            self.outcome.sent_cents += sum(p.cents for p in part)
            return
        if state == "failed":
            # It certainly did not take effect, so it is due again, with the reason.
            self.outcome.problems[message] += len(part)
            self.outcome.back += rows.update(state=State.DUE, error=message)
        else:
            self.outcome.unknown += rows.update(state=State.UNKNOWN, error=message)


def sums_of(posting: Posting) -> dict[str, tuple[int, int]]:
    """State -> (payouts, cents); `confirmed` is the part of `sent` that the platform's list has shown."""
    rows = Payout.objects.filter(posting=posting).order_by()
    found = {
        state: (count, cents)
        for state, count, cents in rows.values_list("state").annotate(n=Count("id"), c=Sum("cents"))
    }
    shown = rows.filter(state=State.SENT, confirmed_at__isnull=False).aggregate(n=Count("id"), c=Sum("cents"))
    return {**found, "confirmed": (shown["n"], shown["c"] or 0)}
