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
ROUNDING = 1e-7
"""Scores that differ by no more than this share of their size are equal: networks use single precision."""
TRIES = 200


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


def says_nothing(scores: NDArray[np.float64], least_size: float = 0.0) -> bool:
    """Whether the scores (n,) of all altered texts are equal but for rounding, so that no word matters.

    `least_size` is the size below which scores are not told apart more finely.
    """
    return float(np.ptp(scores)) <= ROUNDING * max(float(np.abs(scores).max()), least_size)


def scatter_values(
    text: str, spans: Sequence[Span], values: NDArray[np.float32], rng: np.random.Generator
) -> NDArray[np.float32]:
    """The values (n,) of the words at `spans`, on random words: the same values, each as often.

    If equal words have equal values, they still do afterwards: values change places among words that occur
    equally often. If that would keep the marks on the same words (the only word that occurs three times stays
    it), the places of one value go to several words instead. Only if no such way is found, or if equal words
    differ, every place is treated by itself.
    """
    numbers = np.array(Words(text, tuple(spans), together=True).features, np.int64)
    counts = np.bincount(numbers, minlength=1)
    of_word = np.zeros(len(counts), np.float32)
    of_word[numbers] = values
    if len(counts) == len(values) or (of_word[numbers] != values).any():
        return values[rng.permutation(len(values))]
    exchanged = _exchange_values(of_word, counts, rng)
    if exchanged is None:
        exchanged = _fill_places(values, counts, rng)
    return values[rng.permutation(len(values))] if exchanged is None else exchanged[numbers]


def _exchange_values(
    of_word: NDArray[np.float32], counts: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.float32] | None:
    """Values permuted among words that occur equally often; None if marked ones have no other to go to."""
    permuted = of_word.copy()
    for count in np.unique(counts):
        peers = np.flatnonzero(counts == count)
        if of_word[peers].any() and of_word[peers].all():
            return None
        permuted[peers] = of_word[rng.permutation(peers)]
    return permuted


def _fill_places(
    values: NDArray[np.float32], counts: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.float32] | None:
    """Each word gets one value, and each value as many places as it has now; None if that is not found."""
    different, room_of = np.unique(values, return_counts=True)
    for _ in range(TRIES):
        room, filled = room_of.copy(), np.zeros(len(counts), np.float32)
        words = rng.permutation(len(counts))
        # Words with many places are the hardest to fit in.
        for word in words[np.argsort(-counts[words], kind="stable")]:
            fits = np.where(room >= counts[word], room, 0)
            if not fits.any():
                break
            chosen = int(rng.choice(len(different), p=fits / fits.sum()))
            filled[word] = different[chosen]
            room[chosen] -= counts[word]
        if not room.any():
            return filled
    return None


def largest(values: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """The `count` values of largest magnitude, the rest 0; all if `count` is 0. Of equals the first."""
    if not count:
        return values
    order = np.argsort(-np.abs(values), kind="stable")[:count]
    kept = np.zeros_like(values)
    kept[order] = values[order]
    return kept
