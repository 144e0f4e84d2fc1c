"""How far raters of the same things agree: alpha, weighted kappa, the distance to the usual answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata

from analysis.stats import check
from analysis.stats.intervals_and_checks import Floats, Interval, Row, StatsError, finite, has_spread, row_of

Metric = Literal["nominal", "ordinal", "interval"]
Weights = Literal["linear", "quadratic"]
DRAWS_MAX = 20_000
"""More take longer than a person waits, and move no digit that is printed."""


@dataclass(frozen=True, slots=True)
class Alpha:
    """`alpha` is 1 for perfect agreement, 0 for none beyond chance, and may be negative. `units` have at
    least two ratings, `ratings` lie in these. `interval`: percentile bootstrap over units; None if not asked.
    """

    alpha: float
    units: int
    ratings: int
    interval: Interval | None = None

    def table(self) -> list[Row]:
        """One row."""
        return [row_of(self, "alpha", "interval", "units", "ratings")]


def krippendorff_alpha(
    ratings: ArrayLike,
    levels: Sequence[float],
    metric: Metric = "ordinal",
    *,
    draws: int = 0,
    seed: int = 0,
    level: float = 0.95,
) -> Alpha:
    """Krippendorff's alpha of `ratings` (units, raters), NaN for a missing rating; `levels` in their
    order.

    Units with fewer than two ratings say nothing and are left out. `draws` > 0 adds the interval.
    Raises StatsError for another metric, a rating outside the levels, no unit with two ratings, or one and
    the same rating everywhere, for which alpha is not defined. Source: Krippendorff (2011), Computing
    Krippendorff's alpha.
    """
    check.word(metric, "The metric", get_args(Metric))
    values = _levels(levels)
    counts = _count_levels(ratings, values)
    counts = counts[counts.sum(axis=1) >= 2]
    if not len(counts):
        raise StatsError("No unit has two ratings, so agreement is not defined; wait for more raters.")
    alpha = _alpha(counts, values, metric)
    if alpha is None:
        raise StatsError("All ratings are equal, so alpha is not defined; look at the raw ratings.")
    interval = None
    if count := _draws(draws, least=0):
        rng = np.random.default_rng(check.count(seed, "The seed"))
        chosen = (counts[rng.integers(0, len(counts), len(counts))] for _ in range(count))
        drawn = [value for rows in chosen if (value := _alpha(rows, values, metric)) is not None]
        tail = 100 * (1 - check.level(level)) / 2
        if drawn:
            low, high = np.percentile(drawn, [tail, 100 - tail])
            interval = Interval(float(low), float(high), level)
    return Alpha(alpha, len(counts), int(counts.sum()), interval)


def weighted_kappa(
    first: ArrayLike, second: ArrayLike, levels: Sequence[float], weights: Weights = "quadratic"
) -> float:
    """Cohen's weighted kappa of two raters' values (n,), by the places of the given levels; 0 if one of them
    never varies. Raises StatsError for another weighting, values outside the levels, no pairs, or both
    constant at the same value."""
    check.word(weights, "The weighting", get_args(Weights))
    values = _levels(levels)
    x, y = _pairs(first, second)
    table = np.zeros((values.size, values.size))
    np.add.at(table, (_places(x, values), _places(y, values)), 1.0)
    distance = np.abs(np.subtract.outer(np.arange(values.size), np.arange(values.size))).astype(np.float64)
    disagreement = distance if weights == "linear" else distance**2
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    by_chance = float((disagreement * expected).sum())
    if by_chance == 0:
        raise StatsError("Both raters gave one and the same value, so kappa is not defined.")
    return 1 - float((disagreement * table).sum()) / by_chance


def spearman(first: ArrayLike, second: ArrayLike) -> float:
    """Spearman's rank correlation of two raters' values (n,), ties by mean rank. Raises StatsError if one of
    them is constant."""
    x, y = _pairs(first, second)
    if not (has_spread(x) and has_spread(y)):
        raise StatsError("A rank correlation needs values that differ in both samples.")
    return finite(float(np.corrcoef(rankdata(x), rankdata(y))[0, 1]), "The rank correlation")


def modes(ratings: ArrayLike) -> Floats:
    """The most frequent rating of each unit of `ratings` (units, raters); of equally frequent ones the
    smallest. Raises StatsError for a unit without ratings."""
    table = check.array(ratings, "The ratings", dimensions=2, missing=True)
    empty = np.flatnonzero(np.isnan(table).all(axis=1))
    if empty.size:
        raise StatsError(f"Unit {empty[0]} has no rating; leave it out.")
    levels = np.unique(table[~np.isnan(table)])
    return _usual(_count_levels(table, levels), levels)


@dataclass(frozen=True, slots=True)
class HumanRow:
    """One rater against the usual answer, mean over draws of one rater per unit: squared distance, quadratic
    weighted kappa, rank correlation. `sd_*` over the draws. Undefined draws are left out and counted."""

    mse: float
    kappa: float
    spearman: float
    sd_mse: float
    sd_kappa: float
    sd_spearman: float
    units: int
    undefined: int

    def table(self) -> list[Row]:
        """One row, by the names of the fields."""
        return [asdict(self)]


def human_row(
    ratings: ArrayLike,
    levels: Sequence[float],
    *,
    leave_one_out: bool,
    answers: ArrayLike | None = None,
    draws: int = 200,
    seed: int = 0,
) -> HumanRow:
    """One rater drawn per unit of `ratings` (units, raters) against the mode: of all raters, the drawn one
    too (as PASTA prints it; too kind), or of the others (`leave_one_out`).

    With `answers` (units,), a rater's who is none of these, that rater is scored in place of the one drawn,
    against the very same modes. Raises StatsError if no unit has enough ratings or every draw is undefined.
    """
    values = _levels(levels)
    table = check.array(ratings, "The ratings", dimensions=2, missing=True)
    counts = _count_levels(table, values)
    enough = (~np.isnan(table)).sum(axis=1) >= (2 if leave_one_out else 1)
    another = None if answers is None else _answers(answers, len(table), values)[enough]
    table, counts = table[enough], counts[enough]
    if len(table) < 2:
        raise StatsError(f"{len(table)} units have enough ratings; a human row needs at least 2.")
    rng = np.random.default_rng(check.count(seed, "The seed"))
    units = np.arange(len(table))
    rows: list[tuple[float, float, float]] = []
    undefined = 0
    for _ in range(_draws(draws, least=1)):
        # The rater of each unit: the largest of random numbers given to those who rated.
        drawn = np.where(np.isnan(table), -1.0, rng.random(table.shape)).argmax(axis=1)
        answer = table[units, drawn]
        others = counts.copy()
        if leave_one_out:
            others[units, _places(answer, values)] -= 1
        usual = _usual(others, values)
        answer = answer if another is None else another
        try:
            row = (float(((answer - usual) ** 2).mean()), weighted_kappa(answer, usual, levels),
                   spearman(answer, usual))  # fmt: skip
        except StatsError:
            undefined += 1
            continue
        rows.append(row)
    if not rows:
        raise StatsError("The raters or the usual answers never vary, so a human row is not defined.")
    means, sds = np.mean(rows, axis=0), np.std(rows, axis=0, ddof=1 if len(rows) > 1 else 0)
    mse, kappa, rank = map(float, means)
    sd_mse, sd_kappa, sd_rank = map(float, sds)
    return HumanRow(mse, kappa, rank, sd_mse, sd_kappa, sd_rank, len(table), undefined)


def _answers(answers: ArrayLike, units: int, values: Floats) -> Floats:
    made = check.array(answers, "The answers")
    if made.size != units:
        raise StatsError(f"There are {made.size} answers to {units} units; give one for each.")
    _places(made, values)
    return made


def _usual(counts: Floats, levels: Floats) -> Floats:
    """The most frequent level of each unit (units,); the first of the largest counts is the smallest
    level."""
    return np.asarray(levels[counts.argmax(axis=1)], dtype=np.float64) if len(counts) else np.empty(0)


def _levels(levels: Sequence[float]) -> Floats:
    values = check.array(levels, "The levels")
    if values.size < 2 or (np.diff(values) <= 0).any():
        raise StatsError(f"The levels {list(levels)} must be at least 2, in ascending order.")
    return values


def _places(values: Floats, levels: Floats) -> np.ndarray:
    places = np.minimum(np.searchsorted(levels, values), levels.size - 1)
    wrong = values[levels[places] != values]
    if wrong.size:
        raise StatsError(f"{wrong[0]:g} is none of the levels {', '.join(f'{value:g}' for value in levels)}.")
    return places


def _draws(draws: int, *, least: int) -> int:
    if check.count(draws, "The number of draws", least=least) > DRAWS_MAX:
        raise StatsError(f"{draws:,} draws are too many; ask for at most {DRAWS_MAX:,}.")
    return int(draws)


def _pairs(first: ArrayLike, second: ArrayLike) -> tuple[Floats, Floats]:
    x, y = (check.array(values, "A rater") for values in (first, second))
    if x.size != y.size or not x.size:
        raise StatsError(f"The raters have {x.size} and {y.size} values; give the same things, at least one.")
    return x, y


def _count_levels(ratings: ArrayLike, levels: Floats) -> Floats:
    """How often each unit got each level (units, levels)."""
    table = check.array(ratings, "The ratings", dimensions=2, missing=True)
    unit, _ = np.nonzero(~np.isnan(table))
    counts = np.zeros((len(table), levels.size))
    np.add.at(counts, (unit, _places(table[~np.isnan(table)], levels)), 1.0)
    return counts


def _alpha(counts: Floats, levels: Floats, metric: Metric) -> float | None:
    sizes = counts.sum(axis=1, keepdims=True)
    # Every ordered pair of ratings within a unit, each unit weighted by 1 / (ratings - 1).
    coincidence = (counts / (sizes - 1)).T @ counts - np.diag((counts / (sizes - 1)).sum(axis=0))
    totals = coincidence.sum(axis=1)
    n = float(totals.sum())
    distance = _distance(totals, levels, metric)
    expected = float((distance * np.outer(totals, totals)).sum() / (n - 1))
    if expected == 0:
        return None
    return 1 - float((distance * coincidence).sum()) / expected


def _distance(totals: Floats, levels: Floats, metric: Metric) -> Floats:
    """The squared difference of two levels (levels, levels)."""
    if metric == "nominal":
        return 1.0 - np.eye(levels.size)
    if metric == "interval":
        return np.subtract.outer(levels, levels) ** 2
    # All ratings between two levels, the ends by half.
    middle = np.cumsum(totals) - totals / 2
    return np.asarray(np.subtract.outer(middle, middle) ** 2)
