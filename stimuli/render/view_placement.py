"""The picture that people see: its size, what is faded on it, and where the field of the network's view lies.

The network's view is a part of the picture, or a distorted copy of it, with far fewer pixels. People see the
picture at the resolution of the display, in its own proportions; the field is enlarged onto the place of the
view. What the network did not see is faded towards the page, in the plain picture and in the explanation
alike, and nothing is ever drawn on it.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil

import numpy as np
from PIL import Image

from stimuli.errors import ShapeMismatch
from stimuli.render.attribution_field import drawn_field, strength
from stimuli.render.heatmap import grey, paint_field, top_places
from stimuli.render.png import check_picture
from stimuli.render.recipe import Canvas, Interpolation, RenderSpec
from stimuli.types import Box, Mask, PixelAttribution, Pixels, Plane

PIXELS_PER_CSS = 2
"""Pictures have this many pixels per CSS pixel at which a page shows them, for displays of that density."""
PAGE = (236, 236, 236)
"""The ground of the page, `--ground` in the browser's style."""
FADED = 0.65
"""How far the page's ground covers what the network did not see."""

Part = tuple[slice, slice]


def shown_picture(pixels: Pixels, box: Box, longest_px: int, interpolation: Interpolation) -> Pixels:
    """The picture that people see, uint8 (H, W, 3), its longer side `longest_px`: resampled, and faded
    wherever the network saw nothing of it."""
    check_picture(pixels)
    height, width = pixels.shape[:2]
    scale = longest_px / max(height, width)
    size = max(1, round(width * scale)), max(1, round(height * scale))
    is_enlarged = longest_px > max(height, width)
    filter_of = Image.Resampling.NEAREST if is_enlarged and interpolation == "pixelated" else _BICUBIC
    shown = np.asarray(Image.fromarray(pixels).resize(size, filter_of), np.uint8)
    part = seen_part(box, shown.shape)
    if shown[part].shape == shown.shape:
        return shown.copy()
    faded = np.asarray(np.rint(shown * (1 - FADED) + np.array(PAGE) * FADED), np.uint8)
    faded[part] = shown[part]
    return faded


def seen_part(box: Box, shape: tuple[int, ...]) -> Part:
    """Rows and columns of a picture of `shape` (H, W, ...) whose centres lie in the box."""
    height, width = shape[:2]
    left, top, right, bottom = box
    return _inside(top, bottom, height), _inside(left, right, width)


def drawn_on(picture: Pixels, made: PixelAttribution, spec: RenderSpec, canvas: Canvas) -> Pixels:
    """A map drawn where the network's view lies on the picture of a canvas, at any size of it: uint8
    (H, W, 3). A map of another picture is drawn on the view of this one."""
    field = drawn_field(made, spec)
    if spec.style == "top_share":
        # The share is one of the network's pixels: those are what the method ranked.
        field, spec = top_places(strength(field), spec.top_share), replace(spec, style="mask")
    part = seen_part(canvas.box, picture.shape)
    drawn = grey(picture) if spec.base == "grey" else picture.copy()
    drawn[part] = paint_field(picture[part], field_on(field, canvas, picture.shape), spec)
    return drawn


def field_on(field: Plane, canvas: Canvas, shape: tuple[int, ...]) -> Plane:
    """The field of a view at the size of its part of a picture of `shape`, float32: each pixel has the value
    of the place of its centre, and beyond the centres of the outermost pixels theirs."""
    rows, columns = seen_part(canvas.box, shape)
    left, top, right, bottom = canvas.box
    high, wide = field.shape
    x0, x1 = ((at / shape[1] - left) / (right - left) * wide for at in (columns.start, columns.stop))
    y0, y1 = ((at / shape[0] - top) / (bottom - top) * high for at in (rows.start, rows.stop))
    size = columns.stop - columns.start, rows.stop - rows.start
    is_enlarged = size[0] >= x1 - x0 and size[1] >= y1 - y0
    is_pixelated = is_enlarged and canvas.interpolation == "pixelated"
    # Pixels of the picture at the edge of the box reach over it by less than a half of themselves.
    over = ceil(max(0.0, -x0, -y0, x1 - wide, y1 - high))
    return np.asarray(
        Image.fromarray(np.pad(field, over, mode="edge")).resize(
            size,
            Image.Resampling.NEAREST if is_pixelated else Image.Resampling.BILINEAR,
            box=(x0 + over, y0 + over, x1 + over, y1 + over),
        ),
        np.float32,
    )


def region_on(region: Mask, canvas: Canvas, shape: tuple[int, ...]) -> Mask:
    """A region of the network's view on a picture of `shape`, bool (H, W)."""
    whole = np.zeros(shape[:2], bool)
    whole[seen_part(canvas.box, shape)] = field_on(region.astype(np.float32), canvas, shape) >= 0.5
    return whole


def check_fits(made: PixelAttribution, view: Pixels) -> None:
    """ShapeMismatch unless the map has the pixels of the network's view."""
    if made.values.shape != view.shape[:2]:
        raise ShapeMismatch(
            f"the map has {made.values.shape} pixels and the network's view {view.shape[:2]}: "
            "a map belongs to the view that it explains"
        )


def _inside(start: float, stop: float, length: int) -> slice:
    first = max(0, ceil(start * length - 0.5))
    return slice(min(first, length - 1), max(first + 1, min(length, ceil(stop * length - 0.5))))


_BICUBIC = Image.Resampling.BICUBIC
