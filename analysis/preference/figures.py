"""Figures of what a scorer predicts: winners of the mixture, and what steering costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from analysis.reports.figures import INK, OKABE_ITO, Look, as_pdf, as_svg_file, canvas, panels

PREDICTED = Look({}, "predicted ratings: no person was asked, and a rating is not understanding")


def winners(wins: Mapping[str, float], images: int) -> Any:
    """A bar per method: the share of images that it wins."""
    order = sorted(wins, key=lambda name: wins[name])
    figure, axes = canvas(7.2, 1.0 + 0.3 * len(order), PREDICTED)
    axes.barh(order, [100 * wins[name] / images for name in order], color=OKABE_ITO[0], height=0.6)
    for place, name in enumerate(order):
        axes.text(100 * wins[name] / images + 0.6, place, f"{wins[name]:g}", va="center", color=INK)
    axes.set_xlabel(f"Images with the highest predicted rating (% of {images})")
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
