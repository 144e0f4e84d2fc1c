"""Marked words: the text is unchanged, grey shows the magnitude only, and letters stay readable."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stimuli.errors import ShapeMismatch
from stimuli.render.tokens import token_document
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
    assert "0.123" not in json.dumps(document)


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
