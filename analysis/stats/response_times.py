"""Response times: summaries on the log scale, the ex-Gaussian distribution, accuracy by speed."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize
from scipy.special import log_ndtr

from analysis.stats import check
from analysis.stats.intervals_and_checks import (
    Floats,
    Interval,
    Names,
    Row,
    StatsError,
    has_spread,
    mean_interval,
    row_of,
)

EX_GAUSSIAN_MIN = 40
"""With fewer times the three parameters are not told apart (Ratcliff 1979 names 100)."""
PART_MIN = 0.03
"""Of sigma and of tau in the standard deviation: a smaller part has no size that could be told."""


@dataclass(frozen=True, slots=True)
class LogSummary:
    """`geometric_mean` and `median` in the unit of the times; `interval` of the geometric mean, from
    Student's t of the logarithms; None if they have no spread. `log_sd`: of the natural logarithms."""

    n: int
    mean: float
    median: float
    geometric_mean: float
    log_sd: float
    interval: Interval | None

    def table(self) -> list[Row]:
        """One row; `low` and `high` are the ends of the geometric mean."""
        return [row_of(self)]


def log_summary(times: ArrayLike, *, level: float = 0.95) -> LogSummary:
    """Summary of times (n,) of one person each, all above 0. Raises StatsError for others or none."""
    y = _checked_times(times, 1)
    logs = np.log(y)
    ends = mean_interval(logs, level=level)
    interval = Interval(math.exp(ends.low), math.exp(ends.high), level) if ends and ends.high < 200 else None
    spread = float(logs.std(ddof=1)) if y.size > 1 else 0.0
    centre = float(np.exp(logs.mean()))
    return LogSummary(y.size, float(y.mean()), float(np.median(y)), centre, spread, interval)


@dataclass(frozen=True, slots=True)
class ExGaussian:
    """A normal part with mean `mu` and standard deviation `sigma`, plus an exponential part with mean `tau`,
    in the unit of the times. The mean of the whole is mu + tau, its variance sigma^2 + tau^2."""

    mu: float
    sigma: float
    tau: float
    log_likelihood: float
    n: int

    def table(self) -> list[Row]:
        """One row, by the names of the fields."""
        return [asdict(self)]


def ex_gaussian(times: ArrayLike) -> ExGaussian:
    """The most likely ex-Gaussian distribution of times (n,), started from their moments.

    Raises StatsError for fewer than EX_GAUSSIAN_MIN times, times of 0 or less, or times that are not skewed
    to the right or are nearly all tail, for which a part of the distribution vanishes.
    """
    y = _checked_times(times, EX_GAUSSIAN_MIN)
    spread = float(y.std())
    if not has_spread(y) or spread == 0:
        raise StatsError("All response times are equal, so they have no distribution; look at the raw times.")
    z = (y - y.mean()) / spread
    skew = float((z**3).mean())
    if skew <= 0:
        raise StatsError(
            f"The times are skewed to the left ({skew:.2f}), so there is no exponential part; use the "
            "summary of logarithms."
        )
    start = min(0.95, max(0.2, (skew / 2) ** (1 / 3)))

    def loss(values: Floats) -> float:
        mu, sigma, tau = float(values[0]), math.exp(float(values[1])), math.exp(float(values[2]))
        return -float(_log_density(z, mu, sigma, tau).sum())

    begin = np.array([-start, math.log(1 - start**2) / 2, math.log(start)])
    bounds = [(-20.0, 20.0), (-8.0, 3.0), (-8.0, 3.0)]
    best = minimize(loss, begin, method="L-BFGS-B", bounds=bounds, options={"maxiter": 1000, "ftol": 1e-13})
    mu, sigma, tau = float(best.x[0]), math.exp(float(best.x[1])), math.exp(float(best.x[2]))
    part = min(sigma, tau) / math.hypot(sigma, tau)
    if part < PART_MIN or not math.isfinite(best.fun):
        raise StatsError(
            f"The normal or the exponential part has {part:.3f} of the spread, less than {PART_MIN}: "
            "one part vanishes; use the summary of logarithms."
        )
    fit = -float(best.fun) - y.size * math.log(spread)
    return ExGaussian(float(y.mean()) + mu * spread, sigma * spread, tau * spread, fit, y.size)


def _log_density(y: Floats, mu: float, sigma: float, tau: float) -> Floats:
    """Of each time. The factor of the normal distribution is a logarithm, so that no tail is cut to 0."""
    shifted = (y - mu) / sigma - sigma / tau
    return np.asarray(-math.log(tau) + (sigma / tau) ** 2 / 2 - (y - mu) / tau + log_ndtr(shifted))


def _checked_times(times: ArrayLike, least: int) -> Floats:
    y = check.array(times, "The response times")
    if y.size < least:
        raise StatsError(f"There are {y.size} response times, at least {least} are needed; wait for more.")
    if y.min() <= 0:
        raise StatsError(f"A response time is {y.min():g}; give times above 0, in one unit.")
    return y


@dataclass(frozen=True, slots=True)
class SpeedBin:
    """The trials of one share of the times, the fastest first: means over people of their mean time and of
    their accuracy, with the interval of accuracy over people; None with one person or no spread."""

    bin: int
    people: int
    trials: int
    mean_time: float
    accuracy: float
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class SpeedAccuracy:
    """The conditional accuracy function: accuracy by speed within people."""

    bins: tuple[SpeedBin, ...]

    def table(self) -> list[Row]:
        """A row per bin; `low` and `high` are the ends of accuracy."""
        return [row_of(row) for row in self.bins]


def speed_accuracy(
    correct: ArrayLike, times: ArrayLike, people: Names, *, bins: int = 4, level: float = 0.95
) -> SpeedAccuracy:
    """Accuracy by quantiles of each person's own times: answers `correct` (n,), 1 or 0, `times` (n,) and
    `people` (n,). People with fewer trials than bins are left out. Raises StatsError if none remains, for
    lists of unequal length, or answers that are neither 0 nor 1.
    """
    check.level(level)
    y, x = check.array(correct, "The answers"), _checked_times(times, 1)
    person = check.codes(people, "people")
    count = check.count(bins, "The number of bins", least=2)
    if not y.size == x.size == person.size or not np.isin(y, (0, 1)).all():
        raise StatsError(
            f"There are {y.size} answers, {x.size} times and {person.size} people; give one of each per "
            "trial, the answers as 1 or 0."
        )
    order = np.lexsort((x, person))
    sizes = np.bincount(person)
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    place = np.empty(y.size, dtype=np.intp)
    place[order] = np.arange(y.size) - first[person[order]]
    chosen = np.minimum(place * count // sizes[person], count - 1)
    kept = np.flatnonzero(sizes >= count)
    if not kept.size:
        raise StatsError(f"No person has {count} trials; use fewer bins.")
    cell = person * count + chosen
    total = np.bincount(cell, minlength=sizes.size * count).reshape(-1, count)[kept]
    right, took = (np.bincount(cell, v, sizes.size * count).reshape(-1, count)[kept] / total for v in (y, x))
    made = [
        SpeedBin(
            at + 1, kept.size, int(total[:, at].sum()), float(took[:, at].mean()), float(right[:, at].mean()),
            mean_interval(right[:, at], level=level),
        )
        for at in range(count)
    ]  # fmt: skip
    return SpeedAccuracy(tuple(made))
