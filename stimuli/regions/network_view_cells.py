"""What a network's view tells of a picture, on the grid over the whole picture that people see."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stimuli.regions.grid import PIXELS_PER_CELL, cell_means, covered
from stimuli.render.attribution_field import drawn_field
from stimuli.render.recipe import Canvas, RenderSpec
from stimuli.render.view_placement import field_on, region_on, seen_part
from stimuli.types import Mask, PixelAttribution

ITSELF = Canvas("")
"""The picture that people see is the view."""


def cell_strengths(
    made: PixelAttribution, recipe: RenderSpec, canvas: Canvas | None, side: int
) -> NDArray[np.float64]:
    """How strongly a map marks each cell, float64 (side, side): the mean of its strength there, smoothed and
    of the sign of the recipe (evidence for the answer, or magnitudes), without any clipping. -inf for a cell
    of which the network saw nothing; all cells that it saw are 0 if the map is flat.
    """
    sign = recipe.sign if recipe.sign == "magnitude" else "positive"
    plain = RenderSpec(sign=sign, smooth_px=recipe.smooth_px, clip_low=0.0, clip_high=100.0)
    on = canvas or ITSELF
    points = (side * PIXELS_PER_CELL,) * 2
    part = seen_part(on.box, points)
    whole, seen = np.zeros(points, np.float32), np.zeros(points, np.float32)
    whole[part], seen[part] = field_on(drawn_field(made, plain), on, points), 1.0
    shares = cell_means(seen, side)
    sums = cell_means(whole, side)
    strengths = np.full(shares.shape, -np.inf)
    np.divide(sums, shares, out=strengths, where=shares > 0)
    return strengths


def cells_of_view(region: Mask, canvas: Canvas | None, side: int) -> Mask:
    """A region of the view, bool (H, W), as cells of the picture, bool (side, side): see `covered`."""
    return covered(region_on(region, canvas or ITSELF, (side * PIXELS_PER_CELL,) * 2), side)
