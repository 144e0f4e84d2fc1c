"""The parts of a scorer that an ablation leaves out, and what it says of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from analysis.exports.delimited import write_rows
from analysis.preference.evaluation import SCORER, Evaluation
from analysis.preference.figures import PREDICTED
from analysis.preference.fitting import FitPlan
from analysis.reports.drawing.figures import OKABE_ITO, canvas
from stimuli.render.sentences import PASTA, REASONS, SentenceSpec


def _options(**changed: Any) -> Callable[[FitPlan], Mapping[str, Any]]:
    return lambda plan: {"options": (*plan.options, *changed.items())}


VARIATIONS: Mapping[str, Callable[[FitPlan], Mapping[str, Any]]] = {
    "whole": lambda plan: {},
    "target mean": lambda plan: {"target": "mean"},
    "target median": lambda plan: {"target": "median"},
    "without ranking": _options(rank=0.0),
    "without cosine": _options(similarity=0.0),
    "cosine as released": _options(similarity_over="released"),
    "output as released (ReLU)": _options(output="relu"),
    "columns as they are": _options(standardise=False),
    "one inner layer": _options(hidden=(64,)),
}
SENTENCES: Mapping[str, SentenceSpec] = {
    "5 concepts": replace(PASTA, top=5),
    "20 concepts": replace(PASTA, top=20),
    "concepts with sign": replace(PASTA, signed=True),
    "concepts as reasons": REASONS,
}
"""Of explanations by concepts: other forms of the sentence, which by itself names 15 without sign."""


def variations(plan: FitPlan) -> dict[str, FitPlan]:
    """The plan itself first, then the plan without each of its parts; the label only if it has one."""
    made = {name: replace(plan, **change(plan)) for name, change in VARIATIONS.items()}
    return made if plan.label == "none" else made | {"label left out": replace(plan, label="none")}


@dataclass(frozen=True, slots=True)
class VariationSummary:
    """Means over questions and runs: weighted kappa, and Spearman's correlation over the defined ones."""

    name: str
    kappa: float
    ranks: float | None
    low: float
    high: float


def summarise_variation(name: str, made: Evaluation) -> VariationSummary:
    """`low` and `high` are the least and the largest kappa of a question."""
    kappas = [cell.over.mean for cell in made.of("QWK", SCORER).values() if cell.over.mean is not None]
    ranks = [cell.over.mean for cell in made.of("Spearman", SCORER).values() if cell.over.mean is not None]
    mean = float(np.mean(ranks)) if ranks else None
    return VariationSummary(name, float(np.mean(kappas)), mean, min(kappas), max(kappas))


def figure_of(rows: Sequence[VariationSummary]) -> Any:
    """A point per variation, with the range over questions."""
    figure, axes = canvas(7.2, 1.0 + 0.32 * len(rows), PREDICTED)
    for place, row in enumerate(reversed(rows)):
        axes.plot([row.low, row.high], [place, place], color=OKABE_ITO[0], alpha=0.35, linewidth=3)
        axes.plot(row.kappa, place, "o", color=OKABE_ITO[0], markersize=6, markeredgecolor="white")
    axes.axvline(rows[0].kappa, color="#8C8C8C", linewidth=0.9, linestyle=(0, (4, 3)), zorder=0)
    axes.set_yticks(range(len(rows)), [row.name for row in reversed(rows)])
    axes.set_xlabel("Weighted kappa, mean and range over questions")
    return figure


def write(folder: Path, rows: Sequence[VariationSummary]) -> None:
    """ablation.csv with exact numbers."""
    columns = list(asdict(rows[0]))
    cells = (["" if value is None else str(value) for value in asdict(row).values()] for row in rows)
    write_rows(folder / "ablation.csv", columns, cells)
