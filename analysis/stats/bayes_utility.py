"""A Bayesian estimate of Utility. Secondary: it decides nothing, and no star or word of a report rests on it.

The prior is fixed and the same for every study. The baseline's mean accuracy is uniform over 0 to 1; the
logarithm of Utility is normal around 0 with standard deviation PRIOR_SD, so that 95 % of the prior lie
between .38 and 2.66; no mean exceeds 1; the logarithm of each condition's variance is uniform (Jeffreys).
Given these, a mean has Student's t around the observed mean, and the ratio is integrated over a grid: nothing
is drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.stats import t as student

from analysis.stats import check
from analysis.stats.intervals_and_checks import Floats, Interval, Row, StatsError, finite, has_spread, row_of

PRIOR_SD = 0.5
NODES = 1201
REACH = 60.0
"""Standard errors around the mean that are covered closely; the rest of 0 to 1 evenly, and by logarithms."""
LEAST = 1e-6
"""Means below this count as it: a ratio needs a baseline above 0."""


@dataclass(frozen=True, slots=True)
class BayesUtility:
    """`utility`: the posterior's median. `interval`: equal tails. `p_above`: the posterior probability (0-1)
    of a Utility above 1. `prior_sd` is that of the logarithm of Utility. Secondary: decides nothing."""

    utility: float
    interval: Interval
    p_above: float
    prior_sd: float
    n: int
    n_baseline: int

    def table(self) -> list[Row]:
        """One row. `probability_above_1` is no p value."""
        row = row_of(self, "utility", "interval")
        row |= {"probability_above_1": self.p_above, "prior_sd_of_log": self.prior_sd}
        return [row | row_of(self, "n", "n_baseline")]


def bayes_utility(method: ArrayLike, baseline: ArrayLike, *, level: float = 0.95) -> BayesUtility:
    """The posterior of the ratio of two means of people's accuracies (n,) and (m,), each in 0-1.

    Secondary, decides nothing. Raises StatsError for fewer than two people, accuracies outside 0-1, a mean of
    0, or a group without variance, for which the posterior is not defined.
    """
    check.level(level)
    groups = [
        _check_accuracies(values, name) for values, name in ((method, "method"), (baseline, "baseline"))
    ]
    (grid, density), (grid_base, density_base) = (_mean(values) for values in groups)
    log_ratio = np.log(grid)[None, :] - np.log(grid_base)[:, None]
    # The density of the method's mean given the baseline's: that of the log ratio, over the mean.
    prior = np.exp(-0.5 * (log_ratio / PRIOR_SD) ** 2) / grid[None, :]
    inner = prior * density[None, :]
    steps = np.diff(grid)
    below = np.concatenate(
        [np.zeros((NODES, 1)), np.cumsum((inner[:, 1:] + inner[:, :-1]) / 2 * steps, axis=1)], axis=1
    )
    weights = density_base * _widths(grid_base)
    whole = float(weights @ below[:, -1])
    if not whole > 0:
        raise StatsError(
            "The posterior of Utility vanishes: the means are further apart than the prior allows; look at "
            "the raw responses."
        )

    def share(ratio: float) -> float:
        """The posterior probability of a Utility of at most `ratio`."""
        edge = np.clip(ratio * grid_base, grid[0], grid[-1])
        at = np.clip(np.searchsorted(grid, edge, side="right") - 1, 0, NODES - 2)
        rows = np.arange(NODES)
        width = np.maximum(grid[at + 1] - grid[at], 1e-300)
        part = (edge - grid[at]) / width
        parts = below[rows, at] + part * (below[rows, at + 1] - below[rows, at])
        return float(weights @ parts) / whole

    tail = (1 - level) / 2
    low, middle, high = (_quantile(share, q) for q in (tail, 0.5, 1 - tail))
    sizes = [values.size for values in groups]
    above = min(1.0, max(0.0, 1 - share(1.0)))
    return BayesUtility(middle, Interval(low, high, level), above, PRIOR_SD, sizes[0], sizes[1])


def _check_accuracies(values: ArrayLike, name: str) -> Floats:
    array = check.array(values, f"The {name}")
    if array.size < 2 or array.min() < 0 or array.max() > 1:
        raise StatsError(
            f"The {name} has {array.size} accuracies; give at least 2, each a share from 0 to 1, not percent."
        )
    if array.mean() < LEAST:
        raise StatsError(f"The mean of the {name} is below {LEAST:g}, so no ratio exists; look at the data.")
    if not has_spread(array):
        raise StatsError(f"The {name} has no variance, so no posterior exists; look at the raw responses.")
    return array


def _mean(values: Floats) -> tuple[Floats, Floats]:
    """Nodes (NODES,) in LEAST to 1 and the t density of the mean there, up to a factor."""
    centre, error = float(values.mean()), float(values.std(ddof=1)) / values.size**0.5
    third = NODES // 3
    near = centre + error * np.sinh(np.linspace(-np.arcsinh(REACH), np.arcsinh(REACH), NODES - 2 * third))
    # Near 0 the prior of the ratio is narrow in the mean itself. Nodes outside 0 to 1 are moved to the ends.
    spread = (np.linspace(LEAST, 1, third), np.geomspace(LEAST, 1, third), np.clip(near, LEAST, 1))
    nodes = np.sort(np.concatenate(spread))
    logs = student.logpdf((nodes - centre) / error, values.size - 1)
    return nodes, np.exp(logs - logs.max())


def _widths(nodes: Floats) -> Floats:
    """Weights of the trapezoid rule."""
    gaps = np.diff(nodes)
    return np.concatenate([[gaps[0] / 2], (gaps[1:] + gaps[:-1]) / 2, [gaps[-1] / 2]])


def _quantile(share: Callable[[float], float], at: float) -> float:
    low, high = -20.0, 20.0
    root = brentq(lambda log: share(float(np.exp(log))) - at, low, high, xtol=1e-10)
    return finite(float(np.exp(root)), "The posterior's quantile")
