"""What stored answers tell of a session: the verdict of screening, and what screening looked at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.utils import timezone

from experiments.kinds.base import TrialView
from experiments.kinds.scoring import is_as_asked
from experiments.models import Response, Session, Study
from experiments.paradigms import get_paradigm
from experiments.paradigms.base import Answer, GateTry, Verdict
from experiments.paradigms.screening import rule_values, rules_without_time
from experiments.selectors import cards_of, definition_of, views_of


def tries_of(session: Session) -> list[GateTry]:
    rows = session.gates.order_by("id").values_list("kind", "attempt", "passed", "value")
    return [GateTry(*row) for row in rows]


def screen(session: Session) -> Verdict:
    """Applies the study's rules to what is stored."""
    rules = definition_of(session.study).rules
    acting = rules_without_time(rules) if session.origin == Session.Origin.MODEL else rules
    return get_paradigm(session.study.paradigm).screen(*_screening_input(session), acting)


def measures_of(session: Session) -> dict[str, Any]:
    """What can be told of a session that answered everything without its condition: `rules`, the value that
    each rule of screening looks at; `checks`, per kind how many were answered as asked, and how many there
    were; `blocks`, the seconds that the trials of each block were shown.
    """
    views, gates, answers, minutes = _screening_input(session)
    given = {answer.position: answer for answer in answers}
    checks: dict[str, list[int]] = {}
    blocks: dict[str, float] = {}
    for view in views:
        answer = given.get(view.position)
        if answer is None:
            continue
        block = str(view.block)
        blocks[block] = blocks.get(block, 0.0) + answer.shown_ms / 1000
        if view.check:
            counts = checks.setdefault(view.check, [0, 0])
            counts[0] += is_as_asked(view, answer.value) is True
            counts[1] += 1
    screening = get_paradigm(session.study.paradigm).screen
    return {
        "rules": rule_values(screening, views, gates, answers, minutes),
        "checks": checks,
        "blocks": blocks,
    }


def fill_measures(study: Study, origin: str, most: int) -> int:
    """Works out what sessions of earlier versions lack, of at most so many; how many still lack it."""
    lacking = Session.objects.filter(
        study=study, origin=origin, verdict__in=["passed", "screened"], measures={}, erased={}
    ).filter(slot__isnull=False)
    for session in lacking.select_related("study", "slot").order_by("pk")[:most]:
        Session.objects.filter(pk=session.pk, erased={}).update(measures=measures_of(session))
    return lacking.count()


def _screening_input(session: Session) -> tuple[tuple[TrialView, ...], list[GateTry], list[Answer], float]:
    """What screening reads of a session that has a slot."""
    assert session.slot is not None
    answers = [
        Answer(row.position, row.value, row.rt_ms, row.shown_ms)
        for row in Response.objects.filter(session=session).order_by("position")
    ]
    views = views_of(cards_of(session.slot, session.study))
    return views, tries_of(session), answers, total_minutes(session, answers)


def total_minutes(session: Session, answers: Sequence[Answer]) -> float:
    """From arrival to now by the server's clock; for simulated people the time they say they took, since they
    answer faster than they claim to."""
    if session.origin == Session.Origin.SIMULATED:
        return sum(answer.shown_ms for answer in answers) / 60_000
    ended = session.finished_at or timezone.now()
    return (ended - session.started_at).total_seconds() / 60
