"""How well items measure people, and raters agree on a number: split halves, ICC, item statistics."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import f as f_distribution

from analysis.stats import check
from analysis.stats.intervals_and_checks import (
    ROUNDING,
    Floats,
    Interval,
    Row,
    StatsError,
    finite,
    has_spread,
    row_of,
)
from analysis.stats.shares.proportions import wilson


@dataclass(frozen=True, slots=True)
class SplitHalf:
    """Mean over random halves of the items of 2 r / (1 + r), r the correlation of people's means in both
    halves. `low` and `high`: 2.5 % and 97.5 % of these halves hold less and more; no confidence interval, for
    people are not drawn anew. `undefined` halves have no spread between people."""

    reliability: float
    low: float
    high: float
    people: int
    items: int
    draws: int
    undefined: int

    def table(self) -> list[Row]:
        """One row, by the names of the fields."""
        return [asdict(self)]


def split_half(table: ArrayLike, *, draws: int = 1000, seed: int = 0) -> SplitHalf:
    """Split-half reliability of `table` (people, items) by Spearman and Brown's (1910) formula.

    With an odd number of items one half has one more. Halves with r at -1 count as undefined. Raises
    StatsError for fewer than three people or two items, missing values, or no defined half.
    """
    y = check.array(table, "The table of people and items", dimensions=2)
    people, items = y.shape
    if people < 3 or items < 2:
        raise StatsError(f"There are {people} people and {items} items; split halves need at least 3 and 2.")
    rng = np.random.default_rng(check.count(seed, "The seed"))
    values = []
    for _ in range(check.count(draws, "The number of draws", least=1)):
        order = rng.permutation(items)
        halves = (y[:, order[: items // 2]].mean(axis=1), y[:, order[items // 2 :]].mean(axis=1))
        if all(has_spread(half) and half.var() > 0 for half in halves):
            r = float(np.corrcoef(*halves)[0, 1])
            if r > -0.999:
                values.append(2 * r / (1 + r))
    if not values:
        raise StatsError("People do not differ in any half of the items, so there is no reliability to tell.")
    low, high = np.percentile(values, [2.5, 97.5])
    mean = finite(float(np.mean(values)), "The reliability")
    return SplitHalf(mean, float(low), float(high), people, items, int(draws), int(draws) - len(values))


@dataclass(frozen=True, slots=True)
class Intraclass:
    """One intraclass correlation by Shrout and Fleiss' (1979) name: "ICC(2,1)" a single rater, raters drawn
    at random, absolute agreement; "ICC(2,k)" the mean of the k raters; "ICC(3,1)" a single one of just these
    raters, consistency."""

    name: str
    icc: float
    interval: Interval


@dataclass(frozen=True, slots=True)
class IntraclassTable:
    """All three, of `targets` by `raters`."""

    correlations: tuple[Intraclass, ...]
    targets: int
    raters: int

    def table(self) -> list[Row]:
        """A row per correlation."""
        return [row_of(each) for each in self.correlations]


def intraclass(table: ArrayLike, *, level: float = 0.95) -> IntraclassTable:
    """Intraclass correlations of `table` (targets, raters), each target rated by all raters.

    Intervals by F (Shrout and Fleiss 1979; for ICC(2, .) with Satterthwaite's degrees of freedom). Raises
    StatsError for fewer than two targets or raters, missing values, targets that do not differ, or raters who
    agree to the last digit, for whom no interval exists.
    """
    tail = (1 + check.level(level)) / 2
    y = check.array(table, "The table of targets and raters", dimensions=2)
    n, k = y.shape
    if n < 2 or k < 2:
        raise StatsError(f"There are {n} targets and {k} raters; an ICC needs at least 2 of each.")
    scale = float(np.abs(y).max()) or 1.0
    rows, columns, rest = _mean_squares(y / scale)
    if not (rest > (4 * ROUNDING) ** 2 and rows > (4 * ROUNDING) ** 2):
        raise StatsError(
            "Targets do not differ or raters agree entirely, so no ICC is defined; see the data."
        )
    single = (rows - rest) / (rows + (k - 1) * rest + k * (columns - rest) / n)
    mean = (rows - rest) / (rows + (columns - rest) / n)
    consistent = (rows - rest) / (rows + (k - 1) * rest)
    df1, df2 = n - 1, (n - 1) * (k - 1)
    f = rows / rest
    low, high = f / f_distribution.ppf(tail, df1, df2), f * f_distribution.ppf(tail, df2, df1)
    third = Interval(float((low - 1) / (low + k - 1)), float((high - 1) / (high + k - 1)), level)
    ratio = columns / rest
    a = k * single / (n * (1 - single))
    b = 1 + k * single * (n - 1) / (n * (1 - single))
    between = k * columns + (k * n - k - n) * rest
    # There may be no degrees of freedom, and then there is no interval.
    with np.errstate(invalid="ignore", divide="ignore"):
        df = (a * ratio + b) ** 2 / ((a * ratio) ** 2 / (k - 1) + b**2 / df2)
        upper, lower = f_distribution.ppf(tail, df1, df), f_distribution.ppf(tail, df, df1)
        ends = (
            n * (rows - upper * rest) / (upper * between + n * rows),
            n * (lower * rows - rest) / (between + n * lower * rows),
        )
    low, high = (finite(float(end), "The interval of the ICC") for end in ends)
    stepped = Interval(_stepped_up(low, k), _stepped_up(high, k), level)
    made = (
        Intraclass("ICC(2,1)", single, Interval(low, high, level)),
        Intraclass("ICC(2,k)", mean, stepped),
        Intraclass("ICC(3,1)", consistent, third),
    )
    return IntraclassTable(made, n, k)


def _stepped_up(single: float, k: int) -> float:
    """The ICC of the mean of k raters, by Spearman and Brown; without bound from -1 / (k - 1) down."""
    rest = 1 + single * (k - 1)
    return k * single / rest if rest > ROUNDING else -math.inf


def _mean_squares(y: Floats) -> tuple[float, float, float]:
    """Between targets, between raters, and what is left."""
    n, k = y.shape
    centre = y.mean()
    rows, columns = y.mean(axis=1) - centre, y.mean(axis=0) - centre
    rest = y - centre - rows[:, None] - columns[None, :]
    return (
        float(k * (rows**2).sum() / (n - 1)),
        float(n * (columns**2).sum() / (k - 1)),
        float((rest**2).sum() / ((n - 1) * (k - 1))),
    )


@dataclass(frozen=True, slots=True)
class ItemStatistics:
    """`difficulty`: share of people who were right, with Wilson's interval. `discrimination`: correlation of
    the item with the person's mean over the other items; None without spread in either."""

    item: str
    people: int
    difficulty: float
    interval: Interval
    discrimination: float | None


@dataclass(frozen=True, slots=True)
class ItemTable:
    """In the order of the items."""

    items: tuple[ItemStatistics, ...]

    def table(self) -> list[Row]:
        """A row per item; `low` and `high` are the ends of the difficulty."""
        names = ("item", "people", "difficulty", "discrimination", "interval")
        return [row_of(row, *names) for row in self.items]


def item_statistics(table: ArrayLike, items: Sequence[str], *, level: float = 0.95) -> ItemTable:
    """Item statistics of `table` (people, items) of 1 and 0, NaN for an item that a person did not see.

    Raises StatsError for names that are not one per column, an item without answers, or other values.
    """
    check.level(level)
    y = check.array(table, "The table of people and items", dimensions=2, missing=True)
    seen = ~np.isnan(y)
    if (
        len(check.sequence(items, "The names")) != y.shape[1]
        or not seen.any(axis=0).all()
        or not np.isin(y[seen], (0, 1)).all()
    ):
        raise StatsError(
            f"There are {len(items)} names for {y.shape[1]} items; give one name each, 1 or 0 per answer, "
            "and no item without answers."
        )
    total, counts = np.where(seen, y, 0).sum(axis=1), seen.sum(axis=1)
    rows = []
    for at, name in enumerate(items):
        here = seen[:, at]
        right, people = int(y[here, at].sum()), int(here.sum())
        both = here & (counts > 1)
        others = (total[both] - y[both, at]) / (counts[both] - 1)
        link = None
        if has_spread(others) and has_spread(y[both, at]):
            link = float(np.corrcoef(y[both, at], others)[0, 1])
        ends = wilson(right, people, level=level)
        rows.append(ItemStatistics(str(name), people, right / people, ends, link))
    return ItemTable(tuple(rows))
