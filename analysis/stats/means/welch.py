"""Independent groups with variances of their own: Welch's analysis of variance, Games and Howell's pairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import f as f_distribution
from scipy.stats import studentized_range
from scipy.stats import t as student

from analysis.stats import check
from analysis.stats.intervals_and_checks import Interval, Row, finite
from analysis.stats.means.effect_size import MeanDifference, hedges_g


@dataclass(frozen=True, slots=True)
class WelchAnova:
    """`f` with `df_between` and the approximated `df_within`, which is no whole number; `n` people."""

    f: float
    df_between: int
    df_within: float
    p: float
    groups: int
    n: int

    def table(self) -> list[Row]:
        """One row, by the names of the fields."""
        return [asdict(self)]


def welch_anova(groups: Mapping[str, ArrayLike]) -> WelchAnova:
    """Welch's F test that independent groups (n_i,) have one mean, with variances of their own (Welch 1951).

    Raises StatsError for fewer than two groups or values, missing values, or a group without variance.
    """
    arrays = check.groups(groups)
    check.spreads(arrays)
    k = len(arrays)
    sizes = np.array([x.size for x in arrays.values()], dtype=np.float64)
    means = np.array([x.mean() for x in arrays.values()])
    precision = sizes / np.array([x.var(ddof=1) for x in arrays.values()])
    weights = precision / precision.max()
    shares = weights / weights.sum()
    centre = float((shares * means).sum())
    between = float((precision * (means - centre) ** 2).sum()) / (k - 1)
    lack = float(((1 - shares) ** 2 / (sizes - 1)).sum())
    f = finite(between / (1 + 2 * (k - 2) / (k**2 - 1) * lack), "Welch's F")
    df = (k**2 - 1) / (3 * lack)
    return WelchAnova(f, k - 1, df, float(f_distribution.sf(f, k - 1, df)), k, int(sizes.sum()))


@dataclass(frozen=True, slots=True)
class WelchPairs:
    """All pairs, in the order of the groups."""

    pairs: tuple[MeanDifference, ...]
    level: float

    def table(self) -> list[Row]:
        """A row per pair."""
        return [pair.row() for pair in self.pairs]


def games_howell(groups: Mapping[str, ArrayLike], *, level: float = 0.95) -> WelchPairs:
    """All pairs of independent groups (n_i,) with separate variances (Games and Howell 1976): Welch's t and
    df, the studentised range over all groups. Raises StatsError as `welch_anova` and `hedges_g` do."""

    def tail(t: float, df: float, k: int) -> float:
        # The tail of scipy's double integral may be slightly outside 0-1.
        return float(np.clip(studentized_range.sf(t * np.sqrt(2), k, df), 0.0, 1.0))

    def width(df: float, k: int) -> float:
        return float(studentized_range.ppf(level, k, df)) / float(np.sqrt(2))

    return WelchPairs(_pairs(groups, tail, width, level), level)


def bonferroni_pairs(groups: Mapping[str, ArrayLike], *, level: float = 0.95) -> WelchPairs:
    """Welch's t tests of all pairs of independent groups (n_i,), p and intervals by Bonferroni over them.
    Raises StatsError as `games_howell` does."""

    def tail(t: float, df: float, k: int) -> float:
        return min(1.0, k * (k - 1) * float(student.sf(t, df)))

    def width(df: float, k: int) -> float:
        return float(student.isf((1 - level) / (k * (k - 1)), df))

    return WelchPairs(_pairs(groups, tail, width, level), level)


def _pairs(
    groups: Mapping[str, ArrayLike],
    tail: Callable[[float, float, int], float],
    width: Callable[[float, int], float],
    level: float,
) -> tuple[MeanDifference, ...]:
    """Every pair of k groups: `tail` of |t|, df and k is the p over all pairs, `width` of df and k the half
    interval in standard errors."""
    check.level(level)
    arrays = check.groups(groups)
    check.spreads(arrays)
    k = len(arrays)
    errors = {name: float(x.var(ddof=1)) / x.size for name, x in arrays.items()}
    pairs = []
    for first, second in combinations(arrays, 2):
        x, y = arrays[first], arrays[second]
        squared = errors[first] + errors[second]
        shares = [errors[name] / squared for name in (first, second)]
        df = 1 / (shares[0] ** 2 / (x.size - 1) + shares[1] ** 2 / (y.size - 1))
        se = float(np.sqrt(squared))
        difference = float(x.mean() - y.mean())
        size = hedges_g(x, y, level=level)
        t = difference / se
        p = finite(tail(abs(t), df, k), "The p")
        half = finite(width(df, k), "The width of the intervals") * se
        interval = Interval(difference - half, difference + half, level)
        pairs.append(MeanDifference(first, second, difference, se, df, t, p, interval, size))
    return tuple(pairs)
