"""Which items go into a study: so many of each predicted label, right and wrong, drawn by seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

import numpy as np

from stimuli.errors import BadSpec


class Predicted(Protocol):
    """What selection needs to know about an item; confidence is a share (0-1)."""

    @property
    def key(self) -> str: ...

    @property
    def truth(self) -> str: ...

    @property
    def predicted(self) -> str: ...

    @property
    def confidence(self) -> float: ...


Stratum = tuple[str, bool]
"""Predicted label, and whether it is the true one."""
T = TypeVar("T", bound=Predicted)


def strata(items: Sequence[T]) -> dict[Stratum, list[T]]:
    """Items by predicted label x correct, each stratum in the order of its keys."""
    cells: dict[Stratum, list[T]] = {}
    for item in sorted(items, key=lambda item: item.key):
        cells.setdefault((item.predicted, item.predicted == item.truth), []).append(item)
    return cells


def select(
    items: Sequence[T],
    per_stratum: Mapping[Stratum, int],
    rng: np.random.Generator,
    *,
    confidence: tuple[float, float] = (0.0, 1.0),
) -> list[T]:
    """Draw so many items of each stratum without replacement, in the order of their keys.

    Only items whose confidence lies within `confidence` (both ends included) are considered. The draw
    depends on the generator and on the items' keys, not on their order. Raises BadSpec that names every
    stratum that is too small, with what is needed and what there is.
    """
    low, high = confidence
    cells = strata([item for item in items if low <= item.confidence <= high])
    short = [
        f'{count} {"right" if correct else "wrong"} predictions of "{label}" (there are '
        f"{len(cells.get((label, correct), []))})"
        for (label, correct), count in sorted(per_stratum.items())
        if len(cells.get((label, correct), [])) < count
    ]
    if short:
        raise BadSpec(
            f"the pool is too small: needed are {', '.join(short)}, with a confidence of {low:g} to "
            f"{high:g}; "
            "add pictures, take a weaker model, widen the confidence or ask for fewer trials"
        )
    chosen: list[T] = []
    for stratum, count in sorted(per_stratum.items()):
        pool = cells.get(stratum, [])
        chosen += [pool[index] for index in rng.choice(len(pool), size=count, replace=False)] if count else []
    return sorted(chosen, key=lambda item: item.key)


def balanced(labels: Sequence[str], count: int) -> dict[Stratum, int]:
    """`count` items in equal cells of label x correct; what is left goes to the first cells, one each."""
    cells = [(label, correct) for label in labels for correct in (True, False)]
    whole, rest = divmod(count, len(cells))
    return {cell: whole + (place < rest) for place, cell in enumerate(cells)}
