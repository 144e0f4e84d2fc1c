"""Marked words as people see them: the text with grey behind its words, and nothing else.

How grey depends on the magnitude of a word's value alone, in shares of the text's own maximum: neither sign,
class nor probability can be read from it. The darkest grey leaves black letters a contrast of 5.3 to 1.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypedDict
from xml.sax.saxutils import escape

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from stimuli.errors import ShapeMismatch
from stimuli.types import Pixels, TokenAttribution

SHADE_DIGITS = 3
WHITE, DARKEST = 255, 128
WIDTH_PX = 640
MARGIN_PX, FONT_PX, LINE_PX = 16, 20, 32
FONT_FAMILY = "DejaVu Sans"


class Piece(TypedDict):
    """A part of the text; `shade` is 0 (not marked) to 1 (the strongest of this text)."""

    text: str
    shade: float


class Document(TypedDict):
    """A text in pieces, in order; joined they are the text."""

    tokens: list[Piece]


def token_document(text: str, attribution: TokenAttribution | None = None) -> Document:
    """The text in pieces with their shades; without an attribution one piece.

    Neighbours without a shade are one piece, so that no more can be read from a document than is seen.
    ShapeMismatch when spans and values do not belong to the text.
    """
    pieces: list[Piece] = []
    for part, shade in _parts(text, attribution):
        if part and pieces and not shade and not pieces[-1]["shade"]:
            pieces[-1]["text"] += part
        elif part:
            pieces.append({"text": part, "shade": shade})
    return {"tokens": pieces}


def _parts(text: str, attribution: TokenAttribution | None) -> Iterator[tuple[str, float]]:
    if attribution is None:
        yield text, 0.0
        return
    size = np.abs(np.asarray(attribution.values, np.float64))
    if len(size) != len(attribution.spans) or not np.isfinite(size).all():
        raise ShapeMismatch(
            f"{len(attribution.spans)} spans have {len(size)} values, or some are not finite: build again"
        )
    most = float(size.max()) if len(size) else 0.0
    reached = 0
    for (start, end), value in zip(attribution.spans, size, strict=True):
        if not reached <= start < end <= len(text):
            raise ShapeMismatch(
                f"the span ({start}, {end}) does not fit a text of {len(text)} characters behind {reached}: "
                "spans must be in order and belong to this text"
            )
        yield text[reached:start], 0.0
        yield text[start:end], round(float(value) / most, SHADE_DIGITS) if most > 0 else 0.0
        reached = end
    yield text[reached:], 0.0


def grey_of(shade: float) -> int:
    """The grey behind a piece, 0-255: white for shade 0, DARKEST for 1."""
    return round(WHITE - min(max(shade, 0.0), 1.0) * (WHITE - DARKEST))


@dataclass(frozen=True, slots=True)
class _Placed:
    """A run of letters of one shade on one line; `left` and `width` in pixels."""

    text: str
    shade: float
    line: int
    left: float
    width: float


def token_picture(document: Document, width_px: int = WIDTH_PX) -> Pixels:
    """The document as a picture, uint8 (H, width_px, 3), grey only: black letters, wrapped between words."""
    placed, lines = _layout(document, width_px)
    picture = Image.new("L", (width_px, 2 * MARGIN_PX + LINE_PX * lines), WHITE)
    draw = ImageDraw.Draw(picture)
    for one in placed:
        top = MARGIN_PX + LINE_PX * one.line
        if one.shade:
            box = (one.left, top + 2, one.left + one.width - 1, top + LINE_PX - 3)
            draw.rectangle(box, fill=grey_of(one.shade))
    for one in placed:
        baseline = MARGIN_PX + LINE_PX * one.line + (LINE_PX + FONT_PX) // 2 - 3
        draw.text((one.left, baseline), one.text, fill=0, font=_font(), anchor="ls")
    return np.asarray(picture.convert("RGB"), np.uint8).copy()


def token_svg(document: Document, width_px: int = WIDTH_PX) -> str:
    """The same picture as SVG text, without any metadata."""
    placed, lines = _layout(document, width_px)
    height = 2 * MARGIN_PX + LINE_PX * lines
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width_px}" height="{height}" '
        f'viewBox="0 0 {width_px} {height}">',
        f'<rect width="{width_px}" height="{height}" fill="#ffffff"/>',
    ]
    for one in placed:
        if one.shade:
            top, grey = MARGIN_PX + LINE_PX * one.line + 2, f"{grey_of(one.shade):02x}" * 3
            parts.append(
                f'<rect x="{one.left:.1f}" y="{top}" width="{one.width:.1f}" height="{LINE_PX - 4}" '
                f'fill="#{grey}"/>'
            )
    parts.append(f'<g font-family="{FONT_FAMILY}, sans-serif" font-size="{FONT_PX}" fill="#000000">')
    for one in placed:
        if one.text.strip():
            baseline = MARGIN_PX + LINE_PX * one.line + (LINE_PX + FONT_PX) // 2 - 3
            parts.append(
                f'<text x="{one.left:.1f}" y="{baseline}" textLength="{one.width:.1f}" '
                f'xml:space="preserve">{escape(one.text)}</text>'
            )
    return "".join([*parts, "</g></svg>"])


def _layout(document: Document, width_px: int) -> tuple[list[_Placed], int]:
    """Where every run of letters stands, and how many lines there are. A word that does not fit begins a new
    line; spaces at a line's end are left out; a word wider than a line is cut between letters.
    """
    placed: list[_Placed] = []
    line, left, last = 0, float(MARGIN_PX), float(width_px - MARGIN_PX)
    for word in _runs(document["tokens"]):
        if not word:
            line, left = line + 1, float(MARGIN_PX)
            continue
        width = sum(_width(text) for text, _ in word)
        is_space = not "".join(text for text, _ in word).strip()
        if left + width > last and left > MARGIN_PX:
            line, left = line + 1, float(MARGIN_PX)
            if is_space:
                continue
        for text, shade in word if left + width <= last else _letters(word):
            if left + _width(text) > last and left > MARGIN_PX:
                line, left = line + 1, float(MARGIN_PX)
            placed.append(_Placed(text, shade, line, left, _width(text)))
            left += _width(text)
    return placed, line + 1


Run = list[tuple[str, float]]


def _runs(pieces: Sequence[Piece]) -> Iterator[Run]:
    """Words and spaces in turn, each with the shades of its parts; an empty run for a line break."""
    run: Run = []
    for piece in pieces:
        for letter in piece["text"].replace("\r\n", "\n").replace("\t", " "):
            if letter == "\n":
                if run:
                    yield run
                run = []
                yield []
                continue
            if run and letter.isspace() != run[-1][0][-1].isspace():
                yield run
                run = []
            if run and run[-1][1] == piece["shade"]:
                run[-1] = (run[-1][0] + letter, piece["shade"])
            else:
                run.append((letter, piece["shade"]))
    if run:
        yield run


def _letters(word: Run) -> Run:
    """Letter by letter, each with the marks that are written upon it."""
    found: Run = []
    for text, shade in word:
        for place, letter in enumerate(text):
            if place and unicodedata.category(letter).startswith("M"):
                found[-1] = (found[-1][0] + letter, shade)
            else:
                found.append((letter, shade))
    return found


def _width(text: str) -> float:
    return float(_font().getlength(text))


@cache
def _font() -> ImageFont.FreeTypeFont:
    """The font that matplotlib brings along: Latin, Greek, Cyrillic and more, the same everywhere."""
    from matplotlib import get_data_path  # half a second to import

    return ImageFont.truetype(str(Path(get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"), FONT_PX)
