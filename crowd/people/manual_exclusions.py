"""Leaving a session out by hand: what may be shown for it, and the decision itself.

Nothing here reads a condition, a score, or an answer to a scored trial: the person who decides must not know
what the decision does to the result. The decision changes neither the person's pay nor their slot.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Count, QuerySet
from django.utils import timezone

from crowd.people.decisions import record
from crowd.people.result_seals import seal
from experiments.gates.practice import NAME as PRACTICE
from experiments.gates.quiz import NAME as QUIZ
from experiments.kinds.base import INSTRUCTED, REPEAT
from experiments.kinds.scoring import follows
from experiments.models import Event, Response, Session, Study

REASON_MIN = 10
FAST_MS = 300
"""No person looks at two pictures and decides in less time."""


@dataclass(frozen=True, slots=True)
class Signal:
    """One sign of quality, as a word and its value."""

    word: str
    value: str
    note: str = ""


def signals_of(session: Session) -> list[tuple[str, list[Signal]]]:
    """Signs of quality in groups: times, checks, attention, device. No condition, no score."""
    rows = list(
        session.responses.order_by("position").values_list(
            "rt_ms", "late", "trial__check_kind", "trial__expected", "value", "trial__kind", "trial__phase"
        )
    )
    events = dict(session.events.values_list("kind").annotate(n=Count("id")).order_by())
    tries = Counter(session.gates.values_list("kind", flat=True))
    return [
        ("Times", _times(session, rows)),
        ("Checks", _checks(rows, tries)),
        ("Attention", _attention(events)),
        ("Device", _device(session.device)),
    ]


def _times(session: Session, rows: Sequence[tuple[Any, ...]]) -> list[Signal]:
    times_ms = [rt_ms for rt_ms, *_, phase in rows if phase != "train"]
    fast = sum(rt_ms < FAST_MS for rt_ms in times_ms)
    return [
        Signal("From arrival to end", _minutes(session.started_at, session.finished_at)),
        Signal("With a place", _minutes(session.claimed_at, session.finished_at)),
        Signal("Answers", str(len(rows)), "training pages included"),
        Signal("Median response time", f"{median(times_ms) / 1000:.1f} s" if times_ms else "–"),
        Signal("Fastest response", f"{min(times_ms) / 1000:.2f} s" if times_ms else "–"),
        Signal(f"Under {FAST_MS} ms", str(fast)),
        Signal("After the lease", str(sum(late for _, late, *_ in rows))),
    ]


def _checks(rows: Sequence[tuple[Any, ...]], tries: Counter[str]) -> list[Signal]:
    signals = []
    for sort, word in ((INSTRUCTED, "Instructed checks passed"), (REPEAT, "Repeat checks passed")):
        right = [follows(row[5], row[3], row[4]) for row in rows if row[2] == sort]
        signals.append(Signal(word, f"{sum(right)} of {len(right)}" if right else "none were shown"))
    return [
        *signals,
        Signal("Tries at the quiz", str(tries[QUIZ])),
        Signal("Tries at the practice", str(tries[PRACTICE])),
    ]


def _attention(events: dict[str, int]) -> list[Signal]:
    kinds = (("focus_lost", "Focus losses"), ("reload", "Reloads"), ("paste", "Pastes"))
    return [Signal(word, str(events.get(kind, 0))) for kind, word in kinds]


def _device(device: dict[str, Any]) -> list[Signal]:
    if not device:
        return [Signal("Device", "not known")]
    size = f"{device.get('width_px', '?')} × {device.get('height_px', '?')} px"
    words = {True: "yes", False: "no"}
    return [
        Signal("Window", size),
        Signal("Pixel ratio", str(device.get("pixel_ratio", "–"))),
        Signal("Touch screen", words.get(bool(device.get("touch")), "–")),
        Signal("Driven by a program", words[bool(device.get("webdriver"))], "as the browser itself says"),
        Signal("Language", str(device.get("language") or "–")),
    ]


def _minutes(start: Any, end: Any) -> str:
    return f"{(end - start).total_seconds() / 60:.1f} min" if start and end else "–"


def events_of(sessions: Sequence[Session]) -> dict[UUID, Counter[str]]:
    """How often what happened, for one page of sessions in one query."""
    rows = (
        Event.objects.filter(session__in=[session.pk for session in sessions])
        .values_list("session", "kind")
        .annotate(n=Count("id"))
        .order_by()
    )
    counts: dict[UUID, Counter[str]] = {}
    for session, kind, n in rows:
        counts.setdefault(session, Counter())[kind] = n
    return counts


def medians_of(sessions: Sequence[Session]) -> dict[UUID, float]:
    """The median response time in seconds, for one page of sessions in one query."""
    rows = Response.objects.filter(session__in=[session.pk for session in sessions])
    times: dict[UUID, list[int]] = {}
    for session, rt_ms in rows.exclude(trial__phase="train").values_list("session", "rt_ms"):
        times.setdefault(session, []).append(rt_ms)
    return {session: median(times_ms) / 1000 for session, times_ms in times.items()}


def can_be_left_out(session: Session) -> bool:
    """Only a session that passed screening can be left out: the others are not in the main result anyway."""
    return session.verdict == "passed" and session.origin != Session.Origin.PREVIEW


def leave_out(study: Study, session: Session, user: User, name: str, reason: str) -> bool:
    """Leaves the session out of the main result. False if it is left out already, or cannot be."""
    decision = {"by": user.get_username(), "reason": reason, "at": timezone.now().isoformat()}
    rows = Session.objects.filter(pk=session.pk, study=study, verdict="passed", excluded={})
    with transaction.atomic():
        if rows.exclude(origin="preview").update(excluded=decision) != 1:
            return False
        record(study, user, f"Left {name} out of the main result by hand{_seal(study, session)}: {reason}")
    return True


def take_back(study: Study, session: Session, user: User, name: str, reason: str) -> bool:
    """Counts the session again. False if it was not left out."""
    rows: QuerySet[Session] = Session.objects.filter(pk=session.pk, study=study).exclude(excluded={})
    with transaction.atomic():
        if rows.update(excluded={}) != 1:
            return False
        record(study, user, f"Took {name} back into the main result{_seal(study, session)}: {reason}")
    return True


def _seal(study: Study, session: Session) -> str:
    """Whether the decision was taken before or after the results were opened; the log says which."""
    return "" if seal(study, session.origin).sealed else " (results were open)"
