"""The outline of a marked region on the picture that people see: one line for every source.

A black line in a white casing shows on any ground and to any eye, and has no colour that could hide or reveal
a figure made of colours. The region runs along the edges of its cells; an empty one leaves the picture as it
is.
"""

from __future__ import annotations

import numpy as np

from stimuli.errors import ShapeMismatch
from stimuli.render.heatmap import from_edge
from stimuli.render.png import check_picture
from stimuli.types import Mask, Pixels, RegionAttribution

LINE_SHARE = 1 / 280
"""Half the width of the line, as a share of the picture's longer side; at least one pixel."""
CASING_SHARE = 1 / 160


def outline_region(picture: Pixels, made: RegionAttribution) -> Pixels:
    """The picture with the outline of the region, uint8 (H, W, 3). ShapeMismatch for cells that are no square
    grid."""
    check_picture(picture)
    inside = on_picture(made.cells, picture.shape)
    if not inside.any():
        return picture.copy()
    # Beyond the picture nothing is marked, so that a region at its border is closed there.
    away = from_edge(np.pad(inside, 1))[1:-1, 1:-1]
    longest = max(picture.shape[:2])
    half, casing = max(1.0, LINE_SHARE * longest), max(1.0, CASING_SHARE * longest)
    drawn = picture.astype(np.float32)
    for ink, reach in ((255.0, half + casing), (0.0, half)):
        cover = np.clip(reach + 0.5 - away, 0, 1)[..., None]
        drawn = drawn * (1 - cover) + ink * cover
    return np.asarray(np.rint(drawn), np.uint8)


def on_picture(cells: Mask, shape: tuple[int, ...]) -> Mask:
    """The region at the size of a picture of `shape` (H, W, ...): each pixel as the cell of its centre."""
    if cells.ndim != 2 or cells.shape[0] != cells.shape[1] or not cells.size:
        raise ShapeMismatch(f"a region is marked on a square grid, and this one is {cells.shape}")
    side = cells.shape[0]
    rows, columns = (((np.arange(n) + 0.5) / n * side).astype(int) for n in shape[:2])
    return np.asarray(cells[rows][:, columns])
