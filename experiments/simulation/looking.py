"""Where the frozen observers look: at the middle and at what differs from the picture's border, unless a map
that they can read leads them. Pure arrays; every number is declared in observers.toml.

References: Tatler (2007) and Clarke and Tatler (2014), the central bias of fixations; Wei et al. (2012),
contrast with the border as a sign of objects; Torralba et al. (2006), guides of the eye multiply; Bouma
(1970) and Parkes et al. (2001), crowding averages neighbours.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from experiments.simulation.parameters import value
from experiments.simulation.sight import (
    CELLS,
    GRID,
    JUST_NOTICEABLE,
    PATCHES,
    Floats,
    Percept,
    attention_of,
    patch_features,
    read_heat,
)
from stimuli.types import Pixels

Shares = NDArray[np.float64]


def perceive(original: Pixels, overlay: Pixels | None = None) -> Percept:
    """Looks at a picture and, if there is one, at its overlay; uint8 (H, W, 3) each, of one size."""
    features = patch_features(original)
    plain = Percept(features, unguided=own_looking(features))
    heat = None if overlay is None else read_heat(original, overlay)
    return plain if heat is None else led(plain, heat)


def led(plain: Percept, heat: Floats) -> Percept:
    """What all kinds of observers take from the heat (40, 40) in 0-1 that was read over a picture."""
    return replace(plain, attention=attention_of(heat), guided=guidance(heat))


def own_looking(features: Floats) -> Floats:
    """How the eye looks by itself, float32 (100,), sums to 1: the central bias times the contrast with the
    border."""
    spread = np.maximum(features.std(axis=0), JUST_NOTICEABLE)
    scaled = features / spread
    apart = scaled[:, None, :] - scaled[None, _border(), :]
    contrast = np.sqrt((apart**2).mean(axis=2)).mean(axis=1).astype(np.float64)
    weight = _centre() * contrast ** value("object", "exponent")
    # A picture of one colour has no object: the middle alone is left.
    weight = weight if weight.sum() > 0 else _centre()
    return np.asarray(weight / weight.sum(), dtype=np.float32)


def guidance(heat: Floats) -> Floats | None:
    """The places that a map leads to, float32 (100,), sums to 1; None if it cannot be read.

    Neighbours within the critical spacing are averaged; what then spans less than one step of the scale is
    not read. So a square of a cells at heat h on an empty map, within the spacing of w x w cells, is read if
    h a / w^2 reaches the step.
    """
    pooled = _pooled(heat, int(value("map", "pooled_cells")))
    low, high = float(pooled.min()), float(pooled.max())
    if high - low < value("map", "least_span"):
        return None
    side = CELLS // GRID
    patches = ((pooled - low) / (high - low)).reshape(GRID, side, GRID, side).mean(axis=(1, 3)).reshape(-1)
    weight = patches ** value("map", "exponent")
    return np.asarray(weight / weight.sum(), dtype=np.float32)


def where_looked(percept: Percept) -> Shares:
    """The share of fixations that each patch gets, float64 (100,), sums to 1."""
    unguided = own_looking(percept.features) if percept.unguided is None else percept.unguided
    alone = unguided.astype(np.float64)
    if percept.guided is None:
        return alone
    # Guides multiply: a map that is bright everywhere, or at random, leads nowhere.
    both = alone * percept.guided.astype(np.float64)
    return both / both.sum() if both.sum() > 0 else alone


def _pooled(heat: Floats, window: int) -> Shares:
    """The mean over window x window cells (odd), as far as they lie in the picture."""
    places = np.arange(CELLS)
    near = (np.abs(places[:, None] - places[None, :]) <= window // 2).astype(np.float64)
    near /= near.sum(axis=1, keepdims=True)
    return np.asarray(near @ heat.astype(np.float64) @ near.T)


@lru_cache(maxsize=1)
def _centre() -> Shares:
    """The central bias, float64 (100,), sums to 1."""
    places = (np.arange(GRID) + 0.5) / GRID - 0.5
    across = np.exp(-0.5 * (places / value("centre", "sd_across")) ** 2)
    down = np.exp(-0.5 * (places / value("centre", "sd_down")) ** 2)
    weight = np.outer(down, across).reshape(-1)
    return np.asarray(weight / weight.sum())


@lru_cache(maxsize=1)
def _border() -> NDArray[np.int64]:
    """The patches at the edge of the picture (36,)."""
    row, column = np.divmod(np.arange(PATCHES), GRID)
    return np.flatnonzero((row % (GRID - 1) == 0) | (column % (GRID - 1) == 0))
