"""Platform, server and browser compared for a whole study, in a fixed number of queries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

from django.db.models import Max, OuterRef, QuerySet, Subquery
from django.utils import timezone

from crowd.models import Payout, Posting, Submission
from crowd.money.disagreements import Browser, Disagreement, Ours, Seen, Theirs, compare, together
from crowd.money.ledger import grace, terms_of, unlisted_states
from crowd.platforms import served, traits_of
from experiments.models import Event, Gate, Response, Study, Trial

PAGE = 50
MAYBE_SENT = (Payout.State.SENDING, Payout.State.SENT, Payout.State.UNKNOWN)


@dataclass(frozen=True, slots=True)
class Row:
    """One submission as all three see it, with its disagreements."""

    seen: Seen
    disagreements: tuple[Disagreement, ...]
    submission: Submission
    posting: Posting


@dataclass(frozen=True, slots=True)
class Agreement:
    """One page of rows, those that disagree first, and every disagreement of the study."""

    rows: tuple[Row, ...]
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
    now = timezone.now()
    postings = Posting.objects.filter(study=study, platform__in=served()).select_related("study")
    chosen = {each.pk: each for each in (postings if posting is None else postings.filter(id=posting.pk))}
    ledger = _ledger(chosen, now)
    rows = []
    for submission in _submissions(list(chosen)):
        where = chosen[submission.posting_id]
        seen = _seen(submission, where, ledger)
        rows.append(Row(seen, compare(seen, now), submission, where))
    every = together([disagreement for row in rows for disagreement in row.disagreements])
    disagreeing = sum(bool(row.disagreements) for row in rows)
    if kind:
        rows = [row for row in rows if any(disagreement.kind == kind for disagreement in row.disagreements)]
    rows.sort(key=lambda row: (not row.disagreements, -row.submission.pk))
    pages = max(1, -(-len(rows) // size))
    page = min(max(1, page), pages)
    shown = tuple(rows[(page - 1) * size : page * size])
    return Agreement(shown, every, page, pages, len(rows), disagreeing)


def _submissions(postings: list[int]) -> QuerySet[Submission]:
    of_session = {"session": OuterRef("session")}
    responses = Response.objects.filter(**of_session).order_by("-position")
    events = Event.objects.filter(**of_session).order_by().values("session")
    links = Event.objects.filter(**of_session, kind__in=["offline", "online"]).order_by("-at_ms", "-id")
    gates = Gate.objects.filter(**of_session).order_by("-id")
    planned = Trial.objects.filter(slot=OuterRef("session__slot")).order_by("-position")
    rows = Submission.objects.filter(posting__in=postings).select_related("session__participant", "identity")
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
    """What the ledger holds for one session: bonuses sent or perhaps sent, those of them that should be on
    the platform's list by now, and what was sent, or waits, instead of a reward."""

    bonuses: list[int] = field(default_factory=list)
    unconfirmed: list[int] = field(default_factory=list)
    compensated_cents: int = 0
    held_cents: int = 0


NOTHING = Owed()


def _ledger(postings: Mapping[int, Posting], now: datetime) -> Mapping[Any, Owed]:
    """Session -> its payouts, in one query."""
    rows = Payout.objects.filter(posting__in=list(postings)).select_related("batch").order_by()
    rows = rows.only("session_id", "posting_id", "kind", "state", "cents", "error", "called_at",
                     "confirmed_at", "batch__purpose")  # fmt: skip
    by_session: dict[Any, list[Payout]] = defaultdict(list)
    for row in rows:
        by_session[row.session_id].append(row)
    base_cents = {pk: terms_of(posting).base_cents for pk, posting in postings.items()}
    due_before = {pk: now - grace(posting) for pk, posting in postings.items()}
    return {
        session: _owed(
            payouts,
            due_before[payouts[0].posting_id],
            base_cents[payouts[0].posting_id],
            splits=traits_of(postings[payouts[0].posting_id].platform).pays_base_for_all,
            unlisted=unlisted_states(postings[payouts[0].posting_id]),
        )
        for session, payouts in by_session.items()
    }


def _owed(
    rows: Iterable[Payout], due_before: datetime, base_cents: int, *, splits: bool, unlisted: tuple[str, ...]
) -> Owed:
    """`splits`: the platform pays a part by approving and the rest as a bonus, for every kind of payout.
    `unlisted`: the states in which a bonus should be on its list by now."""
    owed = Owed()
    rows = list(rows)
    has_reward = splits or any(row.kind == Payout.Kind.BASE and _stands(row) for row in rows)
    for row in rows:
        by_bonus = row.batch is not None and row.batch.purpose != "base"
        instead = not has_reward and row.kind in {Payout.Kind.SCREEN_OUT, Payout.Kind.COMPENSATION}
        if row.state in MAYBE_SENT and by_bonus:
            owed.bonuses.append(row.cents)
            owed.compensated_cents += row.cents if instead else 0
            is_late = row.called_at is not None and row.called_at <= due_before
            if row.state in unlisted and row.confirmed_at is None and is_late:
                owed.unconfirmed.append(row.cents)
        elif row.state == Payout.State.DUE and instead and row.cents != base_cents:
            owed.held_cents += row.cents
    return owed


def _stands(base: Payout) -> bool:
    """Whether a reward is owed or paid in addition to other payouts. A reward that was paid although a payout
    in its place had been sent carries that as its error."""
    if base.state == Payout.State.SENT:
        return not base.error
    return base.state not in {Payout.State.FAILED, Payout.State.WITHHELD}


def _seen(row: Submission, posting: Posting, ledger: Mapping[Any, Owed]) -> Seen:
    session = row.session
    theirs = Theirs(
        state=row.state,
        raw=row.raw_state,
        code=row.code,
        listed=row.seen_at is not None,
        started_at=row.started_at,
        completed_at=row.completed_at,
        return_requested=row.return_requested,
        bonuses=tuple(sorted(row.bonuses)),
    )
    common = {
        "theirs": theirs,
        "platform": posting.platform,
        "outcome_of": {code: outcome for outcome, code in posting.codes.items()},
        "read_at": posting.synced_at,
        "lists_active": traits_of(posting.platform).lists_active,
    }
    if session is None:
        return Seen(f"work {row.submission_hash[:8]}", ours=Ours(), browser=Browser(), **common)  # type: ignore[arg-type]
    identity = row.identity
    forgotten = identity is not None and identity.forgotten_at is not None
    owed = ledger.get(session.pk, NOTHING)
    ours = Ours(
        state=session.state,
        verdict=session.verdict,
        has_slot=session.slot_id is not None,
        started_at=session.started_at,
        finished_at=session.finished_at,
        same_person=forgotten or (identity is not None and identity.person_hash == row.person_hash),
        bonuses=tuple(sorted(owed.bonuses)),
        # A person's list of bonuses cannot be read without the platform's id.
        unconfirmed=tuple(sorted(owed.unconfirmed)) if row.external_id else (),
        compensated_cents=owed.compensated_cents,
        held_cents=owed.held_cents,
    )
    name = str(session.participant.pseudonym)[:8]
    return Seen(name, ours=ours, browser=_browser(row), **common)  # type: ignore[arg-type]


def _browser(row: Any) -> Browser:
    signs = [row.session.started_at, row.response_at, row.event_at, row.gate_at]
    answered = 0 if row.answered is None else int(row.answered) + 1
    planned = "" if row.last_trial is None else f" of {int(row.last_trial) + 1}"
    step = f"trial {answered}{planned}" if answered else str(row.gate or "arrived")
    last = cast(datetime, max(sign for sign in signs if sign is not None))
    return Browser(last, step, row.link == "offline")
