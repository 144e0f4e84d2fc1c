"""Rank tests between two independent groups, and within people."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import mannwhitneyu, rankdata, wilcoxon
from scipy.stats import t as student

from analysis.stats import check
from analysis.stats.intervals_and_checks import ROUNDING, Interval, Row, StatsError, has_spread


@dataclass(frozen=True, slots=True)
class MannWhitney:
    """`u` counts pairs in which the first group is larger (ties half). `rank_biserial` = 2u/(n1 n2) - 1,
    in -1..1.
    """

    u: float
    p: float
    rank_biserial: float
    method: Literal["exact", "asymptotic"]

    def table(self) -> list[Row]:
        """One row, by the names of the fields."""
        return [asdict(self)]


def mann_whitney(first: ArrayLike, second: ArrayLike) -> MannWhitney:
    """Two-sided Mann-Whitney U of two samples (n1,), (n2,).

    Exact if there are no ties and both samples have at most 20 values; otherwise the normal approximation
    with continuity and tie correction. Raises StatsError for empty samples, missing values, or all values
    equal.
    """
    x, y = (check.array(values, "A sample of Mann-Whitney") for values in (first, second))
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


@dataclass(frozen=True, slots=True)
class SignedRank:
    """`w` is the sum of ranks of the pairs in which the first value is larger. `rank_biserial` = (w - its
    counterpart) / (their sum), in -1..1. `pairs` are those that differ; `equal` ones carry no rank.
    """

    w: float
    p: float
    rank_biserial: float
    pairs: int
    equal: int
    method: Literal["exact", "asymptotic"]

    def table(self) -> list[Row]:
        """One row, by the names of the fields."""
        return [asdict(self)]


def signed_rank(first: ArrayLike, second: ArrayLike) -> SignedRank:
    """Wilcoxon's two-sided signed-rank test of two values per person (n,), (n,); equal pairs are left out
    (Wilcoxon 1945).

    Exact if no differences are tied and at most 50 pairs differ; otherwise the normal approximation with
    continuity and tie correction. Raises StatsError for unequal lengths, missing values, or no difference.
    """
    x, y = (check.array(values, "A sample of the signed-rank test") for values in (first, second))
    if x.size != y.size:
        raise StatsError(f"The signed-rank test got {x.size} and {y.size} values; give two per person.")
    change = x - y
    limit = ROUNDING * float(max(np.abs(x).max(initial=0.0), np.abs(y).max(initial=0.0)))
    kept = change[np.abs(change) > limit]
    if not kept.size:
        raise StatsError(f"None of {x.size} pairs differs, so ranks say nothing; look at the raw responses.")
    # Differences of shares that are equal may differ by rounding: 0.3 - 0.2 and 0.2 - 0.1.
    sizes = np.abs(kept)
    kept = np.sign(kept) * np.round(sizes / sizes.max(), 12)
    ranks = rankdata(np.abs(kept))
    w = float(ranks[kept > 0].sum())
    tied = np.unique(np.abs(kept)).size < kept.size
    method: Literal["exact", "asymptotic"] = "asymptotic" if tied or kept.size > 50 else "exact"
    result = wilcoxon(kept, correction=True, method=method)
    total = kept.size * (kept.size + 1) / 2
    p = min(1.0, float(result.pvalue))
    return SignedRank(w, p, 2 * w / total - 1, kept.size, x.size - kept.size, method)


def signed_rank_interval(first: ArrayLike, second: ArrayLike, *, level: float = 0.95) -> Interval:
    """The interval of the matched rank-biserial correlation of two values per person (n,), (n,).

    (1 + r)/2 is a share, that of sums of two people's differences above 0; the interval is Wilson's, with the
    number of people that the jackknife variance of that share stands for, at least n/2 and at most 3 n. The
    usual ones with the error under no difference hold 67 % in place of 95 % beside a large correlation.
    Raises StatsError as `signed_rank` does, and for fewer than three pairs that differ.
    """
    result = signed_rank(first, second)
    n = result.pairs
    if n < 3:
        raise StatsError(f"{n} pairs differ; an interval needs at least 3.")
    change = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    size = float(np.abs(change).max())
    scaled = np.round(change / size, 12)
    kept = scaled[np.abs(scaled) > 1e-12]
    # The sum over j of the sign of d_i + d_j, without a table of all pairs.
    ordered = np.sort(kept)
    signs = kept.size - np.searchsorted(ordered, -kept, "right") - np.searchsorted(ordered, -kept, "left")
    means = (signs - np.sign(kept)) / max(kept.size - 1, 1)
    share = (1 + result.rank_biserial) / 2
    variance = float(means.var(ddof=1)) * (n - 1) / (n - 2) / n
    people = share * (1 - share) / variance if variance > 0 else 0.75 * n
    people = min(max(people, n / 2), 3.0 * n)
    z = float(student.ppf((1 + check.level(level)) / 2, n - 1))
    centre = (share + z**2 / (2 * people)) / (1 + z**2 / people)
    half = z / (1 + z**2 / people) * np.sqrt(share * (1 - share) / people + z**2 / (4 * people**2))
    low = -1.0 if share <= 0 else max(-1.0, float(2 * (centre - half) - 1))
    high = 1.0 if share >= 1 else min(1.0, float(2 * (centre + half) - 1))
    return Interval(low, high, level)
