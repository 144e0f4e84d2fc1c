"""What `study_check` looked at, as one page that needs no server: numbers by condition, warnings, and the
explanations as people would see them."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.contrib.staticfiles import finders
from django.template.loader import render_to_string

from analysis.any_table.formats import condition_label
from crowd.dashboard.rows.stimulus_quality import LEGEND, row_of
from crowd.study_check.dry_run import DryRun, stimulus_warnings
from crowd.study_check.quality_warnings import faults_in
from crowd.study_check.stimulus_quality import Quality
from crowd.study_check.thumbnails import Small
from experiments.drafting.dropped_items import dropped_sentence
from experiments.drafting.stimulus_warnings import unknown_sentence
from experiments.wording.sentences import legend_of

SHOWN_MAX = 24
"""Thumbnails of one condition: each has about 80 kB, for nothing of it is lost."""


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


def _row(quality: Quality, small: Sequence[Small]) -> dict[str, Any]:
    """A condition with its thumbnails; counts are of all that were looked at."""
    _, _, empty, leak = quality.form_row()
    return {
        "label": condition_label(quality.condition),
        "shown": [_inline(thumbnail) for thumbnail in small[:SHOWN_MAX]],
        "count": len(small),
        "empty_count": quality.empty,
        "empty": empty,
        "leak": leak,
    }


def _inline(small: Small) -> dict[str, Any]:
    """A thumbnail with its picture in its own address, empty for marked words: text and shade in percent."""
    data = base64.b64encode(small.png).decode()
    pieces = [(text, f"{100 * shade:.0f}") for text, shade in small.pieces]
    return {"small": small, "address": f"data:image/png;base64,{data}" if data else "", "pieces": pieces}
