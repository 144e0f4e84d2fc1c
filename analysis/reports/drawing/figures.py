"""Figures of a report, drawn with matplotlib."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from analysis.facts import StudyFacts
from analysis.reports.drawing.figure_files import STYLE

OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#A6761D", "#000000")
"""Safe for colour deficiency; its yellow is too light for thin lines on white and is replaced by a brown."""
BASELINE, CONTROL, FAINT = "#8C8C8C", "#4D4D4D", "#D9D9D9"
Rows = Sequence[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Look:
    """One colour per condition in all figures of a study, and the words that every figure must show."""

    colours: dict[str, str]
    stamp: str
    single: str = "person"
    many: str = "people"

    def counted(self, n: int) -> str:
        """So many of those who answered, as "1 person" or "2 people"."""
        return f"{n} {self.single if n == 1 else self.many}"

    @classmethod
    def of(cls, facts: StudyFacts, origin: str) -> Look:
        colours, methods = {}, 0
        for condition in facts.conditions:
            if condition.role == "baseline":
                colours[condition.name] = BASELINE
            elif condition.role == "control":
                colours[condition.name] = CONTROL
            else:
                colours[condition.name] = OKABE_ITO[methods % len(OKABE_ITO)]
                methods += 1
        stamp = {
            "simulated": "computational observers",
            "model": "a model, not people",
            "pilot": "pilot",
            "preview": "preview",
        }.get(origin, "")
        if origin == "simulated":
            return cls(colours, stamp, "observer", "observers")
        if origin == "model":
            return cls(colours, stamp, "model rater", "model raters")
        return cls(colours, stamp)


def forest(rows: Rows, look: Look) -> Any:
    """Utility per condition: point, simultaneous interval (thick) over its own (light), line at 1."""
    shown = [r for r in rows if r["role"] != "baseline" and r["utility"] is not None]
    figure, axes = canvas(7.2, 1.1 + 0.36 * len(shown), look)
    for y, row in enumerate(reversed(shown)):
        colour = look.colours[row["name"]]
        for key, width, alpha in (("utility_simultaneous", 3.6, 1.0), ("utility", 8.0, 0.3)):
            ends = row["intervals"][key]
            if ends and None not in ends:
                strength = {"color": colour, "linewidth": width, "alpha": alpha}
                axes.plot(ends, [y, y], solid_capstyle="butt", zorder=2, **strength)
        axes.plot(row["utility"], y, "o", color=colour, markersize=7, markeredgecolor="white", zorder=3)
    axes.axvline(1, color=BASELINE, linewidth=1, zorder=1)
    name_lines(axes, [r["label"] for r in shown], spine=False)
    axes.set_xlabel("Utility (1 = as without explanation)")
    return figure


def people(rows: Rows, scores: pd.DataFrame, look: Look, *, chance: float | None = 0.5) -> Any:
    """Accuracy of every person (faint), mean and interval, a line per condition; dashed: `chance`."""
    figure, axes = canvas(7.2, 0.9 + 0.42 * len(rows), look)
    rng = np.random.default_rng(0)
    for place, row in enumerate(rows):
        y = len(rows) - 1 - place
        values = 100 * scores.loc[scores["condition"] == row["name"], "accuracy"].to_numpy(dtype=float)
        colour = look.colours[row["name"]]
        if values.size <= 400:
            spread = y + rng.uniform(-0.26, 0.26, values.size)
            axes.plot(values, spread, ".", color=colour, alpha=0.4, markersize=5, markeredgewidth=0, zorder=1)
        ends = row["intervals"]["accuracy_mean"]
        if row["accuracy_mean"] is not None:
            mark_mean(axes, 100 * row["accuracy_mean"], y, ends and [100 * end for end in ends], colour)
    if chance is not None:
        axes.axvline(100 * chance, color=BASELINE, linewidth=0.9, linestyle=(0, (4, 3)), zorder=0)
    name_lines(axes, [r["label"] for r in rows], spine=False)
    axes.set_xlabel(f"Accuracy per {look.single} (%)")
    axes.set_xlim(-1, 101)
    return figure


def blocks(rows: Rows, look: Look, names: Sequence[str] = ()) -> Any:
    """One panel per condition: accuracy per block with intervals, the baseline behind it."""
    shown = [r for r in rows if r["role"] != "baseline" and r["accuracy"]]
    base = next((r for r in rows if r["role"] == "baseline" and r["accuracy"]), None)
    figure, grid = panels(len(shown), look)
    for axes, row in zip(grid, shown, strict=False):
        if base:
            _line(axes, base, BASELINE, 0.06)
        _line(axes, row, look.colours[row["name"]], -0.06)
        axes.set_title(row["label"], fontsize=9.5, loc="left", color=look.colours[row["name"]])
        _block_axis(axes, len(row["accuracy"]), names)
    for axes in grid[len(shown) :]:
        axes.set_visible(False)
    ends = [
        end for r in rows for pair in r["intervals"]["accuracy"] if pair for end in pair if end is not None
    ]
    if ends:
        low, high = 100 * min(ends), 100 * max(ends)
        grid[0].set_ylim(max(-2, 5 * np.floor(low / 5) - 2), min(102, 5 * np.ceil(high / 5) + 2))
    figure.supxlabel(_block_word(names), fontsize=9.5)
    figure.supylabel("Accuracy (%)", fontsize=9.5)
    return figure


def utility_by_block(rows: Rows, look: Look, names: Sequence[str] = ()) -> Any:
    """One panel per condition: Utility-K with its interval, and a line at 1."""
    shown = [r for r in rows if r["role"] != "baseline" and r["utility_k"]]
    figure, grid = panels(len(shown), look)
    for axes, row in zip(grid, shown, strict=False):
        colour, values = look.colours[row["name"]], row["utility_k"]
        axes.axhline(1, color=BASELINE, linewidth=1, zorder=1)
        axes.plot(range(len(values)), values, "o-", color=colour, linewidth=1.4, markersize=4.5, zorder=3)
        for x, ends in enumerate(row["intervals"]["utility_k"] or ()):
            if ends and None not in ends:
                axes.plot([x, x], ends, color=colour, linewidth=2.4, solid_capstyle="butt", zorder=2)
        axes.set_title(row["label"], fontsize=9.5, loc="left", color=colour)
        _block_axis(axes, len(values), names)
    for axes in grid[len(shown) :]:
        axes.set_visible(False)
    figure.supxlabel(_block_word(names), fontsize=9.5)
    figure.supylabel("Utility-K", fontsize=9.5)
    return figure


def _block_axis(axes: Any, count: int, names: Sequence[str]) -> None:
    words = [name.removeprefix("K = ").removeprefix("Block ") for name in names] or map(
        str, range(1, count + 1)
    )
    axes.set_xticks(range(count), list(words))
    axes.set_xlim(-0.35, count - 0.65)


def _block_word(names: Sequence[str]) -> str:
    return "K, examples seen" if names and names[0].startswith("K") else "Block"


def canvas(width: float, height: float, look: Look) -> tuple[Any, Any]:
    """An empty figure of that size in inches, stamped, and its axes."""
    with drawing(width, height, look) as figure:
        return figure, figure.add_subplot()


@contextmanager
def drawing(width: float, height: float, look: Look) -> Iterator[Any]:
    """An empty figure of that size in inches, stamped; axes added inside have the style of all figures."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        stamp_figure(figure, look)
        yield figure


def panels(count: int, look: Look, *, alike: bool = True, height: float = 1.75) -> tuple[Any, list[Any]]:
    """Axes for `count` panels, up to four across, with one scale if they are `alike`; others are hidden."""
    across = min(4, max(1, count))
    down = -(-max(1, count) // across)
    figure, grid = panel_grid(across, down, (7.2, 0.6 + height * down), look, alike)
    for axes in grid[max(1, count) :]:
        axes.set_visible(False)
    return figure, grid


def panel_grid(
    across: int, down: int, size: tuple[float, float], look: Look, alike: bool = True
) -> tuple[Any, list[Any]]:
    """A stamped figure of that size in inches, and its axes, line by line."""
    with drawing(*size, look) as figure:
        grid = figure.subplots(down, across, sharex=alike, sharey=alike, squeeze=False)
    return figure, list(grid.flat)


def stamp_figure(figure: Any, look: Look) -> None:
    """Writes who answered into the figure, if they are no people."""
    if look.stamp:
        figure.suptitle(look.stamp, x=0.005, ha="left", fontsize=9, style="italic", color="#8A4B00")


def name_lines(axes: Any, labels: Sequence[str], *, spine: bool = True) -> None:
    """The names of horizontal lines, the first above; the axis beside them without ticks."""
    axes.set_yticks(range(len(labels)), list(reversed(labels)))
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(spine)
    axes.set_ylim(-0.6, len(labels) - 0.4)


def mark_mean(axes: Any, x: float, y: float, ends: Sequence[float] | None, colour: str) -> None:
    """A point on a horizontal line, with its interval if there is one."""
    if ends:
        axes.plot(ends, [y, y], color=colour, linewidth=3, solid_capstyle="butt", zorder=2)
    axes.plot(x, y, "o", color=colour, markersize=7, markeredgecolor="white", zorder=3)


def _line(axes: Any, row: dict[str, Any], colour: str, shift: float) -> None:
    xs = np.arange(len(row["accuracy"])) + shift
    # A block without answers has no point, and the line is interrupted there.
    ys = [np.nan if a is None else 100 * a for a in row["accuracy"]]
    axes.plot(xs, ys, "o-", color=colour, linewidth=1.4, markersize=4, zorder=3)
    for x, ends in zip(xs, row["intervals"]["accuracy"], strict=True):
        if ends:
            axes.plot([x, x], [100 * e for e in ends], color=colour, linewidth=1.2, zorder=2)


def fold_label(label: str) -> str:
    """A long label on two lines."""
    words = label.split(" ")
    if len(label) <= 10 or len(words) < 2:
        return label
    middle = min(range(1, len(words)), key=lambda i: abs(len(" ".join(words[:i])) - len(label) / 2))
    return " ".join(words[:middle]) + "\n" + " ".join(words[middle:])
