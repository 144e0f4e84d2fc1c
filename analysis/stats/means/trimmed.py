"""Means without the extremes: Yuen's test of two groups, of all pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import trim_mean, ttest_ind

from analysis.stats import check
from analysis.stats.intervals_and_checks import Floats, Interval, Row, StatsError, finite, has_spread, row_of
from analysis.stats.means.tukey_and_corrections import holm

TRIM = 0.2
"""The share that is cut at each end (Wilcox 2017, Introduction to Robust Estimation, 4th ed.)."""
PEOPLE_MIN = 5
"""With fewer, 20 % of them is no person."""


@dataclass(frozen=True, slots=True)
class TrimmedDifference:
    """Trimmed mean of `first` less that of `second`. `p` is Holm's over all pairs; `interval` is of this pair
    alone."""

    first: str
    second: str
    difference: float
    t: float
    df: float
    p: float
    interval: Interval


@dataclass(frozen=True, slots=True)
class TrimmedDifferences:
    """All pairs, in the order of the groups."""

    pairs: tuple[TrimmedDifference, ...]

    def table(self) -> list[Row]:
        """A row per pair."""
        names = ("first", "second", "difference", "interval", "t", "df", "p")
        return [row_of(pair, *names) for pair in self.pairs]


def yuen(groups: Mapping[str, ArrayLike], *, level: float = 0.95) -> TrimmedDifferences:
    """Yuen's test (1974) of every two independent groups (n_i,): 20 % cut at each end, winsorised variances
    of their own. Raises StatsError for fewer than two groups, fewer than PEOPLE_MIN values in one, missing
    values, or a group whose middle has no spread."""
    check.level(level)
    arrays = check.groups(groups, least=PEOPLE_MIN)
    for name, values in arrays.items():
        cut = int(TRIM * values.size)
        if not has_spread(np.sort(values)[cut : values.size - cut]):
            raise StatsError(
                f"The middle of group '{name}' has no spread once {TRIM:.0%} are cut at each end; look at "
                "the raw responses."
            )
    made = {pair: _of_two(arrays[pair[0]], arrays[pair[1]], level) for pair in combinations(arrays, 2)}
    corrected = holm([p for _, _, _, p, _ in made.values()])
    return TrimmedDifferences(
        tuple(
            TrimmedDifference(*pair, difference, t, df, p, interval)
            for (pair, (difference, t, df, _, interval)), p in zip(made.items(), corrected, strict=True)
        )
    )


def _of_two(x: Floats, y: Floats, level: float) -> tuple[float, float, float, float, Interval]:
    scale = max(float(np.abs(x).max()), float(np.abs(y).max()))
    # Squares of the smallest and largest numbers would leave the range of numbers.
    test = ttest_ind(x / scale, y / scale, equal_var=False, trim=TRIM)
    ends = test.confidence_interval(level)
    difference = float(trim_mean(x, TRIM) - trim_mean(y, TRIM))
    low, high = (finite(scale * float(end), "The interval") for end in (ends.low, ends.high))
    interval = Interval(low, high, level)
    return difference, finite(float(test.statistic), "Yuen's t"), float(test.df), float(test.pvalue), interval
