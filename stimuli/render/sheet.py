"""A contact sheet: items down, methods across, with their names and one legend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from PIL import Image, ImageDraw

from stimuli.errors import BadSpec, ShapeMismatch
from stimuli.render.heatmap import palette
from stimuli.render.png import check_picture
from stimuli.render.recipe import RenderSpec
from stimuli.render.text_draw import canvas, font, legible_text, line_px, wrap_text, write
from stimuli.types import Pixels

CELL_PX = 224
GAP_PX = 12
TEXT_PX = 15
NAME_PX = 160
"""The width of the names of items, left of their rows."""
TITLE_LINES = 2
NAME_LINES = 6
BAR_PX = (256, 16)
PIXELS_MAX = 40_000_000
"""A larger sheet is several."""
LONGEST = 200


def contact_sheet(
    columns: Mapping[str, Sequence[Pixels]], names: Sequence[Sequence[str]], recipe: RenderSpec | None
) -> Pixels:
    """Columns of pictures under their titles, each row beside its `names` (a paragraph each), uint8
    (h, w, 3).

    A picture fills its cell of 224 pixels as far as its shape allows. A name that the font cannot draw is
    told by its number. The legend says what the colours of `recipe` mean; None draws none. BadSpec for more
    than 40 million pixels, ShapeMismatch for columns that are not as long as `names`.
    """
    if any(len(pictures) != len(names) for pictures in columns.values()):
        told = ", ".join(f"{title} {len(pictures)}" for title, pictures in columns.items())
        raise ShapeMismatch(f"{len(names)} rows are named, and the columns hold {told} pictures")
    titles = [_lines(title, f"column {at + 1}", CELL_PX, TITLE_LINES) for at, title in enumerate(columns)]
    top = GAP_PX + max(map(len, titles), default=0) * line_px(TEXT_PX) + GAP_PX // 2
    width = NAME_PX + 2 * GAP_PX + len(columns) * (CELL_PX + GAP_PX)
    foot = top + len(names) * (CELL_PX + GAP_PX)
    height = foot + (0 if recipe is None else line_px(TEXT_PX) + GAP_PX)
    if width * height > PIXELS_MAX:
        raise BadSpec(
            f"a sheet of {len(names)} pictures and {len(columns)} columns has {width} x {height} pixels, and "
            f"at most {PIXELS_MAX:,} are drawn: take fewer pictures at a time"
        )
    picture, draw = canvas(width, height)
    for column, (lines, pictures) in enumerate(zip(titles, columns.values(), strict=True)):
        left = NAME_PX + 2 * GAP_PX + column * (CELL_PX + GAP_PX)
        write(draw, lines, (left + CELL_PX // 2, GAP_PX), TEXT_PX, "ma")
        for row, shown in enumerate(pictures):
            _place(picture, shown, left, top + row * (CELL_PX + GAP_PX))
    for row, paragraphs in enumerate(names):
        parts = [_lines(text, f"picture {row + 1}", NAME_PX, NAME_LINES) for text in paragraphs]
        text_height = sum(map(len, parts)) * line_px(TEXT_PX)
        below = top + row * (CELL_PX + GAP_PX) + (CELL_PX - text_height) // 2
        for lines in parts:
            write(draw, lines, (GAP_PX, below), TEXT_PX)
            below += len(lines) * line_px(TEXT_PX)
    if recipe is not None:
        _legend(picture, draw, recipe, foot)
    return np.asarray(picture, np.uint8).copy()


def _lines(text: str, otherwise: str, width: int, lines: int) -> tuple[str, ...]:
    try:
        return wrap_text(legible_text(text, "a name", LONGEST), TEXT_PX, width, lines)
    except BadSpec:
        return (otherwise,)


def _place(sheet: Image.Image, picture: Pixels, left: int, top: int) -> None:
    check_picture(picture)
    height, width = picture.shape[:2]
    scale = CELL_PX / max(height, width)
    size = max(1, round(width * scale)), max(1, round(height * scale))
    resized = Image.fromarray(picture).resize(size, Image.Resampling.LANCZOS)
    sheet.paste(resized, (left + (CELL_PX - size[0]) // 2, top + (CELL_PX - size[1]) // 2))


def _legend(sheet: Image.Image, draw: ImageDraw.ImageDraw, recipe: RenderSpec, top: int) -> None:
    """What the recipe's marks mean."""
    left = NAME_PX + 2 * GAP_PX
    if recipe.style in ("mask", "top_share"):
        write(draw, ("Under grey: less important",), (left, top), TEXT_PX)
        return
    sides = ("less important", "more important")
    if recipe.sign == "diverging":
        sides = ("speaks against", "speaks for")
    write(draw, sides[:1], (left, top), TEXT_PX)
    left += round(font(TEXT_PX).getlength(sides[0])) + GAP_PX
    bar = np.repeat(np.rint(palette(recipe.colormap)).astype(np.uint8)[None], BAR_PX[1], axis=0)
    sheet.paste(Image.fromarray(bar).resize(BAR_PX), (left, top + (line_px(TEXT_PX) - BAR_PX[1]) // 2))
    write(draw, sides[1:], (left + BAR_PX[0] + GAP_PX, top), TEXT_PX)
