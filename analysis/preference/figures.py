"""Figures of what a scorer predicts: winners, ratings beside a metric, ratings by backbone, and steering."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

from analysis.preference.backbone_comparison import MethodPlace, Sweep
from analysis.reports.drawing.figure_files import INK, as_pdf, as_svg_file
from analysis.reports.drawing.figures import OKABE_ITO, Look, drawing, fold_label, panels
from stimuli.preference.method_mixture import Mixture
from stimuli.types import Pixels

PREDICTED = Look({}, "predicted ratings: no person was asked, and a rating is not understanding")
THUMBNAILS = 6
"""Pictures side by side below a figure."""


def winners(made: Mapping[str, Mixture]) -> Any:
    """Of each dataset a bar per method: the share of images that it wins."""
    height = 0.6 + sum(0.8 + 0.3 * len(mixture.wins) for mixture in made.values())
    with drawing(7.2, height, PREDICTED) as figure:
        ratios = [len(mixture.wins) for mixture in made.values()]
        grid = figure.subplots(len(made), 1, squeeze=False, height_ratios=ratios)
    for axes, (dataset, mixture) in zip(grid[:, 0], made.items(), strict=True):
        order = sorted(mixture.wins, key=lambda name: mixture.wins[name])
        shares = [100 * mixture.wins[name] / mixture.images for name in order]
        axes.barh(order, shares, color=OKABE_ITO[0], height=0.6)
        for place, (name, share) in enumerate(zip(order, shares, strict=True)):
            axes.text(share + 0.6, place, f"{mixture.wins[name]:g}", va="center", color=INK)
        axes.set_title(dataset, fontsize=9.5, loc="left")
        axes.set_xlabel(f"Images with the highest predicted rating (% of {mixture.images})")
    return figure


def draw_places(
    rows: Sequence[MethodPlace], example: Mapping[str, tuple[float, float, Pixels | str]], words: str
) -> Any:
    """Predicted rating against a metric whose `words` name the axis: the mean of each method with its
    interval, and the explanations of one picture, which stand below.

    `example` holds by method metric, predicted rating, and pixels or the sentence of concepts.
    """
    down = -(-len(rows) // THUMBNAILS)
    with drawing(7.2, 3.4 + 1.75 * down, PREDICTED) as figure:
        above, below = figure.subfigures(2, 1, height_ratios=[3.2, 1.75 * down])
        single, every = above.subplots(1, 2)
        pictures = [axes for line in below.subplots(down, THUMBNAILS, squeeze=False) for axes in line]
    for place, row in enumerate(rows):
        colour, sign = OKABE_ITO[place % len(OKABE_ITO)], chr(ord("a") + place)
        at, rating, shown = example[row.method]
        for axes, x, y in ((single, at, rating), (every, row.metric.mean, row.predicted.mean)):
            axes.plot(x, y, "o", color=colour, markersize=6, markeredgecolor="white", zorder=3)
            axes.annotate(sign, (x, y), xytext=(5, 4), textcoords="offset points", color=colour, fontsize=9.5)
        _cross(every, row, colour)
        if isinstance(shown, str):
            text = fill(shown, 18, max_lines=8)
            pictures[place].text(0.5, 0.5, text, ha="center", va="center", fontsize=7)
        else:
            pictures[place].imshow(shown)
        pictures[place].set_title(f"{sign}  {fold_label(row.method)}", fontsize=8, loc="left", color=colour)
        pictures[place].set_xlabel(f"predicted {rating:.2f}", fontsize=8)
    for place, axes in enumerate(pictures):
        axes.set_xticks([])
        axes.set_yticks([])
        axes.set_visible(place < len(rows))
    images = rows[0].predicted.images
    for axes, title in ((single, "The picture below"), (every, f"Mean of {images} images, 95 %")):
        axes.set_title(title, fontsize=9.5, loc="left")
        axes.set_xlabel(words)
        axes.margins(0.15)
    single.set_ylabel("Predicted rating")
    return figure


def _cross(axes: Any, row: MethodPlace, colour: str) -> None:
    faint = {"color": colour, "linewidth": 1.2, "alpha": 0.6, "zorder": 2}
    if row.metric.interval:
        ends = [row.metric.interval.low, row.metric.interval.high]
        axes.plot(ends, [row.predicted.mean] * 2, **faint)
    if row.predicted.interval:
        ends = [row.predicted.interval.low, row.predicted.interval.high]
        axes.plot([row.metric.mean] * 2, ends, **faint)


def by_backbone(made: Sequence[Sweep]) -> Any:
    """A panel per explainer: its mean predicted rating on each backbone, with the interval."""
    figure, grid = panels(len(made), PREDICTED, height=2.4)
    for place, (axes, sweep) in enumerate(zip(grid, made, strict=False)):
        colour = OKABE_ITO[place % len(OKABE_ITO)]
        values = list(sweep.means.values())
        axes.plot(range(len(values)), [each.mean for each in values], "o-", color=colour, linewidth=1.4)
        for x, each in enumerate(values):
            if each.interval:
                ends = [each.interval.low, each.interval.high]
                axes.plot([x, x], ends, color=colour, linewidth=2.4, solid_capstyle="butt", alpha=0.5)
        title = f"{fold_label(sweep.explainer)}\n{values[0].images} images"
        axes.set_title(title, fontsize=9.5, loc="left", color=colour)
        axes.set_xticks(range(len(values)), [fold_label(name.replace("_", " ")) for name in sweep.means])
        axes.set_xlim(-0.4, len(values) - 0.6)
    figure.supylabel("Predicted rating", fontsize=9.5)
    return figure


def steering(rows: Sequence[Mapping[str, Any]], metrics: Sequence[str]) -> Any:
    """By lambda: the predicted rating of the map, and each metric of its faithfulness beside it; a line per
    picture, and their mean."""
    shown = ["predicted", *metrics]
    figure, grid = panels(len(shown), PREDICTED, alike=False, height=2.4)
    for place, (axes, name) in enumerate(zip(grid, shown, strict=False)):
        by: dict[str, list[tuple[float, float]]] = {}
        for row in rows:
            by.setdefault(row["picture"], []).append((row["lambda"], row[name]))
        for points in by.values():
            axes.plot(*zip(*points, strict=True), color="#BBBBBB", linewidth=0.8, zorder=1)
        shares = sorted({row["lambda"] for row in rows})
        mean = [sum(v for p in by.values() for s, v in p if s == share) / len(by) for share in shares]
        axes.plot(shares, mean, "o-", color=OKABE_ITO[place % len(OKABE_ITO)], linewidth=1.8, zorder=2)
        axes.set_title("Predicted rating" if place == 0 else name, fontsize=9.5, loc="left")
        axes.set_xticks(shares)
        axes.set_xlabel("lambda")
    return figure


def write_figure(figure: Any, folder: Path, name: str) -> None:
    """As SVG and PDF."""
    (folder / f"{name}.svg").write_bytes(as_svg_file(figure, name))
    (folder / f"{name}.pdf").write_bytes(as_pdf(figure))
