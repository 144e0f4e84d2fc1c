"""A text as words that can be taken out, and what lies between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stimuli.types import TokenAttribution

Span = tuple[int, int]
Kept = NDArray[np.bool_]


@dataclass(frozen=True)
class Words:
    """The words of a text as features. `spans` are its words, in order and without overlap.

    With `together` equal words (letter by letter) are one feature, and are hidden together. A hidden word
    becomes `mask`; if that is empty it is removed, and what lay around it stays.
    """

    text: str
    spans: tuple[Span, ...]
    together: bool = False
    mask: str = ""

    @cached_property
    def features(self) -> tuple[int, ...]:
        """Per span the number of its feature, counted in the order of first appearance."""
        if not self.together:
            return tuple(range(len(self.spans)))
        numbers: dict[str, int] = {}
        return tuple(numbers.setdefault(self.text[a:b], len(numbers)) for a, b in self.spans)

    @property
    def count(self) -> int:
        """The number of features."""
        return 1 + max(self.features, default=-1)

    @cached_property
    def _gaps(self) -> tuple[str, ...]:
        """What lies before each word, and behind the last."""
        ends = [0, *(end for _, end in self.spans)]
        starts = [*(start for start, _ in self.spans), len(self.text)]
        return tuple(self.text[end:start] for end, start in zip(ends, starts, strict=True))

    def shown(self, kept: Kept) -> str:
        """The text with only the features where `kept`, bool (count,), is true."""
        parts = [self._gaps[0]]
        for (start, end), feature, gap in zip(self.spans, self.features, self._gaps[1:], strict=True):
            parts += [self.text[start:end] if kept[feature] else self.mask, gap]
        return "".join(parts)

    def all_shown(self, rows: Kept) -> list[str]:
        """One text per row of bool (n, count)."""
        return [self.shown(row) for row in rows]

    def attribution(
        self, values: Sequence[float] | NDArray[np.float64], checks: dict[str, float]
    ) -> TokenAttribution:
        """Values per feature as values per word."""
        per_word = [float(values[feature]) for feature in self.features]
        return TokenAttribution(self.spans, np.asarray(per_word, np.float32), checks)


def largest(values: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """The `count` values of largest magnitude, the rest 0; all if `count` is 0. Of equals the first."""
    if not count:
        return values
    order = np.argsort(-np.abs(values), kind="stable")[:count]
    kept = np.zeros_like(values)
    kept[order] = values[order]
    return kept
