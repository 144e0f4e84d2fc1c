"""Disjoint lists in rounds: every unit is judged by k different people, by construction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence

import numpy as np


def disjoint_lists(
    kinds: Sequence[Hashable], length: int, rng: np.random.Generator
) -> tuple[tuple[int, ...], ...]:
    """Deals the units 0 to len(kinds)-1 into lists of at most `length`; each unit stands in exactly one list.

    There are ceil(len(kinds) / length) lists, whose lengths differ by at most one (all equal `length` if it
    divides the number of units). Units of one kind (for example explanations of one image) are dealt to
    consecutive lists, so no list holds a kind twice as long as the kind has no more units than there are
    lists. Order within each list is random. One round of lists covers every unit once: k rounds, with each
    person kept to one round, give every unit k distinct judges.
    """
    if length < 1:
        raise ValueError(f"a list holds at least 1 unit, asked for {length}")
    count = -(-len(kinds) // length)
    by_kind: dict[Hashable, list[int]] = defaultdict(list)
    for unit in rng.permutation(len(kinds)):
        by_kind[kinds[int(unit)]].append(int(unit))
    dealt: list[list[int]] = [[] for _ in range(count)]
    for place, unit in enumerate(unit for units in by_kind.values() for unit in units):
        dealt[place % count].append(unit)
    return tuple(tuple(units[int(place)] for place in rng.permutation(len(units))) for units in dealt)
