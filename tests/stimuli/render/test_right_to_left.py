"""Text from right to left in pictures, against pictures of its visual order, which is written by hand here:
letters in the order in which they stand on paper, Arabic ones in the joined forms that Unicode names.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import ImageFont

from stimuli.errors import BadSpec
from stimuli.render import text_draw
from stimuli.render.bars import NEUTRAL, BarSpec, draw_bars
from stimuli.render.picture_explanation import draw_panels
from stimuli.render.sentences import draw_sentence, draw_sentence_tile
from stimuli.types import ConceptAttribution, PictureExplanation, Pixels

pytestmark = pytest.mark.pure
OVERRIDE = "\u202d"
"""All that follows runs from left to right."""
VISUAL = [
    ("שלג", "גלש"),
    ("אוזן של זאב", "באז לש ןזוא"),
    ("3 כנפיים (CNN) 2", "2 (CNN) םייפנכ 3"),
    ("CNN בית 3", "CNN 3 תיב"),
    ("\u0628\u064a\u062a", "\ufe96\ufef4\ufe91"),
    ("\u0643\u0644\u0628 12", "12 \ufe90\ufee0\ufedb"),
    ("\u0627\u0644\u062b\u0644\u062c \u0661\u0662", "\u0661\u0662 \ufe9e\ufee0\ufe9c\ufedf\ufe8d"),
    ("\u0644\u0627", "\ufefb"),
    ("\u0645\u06cc\u200c\u062e", "\ufea5\ufbfd\ufee3"),
]
"""As it is written and read, and as it stands from left to right: Hebrew, Latin, digits, Arabic, Persian."""
HEBREW = ("אוזן של זאב", "פרווה", "שלג")
LATIN = ("wolf's ear", "fur", "snow")


def weights(names: tuple[str, ...]) -> ConceptAttribution:
    return ConceptAttribution(names, np.array([1.0, -0.5, 0.25][: len(names)], np.float32))


def columns(picture: Pixels, colour: tuple[int, int, int]) -> list[int]:
    return np.flatnonzero((picture == colour).all(2).any(0)).tolist()


def ink(picture: Pixels) -> list[int]:
    return np.flatnonzero((picture < 60).all(2).any(0)).tolist()


@pytest.mark.parametrize(("at", "anchor"), [(10, "la"), (490, "ra"), (250, "ma")])
@pytest.mark.parametrize(("text", "visual"), VISUAL)
def test_it_orders_and_joins_letters_as_they_stand_on_paper(
    text: str, visual: str, at: int, anchor: str
) -> None:
    ours, pen = text_draw.canvas(500, 60)
    text_draw.write(pen, (text_draw.legible_text(text, "a name", 200),), (at, 5), 30, anchor)
    paper, pen = text_draw.canvas(500, 60)
    face = text_draw.font(30, ImageFont.Layout.RAQM)
    pen.text((at, 5), OVERRIDE + visual, text_draw.INK, face, anchor, direction="ltr")
    np.testing.assert_array_equal(np.asarray(ours), np.asarray(paper))


def test_it_keeps_the_direction_of_a_text_on_each_of_its_lines() -> None:
    """The second line has no letter from right to left, and still its number stands left of its word."""
    ours, pen = text_draw.canvas(300, 100)
    text_draw.write(pen, ("שלג", "2 CNN"), (290, 0), 30, "ra")
    paper, pen = text_draw.canvas(300, 100)
    face = text_draw.font(30, ImageFont.Layout.RAQM)
    below = 290, text_draw.line_px(30)
    pen.text((290, 0), OVERRIDE + "גלש", text_draw.INK, face, "ra", direction="ltr")
    pen.text(below, OVERRIDE + "CNN 2", text_draw.INK, face, "ra", direction="ltr")
    np.testing.assert_array_equal(np.asarray(ours), np.asarray(paper))


@given(
    words=st.lists(st.text("שלגםבכ\u05b8\u0628\u064a\u062a\u0651aiW2(", min_size=1, max_size=14), min_size=1),
    width=st.integers(60, 300),
)
def test_it_wraps_without_loss_and_leaves_no_mark_without_its_letter(words: list[str], width: int) -> None:
    words = [re.sub("^[\u05b8\u0651]+|(?<=[aiW2(])[\u05b8\u0651]+", "", word) or "ש" for word in words]
    words[0] = "ש" + words[0]
    lines = text_draw.wrap_text(" ".join(words), 20, width, 999)
    assert "".join(lines).replace(" ", "") == "".join(words)
    face = text_draw.font(20, ImageFont.Layout.RAQM)
    assert all(face.getlength(line) <= width for line in lines)
    assert not any(line.startswith(("\u05b8", "\u0651")) for line in lines)


def test_it_begins_names_and_bars_without_sides_at_the_right() -> None:
    """As the picture of names from left to right in a mirror."""
    spec = BarSpec(signed=False)
    ours, latin = draw_bars(weights(HEBREW), spec), draw_bars(weights(LATIN), spec)
    assert columns(ours, NEUTRAL) == columns(latin[:, ::-1], NEUTRAL)
    assert 20 <= ink(latin)[0] <= 26 and 613 <= ink(ours)[-1] < 620


def test_it_keeps_the_sides_of_bars_that_have_some() -> None:
    ours, latin = (draw_bars(weights(names), BarSpec()) for names in (HEBREW, LATIN))
    for colour in ((0, 122, 191), (198, 83, 0)):
        assert columns(ours, colour) == columns(latin, colour)


def test_the_names_of_a_picture_begin_on_one_side_most_of_them_decide() -> None:
    few = draw_bars(weights(("fur", "snow", "שלג")), BarSpec(signed=False))
    most = draw_bars(weights(("fur", "פרווה", "שלג")), BarSpec(signed=False))
    assert ink(few)[0] < 40 and ink(few)[-1] < 320
    assert ink(most)[-1] > 600 and ink(most)[0] > 320


@pytest.mark.parametrize(("draw", "margin"), [(draw_sentence, 32), (draw_sentence_tile, 11)])
def test_sentences_begin_at_the_right(draw: object, margin: int) -> None:
    ours, latin = draw("שלג"), draw("snow")  # type: ignore[operator]
    side = ours.shape[1]
    assert side - margin - 6 <= ink(ours)[-1] < side - margin
    assert margin <= ink(latin)[0] <= margin + 6


def test_captions_stay_below_the_middle_of_their_picture() -> None:
    grey = np.full((20, 20, 3), 200, np.uint8)
    drawn = ink(draw_panels(PictureExplanation((grey,), ("שלג",))))
    assert abs((drawn[0] + drawn[-1]) / 2 - 319.5) <= 2


def test_a_machine_without_fribidi_says_so_and_draws_all_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both remedies are carried out: another script, and the library."""
    before = draw_bars(weights(LATIN), BarSpec()).tobytes()
    with monkeypatch.context() as without:
        without.setattr("stimuli.render.text_draw.features.check", lambda feature: False)
        with pytest.raises(
            BadSpec, match=r"'שלג'.*no FriBiDi: install it \(apt .*or write it in another script"
        ):
            draw_sentence("שלג")
        assert draw_bars(weights(LATIN), BarSpec()).tobytes() == before
        assert ink(draw_sentence("snow"))
    assert ink(draw_sentence("שלג"))


def test_marks_are_drawn_on_letters_from_right_to_left() -> None:
    """Hebrew points and Arabic vowels; a point does not make a word wider."""
    for plain, pointed in (("של", "ש\u05b7ל"), ("\u0628\u064a\u062a", "\u0628\u064a\u064e\u062a")):
        pictures = [draw_sentence(text) for text in (plain, pointed)]
        assert (pictures[0] != pictures[1]).any()
        assert [ink(pictures[0])[at] for at in (0, -1)] == [ink(pictures[1])[at] for at in (0, -1)]
