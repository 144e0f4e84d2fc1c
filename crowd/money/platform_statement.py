"""The platform's statement as it was read last: stored as lines, and compared with the ledger's payouts.

What a platform shows as paid is stored for every submission, also of people who never joined. Reading again
replaces the snapshot, and never adds.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Case, Q, When

from crowd.ground.identity_hashes import submission_hash
from crowd.ground.platform_accounts import posted_of
from crowd.models import Payout, Posting, StatementLine, Submission
from crowd.money.ledger import BY_APPROVAL
from crowd.money.matching import OWN_KINDS, Attempt, Match, match
from crowd.money.payout_grace import grace
from crowd.platforms import traits_of
from crowd.platforms.base import Line, ListedSubmission, Service, Unread
from crowd.platforms.traits import Traits
from experiments.sessions.pseudonyms import namer

State = Payout.State
AGAIN_AFTER, AGAIN_FOR = timedelta(hours=20), timedelta(days=30)
"""After this time the bonuses of a person are read again, also if everything was confirmed."""
AGAIN_MAX = 500
"""So many people at most are read again in one look; the others follow in the next."""
NAMED_MAX = 900
"""So many submissions at most are named in a question; for more all rows are read."""
ATTEMPTED = Q(state__in=[State.SENDING, State.UNKNOWN, State.SENT]) | Q(state=State.DUE, attempts__gt=0)
"""Payouts that may have reached the platform. One that counts as not paid may still appear there."""
ENDED_STATES = frozenset(
    ("awaiting", "approved", "partly_approved", "rejected", "returned", "timed_out", "screened_out")
)
SAID_PAID = frozenset({"approved", "partly_approved", "screened_out"})
DOUBT = {State.SENT: 1, State.SENDING: 2, State.UNKNOWN: 2, State.DUE: 3}


def read(
    posting: Posting,
    service: Service,
    listings: Sequence[ListedSubmission],
    at: datetime,
    *,
    everything: bool = False,
) -> list[str]:
    """Stores what the platform shows as paid: what the list itself says, and the bonuses of people for whom
    it matters now (of all, with `everything`). Returns a sentence for each statement that could not be read.
    The caller holds the posting's lock."""
    rows = {row.submission_hash: row for row in Submission.objects.filter(posting=posting)}
    stored: dict[int, list[StatementLine]] = defaultdict(list)
    for line in StatementLine.objects.filter(submission__posting=posting):
        stored[line.submission_id].append(line)
    known: dict[str, Submission] = {}
    for listed in listings:
        row = rows.get(submission_hash(posting, listed.submission))
        if row is not None:
            known[listed.submission] = row
            _replace(row, stored[row.pk], OWN_KINDS, _as_paid(listed.lines, stored[row.pk]), at)
    wanted = _submissions_to_read(posting, known, at, everything)
    problems = []
    for shown in service.statement(posted_of(posting), wanted) if wanted else ():
        row = known[shown.submission]
        if isinstance(shown, Unread):
            problems.append(f"The statement of {name_in_sentence(row)} cannot be read: {shown.why}")
            continue
        _replace(row, stored[row.pk], {"bonus"}, shown.lines, at)
        Submission.objects.filter(pk=row.pk).update(statement_at=at)
    return problems


NAMED = ("posting__study", "session__participant")
"""What a name is made of, for a query of many submissions."""


def name_of(row: Submission) -> str:
    """The person's one name, or the beginning of the submission's hash if no person joined."""
    if row.session is None:
        return row.submission_hash[:8]
    return namer(row.posting.study)(row.session.participant.pseudonym)


def name_in_sentence(row: Submission) -> str:
    """The same name, as a sentence uses it."""
    return (
        name_of(row) if row.session is not None else f"submission {name_of(row)}, whose person never joined"
    )


def _submissions_to_read(
    posting: Posting, known: Mapping[str, Submission], at: datetime, everything: bool
) -> list[str]:
    """The submissions whose bonuses are to be read: those with an open payment, or with one that was sent
    again in a person's name within a month, whose first may still arrive; then those that were not read for
    long."""
    if everything:
        return list(known)
    again = Q(attempts__gt=1, called_at__gte=at - AGAIN_FOR) & ~Q(decided_by="policy")
    open_ones = set(
        Payout.objects.filter(ATTEMPTED, posting=posting)
        .filter(Q(confirmed_at=None) | again)
        .exclude(BY_APPROVAL)
        .values_list("submission_id", flat=True)
    )
    now, later = [], []
    for name, row in known.items():
        since = row.statement_at or row.seen_at or row.created_at
        if row.pk in open_ones:
            now.append(name)
        elif row.state in ENDED_STATES and since + AGAIN_AFTER <= at:
            later.append((since, name))
    return now + [name for _, name in sorted(later)[:AGAIN_MAX]]


def _as_paid(lines: Sequence[Line], stored: Sequence[StatementLine]) -> list[Line]:
    """The lines of a list that says only that work was approved, which the study's reward of now stands for:
    what was shown for it before the reward was raised is what it paid."""
    before = {line.kind: line.cents for line in stored if line.count and line.kind in OWN_KINDS}
    return [replace(line, cents=before.get(line.kind, line.cents)) for line in lines]


def _replace(
    row: Submission, stored: list[StatementLine], kinds: Iterable[str], lines: Iterable[Line], at: datetime
) -> None:
    """The lines of these kinds as they are shown now. What is not shown any more stays with a count of 0."""
    shown: dict[tuple[str, int, str], int] = defaultdict(int)
    for line in lines:
        shown[line.kind, line.cents, line.reference[:60]] += line.count
    before = {(line.kind, line.cents, line.reference): line for line in stored if line.kind in set(kinds)}
    if not shown and not before:
        return
    with transaction.atomic():
        for key, count in shown.items():
            kind, cents, reference = key
            if key in before:
                StatementLine.objects.filter(pk=before[key].pk).update(count=count, read_at=at)
                continue
            new = StatementLine(
                **{"submission": row, "kind": kind, "cents": cents, "reference": reference},
                **{"count": count, "first_at": at, "read_at": at},
            )
            new.save(force_insert=True)
            stored.append(new)
        gone = [line.pk for key, line in before.items() if key not in shown and line.count]
        StatementLine.objects.filter(pk__in=gone).update(count=0)


@dataclass(frozen=True, slots=True)
class Tally:
    """One submission's payouts beside its statement.

    `match` is by the keys of `payouts`. `missing` were sent and should be shown by now; so should `late`, but
    a repeat of these cannot pay twice. `expected` may still be missing; `withdrawn` were shown before and are
    not any more. `surplus` is what the platform shows, no payout explains, and no named person has accepted.
    """

    submission: int
    payouts: Mapping[int, Payout]
    match: Match
    missing: tuple[Payout, ...]
    late: tuple[Payout, ...]
    expected: tuple[Payout, ...]
    withdrawn: tuple[Payout, ...]
    surplus: tuple[tuple[str, int], ...]

    @property
    def surplus_cents(self) -> int:
        return sum(cents for _, cents in self.surplus)

    @property
    def is_open(self) -> bool:
        """Whether a named person has to look before anything more is paid to them."""
        return bool(self.missing or self.withdrawn or self.surplus)

    @property
    def may_be_accepted(self) -> bool:
        """Whether all that the platform shows is known: while a payment of ours is expected, it may be what
        is shown with another amount, or may still come on top."""
        return self.is_open and not self.expected


def tallies(posting: Posting, at: datetime, only: Submission | None = None) -> dict[int, Tally]:
    """Submission -> its tally, for those whose payouts and lines do not fit one to one; that of `only` also
    if they do."""
    return tallies_of([posting], at, only)[posting.pk]


def tallies_of(
    postings: Sequence[Posting], at: datetime, only: Submission | None = None
) -> dict[int, dict[int, Tally]]:
    """The same by posting, in two queries for all of them, and two more if something does not fit."""
    chosen = {only.pk} if only is not None else _unsettled_submissions(postings)
    if not chosen:
        return {each.pk: {} for each in postings}
    payouts: dict[int, dict[int, dict[int, Payout]]] = {each.pk: defaultdict(dict) for each in postings}
    lines: dict[int, dict[int, list[StatementLine]]] = {each.pk: defaultdict(list) for each in postings}
    rows = Payout.objects.filter(ATTEMPTED, posting__in=list(payouts)).select_related(
        "batch", "submission__session__participant", "submission__posting__study"
    )
    shown = StatementLine.objects.filter(submission__posting__in=list(payouts)).order_by("pk")
    if len(chosen) <= NAMED_MAX:
        rows, shown = rows.filter(submission__in=chosen), shown.filter(submission__in=chosen)
    for payout in rows.order_by("pk"):
        if payout.submission_id in chosen:
            payouts[payout.posting_id][payout.submission_id][payout.pk] = payout
    for line in shown.select_related("submission"):
        if line.submission_id in chosen:
            lines[line.submission.posting_id][line.submission_id].append(line)
    return {each.pk: _tally_posting(each, payouts[each.pk], lines[each.pk], at) for each in postings}


def _unsettled_submissions(postings: Sequence[Posting]) -> set[int]:
    """Submissions but those whose payouts were all sent and confirmed, and whose lines are these payouts one
    to one: of them a tally says nothing. Of ten thousand people nearly all are, and rows are built slowly."""
    keeps = {each.pk: traits_of(each.platform).keeps_references for each in postings}
    left: defaultdict[tuple[int, bool, int, str], int] = defaultdict(int)
    """Submission, whether it is the platform's own act, cents, reference -> payouts less lines."""
    unsettled: set[int] = set()
    is_settled = Case(When(state=State.SENT, confirmed_at__isnull=False, then=True), default=False)
    payouts = Payout.objects.filter(ATTEMPTED, posting__in=list(keeps)).annotate(is_settled=is_settled)
    for posting, submission, settled, batch, purpose, cents, reference in payouts.order_by().values_list(
        *("posting", "submission", "is_settled", "batch", "batch__purpose", "cents", "reference")
    ):
        is_own = batch is None or purpose == "base"
        left[submission, is_own, cents, "" if is_own or not keeps[posting] else reference] += 1
        if not settled:
            unsettled.add(submission)
    lines = StatementLine.objects.filter(submission__posting__in=list(keeps), count__gt=0).order_by()
    for posting, submission, kind, cents, reference, count in lines.values_list(
        *("submission__posting", "submission", "kind", "cents", "reference", "count")
    ):
        is_own = kind in OWN_KINDS
        has_ours = not is_own and keeps[posting]
        left[submission, is_own, cents, reference if has_ours else ""] -= count
        # Only the whole comparison knows what a reference of another kind fits.
        if reference and not has_ours:
            unsettled.add(submission)
    return unsettled | {submission for (submission, *_), count in left.items() if count}


def _tally_posting(
    posting: Posting,
    payouts: Mapping[int, Mapping[int, Payout]],
    lines: Mapping[int, Sequence[StatementLine]],
    at: datetime,
) -> dict[int, Tally]:
    traits, due_before = traits_of(posting.platform), at - grace(posting)
    return {
        submission: _tally(
            submission, payouts.get(submission, {}), lines.get(submission, []), due_before, traits
        )
        for submission in payouts.keys() | lines.keys()
    }


def _tally(
    submission: int,
    payouts: Mapping[int, Payout],
    lines: Sequence[StatementLine],
    due_before: datetime,
    traits: Traits,
) -> Tally:
    shown = [Line(line.kind, line.cents, line.count, line.reference) for line in lines if line.count]  # type: ignore[arg-type]
    attempts = [
        Attempt(
            key=payout.pk,
            way="own" if is_by_approval(payout) else "bonus",
            cents=payout.cents,
            reference=payout.reference,
            doubt=0 if payout.confirmed_at else DOUBT[State(payout.state)],
        )
        for payout in payouts.values()
    ]
    result = match(shown, attempts, keeps_references=traits.keeps_references)
    lacking = [payouts[key] for key in result.lacking]
    sent = [payout for payout in lacking if payout.state in (State.SENT, State.UNKNOWN)]
    unconfirmed = [payout for payout in sent if payout.confirmed_at is None]
    late = [p for p in unconfirmed if p.called_at is not None and p.called_at <= due_before]
    # Approved, and shown with another amount: a person has to look, for nothing is paid by approving again.
    safe = [p for p in late if is_by_approval(p) and not (_is_said_paid(p) and result.surplus)]
    safe += [p for p in late if not is_by_approval(p) and p.state == State.UNKNOWN and traits.repeats_safely]
    return Tally(
        submission,
        payouts,
        result,
        missing=tuple(payout for payout in late if payout not in safe),
        late=tuple(safe),
        expected=tuple(payout for payout in unconfirmed if payout not in late),
        withdrawn=tuple(p for p in sent if p.confirmed_at is not None and not _is_said_paid(p)),
        surplus=_unexplained_surplus(result.surplus, lines),
    )


def _unexplained_surplus(
    surplus: Iterable[tuple[str, int]], lines: Iterable[StatementLine]
) -> tuple[tuple[str, int], ...]:
    """The surplus without what a named person has accepted."""
    accepted: Counter[tuple[str, int]] = Counter()
    for line in lines:
        accepted[line.kind, line.cents] += line.accepted
    left = []
    for kind, cents in surplus:
        if accepted[kind, cents] > 0:
            accepted[kind, cents] -= 1
        else:
            left.append((kind, cents))
    return tuple(left)


def _is_said_paid(payout: Payout) -> bool:
    """Whether the platform says by the submission's state alone that it has paid, without saying how much."""
    return is_by_approval(payout) and payout.submission.state in SAID_PAID


def is_by_approval(payout: Payout) -> bool:
    """Whether the platform pays it by its own act; all other payouts reach people as bonuses."""
    return payout.batch is None or payout.batch.purpose == "base"
