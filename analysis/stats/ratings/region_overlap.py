"""How far regions that several people marked on one item agree: intersection over union."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from analysis.stats import check
from analysis.stats.intervals_and_checks import Interval, Names, StatsError, json_of, mean_interval


@dataclass(frozen=True, slots=True)
class Overlap:
    """`mean` of the items' means over pairs of people (0-1), and its interval over items, None with fewer
    than two or without spread. `apart` counts pairs that share no cell."""

    mean: float
    interval: Interval | None
    items: int
    pairs: int
    apart: int

    def table(self) -> list[dict[str, object]]:
        """One row."""
        return [json_of(self)]


def intersection_over_union(first: Collection[int], second: Collection[int]) -> float:
    """Shared cells by cells in either, 0-1. Raises StatsError if both regions are empty."""
    a, b = _cells(first), _cells(second)
    if not a | b:
        raise StatsError("Both regions are empty, so they share no part of anything; leave such pairs out.")
    return len(a & b) / len(a | b)


def region_overlap(
    regions: Sequence[Collection[int]], people: Names, items: Names, *, level: float = 0.95
) -> Overlap:
    """All pairs of people who marked the same item; `regions` (n,) are cells of one grid, not empty. Items
    count alike; the interval is Student's t over items, so it speaks of these people.

    Raises StatsError if no item was marked by two people, or rows do not match.
    """
    person, item = check.codes(people, "people"), check.codes(items, "items")
    if not len(check.sequence(regions, "The regions")) == person.size == item.size:
        raise StatsError(
            f"There are {len(regions)} regions, {person.size} people and {item.size} items; give one of "
            "each per row."
        )
    means, pairs, apart = [], 0, 0
    for code in range(int(item.max()) + 1 if item.size else 0):
        rows = np.flatnonzero(item == code)
        shared = [
            intersection_over_union(regions[a], regions[b])
            for a, b in combinations(rows.tolist(), 2)
            if person[a] != person[b]
        ]
        pairs += len(shared)
        apart += sum(value == 0 for value in shared)
        if shared:
            means.append(float(np.mean(shared)))
    if not means:
        raise StatsError(
            "No item was marked by two people, so nothing can be compared; wait for more people."
        )
    return Overlap(float(np.mean(means)), mean_interval(means, level=level), len(means), pairs, apart)


def _cells(region: Collection[int]) -> set[int]:
    try:
        return set(region)
    except TypeError:
        raise StatsError(f"The region {region!r:.40} is no list of cells; give whole numbers.") from None
