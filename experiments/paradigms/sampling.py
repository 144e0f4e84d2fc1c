"""Which items a session trains and tests on: balanced cells, disjoint groups, even exposure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from experiments.design.cell_balance import RIGHT, WRONG, Cell, balanced_cells, most_needed
from experiments.design.rng import Streams
from experiments.paradigms.base import GroupsTooLarge, NotEnoughItems, Pool, PoolItem

NAMED_MAX = 2
GROUP_TRIES = 8
"""Cheap attempts to divide groups between training and test before the exact solver is called."""

Blocks = tuple[tuple[PoolItem, ...], ...]
CellBlocks = tuple[tuple[Cell, ...], ...]


class Cells(Protocol):
    """What is balanced within a session: which cell an item is in, and how many of each a session has."""

    @property
    def remedy(self) -> str:
        """How else a pool with too few items of a cell could do, to follow the usual remedies."""
        ...

    def of(self, item: PoolItem) -> Cell: ...
    def drawn(
        self, train_sizes: Sequence[int], test_sizes: Sequence[int], index: int, streams: Streams
    ) -> tuple[CellBlocks, CellBlocks]:
        """The cells of slot `index`: (training blocks, test blocks), each block in no useful order."""
        ...

    def most_needed(self, train_count: int, test_count: int) -> tuple[Counter[Cell], Counter[str]]:
        """The most items any slot needs, by cell and by mark ("right", "wrong"), training and test
        together."""
        ...

    def words(self, cell: Cell) -> str: ...


@dataclass(frozen=True, slots=True)
class EvenCells:
    """Predicted label x correct, or predicted label, or nothing, as the pool's `balance` says; all cells
    alike, see `balanced_cells`."""

    labels: tuple[str, ...]
    by_label: bool
    by_correct: bool

    @classmethod
    def of_pool(cls, pool: Pool) -> EvenCells:
        by_label = pool.balance != "none"
        labels = tuple(value for value, _ in pool.choices) if by_label else ("",)
        return cls(labels, by_label, pool.balance == "prediction_x_correct")

    @property
    def remedy(self) -> str:
        return ', or set balance = "prediction" or "none"' if self.by_label else ""

    def of(self, item: PoolItem) -> Cell:
        if not self.by_label:
            return ("", "")
        return (item.predicted, mark_of(item) if self.by_correct else "")

    def drawn(
        self, train_sizes: Sequence[int], test_sizes: Sequence[int], index: int, streams: Streams
    ) -> tuple[CellBlocks, CellBlocks]:
        return balanced_cells(self.labels, self.by_correct, train_sizes, test_sizes, index, streams)

    def most_needed(self, train_count: int, test_count: int) -> tuple[Counter[Cell], Counter[str]]:
        return most_needed(self.labels, self.by_correct, train_count, test_count)

    def words(self, cell: Cell) -> str:
        label, mark = cell
        return f"{mark} predictions of {label!r}".strip() if label else "items"


def mark_of(item: PoolItem) -> str:
    """Whether the model is right about an item, as part of a cell."""
    return RIGHT if item.correct else WRONG


@dataclass
class ItemSampler:
    """Draws the items of slot 0, 1, 2, ... in turn; slot j never depends on how many slots follow.

    `train_sizes` and `test_sizes` are items per block. `draw()` returns (training blocks, test blocks), in
    random order within each block. `cells` say what is balanced, by default `EvenCells` as the pool's
    `balance` says. No item stands on both sides, nor do two items of one group.

    Exposure: test items are the least tested so far, training items the least trained so far, ties broken by
    the stream ("items", j). So within a cell whose items have groups of their own, two items' numbers of test
    exposures differ by little at any time (by at most 2 in pools of twice the need or more).

    `per` says in messages what one draw is for.

    Raises NotEnoughItems when made, if some cell is too small, and when drawing, if the groups cannot be
    divided.
    """

    pool: Pool
    train_sizes: Sequence[int]
    test_sizes: Sequence[int]
    streams: Streams
    remedy: str = "ask for fewer trials in [design], or add items"
    per: str = "per session"
    cells: Cells | None = None
    drawn: int = 0
    trained: Counter[str] = field(default_factory=Counter)
    tested: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._cells = self.cells or EvenCells.of_pool(self.pool)
        self.by_cell: dict[Cell, list[PoolItem]] = defaultdict(list)
        self.groups: dict[str, list[PoolItem]] = defaultdict(list)
        known = {value for value, _ in self.pool.choices}
        for item in self.pool.items:
            if item.predicted not in known:
                raise NotEnoughItems(
                    f"item {item.key!r} is predicted {item.predicted!r}, which is not among the answers "
                    f"{', '.join(sorted(known))}: leave such items out of the pool, or add the class"
                )
            self.by_cell[self._cells.of(item)].append(item)
            self.groups[item.group].append(item)
        self._refuse_shortage()

    def draw(self) -> tuple[Blocks, Blocks]:
        """The training and test blocks of the next slot."""
        index = self.drawn
        sizes = self.train_sizes, self.test_sizes
        train_cells, test_cells = self._cells.drawn(*sizes, index, self.streams)
        rng = self.streams("items", index)
        train_need = Counter(cell for block in train_cells for cell in block)
        test_need = Counter(cell for block in test_cells for cell in block)
        test_groups = self._test_groups(train_need, test_need, rng)
        test = self._least_seen(test_need, self.tested, rng, lambda item: item.group in test_groups)
        train = self._least_seen(train_need, self.trained, rng, lambda item: item.group not in test_groups)
        self.tested.update(item.key for items in test.values() for item in items)
        self.trained.update(item.key for items in train.values() for item in items)
        self.drawn += 1
        return _fill(train_cells, train, rng), _fill(test_cells, test, rng)

    def _least_seen(
        self,
        need: Counter[Cell],
        seen: Counter[str],
        rng: np.random.Generator,
        allowed: Callable[[PoolItem], bool],
    ) -> dict[Cell, list[PoolItem]]:
        chosen = {}
        for cell in sorted(need):
            candidates = [item for item in self.by_cell[cell] if allowed(item)]
            ties = rng.random(len(candidates))
            order = sorted(range(len(candidates)), key=lambda i: (seen[candidates[i].key], ties[i]))
            picked = [candidates[i] for i in order[: need[cell]]]
            chosen[cell] = [picked[int(place)] for place in rng.permutation(len(picked))]
        return chosen

    def _test_groups(
        self, train_need: Counter[Cell], test_need: Counter[Cell], rng: np.random.Generator
    ) -> frozenset[str]:
        names = sorted(self.groups)
        # Least tested first spreads the exposure; further tries are at random, for pools of few large groups.
        tested = np.array([np.mean([self.tested[item.key] for item in self.groups[name]]) for name in names])
        for attempt in range(GROUP_TRIES):
            weight = tested if attempt == 0 else np.zeros(len(names))
            order = np.lexsort((rng.random(len(names)), weight))
            side = self._greedy_side([names[int(place)] for place in order], test_need)
            if self._carries(frozenset(names) - side, train_need) and self._carries(side, test_need):
                return side
        return self._exact_side(names, train_need, test_need, rng)

    def _greedy_side(self, order: Sequence[str], need: Counter[Cell]) -> frozenset[str]:
        missing = Counter(need)
        side = set()
        for name in order:
            held = Counter(self._cells.of(item) for item in self.groups[name])
            if any(missing[cell] > 0 for cell in held):
                side.add(name)
                missing.subtract(held)
            if all(count <= 0 for count in missing.values()):
                break
        return frozenset(side)

    def _carries(self, side: frozenset[str], need: Counter[Cell]) -> bool:
        held = Counter(self._cells.of(item) for name in side for item in self.groups[name])
        return all(held[cell] >= count for cell, count in need.items())

    def _exact_side(
        self,
        names: Sequence[str],
        train_need: Counter[Cell],
        test_need: Counter[Cell],
        rng: np.random.Generator,
    ) -> frozenset[str]:
        # Imported here because the planner is imported by web processes, which never plan.
        from scipy.optimize import Bounds, LinearConstraint, milp

        cells = sorted(self.by_cell)
        held = np.zeros((len(cells), len(names)))
        for column, name in enumerate(names):
            for item in self.groups[name]:
                held[cells.index(self._cells.of(item)), column] += 1
        low = np.array([test_need[cell] for cell in cells])
        high = held.sum(axis=1) - np.array([train_need[cell] for cell in cells])
        solution = milp(
            rng.random(len(names)),
            constraints=LinearConstraint(held, low, high),
            integrality=np.ones(len(names)),
            bounds=Bounds(0, 1),
        )
        if not solution.success:
            train, test = (self._counts(need) for need in (train_need, test_need))
            raise GroupsTooLarge(
                f"the pool's {len(names)} groups of items cannot be divided into training ({train}) and test "
                f"({test}), since items of one group never stand on both sides, such as "
                f"{self._largest_groups()}: {self.remedy}, from more groups"
            )
        return frozenset(name for name, chosen in zip(names, solution.x, strict=True) if chosen > 0.5)

    def _counts(self, need: Counter[Cell]) -> str:
        return ", ".join(f"{count} {self._cells.words(cell)}" for cell, count in sorted(need.items()))

    def _largest_groups(self) -> str:
        largest = sorted(self.groups.items(), key=lambda group: (-len(group[1]), group[0]))[:NAMED_MAX]
        return " and ".join(f'the {len(items)} of "{name}"' for name, items in largest)

    def _refuse_shortage(self) -> None:
        totals = sum(self.train_sizes), sum(self.test_sizes)
        by_cell, by_mark = self._cells.most_needed(*totals)
        needs, short = [], []
        for mark in (WRONG, RIGHT):
            have = sum(len(items) for (_, m), items in self.by_cell.items() if m == mark)
            if have < by_mark[mark]:
                short.append(mark)
                needs.append(f"needs {by_mark[mark]} {mark} predictions {self.per}, the pool has {have}")
        for cell, count in [] if needs else sorted(by_cell.items()):
            have = len(self.by_cell[cell]) if cell in self.by_cell else 0
            if have < count:
                needs.append(f"needs {count} {self._cells.words(cell)} {self.per}, the pool has {have}")
        if needs:
            need = "; ".join(needs)
            remedies = f"{self.remedy}{_other_model(short)}{self._cells.remedy}"
            raise NotEnoughItems(f"{need}: {remedies}", need)


def _fill(
    blocks: Sequence[Sequence[Cell]], items: dict[Cell, list[PoolItem]], rng: np.random.Generator
) -> Blocks:
    left = {cell: list(members) for cell, members in items.items()}
    out = []
    for cells in blocks:
        block = [left[cell].pop() for cell in cells]
        out.append(tuple(block[int(place)] for place in rng.permutation(len(block))))
    return tuple(out)


def _other_model(short: Sequence[str]) -> str:
    """A model that is right less often has more wrong predictions, and the other way round; nothing helps if
    there are too few of both, or of one answer."""
    if len(short) != 1:
        return ""
    return f", take a {'weaker' if short[0] == WRONG else 'stronger'} model"
