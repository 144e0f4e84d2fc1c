"""Perturbations that move pixels, mix neighbours or cover parts. Strengths in 0-1; 0 changes nothing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from stimuli.types import Pixels

Floats = NDArray[np.float64]
KERNEL_PX = 15
"""The side of the blur's window, as PASTA has it."""
BLUR_PX = 6.0
RECTANGLES = 10
RECTANGLE_SHARES = (0.15, 0.45)


def random_resized_crop(picture: Pixels, strength: float, draws: np.random.Generator) -> Pixels:
    """A part at a random place, brought to the full size: each side keeps 1 - 0.7 strength of its length.

    If the sides differ, one keeps up to 4/3 of the other (in shares), as far as the strength allows. Always a
    part of the picture; bilinear.
    """
    height, width = picture.shape[:2]
    kept = 1 - 0.7 * strength
    stretch = (4 / 3) ** (strength * float(draws.uniform(-0.5, 0.5)))
    across, down = draws.random(2)
    share_x, share_y = min(1.0, kept * stretch), min(1.0, kept / stretch)
    left, top = across * (1 - share_x) * width, down * (1 - share_y) * height
    box = (left, top, min(float(width), left + share_x * width), min(float(height), top + share_y * height))
    resized = Image.fromarray(picture).resize((width, height), Image.Resampling.BILINEAR, box)
    return np.asarray(resized, np.uint8).copy()


def random_perspective(picture: Pixels, strength: float, draws: np.random.Generator) -> Pixels:
    """A slanted view: each corner of the result shows a place inside the picture, up to 0.35 strength of each
    side away from that corner (drawn per corner and side, at least a tenth of it). No border is invented;
    bilinear.
    """
    height, width = picture.shape[:2]
    shifts = 0.35 * strength * draws.uniform(0.1, 1, (4, 2)) * (width, height)
    corners = np.array([(0, 0), (width, 0), (width, height), (0, height)], np.float64)
    inwards = np.array([(1, 1), (-1, 1), (-1, -1), (1, -1)], np.float64)
    slanted = Image.fromarray(picture).transform(
        (width, height),
        Image.Transform.PERSPECTIVE,
        tuple(_perspective(corners, corners + inwards * shifts)),
        Image.Resampling.BILINEAR,
    )
    return np.asarray(slanted, np.uint8).copy()


def gaussian_blur(picture: Pixels, strength: float, draws: np.random.Generator) -> Pixels:
    """Blurred by a Gaussian of standard deviation 6 strength pixels, in a window of 15 pixels; the picture is
    mirrored at its border.
    """
    sigma = BLUR_PX * strength
    if sigma == 0:
        return picture.copy()
    places = np.arange(KERNEL_PX) - KERNEL_PX // 2
    weights = np.exp(-0.5 * (places / sigma) ** 2)
    weights /= weights.sum()
    blurred = picture.astype(np.float64)
    for axis in (0, 1):
        blurred = _correlate_axis(blurred, weights, axis)
    return np.rint(blurred).astype(np.uint8)


def sharpness(picture: Pixels, strength: float, draws: np.random.Generator) -> Pixels:
    """Sharper: 1 + 9 strength times the distance to a picture smoothed over 3 x 3 pixels (the middle weighs
    5, each neighbour 1); the border stays.
    """
    inner = picture.astype(np.float64)
    smooth = inner.copy()
    if min(picture.shape[:2]) > 2:
        rows, columns = (side - 2 for side in picture.shape[:2])
        total = 4 * inner[1:-1, 1:-1]
        for down in range(3):
            for right in range(3):
                total = total + inner[down : down + rows, right : right + columns]
        smooth[1:-1, 1:-1] = np.rint(total / 13)
    sharp = smooth + (1 + 9 * strength) * (inner - smooth)
    return np.clip(np.rint(sharp), 0, 255).astype(np.uint8)


def random_rectangles(picture: Pixels, strength: float, draws: np.random.Generator) -> Pixels:
    """Ten black rectangles around drawn places, with sides of strength times 0.15-0.45 of the picture's."""
    height, width = picture.shape[:2]
    covered = picture.copy()
    sides = draws.uniform(*RECTANGLE_SHARES, (RECTANGLES, 2)) * strength / 2
    for (x, y), (across, down) in zip(draws.random((RECTANGLES, 2)), sides, strict=True):
        left, right = (round(float(edge) * width) for edge in (x - across, x + across))
        top, bottom = (round(float(edge) * height) for edge in (y - down, y + down))
        covered[max(0, top) : max(0, bottom), max(0, left) : max(0, right)] = 0
    return covered


def _correlate_axis(values: Floats, weights: Floats, axis: int) -> Floats:
    """Weighted sum of neighbours along one axis, mirrored at the border without repeating it."""
    reach = len(weights) // 2
    widths = [(reach, reach) if at == axis else (0, 0) for at in range(values.ndim)]
    padded = np.pad(values, widths, mode="reflect" if values.shape[axis] > 1 else "edge")
    length = values.shape[axis]
    total = np.zeros_like(values)
    for place, weight in enumerate(weights):
        total += weight * np.take(padded, np.arange(place, place + length), axis)
    return total


def _perspective(seen: Floats, source: Floats) -> Floats:
    """The eight numbers of Pillow's perspective that take each corner `seen` to its place in `source`."""
    rows, values = [], []
    for (x, y), (u, v) in zip(seen, source, strict=True):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
        values += [u, v]
    return np.asarray(np.linalg.solve(np.array(rows), np.array(values)), np.float64)
