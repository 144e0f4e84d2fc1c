"""Fields as pictures: one recipe for every condition of a study.

A field (`attribution_field.drawn_field`) picks colours of a palette, which cover the picture at one constant
opacity, so that lightness grows with strength on every ground. With `base` "grey" the picture below has no
colour of its own, so that every hue belongs to the palette. The other styles show the picture itself where it
matters: lines of equal strength, or grey over what matters less."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from stimuli.errors import ShapeMismatch
from stimuli.planner.ranking import most_important_first
from stimuli.render.attribution_field import drawn_field, strength
from stimuli.render.png import check_picture
from stimuli.render.recipe import RenderSpec
from stimuli.types import PixelAttribution, Pixels, Plane

FLOOR = 0.25
"""Under the law "rising", the share of alpha that even the least important place is covered with."""
TILE_SCALE = 2
"""Tiles have this many pixels per declared pixel, so that a tile stays crisp when it is enlarged."""
LEVELS = (0.25, 0.5, 0.75)
"""Strengths at which contour lines run."""
VEIL = 128
"""The grey that covers what matters less."""
HIDDEN = 0.85
"""How far that grey covers what does not matter at all: a rest of the picture keeps places recognisable."""

Floats = NDArray[np.float32]


def overlay(picture: Pixels, made: PixelAttribution, spec: RenderSpec) -> Pixels:
    """Draw a map on the picture it belongs to, uint8 (H, W, 3).

    The picture must be the very view that the network saw: other shapes are a ShapeMismatch, never resized.
    """
    check_picture(picture)
    if made.values.shape != picture.shape[:2]:
        raise ShapeMismatch(
            f"the map has {made.values.shape} pixels and the picture {picture.shape[:2]}: "
            "draw on the network's own view"
        )
    return paint_field(picture, drawn_field(made, spec), spec)


def overlay_tile(picture: Pixels, made: PixelAttribution, spec: RenderSpec) -> Pixels:
    """The same at reservoir size: picture and field are resized first, so that edges stay clean."""
    field = resize_field(drawn_field(made, spec), _tile_size(picture, spec))
    return paint_field(tile(picture, spec), field, spec)


def tile(picture: Pixels, spec: RenderSpec) -> Pixels:
    """The picture at reservoir size: its longer side has `TILE_SCALE * tile_px` pixels."""
    check_picture(picture)
    smaller = Image.fromarray(picture).resize(_tile_size(picture, spec), Image.Resampling.LANCZOS)
    return np.asarray(smaller, dtype=np.uint8).copy()


def resize_field(field: Plane, size: tuple[int, int]) -> Plane:
    """A field at another size (width, height), bilinear."""
    return np.asarray(Image.fromarray(field).resize(size, Image.Resampling.BILINEAR), np.float32)


def paint_field(picture: Pixels, field: Plane, spec: RenderSpec) -> Pixels:
    """A field of the picture's own size (H, W) drawn on it, uint8 (H, W, 3)."""
    below = grey(picture) if spec.base == "grey" else picture
    if spec.style == "contour":
        return _contour(below, field, spec)
    if spec.style == "mask":
        return _veil_picture(below, strength(field))
    if spec.style == "top_share":
        return _veil_picture(below, top_places(strength(field), spec.top_share))
    colours = palette(spec.colormap)[_places(field, spec)]
    opacity: Floats | float = spec.alpha
    if spec.opacity == "rising":
        opacity = (spec.alpha * (FLOOR + (1 - FLOOR) * field))[..., None]
    return np.asarray(np.rint(below * (1 - opacity) + colours * opacity), np.uint8)


def grey(picture: Pixels) -> Pixels:
    """The picture in greys of the same luminance (Rec. 709, in linear light), uint8 (H, W, 3)."""
    light = linear(picture) @ np.array([0.2126, 0.7152, 0.0722])
    shade = np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)
    return np.repeat(np.asarray(np.rint(255 * shade), np.uint8)[..., None], 3, 2)


def linear(picture: Pixels) -> NDArray[np.float64]:
    """sRGB as linear light, float64 (H, W, 3) in 0-1. [IEC 61966-2-1]"""
    shares = np.arange(256) / 255
    table = np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)
    return np.asarray(table[picture], np.float64)


def top_places(field: Plane, share: float) -> Plane:
    """1 at the `share` of the pixels with the largest values, else 0; equal values by the one seeded order.
    All 0 if the field is flat: then no place matters more than another."""
    if float(field.max()) == float(field.min()):
        return np.zeros(field.shape, np.float32)
    chosen = np.zeros(field.size, np.float32)
    chosen[most_important_first(field)[: max(1, round(share * field.size))]] = 1
    return chosen.reshape(field.shape)


@cache
def scale_of(name: str, steps: int = 9) -> list[str]:
    """Colours of a palette from 0 to 1 in even steps, as #rrggbb: for a legend."""
    places = np.rint(np.linspace(0, 255, steps)).astype(int)
    return ["#" + bytes(np.rint(colour).astype(np.uint8)).hex() for colour in palette(name)[places]]


@cache
def palette(name: str) -> Floats:
    """256 colours of a colour map, float32 (256, 3) in 0-255."""
    from matplotlib import colormaps  # half a second to import

    return np.asarray(colormaps[name](np.linspace(0, 1, 256))[:, :3] * 255, np.float32)


def _places(field: Plane, spec: RenderSpec) -> NDArray[np.uint8]:
    """The places of a field on its palette. A diverging field has 0 at 127.5, between the two middle colours,
    which are taken as one."""
    if spec.sign == "diverging":
        return np.asarray(np.rint(127.5 + 127.5 * field), np.uint8)
    return np.asarray(np.rint(field * 255), np.uint8)


def _contour(below: Pixels, field: Plane, spec: RenderSpec) -> Pixels:
    """Lines of equal strength in the palette's colours, wider where strength is higher; each lies in a white
    casing with a black edge, so that it shows on dark and on light ground."""
    drawn = below.astype(np.float32)
    side_px = max(field.shape)
    casing = max(1.0, side_px / 320)
    for side in (1.0, -1.0) if spec.sign == "diverging" else (1.0,):
        for level in LEVELS:
            inside = side * field >= level
            if not inside.any() or inside.all():
                continue
            place = _places(np.full((1, 1), side * level, np.float32), spec)[0, 0]
            half = max(1.0, (0.6 + level) * side_px / 280)
            away = from_edge(inside)
            for ink, reach in (
                (0.0, half + 2 * casing),
                (255.0, half + casing),
                (palette(spec.colormap)[place], half),
            ):
                cover = np.clip(reach + 0.5 - away, 0, 1)[..., None]
                drawn = drawn * (1 - cover) + ink * cover
    return np.asarray(np.rint(drawn), np.uint8)


def from_edge(inside: NDArray[np.bool_]) -> Floats:
    """The distance of each pixel's middle from the edge of a region, in pixels."""
    from scipy.ndimage import distance_transform_edt

    within, without = distance_transform_edt(inside), distance_transform_edt(~inside)
    return np.asarray(np.where(inside, within, without) - 0.5, np.float32)


def _veil_picture(below: Pixels, shown: Plane) -> Pixels:
    """The picture where `shown` is 1, grey where it is 0."""
    veil = (HIDDEN * (1 - shown))[..., None]
    return np.asarray(np.rint(below * (1 - veil) + VEIL * veil), np.uint8)


def _tile_size(picture: Pixels, spec: RenderSpec) -> tuple[int, int]:
    """Width and height of a tile."""
    height, width = picture.shape[:2]
    scale = TILE_SCALE * spec.tile_px / max(height, width)
    return max(1, round(width * scale)), max(1, round(height * scale))
