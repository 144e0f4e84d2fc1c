"""Rows for a benchmark: an open study, sessions in the middle of it, and as many trials as are asked for."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import timedelta

from django.db import connection
from django.utils import timezone

from experiments.kinds.base import Choice
from experiments.models import Condition, Participant, Session, Slot, Study, Trial
from experiments.opening.opening import accepted_values
from experiments.paradigms.base import PlannedTrial
from experiments.tokens import hash_token, new_media_id, new_token

CHOICES = (Choice("husky", "Husky", "f"), Choice("wolf", "Wolf", "j"))


@dataclass(frozen=True, slots=True)
class Respondent:
    """A session in `running`, with the fields that its page would know."""

    session: str
    token: str
    trials: tuple[int, ...]


def respondents(count: int, trials_each: int) -> list[Respondent]:
    """Sessions with a slot each, whose next trial is the first; every trial is a test with two answers."""
    now = timezone.now()
    study = Study.objects.create(
        slug=f"load-{secrets.token_hex(4)}", title="Load", paradigm="meta_predictor", definition={}, seed=1,
        digest=secrets.token_hex(32), state=Study.State.OPEN,
    )  # fmt: skip
    condition = Condition.objects.create(
        study=study, name="baseline", role="baseline", ordinal=0, slots=count
    )
    people = Participant.objects.bulk_create(Participant(study=study) for _ in range(count))
    tokens = [new_token() for _ in people]
    sessions = [
        Session(
            study=study, participant=person, origin="simulated", state=Session.State.RUNNING, claimed_at=now,
            token_hash=hash_token(token), media_id=new_media_id(), lease_ends_at=now + timedelta(hours=1),
        )
        for person, token in zip(people, tokens, strict=True)
    ]  # fmt: skip
    slots = Slot.objects.bulk_create(
        Slot(study=study, ordinal=ordinal, arm="baseline", condition=condition) for ordinal in range(count)
    )
    for session, slot in zip(sessions, slots, strict=True):
        session.slot = slot
    Session.objects.bulk_create(sessions)
    ids = [_trials(slot, condition, trials_each) for slot in slots]
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return [
        Respondent(str(session.pk), token, trial_ids)
        for session, token, trial_ids in zip(sessions, tokens, ids, strict=True)
    ]


def _trials(slot: Slot, condition: Condition, count: int) -> tuple[int, ...]:
    planned = PlannedTrial(0, 0, "test", "predict", None, "baseline", False, CHOICES)
    accepts, choices = accepted_values(planned), [choice.as_json() for choice in CHOICES]
    rows = Trial.objects.bulk_create(
        Trial(
            slot=slot, position=position, remaining=count - position - 1, block=0, phase="test",
            kind="predict", condition=condition, explained=False, choices=choices, accepts=accepts,
        )
        for position in range(count)
    )  # fmt: skip
    return tuple(row.pk for row in rows)


def answer_up_to(people: list[Respondent], position: int) -> None:
    """Stores an answer to every trial before `position`, as if it had been sent."""
    sessions = [person.session for person in people]
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO experiments_response
                (session_id, trial_id, position, remaining, value, rt_ms, shown_ms, context, late,
                 received_at)
            SELECT s.id, t.id, t.position, t.remaining, '{"choice":"wolf"}', 900, 900, '{}', false,
                   now()
            FROM experiments_session s JOIN experiments_trial t ON t.slot_id = s.slot_id
            WHERE s.id = ANY(%s::uuid[]) AND t.position < %s
            """,
            [sessions, position],
        )
        cursor.execute("ANALYZE")
