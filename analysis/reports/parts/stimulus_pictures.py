"""The pictures that people saw: a sheet of items by condition, in the page of an open report.

The sheet is no part of report.json: the pictures are in the store, or in a package if it was written with
them, and a report is the same without.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd

from analysis.any_table.formats import percent
from analysis.facts import StudyFacts
from analysis.reports.base import ANSWER, Data, Figure
from analysis.reports.drawing.figure_files import INK
from analysis.reports.drawing.figures import Look, drawing, fold_label
from analysis.reports.report import Report
from stimuli.types import Pixels

ITEMS, KEY, EXAMPLE = "items", "seen", "example"
ENDS = 3
"""How many of the hardest and of the easiest items are shown."""
SIDE_PX = 88
"""The longer side of a small picture. A page grows by about 10 kB with each."""
WIDTH, LABEL = 7.2, 1.0
Small = Mapping[tuple[str, str], Pixels]
Picture = Callable[[str], Pixels | None]
"""The picture with this digest; None if it is not there, or is no picture."""


def with_seen(report: Report, stimuli: pd.DataFrame, picture: Picture) -> Report:
    """The report with small pictures, each with the share of answers that match the model: one item in every
    condition beside the answer, and the hardest and easiest items among the items' figures. As it is if it
    has no such section, as while it is sealed, or if no picture is there. `stimuli` is the study's table.
    """
    items = next((part.content for part in report.sections if part.key == ITEMS), None)
    if not items:
        return report
    rows = items if len(items) <= 2 * ENDS else [*items[:ENDS], *items[-ENDS:]]
    middle = items[len(items) // 2]
    digests = _digests(stimuli, {row["item"] for row in (*rows, middle)})
    small = {}
    for cell, digest in digests.items():
        if (whole := picture(digest)) is not None:
            small[cell] = shrink_picture(whole)
    if not small:
        return report
    ends = "" if len(rows) < 2 * ENDS else f" Above the {ENDS} hardest, below the {ENDS} easiest."
    which = {
        ANSWER: (EXAMPLE, [middle], "one item", " It is in the middle between the hardest and the easiest."),
        ITEMS: (KEY, rows, f"{len(rows)} items", f"{ends} All pictures are in an export with --pictures."),
    }
    look = Look.of(report.facts, report.origin)
    sections = []
    for part in report.sections:
        if part.key in which:
            key, shown, words, more = which[part.key]
            caption = (
                f"What was shown of {words} in each condition, made small, with the share of answers that "
                f"match the model.{more}"
            )
            figure = _sheet(key, caption, shown, digests, small, report.facts, look)
            part = replace(part, figures=(*part.figures, figure))
        sections.append(part)
    return replace(report, sections=tuple(sections))


def _digests(stimuli: pd.DataFrame, items: set[str]) -> dict[tuple[str, str], str]:
    shown = stimuli[stimuli["item"].isin(items) & (stimuli["picture_digest"] != "")]
    cells = (shown[name] for name in ("item", "condition", "picture_digest"))
    return {(str(item), str(condition)): str(digest) for item, condition, digest in zip(*cells, strict=True)}


def shrink_picture(picture: Pixels) -> Pixels:
    """The picture at most SIDE_PX wide and high; a smaller one as it is."""
    import numpy as np
    from PIL import Image

    image = Image.fromarray(picture)
    image.thumbnail((SIDE_PX, SIDE_PX), Image.Resampling.LANCZOS)
    return np.asarray(image)


def _sheet(
    key: str,
    caption: str,
    rows: Sequence[dict[str, Any]],
    digests: Mapping[tuple[str, str], str],
    small: Small,
    facts: StudyFacts,
    look: Look,
) -> Figure:
    return Figure(
        key,
        caption,
        f"Small pictures of items by condition; their digests and shares stand in figures/{key}.csv.",
        partial(_draw, rows, small, facts, look),
        Data(
            ("item", "condition", "picture_digest", "n", "accuracy"),
            tuple(
                (
                    row["item"],
                    c.label,
                    digests.get((row["item"], c.name)),
                    row["by_condition"][c.name]["n"],
                    row["by_condition"][c.name]["accuracy"],
                )
                for row in rows
                for c in facts.conditions
            ),
        ),
    )


def _draw(rows: Sequence[dict[str, Any]], small: Small, facts: StudyFacts, look: Look) -> Any:
    """One line per item, one column per condition."""
    across, down = len(facts.conditions), len(rows)
    side = (WIDTH - LABEL) / across
    with drawing(WIDTH, 0.75 + down * (min(side, 1.4) + 0.24), look) as figure:
        grid = figure.subplots(down, across, squeeze=False)
    for line, row in zip(grid, rows, strict=True):
        for axes, condition in zip(line, facts.conditions, strict=True):
            picture = small.get((row["item"], condition.name))
            if picture is not None:
                axes.imshow(picture, interpolation="antialiased")
            axes.set_xticks([])
            axes.set_yticks([])
            axes.spines[:].set_visible(False)
            share = row["by_condition"][condition.name]["accuracy"]
            axes.set_xlabel("" if share is None else f"{percent(share)} %", fontsize=7.5, labelpad=2)
        line[0].set_ylabel(row["item"], fontsize=7, rotation=0, ha="right", va="center", color=INK)
    for axes, condition in zip(grid[0], facts.conditions, strict=True):
        axes.set_title(fold_label(condition.label), fontsize=7.5, color=look.colours[condition.name])
    return figure
