"""Rank correlation of two measures of the same things, if the things stand in groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from analysis.stats.agreement import spearman
from analysis.stats.results import (
    Interval,
    Names,
    StatsError,
    checked_array,
    checked_count,
    checked_level,
)

GROUPS_MIN = 5
"""With fewer groups a bootstrap over them says nothing."""


@dataclass(frozen=True, slots=True)
class RankAssociation:
    """Spearman's `rho` over `n` things in `groups` groups. `interval`: percentile bootstrap over groups; None
    below GROUPS_MIN groups, or if no draw has a correlation."""

    rho: float
    n: int
    groups: int
    interval: Interval | None


def rank_association(
    first: ArrayLike,
    second: ArrayLike,
    groups: Names,
    *,
    draws: int = 200,
    seed: int = 0,
    level: float = 0.95,
) -> RankAssociation:
    """Spearman's correlation of two measures (n,), (n,); whole `groups` (n,) are drawn anew for the interval,
    and ranks are taken anew in each draw. Raises StatsError for unequal lengths or a constant measure."""
    checked_level(level)
    x, y = (checked_array(values, "A measure") for values in (first, second))
    if not x.size == y.size == len(groups):
        raise StatsError(
            f"There are {x.size} and {y.size} values and {len(groups)} groups; give one of each per thing."
        )
    rho = spearman(x, y)
    codes = np.unique(np.asarray(groups, dtype=str), return_inverse=True)[1]
    members = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
    count = checked_count(draws, "The number of draws")
    rng = np.random.default_rng(seed)
    drawn = []
    for _ in range(count if len(members) >= GROUPS_MIN else 0):
        rows = np.concatenate([members[place] for place in rng.integers(0, len(members), len(members))])
        try:
            drawn.append(spearman(x[rows], y[rows]))
        except StatsError:
            continue  # a draw without spread has no correlation
    tail = 100 * (1 - level) / 2
    ends = np.percentile(drawn, [tail, 100 - tail]) if drawn else None
    interval = None if ends is None else Interval(float(ends[0]), float(ends[1]), level)
    return RankAssociation(rho, x.size, len(members), interval)
