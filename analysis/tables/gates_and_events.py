"""The long tables of a session: answers to questions, tries at gates, events, openings of the reservoir."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from uuid import UUID

from analysis.columns import CodebookQuestion
from analysis.tables.session_batches import Batch
from experiments.gates.plates import ANSWERS
from experiments.gates.questions import KINDS as QUESTIONS
from experiments.gates.questions import WHEN
from experiments.gates.quiz import NAME as QUIZ
from experiments.models import Event, Study
from experiments.sessions.colour_check_debriefing import INVITATION
from stimuli.spec import canonical_json

OPENED, CLOSED = "reservoir_opened", "reservoir_closed"
HIDDEN = ANSWERS | {INVITATION}
"""Gates of the colour check: no export tells of them."""
CHUNK = 5000
Row = tuple[object, ...]


def asked_of(study: Study) -> tuple[CodebookQuestion, ...]:
    """All questions, in the order of the definition."""
    of_study = [
        CodebookQuestion(q["id"], q["when"], q["kind"], q["prompt"], tuple(q.get("choices") or ()))
        for q in study.definition.get("questions", [])
    ]
    quiz = [
        CodebookQuestion(q["id"], QUIZ, "choice", q["prompt"], tuple(q["choices"]))
        for q in study.definition.get("quiz") or []
    ]
    return (*of_study, *quiz)


def question_rows(study: Study, batch: Batch) -> Iterator[Row]:
    """One row per answer, in the order of the tries and of the questions."""
    asked = {(each.when, each.id): each for each in asked_of(study)}
    for key, who in _sessions(study, batch):
        for each in batch.tries.get(key, []):
            if each.kind not in QUESTIONS | {QUIZ}:
                continue
            when = WHEN.get(each.kind, QUIZ)
            for name, answer in each.value.items():
                question = asked.get((when, name), CodebookQuestion(name, when, "", "", ()))
                text = str(answer)
                level = question.levels.index(text) if text in question.levels else None
                yield (*who, when, each.attempt, name, question.kind, question.prompt, text, level)


def gate_rows(study: Study, batch: Batch) -> Iterator[Row]:
    """One row per try."""
    started = {session.pk: session.started_at for session in batch.sessions}
    for key, who in _sessions(study, batch):
        for each in batch.tries.get(key, []):
            if each.kind not in HIDDEN:
                after_s = round((each.at - started[key]).total_seconds(), 3)
                yield (*who, each.kind, each.attempt, each.passed, each.at, after_s)


def event_rows(study: Study, batch: Batch) -> Iterator[Row]:
    """One row per event, in the order of their arrival."""
    names = dict(_sessions(study, batch))
    for key, kind, trial_index, at_ms, detail, received_at in _events(batch):
        if key in names:
            yield (
                *(*names[key], kind, trial_index, at_ms),
                *(canonical_json(detail) if detail else "", received_at),
            )


def opening_rows(study: Study, batch: Batch) -> Iterator[Row]:
    """One row per opening of the reservoir, with the time until it was closed on the same page."""
    names = dict(_sessions(study, batch))
    opened: dict[UUID, tuple[int | None, int]] = {}
    for key, kind, trial_index, at_ms, _, _ in _events(batch):
        if key not in names:
            continue
        if kind == OPENED:
            if key in opened:
                yield (*names[key], *opened[key], None, "duration_ms=not_recorded")
            opened[key] = (trial_index, at_ms)
        elif kind == CLOSED and key in opened:
            since = opened.pop(key)
            # A page that was loaded again has another clock.
            is_same_page = at_ms >= since[1]
            took_ms = at_ms - since[1] if is_same_page else None
            yield (*names[key], *since, took_ms, "" if is_same_page else "duration_ms=not_recorded")
    for key, since in opened.items():
        yield (*names[key], *since, None, "duration_ms=not_recorded")


def _sessions(study: Study, batch: Batch) -> Iterator[tuple[UUID, Row]]:
    """The cells that every row of a session begins with."""
    for session in batch.sessions:
        cells = batch.cells[session.pk]
        yield session.pk, (study.slug, cells.person, cells.session, cells.origin)


def _events(batch: Batch) -> Iterator[tuple[UUID, str, int | None, int, Mapping[str, Any], Any]]:
    rows = Event.objects.filter(session__in=batch.keys).order_by("session__started_at", "session_id", "id")
    fields = ("session_id", "kind", "trial__position", "at_ms", "detail", "received_at")
    yield from rows.values_list(*fields).iterator(CHUNK)
