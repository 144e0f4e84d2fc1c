"""Standardised differences of two independent groups and within people, with their intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import gammaln, nctdtr

from analysis.stats import check
from analysis.stats.intervals_and_checks import (
    ROUNDING,
    Interval,
    Row,
    StatsError,
    ends_of,
    has_spread,
    row_of,
)

T_MAX = 300.0
"""Above it the noncentral t distribution is not inverted; no answers of people differ so much."""


@dataclass(frozen=True, slots=True)
class HedgesG:
    """`g`: (mean of the first - mean of the second) / pooled standard deviation, corrected for small samples;
    without unit. `interval` by the noncentral t distribution."""

    g: float
    interval: Interval
    n_first: int
    n_second: int

    def table(self) -> list[Row]:
        """One row."""
        return [row_of(self)]


def hedges_g(first: ArrayLike, second: ArrayLike, *, level: float = 0.95) -> HedgesG:
    """Hedges' g of two independent groups (n1,), (n2,).

    d = difference / pooled SD; g = J d with the exact factor J = Gamma(m/2) / (sqrt(m/2) Gamma((m-1)/2)),
    m = n1 + n2 - 2 (Hedges 1981). The interval holds the noncentralities at which t is the upper and lower
    quantile, times J sqrt(1/n1 + 1/n2) (Steiger and Fouladi 1997). Equal variances are assumed. Raises
    StatsError for fewer than two values in a group, no spread within the groups, or |t| above T_MAX.
    """
    tail = (1 - check.level(level)) / 2
    x, y = (check.array(values, "A group of Hedges' g") for values in (first, second))
    if min(x.size, y.size) < 2:
        raise StatsError(f"Hedges' g needs at least 2 values per group, got {x.size} and {y.size}.")
    df = x.size + y.size - 2
    spread = float(np.sqrt((((x - x.mean()) ** 2).sum() + ((y - y.mean()) ** 2).sum()) / df))
    if not (has_spread(x) or has_spread(y)) or spread == 0:
        raise StatsError("Hedges' g needs some spread within the groups; look at the raw responses.")
    scale = float(np.sqrt(1 / x.size + 1 / y.size))
    d = float(x.mean() - y.mean()) / spread
    t = d / scale
    if abs(t) > T_MAX:
        raise StatsError(
            f"t = {t:g} is beyond {T_MAX:g}: there is next to no spread within the groups; look at "
            "the raw responses."
        )
    j = _small(df)
    low, high = (_noncentrality(t, df, quantile) * scale * j for quantile in (1 - tail, tail))
    return HedgesG(j * d, Interval(low, high, level), x.size, y.size)


@dataclass(frozen=True, slots=True)
class StandardisedChange:
    """`g_z`: mean difference within people / standard deviation of the differences, corrected for small
    samples. It grows with the correlation of the two values, so it is not compared with g between people."""

    g_z: float
    interval: Interval
    n: int

    def table(self) -> list[Row]:
        """One row."""
        return [row_of(self)]


def standardised_change(first: ArrayLike, second: ArrayLike, *, level: float = 0.95) -> StandardisedChange:
    """g_z of two values per person (n,), (n,): J(n - 1) t / sqrt(n), its interval as that of `hedges_g`.

    Raises StatsError for unequal lengths, fewer than two people, differences that are all equal, or |t| above
    T_MAX.
    """
    tail = (1 - check.level(level)) / 2
    x, y = (check.array(values, "A sample of g_z") for values in (first, second))
    if x.size != y.size or x.size < 2:
        raise StatsError(f"g_z got {x.size} and {y.size} values; give two per person, at least 2 people.")
    change = x - y
    spread = float(change.std(ddof=1))
    largest = float(max(np.abs(x).max(), np.abs(y).max()))
    if not has_spread(change) or spread <= ROUNDING * largest:
        raise StatsError("All differences are equal, so g_z is not defined; look at the raw responses.")
    scale, df = 1 / float(np.sqrt(x.size)), x.size - 1
    t = float(change.mean()) / spread / scale
    if abs(t) > T_MAX:
        raise StatsError(f"t = {t:g} is beyond {T_MAX:g}: there is next to no spread; see the raw responses.")
    low, high = (_noncentrality(t, df, quantile) * scale * _small(df) for quantile in (1 - tail, tail))
    return StandardisedChange(_small(df) * t * scale, Interval(low, high, level), x.size)


def _small(df: int) -> float:
    """Hedges' factor J; 0 with one degree of freedom, for which no mean exists."""
    return float(np.exp(gammaln(df / 2) - gammaln((df - 1) / 2)) / np.sqrt(df / 2)) if df > 1 else 0.0


def _noncentrality(t: float, df: int, quantile: float) -> float:
    """The noncentrality at which `t` is that quantile of the noncentral t distribution with `df`."""

    def excess(value: float) -> float:
        return float(nctdtr(df, value, t)) - quantile

    width = 1.0
    while width < 16 * T_MAX:
        low, high = excess(t - width), excess(t + width)
        if np.isnan(low + high):
            break
        if low > 0 > high:
            try:
                return float(brentq(excess, t - width, t + width, xtol=1e-10))
            except ValueError:  # nctdtr has no value at some places between
                break
        width *= 2
    raise StatsError(f"No noncentrality makes t = {t:g} the {quantile:g} quantile; use a level such as 0.95.")


@dataclass(frozen=True, slots=True)
class MeanDifference:
    """mean(`first`) - mean(`second`) of independent groups; `t` = difference / `se`. `p` and `interval` hold
    for all comparisons of their family at once. `size`: Hedges' g with its own interval, which is not
    simultaneous."""

    first: str
    second: str
    difference: float
    se: float
    df: float
    t: float
    p: float
    interval: Interval
    size: HedgesG

    def row(self) -> Row:
        """`low` and `high` are the ends of the difference, `g_low` and `g_high` those of Hedges' g."""
        row = row_of(self, "first", "second", "difference", "interval", "se", "df", "t", "p")
        return {**row, "g": self.size.g, **ends_of(self.size.interval, "g_")}
