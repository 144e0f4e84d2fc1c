"""What an observer takes from a picture, and from a picture with an explanation beside it. Pure arrays.

Everything is declared here and fixed; nothing is fitted to a study, a condition or a method. The observer
gets the two pictures that a person gets, and no map, mask, recipe or name.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from stimuli.types import Pixels

Floats = NDArray[np.float32]

WORKING_PX = 160
"""Pictures are seen at this size: about what a person resolves of a 320 px picture at arm's length."""
GRID = 10
"""Patches per side. 16 of 160 px is about one degree and a half of visual angle, a fixation's worth."""
PATCHES = GRID * GRID
FEATURES = (
    *("lightness", "red_green", "blue_yellow", "contrast"),
    *("edge_0", "edge_45", "edge_90", "edge_135", "junctions", "grain"),
)
"""Mean colour in an opponent space, local contrast, edges in four orientations, corners (edges in more than
one direction at one place) and fine grain: what early vision delivers, without knowing objects.
"""
JUST_NOTICEABLE = np.array([0.03, 0.02, 0.02, 0.02, *[0.01] * 6], dtype=np.float32)
"""Differences (0-1 units) below which a dimension does not count, about the size of a visible step."""

CELLS = 40
"""The heat map is read on 40 x 40 cells, finer than the patches so that it can be cut and moved."""
LEVELS, LEGEND_LEVELS = 64, 32
"""Steps of heat that can be told apart on a colour scale; fewer do for finding out which scale it is."""
ALPHAS = np.arange(0.20, 1.001, 0.05)
FLOORS = (1.0, 0.5, 0.25, 0.0)
"""Opacities that a reader expects: at full heat, and the share of it that remains at zero heat."""
SCALES = {
    "viridis": "440154 481f70 443983 3b528b 31688e 287c8e 21918c 20a486 35b779 5ec962 90d743 c8e020 fde725",
    "cividis": "00224e 003170 2a3f6d 434e6c 575d6d 6a6c71 7d7c78 918b78 a59c74 bcae6c d2c060 e9d34e fee838",
    "inferno": "000004 110a30 320a5e 57106e 781c6d 9a2865 bc3754 d84c3e ed6925 f98e09 fbb61a f4df53 fcffa4",
    "magma": "000004 100b2d 2c115f 51127c 721f81 932b80 b73779 d8456c f1605d fc8961 feb078 fed799 fcfdbf",
    "plasma": "0d0887 3a049a 5c01a6 7e03a8 9c179e b52f8c cc4778 de5f65 ed7953 f89540 fdb42f fbd524 f0f921",
}
"""The colour scales a reader knows ("bright is important"), as 13 evenly spaced colours each."""
FLAT_SHARE = 0.05
"""A map whose readings span less than this share of the scale says nothing: attention stays even."""
ATTENTION_GAIN = 2.0
"""Attention grows with the square of the heat read: people look at bright places and ignore faint ones."""

PAGE = 236
"""The grey of the page, which stands beside a picture that is not square."""


@dataclass(frozen=True, slots=True)
class Percept:
    """What was taken in: `features` float32 (100, 10), row-major patches; the others float32 (100,), sums to
    1.

    `attention` is where an explanation leads an eye that reads every cell of it (observers of version 1),
    `guided` one that reads as people do (`looking`); None if nothing led it: no explanation, or one that says
    nothing. `unguided` is where that eye goes by itself.
    """

    features: Floats
    attention: Floats | None = None
    unguided: Floats | None = None
    guided: Floats | None = None

    def where(self) -> Floats:
        """The share of looking that each patch gets; even without guidance."""
        if self.attention is not None:
            return self.attention
        return np.full(PATCHES, 1.0 / PATCHES, dtype=np.float32)


def patch_features(picture: Pixels) -> Floats:
    """The declared features of every patch, float32 (100, 10)."""
    rgb = _resample(squared(picture), WORKING_PX)
    red, green, blue = rgb[..., 0], rgb[..., 1], rgb[..., 2]
    light: Floats = np.asarray((red + green + blue) / 3, dtype=np.float32)
    down, right = (np.asarray(slope, dtype=np.float32) for slope in np.gradient(light))
    planes = [light, red - green, blue - (red + green) / 2, light * light]
    for angle in (0.0, 45.0, 90.0, 135.0):
        turn = np.deg2rad(angle)
        planes.append(np.abs(np.cos(turn) * right + np.sin(turn) * down))
    side = WORKING_PX // GRID
    planes += [_smaller_edge(down, right), np.abs(light - _blurred(light))]
    means = np.stack(planes, axis=-1).reshape(GRID, side, GRID, side, len(planes)).mean(axis=(1, 3))
    means[..., 3] = np.sqrt(np.maximum(means[..., 3] - means[..., 0] ** 2, 0))
    return np.asarray(means.reshape(PATCHES, len(FEATURES)), dtype=np.float32)


def _smaller_edge(down: Floats, right: Floats) -> Floats:
    """Strength of edges across the main direction: root of the lesser eigenvalue of the structure tensor."""
    rows, columns, mixed = (_blurred(product) for product in (down * down, right * right, down * right))
    half, spread = (rows + columns) / 2, np.hypot((rows - columns) / 2, mixed)
    return np.asarray(np.sqrt(np.maximum(half - spread, 0)), dtype=np.float32)


def _blurred(plane: Floats) -> Floats:
    """The mean over 5 x 5 pixels, edges repeated."""
    padded = np.pad(plane, 2, mode="edge")
    height, width = plane.shape
    rows = np.stack([padded[i : i + height] for i in range(5)]).sum(axis=0)
    total = np.stack([rows[:, i : i + width] for i in range(5)]).sum(axis=0)
    return np.asarray(total / 25, dtype=np.float32)


def attention_of(heat: Floats) -> Floats | None:
    """Attention per patch, float32 (100,), from heat (40, 40) in 0-1; None if the heat is flat."""
    low, high = float(heat.min()), float(heat.max())
    if high - low < FLAT_SHARE:
        return None
    side = CELLS // GRID
    patches = ((heat - low) / (high - low)).reshape(GRID, side, GRID, side).mean(axis=(1, 3)).reshape(-1)
    weight = patches**ATTENTION_GAIN
    return np.asarray(weight / weight.sum(), dtype=np.float32)


def read_heat(original: Pixels, overlay: Pixels) -> Floats | None:
    """The heat map as a reader of the colour scale sees it, float32 (40, 40) in 0-1; None if the two are
    equal.

    An overlay covers the picture with colour(heat), at an opacity that is constant or rises with the heat.
    Scale and opacity are unknown: those are taken that explain a sample of pixels best. Each cell is then the
    heat that explains it best, and 0 around the part on which anything was drawn. Raises ValueError for
    pictures of different size.
    """
    if original.shape != overlay.shape:
        raise ValueError(
            f"picture {original.shape} and overlay {overlay.shape} differ in size; draw both at one size."
        )
    if np.array_equal(original, overlay):
        return None
    drawn = _drawn_part(original, overlay)
    scale, opacity = _legend(original[drawn], overlay[drawn])
    below, above = (_rows_of(_resample(squared(picture), CELLS)) for picture in (original, overlay))
    errors = _misfit(below, above, _curve(scale, LEVELS), opacity[None, :])[0]
    heat = np.asarray(errors.argmin(axis=1) / (LEVELS - 1), dtype=np.float32).reshape(CELLS, CELLS)
    is_drawn = np.zeros((*original.shape[:2], 3), np.uint8)
    is_drawn[drawn] = 255
    return np.where(_resample(squared(is_drawn, 0), CELLS)[..., 0] >= 0.5, heat, np.float32(0))


def _drawn_part(original: Pixels, overlay: Pixels) -> tuple[slice, slice]:
    """The rows and columns within which the two pictures differ: around them nothing was drawn."""
    changed = (original != overlay).any(axis=2)
    rows, columns = np.flatnonzero(changed.any(axis=1)), np.flatnonzero(changed.any(axis=0))
    return slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1)


def squared(picture: Pixels, ground: int = PAGE) -> Pixels:
    """A picture in the square that the page keeps for it, on the page's ground; as it is if it is square."""
    height, width = picture.shape[:2]
    if height == width:
        return picture
    side = max(height, width)
    square = np.full((side, side, 3), ground, np.uint8)
    square[place_in_square(picture.shape)] = picture
    return square


def place_in_square(shape: tuple[int, ...]) -> tuple[slice, slice]:
    """Rows and columns of a picture of `shape` (H, W, ...) in its square."""
    side = max(shape[:2])
    top, left = ((side - length) // 2 for length in shape[:2])
    return slice(top, top + shape[0]), slice(left, left + shape[1])


def _legend(original: Pixels, overlay: Pixels) -> tuple[str, Floats]:
    """The colour scale, and the opacity at each of its levels (64,), that explain the two pictures best."""
    step = max(1, original.shape[0] * original.shape[1] // 72)
    below, above = (_rows_of(picture)[::step] / np.float32(255) for picture in (original, overlay))
    laws = _opacity_laws(LEGEND_LEVELS)
    curves = {name: _curve(name, LEGEND_LEVELS) for name in SCALES}
    fits = {n: _misfit(below, above, curve, laws).min(axis=2).mean(axis=1) for n, curve in curves.items()}
    scale = min(fits, key=lambda name: float(fits[name].min()))
    return scale, np.asarray(_opacity_laws(LEVELS)[int(fits[scale].argmin())], dtype=np.float32)


def _rows_of(picture: Pixels | Floats) -> Floats:
    """The pixels one after another, float32 (N, 3)."""
    return np.asarray(picture.reshape(-1, 3), dtype=np.float32)


def _misfit(below: Floats, above: Floats, colours: Floats, laws: Floats) -> Floats:
    """Squared error of every heat level: pixels (N, 3) twice, colours (L, 3), opacities (K, L) -> (K, N,
    L)."""
    change = above - below
    towards = colours[None, :, :] - below[:, None, :]
    along = np.einsum("nc,nlc->nl", change, towards)
    length = np.einsum("nlc,nlc->nl", towards, towards)
    moved = laws[:, None, :]
    return np.asarray((change * change).sum(axis=1)[None, :, None] - 2 * moved * along + moved**2 * length)


@lru_cache(maxsize=2)
def _opacity_laws(count: int) -> Floats:
    """Every opacity law a reader reckons with, at `count` levels of heat, float32 (K, L)."""
    heat = np.linspace(0, 1, count)
    laws = [alpha * (floor + (1 - floor) * heat) for floor in FLOORS for alpha in ALPHAS]
    return np.asarray(laws, dtype=np.float32)


@lru_cache(maxsize=16)
def _curve(name: str, count: int) -> Floats:
    stops = np.array([list(bytes.fromhex(colour)) for colour in SCALES[name].split()], dtype=np.float64) / 255
    places, anchors = np.linspace(0, 1, count), np.linspace(0, 1, len(stops))
    return np.stack([np.interp(places, anchors, stops[:, i]) for i in range(3)], axis=1).astype(np.float32)


def _resample(picture: Pixels, side: int) -> Floats:
    """The picture at side x side, float32 0-1, by area where it shrinks and bilinear where it grows."""
    height, width = picture.shape[:2]
    rows, columns = _weights(height, side), _weights(width, side)
    scaled = picture.astype(np.float32) / 255
    if height != side:
        scaled = np.tensordot(rows, scaled, axes=(1, 0))
    if width != side:
        scaled = np.moveaxis(np.tensordot(columns, scaled, axes=(1, 1)), 0, 1)
    return np.ascontiguousarray(scaled)


@lru_cache(maxsize=32)
def _weights(length: int, side: int) -> Floats:
    """A triangle filter as wide as one output pixel, at least one input pixel; rows sum to 1, float32 (side,
    length)."""
    ratio = length / side
    centres = (np.arange(side) + 0.5) * ratio - 0.5
    reach = max(ratio, 1.0)
    weights = np.maximum(0.0, 1.0 - np.abs(np.arange(length)[None, :] - centres[:, None]) / reach)
    weights /= weights.sum(axis=1, keepdims=True)
    return weights.astype(np.float32)
