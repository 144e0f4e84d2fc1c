"""Pictures of dots with a digit in them, for pages that show tasks; no eyes are measured by them."""

from __future__ import annotations

import io
from functools import lru_cache

import numpy as np
from PIL import Image, ImageDraw, ImageFont

SIDE_PX = 640
GROUND = ((181, 166, 120), (196, 178, 134), (160, 148, 108), (205, 192, 152))
FIGURE = ((206, 120, 88), (190, 102, 76), (222, 140, 104))


@lru_cache(maxsize=32)
def plate(digit: str, seed: int = 0, outlined: tuple[int, ...] = (), grid: int = 28) -> bytes:
    """A PNG of dots, those within the digit in other colours; the border of the `outlined` cells in black and
    white."""
    rng = np.random.default_rng([seed, ord(digit)])
    shape = Image.new("L", (SIDE_PX, SIDE_PX))
    font = ImageFont.load_default(size=0.8 * SIDE_PX)
    ImageDraw.Draw(shape).text((SIDE_PX / 2, SIDE_PX / 2), digit, 255, font=font, anchor="mm")
    inside = np.asarray(shape) > 0
    drawn = Image.new("RGB", (SIDE_PX, SIDE_PX), (236, 236, 236))
    pen = ImageDraw.Draw(drawn)
    for _ in range(2600):
        x, y = rng.uniform(14, SIDE_PX - 14, 2)
        if np.hypot(x - SIDE_PX / 2, y - SIDE_PX / 2) > SIDE_PX / 2 - 14:
            continue
        radius = rng.uniform(5, 13)
        colours = FIGURE if inside[int(y), int(x)] else GROUND
        box = (x - radius, y - radius, x + radius, y + radius)
        pen.ellipse(box, colours[int(rng.integers(len(colours)))])
    _outline(pen, set(outlined), grid)
    written = io.BytesIO()
    drawn.save(written, "PNG")
    return written.getvalue()


def _outline(pen: ImageDraw.ImageDraw, cells: set[int], grid: int) -> None:
    """The border between these cells and all others, white under black."""
    px = SIDE_PX / grid
    for width, colour in ((10, "white"), (4, "black")):
        for cell in cells:
            column, row = cell % grid, cell // grid
            left, top, right, bottom = column * px, row * px, (column + 1) * px, (row + 1) * px
            if row == 0 or cell - grid not in cells:
                pen.line((left, top, right, top), colour, width)
            if row == grid - 1 or cell + grid not in cells:
                pen.line((left, bottom, right, bottom), colour, width)
            if column == 0 or cell - 1 not in cells:
                pen.line((left, top, left, bottom), colour, width)
            if column == grid - 1 or cell + 1 not in cells:
                pen.line((right, top, right, bottom), colour, width)
