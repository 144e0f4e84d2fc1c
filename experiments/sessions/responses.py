"""Recording answers and events: stored before they are acknowledged, each at most once, in order."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.utils import timezone

from experiments.errors import (
    Contradiction,
    InvalidRequest,
    NoSession,
    OutOfTurn,
    SessionError,
    SessionFinished,
)
from experiments.kinds import get_kind
from experiments.kinds.base import InvalidResponse, TrialView
from experiments.models import Event, Response, Session, Study, Trial
from experiments.paradigms import get_paradigm
from experiments.selectors import Card, cards_of, definition_of, next_position
from experiments.tokens import hash_token
from stimuli.spec import canonical_json

FILLED: Mapping[str, bool] = {"filled": True}
"""The context of an answer that no person gave: what lies before a previewed trial. Nothing is revealed
after it."""
REVEALED = "revealed"
"""A guess's answer was looked at and left: `shown_ms` says for how long."""
EVENTS_MAX = 5_000
"""Of one session: a hundred times what a person causes who leaves the page at every trial."""
EVENT_KINDS = frozenset(
    {
        *("focus_lost", "focus_gained", "reservoir_opened", "reservoir_closed", "tile_enlarged", "reload"),
        *("offline", "online", "resized", "paste", "media_retry", "media_failed", "cannot_show"),
        *("display", "fullscreen_entered", "fullscreen_left", "fullscreen_refused", REVEALED),
    }
)


@dataclass(frozen=True, slots=True)
class SubmittedAnswer:
    """One answer as the browser sent it. Times in milliseconds."""

    trial: str
    value: Mapping[str, Any]
    rt_ms: int
    shown_ms: int
    context: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AnswerReceipt:
    """What was stored: the position and how many trials are still to come."""

    position: int
    remaining: int
    feedback: Mapping[str, Any] | None = None


# The predecessor's response, the state and the allowed values are checked by the insert itself, so that an
# ordinary answer costs one statement. `accepts` holds every allowed value between newlines (see Trial).
# Without the shared lock, an answer could be stored after a withdrawal has erased the others; SQLite has one
# writer anyway.
INSERT = """
    INSERT INTO experiments_response
        (session_id, trial_id, position, remaining, value, rt_ms, shown_ms, context, late, received_at)
    SELECT s.id, t.id, t.position, t.remaining, {json}, %s, %s, {json}, COALESCE(s.lease_ends_at < {time},
    false), {time} FROM experiments_session s
    JOIN experiments_trial t ON t.slot_id = s.slot_id
    WHERE s.token_hash = %s AND s.state = 'running' AND t.id = %s AND {accepted}
      AND (t.position = 0 OR EXISTS (
            SELECT 1 FROM experiments_trial p
            JOIN experiments_response r ON r.trial_id = p.id AND r.session_id = s.id
            WHERE p.slot_id = t.slot_id AND p.position = t.position - 1))
    {lock}
    ON CONFLICT DO NOTHING
    RETURNING position, remaining
"""
CHECKED = "replace(t.accepts, %s, '') <> t.accepts"
JUDGED = "%s <> ''"
TRIAL_ID = re.compile(r"[1-9][0-9]{0,17}")  # as the wire writes it, within 64 bits


def record_responses(token: str, answers: Sequence[SubmittedAnswer]) -> list[AnswerReceipt]:
    """Stores a batch, all or nothing, in order. Sending it again gives the same reply and stores nothing
    more."""
    token_hash = hash_token(token)
    if len(answers) == 1:
        return [_record(token_hash, answers[0], 0)]
    with transaction.atomic():
        return [_record(token_hash, answer, index) for index, answer in enumerate(answers)]


def _record(token_hash: str, answer: SubmittedAnswer, index: int) -> AnswerReceipt:
    stored = _insert(token_hash, answer, CHECKED)
    return stored if stored is not None else _explain(token_hash, answer, index)


def _insert(token_hash: str, answer: SubmittedAnswer, accepted: str) -> AnswerReceipt | None:
    trial_id = int(answer.trial) if TRIAL_ID.fullmatch(answer.trial) else -1
    postgres = connection.vendor == "postgresql"
    value = canonical_json(dict(answer.value))
    now = connection.ops.adapt_datetimefield_value(timezone.now())
    statement = INSERT.format(
        json="%s::jsonb" if postgres else "%s",
        time="%s::timestamptz" if postgres else "%s",
        accepted=accepted,
        lock="FOR SHARE OF s" if postgres else "",
    )
    with connection.cursor() as cursor:
        cursor.execute(
            statement,
            [
                value, answer.rt_ms, answer.shown_ms, canonical_json(dict(answer.context)), now, now,
                token_hash, trial_id, f"\n{value}\n",
            ],
        )  # fmt: skip
        row = cursor.fetchone()
    return None if row is None else AnswerReceipt(row[0], row[1])


def _explain(token_hash: str, answer: SubmittedAnswer, index: int) -> AnswerReceipt:
    """The slow path: nothing was inserted. Finds the reason, or stores answers that had to be judged in
    Python."""
    session = Session.objects.filter(token_hash=token_hash).select_related("study", "slot").first()
    if session is None:
        raise NoSession("This page's session is unknown, or it was continued in another tab.")
    path = f"responses.{index}"
    if session.slot is None:
        _refuse_state(session)
        raise OutOfTurn("The trials have not begun yet.", next_position=0)
    card = next((c for c in cards_of(session.slot, session.study) if str(c.id) == answer.trial), None)
    if card is None:
        raise InvalidRequest(
            f"Trial {answer.trial[:40]!r} is not a trial of this session.",
            fields={f"{path}.trial": "is not one of this session's trials"},
        )
    try:
        get_kind(card.view.kind).check(card.view, answer.value)
    except InvalidResponse as error:
        fields = {f"{path}.value.{name}"[:120]: text for name, text in error.fields.items()}
        raise InvalidRequest(str(error), fields=fields or {f"{path}.value": str(error)}) from error
    feedback = _feedback_of(session.study, card, answer.value)
    earlier = Response.objects.filter(session=session, trial_id=card.id).first()
    if earlier is None and session.state != Session.State.RUNNING:
        _refuse_state(session)
    if earlier is None:
        stored = _insert(token_hash, answer, JUDGED)
        if stored is not None:
            return AnswerReceipt(stored.position, stored.remaining, feedback)
        earlier = Response.objects.filter(session=session, trial_id=card.id).first()
    if earlier is None:
        due = next_position(session)
        raise OutOfTurn(
            f"Trial {card.view.position + 1} was answered before trial {due + 1}.", next_position=due
        )
    if canonical_json(earlier.value) != canonical_json(dict(answer.value)):
        raise Contradiction(
            f"Trial {card.view.position + 1} is already answered with another value.",
            next_position=next_position(session),
        )
    return AnswerReceipt(earlier.position, earlier.remaining, feedback)


def _refuse_state(session: Session) -> None:
    if session.state in {Session.State.GATES, Session.State.ASSIGNED}:
        raise OutOfTurn("The trials have not begun yet.", next_position=0)
    if session.state != Session.State.RUNNING:
        raise SessionFinished("This session has ended.", next_position=None)


@dataclass(frozen=True, slots=True)
class SubmittedEvent:
    """One event as the browser sent it."""

    uuid: UUID
    kind: str
    trial: str | None
    at_ms: int
    detail: Mapping[str, Any]


def record_events(session: Session, events: Sequence[SubmittedEvent]) -> None:
    """Stores events; one that is sent twice is stored once. One that comes after a withdrawal, or after
    EVENTS_MAX others, is dropped."""
    trials: set[str] = set()
    if session.slot_id and any(event.trial for event in events):
        trials = {
            str(pk) for pk in Trial.objects.filter(slot_id=session.slot_id).values_list("id", flat=True)
        }
    for index, event in enumerate(events):
        if event.kind not in EVENT_KINDS:
            raise InvalidRequest(
                f"Event kind {event.kind[:40]!r} is unknown.", fields={f"events.{index}.kind": "is unknown"}
            )
        if event.trial is not None and event.trial not in trials:
            raise InvalidRequest(
                f"Trial {event.trial[:40]!r} is not a trial of this session.",
                fields={f"events.{index}.trial": "is not one of this session's trials"},
            )
    rows = [
        Event(
            session=session,
            uuid=event.uuid,
            kind=event.kind,
            trial_id=int(event.trial) if event.trial else None,
            at_ms=event.at_ms,
            detail=dict(event.detail),
        )
        for event in events
    ]
    with transaction.atomic():
        # Without the lock, events could be stored after a withdrawal has erased the answers.
        now = Session.objects.select_for_update().get(id=session.pk)
        if now.state != Session.State.WITHDRAWN and not now.erased:
            room = max(0, EVENTS_MAX - now.events.count())
            Event.objects.bulk_create(rows[:room], ignore_conflicts=True)


def last_feedback(session: Session) -> dict[str, Any] | None:
    """The feedback of the newest answer, repeated so that a reload shows it again."""
    newest = session.responses.order_by("-position").first()
    if newest is None or session.slot is None or newest.context == FILLED:
        return None
    card = next(c for c in cards_of(session.slot, session.study) if c.id == newest.trial_id)
    feedback = _feedback_of(session.study, card, newest.value)
    return None if feedback is None else {"trial": str(newest.trial_id), **feedback}


def reveals(study: Study, view: TrialView) -> bool:
    """Whether something is revealed after an answer to the trial, as after a guess."""
    value = get_kind(view.kind).preview(view)
    return get_paradigm(study.paradigm).feedback(view, value) is not None


def _feedback_of(study: Study, card: Card, value: Mapping[str, Any]) -> dict[str, Any] | None:
    """What the reply to an answer reveals: that answer, and the label as people read it."""
    feedback = get_paradigm(study.paradigm).feedback(card.view, value)
    if feedback is None:
        return None
    texts = dict(definition_of(study).choices)
    choice = get_kind(card.view.kind).choice(value)
    return {**feedback, "choice": choice, "label": texts.get(feedback["label"], feedback["label"])}


__all__ = [
    "FILLED",
    "REVEALED",
    "SubmittedEvent",
    "AnswerReceipt",
    "SessionError",
    "SubmittedAnswer",
    "last_feedback",
    "record_events",
    "record_responses",
    "reveals",
]
