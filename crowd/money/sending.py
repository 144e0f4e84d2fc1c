"""Pays what the ledger owes: a plan, batch by batch.

Each batch is a row of its own. Its payouts are committed as being sent, then one call pays them, then the
outcome is stored. If the process is killed in between, the next run settles those payouts by reading the
platform's list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from fractions import Fraction
from typing import Any, Literal

from django.db import transaction
from django.db.models import F

from crowd.ground import audit, platform_clock
from crowd.ground.amounts import amount_of
from crowd.ground.platform_accounts import posted_of, service_of
from crowd.ground.process_locks import HeldLock
from crowd.models import Payout, PayoutBatch, Posting
from crowd.money.expense_cap import over_cap, posting_expenses, rates_of
from crowd.money.plan import Payable, Plan
from crowd.platforms import traits_of
from crowd.platforms.base import (
    ALL_REFUSED,
    Payment,
    PlatformError,
    PreparedPayments,
    Service,
    Settlement,
    UnsupportedRequest,
)

State, Batch = Payout.State, PayoutBatch.State
BONUSES_MAX = 200


@dataclass(slots=True)
class Outcome:
    """What a run has done.

    `problems` maps a reason to the number of payouts that were certainly not paid because of it. `stopped`
    says why the run ended early. In both cases a later run can still pay. `fees` are the platform's, in
    cents, for the bonuses that were paid or may have been.
    """

    sent: int = 0
    sent_cents: int = 0
    back: int = 0
    unknown: int = 0
    fees: Fraction = Fraction(0)
    stopped: str = ""
    problems: Counter[str] = field(default_factory=Counter)


def settle(
    posting: Posting, plan: Plan, by: str, *, held: HeldLock, service: Service | None = None
) -> Outcome:
    """Pays a plan once, and logs it under the name `by`. `held` is the study's lock; the caller holds it.

    1. Approvals, in chunks that the platform takes at once: they cost what was promised and lack no money.
    2. Bonuses, batch by batch, each with people once.
    3. One line in the log, also if it was stopped in between.
    """
    run = _Run(posting, by, held, service or service_of(posting))
    try:
        most = traits_of(posting.platform).approvals_max
        for chunk in _chunks([p for p in plan.payables if p.way == "approve"], most):
            run.attempt(run.approve, chunk)
        for batch in _batches([p for p in plan.payables if p.way == "bonus"]):
            run.attempt(run.pay, batch)
    finally:
        run.outcome.problems = Counter(run.reasons.values())
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


def _chunks(payables: Sequence[Payable], size: int) -> Iterator[Sequence[Payable]]:
    for start in range(0, len(payables), size):
        yield payables[start : start + size]


def _batches(payables: Sequence[Payable]) -> Iterator[Sequence[Payable]]:
    """As few batches as possible, because a platform may pay only one at a time. No person is in the same
    batch twice."""
    rest = list(payables)
    while rest:
        taken: dict[str, Payable] = {}
        later = []
        for payable in rest:
            who = payable.person or payable.submission
            if who in taken or len(taken) == BONUSES_MAX:
                later.append(payable)
            else:
                taken[who] = payable
        yield list(taken.values())
        rest = later


def _is_permanent(error: PlatformError | UnsupportedRequest) -> bool:
    return not isinstance(error, PlatformError) or error.permanent


def _is_uncertain(error: PlatformError | UnsupportedRequest) -> bool:
    return isinstance(error, PlatformError) and error.uncertain


def _is_of_people(error: PlatformError | UnsupportedRequest) -> bool:
    """Whether a refusal may concern some payments of a call and not others."""
    return (
        isinstance(error, PlatformError) and error.permanent and not error.uncertain and not error.of_account
    )


class _Run:
    """One run of `settle` over one posting."""

    def __init__(self, posting: Posting, by: str, held: HeldLock, service: Service) -> None:
        self.posting, self.by, self.held, self.service = posting, by, held, service
        self.posted = posted_of(posting)
        self.outcome = Outcome()
        self.reasons: dict[int, str] = {}
        """Why a payout was certainly not paid, by its key."""
        self._failures = 0

    def attempt(self, act: Callable[[Sequence[Payable]], None], chunk: Sequence[Payable]) -> None:
        """Pays one chunk. What fails stays due, with the reason."""
        if self.outcome.stopped:
            return
        try:
            act(chunk)
            self._failures = 0
        except (PlatformError, UnsupportedRequest) as error:
            if not _is_uncertain(error):
                self._say(chunk, str(error))
            if not _is_permanent(error):
                self._stop_if_again(str(error))

    def _stop_if_again(self, sentence: str) -> None:
        """Stops the run after two failed calls in a row: one may be an accident, two mean an outage."""
        self._failures += 1
        self.outcome.stopped = sentence if self._failures > 1 else ""

    def _say(self, chunk: Sequence[Payable], sentence: str, **more: Any) -> None:
        """Stores the reason with the payouts, which stay due. What refused one of them alone stays its
        reason."""
        due = Payout.objects.filter(pk__in=[p.row for p in chunk], state=State.DUE)
        (due if more else due.filter(refused_at=None)).update(error=sentence, **more)
        self.reasons |= {p.row: sentence for p in chunk if more or p.row not in self.reasons}

    def _refuse(self, refused: Mapping[int, str], chunk: Sequence[Payable]) -> None:
        """Notes payouts that the platform refuses one by one: each is a line for a person's hand."""
        for payable in chunk:
            if payable.row in refused:
                self._say([payable], refused[payable.row], refused_at=platform_clock.now())

    def approve(self, chunk: Sequence[Payable]) -> None:
        """Approves submissions; the platform pays its reward for each. If it refuses a chunk for good, each
        half is tried by itself, so that one person's trouble is one person's: to approve twice pays once."""
        try:
            self._approve(chunk)
        except (PlatformError, UnsupportedRequest) as error:
            if not _is_of_people(error):
                raise
            if len(chunk) == 1:
                self._refuse({chunk[0].row: str(error)}, chunk)
                return
            middle = len(chunk) // 2
            self.attempt(self.approve, chunk[:middle])
            self.attempt(self.approve, chunk[middle:])

    def _approve(self, chunk: Sequence[Payable]) -> None:
        self.held.check()
        batch, chunk = self._commit(chunk, "base", None)
        if batch is None:
            return
        by_submission = {p.submission: p.reference for p in chunk}
        settled = self._call(
            batch, chunk, lambda: self.service.approve(self.posted, list(by_submission))
        )  # fmt: skip
        self._write(
            batch,
            chunk,
            [replace(s, reference=by_submission.get(s.reference, "")) for s in settled],
        )

    def pay(self, chunk: Sequence[Payable]) -> None:
        """Announces a batch of bonuses without those that the platform refuses, commits the id that the
        platform gives it, then pays in one call."""
        self.held.check()
        refused: dict[int, str] = {}
        while accepted := [p for p in chunk if p.row not in refused]:
            try:
                batch, prepared = self._announce_batch(accepted)
                break
            except (PlatformError, UnsupportedRequest) as error:
                more = self._find_refusals(accepted, error)
                if len(more) == len(chunk) >= ALL_REFUSED:
                    # Refused to all: the cause is none of theirs.
                    raise
                refused |= more
                if not more:
                    # Each part alone is taken, and the whole is not.
                    self._refuse(refused, chunk)
                    middle = len(accepted) // 2
                    self.attempt(self.pay, accepted[:middle])
                    self.attempt(self.pay, accepted[middle:])
                    return
        self._refuse(refused, chunk)
        if accepted:
            self._pay(batch, prepared, accepted)

    def _pay(self, batch: PayoutBatch, prepared: PreparedPayments, chunk: Sequence[Payable]) -> None:
        payments = [p.payment() for p in chunk]
        committed, sending = self._commit(chunk, "bonus", batch)
        if committed is None or len(sending) != len(chunk):
            return
        settled = self._call(batch, chunk, lambda: self.service.pay(self.posted, prepared, payments))
        self._write(batch, chunk, settled)
        unpaid = {answer.reference for answer in settled if answer.state == "failed"}
        charged = sum(p.cents for p in chunk if p.reference not in unpaid)
        self.outcome.fees += Fraction(prepared.fees_cents) * charged / prepared.cents
        if settled and all(answer.state == "unknown" for answer in settled):
            # A platform that leaves a whole batch open would leave the next one open too.
            self.outcome.stopped = settled[0].message

    def _find_refusals(
        self, chunk: Sequence[Payable], error: PlatformError | UnsupportedRequest
    ) -> dict[int, str]:
        """Which payouts of a chunk the platform refuses for good, each with the reason: those that it names,
        else those that it refuses alone. To find these, parts are announced, which pays nothing. Raises what
        is not about people."""
        if not _is_of_people(error):
            raise error
        about = error.about if isinstance(error, PlatformError) else frozenset()
        named = [p for p in chunk if p.submission in about or p.person in about]
        if len(chunk) == 1 or 0 < len(named) < len(chunk):
            return dict.fromkeys([p.row for p in (named if len(chunk) > 1 else chunk)], str(error))
        middle, reasons = len(chunk) // 2, dict[int, str]()
        for part in (chunk[:middle], chunk[middle:]):
            try:
                batch, _ = self._announce_batch(part)
                self._drop(batch, "Announced to find which payments of a batch are refused; never paid.")
            except (PlatformError, UnsupportedRequest) as again:
                reasons |= self._find_refusals(part, again)
        return reasons

    def _announce_batch(self, chunk: Sequence[Payable]) -> tuple[PayoutBatch, PreparedPayments]:
        batch = PayoutBatch.objects.create(
            posting=self.posting,
            purpose="bonus",
            cents=sum(p.cents for p in chunk),
            currency=self.posting.currency,
            by=self.by,
        )
        try:
            return batch, self._prepare(batch, [p.payment() for p in chunk])
        except (PlatformError, UnsupportedRequest) as error:
            self._drop(batch, str(error))
            if isinstance(error, PlatformError):
                # Announcing pays nothing, so the outcome is certain even if no answer came.
                error.uncertain = False
            raise

    def _prepare(self, batch: PayoutBatch, payments: Sequence[Payment]) -> PreparedPayments:
        prepared = self.service.prepare(self.posted, payments)
        if prepared.cents != batch.cents:
            raise PlatformError(
                f"{self.posting.platform} understood {amount_of(prepared.cents, batch.currency)} where "
                f"{amount_of(batch.cents, batch.currency)} was meant; nothing was paid.",
                permanent=True,
                of_account=True,
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
        """Commits, before the call, that these payouts are being sent and fit within the cap.

        An announced batch is sent whole or not at all. From a chunk of approvals, payouts that were withheld
        meanwhile are left out.
        """
        now, announced = platform_clock.now(), batch is not None
        with transaction.atomic():
            # Two runs share one cap. The posting first, as everywhere: then none waits for the other.
            posting = Posting.objects.select_for_update().get(pk=self.posting.pk)
            due = Payout.objects.filter(pk__in=[p.row for p in chunk], state=State.DUE)
            ready = set(due.select_for_update().values_list("pk", flat=True))
            sending = [p for p in chunk if p.row in ready]
            cents = sum(p.cents for p in sending)
            after = posting_expenses(posting).all + cents + self._fees(posting, cents, batch)
            fits = after <= posting.cap_cents
            if not sending or not fits or (announced and len(sending) < len(chunk)):
                why = "The payouts changed after the batch was announced; run settle again." if fits else (
                    over_cap(posting, after)
                )  # fmt: skip
                self.reasons |= {p.row: why for p in chunk}
                if batch is not None:
                    self._drop(batch, why)
                return None, ()
            if batch is None:
                batch = PayoutBatch.objects.create(
                    posting=posting, purpose=purpose, cents=cents, currency=posting.currency, by=self.by
                )
            PayoutBatch.objects.filter(pk=batch.pk).update(state=Batch.PAYING, called_at=now)
            due.update(
                state=State.SENDING, batch=batch, called_at=now, attempts=F("attempts") + 1, error="",
                refused_at=None,
            )  # fmt: skip
        return batch, sending

    def _fees(self, posting: Posting, cents: int, batch: PayoutBatch | None) -> Fraction:
        """The fees of an announced batch, as the platform told them; those of approvals, at its rate."""
        if batch is None:
            return rates_of(posting).on("approve", cents)
        return Fraction(PayoutBatch.objects.values_list("fees_cents", flat=True).get(pk=batch.pk))

    def _call(
        self, batch: PayoutBatch, chunk: Sequence[Payable], act: Callable[[], list[Settlement]]
    ) -> list[Settlement]:
        """Makes the one call that pays.

        After an error of the platform the payouts are unknown, or due again if certainly nothing was sent.
        After any other error they stay `sending`, and the next run makes them unknown.
        """
        try:
            return act()
        except (PlatformError, UnsupportedRequest) as error:
            uncertain = isinstance(error, PlatformError) and error.uncertain
            state: Literal["unknown", "failed"] = "unknown" if uncertain else "failed"
            self._write(batch, chunk, [Settlement(p.reference, state, str(error)) for p in chunk])
            raise

    def _write(self, batch: PayoutBatch, chunk: Sequence[Payable], settled: Sequence[Settlement]) -> None:
        """Stores the outcome. A payment that the platform's answer does not mention is unknown."""
        answers = {answer.reference: answer for answer in settled}
        silent = "The platform's answer does not mention it."
        outcomes = [
            (p, answers.get(p.reference) or Settlement(p.reference, "unknown", silent)) for p in chunk
        ]
        now = platform_clock.now()
        with transaction.atomic():
            for key in dict.fromkeys((s.state, s.message, s.is_refused) for _, s in outcomes):
                part = [p for p, s in outcomes if (s.state, s.message, s.is_refused) == key]
                self._write_part(part, *key, now)
            unknown = any(s.state == "unknown" for _, s in outcomes)
            paid = any(s.state == "sent" for _, s in outcomes)
            end = Batch.UNKNOWN if unknown else Batch.PAID if paid else Batch.DROPPED
            error = next((s.message for _, s in outcomes if s.state != "sent"), "")
            PayoutBatch.objects.filter(pk=batch.pk).update(state=end, error=error)

    def _write_part(
        self, part: Sequence[Payable], state: str, message: str, is_refused: bool, now: datetime
    ) -> None:
        rows = Payout.objects.filter(pk__in=[p.row for p in part], state=State.SENDING)
        if state == "sent":
            for payable in part:
                self.reasons.pop(payable.row, None)
            self.outcome.sent += rows.update(state=State.SENT, sent_at=now, error="")
            self.outcome.sent_cents += sum(p.cents for p in part)
            return
        if state == "failed":
            # Certainly nothing was paid, so these payouts are due again, with the reason.
            self.reasons |= {p.row: message for p in part}
            self.outcome.back += rows.update(
                state=State.DUE, error=message, refused_at=now if is_refused else None
            )
        else:
            self.outcome.unknown += rows.update(state=State.UNKNOWN, error=message)
