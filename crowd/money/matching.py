"""Settles payouts of unknown outcome by reading the platform's own list.

The list must be read at least PAYOUT_GRACE_S after the call. If it does not show the payout then, an approval
becomes due again automatically, and so does a bonus on a platform that refuses repeats: neither can be paid
twice. Any other bonus waits until a named person decides.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from django.db import IntegrityError, transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils import timezone

from crowd.ground import audit
from crowd.ground.amounts import amount_of
from crowd.ground.connections import posted_of
from crowd.models import Payout, PayoutBatch, Posting, Submission
from crowd.money.ledger import (
    BY_APPROVAL,
    TWICE,
    adopt_approval,
    grace,
    missing,
    terms_of,
)
from crowd.money.standings import Standing, standings
from crowd.money.ways import APPROVED
from crowd.platforms import traits_of
from crowd.platforms.base import Line, Service, Unread

State, Batch = Payout.State, PayoutBatch.State
UNSURE = (State.SENDING, State.UNKNOWN)
COMPENSATING = ("screen_out", "compensation")
"""Kinds that take the place of a reward."""
NEEDS_HAND = "This needs your hand:"
DIED = "The process that sent it ended before it knew the outcome."


@dataclass(slots=True)
class Reconciled:
    """What reading the platform's list has changed. The counts are payouts.

    `notes` say what the researcher should know. `troubles` are those notes that ask the researcher to act:
    a run with any of them has not succeeded.
    """

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
    troubles: list[str] = field(default_factory=list)

    def trouble(self, sentence: str) -> None:
        self.notes.append(sentence)
        self.troubles.append(sentence)


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


def reconcile(posting: Posting, service: Service, read_at: datetime) -> Reconciled:
    """Updates the ledger from the platform. `read_at` is when the submissions were read from it."""
    result = Reconciled()
    _approvals(posting, read_at, result)
    _bonuses(posting, service, result)
    for standing in standings(posting):
        _apply(posting, standing, result)
    _after_compensation(posting, result)
    _close_batches(posting)
    _strange_approvals(posting, result)
    result.unknown = Payout.objects.filter(posting=posting, state=State.UNKNOWN).count()
    return result


def unknown_until(posting: Posting) -> datetime | None:
    """From when on the platform's list settles every payout of `awaited`; None if there is no such payout."""
    rows = awaited(posting)
    last = rows.order_by(F("called_at").desc(nulls_last=True)).values_list("called_at", flat=True).first()
    return None if last is None else last + grace(posting)


def awaited(posting: Posting) -> QuerySet[Payout, Payout]:
    """Unknown payouts that the platform's list may settle later; the others wait for a person."""
    rows = Payout.objects.filter(posting=posting, state=State.UNKNOWN)
    return rows.exclude(pk__in=missing(posting).values("pk"))


def _is_over(posting: Posting, row: Payout, read_at: datetime) -> bool:
    return row.called_at is None or row.called_at + grace(posting) <= read_at


def _approvals(posting: Posting, read_at: datetime, result: Reconciled) -> None:
    """Settles payouts by approval: the submission's state is the proof, and approving twice pays once."""
    rows = Payout.objects.filter(BY_APPROVAL, posting=posting, attempts__gt=0).filter(
        Q(state=State.UNKNOWN) | Q(state=State.SENT, confirmed_at=None)
    )
    for row in rows.select_related("session__submission"):
        if row.session.submission.state == APPROVED:
            _sent(row, result)
        elif _is_over(posting, row, read_at):
            _due_again(posting, row, "The platform does not show it approved", result)


def _sent(row: Payout, result: Reconciled) -> None:
    """Marks a payout as sent and confirmed, because the platform's list shows it."""
    now = timezone.now()
    changed = Payout.objects.filter(pk=row.pk, state=row.state).update(
        state=State.SENT, sent_at=row.sent_at or now, confirmed_at=now, error=""
    )
    if row.state == State.SENT:
        result.confirmed += changed
    else:
        result.paid += changed


def _due_again(posting: Posting, row: Payout, what: str, result: Reconciled) -> None:
    minutes = _minutes(posting)
    result.due_again += Payout.objects.filter(pk=row.pk, state=row.state).update(
        state=State.DUE,
        sent_at=None,
        error=f"{what} {minutes} minutes after it was sent, so it was not paid; it is due again.",
    )


def _minutes(posting: Posting) -> int:
    return max(1, int(grace(posting).total_seconds()) // 60)


def _bonuses(posting: Posting, service: Service, result: Reconciled) -> None:
    """Settles payouts by bonus: looks for each on the platform's list, by reference or else by amount."""
    open_rows = Payout.objects.filter(posting=posting).exclude(BY_APPROVAL).filter(
        Q(state=State.UNKNOWN) | Q(state=State.SENT, confirmed_at=None)
    )  # fmt: skip
    # A bonus that counts as not paid may still appear on the list: it is searched for until it is sent again.
    given_up = Payout.objects.filter(posting=posting, state=State.DUE, attempts__gt=0)
    sessions = {
        *open_rows.values_list("session_id", flat=True),
        *given_up.values_list("session_id", flat=True),
    }
    wanted = dict(
        Submission.objects.filter(posting=posting, session_id__in=sessions)
        .exclude(external_id="")
        .values_list("external_id", "session_id")
    )
    if not wanted:
        return
    read_at = timezone.now()
    listed: dict[str, list[Line]] = defaultdict(list)
    for shown in service.statement(posted_of(posting), list(wanted)):
        if not isinstance(shown, Unread):
            listed[shown.submission] = [line for line in shown.lines for _ in range(line.count)]
    lost: list[Payout] = []
    for submission, session in wanted.items():
        rows = Payout.objects.filter(posting=posting, session_id=session)
        payouts = list(rows.select_related("session__participant", "batch"))
        lost += _match(posting, payouts, listed[submission], read_at, result)
    if lost:
        _tell_lost(posting, lost, result)


def _tell_lost(posting: Posting, lost: Sequence[Payout], result: Reconciled) -> None:
    """Reports bonuses that were sent and are not listed. They may still arrive, so only a named person may
    send them again."""
    amount = amount_of(sum(row.cents for row in lost), posting.currency)
    names = sorted({_name(row) for row in lost})
    answered = sum(row.state == State.SENT for row in lost)
    fate = "accepted" if answered == len(lost) else "gave no answer to" if not answered else (
        f"accepted {answered} and gave no answer to the others of"
    )  # fmt: skip
    several = "es" if len(lost) > 1 else ""
    result.trouble(
        f"{NEEDS_HAND} {posting.platform} {fate} {len(lost)} bonus{several} ({amount}; "
        f"{', '.join(names[:5])}{', …' if len(names) > 5 else ''}) and does not list "
        f"{'them' if several else 'it'} {_minutes(posting)} minutes later or more. Nothing is sent again by "
        "itself, for it may still arrive. Ask the platform; whoever knows that nothing was paid makes it due "
        "again in their name: on the money page of the dashboard, or by settle --again NAME --by … --reason …"
    )


def _name(row: Payout) -> str:
    return str(row.session.participant.pseudonym)[:8]


def _match(
    posting: Posting, rows: Sequence[Payout], listed: Sequence[Line], read_at: datetime, result: Reconciled
) -> list[Payout]:
    """Compares one person's bonuses on the platform's list with the ledger.

    Returns the payouts that should be listed by now and are not, and that a repeat could pay twice.
    """
    by_bonus = [row for row in rows if _is_by_bonus(row)]
    by_reference = {row.reference: row for row in by_bonus}
    amounts: Counter[int] = Counter()
    seen: set[int] = set()
    for bonus in listed:
        row = by_reference.get(bonus.reference) if bonus.reference else None
        if row is not None and row.pk not in seen and row.cents == bonus.cents:
            seen.add(row.pk)
        else:
            amounts[bonus.cents] += 1
    # Payouts known to be sent are matched by amount first, so that no unknown payout takes their entry.
    for row in () if traits_of(posting.platform).keeps_references else sorted(by_bonus, key=_certainty):
        if row.pk not in seen and amounts[row.cents] > 0:
            amounts[row.cents] -= 1
            seen.add(row.pk)
            _note_guess(posting, row, result)
    lost = []
    for row in by_bonus:
        if row.pk in seen and row.confirmed_at is None:
            _sent(row, result)
        elif row.pk not in seen and row.confirmed_at is None and _is_over(posting, row, read_at):
            if row.state == State.UNKNOWN and traits_of(posting.platform).repeats_safely:
                _due_again(posting, row, "The platform's list did not show it", result)
            elif row.state in (State.UNKNOWN, State.SENT):
                lost.append(row)
    surplus = sum(cents * count for cents, count in amounts.items())
    if surplus:
        result.trouble(
            f"{_name(rows[0])} got {amount_of(surplus, posting.currency)} in bonuses on the platform that "
            "this ledger did not send."
        )
    return lost


def _note_guess(posting: Posting, row: Payout, result: Reconciled) -> None:
    """Notes that only the amount connects an uncertain payout with a bonus on the list."""
    if row.state in {State.UNKNOWN, State.DUE}:
        result.notes.append(
            f"{_name(row)}: {posting.platform} lists a bonus of {amount_of(row.cents, row.currency)} without "
            "saying whose it is. It counts as the one of unknown outcome; if somebody paid the same amount "
            "by hand, grant it again."
        )


def _is_by_bonus(row: Payout) -> bool:
    if row.batch is None or row.batch.purpose == "base":
        return False
    return row.state in {State.SENT, State.UNKNOWN, State.DUE}


def _certainty(row: Payout) -> tuple[int, int]:
    order = (
        0 if row.confirmed_at else 1 if row.state == State.SENT else 2 if row.state == State.UNKNOWN else 3
    )
    return order, row.pk


def _apply(posting: Posting, standing: Standing, result: Reconciled) -> None:
    """Changes a due payout if the platform's state alone decides about it."""
    row, action = standing.row, standing.way.action
    due = Payout.objects.filter(pk=row.pk, state=State.DUE)
    now = timezone.now()
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


def _cover(posting: Posting, standing: Standing, result: Reconciled) -> None:
    """Records the platform's approval instead of a due payout, because the approval paid at least as much."""
    row, paid = standing.row, amount_of(terms_of(posting).base_cents, posting.currency)
    with transaction.atomic():
        taken = Payout.objects.filter(pk=row.pk, state=State.DUE).update(
            state=State.FAILED,
            error=f"Approved on the platform meanwhile, which paid {paid}, no less than this amount. Nothing "
            "is sent on top.",
        )
        if taken:
            result.adopted += adopt_approval(posting, row.session_id)
            result.notes.append(
                f"{standing.name}: the platform has approved the work and paid {paid} where "
                f"{amount_of(row.cents, row.currency)} was owed; nothing is sent on top."
            )


def _after_compensation(posting: Posting, result: Reconciled) -> None:
    """Finds people who got a compensation because their work was gone from the platform, and whose work is
    there again: the platform will pay them a second time, or has done so."""
    if traits_of(posting.platform).pays_base_for_all:
        return
    reward = Payout.objects.filter(session=OuterRef("session"), kind=Payout.Kind.BASE)
    rows = (
        Payout.objects.filter(~Exists(reward.exclude(state__in=[State.FAILED, State.WITHHELD])))
        .filter(posting=posting, kind__in=COMPENSATING, state__in=[*UNSURE, State.SENT])
        .filter(session__submission__state__in=["awaiting", APPROVED])
        .exclude(BY_APPROVAL)
    )
    for row in rows.select_related("session__submission", "session__participant").order_by("pk"):
        name, sent = _name(row), amount_of(row.cents, row.currency)
        if row.session.submission.state == "awaiting":
            result.trouble(
                f"{name} awaits review again on {posting.platform}, after {sent} was sent because their work "
                "was gone. Do not approve it: that pays twice, and so does the platform by itself in some "
                "weeks. Ask them to give the place back, or reject it where its rules permit."
            )
        elif adopt_approval(posting, row.session_id, TWICE):
            twice = (
                f"{name} was approved on {posting.platform} after {sent} had been sent because their work "
                "was gone: they were paid twice. Nothing can be taken back; find out who approved it."
            )
            result.adopted += 1
            result.trouble(twice)
            audit.record(posting.study, "", twice)


def _move(posting: Posting, row: Payout, name: str, result: Reconciled) -> int:
    """Pays the amount as compensation to a person who finished but can no longer be approved."""
    try:
        with transaction.atomic():
            moved = Payout.objects.filter(pk=row.pk, state=State.DUE).update(
                state=State.FAILED,
                error="Their work was returned or ran out of time on the platform, so it cannot be approved; "
                "the amount is paid as compensation.",
            )
            if moved:
                Payout.objects.create(
                    posting=posting,
                    session_id=row.session_id,
                    kind=Payout.Kind.COMPENSATION,
                    cents=row.cents,
                    currency=row.currency,
                    reason=f"{row.reason} Paid as compensation, for their work can no longer be approved.",
                )
    except IntegrityError:
        result.notes.append(
            f"{name} finished, but their work can no longer be approved, and they have a compensation "
            f"already. Pay {amount_of(row.cents, row.currency)} by hand, then withhold the payout."
        )
        return 0
    return moved


def _close_batches(posting: Posting) -> None:
    unknown = Payout.objects.filter(batch=OuterRef("pk"), state__in=UNSURE)
    open_batches = PayoutBatch.objects.filter(posting=posting, state=Batch.UNKNOWN)
    open_batches.filter(~Exists(unknown)).update(state=Batch.SETTLED)


def _strange_approvals(posting: Posting, result: Reconciled) -> None:
    """Notes work that the platform paid although the ledger has no payout for it, or a denied payout."""
    paid = Payout.objects.filter(
        Q(batch__isnull=True) | Q(batch__purpose="base"), session=OuterRef("session"), state=State.SENT
    )
    strange = Submission.objects.filter(~Exists(paid), posting=posting, state=APPROVED)
    count = strange.count()
    if count:
        result.notes.append(
            f"The platform has approved {count} submission{'s' if count != 1 else ''} for which the ledger "
            "has no paid reward: people without a finished sitting, or payouts that were withheld or failed."
        )
