"""Whether two kinds of raters put conditions into one order, if people and items are drawn at random."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata

from analysis.stats import check
from analysis.stats.intervals_and_checks import (
    Codes,
    Floats,
    Interval,
    Names,
    Row,
    StatsError,
    ends_of,
    has_spread,
    row_of,
)

GROUPS_MIN = 3
DRAWS = 1000
DEFINED_MIN = 0.9
"""The share of draws that must have a correlation; else the others say too little of the ends."""


@dataclass(frozen=True, slots=True)
class RankAgreement:
    """`rho`, Spearman's of the group means of both; `groups`, those that both rated. `range` holds the middle
    share of the draws, and is no interval of proved coverage: with few groups it can take few values. None
    without it, for fewer than two people or items or too many draws in which one side does not vary.
    """

    rho: float
    groups: int
    people: int
    items: int
    undefined: int
    range: Interval | None

    def table(self) -> list[Row]:
        """One row."""
        counts = row_of(self, "groups", "people", "items", "undefined")
        return [{"rho": self.rho, **ends_of(self.range), **counts}]


def rank_agreement(
    values: ArrayLike,
    groups: Names,
    people: Names,
    items: Names,
    other: ArrayLike,
    other_groups: Names,
    other_items: Names,
    *,
    draws: int = DRAWS,
    seed: int = 0,
    level: float = 0.95,
) -> RankAgreement:
    """Spearman's correlation over groups of the mean of `values` (n,) and the mean of `other` (m,), a rater's
    that is no one of the people. The group, person and item of each value are given per row.

    In each draw people and items are drawn with replacement, each for themselves, and both sides meet the
    same items (Owen 2007, the pigeonhole bootstrap). Raises StatsError for lists of unequal length, fewer
    than GROUPS_MIN groups that both have, or means that do not differ.
    """
    check.level(level)
    check.count(draws, "The number of draws", least=20)
    check.count(seed, "The seed")
    y, x = check.array(values, "The ratings"), check.array(other, "The other ratings")
    given = {"groups": groups, "people": people, "items": items}
    for what, names in (given | {"other groups": other_groups, "other items": other_items}).items():
        check.sequence(names, f"The {what}")
    if not (y.size == len(groups) == len(people) == len(items) and x.size == len(other_groups)):
        raise StatsError(f"There are {y.size} and {x.size} ratings; give a group, person and item for each.")
    if x.size != len(other_items) or not (y.size and x.size):
        raise StatsError(f"There are {y.size} and {x.size} ratings; give at least one, and an item for each.")
    shared = sorted({str(group) for group in groups} & {str(group) for group in other_groups})
    if len(shared) < GROUPS_MIN:
        raise StatsError(f"{len(shared)} groups were rated by both; an order needs at least {GROUPS_MIN}.")
    kept, taken = (np.isin(np.asarray(names, dtype=str), shared) for names in (groups, other_groups))
    y, x = y[kept], x[taken]
    group = _codes(groups, kept, shared), _codes(other_groups, taken, shared)
    person = check.codes(np.asarray(people, dtype=str)[kept], "people")
    names = np.concatenate([np.asarray(items, dtype=str)[kept], np.asarray(other_items, dtype=str)[taken]])
    item = check.codes(names, "items")
    ours, theirs = item[: y.size], item[y.size :]
    counts = int(person.max()) + 1, int(item.max()) + 1
    ones = np.ones(y.size), np.ones(x.size)
    rho = _correlation(_means(y, group[0], ones[0], shared), _means(x, group[1], ones[1], shared))
    if rho is None:
        raise StatsError("The means of one side do not differ between groups, so there is no order.")
    drawn: list[float] = []
    if min(counts) > 1:
        rng = np.random.default_rng(seed)
        for _ in range(draws):
            by_person, by_item = (np.bincount(rng.integers(0, n, n), minlength=n) for n in counts)
            first = _means(y, group[0], (by_person[person] * by_item[ours]).astype(np.float64), shared)
            second = _means(x, group[1], by_item[theirs].astype(np.float64), shared)
            if (value := _correlation(first, second)) is not None:
                drawn.append(value)
    ends = None
    if len(drawn) >= DEFINED_MIN * draws:
        tail = 100 * (1 - level) / 2
        low, high = np.percentile(drawn, [tail, 100 - tail])
        ends = Interval(float(low), float(high), level)
    undefined = draws - len(drawn) if min(counts) > 1 else 0
    return RankAgreement(rho, len(shared), *counts, undefined, ends)


def _codes(names: Names, chosen: np.ndarray, shared: list[str]) -> Codes:
    places: Codes = np.searchsorted(shared, np.asarray(names, dtype=str)[chosen])
    return places


def _means(values: Floats, group: Codes, weights: Floats, shared: list[str]) -> Floats:
    """The weighted mean of each group; NaN for one without weight."""
    sums, total = (np.bincount(group, part, len(shared)) for part in (weights * values, weights))
    return np.asarray(np.divide(sums, total, out=np.full(len(shared), np.nan), where=total > 0))


def _correlation(first: Floats, second: Floats) -> float | None:
    """Spearman's, ties by mean rank; None if a group is empty or one side does not vary."""
    if np.isnan(first).any() or np.isnan(second).any() or not (has_spread(first) and has_spread(second)):
        return None
    return float(np.clip(np.corrcoef(rankdata(first), rankdata(second))[0, 1], -1, 1))
