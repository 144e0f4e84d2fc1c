"""Balanced windows: which cell (predicted label x correct) each place of a session takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from experiments.design.rng import Streams

Cell = tuple[str, str]
"""What is balanced: (predicted label, "right" | "wrong"); a part that is not balanced is empty, and both may
be."""

RIGHT, WRONG = "right", "wrong"


def cell_cycle(labels: Sequence[str], by_correct: bool) -> tuple[Cell, ...]:
    """The cells in a circle whose every arc is balanced.

    Any run of n consecutive places of the circle holds each cell floor(n / cells) or ceil(n / cells) times.
    With `by_correct` right and wrong alternate, so any run is also balanced in correctness to within one.
    """
    if not by_correct:
        return tuple((label, "") for label in labels)
    marks = (RIGHT, WRONG)
    half = len(labels)
    back = list(labels) if half % 2 else list(reversed(labels))
    return tuple((label, marks[place % 2]) for place, label in enumerate([*labels, *back]))


def windows(cycle: Sequence[Cell], sizes: Sequence[int], start: int) -> tuple[tuple[Cell, ...], ...]:
    """Consecutive arcs of the given sizes, the first beginning at `start`.

    Each arc, and each run of neighbouring arcs, holds every cell floor or ceil of its even share.
    """
    out = []
    at = start
    for size in sizes:
        out.append(tuple(cycle[(at + step) % len(cycle)] for step in range(size)))
        at += size
    return tuple(out)


def even_starts(cycle: Sequence[Cell], train_count: int, test_count: int) -> tuple[int, ...]:
    """The starts at which labels are most evenly spread over the whole test, then over the whole training."""

    def unevenness(start: int) -> tuple[int, int]:
        train, test = windows(cycle, (train_count, test_count), start)
        return _label_spread(cycle, test), _label_spread(cycle, train)

    best = min(unevenness(start) for start in range(len(cycle)))
    return tuple(start for start in range(len(cycle)) if unevenness(start) == best)


def balanced_cells(
    labels: Sequence[str],
    by_correct: bool,
    train_sizes: Sequence[int],
    test_sizes: Sequence[int],
    index: int,
    streams: Streams,
) -> tuple[tuple[tuple[Cell, ...], ...], tuple[tuple[Cell, ...], ...]]:
    """The cells of slot `index`: (training blocks, test blocks), each block a tuple in no useful order.

    Over training, over test, over both, and within each block every cell is within one of every other. The
    cells that get the remaining odd places rotate as the index grows (streams "cells").
    """
    count = len(even_starts(cell_cycle(labels, by_correct), sum(train_sizes), sum(test_sizes)))
    rng = streams("cells", index // count)
    cycle = cell_cycle([labels[int(place)] for place in rng.permutation(len(labels))], by_correct)
    starts = even_starts(cycle, sum(train_sizes), sum(test_sizes))
    start = starts[int(rng.permutation(count)[index % count])]
    cells = windows(cycle, (*train_sizes, *test_sizes), start)
    return cells[: len(train_sizes)], cells[len(train_sizes) :]


def most_needed(
    labels: Sequence[str], by_correct: bool, train_count: int, test_count: int
) -> tuple[Counter[Cell], Counter[str]]:
    """The most items any slot needs, by cell and by mark ("right", "wrong"), training and test together."""
    by_cell: Counter[Cell] = Counter()
    by_mark: Counter[str] = Counter()
    cycle = cell_cycle(labels, by_correct)
    for start in even_starts(cycle, train_count, test_count):
        (cells,) = windows(cycle, (train_count + test_count,), start)
        by_cell |= Counter(cells)
        by_mark |= Counter(mark for _, mark in cells)
    # The labels change places from slot to slot, so every cell of a kind may need what one of them needs.
    highest = max(by_cell.values(), default=0)
    return Counter(dict.fromkeys(cycle, highest)), by_mark


def _label_spread(cycle: Sequence[Cell], cells: Sequence[Cell]) -> int:
    counts = Counter(label for label, _ in cells)
    per_label = [counts[label] for label, _ in cycle]
    return int(np.ptp(per_label))
