"""Marked words: the text as it is, grey by magnitude alone, and letters that can be read."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stimuli.errors import ShapeMismatch
from stimuli.render.tokens import (
    DARKEST,
    LINE_PX,
    MARGIN_PX,
    grey_of,
    token_document,
    token_picture,
    token_svg,
)
from stimuli.types import TokenAttribution

pytestmark = pytest.mark.pure

TEXT = "Not a bad <film> & song;\nnaïve café \u00a9 end"


def marked(text: str, values: list[float]) -> TokenAttribution:
    spans = tuple(match.span() for match in re.finditer(r"\w+", text))[: len(values)]
    return TokenAttribution(spans, np.array(values, np.float32))


@given(st.text(max_size=60), st.lists(st.floats(-1e6, 1e6, width=32), max_size=12))
def test_its_pieces_are_the_text(text: str, values: list[float]) -> None:
    count = len(re.findall(r"\w+", text))
    document = token_document(text, marked(text, values[:count]))
    assert "".join(piece["text"] for piece in document["tokens"]) == text
    assert all(piece["text"] and 0 <= piece["shade"] <= 1 for piece in document["tokens"])
    assert json.loads(json.dumps(document)) == document


def test_its_greys_are_shares_of_the_largest_magnitude() -> None:
    document = token_document(TEXT, marked(TEXT, [0.2, 0.0, -0.4, 0.1]))
    assert document["tokens"] == [
        {"text": "Not", "shade": 0.5},
        {"text": " a ", "shade": 0.0},
        {"text": "bad", "shade": 1.0},
        {"text": " <", "shade": 0.0},
        {"text": "film", "shade": 0.25},
        {"text": "> & song;\nnaïve café \u00a9 end", "shade": 0.0},
    ]


def test_it_tells_neither_sign_nor_scale() -> None:
    values = [0.3, -0.7, 0.0, 0.11, -0.2]
    plain = token_document(TEXT, marked(TEXT, values))
    assert token_document(TEXT, marked(TEXT, [-value for value in values])) == plain
    assert token_document(TEXT, marked(TEXT, [abs(value) * 1000 for value in values])) == plain


def test_it_holds_words_and_shades_and_nothing_else() -> None:
    made = TokenAttribution(((0, 3),), np.array([0.25], np.float32), {"stability": 0.123, "fit": 0.5})
    document = token_document("yes or no", made)
    assert set(document) == {"tokens"}
    assert all(set(piece) == {"text", "shade"} for piece in document["tokens"])
    assert document["tokens"] == [{"text": "yes", "shade": 1.0}, {"text": " or no", "shade": 0.0}]
    assert "0.123" not in token_svg(document)


def test_it_is_one_piece_without_marks() -> None:
    alone = [{"text": TEXT, "shade": 0.0}]
    assert token_document(TEXT)["tokens"] == alone
    assert token_document(TEXT, marked(TEXT, [0.0, 0.0]))["tokens"] == alone
    assert token_document("", marked("", []))["tokens"] == []


@pytest.mark.parametrize(
    ("spans", "values"),
    [
        (((0, 99),), [1.0]),
        (((2, 4), (0, 1)), [1.0, 1.0]),
        (((0, 3), (2, 4)), [1.0, 1.0]),
        (((1, 1),), [1.0]),
        (((0, 3),), [1.0, 2.0]),
        (((0, 3),), [float("nan")]),
    ],
)
def test_it_refuses_what_does_not_fit_the_text(
    spans: tuple[tuple[int, int], ...], values: list[float]
) -> None:
    with pytest.raises(ShapeMismatch):
        token_document(TEXT, TokenAttribution(spans, np.array(values, np.float32)))


def test_its_letters_stand_out_from_every_grey() -> None:
    """Contrast by WCAG 2.1: relative luminance of an sRGB grey, black letters; 4.5 to 1 is wanted."""

    def luminance(grey: int) -> float:
        share = grey / 255
        return share / 12.92 if share <= 0.04045 else float(((share + 0.055) / 1.055) ** 2.4)

    greys = [grey_of(step / 100) for step in range(101)]
    assert greys[0] == 255 and greys[-1] == DARKEST
    assert all(one > other for one, other in zip(greys, greys[1:], strict=False))
    assert min((luminance(grey) + 0.05) / 0.05 for grey in greys) >= 4.5


def test_its_picture_is_grey_and_shows_each_mark() -> None:
    picture = token_picture(token_document("one two three", marked("one two three", [0.0, 1.0, -0.5])))
    assert picture.dtype == np.uint8 and picture.shape == (2 * MARGIN_PX + LINE_PX, 640, 3)
    assert (picture[..., 0] == picture[..., 1]).all() and (picture[..., 0] == picture[..., 2]).all()
    row = picture[MARGIN_PX + 4, :, 0]  # above the letters: marks alone
    runs = [int(row[at]) for at in range(1, 640) if row[at] != row[at - 1]]
    assert runs == [grey_of(1.0), 255, grey_of(0.5), 255]
    assert picture.min() < 40


def test_it_wraps_between_words_and_breaks_words_that_are_too_wide() -> None:
    def lines(text: str, width_px: int) -> int:
        height: int = token_picture(token_document(text), width_px).shape[0]
        return (height - 2 * MARGIN_PX) // LINE_PX

    assert lines("a word", 640) == 1
    assert lines("a word " * 40, 640) > 3
    assert lines("a\n\nword", 640) == 3
    assert lines("w" * 120, 320) >= 6
    # Nothing stands in the margin.
    picture = token_picture(token_document("many words and more " * 8 + "w" * 90), 320)
    assert (picture[:, -MARGIN_PX + 2 :] == 255).all() and (picture[:, : MARGIN_PX - 2] == 255).all()


def test_its_drawing_is_well_formed_and_holds_the_words() -> None:
    drawing = ElementTree.fromstring(token_svg(token_document(TEXT, marked(TEXT, [1.0, 0.0, 0.5]))))
    space = "{http://www.w3.org/2000/svg}"
    texts = [node.text or "" for node in drawing.iter(f"{space}text")]
    assert "".join(texts) == "".join(TEXT.split())
    fills = [node.get("fill") for node in drawing.iter(f"{space}rect")]
    assert fills == ["#ffffff", f"#{DARKEST:02x}{DARKEST:02x}{DARKEST:02x}", "#c0c0c0"]
    assert {node.tag.removeprefix(space) for node in drawing.iter()} == {"svg", "rect", "g", "text"}
