"""Rank tests between two independent groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import mannwhitneyu

from analysis.stats.results import StatsError, checked_array, has_spread


@dataclass(frozen=True, slots=True)
class MannWhitney:
    """`u` counts pairs in which the first group is larger (ties half). `rank_biserial` = 2u/(n1 n2) - 1,
    in -1..1.
    """

    u: float
    p: float
    rank_biserial: float
    method: Literal["exact", "asymptotic"]


def mann_whitney(first: ArrayLike, second: ArrayLike) -> MannWhitney:
    """Two-sided Mann-Whitney U of two samples (n1,), (n2,).

    Exact if there are no ties and both samples have at most 20 values; otherwise the normal approximation
    with continuity and tie correction. Raises StatsError for empty samples, missing values, or all values
    equal.
    """
    x, y = (checked_array(values, "A sample of Mann-Whitney") for values in (first, second))
    if x.size == 0 or y.size == 0:
        raise StatsError(f"Mann-Whitney needs values in both groups, got {x.size} and {y.size}.")
    both = np.concatenate([x, y])
    if not has_spread(both):
        raise StatsError(
            "All values of both groups are equal, so ranks say nothing; look at the raw responses."
        )
    tied = np.unique(both).size < both.size
    method: Literal["exact", "asymptotic"] = "asymptotic" if tied or max(x.size, y.size) > 20 else "exact"
    result = mannwhitneyu(x, y, alternative="two-sided", method=method)
    u = float(result.statistic)
    return MannWhitney(u, float(result.pvalue), 2 * u / (x.size * y.size) - 1, method)
