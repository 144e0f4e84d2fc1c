"""Figures of a reverse Turing test besides those of all studies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from analysis.facts import StudyFacts
from analysis.reports.drawing.figures import Look, canvas, fold_label
from analysis.reports.reverse_turing.person_scores import geometric_interval, geometric_mean
from experiments.paradigms.reverse_turing import SIDES

APART = 0.22
"""Half the distance between the two halves of a crossed study, where conditions are 1 apart."""
TICKS_S = (1, 2, 3, 5, 7, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300, 450, 600, 900, 1800, 3600)
POINTS_MAX = 400


def times(scores: pd.DataFrame, facts: StudyFacts, look: Look) -> Any:
    """Seconds of the test of every person (faint) on a logarithmic axis, with the geometric mean and its
    interval per condition, and per `side` if people were told different things: hollow if not told.
    """
    figure, axes = canvas(7.2, 3.6, look)
    rng = np.random.default_rng(0)
    shown = [c for c in facts.conditions if (scores["condition"] == c.name).any()]
    known, masked = SIDES
    for x, condition in enumerate(shown):
        members = scores[scores["condition"] == condition.name]
        for side, shift in (("", 0.0), (known, -APART), (masked, APART)):
            seconds = members.loc[members["side"] == side, "test_s"]
            face = "white" if side == masked else look.colours[condition.name]
            _marks(axes, x + shift, seconds[seconds > 0], look.colours[condition.name], face, rng)
    axes.set_yscale("log")
    axes.set_xticks(range(len(shown)), [fold_label(c.label) for c in shown])
    axes.tick_params(axis="x", length=0)
    low, high = axes.get_ylim()
    ticks = [tick for tick in TICKS_S if low <= tick <= high]
    axes.set_yticks(ticks or [low, high], [f"{tick:g}" for tick in ticks or [low, high]], minor=False)
    axes.minorticks_off()
    axes.set_ylabel("Time of the test (s)")
    return figure


def _marks(axes: Any, x: float, seconds: pd.Series, colour: str, face: str, rng: np.random.Generator) -> None:
    mean, ends = geometric_mean(seconds), geometric_interval(seconds)
    if mean is None:
        return
    if len(seconds) <= POINTS_MAX:
        spread = x + rng.uniform(-0.12, 0.12, len(seconds))
        axes.plot(
            spread, seconds.to_numpy(float), ".", color=colour, alpha=0.4, markersize=5, markeredgewidth=0
        )
    if ends:
        axes.plot([x, x], ends, color=colour, linewidth=3, solid_capstyle="butt", zorder=2)
    axes.plot(
        x,
        mean,
        "o",
        color=face,
        markersize=7,
        markeredgecolor=colour if face == "white" else "white",
        zorder=3,
    )
