"""The sessions of a study in batches, with what is stored about them: memory does not grow with the study."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any
from uuid import UUID

from django.db.models import Count

from experiments.gates.screen import NAME as SCREEN
from experiments.models import Event, Gate, Response, Session, Slot, Study
from experiments.sessions.pseudonyms import Pseudonyms

SESSIONS = 200
"""Sessions of a batch."""


@dataclass(frozen=True, slots=True)
class Try:
    """One try at a gate."""

    kind: str
    attempt: int
    passed: bool | None
    value: dict[str, Any]
    at: datetime


@dataclass(frozen=True, slots=True)
class SlotAs:
    """`plan` is the number of the matched plan; None if a plan has no twin."""

    ordinal: int
    arm: str
    condition_id: int | None
    plan: int | None


@dataclass(frozen=True, slots=True)
class SessionCells:
    """The values that every row of a session repeats; `participant` is the person's name in the study, which
    no row has."""

    participant: str
    person: str
    session: str
    origin: str
    arm: str
    slot: int | None
    plan: int | None
    px_per_mm: float | None
    distance_mm: float | None


class SessionIndex:
    """All sessions of a study by key, in the order of their arrival."""

    def __init__(self, study: Study, names: Pseudonyms) -> None:
        self.study, self.names = study, names
        self.keys: list[UUID] = []
        self.later: dict[UUID, int] = {}
        """Ordinals of a person's further sessions."""
        before = Counter[int]()
        rows = Session.objects.filter(study=study).order_by("started_at", "id")
        for key, person in rows.values_list("id", "participant_id").iterator(5000):
            self.keys.append(key)
            if before[person]:
                self.later[key] = before[person]
            before[person] += 1

    def batches(self, keys: Sequence[UUID] | None = None) -> Iterator[Batch]:
        """Of all sessions, or of those with these keys, which are in the same order."""
        chosen = self.keys if keys is None else keys
        for start in range(0, len(chosen), SESSIONS):
            yield Batch(self, chosen[start : start + SESSIONS])


class Batch:
    """A few sessions; each part is read when it is first asked for."""

    def __init__(self, of: SessionIndex, keys: Sequence[UUID]) -> None:
        self.of, self.keys = of, keys

    @cached_property
    def sessions(self) -> list[Session]:
        """In the order of the keys; a session that was removed meanwhile is left out."""
        rows = Session.objects.select_related("participant").in_bulk(list(self.keys))
        return [rows[key] for key in self.keys if key in rows]

    @cached_property
    def slots(self) -> dict[int, SlotAs]:
        wanted = {session.slot_id for session in self.sessions if session.slot_id is not None}
        fields = ("id", "ordinal", "arm", "condition_id", "matched")
        rows = Slot.objects.filter(pk__in=wanted).values_list(*fields)
        return {pk: SlotAs(*cells) for pk, *cells in rows}

    @cached_property
    def tries(self) -> Mapping[UUID, list[Try]]:
        """Tries at gates by session, in their order."""
        tries: dict[UUID, list[Try]] = defaultdict(list)
        fields = ("session_id", "kind", "attempt", "passed", "value", "created_at")
        rows = Gate.objects.filter(session__in=self.keys).order_by("id")
        for session, *cells in rows.values_list(*fields):
            tries[session].append(Try(*cells))
        return tries

    @cached_property
    def events(self) -> Mapping[UUID, dict[str, int]]:
        """Number of events by session and kind."""
        counts: dict[UUID, dict[str, int]] = defaultdict(dict)
        rows = Event.objects.filter(session__in=self.keys).values_list("session_id", "kind")
        for session, kind, count in rows.annotate(n=Count("id")).order_by():
            counts[session][kind] = count
        return counts

    @cached_property
    def refresh_rates(self) -> dict[UUID, float]:
        """Of each session the rate of its display, by the first page that counted frames."""
        rates: dict[UUID, float] = {}
        rows = Event.objects.filter(session__in=self.keys, kind="display").order_by("id")
        for session, detail in rows.values_list("session_id", "detail"):
            refresh_ms = detail.get("refresh_ms")
            if isinstance(refresh_ms, int | float) and refresh_ms > 0:
                rates.setdefault(session, round(1000 / refresh_ms, 2))
        return rates

    @cached_property
    def answered(self) -> dict[UUID, int]:
        """Number of answers by session."""
        rows = Response.objects.filter(session__in=self.keys).order_by().values_list("session")
        return dict(rows.annotate(n=Count("id")))

    @cached_property
    def cells(self) -> dict[UUID, SessionCells]:
        names = self.of.names
        cells = {}
        for session in self.sessions:
            slot = self.slots.get(session.slot_id or 0)
            cells[session.pk] = SessionCells(
                str(session.participant.pseudonym),
                names("p", session.participant.pseudonym),
                names("s", session.pk),
                session.origin,
                slot.arm if slot else "",
                slot.ordinal if slot else None,
                slot.plan if slot else None,
                *_screen(self.tries.get(session.pk, [])),
            )
        return cells


def _screen(tries: list[Try]) -> tuple[float | None, float | None]:
    """Device pixels per millimetre and distance in millimetres, as the screen gate measured them."""
    value = next((each.value for each in tries if each.kind == SCREEN), {})
    return value.get("px_per_mm"), value.get("distance_mm")
