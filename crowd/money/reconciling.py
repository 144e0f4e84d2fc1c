"""Brings the ledger in line with the platform's statement, as far as the statement alone decides.

An unknown outcome never becomes due by silence, but in two cases in which a repeat cannot pay twice: an
approval, and a bonus on a platform that refuses repeats. All else waits for a named person (needs_hand).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from django.db import IntegrityError, transaction
from django.db.models import Exists, F, OuterRef, QuerySet

from crowd.ground import platform_clock
from crowd.ground.amounts import amount_of
from crowd.models import Payout, PayoutBatch, Posting
from crowd.money.ledger import adopt_approval, terms_of
from crowd.money.payout_grace import grace, minutes_of
from crowd.money.payout_readiness import Standing, standings
from crowd.money.platform_statement import Tally, is_by_approval, name_in_sentence, tallies

State, Batch = Payout.State, PayoutBatch.State
UNSURE = (State.SENDING, State.UNKNOWN)
DIED = "The process that sent it ended before it knew the outcome."


@dataclass(slots=True)
class Reconciliation:
    """What reading the platform has changed. The counts are payouts; `notes` say what the researcher should
    know."""

    recovered: int = 0
    decided: int = 0
    paid: int = 0
    due_again: int = 0
    unknown: int = 0
    adopted: int = 0
    moved: int = 0
    failed: int = 0
    confirmed: int = 0
    notes: list[str] = field(default_factory=list)


def recover(posting: Posting) -> int:
    """Marks payouts that a killed process was sending as unknown. The caller holds the study's lock."""
    with transaction.atomic():
        rows = Payout.objects.filter(posting=posting, state=State.SENDING)
        count = rows.update(state=State.UNKNOWN, error=DIED)
        batches = PayoutBatch.objects.filter(posting=posting)
        batches.filter(state=Batch.PAYING).update(state=Batch.UNKNOWN, error=DIED)
        # These batches were announced but not paid. That is harmless, and they are never paid later.
        batches.filter(state__in=[Batch.PREPARING, Batch.PREPARED]).update(state=Batch.DROPPED, error=DIED)
    return count


def reconcile(posting: Posting, read_at: datetime) -> Reconciliation:
    """Updates the ledger from the stored statement and states. `read_at` is when they were read."""
    result = Reconciliation()
    for tally in tallies(posting, read_at).values():
        _settle(posting, tally, result)
    for standing in standings(posting):
        _apply(posting, standing, result)
    _close_batches(posting)
    result.unknown = Payout.objects.filter(posting=posting, state=State.UNKNOWN).count()
    return result


def unknown_until(posting: Posting) -> datetime | None:
    """From when on the platform's statement settles every one of `awaited_payouts`; None if there is none."""
    last = awaited_payouts(posting).order_by(F("called_at").desc(nulls_last=True))
    called_at = last.values_list("called_at", flat=True).first()
    return None if called_at is None else called_at + grace(posting)


def awaited_payouts(posting: Posting) -> QuerySet[Payout, Payout]:
    """Unknown payouts that the platform's statement may settle by itself; the others wait for a person."""
    unknown = Payout.objects.filter(posting=posting, state=State.UNKNOWN)
    if not unknown.exists():
        return unknown
    missing = [row.pk for tally in tallies(posting, platform_clock.now()).values() for row in tally.missing]
    return unknown.exclude(pk__in=missing)


def _settle(posting: Posting, tally: Tally, result: Reconciliation) -> None:
    """Applies one submission's statement to its payouts."""
    for key in sorted(tally.match.matched):
        row = tally.payouts[key]
        if row.confirmed_at is None or row.state != State.SENT:
            _note_guess(posting, tally, row, result)
            _confirm_payout(row, result)
    for row in tally.late:
        shows = "The platform does not show it approved" if is_by_approval(row) else (
            "The platform's list did not show it"
        )  # fmt: skip
        _due_again(posting, row, shows, result)


def _confirm_payout(row: Payout, result: Reconciliation) -> None:
    """Marks a payout as sent and confirmed, because the platform's statement shows it."""
    now = platform_clock.now()
    changed = Payout.objects.filter(pk=row.pk, state=row.state).update(
        state=State.SENT, sent_at=row.sent_at or now, confirmed_at=now, error=""
    )
    if row.state == State.SENT:
        result.confirmed += changed
    else:
        result.paid += changed


def _due_again(posting: Posting, row: Payout, what: str, result: Reconciliation) -> None:
    result.due_again += Payout.objects.filter(pk=row.pk, state=row.state).update(
        state=State.DUE,
        sent_at=None,
        error=f"{what} {minutes_of(posting)} minutes after it was sent, so it was not paid; it is due again.",
    )


def _note_guess(posting: Posting, tally: Tally, row: Payout, result: Reconciliation) -> None:
    """Notes what connects an uncertain payout with a line, if it is less than a reference."""
    if row.state not in {State.UNKNOWN, State.DUE}:
        return
    name, amount = name_in_sentence(row.submission), amount_of(row.cents, row.currency)
    if row.pk in tally.match.by_sum:
        result.notes.append(
            f"{name}: {posting.platform} shows the bonus of {amount} together with others, as one sum."
        )
    elif row.pk in tally.match.by_amount:
        result.notes.append(
            f"{name}: {posting.platform} lists a bonus of {amount} without saying whose it is. It counts as "
            "the one of unknown outcome; if it was paid by hand, grant it again."
        )


def _apply(posting: Posting, standing: Standing, result: Reconciliation) -> None:
    """Changes a due payout if the platform's state alone decides about it."""
    row, action = standing.row, standing.way.action
    due = Payout.objects.filter(pk=row.pk, state=State.DUE)
    now = platform_clock.now()
    if action == "paid":
        # A person paid it on the platform's page, or the platform did: at its deadline or by its screening.
        result.adopted += due.update(state=State.SENT, batch=None, sent_at=now, confirmed_at=now, error="")
    elif action == "covered":
        _cover(posting, standing, result)
    elif action == "fail":
        result.failed += due.update(state=State.FAILED, error=standing.way.why)
        result.notes.append(
            f"{amount_of(row.cents, row.currency)} cannot reach {standing.name}: {standing.way.why}"
        )
    elif action == "move":
        result.moved += _move(posting, row, standing.name, result)


def _cover(posting: Posting, standing: Standing, result: Reconciliation) -> None:
    """Records the platform's approval instead of a due payout, because the approval paid at least as much."""
    row, paid = standing.row, amount_of(terms_of(posting).base_cents, posting.currency)
    with transaction.atomic():
        taken = Payout.objects.filter(pk=row.pk, state=State.DUE).update(
            state=State.FAILED,
            error=f"Approved on the platform meanwhile, which paid {paid}, no less than this amount. Nothing "
            "is sent on top.",
        )
        if taken:
            result.adopted += adopt_approval(posting, row.submission)
            result.notes.append(
                f"{standing.name}: the platform has approved the submission and paid {paid}, and "
                f"{amount_of(row.cents, row.currency)} was owed; nothing is sent on top."
            )


def _move(posting: Posting, row: Payout, name: str, result: Reconciliation) -> int:
    """Pays the amount as compensation to a person who finished but can no longer be approved."""
    try:
        with transaction.atomic():
            moved = Payout.objects.filter(pk=row.pk, state=State.DUE).update(
                state=State.FAILED,
                error="Their submission was returned or ran out of time on the platform, so it cannot be "
                "approved; the amount is paid as compensation.",
            )
            if moved:
                Payout.objects.create(
                    posting=posting,
                    submission_id=row.submission_id,
                    session_id=row.session_id,
                    kind=Payout.Kind.COMPENSATION,
                    cents=row.cents,
                    currency=row.currency,
                    reason=f"{row.reason} Paid as compensation, for it can no longer be approved.",
                )
    except IntegrityError:
        result.notes.append(
            f"{name} finished, but their submission can no longer be approved, and they have a compensation "
            f"already. Pay {amount_of(row.cents, row.currency)} by hand, then write it down."
        )
        return 0
    return moved


def _close_batches(posting: Posting) -> None:
    unknown = Payout.objects.filter(batch=OuterRef("pk"), state__in=UNSURE)
    open_batches = PayoutBatch.objects.filter(posting=posting, state=Batch.UNKNOWN)
    open_batches.filter(~Exists(unknown)).update(state=Batch.SETTLED)
