"""Predicted answer x correct: how many items of each cell there are, are shown, and one session meets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from experiments.kinds import get_kind
from experiments.paradigms.base import Plan, Pool

CELLS = ("the model says", "and is", "in the pool", "shown", "training of one session", "test of one session")
Cell = tuple[str, str]
Row = tuple[str, str, int, int, str, str]


def cell_rows(plans: Sequence[Plan], pool: Pool) -> list[Row]:
    """One row per cell of the pool, without checks; none if no test asks for the model's answer.

    `shown`: different items over all plans. The last two are the fewest and the most items of the cell that a
    session meets under one condition, as "6 to 7".
    """
    if not any(trial.right and get_kind(trial.kind).asks_for_model for p in plans for trial in p.trials):
        return []
    cell_of = {item.key: (item.predicted, "right" if item.correct else "wrong") for item in pool.items}
    shown: dict[Cell, set[str]] = {cell: set() for cell in sorted(set(cell_of.values()))}
    met: dict[str, list[Counter[Cell]]] = {"train": [], "test": []}
    for plan in plans:
        for phase, counts in _counts(plan, cell_of).items():
            met[phase] += counts
        for trial in plan.trials:
            if trial.item in cell_of:
                shown[cell_of[trial.item]].add(trial.item)
    have = Counter(cell_of.values())
    return [
        (*cell, have[cell], len(items), _range(met["train"], cell), _range(met["test"], cell))
        for cell, items in shown.items()
    ]


def _counts(plan: Plan, cell_of: Mapping[str, Cell]) -> dict[str, list[Counter[Cell]]]:
    """Per phase, the cells that the session meets under each of its conditions."""
    counts: dict[str, dict[str, Counter[Cell]]] = {"train": {}, "test": {}}
    for trial in plan.trials:
        if trial.item is not None and trial.item in cell_of and not trial.check:
            counts[trial.phase].setdefault(trial.condition, Counter())[cell_of[trial.item]] += 1
    return {phase: list(by_condition.values()) for phase, by_condition in counts.items()}


def _range(counts: Iterable[Counter[Cell]], cell: Cell) -> str:
    values = [count[cell] for count in counts]
    if not values:
        return "0"
    return str(values[0]) if min(values) == max(values) else f"{min(values)} to {max(values)}"
