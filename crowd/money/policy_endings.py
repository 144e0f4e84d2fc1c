"""How sessions ended, in the terms of the policy. The ledger and the money page both read it from here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from django.db.models import Case, CharField, Exists, F, OuterRef, Q, QuerySet, Subquery, Value, When

from crowd.money.policy import Ending, SessionEnd
from experiments.gates.consent import NAME as CONSENT
from experiments.kinds.base import TrialView
from experiments.kinds.scoring import score
from experiments.models import Gate, Response, Session, Study, Trial
from experiments.selectors import next_position
from experiments.sessions.lifecycle import CANNOT_SEE

CHUNK = 200
ENDINGS: dict[Ending, Q] = {
    # A person whose answers were removed after finishing (withdrawn) is owed as if they had stayed.
    "complete": Q(
        state="finished", slot__isnull=False, verdict__in=["passed", "screened", "withdrawn"]
    ),
    "screened": Q(state="finished", slot__isnull=True, verdict__in=["screened", "withdrawn"]),
    "turned_away": Q(state="turned_away"),
    "withdrawn": Q(state="withdrawn"),
    "left": Q(verdict="incomplete"),
    "declined": Q(state="declined"),
}  # fmt: skip
ENDING = Case(
    *(When(condition, then=Value(name)) for name, condition in ENDINGS.items()),
    default=Value(""),
    output_field=CharField(),
)
"""The name of a session's ending; empty: it has not ended."""
CONSENTED = Q(Exists(Gate.objects.filter(session=OuterRef("pk"), kind=CONSENT, passed=True)))
MAIN_KIND: dict[Ending, str] = {
    "complete": "base",
    "screened": "screen_out",
    "turned_away": "compensation",
    "withdrawn": "compensation",
}
"""The row that shows that an ending has been decided."""


@dataclass(frozen=True, slots=True)
class EndedSession:
    """One session that is over. `end.matches` is right only if the caller of `endings_of` asked to count."""

    session: Any
    participant: int
    origin: str
    end: SessionEnd


def endings_of(study: Study, sessions: QuerySet[Session], *, matches: bool) -> Iterator[EndedSession]:
    """Those of these sessions that have ended, oldest first; `matches` counts the answers of sessions that
    finished."""
    last_answer = Response.objects.filter(session=OuterRef("pk")).order_by("-position").values("position")[:1]
    trials = Trial.objects.filter(slot=OuterRef("slot"))
    last_trial = trials.order_by("-position").values("position")[:1]
    scored = trials.filter(right__isnull=False, check_kind="").order_by("position").values("position")[:1]
    rows = sessions.annotate(
        ending=ENDING,
        consented=CONSENTED,
        last_answer=Subquery(last_answer),
        last_trial=Subquery(last_trial),
        scored=Subquery(scored),
    ).exclude(ending="")
    fields = ("pk", "participant_id", "origin", "erased", "ending", "consented", "last_answer", "last_trial",
              "scored", "reasons", "started_at")  # fmt: skip
    session_rows = list(rows.order_by(F("finished_at").asc(nulls_last=True), "pk").values_list(*fields))
    for start in range(0, len(session_rows), CHUNK):
        part = session_rows[start : start + CHUNK]
        complete = [row[0] for row in part if row[4] == "complete" and not row[3]]
        counts = matches_of(complete) if matches else Counter[Any]()
        for row in part:
            yield _ended_session(row, counts)


def _ended_session(row: Sequence[Any], counts: Counter[Any]) -> EndedSession:
    session, participant, origin, erased, ending, consented, last_answer, last_trial = row[:8]
    scored, reasons, at = row[8:]
    answered = int(erased.get("responses", 0)) if erased else 0 if last_answer is None else last_answer + 1
    end = SessionEnd(
        ending=cast(Ending, ending),
        consented=bool(consented),
        answered=answered,
        planned=0 if last_trial is None else last_trial + 1,
        matches=None if erased else counts[session],
        cannot_see=_says_it(reasons) and answered <= (scored or 0) and not _said_before(participant, at),
    )
    return EndedSession(session, participant, origin, end)


def asked_of(session: Session) -> int:
    """How many answers of a session's plan can match: the scored ones."""
    return _scored_trials(session).count()


def _scored_trials(session: Session) -> QuerySet[Trial]:
    return Trial.objects.filter(slot=session.slot_id, right__isnull=False, check_kind="")


def may_say_it(session: Session) -> bool:
    """Whether a session that goes on would be paid in full if the person left now by CANNOT_SEE."""
    scored = _scored_trials(session).order_by("position").values_list("position", flat=True).first()
    in_time = next_position(session) <= (scored or 0)
    return in_time and not _said_before(session.participant_id, session.started_at)


def _says_it(reasons: Sequence[dict[str, Any]]) -> bool:
    return any(reason["rule"] == "withdrawn" and reason["evidence"] == CANNOT_SEE for reason in reasons)


def _said_before(participant: int, at: datetime) -> bool:
    """Whether this person left an earlier session for the same reason: it is paid once."""
    earlier = Session.objects.filter(participant=participant, state="withdrawn", started_at__lt=at)
    return any(map(_says_it, earlier.values_list("reasons", flat=True)))


def matches_of(sessions: Sequence[Any]) -> Counter[Any]:
    """How many answers of each session are what the plan calls right: checks, training and kinds without a
    right answer count nothing."""
    counts: Counter[Any] = Counter()
    fields = ("session_id", "value", "trial__position", "trial__block", "trial__phase", "trial__kind",
              "trial__check_kind", "trial__expected", "trial__extra", "trial__right")  # fmt: skip
    rows = Response.objects.filter(session_id__in=sessions, trial__right__isnull=False)
    for session, value, *asked in rows.order_by().values_list(*fields):
        position, block, phase, kind, check, expected, extra, right = asked
        view = TrialView(position, block, phase, kind, check, "", (), expected, None, None, extra, right)
        counts[session] += score(view, value) == 1.0
    return counts
