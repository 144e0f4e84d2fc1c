"""Concept weights as bars and sentences: right lengths, sides and words, nothing cut, no secret revealed."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import numpy as np
import pytest
from numpy.typing import NDArray
from skimage.color import rgb2lab

from stimuli.errors import BadSpec, ShapeMismatch
from stimuli.render import bars, text_draw
from stimuli.render.bars import AGAINST, FAR, FOR, NEUTRAL, BarSpec, draw_bars, draw_bars_tile
from stimuli.render.sentences import (
    PASTA,
    REASONS,
    SentenceSpec,
    Wording,
    draw_sentence,
    draw_sentence_tile,
    sentence,
)
from stimuli.types import ConceptAttribution, Pixels

pytestmark = pytest.mark.pure
NAMES = ("fur", "wheel", "snow", "ear", "tail", "grass")
VALUES = (0.25, -1.0, 0.5, 0.0, -0.125, 0.75)
LONG = "a reddish brown coat with a white chest and dark stockings on all legs " * 2


def weights(
    values: tuple[float, ...] = VALUES, names: tuple[str, ...] = NAMES, order: str = "descending"
) -> ConceptAttribution:
    return ConceptAttribution(names, np.array(values, np.float32), order)  # type: ignore[arg-type]


def drawn_bars(picture: Pixels) -> list[tuple[int, int, str]]:
    """Every bar from top to bottom: its first and last column, and which colour it has."""
    bars = []
    for colour, side in ((FOR, "for"), (AGAINST, "against"), (NEUTRAL, "neither")):
        mask = (picture == colour).all(2)
        rows = np.flatnonzero(mask.any(1))
        for run in np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1):
            if len(run):
                columns = np.flatnonzero(mask[run[0]])
                assert (mask[run][:, columns[0] : columns[-1] + 1]).all(), "a bar is a whole rectangle"
                bars.append((int(run[0]), int(columns[0]), int(columns[-1]), side))
    return [bar[1:] for bar in sorted(bars)]


def lengths(picture: Pixels) -> NDArray[np.float64]:
    return np.array([last - first + 1 for first, last, _ in drawn_bars(picture)], float)


@pytest.mark.parametrize("draw", [draw_bars, draw_bars_tile])
def test_it_draws_lengths_in_proportion_most_important_first(draw: object) -> None:
    spec = BarSpec(top=5, signed=False)
    picture = draw(weights(), spec)  # type: ignore[operator]
    drawn = lengths(picture)
    reach = picture.shape[1] - 2 * max(6, picture.shape[1] // 32)
    # One pixel of each bar may lie under the zero line.
    np.testing.assert_allclose(drawn, np.array([1, 0.75, 0.5, 0.25, 0.125]) * reach, atol=1.6)


def test_it_draws_signs_on_their_sides_of_a_fixed_zero_line() -> None:
    picture = draw_bars(weights(), BarSpec(top=5))
    sides = [side for _, _, side in drawn_bars(picture)]
    assert sides == ["against", "for", "for", "for", "against"]
    for first, last, side in drawn_bars(picture):
        assert last < 320 if side == "against" else first >= 320
        assert abs((last if side == "against" else first) - 320) <= 2
    reach = 640 - 20 - 320
    np.testing.assert_allclose(lengths(picture), np.array([1, 0.75, 0.5, 0.25, 0.125]) * reach, atol=1.6)


def test_it_draws_near_concepts_longest_where_distances_are_given() -> None:
    distances = weights((0.5, 4.0, 1.0, 2.0, 8.0, 16.0), order="ascending")
    picture = draw_bars(distances, BarSpec(top=4, signed=False))
    np.testing.assert_allclose(lengths(picture) / lengths(picture)[0], [1, 0.5, 0.25, 0.125], atol=0.01)
    assert [NAMES[place] for place in bars.ranking(distances)] == [
        "fur",
        "snow",
        "ear",
        "wheel",
        "tail",
        "grass",
    ]


def test_it_draws_a_distance_of_zero_as_the_nearest() -> None:
    shares = bars.importance(weights((0.0, 1.0, 2.0, 3.0, 4.0, 5.0), order="ascending"))
    assert shares[0] == 1 and (shares[1:] < 1e-4).all()
    assert (bars.importance(weights((0.0,) * 6, order="ascending")) == 1).all()


@pytest.mark.parametrize("draw", [draw_bars, draw_bars_tile])
def test_it_draws_distances_without_sides_with_any_recipe(draw: object) -> None:
    distances = weights((0.5, 4.0, 1.0, 2.0, 8.0, FAR), order="ascending")
    picture = draw(distances, BarSpec(top=5, signed=True))  # type: ignore[operator]
    np.testing.assert_array_equal(picture, draw(distances, BarSpec(top=5, signed=False)))  # type: ignore[operator]
    assert {side for _, _, side in drawn_bars(picture)} == {"neither"}
    margin = max(6, picture.shape[1] // 32)
    assert all(abs(first - margin) <= 1 for first, _, _ in drawn_bars(picture))
    signed = draw(weights(), BarSpec(top=5, signed=True))  # type: ignore[operator]
    assert {side for _, _, side in drawn_bars(signed)} == {"for", "against"}


def test_it_draws_no_bar_for_a_concept_that_cannot_change_the_decision() -> None:
    some = weights((0.5, FAR, 1.0, FAR, FAR, FAR), order="ascending")
    np.testing.assert_allclose(bars.importance(some), [1, 0, 0.5, 0, 0, 0])
    assert len(drawn_bars(draw_bars(some, BarSpec(top=6)))) == 2
    assert sentence(some) == "fur, snow" == sentence(some, SentenceSpec(signed=True))
    assert sentence(some, REASONS) == "The decision rests mostly on fur and snow."
    none = weights((FAR,) * 6, order="ascending")
    assert not bars.importance(none).any()
    assert drawn_bars(draw_bars(none, BarSpec())) == drawn_bars(draw_bars_tile(none, BarSpec())) == []
    for spec in (PASTA, REASONS, SentenceSpec(signed=True), SentenceSpec("reasons", names_label=True)):
        assert sentence(none, spec, label="wolf") == "No single concept changes the decision."
    near = weights((1e-4, 2e-4, FAR, FAR, FAR, FAR), order="ascending")  # as cosines are
    np.testing.assert_allclose(bars.importance(near)[:3], [1, 0.5, 0], rtol=1e-6)


@pytest.mark.parametrize(("letters", "size_px"), [(None, 640 // 23), (0.075, 48), (0.1, 50)])
def test_names_have_letters_of_the_size_that_is_asked_for(letters: float | None, size_px: int) -> None:
    """Capitals of DejaVu Sans are .729 of its size; a row of six is 100 pixels high and holds 50."""
    picture = draw_bars(weights(names=("H",) * 6), BarSpec(top=6, letters=letters))
    first = picture[text_draw.line_px(32) :][:100]
    # Letters are darker than any bar.
    inked = np.flatnonzero((first.astype(int).sum(2) < 150).any(1))
    assert abs(len(inked) - 0.729 * size_px) <= 1.5


def test_letters_that_no_name_can_have_are_refused() -> None:
    with pytest.raises(BadSpec, match="letters is 0.2, but must lie between 0.02 and 0.1"):
        draw_bars(weights(), BarSpec(letters=0.2))


def test_it_draws_no_bar_where_nothing_matters() -> None:
    assert drawn_bars(draw_bars(weights((0.0,) * 6), BarSpec())) == []


def test_it_keeps_the_order_of_concepts_among_equals() -> None:
    assert bars.ranking(weights((1.0, -1.0, 1.0, 0.0, -1.0, 0.0))) == [0, 1, 2, 4, 3, 5]


@pytest.mark.parametrize("scale", [1e-20, 1e20])
def test_it_does_not_depend_on_the_scale(scale: float) -> None:
    scaled = weights(tuple(scale * value for value in VALUES))
    np.testing.assert_array_equal(draw_bars(scaled, BarSpec()), draw_bars(weights(), BarSpec()))


@pytest.mark.parametrize("top", [1, 2, 3, 5, 8, 15])
@pytest.mark.parametrize("signed", [True, False])
def test_it_clips_no_name_and_no_bar(top: int, signed: bool) -> None:
    """Long names too leave a margin of page on every side, and no text touches the bar below it."""
    names = tuple(f"{LONG}{place}"[:199] for place in range(20))
    attribution = weights(tuple(np.linspace(1, -1, 20)), names)
    for picture in (
        draw_bars(attribution, BarSpec(top=top, signed=signed)),
        draw_bars_tile(attribution, BarSpec(top=top, signed=signed)),
        draw_bars(attribution, BarSpec(top=top, signed=signed, width=320, height=320)),
    ):
        ink = np.asarray((picture < 100).all(2))
        margin = max(6, picture.shape[1] // 32) - 2
        assert not ink[:, :margin].any() and not ink[:, -margin:].any()
        assert not ink[-2:].any()
        for rows in bar_rows(picture):
            beside = picture[rows.start : rows.stop]
            grey = beside[(beside < 90).all(2)]
            assert not len(grey), "text runs into a bar"
        assert len(bar_rows(picture)) == min(top, 5 if picture.shape[0] == 224 else 15)


def bar_rows(picture: Pixels) -> list[slice]:
    mask = np.any([(picture == colour).all(2) for colour in (FOR, AGAINST, NEUTRAL)], axis=0)
    rows = np.flatnonzero(mask.any(1))
    return [slice(run[0], run[-1] + 1) for run in np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1)]


def test_it_keeps_every_place_from_trial_to_trial() -> None:
    """Other names and values move nothing: bars stand in the same rows, the zero line at the same place."""
    first = draw_bars(weights(), BarSpec(top=5))
    other = draw_bars(weights((3, 2, 1, -4, 5, 6), tuple(f"{LONG}{name}" for name in NAMES)), BarSpec(top=5))
    assert bar_rows(first) == bar_rows(other)
    assert first.shape == other.shape == (640, 640, 3)


@pytest.mark.parametrize(("tile_px", "least"), [(64, 12), (112, 18), (200, 20)])
def test_it_writes_tiles_large_enough_to_read(tile_px: int, least: int) -> None:
    """Nine CSS pixels of type size at 112, where two pixels are one CSS pixel."""
    frame = bars._Frame.of(bars.TILE_ROWS, True, 2 * tile_px, 2 * tile_px)
    assert frame.text_px >= least and frame.thick >= 4
    assert draw_bars_tile(weights(), BarSpec(tile_px=tile_px)).shape == (2 * tile_px, 2 * tile_px, 3)


def test_it_says_nothing_about_class_method_or_numbers() -> None:
    plain = draw_bars(weights(), BarSpec())
    loud = ConceptAttribution(
        NAMES, np.array(VALUES, np.float32), label="a small twin of CLIP", checks={"gap": 0.4}
    )
    np.testing.assert_array_equal(draw_bars(loud, BarSpec()), plain)


def test_it_uses_colours_of_one_lightness_that_stay_apart() -> None:
    lab = rgb2lab(np.array([[FOR, AGAINST, NEUTRAL]], np.uint8) / 255)[0]
    assert np.ptp(lab[:, 0]) < 2
    for kind in (DEUTAN, PROTAN):
        seen = rgb2lab(np.clip(seen_by(np.array([FOR, AGAINST]) / 255, kind), 0, 1)[None])[0]
        assert np.linalg.norm(seen[0] - seen[1]) > 40
    for colour in (FOR, AGAINST, NEUTRAL):
        assert contrast(colour, (255, 255, 255)) > 4.4 and contrast(colour, bars.BAND) > 3


# Full dichromacy in linear RGB [Machado, Oliveira and Fernandes 2009].
PROTAN = np.array(
    [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
)
DEUTAN = np.array(
    [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
)


def linear(colours: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)


def seen_by(colours: NDArray[np.float64], kind: NDArray[np.float64]) -> NDArray[np.float64]:
    light = np.clip(linear(colours) @ kind.T, 0, 1)
    return np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)


def contrast(first: tuple[int, int, int], other: tuple[int, int, int]) -> float:
    """The ratio of WCAG 2."""
    light = sorted(float(linear(np.array(c) / 255) @ [0.2126, 0.7152, 0.0722]) + 0.05 for c in (first, other))
    return light[1] / light[0]


def test_it_draws_the_same_picture_in_another_process() -> None:
    program = (
        "import hashlib, sys\n"
        "from tests.stimuli.render.test_render_concepts import *\n"
        "for p in (draw_bars(weights(), BarSpec()), draw_bars_tile(weights(), BarSpec()), "
        "draw_sentence('fur, ear'), draw_sentence_tile('fur, ear')):\n"
        "    print(hashlib.sha256(p.tobytes()).hexdigest())\n"
        "print('torch' in sys.modules)\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    pictures = (
        draw_bars(weights(), BarSpec()),
        draw_bars_tile(weights(), BarSpec()),
        draw_sentence("fur, ear"),
        draw_sentence_tile("fur, ear"),
    )
    assert run.stdout.split() == [*(hashlib.sha256(p.tobytes()).hexdigest() for p in pictures), "False"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "is empty"),
        ("  ", "is empty"),
        ("a\nb", "control character"),
        ("a\x1b[31mb", "control character"),
        ("a\u202eb", "invisible formatting"),
        ("a\u200bb", "invisible formatting"),
        ("a\ue000b", "private character"),
        ("a\u2028b", "line separator"),
        ("尾", "another script"),
        ("\u0710", "another script"),
        ("שלג q\u0302", "another script"),
        ("\u05b8שלג", "another script"),
        ("אב\u200cגד", "invisible formatting"),
        ("\u0628\u200c", "invisible formatting"),
        ("q\u0302", "another script"),
        ("x" * 201, "at most 200"),
    ],
)
def test_it_refuses_names_that_cannot_be_shown(name: str, message: str) -> None:
    attribution = weights((1.0, 2.0), ("fur", name))
    with pytest.raises(BadSpec, match=message):
        draw_bars(attribution, BarSpec())
    with pytest.raises(BadSpec, match=message):
        sentence(attribution)


def test_it_takes_names_as_they_are() -> None:
    """Nothing is escaped; composed and decomposed letters are one."""
    names = ("<b>fur & {tail}</b>", "O\u0308hr", "%s", "Ω ≥ 3")
    assert sentence(weights((4, 3, 2, 1), names)) == "<b>fur & {tail}</b>, Öhr, %s, Ω ≥ 3"
    assert sentence(weights((4, 3, 2, 1), names), REASONS) == (
        "The decision rests mostly on <b>fur & {tail}</b>, Öhr and %s."
    )


@pytest.mark.parametrize("values", [(1.0,), (1.0, float("nan")), (1.0, float("inf"))])
def test_it_refuses_values_that_do_not_fit(values: tuple[float, ...]) -> None:
    with pytest.raises(ShapeMismatch, match="one finite value per concept"):
        draw_bars(weights(values, ("fur", "ear")), BarSpec())
    with pytest.raises(ShapeMismatch):
        sentence(weights(values, ("fur", "ear")))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [({"top": 0}, "between 1 and 15"), ({"width": 100}, "between 320"), ({"tile_px": 20}, "between 64")],
)
def test_it_refuses_recipes_out_of_their_limits(wrong: dict[str, int], message: str) -> None:
    with pytest.raises(BadSpec, match=message):
        draw_bars(weights(), BarSpec(**wrong))  # type: ignore[arg-type]


def test_it_writes_pastas_released_form() -> None:
    assert sentence(weights()) == "wheel, grass, snow, fur, tail, ear"
    many = weights(tuple(float(20 - place) for place in range(20)), tuple(f"c{place}" for place in range(20)))
    assert sentence(many, PASTA) == ", ".join(f"c{place}" for place in range(15))
    distances = weights((0.5, 4.0, 1.0, 2.0, 8.0, 16.0), order="ascending")
    assert sentence(distances) == "fur, snow, ear, wheel, tail, grass"


def test_it_writes_the_list_in_other_ways() -> None:
    assert sentence(weights(), SentenceSpec(top=3, signed=True)) == "−wheel, grass, snow"
    assert sentence(weights(), SentenceSpec(top=2, separator=" | ")) == "wheel | grass"


def test_it_writes_reasons() -> None:
    assert sentence(weights(), REASONS) == (
        "The decision rests mostly on grass, snow and fur; wheel speaks against it."
    )
    unsigned = SentenceSpec("reasons", top=2)
    assert sentence(weights(), unsigned) == "The decision rests mostly on wheel and grass."
    assert sentence(weights((1.0, 0.0), ("fur", "ear")), REASONS) == "The decision rests mostly on fur."
    assert sentence(weights((-1.0, -2.0), ("fur", "ear")), REASONS) == (
        "No concept speaks for the decision; ear speaks against it."
    )
    assert sentence(weights((0.0, 0.0), ("fur", "ear")), REASONS) == (
        "No concept speaks for or against the decision."
    )
    near = weights((1.0, 2.0, 1000.0), ("fur", "ear", "sky"), "ascending")
    assert sentence(near, REASONS) == "The decision rests mostly on fur and ear."
    slight = weights((1.0, 0.011, 0.009), ("fur", "ear", "sky"))
    assert sentence(slight, REASONS) == "The decision rests mostly on fur and ear."


def test_it_names_the_label_only_if_the_recipe_does() -> None:
    assert "wolf" not in sentence(weights(), REASONS, label="wolf")
    assert "wolf" not in sentence(weights(), PASTA, label="wolf")
    named = SentenceSpec("reasons", top=1, signed=True, names_label=True)
    assert sentence(weights(), named, label="wolf") == (
        "The decision for wolf rests mostly on grass; wheel speaks against it."
    )
    with pytest.raises(BadSpec, match="the label is empty"):
        sentence(weights(), named)


def test_it_writes_in_another_language() -> None:
    german = Wording(
        rests="Ausschlaggebend sind {concepts}", against="dagegen spricht {concept}", conjunction=" und "
    )
    assert sentence(weights(), REASONS, wording=german) == (
        "Ausschlaggebend sind grass, snow und fur; dagegen spricht wheel."
    )


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"template": "haiku"}, "one of pasta, reasons"),
        ({"top": 51}, "between 1 and 50"),
        ({"separator": ""}, "1 to 8 printable"),
        ({"separator": "\n"}, "1 to 8 printable"),
        ({"height": 0}, "between 320"),
    ],
)
def test_it_refuses_other_sentences(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(BadSpec, match=message):
        sentence(weights(), SentenceSpec(**wrong))  # type: ignore[arg-type]


@pytest.mark.parametrize("words", [1, 20, 100, 1400])
def test_it_draws_sentences_within_the_margins(words: int) -> None:
    text = " ".join(["reddish-brown"] * words)
    for picture in (draw_sentence(text), draw_sentence_tile(text)):
        ink = np.asarray((picture < 128).all(2))
        margin = picture.shape[1] // 20 - 1
        assert ink.any()
        for edge in (ink[:margin], ink[-margin:], ink[:, :margin], ink[:, -margin:]):
            assert not edge.any()


def test_it_draws_ordinary_sentences_at_one_size() -> None:
    """The first line of a short and of a middling sentence look the same."""
    short, middling = draw_sentence("fur, ear"), draw_sentence("fur, ear " + "and some more words " * 12)
    width = int(text_draw.font(32).getlength("fur, ear"))
    np.testing.assert_array_equal(short[:64, : 32 + width], middling[:64, : 32 + width])


def test_it_wraps_words_and_breaks_only_what_is_too_wide() -> None:
    text = "one two three " + "w" * 60
    lines = text_draw.wrap_text(text, 20, 200, 99)
    assert lines[0] == "one two three" and "".join(lines[1:]) == "w" * 60
    assert all(text_draw.font(20).getlength(line) <= 200 for line in lines)
    short = text_draw.wrap_text(text, 20, 200, 2)
    assert len(short) == 2 and short[1].endswith("w…") and text_draw.font(20).getlength(short[1]) <= 200


def test_it_cuts_no_text_that_fits() -> None:
    assert text_draw.wrap_text("i" * 30, 20, 200, 1) == ("i" * 30,)
    assert text_draw.wrap_text("i " * 10 + "i", 20, 400, 1) == ("i " * 10 + "i",)
