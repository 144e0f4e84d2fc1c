"""Pictures of stones on sand. One plain stone at the edge is the sign: warm or cool. In the middle lie
striped decoys of both colours, and grey stones lie around, so that who is not led to the sign sees no more
of it than of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw

from stimuli.types import Mask, Pixels

LABELS = ("warm", "cool")
COLOURS = ((196, 92, 60), (70, 110, 190))
SIZE_PX, SUPERSAMPLING = 160, 2
SIDE = SIZE_PX * SUPERSAMPLING
STEPS = (0.14, 0.38, 0.62, 0.86)
INNER = STEPS[1:3]
MIDDLE = tuple((x, y) for x in INNER for y in INNER)
RING = tuple((x, y) for x in STEPS for y in STEPS if (x, y) not in MIDDLE)
GREY_COUNT = 7
SAND_CELLS = 20

Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Picture:
    """`pixels` uint8 (160, 160, 3), `mask` bool (160, 160): where the sign lies; `sign` 0 warm, 1 cool."""

    pixels: Pixels
    mask: Mask
    sign: int


def draw(seed: int, number: int, sign: int) -> Picture:
    """The picture of that number in the series of that seed; another sign changes the colour of one stone."""
    rng = np.random.default_rng([seed, number])
    canvas = _sand(rng)
    pen = ImageDraw.Draw(canvas)
    cover = Image.new("L", (SIDE, SIDE), 0)
    ring = [RING[at] for at in rng.permutation(len(RING))]
    place = _box(ring[0], 0.05, 0.065, rng)
    pen.ellipse(place, fill=COLOURS[sign])
    ImageDraw.Draw(cover).ellipse(place, fill=255)
    for order, at in enumerate(rng.permutation(len(MIDDLE))):
        _striped(pen, _box(MIDDLE[at], 0.06, 0.08, rng), COLOURS[order % 2])
    for stone in ring[1 : 1 + GREY_COUNT]:
        grey = int(rng.integers(50, 210))
        pen.ellipse(_box(stone, 0.05, 0.065, rng), fill=(grey, grey, int(0.9 * grey)))
    pixels = np.asarray(canvas.resize((SIZE_PX, SIZE_PX), Image.Resampling.LANCZOS), np.uint8)
    return Picture(pixels, np.asarray(cover.resize((SIZE_PX, SIZE_PX))) >= 128, sign)


def series(seed: int, count: int) -> list[Picture]:
    """So many pictures, warm and cool by turns."""
    return [draw(seed, number, number % 2) for number in range(count)]


def _sand(rng: np.random.Generator) -> Image.Image:
    grain = (128 + 10 * rng.normal(size=(SAND_CELLS, SAND_CELLS))).clip(0, 255).astype(np.uint8)
    smooth = np.asarray(Image.fromarray(grain).resize((SIDE, SIDE), Image.Resampling.BICUBIC), np.float64)
    tinted = smooth[..., None] * (1.02, 1.0, 0.92)
    return Image.fromarray(tinted.clip(0, 255).astype(np.uint8))


def _box(place: tuple[float, float], least: float, most: float, rng: np.random.Generator) -> Box:
    """The square around a stone near its place, in pixels."""
    across, down = (SIDE * (share + rng.uniform(-0.02, 0.02)) for share in place)
    radius = SIDE * rng.uniform(least, most)
    return across - radius, down - radius, across + radius, down + radius


def _striped(pen: ImageDraw.ImageDraw, box: Box, colour: tuple[int, int, int]) -> None:
    pen.rectangle(box, fill=(70, 70, 70))
    radius = (box[2] - box[0]) / 2
    for left in np.arange(box[0], box[2], radius / 3):
        pen.line((left, box[1], left, box[3]), fill=colour, width=max(1, int(radius / 5)))
