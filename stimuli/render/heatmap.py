"""Attribution maps as coloured overlays: one recipe for every condition of a study.

The recipe (`RenderSpec`): magnitudes if `absolute`; the percentiles `clip_low` and `clip_high` become 0 and
1, what lies outside is cut; the result v picks a colour of a perceptually uniform colour map; the colour
covers the picture with opacity alpha * (FLOOR + (1 - FLOOR) * v). Opacity grows with v so that unimportant
places show the picture almost as it is; it never depends on the brightness of the picture, nor the picture's
brightness on the map.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from stimuli.errors import BadSpec, ShapeMismatch
from stimuli.render.png import check_picture
from stimuli.spec import RenderSpec
from stimuli.types import Pixels

FLOOR = 0.25
"""The share of alpha that even the least important place is covered with."""
TILE_SCALE = 2
"""Tiles have this many pixels per declared pixel, so that a tile stays crisp when it is enlarged."""

Plane = NDArray[np.float32]


def overlay(picture: Pixels, values: Plane, spec: RenderSpec) -> Pixels:
    """Draw the map `values`, float (H, W), on the picture it belongs to, uint8 (H, W, 3).

    The picture must be the very view that the network saw: other shapes are a ShapeMismatch, never resized.
    """
    check_picture(picture)
    if values.shape != picture.shape[:2]:
        raise ShapeMismatch(
            f"the map has {values.shape} pixels and the picture {picture.shape[:2]}: "
            "draw on the network's own view"
        )
    return _blend(picture, normalised(values, spec), spec)


def overlay_tile(picture: Pixels, values: Plane, spec: RenderSpec) -> Pixels:
    """The same overlay at reservoir size: picture and map are resized first, so that edges stay clean."""
    strength = Image.fromarray(normalised(values, spec))
    resized = strength.resize(_tile_size(picture, spec), Image.Resampling.BILINEAR)
    return _blend(tile(picture, spec), np.asarray(resized, np.float32), spec)


def tile(picture: Pixels, spec: RenderSpec) -> Pixels:
    """The picture at reservoir size: its longer side has `TILE_SCALE * tile_px` pixels."""
    check_picture(picture)
    resized = Image.fromarray(picture).resize(_tile_size(picture, spec), Image.Resampling.LANCZOS)
    return np.asarray(resized, dtype=np.uint8).copy()


def normalised(values: Plane, spec: RenderSpec) -> Plane:
    """The map scaled to 0-1 by its own percentiles, float32 (H, W); all zero if it is constant."""
    check_recipe(spec)
    if not np.isfinite(values).all():
        raise ShapeMismatch("a map with values that are not finite cannot be drawn: render it again")
    exact = np.asarray(np.abs(values) if spec.absolute else values, np.float64)
    low, high = (float(edge) for edge in np.percentile(exact, [spec.clip_low, spec.clip_high]))
    if _is_flat(low, high):
        # A map with a few strong points among zeros has equal percentiles; its whole range then counts.
        low, high = float(exact.min()), float(exact.max())
    if _is_flat(low, high):
        return np.zeros(exact.shape, np.float32)
    return np.asarray(np.clip((exact - low) / (high - low), 0, 1), np.float32)


def check_recipe(spec: RenderSpec) -> RenderSpec:
    """Return `spec` if it can be drawn; BadSpec names the value and its limits."""
    if spec.colormap not in COLORMAPS:
        raise BadSpec(f"render colormap {spec.colormap!r} is not known: use one of {', '.join(COLORMAPS)}")
    if not 0 < spec.alpha <= 1:
        raise BadSpec(f"render alpha is {spec.alpha!r}, but must be above 0 and at most 1")
    if not 0 <= spec.clip_low < spec.clip_high <= 100:
        raise BadSpec(
            f"render clip_low {spec.clip_low!r} and clip_high {spec.clip_high!r} are refused: "
            "percentiles lie between 0 and 100, the low one below the high one"
        )
    if not 16 <= spec.tile_px <= 512:
        raise BadSpec(f"render tile_px is {spec.tile_px!r}, but must lie between 16 and 512")
    return spec


COLORMAPS = ("viridis", "cividis", "inferno", "magma", "plasma")


@cache
def palette(name: str) -> Plane:
    """256 colours of a colour map, float32 (256, 3) in 0-255."""
    from matplotlib import colormaps  # half a second to import

    return np.asarray(colormaps[name](np.linspace(0, 1, 256))[:, :3] * 255, np.float32)


def _is_flat(low: float, high: float) -> bool:
    """Whether the range is no more than the rounding of single precision."""
    return high - low <= 1e-6 * max(abs(low), abs(high))


def _blend(picture: Pixels, strength: Plane, spec: RenderSpec) -> Pixels:
    colours = palette(spec.colormap)[np.rint(strength * 255).astype(np.uint8)]
    opacity = (spec.alpha * (FLOOR + (1 - FLOOR) * strength))[..., None]
    blended = np.rint(picture * (1 - opacity) + colours * opacity)
    return np.asarray(blended, np.uint8)


def _tile_size(picture: Pixels, spec: RenderSpec) -> tuple[int, int]:
    """Width and height of a tile."""
    height, width = picture.shape[:2]
    scale = TILE_SCALE * spec.tile_px / max(height, width)
    return max(1, round(width * scale)), max(1, round(height * scale))
