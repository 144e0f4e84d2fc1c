"""Plain properties of a drawn map: the baseline without which a scorer's success says nothing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import label

from stimuli.errors import ShapeMismatch
from stimuli.types import Mask, Plane

PROPERTIES = ("area", "fragments", "row", "column", "overlap")
STRONG = 0.5
"""The strength from which a place counts as marked."""


def properties_of(strength: Plane, thing: Mask | None = None) -> NDArray[np.float64]:
    """PROPERTIES of a map of strengths 0-1, float (H, W): float64 (5,).

    `area`: share of the pixels that are marked. `fragments`: root of the number of connected marked pieces,
    neighbours by an edge. `row`, `column`: centre of the strength, 0-1. `overlap`: share of the marked pixels
    that lie on the object `thing`, bool (H, W). The middle, or 0, of a map without a marked pixel, and of
    `overlap` if no object is known. Raises ShapeMismatch if the two differ in shape.
    """
    values = np.clip(np.asarray(strength, np.float64), 0, None)
    if values.ndim != 2 or not values.size or (thing is not None and thing.shape != values.shape):
        raise ShapeMismatch(
            f"properties are of a map (H, W), and of an object of the same shape, not {values.shape} and "
            f"{None if thing is None else thing.shape}"
        )
    marked = values >= STRONG
    pieces = int(label(marked)[1])
    total = values.sum()
    centre = [
        float((values.sum(axis=1 - axis) * (np.arange(side) + 0.5)).sum() / total / side) if total else 0.5
        for axis, side in enumerate(values.shape)
    ]
    count = int(marked.sum())
    on = float((marked & thing).sum() / count) if thing is not None and count else 0.0
    return np.array([count / values.size, np.sqrt(pieces), *centre, on])
