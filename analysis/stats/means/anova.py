"""One-way analysis of variance between independent groups, with effect sizes that say what they divide by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.stats import f as f_distribution
from scipy.stats import ncf

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

F_MAX = 1e8
"""Above it the noncentral F distribution cannot be inverted; the groups then differ ten thousand times as
much as the people within them, which no answers of people do."""
DOUBLINGS_MAX = 64


@dataclass(frozen=True, slots=True)
class OneWayAnova:
    """The result of a one-way ANOVA.

    `eta_squared` is SS_between / SS_total; with one factor the partial eta squared is the same number and
    has a field of its own so that no reader has to guess. `omega_squared` is the less biased estimate (may be
    negative). `eta_squared_interval` inverts the noncentral F distribution (Steiger 2004): eta squared =
    lambda / (lambda + N).
    """

    f: float
    df_between: int
    df_within: int
    p: float
    ss_between: float
    ss_within: float
    eta_squared: float
    partial_eta_squared: float
    omega_squared: float
    eta_squared_interval: Interval

    @property
    def ms_within(self) -> float:
        return self.ss_within / self.df_within

    def table(self) -> list[Row]:
        """One row; `low` and `high` are the ends of eta squared."""
        names = ("f", "df_between", "df_within", "p", "omega_squared", "eta_squared")
        return [row_of(self, *names) | ends_of(self.eta_squared_interval)]


@dataclass(frozen=True, slots=True)
class Summary:
    """A group known only by its size, mean and unbiased variance."""

    n: int
    mean: float
    variance: float


def one_way(groups: Mapping[str, ArrayLike], *, level: float = 0.95) -> OneWayAnova:
    """F test that all groups have the same mean; each group is float (n_i,), one value per person.

    Assumes independent people and equal variances. Use the blocked analysis if people share a plan. Raises
    StatsError for fewer than two groups, missing values, no variance within any group, or next to none beside
    the differences of the groups (F above F_MAX).
    """
    arrays = check.groups(groups)
    summaries = [Summary(x.size, float(x.mean()), float(x.var(ddof=1))) for x in arrays.values()]
    return one_way_from_summaries(summaries, level=level)


def one_way_from_summaries(summaries: Sequence[Summary], *, level: float = 0.95) -> OneWayAnova:
    """The same test from sizes, means and unbiased variances, as a paper prints them."""
    if not all(isinstance(s, Summary) for s in check.sequence(summaries, "The summaries")):
        raise StatsError(
            "The summaries must be of the type Summary; give n, mean and variance of each group."
        )
    if len(summaries) < 2:
        raise StatsError(f"An analysis of variance needs at least 2 groups, got {len(summaries)}.")
    sizes = np.array([check.count(s.n, "The size of a group", least=2) for s in summaries], dtype=np.float64)
    means = np.array([check.number(s.mean, "The mean of a group") for s in summaries])
    variances = np.array([check.number(s.variance, "The variance of a group") for s in summaries])
    if (variances < 0).any():
        raise StatsError(f"A variance is {variances.min():g}; it cannot be below 0: look at its source.")
    total = int(sizes.sum())
    ss_between = float((sizes * (means - (sizes * means).sum() / total) ** 2).sum())
    ss_within = float(((sizes - 1) * variances).sum())
    if ss_within <= total * (ROUNDING * float(np.abs(means).max())) ** 2:
        raise StatsError(
            f"The sum of squares within groups is {ss_within:g}; F needs a finite one above 0: look at "
            "the raw responses."
        )
    return _result(ss_between, ss_within, len(summaries) - 1, total - len(summaries), level)


def _result(ss_between: float, ss_within: float, df1: int, df2: int, level: float) -> OneWayAnova:
    ms_within = ss_within / df2
    f = ss_between / df1 / ms_within
    eta = ss_between / (ss_between + ss_within)
    return OneWayAnova(
        f=f,
        df_between=df1,
        df_within=df2,
        p=float(f_distribution.sf(f, df1, df2)),
        ss_between=ss_between,
        ss_within=ss_within,
        eta_squared=eta,
        partial_eta_squared=eta,
        omega_squared=(ss_between - df1 * ms_within) / (ss_between + ss_within + ms_within),
        eta_squared_interval=eta_squared_interval(f, df1, df2, level=level),
    )


def eta_squared_interval(f: float, df_between: int, df_within: int, *, level: float = 0.95) -> Interval:
    """Interval of the population eta squared from an observed F, by inverting the noncentral F distribution.

    The ends are noncentralities at which the observed F is the upper and the lower quantile; an end that does
    not exist is 0. Two-sided, so the low end may be 0 although F is significant at 1 - level one-sidedly.
    Raises StatsError for an F that is negative or above F_MAX, and for a level that leaves too thin a tail.
    """
    tail = (1 - check.level(level)) / 2
    df1 = check.count(df_between, "The degrees of freedom between groups", least=1)
    df2 = check.count(df_within, "The degrees of freedom within groups", least=1)
    if not 0 <= check.number(f, "F") <= F_MAX:
        raise StatsError(
            f"F = {f:g} has no interval of eta squared (limits 0 and {F_MAX:g}): there is next to no spread "
            "within the groups; look at the raw responses."
        )
    ends = [_noncentrality(f, df1, df2, quantile) for quantile in (1 - tail, tail)]
    low, high = (end / (end + df1 + df2 + 1) for end in ends)
    return Interval(low, high, level)


def _noncentrality(f: float, df1: int, df2: int, quantile: float) -> float:
    """The noncentrality at which `f` is that quantile; 0 if even the central F lies above it."""
    if float(f_distribution.cdf(f, df1, df2)) < quantile:
        return 0.0
    high = 1.0
    for _ in range(DOUBLINGS_MAX):
        reached = float(ncf.cdf(f, df1, df2, high))
        if reached <= quantile:
            return float(brentq(lambda x: float(ncf.cdf(f, df1, df2, x)) - quantile, 0.0, high))
        if np.isnan(reached):
            break
        high *= 2
    raise StatsError(f"No noncentrality makes F = {f:g} the {quantile:g} quantile; use a level such as 0.95.")


def eta_squared_condition_by_session(groups: Mapping[str, ArrayLike]) -> float:
    """SS_condition / SS_total of the condition x session table; each group is float (n_i, sessions), no NaN.

    The denominator also holds what people and sessions (blocks) contribute, so this is smaller than the
    one-way eta squared of the same data. It is one reading of the eta squared printed by Colin et al. (2022),
    kept under its own name.
    """
    arrays = [
        check.array(x, f"Condition '{name}'", dimensions=2)
        for name, x in check.mapping(groups, "The conditions").items()
    ]
    if len(arrays) < 2 or len({a.shape[1] for a in arrays}) > 1 or min(a.size for a in arrays) == 0:
        raise StatsError(
            "The condition x session table needs at least 2 conditions with people, the same sessions in "
            "each, and no missing cell; drop incomplete people first."
        )
    everything = np.concatenate([a.ravel() for a in arrays])
    centre = everything.mean()
    total = float(((everything - centre) ** 2).sum())
    if not has_spread(everything) or total == 0:
        raise StatsError(
            "All scores of the condition x session table are equal, so eta squared is not defined."
        )
    return float(sum(a.size * (a.mean() - centre) ** 2 for a in arrays)) / total
