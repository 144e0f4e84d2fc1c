"""The quality of stimuli on their page: numbers by condition, warnings, and what to look at first."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from analysis.any_table.formats import condition_label
from crowd.study_check.quality_record import qualities_of
from crowd.study_check.stimulus_quality import CONTENT_LEGEND, FORM_LEGEND, Quality
from crowd.study_check.thumbnails import WORDS
from experiments.drafting.stimulus_warnings import (
    acknowledgements,
    is_seen_with_answer,
    open_warnings,
    refusing,
    unknown_of,
)
from experiments.models import Condition, Rendering, Study
from stimuli.models import Stimulus

LEGEND = f"{FORM_LEGEND} {CONTENT_LEGEND}"


@dataclass(frozen=True, slots=True)
class Thumbnail:
    """An explanation as people see it, with the reason why it is shown."""

    item: str
    stimulus: Stimulus
    words: str


@dataclass(frozen=True, slots=True)
class MeasuredRow:
    """A condition: its cells as text, whether the first ones hold a warning, and what to look at first."""

    label: str
    cells: tuple[str, ...]
    kinds: frozenset[str]
    thumbnails: tuple[Thumbnail, ...]


@dataclass(frozen=True, slots=True)
class MeasuredStimuli:
    rows: tuple[MeasuredRow, ...]
    left: tuple[str, ...]
    measured_at: datetime | None
    warnings: Sequence[Mapping[str, Any]]
    acknowledged: Sequence[Mapping[str, Any]]
    is_refused: bool
    is_seen_with_answer: bool
    unknown: str

    @property
    def caption(self) -> str:
        return f"Measured on {self.measured_at:%Y-%m-%d}" if self.measured_at else ""


def measured_of(study: Study, conditions: Sequence[Condition]) -> MeasuredStimuli | None:
    """None for a draft, and for a study that explains nothing."""
    if study.state == Study.State.DRAFT or all(c.explainer is None for c in conditions):
        return None
    qualities = qualities_of(study)
    shown = _renderings(study, qualities)
    warned = {(w["condition"], w["kind"]) for w in study.quality.get("warnings", ())}
    at = study.quality.get("measured_at")
    return MeasuredStimuli(
        rows=tuple(
            row_of(
                q,
                warned,
                tuple(
                    Thumbnail(s.item, shown[s.item, q.condition], WORDS[s.kind].format(s.value))
                    for s in q.striking
                    if (s.item, q.condition) in shown
                ),
            )
            for q in qualities
        ),
        left=tuple(condition_label(name) for name in study.quality.get("unmeasured", ())),
        measured_at=datetime.fromisoformat(at) if at else None,
        warnings=open_warnings(study),
        acknowledged=acknowledgements(study),
        is_refused=bool(refusing(study)),
        is_seen_with_answer=is_seen_with_answer(study),
        unknown=unknown_of(study),
    )


def row_of(
    quality: Quality, warned: Collection[tuple[str, str]], thumbnails: tuple[Thumbnail, ...] = ()
) -> MeasuredRow:
    """`warned` are warnings by condition and kind."""
    return MeasuredRow(
        condition_label(quality.condition),
        (*quality.form_row()[1:], *quality.content_row()[1:]),
        frozenset(kind for name, kind in warned if name == quality.condition),
        thumbnails,
    )


def _renderings(study: Study, qualities: Sequence[Quality]) -> dict[tuple[str, str], Stimulus]:
    keys = {striking.item for quality in qualities for striking in quality.striking}
    rows = Rendering.objects.filter(item__study=study, item__key__in=keys)
    rows = rows.select_related("stimulus", "item", "condition")
    return {(row.item.key, row.condition.name): row.stimulus for row in rows} if keys else {}
