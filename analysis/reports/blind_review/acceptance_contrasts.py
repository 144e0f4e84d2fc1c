"""Numbers of a review: shares of acceptance and contrasts of them, leads and tasks at random."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from analysis.any_table.formats import NONE, interval, number
from analysis.reports.blind_review.rows import LURE, TASK, Group, answered_reviews, of_group, real
from analysis.stats.acceptance_within_budget import within_budget
from analysis.stats.intervals_and_checks import Interval, StatsError, json_of
from analysis.stats.shares.pigeonhole import DRAWS, CrossedEstimate, Scale, pigeonhole

LEVEL = 0.95
MAIN_DRAWS = 10_000
"""For the main results; the others have DRAWS."""
INTERVALS = (
    "Intervals: 95 %, pigeonhole bootstrap-t: leads and tasks both drawn at random, each draw divided by its "
    "two-way clustered error. They speak of leads and tasks like these."
)
NO_REVIEWS = "there are no reviews of this kind"
AS_ABOVE = "Intervals as in the first table: leads and tasks both at random."
CANNOT = '"cannot say"'
Parts = Mapping[str, tuple[pd.Series, float]]
"""Cell -> which rows are in it, and its weight."""


@dataclass(frozen=True, slots=True)
class EstimateOrProblem:
    """An estimate, or a sentence on why there is none. A sentence may stand beside an estimate: it then says
    why that has no interval."""

    estimate: CrossedEstimate | None
    problem: str = ""

    @property
    def value(self) -> float | None:
        return self.estimate.estimate if self.estimate else None

    @property
    def p(self) -> float | None:
        return self.estimate.p() if self.estimate else None

    def ends(self, level: float = LEVEL) -> Interval | None:
        return self.estimate.interval(level) if self.estimate else None

    def as_json(self) -> dict[str, Any]:
        if self.estimate is None:
            return {"estimate": None, "interval": None, "p": None, "problem": self.problem}
        (row,) = self.estimate.table(LEVEL)
        return row

    def cells(self, digits: int = 1, scale: float = 100) -> tuple[str, str]:
        """The estimate and its interval as text, by default in percent or percentage points."""
        if self.value is None:
            return NONE, NONE
        return number(scale * self.value, digits), interval(self.ends(), digits, scale)


def contrast(
    rows: pd.DataFrame,
    parts: Parts,
    *,
    seed: int,
    budget_ms: float | None = None,
    scale: Scale = "share",
    draws: int = DRAWS,
) -> EstimateOrProblem:
    """The contrast of what is accepted within a budget (None: at any time)."""
    if not all(mask.any() for mask, _ in parts.values()):
        return EstimateOrProblem(None, NO_REVIEWS)
    cells = np.full(len(rows), "", dtype=object)
    for name, (mask, _) in parts.items():
        cells[mask.to_numpy(bool)] = name
    accepted = within_budget(rows["accepted"], rows["rt_ms"], budget_ms)
    weights = {name: weight for name, (_, weight) in parts.items()}
    try:
        people, items = list(rows["participant"]), list(rows["item"])
        made = pigeonhole(accepted, list(cells), people, items, weights, scale=scale, draws=draws, seed=seed)
    except StatsError as error:
        return EstimateOrProblem(None, str(error))
    return EstimateOrProblem(made, made.problem)


def share(
    rows: pd.DataFrame, mask: pd.Series, *, seed: int, budget_ms: float | None = None, draws: int = DRAWS
) -> EstimateOrProblem:
    """The share accepted of the rows chosen."""
    return contrast(rows, {"all": (mask, 1.0)}, seed=seed, budget_ms=budget_ms, scale="logit", draws=draws)


def difference(
    rows: pd.DataFrame,
    first: pd.Series,
    second: pd.Series,
    *,
    seed: int,
    budget_ms: float | None = None,
    draws: int = DRAWS,
) -> EstimateOrProblem:
    """The share accepted of the first rows less that of the second."""
    parts = {"first": (first, 1.0), "second": (second, -1.0)}
    return contrast(rows, parts, seed=seed, budget_ms=budget_ms, draws=draws)


@dataclass(frozen=True, slots=True)
class SignalRow:
    """One group of solutions with or without explanations, within a budget: shares accepted of right answers
    (`hits`), of wrong ones that the source gave (`errors`), of lures, and of both together (`false`)."""

    group: Group
    explained: bool
    budget_ms: float | None
    hits: EstimateOrProblem
    errors: EstimateOrProblem
    lures: EstimateOrProblem
    false: EstimateOrProblem
    d_prime: EstimateOrProblem
    criterion: EstimateOrProblem

    def as_json(self) -> dict[str, Any]:
        measures = ("hits", "errors", "lures", "false", "d_prime", "criterion")
        return json_of(self.group, "name", "label") | json_of(self, "explained", "budget_ms", *measures)


def signal_row(
    rows: pd.DataFrame, group: Group, explained: bool, budget_ms: float | None, seed: int
) -> SignalRow:
    """`rows`: all reviews of the study."""
    told = answered_reviews(rows)
    chosen = of_group(told, group) & (told["explained"] == explained)
    right, wrong = chosen & (told["right"] == 1), chosen & (told["right"] == 0)
    shares = {
        "hits": right,
        "errors": wrong & (told["use"] == TASK),
        "lures": wrong & (told["use"] == LURE),
        "false": wrong,
    }
    made = {name: share(told, mask, seed=seed, budget_ms=budget_ms) for name, mask in shares.items()}
    weights = {"d_prime": (1.0, -1.0), "criterion": (-0.5, -0.5)}
    for name, (of_hits, of_false) in weights.items():
        parts = {"right": (right, of_hits), "wrong": (wrong, of_false)}
        made[name] = contrast(told, parts, seed=seed, budget_ms=budget_ms, scale="probit")
    return SignalRow(group, explained, budget_ms, **made)


@dataclass(frozen=True, slots=True)
class UsefulnessRow:
    """What explanations change in the acceptance of one group's solutions within a budget: gains are shares
    with less shares without. `usefulness` is the gain in hits less the gain in false acceptances,
    `acceptance` the paper's p(with) - p(without) of real solutions, right or wrong."""

    group: Group
    budget_ms: float | None
    hits: EstimateOrProblem
    false: EstimateOrProblem
    usefulness: EstimateOrProblem
    acceptance: EstimateOrProblem

    def as_json(self) -> dict[str, Any]:
        measures = {"gain_hits": "hits", "gain_false": "false", "usefulness": "usefulness"}
        measures["paper_difference"] = "acceptance"
        return json_of(self.group, "name", "label") | json_of(self, "budget_ms", **measures)


def usefulness_row(rows: pd.DataFrame, group: Group, budget_ms: float | None, seed: int) -> UsefulnessRow:
    """`rows`: all reviews, or those of the first run alone."""
    told, solutions = answered_reviews(rows), real(rows)
    chosen, shown = of_group(told, group), told["explained"]
    right, wrong = chosen & (told["right"] == 1), chosen & (told["right"] == 0)
    hits = {"hits with": (right & shown, 1.0), "hits without": (right & ~shown, -1.0)}
    false = {"false with": (wrong & shown, -1.0), "false without": (wrong & ~shown, 1.0)}
    turned = {name: (mask, -weight) for name, (mask, weight) in false.items()}
    mine, explained = of_group(solutions, group), solutions["explained"]
    of_hits, of_false, both = (
        contrast(told, parts, seed=seed, budget_ms=budget_ms) for parts in (hits, turned, {**hits, **false})
    )
    paper = difference(solutions, mine & explained, mine & ~explained, seed=seed, budget_ms=budget_ms)
    return UsefulnessRow(group, budget_ms, of_hits, of_false, both, paper)


def words_of(budget_ms: float | None) -> str:
    """A budget as a person reads it."""
    return "no limit" if budget_ms is None else f"{budget_ms / 1000:g} s"


def problems(made: Iterable[tuple[str, EstimateOrProblem]]) -> tuple[str, ...]:
    """The sentences on what could not be computed, each with the names of what it is about."""
    about: dict[str, list[str]] = {}
    for name, told in made:
        if told.problem:
            about.setdefault(told.problem.rstrip("."), []).append(name)
    return tuple(f"{', '.join(dict.fromkeys(names))}: {text}." for text, names in about.items())
