"""One-way analysis of variance between independent groups, with effect sizes that say what they divide by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.stats import f as f_distribution
from scipy.stats import ncf

from analysis.stats.results import Interval, StatsError, checked_groups, checked_level


@dataclass(frozen=True, slots=True)
class OneWayAnova:
    """The result of a one-way ANOVA.

    `eta_squared` is SS_between / SS_total; with one factor the partial eta squared is the same number and
    stands under its own name so that nobody has to guess. `omega_squared` is the less biased estimate (may be
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


@dataclass(frozen=True, slots=True)
class Summary:
    """A group known only by its size, mean and unbiased variance."""

    n: int
    mean: float
    variance: float


def one_way(groups: Mapping[str, ArrayLike], *, level: float = 0.95) -> OneWayAnova:
    """F test that all groups have the same mean; each group is float (n_i,), one value per person.

    Assumes independent people and equal variances. Use the blocked analysis where people share a plan. Raises
    StatsError for fewer than two groups, missing values or no variance within any group.
    """
    arrays = checked_groups(groups)
    summaries = [Summary(x.size, float(x.mean()), float(x.var(ddof=1))) for x in arrays.values()]
    return one_way_from_summaries(summaries, level=level)


def one_way_from_summaries(summaries: Sequence[Summary], *, level: float = 0.95) -> OneWayAnova:
    """The same test from sizes, means and unbiased variances, as a paper prints them."""
    if len(summaries) < 2:
        raise StatsError(f"An analysis of variance needs at least 2 groups, got {len(summaries)}.")
    sizes = np.array([s.n for s in summaries], dtype=np.float64)
    means = np.array([s.mean for s in summaries])
    total = int(sizes.sum())
    ss_between = float((sizes * (means - (sizes * means).sum() / total) ** 2).sum())
    ss_within = float(((sizes - 1) * np.array([s.variance for s in summaries])).sum())
    if not np.isfinite(ss_between + ss_within) or ss_within <= 0:
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
    """
    tail = (1 - checked_level(level)) / 2
    total = df_between + df_within + 1

    def share(quantile: float) -> float:
        if float(f_distribution.cdf(f, df_between, df_within)) < quantile:
            return 0.0
        high = 1.0
        while float(ncf.cdf(f, df_between, df_within, high)) > quantile:
            high *= 2
        noncentrality = float(brentq(lambda x: ncf.cdf(f, df_between, df_within, x) - quantile, 0.0, high))
        return noncentrality / (noncentrality + total)

    return Interval(share(1 - tail), share(tail), level)


def eta_squared_condition_by_session(groups: Mapping[str, ArrayLike]) -> float:
    """SS_condition / SS_total of the condition x session table; each group is float (n_i, sessions), no NaN.

    The denominator also holds what people and sessions (blocks) contribute, so this is smaller than the
    one-way eta squared of the same data. It is one reading of the eta squared printed by Colin et al. (2022),
    kept under its own name.
    """
    arrays = [np.atleast_2d(np.asarray(values, dtype=np.float64)) for values in groups.values()]
    everything = np.concatenate([a.ravel() for a in arrays]) if arrays else np.empty(0)
    if len(arrays) < 2 or not np.isfinite(everything).all():
        raise StatsError("The condition x session table needs at least 2 conditions and no missing cell.")
    centre = everything.mean()
    total = float(((everything - centre) ** 2).sum())
    if total == 0:
        raise StatsError(
            "All scores of the condition x session table are equal, so eta squared is not defined."
        )
    return float(sum(a.size * (a.mean() - centre) ** 2 for a in arrays)) / total
