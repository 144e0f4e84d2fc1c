"""Drawings of what people saw and of how they went through it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from analysis.facts import StudyFacts
from analysis.reports.drawing.figure_files import INK
from analysis.reports.drawing.figures import BASELINE, Look, Rows, canvas, panels

LIMIT = "#B00020"


def items(rows: Rows, facts: StudyFacts, look: Look) -> Any:
    """One column per item, in the order of `rows`; one line per condition; dark is often right."""
    shares = [[row["by_condition"][c.name]["accuracy"] for row in rows] for c in facts.conditions]
    grid = np.array([[np.nan if share is None else 100 * share for share in line] for line in shares])
    figure, axes = canvas(7.2, 1.2 + 0.3 * len(facts.conditions), look)
    drawn = axes.imshow(grid, aspect="auto", cmap="cividis_r", vmin=0, vmax=100, interpolation="nearest")
    axes.set_yticks(range(len(facts.conditions)), [c.label for c in facts.conditions])
    axes.set_xticks([])
    axes.set_xlabel(f"{len(rows)} items, hardest to easiest")
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.tick_params(length=0)
    figure.colorbar(drawn, ax=axes, label="Matches the model (%)", pad=0.015)
    return figure


def learning(rows: Rows, facts: StudyFacts, look: Look) -> Any:
    """One panel per condition: accuracy at each trial with its interval, the baseline behind it."""
    by = {c.name: [row for row in rows if row["condition"] == c.name] for c in facts.conditions}
    bases = {c.name for c in facts.conditions if c.role == "baseline"}
    shown = [c for c in facts.conditions if c.name not in bases and by[c.name]]
    figure, grid = panels(len(shown), look)
    for axes, condition in zip(grid, shown, strict=False):
        for base in bases:
            axes.plot(*_line(by[base]), "-", color=BASELINE, linewidth=1.2, zorder=2)
        colour, points = look.colours[condition.name], by[condition.name]
        lows, highs = ([100 * row["interval"][end] for row in points] for end in (0, 1))
        axes.fill_between(
            [row["trial"] for row in points], lows, highs, color=colour, alpha=0.18, linewidth=0
        )
        axes.plot(*_line(points), "-", color=colour, linewidth=1.5, zorder=3)
        axes.set_title(condition.label, fontsize=9.5, loc="left", color=colour)
    grid[0].set_ylim(0, 101)
    figure.supxlabel("Test trial", fontsize=9.5)
    figure.supylabel("Matches the model (%)", fontsize=9.5)
    return figure


def _line(rows: Rows) -> tuple[list[int], list[float]]:
    return [row["trial"] for row in rows], [100 * row["accuracy"] for row in rows]


def times(curves: Rows, limits: Mapping[str, Sequence[float]], facts: StudyFacts, look: Look) -> Any:
    """Answer times on the left, durations on the right; a line per condition, limits dashed."""
    from matplotlib.ticker import LogLocator

    figure, grid = panels(2, look, alike=False, height=2.9)
    heads = {"answer_s": "Time to a scored answer (s)", "session_min": "Time from arrival to the end (min)"}
    for axes, (what, head) in zip(grid, heads.items(), strict=True):
        for curve in (curve for curve in curves if curve["what"] == what):
            colour = look.colours[curve["condition"]]
            axes.plot(curve["x"], curve["y"], "-", color=colour, linewidth=1.4, label=curve["label"])
        for end in limits[what]:
            axes.axvline(end, color=LIMIT, linewidth=1, linestyle=(0, (4, 3)))
        axes.set_xscale("log")
        low, high = axes.get_xlim()
        # Over more than two powers of ten the labels would touch.
        steps = (1.0, 2.0, 5.0) if high < 100 * low else (1.0,)
        axes.xaxis.set_major_locator(LogLocator(subs=steps))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.minorticks_off()
        axes.set_xlabel(head)
        axes.set_yticks([])
    grid[0].set_ylabel("Density")
    handles, labels = grid[0].get_legend_handles_labels()
    place = {"loc": "outside lower center", "ncols": min(4, max(1, len(labels)))}
    figure.legend(handles, labels, frameon=False, fontsize=8.5, labelcolor=INK, **place)
    return figure
