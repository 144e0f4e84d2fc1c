"""The rows of `trials`: answers with the plan that they answer.

Correctness is derived here, by the score of the paradigm, and stored nowhere.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from math import ceil
from typing import Any
from uuid import UUID

from django.db.models import Min

from analysis.columns import Column
from analysis.tables.missing_codes import gaps_of_answer
from analysis.tables.session_batches import Batch, SessionCells
from analysis.tables.trial_kind_columns import KindOf, kind_cells, kind_columns
from analysis.timing_and_visual_angle import degrees_of, timing_of
from experiments.design.rng import Streams
from experiments.kinds import get_kind
from experiments.kinds.base import TrialView
from experiments.kinds.scoring import agreement, is_as_asked
from experiments.models import Condition, Event, HandOut, Item, Response, Session, Slot, Study, Trial
from experiments.selectors import predictions_of, view_of
from experiments.sessions.responses import REVEALED, reveals
from stimuli.spec import canonical_json

CHUNK = 5000
SEEN: Mapping[str, bool] = {"seen": True}
"""What is stored of a page that asks nothing."""
Row = tuple[object, ...]
Named = Callable[[int | None], tuple[str, str]]
"""Name and role of a condition by its key; empty for none."""
Place = tuple[UUID, int]
"""A session and a trial."""

REVEALED_MS = Column(
    "revealed_ms",
    "integer",
    "Guesses: how long the revealed answer was looked at, all looks together; empty if never left.",
    "ms",
)
"""A column of studies in which something is revealed after an answer. It is read from events."""
SERVED = (
    Column(
        "server_ms",
        "integer",
        "Trials that are handed out alone: from the first handing out to storing the answer, by the server's "
        "clock; no true response time is longer. Empty if the time of handing out is not known.",
        "ms",
    ),
    Column(
        "rt_over_server",
        "flag",
        "Trials that are handed out alone: whether rt_ms is longer than server_ms, which cannot be. Empty "
        "for simulated people, who answer at once and say how long they would have taken.",
    ),
)
"""Columns of studies whose trials are handed out one at a time."""


@dataclass(frozen=True, slots=True)
class PlannedAs:
    """A trial with all that is the same for everybody who answers it."""

    view: TrialView
    item: str
    explained: bool
    scored_index: int | None
    condition_id: int | None


class Answers:
    """Reads the answers of one study, batch by batch. `kind_of` gives each kind of trial by name, with the
    columns that it adds."""

    def __init__(self, study: Study, named: Named, kind_of: KindOf) -> None:
        self.study, self.named = study, named
        self.streams = Streams(study.seed)
        kinds, self.has_reveals = self._planned_kinds()
        self.kinds = {name: kind_of(name) for name in sorted(kinds)}
        self.of_kinds = kind_columns(self.kinds)
        self.is_served = any(get_kind(name).is_alone for name in self.kinds)
        self.is_calibrated = study.definition.get("presentation", {}).get("calibration", "off") != "off"
        self.extra = (
            *self.of_kinds,
            *((REVEALED_MS,) if self.has_reveals else ()),
            *(SERVED if self.is_served else ()),
        )

    @cached_property
    def items(self) -> dict[int, Item]:
        rows = Item.objects.filter(study=self.study)
        return {item.pk: item for item in rows.only("key", "truth", "predicted").iterator(CHUNK)}

    @cached_property
    def conditions(self) -> dict[int, Condition]:
        return Condition.objects.filter(study=self.study).in_bulk()

    @cached_property
    def said(self) -> Mapping[tuple[int, str], str]:
        return predictions_of(self.study)

    def _planned_kinds(self) -> tuple[set[str], bool]:
        """The kinds of trial that are planned, and whether anything is revealed after an answer: by the first
        trial of each sort, as all trials of a sort are treated alike."""
        trials = Trial.objects.filter(slot__study=self.study).order_by()
        firsts = []
        for has_item in (True, False):
            sorts = trials.filter(item__isnull=not has_item).values("kind", "phase", "check_kind")
            firsts += [row["first"] for row in sorts.annotate(first=Min("pk"))]
        views = [self._view(trial) for trial in trials.filter(pk__in=firsts)]
        return {view.kind for view in views}, any(reveals(self.study, view) for view in views)

    def _view(self, trial: Trial) -> TrialView:
        # Set from what is read once: a million trials need no million copies of their items.
        trial.item = self.items[trial.item_id] if trial.item_id is not None else None
        trial.condition = self.conditions[trial.condition_id] if trial.condition_id is not None else None
        return view_of(trial, self.said)

    def rows(self, batch: Batch) -> Iterator[Row]:
        """One row per answer, in the order of the sessions and of the answers."""
        planned, cells = self._planned_trials(list(batch.slots)), batch.cells
        notes = _Notes(
            _revealed_ms(batch) if self.has_reveals else None, _handed_out(batch) if self.is_served else None
        )
        answers = Response.objects.filter(session__in=batch.keys)
        fields = ("session_id", "trial_id", "value", "rt_ms", "shown_ms", "received_at", "late", "context")
        stream = answers.order_by("session__started_at", "session_id", "position").values_list(*fields)
        for row in stream.iterator(CHUNK):
            if row[0] in cells:
                if row[1] not in planned:
                    # The session has another slot by now.
                    planned |= self._planned_trials(
                        list(Slot.objects.filter(trials=row[1]).values_list("pk", flat=True))
                    )
                yield self._row(cells[row[0]], planned[row[1]], row, notes)

    def _planned_trials(self, slots: list[int]) -> dict[int, PlannedAs]:
        trials = Trial.objects.filter(slot__in=slots).defer("accepts", "reservoir")
        planned, scored = {}, Counter[int]()
        for trial in trials.order_by("slot_id", "position").iterator(CHUNK):
            is_scored = trial.phase == "test" and not trial.check_kind
            view = self._view(trial)
            planned[trial.pk] = PlannedAs(
                view,
                trial.item.key if trial.item else "",
                trial.explained,
                scored[trial.slot_id] if is_scored else None,
                trial.condition_id,
            )
            scored[trial.slot_id] += is_scored
        return planned

    def _row(self, cells: SessionCells, trial: PlannedAs, row: tuple[Any, ...], notes: _Notes) -> Row:
        session, pk, value, rt_ms, shown_ms, received_at, late, context = row
        condition, role = self.named(trial.condition_id)
        kind = self.kinds[trial.view.kind]
        view = kind.seen_by(trial.view, cells.participant, self.streams)
        of_page = _context(context, cells)
        served = notes.served(cells.origin, (session, pk), received_at, rt_ms)
        return (
            self.study.slug,
            cells.person,
            cells.session,
            cells.origin,
            condition,
            role,
            cells.arm,
            cells.slot,
            cells.plan,
            view.block,
            view.phase,
            view.kind,
            view.check,
            view.position,
            trial.scored_index,
            trial.item,
            trial.explained,
            _answer(value),
            view.predicted,
            view.truth,
            agreement(view, value, view.predicted),
            agreement(view, value, view.truth),
            is_as_asked(view, value),
            rt_ms,
            shown_ms,
            received_at,
            late,
            *of_page,
            gaps_of_answer(of_page, cells.origin, self.is_calibrated, served),
            *kind_cells(kind, self.of_kinds, view, value, context),
            *notes.revealed((session, pk)),
            *served,
        )


@dataclass(frozen=True, slots=True)
class _Notes:
    """What is known of answers besides them, by place; None: the study has no such column."""

    revealed_ms: Mapping[Place, int] | None
    handed_out: Mapping[Place, datetime] | None

    def revealed(self, place: Place) -> Row:
        return () if self.revealed_ms is None else (self.revealed_ms.get(place),)

    def served(self, origin: str, place: Place, received_at: datetime, rt_ms: int) -> Row:
        """The cells of SERVED, if the study has them; a begun millisecond counts as a whole."""
        if self.handed_out is None:
            return ()
        handed_out_at = self.handed_out.get(place)
        if handed_out_at is None:
            return None, None
        server_ms = ceil((received_at - handed_out_at) / timedelta(milliseconds=1))
        # The times of programs are drawn, or their own: the server's clock says nothing of them.
        return server_ms, None if origin in Session.PROGRAMS else server_ms < rt_ms


def _revealed_ms(batch: Batch) -> dict[Place, int]:
    """For how long what a guess revealed was looked at, over all looks."""
    sums: dict[Place, int] = defaultdict(int)
    rows = Event.objects.filter(session__in=batch.keys, kind=REVEALED, trial__isnull=False)
    for session, trial, detail in rows.values_list("session_id", "trial_id", "detail").iterator(CHUNK):
        shown_ms = detail.get("shown_ms")
        if isinstance(shown_ms, int) and shown_ms >= 0:
            sums[session, trial] += shown_ms
    return dict(sums)


def _handed_out(batch: Batch) -> dict[Place, datetime]:
    """When a trial first left the server, of the trials that are handed out alone."""
    rows = HandOut.objects.filter(session__in=batch.keys)
    fields = rows.values_list("session_id", "trial_id", "handed_out_at")
    return {(session, trial): at for session, trial, at in fields.iterator(CHUNK)}


def _answer(value: Mapping[str, Any]) -> str:
    """The plain choice if the answer is one, "seen" if nothing was asked, else all of it."""
    if set(value) == {"choice"}:
        return str(value["choice"])
    return "seen" if value == SEEN else canonical_json(value)


def _context(context: Mapping[str, Any], cells: SessionCells) -> Row:
    """The cells of PAGE."""
    size = context.get("image_px"), context.get("pixel_ratio")
    return (
        *(context.get(key, "") for key in ("input", "key", "keys", "side")),
        context.get("onset_ms"),
        *size,
        degrees_of(*size, cells.px_per_mm, cells.distance_mm),
        *(context.get(key) for key in ("frames", "dropped_frames", "refresh_ms", "hidden_count")),
        timing_of(context),
        *(context.get(key) for key in ("reservoir_ms", "focus_losses", "reloads")),
    )
