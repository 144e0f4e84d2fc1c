"""Counts of yes and no: intervals of one proportion and of a difference, and rates that differ between
groups.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2, norm

from analysis.stats import check
from analysis.stats.intervals_and_checks import Interval, Row, StatsError, row_of


def wilson(count: int, total: int, *, level: float = 0.95) -> Interval:
    """Wilson's score interval of a proportion; stays in 0-1 and is defined at 0 and at `total` (Wilson
    1927).
    """
    if check.count(count, "The count") > check.count(total, "The total", least=1):
        raise StatsError(f"A proportion needs 0 <= count <= total and total >= 1, got {count} of {total}.")
    z = float(norm.ppf((1 + check.level(level)) / 2))
    share = count / total
    centre = (share + z**2 / (2 * total)) / (1 + z**2 / total)
    half = z / (1 + z**2 / total) * np.sqrt(share * (1 - share) / total + z**2 / (4 * total**2))
    low = 0.0 if count == 0 else max(0.0, float(centre - half))
    high = 1.0 if count == total else min(1.0, float(centre + half))
    return Interval(low, high, level)


def newcombe(
    count_first: int, total_first: int, count_second: int, total_second: int, *, level: float = 0.95
) -> Interval:
    """Newcombe's hybrid score interval of p_first - p_second for independent samples (Newcombe 1998,
    method 10).
    """
    first = wilson(count_first, total_first, level=level)
    second = wilson(count_second, total_second, level=level)
    p1, p2 = count_first / total_first, count_second / total_second
    low = p1 - p2 - float(np.hypot(p1 - first.low, second.high - p2))
    high = p1 - p2 + float(np.hypot(first.high - p1, p2 - second.low))
    return Interval(low, high, level)


@dataclass(frozen=True, slots=True)
class OddsRatio:
    """Odds of the first over odds of the second. `is_corrected`: .5 was added to each of the four counts,
    because one of them is 0 (Haldane 1956, Anscombe 1956)."""

    ratio: float
    interval: Interval
    is_corrected: bool

    def table(self) -> list[Row]:
        """One row."""
        return [{"odds_ratio": self.ratio, **row_of(self, "interval", "is_corrected")}]


def odds_ratio(
    count_first: int, total_first: int, count_second: int, total_second: int, *, level: float = 0.95
) -> OddsRatio:
    """The odds ratio of two independent samples with Woolf's (1955) interval, on the scale of its logarithm.

    Raises StatsError for counts beyond their totals, or totals of 0.
    """
    z = float(norm.ppf((1 + check.level(level)) / 2))
    cells = []
    for count, total in ((count_first, total_first), (count_second, total_second)):
        if check.count(count, "The count") > check.count(total, "The total", least=1):
            raise StatsError(f"An odds ratio needs 0 <= count <= total, got {count} of {total}.")
        cells += [int(count), int(total) - int(count)]
    is_corrected = min(cells) == 0
    a, b, c, d = (cell + 0.5 * is_corrected for cell in cells)
    centre, half = math.log(a * d / (b * c)), z * math.sqrt(1 / a + 1 / b + 1 / c + 1 / d)
    interval = Interval(math.exp(centre - half), math.exp(centre + half), level)
    return OddsRatio(a * d / (b * c), interval, is_corrected)


@dataclass(frozen=True, slots=True)
class RateComparison:
    """Whether a rate differs between groups.

    `method` is "chi-square", "permutation" or "none"; p is None if nothing varies.
    """

    statistic: float
    df: int
    p: float | None
    method: str


def compare_rates(
    counts: Sequence[int], totals: Sequence[int], *, seed: int, draws: int = 20_000
) -> RateComparison:
    """Tests that `counts` of `totals` have one common rate.

    Pearson's chi-square if every expected count is at least 5, else the conditional permutation test with
    the same statistic (seeded multivariate hypergeometric draws), which needs no large numbers. Groups of
    size 0 are left out. If the counts are all 0, or all equal to the totals, no rates can differ: p is None.
    """
    check.count(draws, "The number of draws", least=1)
    everybody = [check.count(total, "A total") for total in check.sequence(totals, "The totals")]
    if len(check.sequence(counts, "The counts")) != len(everybody) or any(
        check.count(count, "A count") > total for count, total in zip(counts, everybody, strict=True)
    ):
        raise StatsError(
            f"Counts {list(counts)} must lie between 0 and the totals {list(totals)}, one per group."
        )
    keep = [i for i, total in enumerate(everybody) if total > 0]
    k, n = np.array([int(counts[i]) for i in keep]), np.array([everybody[i] for i in keep])
    if n.sum() > check.COUNT_MAX:
        raise StatsError(
            f"The totals {list(totals)} add up to more than {check.COUNT_MAX}; compare a sample of them."
        )
    df = len(keep) - 1
    if df < 1 or k.sum() in (0, n.sum()):
        return RateComparison(0.0, max(df, 0), None, "none")
    rate = k.sum() / n.sum()

    def statistic(table: np.ndarray) -> np.ndarray:
        return np.asarray(((table - n * rate) ** 2 / (n * rate * (1 - rate))).sum(axis=-1))

    observed = float(statistic(k))
    if min((n * rate).min(), (n * (1 - rate)).min()) >= 5:
        return RateComparison(observed, df, float(chi2.sf(observed, df)), "chi-square")
    rng = np.random.default_rng(check.count(seed, "The seed"))
    drawn = statistic(rng.multivariate_hypergeometric(n, int(k.sum()), size=draws))
    p = (1 + int((drawn >= observed - 1e-9).sum())) / (draws + 1)
    return RateComparison(observed, df, p, "permutation")
