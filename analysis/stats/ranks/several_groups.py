"""Rank tests of more than two conditions, with their pairs: Kruskal-Wallis and Dunn, Friedman and Nemenyi."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.stats import chi2, norm, rankdata, studentized_range

from analysis.stats import check
from analysis.stats.intervals_and_checks import Floats, Interval, Row, StatsError, has_spread, row_of
from analysis.stats.means.tukey_and_corrections import holm

INFINITE_DF = np.inf


@dataclass(frozen=True, slots=True)
class RankPair:
    """`difference` of mean ranks, first - second; `statistic` is z (Dunn) or q (Nemenyi); `p` is corrected
    over all pairs. `dominance` in -1..1 is P(first larger) - P(second larger) with its own interval: of
    independent people the rank-biserial correlation (Cliff's delta), else of a person's two values."""

    first: str
    second: str
    difference: float
    statistic: float
    p: float
    dominance: float
    interval: Interval


@dataclass(frozen=True, slots=True)
class RankTest:
    """`statistic` is H or Friedman's chi-square, corrected for ties, with `df` and the large-sample `p`.
    `effect` is epsilon squared (H / (n - 1)) or Kendall's W, both 0-1."""

    statistic: float
    df: int
    p: float
    effect: float
    n: int
    mean_ranks: dict[str, float]
    pairs: tuple[RankPair, ...]

    def table(self) -> list[Row]:
        """A row per pair."""
        return [
            row_of(pair, "first", "second")
            | {"rank_difference": pair.difference}
            | row_of(pair, "statistic", "p", "dominance", "interval")
            for pair in self.pairs
        ]


def kruskal_wallis(groups: Mapping[str, ArrayLike], *, level: float = 0.95) -> RankTest:
    """Kruskal and Wallis' (1952) test of independent groups (n_i,), with Dunn's (1964) pairs, by Holm.

    Raises StatsError for fewer than two groups or values, missing values, or no spread.
    """
    check.level(level)
    arrays = check.groups(groups)
    everything = np.concatenate(list(arrays.values()))
    n = everything.size
    ranks = rankdata(everything)
    ties = _ties(everything)
    sizes = {name: x.size for name, x in arrays.items()}
    starts = np.concatenate([[0], np.cumsum(list(sizes.values()))])
    means = {
        name: float(ranks[start : start + sizes[name]].mean())
        for name, start in zip(arrays, starts, strict=False)
    }
    spread = n * (n + 1) / 12 * (1 - ties / (n**3 - n))
    h = sum(sizes[g] * (means[g] - (n + 1) / 2) ** 2 for g in arrays) / spread
    df = len(arrays) - 1
    names = list(combinations(arrays, 2))
    z = [(means[a] - means[b]) / float(np.sqrt(spread * (1 / sizes[a] + 1 / sizes[b]))) for a, b in names]
    p = holm([2 * float(norm.sf(abs(value))) for value in z])
    pairs = []
    for (a, b), value, tail in zip(names, z, p, strict=True):
        effect = _dominance(arrays[a], arrays[b])
        ends = rank_biserial_interval(effect, sizes[a], sizes[b], level=level)
        pairs.append(RankPair(a, b, means[a] - means[b], value, tail, effect, ends))
    return RankTest(float(h), df, float(chi2.sf(h, df)), float(h) / (n - 1), n, means, tuple(pairs))


def friedman(table: ArrayLike, conditions: Sequence[str], *, level: float = 0.95) -> RankTest:
    """Friedman's (1937) test of `table` (people, conditions), with Nemenyi's (1963) pairs.

    Raises StatsError for missing values, names that are not one per column, fewer than three conditions or
    two people, or people who never tell conditions apart.
    """
    check.level(level)
    y = check.array(table, "The table of people and conditions", dimensions=2)
    n, k = y.shape
    names = [str(name) for name in check.sequence(conditions, "The conditions")]
    if len(set(names)) != k or len(names) != k or k < 3 or n < 2:
        raise StatsError(
            f"There are {n} people, {k} conditions and {len(set(names))} names; give at least 2 people and 3 "
            "conditions, each with a name of its own. Two conditions are compared by the signed-rank test."
        )
    if not any(has_spread(row) for row in y):
        raise StatsError("Every person's values are equal, so ranks say nothing; look at the raw responses.")
    ranks = rankdata(y, axis=1)
    means = ranks.mean(axis=0)
    ties = sum(_ties(row) for row in y)
    shrink = 1 - ties / (n * (k**3 - k))
    statistic = 12 * n / (k * (k + 1)) * float(((means - (k + 1) / 2) ** 2).sum()) / shrink
    pairs = []
    for i, j in combinations(range(k), 2):
        difference = float(means[i] - means[j])
        q = abs(difference) / float(np.sqrt(k * (k + 1) / (12 * n)))
        # The tail of scipy's integral may be slightly outside 0-1.
        p = float(np.clip(studentized_range.sf(q, k, INFINITE_DF), 0.0, 1.0))
        effect, ends = _within_pair(y[:, i], y[:, j], level)
        pairs.append(RankPair(names[i], names[j], difference, q, p, effect, ends))
    by_name = dict(zip(names, map(float, means), strict=True))
    p = float(chi2.sf(statistic, k - 1))
    return RankTest(statistic, k - 1, p, statistic / (n * (k - 1)), n, by_name, tuple(pairs))


def rank_biserial_interval(
    rank_biserial: float, n_first: int, n_second: int, *, level: float = 0.95
) -> Interval:
    """The interval of the rank-biserial correlation of two independent groups, from Newcombe's (2006, part 2,
    method 5) of P(first larger) + half of P(equal): the values theta that lie within z standard errors, the
    error taken at theta. Stays in -1..1 and is defined at both. Raises StatsError outside of them.
    """
    z = float(norm.ppf((1 + check.level(level)) / 2))
    first = check.count(n_first, "The size of the first group", least=1)
    second = check.count(n_second, "The size of the second group", least=1)
    if not -1 <= check.number(rank_biserial, "The rank-biserial correlation") <= 1:
        raise StatsError(f"A rank-biserial correlation is {rank_biserial:g}; give one from -1 to 1.")
    theta = (rank_biserial + 1) / 2
    more = (first + second) / 2 - 1

    def excess(value: float) -> float:
        growth = 1 + more * ((1 - value) / (2 - value) + value / (1 + value))
        return (value - theta) ** 2 - z**2 * value * (1 - value) * growth / (first * second)

    low = 0.0 if theta == 0 else float(brentq(excess, 0.0, theta)) if excess(0.0) > 0 else 0.0
    high = 1.0 if theta == 1 else float(brentq(excess, theta, 1.0)) if excess(1.0) > 0 else 1.0
    return Interval(2 * low - 1, 2 * high - 1, level)


def _within_pair(x: Floats, y: Floats, level: float) -> tuple[float, Interval]:
    """P(first larger) - P(second larger) of people's two values, and Agresti and Min's (2005) interval of a
    difference of paired shares: Wald's after half a person was added to each of the four outcomes."""
    n = x.size
    more, fewer = int((x > y).sum()), int((x < y).sum())
    z = float(norm.ppf((1 + level) / 2))
    total = n + 2
    b, c = (more + 0.5) / total, (fewer + 0.5) / total
    half = z * float(np.sqrt((b + c - (b - c) ** 2) / total))
    return (more - fewer) / n, Interval(max(-1.0, b - c - half), min(1.0, b - c + half), level)


def _dominance(x: Floats, y: Floats) -> float:
    """P(x larger) - P(y larger) over all pairs, which are counted, not stored."""
    ordered = np.sort(y)
    more = int(np.searchsorted(ordered, x, "left").sum())
    fewer = x.size * y.size - int(np.searchsorted(ordered, x, "right").sum())
    return (more - fewer) / (x.size * y.size)


def _ties(values: Floats) -> float:
    """Sum of t cubed - t over the ties."""
    counts = np.unique(values, return_counts=True)[1].astype(np.float64)
    return float((counts**3 - counts).sum())
