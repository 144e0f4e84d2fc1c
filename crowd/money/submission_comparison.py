"""Platform, server and browser compared for a whole study, in a fixed number of queries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from django.db.models import Max, OuterRef, QuerySet, Subquery

from crowd.ground import platform_clock
from crowd.ground.identity_hashes import is_same_person
from crowd.models import Payout, Posting, Submission
from crowd.money.ledger import INSTEAD, SPENT_STATES, terms_of
from crowd.money.platform_statement import NAMED, name_in_sentence
from crowd.money.submission_disagreements import (
    OPEN,
    Browser,
    Disagreement,
    Ours,
    SubmissionViews,
    Theirs,
    compare,
    together,
)
from crowd.platforms import platforms_with_service, traits_of
from experiments.models import Event, Gate, Response, Study, Trial

MENDABLE = "awaiting"
"""The state of a submission about which its platform has not decided yet."""


@dataclass(frozen=True, slots=True)
class SubmissionComparison:
    """One submission as all three see it, with its disagreements."""

    seen: SubmissionViews
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
    """The rows, those that disagree first, and every disagreement of the study."""

    rows: tuple[SubmissionComparison, ...]
    disagreements: tuple[Disagreement, ...]
    disagreeing: int


def agreement_of(study: Study, kind: str = "") -> Agreement:
    """The comparison over all postings with a list of their own; `kind` keeps the rows with that
    disagreement."""
    postings = Posting.objects.filter(study=study, platform__in=platforms_with_service())
    rows = _compare_submissions({each.pk: each for each in postings.select_related("study")})
    every = together([disagreement for row in rows for disagreement in row.disagreements])
    disagreeing = sum(bool(row.disagreements) for row in rows)
    if kind:
        rows = [row for row in rows if any(disagreement.kind == kind for disagreement in row.disagreements)]
    rows.sort(key=lambda row: (not row.disagreements, -row.submission.pk))
    return Agreement(tuple(rows), every, disagreeing)


def mendable(posting: Posting) -> list[SubmissionComparison]:
    """The submissions of one posting that may have an open disagreement: in a settled study of thousands, few
    or none."""
    return _compare_submissions({posting.pk: posting}, state=MENDABLE)


def _compare_submissions(chosen: Mapping[int, Posting], **only: str) -> list[SubmissionComparison]:
    now, ledger = platform_clock.now(), _ledger(chosen, only)
    rows = []
    for submission in _submissions(list(chosen)).filter(**only):
        posting = chosen[submission.posting_id]
        seen = _submission_views(submission, posting, ledger)
        rows.append(SubmissionComparison(seen, compare(seen, now), submission, posting))
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


def _ledger(postings: Mapping[int, Posting], only: Mapping[str, str]) -> Mapping[int, tuple[int, int]]:
    """Submission -> cents that were sent, and that wait, instead of a reward; in one query, `only` as it
    chooses submissions."""
    of_those = {f"submission__{name}": value for name, value in only.items()}
    rows = Payout.objects.filter(posting__in=list(postings), **of_those).order_by()
    by_submission: dict[int, list[Payout]] = defaultdict(list)
    for row in rows.only("submission_id", "posting_id", "kind", "state", "cents", "batch_id"):
        by_submission[row.submission_id].append(row)
    base_cents = {pk: terms_of(posting).base_cents for pk, posting in postings.items()}
    splits = {pk: traits_of(each.platform).pays_base_for_all for pk, each in postings.items()}
    return {
        submission: _instead(rows, base_cents[rows[0].posting_id], splits[rows[0].posting_id])
        for submission, rows in by_submission.items()
    }


def _instead(rows: Sequence[Payout], base_cents: int, splits: bool) -> tuple[int, int]:
    """`splits`: the platform pays a part by approving and the rest as a bonus, for every kind of payout."""
    if splits or any(row.kind == Payout.Kind.BASE and _stands(row) for row in rows):
        return 0, 0
    others = [row for row in rows if row.kind in INSTEAD]
    sent = sum(row.cents for row in others if row.state in SPENT_STATES and row.batch_id is not None)
    held = sum(row.cents for row in others if row.state == Payout.State.DUE and row.cents != base_cents)
    return sent, held


def _stands(base: Payout) -> bool:
    """Whether a reward is owed or paid in addition to other payouts."""
    return base.state not in {Payout.State.FAILED, Payout.State.WITHHELD}


def _submission_views(
    row: Submission, posting: Posting, ledger: Mapping[int, tuple[int, int]]
) -> SubmissionViews:
    session, traits = row.session, traits_of(posting.platform)
    theirs = Theirs(
        state=row.state,
        raw=row.raw_state,
        code=row.code,
        listed=row.seen_at is not None,
        started_at=row.started_at,
        completed_at=row.completed_at,
        return_requested=row.return_requested,
    )
    ours = Ours()
    if session is not None:
        identity = row.identity
        forgotten = identity is not None and identity.forgotten_at is not None
        compensated_cents, held_cents = ledger.get(row.pk, (0, 0))
        ours = Ours(
            state=session.state,
            verdict=session.verdict,
            has_slot=session.slot_id is not None,
            started_at=session.started_at,
            finished_at=session.finished_at,
            same_person=forgotten or is_same_person(row),
            compensated_cents=compensated_cents,
            held_cents=held_cents,
        )
    return SubmissionViews(
        name_in_sentence(row),
        theirs,
        ours,
        _browser(row) if session is not None else Browser(),
        platform=traits.title,
        outcome_of={code: outcome for outcome, code in posting.codes.items()},
        read_at=posting.synced_at,
        lists_active=traits.lists_active,
    )


def _browser(row: Any) -> Browser:
    signs = [row.session.started_at, row.response_at, row.event_at, row.gate_at]
    answered = 0 if row.answered is None else int(row.answered) + 1
    planned = "" if row.last_trial is None else f" of {int(row.last_trial) + 1}"
    step = f"trial {answered}{planned}" if answered else str(row.gate or "arrived")
    last = cast(datetime, max(sign for sign in signs if sign is not None))
    return Browser(last, step, row.link == "offline")
