"""Streams, blocks, squares, lists and balanced windows, each against a naive count."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from itertools import islice, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.design.block_randomization import permuted_blocks, permuted_level
from experiments.design.cell_balance import balanced_cells, cell_cycle, most_needed, windows
from experiments.design.disjoint_lists import disjoint_lists
from experiments.design.rng import Streams
from experiments.design.squares import latin_square, williams

pytestmark = pytest.mark.pure


def test_it_draws_the_same_numbers_from_the_same_name() -> None:
    streams = Streams(3)
    first = streams("order", 1).random(4).tolist()
    streams("order", 2).random(100)
    assert streams("order", 1).random(4).tolist() == first == Streams(3)("order", 1).random(4).tolist()


def test_it_draws_different_numbers_from_different_names() -> None:
    names: list[tuple[str | int, ...]] = [("a", "bc"), ("ab", "c"), ("1",), (1,), ("order", 1), ("order", 2)]
    assert len({Streams(3)(*name).random() for name in names} | {Streams(4)("1").random()}) == 7


def test_it_draws_the_same_numbers_in_another_process() -> None:
    code = "from experiments.design.rng import Streams; print(Streams(3)('order', 1).random())"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(process.stdout) == Streams(3)("order", 1).random()


@given(st.integers(1, 9), st.integers(1, 12), st.integers(0, 5))
def test_it_holds_each_level_once_per_block(levels: int, slots: int, seed: int) -> None:
    order = list(permuted_blocks([slots] * levels, Streams(seed)))
    for start in range(0, len(order), levels):
        assert sorted(order[start : start + levels]) == list(range(levels))


@given(st.lists(st.integers(0, 12), min_size=1, max_size=6))
def test_it_gives_unequal_levels_their_counts_evenly(counts: list[int]) -> None:
    order = list(permuted_blocks(counts, Streams(1)))
    assert Counter(order) == Counter({level: count for level, count in enumerate(counts) if count})
    rounds = max(counts)
    for level, count in enumerate(counts):
        if count == rounds and count:
            places = [place for place, drawn in enumerate(order) if drawn == level]
            gaps = [after - before for before, after in pairwise(places)]
            assert max(gaps, default=0) < 2 * len(counts)


def test_it_orders_the_blocks_differently() -> None:
    order = list(permuted_blocks([50] * 4, Streams(1)))
    assert len({tuple(order[start : start + 4]) for start in range(0, 200, 4)}) > 10


def test_it_refuses_negative_counts() -> None:
    with pytest.raises(ValueError, match="negative"):
        list(permuted_blocks([3, -1], Streams(1)))


def test_it_permutes_levels_by_index_alone() -> None:
    levels = [permuted_level(3, index, Streams(1), "sides") for index in range(30)]
    assert all(sorted(levels[start : start + 3]) == [0, 1, 2] for start in range(0, 30, 3))


@pytest.mark.parametrize("size", range(1, 9))
def test_it_makes_latin_squares(size: int) -> None:
    square = latin_square(size)
    assert all(sorted(row) == list(range(size)) for row in square)
    assert all(sorted(column) == list(range(size)) for column in zip(*square, strict=True))
    assert all(square[g][c] == (g + c) % size for g in range(size) for c in range(size))


@pytest.mark.parametrize("size", range(1, 9))
def test_it_balances_first_order_carry_over(size: int) -> None:
    rows = williams(size)
    times = 2 if size % 2 and size > 1 else 1
    assert len(rows) == times * size
    assert all(sorted(row) == list(range(size)) for row in rows)
    for period in zip(*rows, strict=True):
        assert set(Counter(period).values()) == {times}
    follows = Counter(pair for row in rows for pair in pairwise(row))
    assert follows == {(a, b): times for a in range(size) for b in range(size) if a != b}


def test_it_has_six_sequences_for_three_conditions() -> None:
    assert sorted(williams(3)) == [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]


@pytest.mark.parametrize("make", [latin_square, williams])
def test_it_refuses_empty_squares(make: object) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        make(0)  # type: ignore[operator]


@given(st.lists(st.integers(0, 5), max_size=60), st.integers(1, 25), st.integers(0, 99))
def test_it_deals_every_unit_into_one_list(kinds: list[int], length: int, seed: int) -> None:
    lists = disjoint_lists(kinds, length, Streams(seed)("lists"))
    assert sorted(unit for units in lists for unit in units) == list(range(len(kinds)))
    sizes = [len(units) for units in lists]
    assert len(sizes) == -(-len(kinds) // length)
    assert max(sizes, default=0) - min(sizes, default=0) <= 1 and max(sizes, default=0) <= length
    for kind, total in Counter(kinds).items():
        most = max(sum(kinds[unit] == kind for unit in units) for units in lists)
        assert most == -(-total // len(lists))


def test_it_refuses_lists_without_length() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        disjoint_lists([1, 2], 0, Streams(1)("lists"))


@given(st.integers(1, 5), st.booleans(), st.integers(0, 40), st.integers(0, 40))
def test_it_balances_every_arc_of_the_circle(labels: int, by_correct: bool, start: int, size: int) -> None:
    cycle = cell_cycle([str(label) for label in range(labels)], by_correct)
    assert len(set(cycle)) == len(cycle) == labels * (2 if by_correct else 1)
    ((*cells,),) = windows(cycle, [size], start)
    counts = [cells.count(cell) for cell in cycle]
    assert sum(counts) == size and max(counts) - min(counts) <= 1
    if by_correct:
        assert abs(sum(mark == "right" for _, mark in cells) * 2 - size) <= 1


def test_it_gives_the_odd_places_to_all_cells_in_turn() -> None:
    odd = Counter[tuple[str, str]]()
    for index in range(40):
        _, test = balanced_cells(["a", "b"], True, [5] * 3, [7] * 3, index, Streams(1))
        counts = Counter(cell for block in test for cell in block)
        odd[max(counts, key=lambda cell: counts[cell])] += 1
    assert set(odd.values()) == {10}


def test_it_states_the_need_of_the_published_design() -> None:
    by_cell, by_mark = most_needed(["a", "b"], True, 15, 21)
    assert set(by_cell.values()) == {9} and by_mark == {"right": 18, "wrong": 18}


@given(st.integers(1, 4), st.booleans(), st.integers(0, 12), st.integers(1, 12))
def test_it_never_needs_more_than_it_states(labels: int, by_correct: bool, train: int, test: int) -> None:
    names = [str(label) for label in range(labels)]
    by_cell, by_mark = most_needed(names, by_correct, train, test)
    for index in range(12):
        blocks = balanced_cells(names, by_correct, [train], [test], index, Streams(2))
        cells = Counter(cell for side in blocks for block in side for cell in block)
        assert cells <= by_cell
        assert Counter(mark for mark in (cell[1] for cell in cells.elements())) <= by_mark


def test_it_streams_lazily() -> None:
    assert len(list(islice(permuted_blocks([10**9], Streams(1)), 5))) == 5
