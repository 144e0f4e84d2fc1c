"""Marked words as people see them: the text in pieces, each with a shade, and nothing else.

A shade depends on the magnitude of a word's value alone, in shares of the text's own maximum: neither sign,
class nor probability can be read from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypedDict

import numpy as np

from stimuli.errors import ShapeMismatch
from stimuli.types import TokenAttribution

SHADE_DIGITS = 3


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


def shades_of(attribution: TokenAttribution) -> list[float]:
    """The shade of each span, 0 (not marked) to 1. ShapeMismatch when spans and values do not fit."""
    size = np.abs(np.asarray(attribution.values, np.float64))
    if len(size) != len(attribution.spans) or not np.isfinite(size).all():
        raise ShapeMismatch(
            f"{len(attribution.spans)} spans have {len(size)} values, or some are not finite: build again"
        )
    most = float(size.max()) if len(size) else 0.0
    return [round(float(value) / most, SHADE_DIGITS) if most > 0 else 0.0 for value in size]


def _parts(text: str, attribution: TokenAttribution | None) -> Iterator[tuple[str, float]]:
    if attribution is None:
        yield text, 0.0
        return
    reached = 0
    for (start, end), shade in zip(attribution.spans, shades_of(attribution), strict=True):
        if not reached <= start < end <= len(text):
            raise ShapeMismatch(
                f"the span ({start}, {end}) does not fit a text of {len(text)} characters behind {reached}: "
                "spans must be in order and belong to this text"
            )
        yield text[reached:start], 0.0
        yield text[start:end], shade
        reached = end
    yield text[reached:], 0.0
