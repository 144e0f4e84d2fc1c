"""The profile for publication: which columns are kept, made coarse or left empty is decided here alone.

No clock times (durations, order and times since arrival stay), no free text, a coarse device, no language
beyond its first part; answers stay intact, but those on health are taken out before (`special`). A column
that is not listed, such as one of a kind of trial from elsewhere, is left empty. Columns stay in their
tables, so that every program finds them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from analysis.columns import CodebookQuestion, Column, columns_of
from analysis.frames import Frames, Tables, conform
from stimuli.spec import canonical_json

Decision = Literal["keep", "coarse", "drop"]
FREE = "text"
"""Kind of a question that is answered in free text."""
WIDTHS_PX = (0, 600, 900, 1200, 1600, 2000)
"""Lower bounds of the classes of a window's sides."""

DECISIONS: Mapping[str, Mapping[Decision, str]] = {
    "trials": {
        "keep": "study participant session origin condition role arm slot plan block phase kind check "
        "trial_index scored_index item explained response model_label truth matches_model matches_truth "
        "check_passed rt_ms shown_ms late input key keys side onset_ms frames dropped_frames hidden_count "
        "timing reservoir_ms focus_losses reloads missing revealed_ms server_ms rt_over_server step advice "
        "questions_asked question_ms question_changes anchor solution answer use answer_right accepted "
        "region_cells region strokes undos first_stroke_ms marked_with",
        "coarse": "image_px pixel_ratio image_deg refresh_ms",
        "drop": "received_at",
    },
    "participants": {
        "keep": "study participant session sitting origin arrival simulated_kind simulated_digest asked lane "
        "condition role arm slot plan status reasons excluded_by_hand consented admitted duration_s task_s "
        "rules_digest quiz_attempts practice_attempts surplus responses focus_losses reloads "
        "reservoir_openings pastes fullscreen_entries fullscreen_exits touch webdriver missing",
        "coarse": "width_px height_px pixel_ratio refresh_hz language answers",
        "drop": "reasons_detail excluded_reason started_at claimed_at finished_at verdict_at lease_ends_at "
        "px_per_mm distance_mm comment",
    },
    "stimuli": {
        "keep": "study item condition role truth predicted confidence group dataset explainer image_key "
        "stimulus_key attribution_key picture_digest state width_px height_px provenance metrics "
        "predictor_key predictor predictor_layer layer target operator against seed precision "
        "explainer_version recipe packages rated_as copy_of perturbation",
    },
    "questions": {
        "keep": "study participant session origin when attempt question kind prompt level",
        "coarse": "answer",
    },
    "gates": {
        "keep": "study participant session origin gate attempt passed after_s",
        "drop": "at",
    },
    "events": {
        "keep": "study participant session origin kind trial_index at_ms",
        "drop": "detail received_at",
    },
    "openings": {
        "keep": "study participant session origin trial_index at_ms duration_ms missing",
    },
    "plans": {
        "keep": "study pilot slot lane arm slot_condition plan trial_index block phase kind check item "
        "condition role explained choices label expected right reservoir others variant extra",
    },
}


def decision_of(table: str, column: str) -> Decision:
    """What the profile does with a column; one that is not listed is left empty."""
    for decision, names in DECISIONS[table].items():
        if column in names.split():
            return decision
    return "drop"


@dataclass(frozen=True, slots=True)
class TablesView:
    """Tables that hold the same columns with other rows or cells: `change` says which, table by table."""

    tables: Tables

    @property
    def extra(self) -> tuple[Column, ...]:
        return self.tables.extra

    @property
    def listed(self) -> tuple[str, ...]:
        return self.tables.listed

    @property
    def is_public(self) -> bool:
        return self.tables.is_public

    @property
    def asked(self) -> Sequence[CodebookQuestion]:
        return self.tables.asked

    def parts(self, table: str) -> Iterator[pd.DataFrame]:
        for part in self.tables.parts(table):
            yield self.change(table, part)

    def frames(self) -> Frames:
        whole = self.tables.frames()
        return Frames(**{n: self.change(n, whole.tables[n]) for n in whole.listed}, extra=self.extra)

    def change(self, table: str, part: pd.DataFrame) -> pd.DataFrame:
        raise NotImplementedError


class Public(TablesView):
    """The same tables as they may be published."""

    __slots__ = ()

    @property
    def is_public(self) -> bool:
        return True

    def change(self, table: str, part: pd.DataFrame) -> pd.DataFrame:
        made = part.copy(deep=False)
        for column in columns_of(table, self.tables.extra):
            decision = decision_of(table, column.name)
            if decision == "drop":
                made[column.name] = None
            elif decision == "coarse":
                made[column.name] = self._coarse(table, column.name, part)
        return conform(made, table, self.tables.extra)

    def _coarse(self, table: str, column: str, part: pd.DataFrame) -> pd.Series:
        if table == "questions":
            return part[column].where(part["kind"] != FREE, "")
        if column == "answers":
            free = {question.id for question in self.tables.asked if question.kind == FREE}
            return part[column].map(lambda cell: without_answers(cell, free))
        return part[column].map(COARSE[column], na_action="ignore")


def _class_of(size_px: float) -> int:
    return max(bound for bound in WIDTHS_PX if bound <= size_px)


COARSE: Mapping[str, Callable[[float], object]] = {
    "width_px": _class_of,
    "height_px": _class_of,
    "image_px": lambda size_px: 10 * round(size_px / 10),
    "pixel_ratio": lambda ratio: max(1, round(ratio)),
    "image_deg": lambda degrees: round(degrees, 1),
    "refresh_ms": round,
    "refresh_hz": lambda rate: 10 * round(rate / 10),
    "language": lambda tag: str(tag).partition("-")[0].lower(),
}
"""What is left of a cell: window class by its lower bound, the rest rounded, the language without country."""


def without_answers(cell: str, ids: Collection[str]) -> str:
    """The answers by id, a JSON object or empty, without those of `ids`."""
    if not cell:
        return ""
    kept = {name: answer for name, answer in json.loads(cell).items() if name not in ids}
    return canonical_json(kept) if kept else ""
