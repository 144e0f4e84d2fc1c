"""Pictures that explain by themselves, each above its caption, on one white square of fixed size."""

from __future__ import annotations

import math

import numpy as np
from PIL import Image

from stimuli.errors import BadSpec
from stimuli.render.bars import NAME_CHARS
from stimuli.render.heatmap import TILE_SCALE
from stimuli.render.png import check_picture
from stimuli.render.text_draw import canvas, legible_text, line_px, wrap_text, write
from stimuli.types import PictureExplanation, Pixels

PICTURES_MAX = 9
SIDE_PX = 640
"""Twice the size at which a page shows it."""
CAPTION_LINES = 3
TILE_CAPTION_LINES = 1


def draw_panels(made: PictureExplanation) -> Pixels:
    """The pictures in rows of equal cells, uint8 (SIDE_PX, SIDE_PX, 3), in their order from the top left.

    Each is as large as its cell allows, its shape kept. A caption that needs more than CAPTION_LINES ends in
    an ellipsis. BadSpec for a caption that cannot be drawn, for no picture and for more than PICTURES_MAX;
    ShapeMismatch for what is no picture.
    """
    return _draw_panel(made, SIDE_PX, SIDE_PX // 26, CAPTION_LINES)


def draw_panels_tile(made: PictureExplanation, tile_px: int) -> Pixels:
    """The same at reservoir size, drawn anew, uint8 (2 x tile_px, 2 x tile_px, 3)."""
    side = TILE_SCALE * tile_px
    return _draw_panel(made, side, max(12, side // 16), TILE_CAPTION_LINES)


def shrunk(picture: Pixels) -> Pixels:
    """The picture with its longer side at most SIDE_PX: it is drawn no larger."""
    check_picture(picture)
    height, width = picture.shape[:2]
    return _fit_picture(picture, SIDE_PX, SIDE_PX) if max(height, width) > SIDE_PX else picture


def _draw_panel(made: PictureExplanation, side: int, text_px: int, most_lines: int) -> Pixels:
    count = len(made.pictures)
    if not 1 <= count <= PICTURES_MAX or len(made.captions) != count:
        raise BadSpec(
            f"{count} pictures with {len(made.captions)} captions cannot be drawn: 1 to {PICTURES_MAX}, each "
            "with a caption or an empty one, are needed"
        )
    captions = [legible_text(c, "a caption", NAME_CHARS) if c else "" for c in made.captions]
    columns = math.ceil(math.sqrt(count))
    rows = math.ceil(count / columns)
    cell_width, cell_height, gap = side // columns, side // rows, max(3, side // 80)
    text_width = cell_width - 2 * gap
    told = [wrap_text(caption, text_px, text_width, most_lines) if caption else () for caption in captions]
    # One room for all captions, so that pictures of a row stand at one height.
    room = max(map(len, told)) * line_px(text_px)
    panel, draw = canvas(side, side)
    for at, (picture, lines) in enumerate(zip(made.pictures, told, strict=True)):
        check_picture(picture)
        left, top = at % columns * cell_width, at // columns * cell_height
        fitted = _fit_picture(picture, text_width, cell_height - 2 * gap - room)
        height, width = fitted.shape[:2]
        place = (left + (cell_width - width) // 2, top + (cell_height - room - height) // 2)
        panel.paste(Image.fromarray(fitted), place)
        below = place[1] + height + gap // 2
        write(draw, lines, (left + cell_width // 2, below), text_px, "ma")
    return np.asarray(panel, np.uint8).copy()


def _fit_picture(picture: Pixels, width: int, height: int) -> Pixels:
    """As large as fits into `width` x `height`, its shape kept."""
    scale = min(width / picture.shape[1], height / picture.shape[0])
    size = (max(1, round(picture.shape[1] * scale)), max(1, round(picture.shape[0] * scale)))
    return np.asarray(Image.fromarray(picture).resize(size, Image.Resampling.LANCZOS), np.uint8).copy()
