"""Means and differences of ratings if both people and items are drawn at random: two-way clustered errors.

Ratings of one person go together, and so do ratings of one item. Variance = by people + by items - by both
(Cameron, Gelbach and Miller 2011, Robust inference with multiway clustering), each with its factor G/(G - 1);
never below the larger of the first two, since the difference may be too small by chance. Student's t with the
smaller number of clusters less 1 as degrees of freedom.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import t as student

from analysis.stats import check
from analysis.stats.intervals_and_checks import (
    Codes,
    Floats,
    Interval,
    Names,
    Row,
    StatsError,
    codes_again,
    finite,
    has_spread,
    row_of,
)


@dataclass(frozen=True, slots=True)
class ClusteredEstimate:
    """`estimate` in the unit of the values, `se` its standard error, `df` = smaller number of clusters - 1.

    `p` is two-sided, of an estimate of 0. `se`, `p` and `interval` are None with fewer than two people or
    items, or without spread. `people`, `items` and `values` are the numbers that it rests on.
    """

    estimate: float
    people: int
    items: int
    values: int
    se: float | None = None
    df: int = 0
    p: float | None = None
    interval: Interval | None = None

    def table(self) -> list[Row]:
        """One row."""
        return [row_of(self, "estimate", "se", "interval", "df", "p", "people", "items", "values")]


def clustered_mean(
    values: ArrayLike, people: Names, items: Names, *, level: float = 0.95
) -> ClusteredEstimate:
    """The mean of values (n,), whose person and item are given per row. Raises StatsError for no values, or
    lists of unequal length."""
    check.level(level)
    y, person, item = _check_ratings(values, people, items)
    weights = np.full(y.size, 1 / y.size)
    return _clustered_estimate(float(y.mean()), weights * (y - y.mean()), person, item, level)


def clustered_difference(
    values: ArrayLike,
    is_first: ArrayLike,
    people: Names,
    items: Names,
    *,
    strata: Names | None = None,
    level: float = 0.95,
) -> ClusteredEstimate:
    """Mean of the first group less mean of the second (`is_first` 1 or 0 per row), on shared items alone.

    Within an item each group's values are averaged, and every item that both groups have counts alike; so
    neither other items nor unequal numbers of values make a difference. `strata` names the stratum of each
    row's item, if a design fixes how often people meet items of each: items count alike within a stratum,
    and a stratum by its share of the values (Cochran 1977, Sampling Techniques, 5.3); deviations are from its
    own means, as its share is no chance. Raises StatsError if no item of a stratum has both groups, for an
    item in two strata, or for lists of unequal length.
    """
    check.level(level)
    y, person, item = _check_ratings(values, people, items)
    first = check.array(is_first, "The group of each value")
    if first.size != y.size or not np.isin(first, (0, 1)).all():
        raise StatsError(f"The groups are {first.size} values; give 1 or 0 for each of the {y.size} values.")
    stratum = _strata(strata, item)
    shares = np.bincount(stratum) / stratum.size
    counts = np.stack([np.bincount(item, first == group, item.max() + 1) for group in (1, 0)])
    kept = np.asarray((counts > 0).all(axis=0))[item]
    if not kept.any():
        raise StatsError("No item was answered in both groups; compare groups that share items.")
    y, first, person, item, stratum = y[kept], first[kept] == 1, person[kept], item[kept], stratum[kept]
    shared = np.bincount(stratum[np.unique(item, return_index=True)[1]], minlength=shares.size)
    if not shared.all():
        raise StatsError("No item of one of the strata was answered in both groups; collect more answers.")
    weights = (shares / shared)[stratum] / counts[np.where(first, 0, 1), item]
    # A cell is a group within a stratum.
    cell = 2 * stratum + first
    means = np.bincount(cell, weights * y) / np.bincount(cell, weights)
    signed = np.where(first, weights, -weights)
    return _clustered_estimate(
        float((signed * y).sum()),
        signed * (y - means[cell]),
        codes_again(person),
        codes_again(item),
        level,
    )


def _strata(strata: Names | None, item: Codes) -> Codes:
    """The stratum of each row; one if there are none."""
    if strata is None:
        return np.zeros_like(item)
    stratum = check.codes(strata, "strata")
    if stratum.size != item.size:
        raise StatsError(f"There are {stratum.size} strata; give one for each of the {item.size} values.")
    if np.unique(np.stack([item, stratum]), axis=1).shape[1] > np.unique(item).size:
        raise StatsError("An item is in two strata; give every item one.")
    return stratum


def _check_ratings(values: ArrayLike, people: Names, items: Names) -> tuple[Floats, Codes, Codes]:
    y = check.array(values, "The ratings")
    person, item = check.codes(people, "people"), check.codes(items, "items")
    if not y.size or not y.size == person.size == item.size:
        raise StatsError(
            f"There are {y.size} values, {person.size} people and {item.size} items; give one of each per "
            "row, and at least one row."
        )
    return y, person, item


def _clustered_estimate(
    estimate: float, parts: Floats, person: Codes, item: Codes, level: float
) -> ClusteredEstimate:
    """`parts` (n,): what each value adds to the estimate's deviation."""
    people, items = int(person.max()) + 1, int(item.max()) + 1
    told = ClusteredEstimate(finite(estimate, "The mean"), people, items, parts.size)
    if min(people, items) < 2 or not has_spread(np.append(parts * parts.size, estimate)):
        return told
    by_person, by_item = _variance(parts, person), _variance(parts, item)
    cell = codes_again(person * items + item)
    se = float(np.sqrt(max(by_person + by_item - _variance(parts, cell), by_person, by_item)))
    # Deviations that are rounding beside the mean itself are none.
    if not se > 1e-12 * max(1.0, abs(estimate)):
        return told
    df = min(people, items) - 1
    half = float(student.ppf((1 + level) / 2, df)) * se
    ends = Interval(finite(estimate - half, "The interval"), finite(estimate + half, "The interval"), level)
    p = float(2 * student.sf(abs(estimate) / se, df))
    return ClusteredEstimate(estimate, people, items, parts.size, finite(se, "The error"), df, p, ends)


def _variance(parts: Floats, codes: Codes) -> float:
    sums = np.bincount(codes, parts)
    return float((sums**2).sum()) * sums.size / (sums.size - 1) if sums.size > 1 else 0.0
