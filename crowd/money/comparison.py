"""Platform, server and browser compared for a whole study, in a fixed number of queries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from django.db.models import Max, OuterRef, QuerySet, Subquery

from crowd.ground import clock
from crowd.models import Payout, Posting, Submission
from crowd.money.disagreements import OPEN, Browser, Disagreement, Ours, Seen, Theirs, compare, together
from crowd.money.ledger import INSTEAD, SPENT_STATES, terms_of
from crowd.money.statement import NAMED, called
from crowd.platforms import served, traits_of
from experiments.models import Event, Gate, Response, Study, Trial

PAGE = 50
MENDABLE = "awaiting"
"""The state of a submission about which its platform has not decided yet."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One submission as all three see it, with its disagreements."""

    seen: Seen
    disagreements: tuple[Disagreement, ...]
    submission: Submission
    posting: Posting

    @property
    def open_disagreements(self) -> tuple[Disagreement, ...]:
        """Those that a person can mend now."""
        if self.submission.state != MENDABLE:
            return ()
        return tuple(disagreement for disagreement in self.disagreements if disagreement.kind in OPEN)


@dataclass(frozen=True, slots=True)
class Agreement:
    """One page of rows, those that disagree first, and every disagreement of the study."""

    rows: tuple[Compared, ...]
    disagreements: tuple[Disagreement, ...]
    page: int
    pages: int
    total: int
    disagreeing: int


def agreement_of(
    study: Study, page: int = 1, size: int = PAGE, *, posting: Posting | None = None, kind: str = ""
) -> Agreement:
    """The comparison over all postings with a list of their own, or one of them; `kind` keeps the rows with
    that disagreement."""
    postings = Posting.objects.filter(study=study, platform__in=served()).select_related("study")
    chosen = {each.pk: each for each in (postings if posting is None else postings.filter(id=posting.pk))}
    rows = _compared(chosen)
    every = together([disagreement for row in rows for disagreement in row.disagreements])
    disagreeing = sum(bool(row.disagreements) for row in rows)
    if kind:
        rows = [row for row in rows if any(disagreement.kind == kind for disagreement in row.disagreements)]
    rows.sort(key=lambda row: (not row.disagreements, -row.submission.pk))
    pages = max(1, -(-len(rows) // size))
    page = min(max(1, page), pages)
    shown = tuple(rows[(page - 1) * size : page * size])
    return Agreement(shown, every, page, pages, len(rows), disagreeing)


def mendable(posting: Posting) -> list[Compared]:
    """The submissions of one posting that may have an open disagreement: in a settled study of thousands, few
    or none."""
    return _compared({posting.pk: posting}, state=MENDABLE)


def _compared(chosen: Mapping[int, Posting], **only: str) -> list[Compared]:
    now, ledger = clock.now(), _ledger(chosen, only)
    rows = []
    for submission in _submissions(list(chosen)).filter(**only):
        posting = chosen[submission.posting_id]
        seen = _seen(submission, posting, ledger)
        rows.append(Compared(seen, compare(seen, now), submission, posting))
    return rows


def _submissions(postings: list[int]) -> QuerySet[Submission]:
    of_session = {"session": OuterRef("session")}
    responses = Response.objects.filter(**of_session).order_by("-position")
    events = Event.objects.filter(**of_session).order_by().values("session")
    links = Event.objects.filter(**of_session, kind__in=["offline", "online"]).order_by("-at_ms", "-id")
    gates = Gate.objects.filter(**of_session).order_by("-id")
    planned = Trial.objects.filter(slot=OuterRef("session__slot")).order_by("-position")
    rows = Submission.objects.filter(posting__in=postings).select_related(*NAMED, "identity")
    return rows.defer("session__device", "session__comment", "session__reasons").annotate(
        response_at=Subquery(responses.values("received_at")[:1]),
        answered=Subquery(responses.values("position")[:1]),
        event_at=Subquery(events.annotate(last=Max("received_at")).values("last")),
        link=Subquery(links.values("kind")[:1]),
        gate=Subquery(gates.values("kind")[:1]),
        gate_at=Subquery(gates.values("created_at")[:1]),
        last_trial=Subquery(planned.values("position")[:1]),
    )


@dataclass(slots=True)
class Owed:
    """What the ledger holds for one submission: what was sent, or waits, instead of a reward."""

    compensated_cents: int = 0
    held_cents: int = 0


NOTHING = Owed()


def _ledger(postings: Mapping[int, Posting], only: Mapping[str, str]) -> Mapping[int, Owed]:
    """Submission -> its payouts, in one query; `only` as it chooses submissions."""
    of_those = {f"submission__{name}": value for name, value in only.items()}
    rows = Payout.objects.filter(posting__in=list(postings), **of_those).order_by()
    by_submission: dict[int, list[Payout]] = defaultdict(list)
    for row in rows.only("submission_id", "posting_id", "kind", "state", "cents", "batch_id"):
        by_submission[row.submission_id].append(row)
    base_cents = {pk: terms_of(posting).base_cents for pk, posting in postings.items()}
    splits = {pk: traits_of(each.platform).pays_base_for_all for pk, each in postings.items()}
    return {
        submission: _owed(rows, base_cents[rows[0].posting_id], splits[rows[0].posting_id])
        for submission, rows in by_submission.items()
    }


def _owed(rows: Iterable[Payout], base_cents: int, splits: bool) -> Owed:
    """`splits`: the platform pays a part by approving and the rest as a bonus, for every kind of payout."""
    owed, rows = Owed(), list(rows)
    has_reward = splits or any(row.kind == Payout.Kind.BASE and _stands(row) for row in rows)
    for row in rows:
        if has_reward or row.kind not in INSTEAD:
            continue
        if row.state in SPENT_STATES and row.batch_id is not None:
            owed.compensated_cents += row.cents
        elif row.state == Payout.State.DUE and row.cents != base_cents:
            owed.held_cents += row.cents
    return owed


def _stands(base: Payout) -> bool:
    """Whether a reward is owed or paid in addition to other payouts."""
    return base.state not in {Payout.State.FAILED, Payout.State.WITHHELD}


def _seen(row: Submission, posting: Posting, ledger: Mapping[int, Owed]) -> Seen:
    session = row.session
    theirs = Theirs(
        state=row.state,
        raw=row.raw_state,
        code=row.code,
        listed=row.seen_at is not None,
        started_at=row.started_at,
        completed_at=row.completed_at,
        return_requested=row.return_requested,
    )
    common = {
        "theirs": theirs,
        "platform": traits_of(posting.platform).title,
        "outcome_of": {code: outcome for outcome, code in posting.codes.items()},
        "read_at": posting.synced_at,
        "lists_active": traits_of(posting.platform).lists_active,
    }
    if session is None:
        return Seen(called(row), ours=Ours(), browser=Browser(), **common)  # type: ignore[arg-type]
    identity = row.identity
    forgotten = identity is not None and identity.forgotten_at is not None
    owed = ledger.get(row.pk, NOTHING)
    ours = Ours(
        state=session.state,
        verdict=session.verdict,
        has_slot=session.slot_id is not None,
        started_at=session.started_at,
        finished_at=session.finished_at,
        same_person=forgotten or (identity is not None and identity.person_hash == row.person_hash),
        compensated_cents=owed.compensated_cents,
        held_cents=owed.held_cents,
    )
    return Seen(called(row), ours=ours, browser=_browser(row), **common)  # type: ignore[arg-type]


def _browser(row: Any) -> Browser:
    signs = [row.session.started_at, row.response_at, row.event_at, row.gate_at]
    answered = 0 if row.answered is None else int(row.answered) + 1
    planned = "" if row.last_trial is None else f" of {int(row.last_trial) + 1}"
    step = f"trial {answered}{planned}" if answered else str(row.gate or "arrived")
    last = cast(datetime, max(sign for sign in signs if sign is not None))
    return Browser(last, step, row.link == "offline")
