"""What `study_check` looked at, as one page that needs no server: numbers by condition, warnings, and the
explanations as people would see them."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from django.contrib.staticfiles import finders
from django.template.loader import render_to_string

from analysis.reports.formats import condition_label
from crowd.dashboard.measured import LEGEND, row_of
from crowd.recruiting.checking import DryRun, stimulus_warnings
from crowd.recruiting.faults import faults_in
from crowd.recruiting.quality import Quality
from crowd.recruiting.thumbnails import Small
from experiments.dropping import dropped_sentence
from experiments.quality import unknown_sentence
from experiments.words import legend_of

SHOWN_MAX = 24
"""Thumbnails of one condition: each has about 80 kB, for nothing of it is lost."""


@dataclass(frozen=True, slots=True)
class Embedded:
    small: Small

    @property
    def address(self) -> str:
        """The picture in its own address; empty for marked words."""
        data = base64.b64encode(self.small.png).decode()
        return f"data:image/png;base64,{data}" if data else ""

    @property
    def pieces(self) -> list[tuple[str, str]]:
        """Marked words: text and shade in percent."""
        return [(text, f"{100 * shade:.0f}") for text, shade in self.small.pieces]


@dataclass(frozen=True, slots=True)
class CheckedRow:
    """A condition with its thumbnails; counts are of all that were looked at."""

    label: str
    shown: Sequence[Embedded]
    count: int
    empty_count: int
    empty: str
    leak: str


def page_of(run: DryRun) -> str:
    """One HTML document with all that it shows."""
    faults = faults_in(run.quality, seen_with_answer=run.is_seen_with_answer)
    warned = {(fault.condition, fault.kind) for fault in faults}
    style = finders.find("dashboard/dashboard.css")
    assert isinstance(style, str)
    content = {
        "definition": run.definition,
        "style": Path(style).read_text(encoding="utf-8"),
        "warnings": [f"{text[0].upper()}{text[1:]}." for text in stimulus_warnings(run)],
        "unknown": unknown_sentence([q.condition for q in run.quality if q.leak is None]),
        "dropped": dropped_sentence(run.dropped),
        "beside": run.is_seen_with_answer,
        "measured": [row_of(quality, warned) for quality in run.quality],
        "legend": LEGEND,
        "marks": legend_of(run.definition).replace("**", ""),
        "rows": [_row(q, run.thumbnails.get(q.condition, ())) for q in run.quality],
    }
    return render_to_string("dashboard/checked.html", content)


def _row(quality: Quality, small: Sequence[Small]) -> CheckedRow:
    _, _, empty, leak = quality.form_row()
    shown = [Embedded(thumbnail) for thumbnail in small[:SHOWN_MAX]]
    return CheckedRow(condition_label(quality.condition), shown, len(small), quality.empty, empty, leak)
