"""Whether one group lies above or below what chance would give."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import ttest_1samp

from analysis.stats import check
from analysis.stats.intervals_and_checks import Interval, Row, ends_of, row_of
from analysis.stats.means.effect_size import StandardisedChange, standardised_change


@dataclass(frozen=True, slots=True)
class OneSample:
    """Mean of `n` people against `chance`; `interval` is that of the mean, `size` (mean - chance) / SD,
    corrected for small samples, with an interval of its own. `p` is two-sided."""

    n: int
    mean: float
    chance: float
    t: float
    df: int
    p: float
    interval: Interval
    size: StandardisedChange

    def table(self) -> list[Row]:
        """One row; `low` and `high` are the ends of the mean, `g_low` and `g_high` those of the size."""
        row = row_of(self, "n", "mean", "interval", "chance", "t", "df", "p")
        return [{**row, "g": self.size.g_z, **ends_of(self.size.interval, "g_")}]


def one_sample(values: ArrayLike, chance: float, *, level: float = 0.95) -> OneSample:
    """Student's t test that values (n,), one per person, have the mean `chance`, which is declared before the
    data are seen. Raises StatsError as `standardised_change` does."""
    check.level(level)
    y = check.array(values, "The sample")
    at = check.number(chance, "Chance")
    size = standardised_change(y, np.full(y.size, at), level=level)
    # About chance, for squares of large numbers would lose the difference.
    test = ttest_1samp(y - at, 0.0)
    ends = test.confidence_interval(level)
    interval = Interval(at + float(ends.low), at + float(ends.high), level)
    mean, t, p = float(y.mean()), float(test.statistic), float(test.pvalue)
    return OneSample(y.size, mean, at, t, y.size - 1, p, interval, size)
