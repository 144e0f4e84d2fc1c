"""Figures of ratings: how often each point was chosen, and means with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from analysis.ratings import SCALE
from analysis.reports.drawing.figures import Look, panel_grid
from analysis.reports.rating.method_means import RatingSummary

POINT_COLOURS = ("#B2622B", "#E6B98A", "#DADADA", "#8DB9D8", "#2A6CA3")
"""From the lowest to the highest point, through grey; told apart with any colour vision."""
ACROSS = 3


def points(made: Sequence[RatingSummary], questions: Sequence[tuple[str, str]], look: Look) -> Any:
    """A panel per question, a bar per condition: the share of each point, as it was asked."""
    figure, grid, names = _panels(made, questions, look)
    for axes, (question, label) in zip(grid, questions, strict=False):
        rows = [row for row in made if row.question == question]
        counts = np.array([row.points for row in rows], dtype=float)
        totals = counts.sum(axis=1, keepdims=True)
        shares = 100 * np.divide(counts, totals, out=np.zeros_like(counts), where=totals > 0)
        left = np.zeros(len(rows))
        for place, colour in enumerate(POINT_COLOURS):
            axes.barh(range(len(rows)), shares[:, place], 0.72, left, color=colour, label=str(SCALE[place]))
            left += shares[:, place]
        axes.set_title(label, fontsize=9.5, loc="left")
        axes.set_yticks(range(len(rows)), names)
        axes.set_xlim(0, 100)
    grid[0].invert_yaxis()
    handles, words = grid[0].get_legend_handles_labels()
    title = "Share of ratings (%), by the point that was chosen"
    figure.legend(handles, words, loc="outside lower center", ncols=len(SCALE), frameon=False, title=title)
    return figure


def means(made: Sequence[RatingSummary], questions: Sequence[tuple[str, str]], look: Look) -> Any:
    """A panel per question, a point per condition: the mean, high as good, with its interval."""
    figure, grid, names = _panels(made, questions, look)
    for axes, (question, label) in zip(grid, questions, strict=False):
        rows = [row for row in made if row.question == question]
        for y, row in enumerate(rows):
            if row.value is None:
                continue
            colour = look.colours[row.name]
            if ends := row.value.interval:
                axes.plot([ends.low, ends.high], [y, y], color=colour, linewidth=3, solid_capstyle="butt")
            axes.plot(row.value.estimate, y, "o", color=colour, markersize=7, markeredgecolor="white")
        axes.set_title(label, fontsize=9.5, loc="left")
        axes.set_yticks(range(len(rows)), names)
        axes.set_xlim(SCALE[0] - 0.1, SCALE[-1] + 0.1)
        axes.set_xticks(SCALE)
        axes.grid(axis="x", color="#E4E4E4", linewidth=0.8)
        axes.set_axisbelow(True)
    grid[0].invert_yaxis()
    figure.supxlabel("Mean point, high is good", fontsize=9.5)
    return figure


def _panels(
    made: Sequence[RatingSummary], questions: Sequence[tuple[str, str]], look: Look
) -> tuple[Any, list[Any], list[str]]:
    names = list(dict.fromkeys(row.label for row in made))
    across = min(ACROSS, max(1, len(questions)))
    down = -(-max(1, len(questions)) // across)
    size = 8.6, 1.0 + down * (0.55 + 0.24 * max(2, len(names)))
    figure, grid = panel_grid(across, down, size, look)
    for axes in grid[len(questions) :]:
        axes.set_visible(False)
    for axes in grid:
        axes.tick_params(axis="y", length=0)
    return figure, grid, names
