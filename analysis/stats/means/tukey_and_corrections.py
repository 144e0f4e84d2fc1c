"""Many comparisons at once: all pairs after a one-way ANOVA by Tukey's honestly significant difference with
Kramer's correction, and the corrections of any p by Holm and by Benjamini and Hochberg.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import studentized_range

from analysis.stats import check
from analysis.stats.intervals_and_checks import ROUNDING, Floats, Interval, Row, StatsError, finite, row_of


def holm(p_values: ArrayLike) -> tuple[float, ...]:
    """p-values (n,) corrected over all of them, in their order (Holm 1979). Raises StatsError for values
    outside 0-1."""
    p = _p_values(p_values)
    order = np.argsort(p, kind="stable")
    corrected = np.empty(p.size)
    corrected[order] = np.maximum.accumulate(np.minimum(1.0, p[order] * np.arange(p.size, 0, -1)))
    return tuple(map(float, corrected))


def bonferroni(p_values: ArrayLike) -> tuple[float, ...]:
    """p-values (n,) times their number, at most 1. Raises StatsError for values outside 0-1."""
    p = _p_values(p_values)
    return tuple(map(float, np.minimum(1.0, p * p.size)))


def benjamini_hochberg(p_values: ArrayLike) -> tuple[float, ...]:
    """p-values (n,) adjusted so that those below a limit hold at most that share of false discoveries, in
    their order (Benjamini and Hochberg 1995). Raises StatsError for values outside 0-1."""
    p = _p_values(p_values)
    order = np.argsort(-p, kind="stable")
    adjusted = np.empty(p.size)
    adjusted[order] = np.minimum.accumulate(np.minimum(1.0, p[order] * p.size / np.arange(p.size, 0, -1)))
    return tuple(map(float, adjusted))


def _p_values(p_values: ArrayLike) -> Floats:
    p = check.array(p_values, "The p-values")
    if p.size and not (p.min() >= 0 and p.max() <= 1):
        raise StatsError(f"The p-values go from {p.min():g} to {p.max():g}; give values from 0 to 1.")
    return p


@dataclass(frozen=True, slots=True)
class PairDifference:
    """mean(first) - mean(second), with the studentised range statistic, its p and a simultaneous interval."""

    first: str
    second: str
    difference: float
    q: float
    p: float
    interval: Interval


@dataclass(frozen=True, slots=True)
class TukeyKramer:
    """All pairs, in the order of the groups. The family-wise error rate over all pairs is 1 - level."""

    pairs: tuple[PairDifference, ...]
    groups: int
    df_within: int
    ms_within: float
    level: float

    def between(self, first: str, second: str) -> PairDifference:
        """The pair in either order, with the sign as asked for. Raises KeyError if there is no such pair."""
        for pair in self.pairs:
            if (pair.first, pair.second) == (first, second):
                return pair
            if (pair.second, pair.first) == (first, second):
                flipped = Interval(-pair.interval.high, -pair.interval.low, pair.interval.level)
                return PairDifference(first, second, -pair.difference, pair.q, pair.p, flipped)
        raise KeyError((first, second))

    def table(self) -> list[Row]:
        """A row per pair."""
        names = ("first", "second", "difference", "interval", "q")
        return [{**row_of(pair, *names), "df": self.df_within, "p": pair.p} for pair in self.pairs]


def tukey_kramer(groups: Mapping[str, ArrayLike], *, level: float = 0.95) -> TukeyKramer:
    """Tukey-Kramer over independent groups, each float (n_i,): q = |difference| / sqrt(MSE/2 (1/n_i +
    1/n_j)).

    Assumes equal variances. Raises StatsError as `one_way` does.
    """
    arrays = check.groups(groups)
    df_within = sum(x.size - 1 for x in arrays.values())
    ms_within = float(sum(((x - x.mean()) ** 2).sum() for x in arrays.values())) / df_within
    means = {name: float(x.mean()) for name, x in arrays.items()}
    sizes = {name: int(x.size) for name, x in arrays.items()}
    return tukey_kramer_from_summaries(means, sizes, ms_within=ms_within, df_within=df_within, level=level)


# A report asks for the same numbers of everybody and of those who were kept, who are often the same people.
@lru_cache(maxsize=1024)
def _range_tails(q: tuple[float, ...], groups: int, df: int) -> tuple[float, ...]:
    # The tail of scipy's double integral may be slightly outside 0-1.
    return tuple(np.clip(studentized_range.sf(np.array(q), groups, df), 0.0, 1.0).tolist())


@lru_cache(maxsize=1024)
def _range_width(level: float, groups: int, df: int) -> float:
    return float(studentized_range.ppf(level, groups, df))


def tukey_kramer_from_summaries(
    means: Mapping[str, float],
    sizes: Mapping[str, int],
    *,
    ms_within: float,
    df_within: int,
    level: float = 0.95,
) -> TukeyKramer:
    """The same from group means, sizes (at least 1 each) and the mean square within groups."""
    check.level(level)
    check.mapping(means, "The means")
    check.mapping(sizes, "The sizes")
    check.count(df_within, "The degrees of freedom within groups", least=1)
    largest = max(
        (abs(check.number(mean, f"The mean of '{name}'")) for name, mean in means.items()), default=0
    )
    least = (ROUNDING * largest) ** 2
    if not check.number(ms_within, "The mean square within") > least or len(means) < 2:
        raise StatsError(
            f"Tukey's test needs at least 2 groups and a mean square within above {least:g}, got "
            f"{len(means)} and {ms_within:g}; look at the raw responses."
        )
    if set(means) != set(sizes):
        raise StatsError(
            f"Means of {', '.join(means)} and sizes of {', '.join(sizes)}: name the same groups."
        )
    for name, size in sizes.items():
        check.count(size, f"The size of '{name}'", least=1)
    names = list(combinations(means, 2))
    differences = np.array([means[a] - means[b] for a, b in names])
    errors = np.sqrt(ms_within / 2 * np.array([1 / sizes[a] + 1 / sizes[b] for a, b in names]))
    q = np.abs(differences) / errors
    p = np.array(_range_tails(tuple(q.tolist()), len(means), df_within))
    width = finite(_range_width(float(level), len(means), df_within), "The studentised range")
    half = width * errors
    pairs = tuple(
        PairDifference(a, b, float(d), float(s), float(tail), Interval(float(d - h), float(d + h), level))
        for (a, b), d, s, tail, h in zip(names, differences, q, p, half, strict=True)
    )
    return TukeyKramer(pairs, len(means), df_within, ms_within, level)
