"""Power of the rank tests between two conditions, for scores that count right answers, by simulation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta, norm, rankdata

from analysis.stats import check
from analysis.stats.intervals_and_checks import Floats, StatsError

STUDIES = 2000
"""Simulated studies per figure: its standard error is at most .011."""
PEOPLE_MAX = 1000
TESTS_MAX = 200
SPREAD_MIN = 1e-6
"""A smaller spread is none: a score counts whole answers."""


def rank_power(
    shares: Sequence[float],
    tests: int,
    people: int,
    *,
    spread: float = 0.0,
    within: bool = False,
    alpha: float = 0.05,
) -> float:
    """Probability (0-1) that two conditions are told apart at `alpha`, two-sided.

    Each person answers `tests` questions; `shares` are the expected right ones of the two conditions (0-1),
    and `spread` is the standard deviation of people's own expected shares, which follow a beta distribution
    (0: all are equal). Not `within`: `people` per condition and Mann-Whitney's test. `within`: `people` in
    all, each under both conditions and at the same place of both distributions, and Wilcoxon's signed ranks.
    Both tests by the normal approximation with continuity and tie correction. STUDIES simulated studies, the
    same for the same arguments. Raises StatsError for shares outside (0, 1) or a spread too large for them.
    """
    first, second = (_checked_share(share, spread) for share in _two(shares))
    for count, least, most, what in ((tests, 1, TESTS_MAX, "tests"), (people, 2, PEOPLE_MAX, "people")):
        if check.count(count, f"The number of {what}", least=least) > most:
            raise StatsError(f"Power is computed for at most {most} {what}, got {count}.")
    if not 0 < check.number(alpha, "Alpha") < 1:
        raise StatsError(f"Power needs alpha in (0, 1), got {alpha}.")
    rng = np.random.default_rng([tests, people])
    places = [rng.random((STUDIES, people)) for _ in range(2)]
    levels = [_levels(first, spread, places[0]), _levels(second, spread, places[0 if within else 1])]
    under_first, under_second = (rng.binomial(tests, level) for level in levels)
    statistic = (_signed_ranks if within else _rank_sums)(under_first, under_second, tests)
    return float((np.abs(statistic) > norm.isf(alpha / 2)).mean())


def people_needed(
    shares: Sequence[float], tests: int, *, spread: float = 0.0, within: bool = False, power: float = 0.8
) -> int:
    """The fewest people (per condition, or in all if `within`) with that power. Raises StatsError if more
    than PEOPLE_MAX would be needed."""
    if not 0 < check.number(power, "Power") < 1:
        raise StatsError(f"Power must lie between 0 and 1, got {power}.")

    def reached(people: int) -> bool:
        return rank_power(shares, tests, people, spread=spread, within=within) >= power

    high = 4
    while not reached(high):
        if high == PEOPLE_MAX:
            raise StatsError(f"More than {PEOPLE_MAX} people would be needed; plan more tests per person.")
        high = min(2 * high, PEOPLE_MAX)
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def _two(shares: Sequence[float]) -> tuple[float, float]:
    given = check.array(shares, "The shares")
    if given.size != 2:
        raise StatsError(f"Two conditions are compared, got {given.size} shares.")
    return float(given[0]), float(given[1])


def _checked_share(share: float, spread: float) -> float:
    value, sd = check.number(share, "A share"), check.number(spread, "The spread")
    if not 0 < value < 1 or not 0 <= sd**2 < value * (1 - value):
        raise StatsError(
            f"A share of {value:g} with a spread of {sd:g} is none of right answers: shares lie between 0 "
            "and 1, and the squared spread below share x (1 - share)."
        )
    return value


def _levels(share: float, spread: float, places: Floats) -> Floats:
    """People's own expected shares, at these places (0-1) of their distribution."""
    if spread < SPREAD_MIN:
        return np.full_like(places, share)
    size = share * (1 - share) / spread**2 - 1
    return np.asarray(beta.ppf(places, share * size, (1 - share) * size))


def _rank_sums(first: NDArray[np.int64], second: NDArray[np.int64], tests: int) -> Floats:
    """Mann-Whitney's z of each study (rows)."""
    n, total = first.shape[1], 2 * first.shape[1]
    both = np.concatenate([first, second], axis=1)
    u = rankdata(both, axis=1)[:, n:].sum(axis=1) - n * (n + 1) / 2 - n * n / 2
    ties = sum((t**3 - t for t in ((both == k).sum(axis=1) for k in range(tests + 1))), np.zeros(len(both)))
    variance = n * n / 12 * (total + 1 - ties / (total * (total - 1)))
    return _standardise(u, variance)


def _signed_ranks(first: NDArray[np.int64], second: NDArray[np.int64], tests: int) -> Floats:
    """Wilcoxon's z of each study (rows), without the pairs that are equal."""
    change = second - first
    size = np.abs(change)
    equal = (size == 0).sum(axis=1, keepdims=True)
    # Equal pairs have the lowest ranks among all; without them every other rank is lower by their number.
    ranks = np.where(size > 0, rankdata(size, axis=1) - equal, 0.0)
    n = size.shape[1] - equal[:, 0]
    w = (ranks * (change > 0)).sum(axis=1) - n * (n + 1) / 4
    ties = sum(
        (t**3 - t for t in ((size == k).sum(axis=1) for k in range(1, tests + 1))), np.zeros(len(size))
    )
    return _standardise(w, n * (n + 1) * (2 * n + 1) / 24 - ties / 48)


def _standardise(centred: Floats, variance: Floats) -> Floats:
    """With continuity correction; 0 if all values of a study are equal."""
    corrected = np.sign(centred) * np.maximum(np.abs(centred) - 0.5, 0.0)
    out = np.zeros(len(centred))
    np.divide(corrected, np.sqrt(variance), out=out, where=variance > 0)
    return out
