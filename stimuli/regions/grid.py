"""Cells of a grid over a picture: as a list, as a mask, and as the strongest part of a field.

A grid of `side` x `side` cells covers the whole picture that people see, of any proportions. Cells are
numbered from 0, row by row from the upper left corner.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stimuli.errors import ShapeMismatch
from stimuli.planner.ranking import most_important_first
from stimuli.types import Mask, Plane

PIXELS_PER_CELL = 8
"""A field is laid over so many points of each cell, each way, before their mean is taken."""


def mask_of(cells: Sequence[int], side: int) -> Mask:
    """The cells as a mask, bool (side, side). ShapeMismatch for a cell that the grid does not have."""
    mask = np.zeros(side * side, np.bool_)
    for cell in cells:
        if not 0 <= cell < side * side:
            raise ShapeMismatch(
                f"cell {cell} lies outside the grid of {side} x {side} cells, which are 0 to "
                f"{side * side - 1}: the region was marked on another grid"
            )
        mask[cell] = True
    return mask.reshape(side, side)


def cells_of(mask: Mask) -> tuple[int, ...]:
    """The cells of a mask, bool (side, side), in ascending order."""
    return tuple(int(cell) for cell in np.flatnonzero(mask))


def strongest(field: ArrayLike, count: int) -> Mask:
    """The `count` cells of largest value of a field (side, side), as a mask; at least one and at most all.
    Of equal values the same ones are taken every time, in the one drawn order of the grid."""
    values = np.asarray(field, np.float64)
    chosen = np.zeros(values.size, np.bool_)
    chosen[most_important_first(values)[: max(1, count)]] = True
    return chosen.reshape(values.shape)


def cell_means(field: Plane, side: int) -> NDArray[np.float64]:
    """The mean of a field (side * n, side * n) in each cell, float64 (side, side)."""
    height, width = field.shape
    if height != width or height % side:
        raise ShapeMismatch(
            f"a field of {height} x {width} does not divide into {side} x {side} cells of equal size"
        )
    part = height // side
    exact = np.asarray(field, np.float64).reshape(side, part, side, part)
    return np.asarray(exact.mean((1, 3)), np.float64)


def covered(mask: Mask, side: int) -> Mask:
    """The cells of which a mask of a picture, bool (H, W), covers at least a half, bool (side, side); if it
    covers that of none, the one that it covers most. None for an empty mask."""
    if not mask.any():
        return np.zeros((side, side), np.bool_)
    height, width = mask.shape
    rows = (np.arange(side * PIXELS_PER_CELL) + 0.5) / (side * PIXELS_PER_CELL)
    points = mask[(rows * height).astype(int)][:, (rows * width).astype(int)]
    shares = cell_means(points.astype(np.float32), side)
    return np.asarray(shares >= 0.5) if (shares >= 0.5).any() else strongest(shares, 1)
