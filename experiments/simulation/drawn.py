"""How an observer sees a drawn explanation that is to be rated: what is marked, and what would draw the eye.

A map over the picture is read back from its colours; what stands beside the picture (bars, sentences) is seen
as ink on its ground.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.simulation.looking import own_looking
from experiments.simulation.passage import word_shades
from experiments.simulation.sight import CELLS, Floats, patch_features, place_in_square, read_heat
from stimuli.types import Pixels


@dataclass(frozen=True, slots=True)
class Drawn:
    """`heat` float32 (H, W) in 0-1: how strongly each place is marked; (40, 40) of pictures, (1, words) of
    texts. `looked` float32 (100,): how the eye looks at the picture by itself, sums to 1; None if the
    explanation does not lie on a picture."""

    heat: Floats
    looked: Floats | None = None


def drawn_over(original: Pixels, mark: Pixels) -> Drawn:
    """A map on its picture, uint8 (H, W, 3) each; if they differ in size, what stands beside it."""
    if original.shape != mark.shape:
        return drawn_beside(mark)
    heat = read_heat(original, mark)
    looked = own_looking(patch_features(original))
    return Drawn(np.zeros((CELLS, CELLS), np.float32) if heat is None else heat, looked)


def drawn_beside(mark: Pixels) -> Drawn:
    """The ink of a picture, uint8 (H, W, 3), 40 pixels and more: how far a cell is from the usual colour."""
    colours, counts = np.unique(mark.reshape(-1, 3), axis=0, return_counts=True)
    ground = colours[int(counts.argmax())].astype(np.float32)
    square = np.zeros((max(mark.shape[:2]),) * 2, np.float32)
    square[place_in_square(mark.shape)] = np.abs(mark.astype(np.float32) - ground).max(axis=2) / 255
    rows = np.arange(CELLS + 1) * len(square) // CELLS
    sums = np.add.reduceat(np.add.reduceat(square, rows[:-1], axis=0), rows[:-1], axis=1)
    means = sums / np.outer(np.diff(rows), np.diff(rows))
    return Drawn(np.asarray(means / max(float(means.max()), 1e-9), dtype=np.float32))


def drawn_words(tokens: Sequence[Mapping[str, Any]]) -> Drawn:
    """Marked words in their order."""
    return Drawn(np.array([word_shades(tokens)[1]], np.float32))
