"""Text in pictures: one font (DejaVu Sans, which matplotlib ships), and two layouts.

Text with letters from right to left is ordered and joined by Raqm (FriBiDi and HarfBuzz), which a machine may
lack; all other text has the plain layout, the same everywhere. What neither draws as it should look is
refused, never boxed.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from unicodedata import bidirectional, category, normalize

from PIL import Image, ImageDraw, ImageFont, features

from stimuli.errors import BadSpec

INK = (26, 26, 26)
GROUND = (255, 255, 255)
ELLIPSIS = "…"
REFUSED = {
    "Cc": "a control character",
    "Cf": "an invisible formatting character",
    "Cs": "half a character",
    "Co": "a private character",
    "Cn": "an unassigned character",
    "Zl": "a line separator",
    "Zp": "a paragraph separator",
}
COMBINING = {"Mn", "Mc", "Me"}
RIGHT_TO_LEFT = {"R", "AL"}
NON_JOINER = re.compile("(?<=[\u0620-\u065f\u066e-\u06d3])\u200c(?=[\u0620-\u064a\u066e\u066f\u0671-\u06d3])")
"""Between Arabic letters, as Persian is written: the one invisible character that changes how text looks."""


def legible_text(text: str, what: str, longest: int) -> str:
    """The text in Unicode NFC without blanks around it.

    BadSpec, in the words of `what` ("a concept's name"), if nothing is left, if it has more than `longest`
    characters, or a character that must not or cannot be drawn, or not on this machine.
    """
    clean = normalize("NFC", text).strip(" \u00a0")
    if not clean:
        raise BadSpec(f"{what} is empty: give it at least one character")
    if len(clean) > longest:
        raise BadSpec(
            f"{what} has {len(clean)} characters ({clean[:24]!r}…), but at most {longest} can be shown"
        )
    base = ""
    for character in NON_JOINER.sub("", clean):
        if kind := REFUSED.get(category(character)):
            raise BadSpec(f"{what} is {clean[:24]!r}, with {kind} (U+{ord(character):04X}): take it out")
        if category(character) not in COMBINING:
            base = character
        # The plain layout does not place marks on their letters.
        if ord(character) not in _drawable_letters() or (base != character and not _is_shaped(base)):
            raise BadSpec(
                f"{what} is {clean[:24]!r}, but its character {character!r} (U+{ord(character):04X}) "
                "cannot be drawn with the font of the pictures: write it in another script"
            )
    if _is_shaped(clean) and not features.check("raqm"):
        raise BadSpec(
            f"{what} is {clean[:24]!r}, but text from right to left cannot be drawn on this machine, where "
            "Pillow finds no FriBiDi: install it (apt install libfribidi0, brew install fribidi), or write "
            "it in another script"
        )
    return clean


def is_rtl(text: str) -> bool:
    """Whether a text runs from right to left: its first letter does, as `dir="auto"` of a page has it."""
    first = next((kind for kind in map(bidirectional, text) if kind in RIGHT_TO_LEFT | {"L"}), "L")
    return first in RIGHT_TO_LEFT


@cache
def font(size_px: int, layout: ImageFont.Layout = ImageFont.Layout.BASIC) -> ImageFont.FreeTypeFont:
    """The font at `size_px` pixels per em. Plain layout: the same on machines with and without Raqm."""
    return ImageFont.truetype(str(_path()), size_px, layout_engine=layout)


def line_px(size_px: int) -> int:
    """The height of a line of text of that size, with the room between lines."""
    ascent, descent = font(size_px).getmetrics()
    return ascent + descent


def wrap_text(text: str, size_px: int, width_px: int, lines: int) -> tuple[str, ...]:
    """The text in at most `lines` lines of at most `width_px` pixels, broken at blanks.

    A word that is wider than a line is broken inside. What does not fit ends in an ellipsis.
    """
    face, rows = _face(text, size_px), list[str]()
    words = text.split(" ")
    while words:
        line, words = _next_line(words, face, width_px)
        rows.append(line)
        if len(rows) == lines and words:
            rows[-1] = _cut(" ".join([line, *words]), face, width_px)
            break
    return tuple(rows)


def canvas(
    width: int, height: int, ground: tuple[int, int, int] = GROUND
) -> tuple[Image.Image, ImageDraw.ImageDraw]:
    """A picture of one colour and that size in pixels, and what draws on it."""
    picture = Image.new("RGB", (width, height), ground)
    return picture, ImageDraw.Draw(picture)


def write(
    draw: ImageDraw.ImageDraw, lines: tuple[str, ...], at: tuple[int, int], size_px: int, anchor: str = "la"
) -> None:
    """Draw the lines of one text below each other, the first at `at` (x, top); `anchor` as Pillow has it."""
    x, top = at
    text = " ".join(lines)
    direction = ("rtl" if is_rtl(text) else "ltr") if _is_shaped(text) else None
    for place, line in enumerate(lines):
        at = x, top + place * line_px(size_px)
        draw.text(at, line, INK, _face(text, size_px), anchor, direction=direction)


def _next_line(words: list[str], face: ImageFont.FreeTypeFont, width_px: int) -> tuple[str, list[str]]:
    """As many words as fit, at least a part of the first, and the words that are left."""
    count = 0
    while count < len(words) and _fits(" ".join(words[: count + 1]), face, width_px):
        count += 1
    if count:
        return " ".join(words[:count]), words[count:]
    word = words[0]
    ends = (at for at in range(len(word), 0, -1) if category(word[at : at + 1] or " ") not in COMBINING)
    length = next((at for at in ends if _fits(word[:at], face, width_px)), 1)
    return word[:length], [rest, *words[1:]] if (rest := word[length:]) else words[1:]


def _cut(text: str, face: ImageFont.FreeTypeFont, width_px: int) -> str:
    """The longest beginning of the text that fits with an ellipsis behind it."""
    most = 8 * width_px // int(face.size)  # no letter is narrower than an eighth of its size
    for length in range(min(len(text), most), 0, -1):
        if _fits(shortened := text[:length].rstrip(" ,;") + ELLIPSIS, face, width_px):
            return shortened
    return ELLIPSIS


def _fits(text: str, face: ImageFont.FreeTypeFont, width_px: int) -> bool:
    return face.getlength(text) <= width_px


def _face(text: str, size_px: int) -> ImageFont.FreeTypeFont:
    return font(size_px, ImageFont.Layout.RAQM) if _is_shaped(text) else font(size_px)


def _is_shaped(text: str) -> bool:
    """Whether it has letters that are written from right to left."""
    return not RIGHT_TO_LEFT.isdisjoint(map(bidirectional, text))


@cache
def _path() -> Path:
    from matplotlib import get_data_path

    return Path(get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"


@cache
def _drawable_letters() -> frozenset[int]:
    from matplotlib.ft2font import FT2Font

    return frozenset(FT2Font(str(_path())).get_charmap())
