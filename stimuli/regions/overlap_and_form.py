"""Numbers of a region: how two of them overlap, and what its form alone may tell."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stimuli.regions.mark_smoothing import NEIGHBOURS, hull
from stimuli.types import Mask

FORM = ("area", "edge", "parts", "holes", "fullness", "wide", "high", "spread")
"""The numbers of `form_numbers`, in their order."""


def overlap(first: Mask, second: Mask) -> float:
    """Intersection over union of two masks of one shape, 0-1; 1 if both are empty."""
    union = int((first | second).sum())
    return int((first & second).sum()) / union if union else 1.0


def form_numbers(region: Mask) -> NDArray[np.float64]:
    """The `FORM` of a region, bool (side, side), float64 (8,); 0 for an empty one. None says where it lies.

    Its area and the length of its edge in cells; how many parts hang together, and how many holes they have;
    the share of its convex hull that it fills; the width and height of its box in cells; the standard
    deviation of its cells' distances from their middle.
    """
    from scipy.ndimage import label

    area = int(region.sum())
    if not area:
        return np.zeros(len(FORM))
    padded = np.pad(region, 1)
    edge = int((padded[1:] != padded[:-1]).sum() + (padded[:, 1:] != padded[:, :-1]).sum())
    _, parts = label(region, NEIGHBOURS)
    _, outside = label(~padded)
    rows, columns = np.nonzero(region)
    away = np.hypot(rows - rows.mean(), columns - columns.mean())
    return np.array(
        [
            area,
            edge,
            parts,
            outside - 1,
            area / int(hull(region).sum()),
            np.ptp(columns) + 1,
            np.ptp(rows) + 1,
            away.std(),
        ],
        np.float64,
    )
