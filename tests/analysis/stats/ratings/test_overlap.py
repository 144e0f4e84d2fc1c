"""Intersection over union by hand, on sets."""

from __future__ import annotations

import pytest

from analysis.stats.intervals_and_checks import StatsError, mean_interval
from analysis.stats.ratings.region_overlap import intersection_over_union, region_overlap

pytestmark = pytest.mark.pure


def test_it_is_shared_cells_by_cells_in_either() -> None:
    assert intersection_over_union([1, 2, 3], [2, 3, 4, 5]) == 2 / 5
    assert intersection_over_union([7], [7]) == 1 and intersection_over_union([1], [2]) == 0
    with pytest.raises(StatsError, match="Both regions are empty"):
        intersection_over_union([], [])


def test_pairs_count_within_items_and_items_count_alike() -> None:
    """Item x: three people, pairs 1/3, 0, 0. Item y: two people, 1. Item z: one person, no pair. The second
    region of a person on an item makes no pair with the first."""
    regions = [[1, 2], [2, 3], [9], [4], [4], [5], [5]]
    people = ["a", "b", "c", "a", "b", "a", "a"]
    items = ["x", "x", "x", "y", "y", "z", "z"]
    made = region_overlap(regions, people, items)
    assert made.mean == pytest.approx((1 / 9 + 1) / 2)
    assert (made.items, made.pairs, made.apart) == (2, 4, 2)
    expected = mean_interval([1 / 9, 1.0])
    assert made.interval == expected and made.table()[0]["pairs"] == 4


def test_without_two_people_on_an_item_there_is_a_sentence() -> None:
    with pytest.raises(StatsError, match="No item was marked by two people"):
        region_overlap([[1], [1]], ["a", "b"], ["x", "y"])
    with pytest.raises(StatsError, match="2 regions, 1 people"):
        region_overlap([[1], [1]], ["a"], ["x", "y"])
