"""Figures of a review: acceptance by time, hits against false acceptances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from analysis.reports.blind_review.acceptance_by_time import Curve, SharesOf
from analysis.reports.drawing.figures import BASELINE, FAINT, Look, panel_grid

DOTS_MAX = 400
TITLES = {False: "Without explanations", True: "With explanations"}


def accepted_by_budget(made: Sequence[Curve], primary_ms: int, look: Look) -> Any:
    """A panel without and one with explanations, a curve with its band for each source."""
    shown = [value for value in TITLES if any(curve.explained == value for curve in made)]
    figure, grid = panel_grid(len(shown), 1, (7.2 if len(shown) > 1 else 4.6, 3.5), look)
    rng = np.random.default_rng(0)
    for axes, explained in zip(grid, shown, strict=True):
        for curve in (c for c in made if c.explained == explained):
            colour = look.colours[curve.group.name]
            seconds = np.array(curve.curve.budgets_ms) / 1000
            axes.plot(
                seconds, 100 * np.array(curve.curve.shares), color=colour, linewidth=1.8,
                label=curve.group.label,
            )  # fmt: skip
            ends = [(e.low, e.high) if e else (s, s)
                    for e, s in zip(curve.curve.intervals, curve.curve.shares, strict=True)]  # fmt: skip
            low, high = (100 * np.array(side) for side in zip(*ends, strict=True))
            axes.fill_between(seconds, low, high, color=colour, alpha=0.16, linewidth=0)
            if len(curve.leads) <= DOTS_MAX:
                spread = primary_ms / 1000 + rng.uniform(-0.03, 0.03, len(curve.leads)) * seconds[-1]
                dots = 100 * np.array(curve.leads)
                axes.plot(spread, dots, ".", color=colour, alpha=0.35, markersize=5, markeredgewidth=0)
        axes.axvline(primary_ms / 1000, color=BASELINE, linewidth=1, linestyle=(0, (4, 3)), zorder=0)
        axes.set_title(TITLES[explained], fontsize=9.5, loc="left")
        axes.set_xlabel("Time to decide (s)")
        axes.set_ylim(-2, 102)
        axes.set_xlim(left=0)
    figure.supylabel("Accepted (%)", fontsize=9.5)
    _legend(figure, grid)
    return figure


def hits_and_false(made: Sequence[SharesOf], look: Look) -> Any:
    """A panel without and one with explanations: hits against false acceptances."""
    shown = [value for value in TITLES if any(row.explained == value for row in made)]
    figure, grid = panel_grid(len(shown), 1, (7.2 if len(shown) > 1 else 4.6, 4.5), look)
    rng = np.random.default_rng(0)
    for axes, explained in zip(grid, shown, strict=True):
        axes.plot([0, 100], [0, 100], color=FAINT, linewidth=1, linestyle=(0, (4, 3)), zorder=0)
        for row in (r for r in made if r.explained == explained):
            colour = look.colours[row.name]
            if 0 < len(row.single) <= DOTS_MAX:
                dots = 100 * np.array(row.single) + rng.uniform(-1.2, 1.2, (len(row.single), 2))
                axes.plot(*dots.T, ".", color=colour, alpha=0.35, markersize=5, markeredgewidth=0)
            x, y = 100 * row.false, 100 * row.hits
            if row.false_ends:
                ends = [100 * row.false_ends.low, 100 * row.false_ends.high]
                axes.plot(ends, [y, y], color=colour, linewidth=2.4, solid_capstyle="butt", zorder=2)
            if row.hits_ends:
                ends = [100 * row.hits_ends.low, 100 * row.hits_ends.high]
                axes.plot([x, x], ends, color=colour, linewidth=2.4, solid_capstyle="butt", zorder=2)
            axes.plot(
                x, y, "o", color=colour, markersize=8, markeredgecolor="white", zorder=3, label=row.label
            )
        axes.set_title(TITLES[explained], fontsize=9.5, loc="left")
        axes.set_xlabel("False acceptances (%)")
        axes.set_aspect("equal")
        axes.set_xlim(-3, 103)
        axes.set_ylim(-3, 103)
    figure.supylabel("Hits (%)", fontsize=9.5)
    _legend(figure, grid)
    return figure


def _legend(figure: Any, grid: Sequence[Any]) -> None:
    told: dict[str, Any] = {}
    for axes in grid:
        handles, words = axes.get_legend_handles_labels()
        told |= dict(zip(words, handles, strict=True))
    figure.legend(
        list(told.values()), list(told), loc="outside lower center", ncols=max(1, min(4, len(told))),
        frameon=False,
    )  # fmt: skip
