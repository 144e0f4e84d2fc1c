"""What is accepted in time: a later decision counts as a rejection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from analysis.stats import check
from analysis.stats.intervals_and_checks import Floats, Interval, Names, StatsError
from analysis.stats.ratings.clustered_means import clustered_mean


@dataclass(frozen=True, slots=True)
class BudgetCurve:
    """The share accepted within each of `budgets_ms`, ascending, with its interval (None without spread), and
    the share accepted at any time."""

    budgets_ms: tuple[float, ...]
    shares: tuple[float, ...]
    intervals: tuple[Interval | None, ...]
    at_any_time: float

    def table(self) -> list[dict[str, object]]:
        """One row per budget."""
        return [
            {"budget_ms": budget, "share": share, "interval": ends.as_json() if ends else None}
            for budget, share, ends in zip(self.budgets_ms, self.shares, self.intervals, strict=True)
        ]


def within_budget(accepted: ArrayLike, rt_ms: ArrayLike, budget_ms: float | None) -> Floats:
    """1 for each of (n,) that was accepted with 0 < rt_ms <= budget_ms, else 0. A time that is missing (NaN)
    is in no budget. None: at any time, also at one that is not known. Raises StatsError for other answers
    than 0 and 1."""
    yes = check.array(accepted, "The answers")
    times = check.array(rt_ms, "The times", missing=True)
    if yes.size != times.size or not np.isin(yes, (0, 1)).all():
        raise StatsError(
            f"There are {yes.size} answers and {times.size} times; give a time for each, and 0 or 1."
        )
    if budget_ms is None:
        return yes.copy()
    limit = check.number(budget_ms, "The budget")
    # A missing time compares as false.
    return np.asarray(yes * ((times > 0) & (times <= limit)), dtype=np.float64)


def budget_curve(
    accepted: ArrayLike,
    rt_ms: ArrayLike,
    people: Names,
    items: Names,
    budgets_ms: Sequence[float],
    *,
    level: float = 0.95,
) -> BudgetCurve:
    """The whole curve. Intervals are pointwise, with two-way clustered errors (see `clustered`), cut at 0 and
    1. Raises StatsError for budgets that do not ascend, and as `within_budget`."""
    check.level(level)
    budgets = check.array(budgets_ms, "The budgets")
    if not budgets.size or (np.diff(budgets) <= 0).any():
        raise StatsError("The budgets must ascend, at least one of them; sort them and leave repeats out.")
    shares: list[float] = []
    intervals: list[Interval | None] = []
    for budget in budgets:
        told = clustered_mean(within_budget(accepted, rt_ms, float(budget)), people, items, level=level)
        shares.append(told.estimate)
        ends = told.interval
        intervals.append(Interval(max(0.0, ends.low), min(1.0, ends.high), level) if ends else None)
    at_any_time = float(within_budget(accepted, rt_ms, None).mean())
    return BudgetCurve(tuple(map(float, budgets)), tuple(shares), tuple(intervals), at_any_time)
