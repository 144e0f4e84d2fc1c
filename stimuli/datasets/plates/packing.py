"""Dots of several sizes packed into a disc without overlap."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
RADII = (0.036, 0.031, 0.027, 0.023, 0.020, 0.017)
"""Of the dots, in radii of the disc, largest first."""
SHARE_EACH = 0.11
"""The share of the disc's area that the dots of one radius take at most; the smallest ones fill the rest."""
GAP = 0.005
"""Between two dots and between a dot and the rim, at least."""
CELLS = 320
"""Per side of the grid on which free places are kept."""
PACKINGS = 24
"""Packings per seed. Each plate turns one of them, which gives it an arrangement of its own."""
LEAST_SHRUNK = 0.85
"""Each dot is drawn at this share of its packed radius at least."""


@dataclass(frozen=True, slots=True)
class Dots:
    """`middles` (N, 2) as x and y, from -1 to 1, and `radii` (N,), in radii of the disc."""

    middles: Floats
    radii: Floats

    def turned(self, rng: np.random.Generator) -> Dots:
        """The dots at an angle, mirrored or not, each a little smaller than it was packed: all by chance."""
        angle, mirror = rng.uniform(0, 2 * np.pi), rng.choice([-1.0, 1.0])
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        shrunk = self.radii * rng.uniform(LEAST_SHRUNK, 1.0, len(self.radii))
        return Dots(self.middles * (mirror, 1.0) @ turn.T, shrunk)


@lru_cache(maxsize=4 * PACKINGS)
def pack_dots(seed: int, number: int) -> Dots:
    """A packing of the disc of radius 1: places are drawn among those that are free, large dots first."""
    rng = np.random.default_rng([seed, 31, number])
    axis = (np.arange(CELLS) + 0.5) / CELLS * 2 - 1
    x, y = np.meshgrid(axis, axis)
    free = 1 - np.hypot(x, y) - GAP  # from each cell's middle to the nearest dot or rim
    middles, radii = [], []
    for radius in RADII:
        most = round(SHARE_EACH / radius**2) if radius != RADII[-1] else CELLS**2
        reach = int(np.ceil((RADII[0] + radius + GAP) * CELLS / 2)) + 1
        for _ in range(most):
            places = np.flatnonzero(free >= radius)
            if not len(places):
                break
            row, column = divmod(int(rng.choice(places)), CELLS)
            near = np.s_[max(0, row - reach) : row + reach + 1, max(0, column - reach) : column + reach + 1]
            distance = np.hypot(x[near] - axis[column], y[near] - axis[row]) - radius - GAP
            np.minimum(free[near], distance, out=free[near])
            middles.append((axis[column], axis[row]))
            radii.append(radius)
    return Dots(np.array(middles), np.array(radii))
