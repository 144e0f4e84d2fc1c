"""Text in pictures: one font (DejaVu Sans, which matplotlib ships), no shaping that depends on the machine.

Characters that the font or the plain layout cannot draw as they should look are refused, never boxed.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from unicodedata import bidirectional, category, normalize

from PIL import Image, ImageDraw, ImageFont

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


def legible_text(text: str, what: str, longest: int) -> str:
    """The text in Unicode NFC without blanks around it.

    BadSpec, in the words of `what` ("a concept's name"), if nothing is left, if it has more than `longest`
    characters, or a character that must not or cannot be drawn.
    """
    clean = normalize("NFC", text).strip(" \u00a0")
    if not clean:
        raise BadSpec(f"{what} is empty: give it at least one character")
    if len(clean) > longest:
        raise BadSpec(
            f"{what} has {len(clean)} characters ({clean[:24]!r}…), but at most {longest} can be shown"
        )
    for character in clean:
        if kind := REFUSED.get(category(character)):
            raise BadSpec(f"{what} is {clean[:24]!r}, with {kind} (U+{ord(character):04X}): take it out")
        if ord(character) not in _drawable_letters() or category(character) in COMBINING:
            raise BadSpec(
                f"{what} is {clean[:24]!r}, but its character {character!r} (U+{ord(character):04X}) "
                "cannot be drawn with the font of the pictures: write it in another script"
            )
        if bidirectional(character) in {"R", "AL"}:
            raise BadSpec(
                f"{what} is {clean[:24]!r}, but text from right to left cannot be drawn into pictures yet: "
                "write it in another script"
            )
    return clean


@cache
def font(size_px: int) -> ImageFont.FreeTypeFont:
    """The font at `size_px` pixels per em. Plain layout: the same on machines with and without libraqm."""
    return ImageFont.truetype(str(_path()), size_px, layout_engine=ImageFont.Layout.BASIC)


def line_px(size_px: int) -> int:
    """The height of a line of text of that size, with the room between lines."""
    ascent, descent = font(size_px).getmetrics()
    return ascent + descent


def wrap_text(text: str, size_px: int, width_px: int, lines: int) -> tuple[str, ...]:
    """The text in at most `lines` lines of at most `width_px` pixels, broken at blanks.

    A word that is wider than a line is broken inside. What does not fit ends in an ellipsis.
    """
    rows: list[str] = []
    words = text.split(" ")
    while words:
        line, words = _next_line(words, size_px, width_px)
        rows.append(line)
        if len(rows) == lines and words:
            rows[-1] = _cut(" ".join([line, *words]), size_px, width_px)
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
    """Draw lines below each other, the first at `at` (left, top); `anchor` as Pillow has it."""
    left, top = at
    for place, line in enumerate(lines):
        draw.text((left, top + place * line_px(size_px)), line, INK, font(size_px), anchor)


def _next_line(words: list[str], size_px: int, width_px: int) -> tuple[str, list[str]]:
    """As many words as fit, at least a part of the first, and the words that are left."""
    count = 0
    while count < len(words) and _fits(" ".join(words[: count + 1]), size_px, width_px):
        count += 1
    if count:
        return " ".join(words[:count]), words[count:]
    word = words[0]
    length = max(1, next((at for at in range(len(word), 0, -1) if _fits(word[:at], size_px, width_px)), 1))
    return word[:length], [rest, *words[1:]] if (rest := word[length:]) else words[1:]


def _cut(text: str, size_px: int, width_px: int) -> str:
    """The longest beginning of the text that fits with an ellipsis behind it."""
    most = 8 * width_px // size_px  # no letter is narrower than an eighth of its size
    for length in range(min(len(text), most), 0, -1):
        if _fits(shortened := text[:length].rstrip(" ,;") + ELLIPSIS, size_px, width_px):
            return shortened
    return ELLIPSIS


def _fits(text: str, size_px: int, width_px: int) -> bool:
    return font(size_px).getlength(text) <= width_px


@cache
def _path() -> Path:
    from matplotlib import get_data_path

    return Path(get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"


@cache
def _drawable_letters() -> frozenset[int]:
    from matplotlib.ft2font import FT2Font

    return frozenset(FT2Font(str(_path())).get_charmap())
