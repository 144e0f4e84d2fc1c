"""Forms of words, concepts, sentences and pictures: by hand; planted leaks are found, honest ones are not
accused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from stimuli.quality.explanation_form import FORMS, form_of, naming_faults, sentence_looks
from stimuli.quality.look_decodability import decode, looks_of
from stimuli.render.recipe import RenderSpec
from stimuli.types import (
    Attribution,
    ConceptAttribution,
    PictureExplanation,
    PixelAttribution,
    RegionAttribution,
    TextExplanation,
    TokenAttribution,
)

pytestmark = pytest.mark.pure
LABELS = ("husky", "grey_wolf")
RECIPE = RenderSpec()
ITEMS = 20
LIMIT = 0.60
"""A lower limit above it is a leak."""
WORDS = ("the", "fur", "snow", "ears", "stand", "out", "against", "a", "dark", "ground", "near", "trees")


def tokens(*values: float) -> TokenAttribution:
    spans = tuple((4 * at, 4 * at + 3) for at in range(len(values)))
    return TokenAttribution(spans, np.array(values, np.float32))


def concepts(*values: float, order: str = "descending") -> ConceptAttribution:
    names = tuple(f"c{at}" for at in range(len(values)))
    return ConceptAttribution(names, np.array(values, np.float32), order)  # type: ignore[arg-type]


def test_it_counts_marked_words_and_their_shades() -> None:
    """Shades are shares of the text's own maximum, without sign: 1, .5 and .25 of four words."""
    form = form_of(tokens(-0.4, 0.0, 0.2, 0.1), RECIPE, LABELS)
    shades = np.array([1.0, 0.5, 0.25])
    np.testing.assert_allclose(form.looks, [3, shades.mean(), 1, 0.25, shades.std()])
    assert not form.is_flat and form.field is None
    assert form_of(tokens(0, 0), RECIPE, LABELS).is_flat and form_of(tokens(), RECIPE, LABELS).is_flat
    other = form_of(tokens(0.2, -0.8, 0.0, 0.4, 0.0), RECIPE, LABELS)
    np.testing.assert_array_equal(form.looks, other.looks, "which word is marked is content")


def test_it_counts_concepts_as_they_are_drawn() -> None:
    form = form_of(concepts(2.0, -1.0, 0.5, 0.0), RECIPE, LABELS)
    shares = np.array([1.0, 0.5, 0.25, 0.0])
    np.testing.assert_allclose(form.looks, [3, 2, 1, 1.75, 0.75, shares.std()])
    top = form_of(concepts(2.0, -1.0, 0.5, 0.0), RenderSpec(concept_top=2), LABELS)
    np.testing.assert_allclose(top.looks, [2, 1, 1, 1.5, 0.5, 0.25])
    unsigned = form_of(concepts(2.0, -1.0, 0.5, 0.0), RenderSpec(concept_signed=False), LABELS)
    np.testing.assert_allclose(unsigned.looks[:5], [3, 0, 0, 1.75, 0])
    near = form_of(concepts(0.1, -0.2, 1000.0, order="ascending"), RECIPE, LABELS)
    np.testing.assert_allclose(near.looks[:5], [2, 0, 0, 1.5, 0])
    assert form_of(concepts(0.0, 0.0), RECIPE, LABELS).is_flat and not form.is_flat
    told = form_of(concepts(2.0, -1.0), RenderSpec(concept_form="reasons"), LABELS)
    assert told.looks[6] == 10, "The decision rests mostly on c0; c1 speaks against it."


@pytest.mark.parametrize(
    ("values", "changes", "wrong"),
    [
        ((1.0, -0.6, 0.2), {}, (True, False)),  # c0, c1, c2
        ((1.0, -0.6, 0.2), {"concept_signed": True}, (False, False)),  # c0, -c1, c2
        ((1.0, -0.6, 0.2), {"concept_form": "bars"}, (False, False)),
        ((1.0, -0.6, 0.2), {"concept_form": "reasons"}, (True, False)),  # rests mostly on c0, c1 and c2
        ((1.0, 0.6, -0.2), {"concept_top": 2}, (False, False)),  # c0, c1
        ((1.0, 0.6, 0.009), {}, (False, True)),  # c0, c1, c2
        ((1.0, 0.6, 0.011), {}, (False, False)),
        ((1.0, 0.6, -0.009), {"concept_form": "reasons"}, (False, False)),  # rests mostly on c0 and c1
        ((1.0, -0.6, 0.0), {}, (True, True)),  # c0, c1, c2
    ],
)
def test_it_finds_words_that_name_what_is_no_reason(
    values: tuple[float, ...], changes: dict[str, Any], wrong: tuple[bool, bool]
) -> None:
    """As PASTA lists (wheel 1, wet grass -0.6); the comments say what people read."""
    recipe = RenderSpec(**{"concept_form": "names", "concept_signed": False, **changes})
    assert naming_faults(concepts(*values), recipe) == wrong


def test_distances_name_nothing_wrongly_by_their_sign() -> None:
    recipe = RenderSpec(concept_form="names", concept_signed=False)
    assert naming_faults(concepts(0.1, -0.2, 1000.0, order="ascending"), recipe) == (False, False)
    assert naming_faults(tokens(1.0, -1.0), recipe) == (False, False)


def test_it_counts_words_and_the_labels_own() -> None:
    text = " A Grey fox: no HUSKY, nor huskies. "
    np.testing.assert_allclose(sentence_looks(text, LABELS), [7, len(text) - 2, 1, 0.5])
    form = form_of(TextExplanation("It is a wolf"), RECIPE, LABELS)
    np.testing.assert_allclose(form.looks, [4, 12, 0, 0.5])
    assert form_of(TextExplanation(" "), RECIPE, LABELS).is_flat and not form.is_flat


def test_it_looks_at_pictures_and_reads_their_captions() -> None:
    picture = np.random.default_rng(1).integers(0, 256, (64, 64, 3)).astype(np.uint8)
    plain = np.full((64, 64, 3), 90, np.uint8)
    form = form_of(PictureExplanation((picture, plain), ("a husky", "")), RECIPE, LABELS)
    assert form.looks[0] == 2 and not form.is_flat
    np.testing.assert_allclose(form.looks[-4:], [2, 7, 1, 0])
    assert form_of(PictureExplanation((plain,), ("",)), RECIPE, LABELS).is_flat
    assert not form_of(PictureExplanation((plain,), ("the same",)), RECIPE, LABELS).is_flat


def test_it_looks_at_maps_as_before() -> None:
    values = np.random.default_rng(2).standard_normal((32, 32)).astype(np.float32)
    form = form_of(PixelAttribution(values, signed=True), RECIPE, LABELS)
    assert form.field is not None
    np.testing.assert_array_equal(form.looks, looks_of(form.field))
    assert form_of(PixelAttribution(0 * values, signed=True), RECIPE, LABELS).is_flat


Draws = np.random.Generator
Made = Callable[[Draws, Draws, int, str], Attribution]
"""From draws of the item and of its draws, the answer, and what is planted."""


def marked_words(item: Draws, draws: Draws, answer: int, leak: str) -> Attribution:
    """Three to five of the item's twelve words; planted: one more for an answer, or paler ones."""
    values = np.zeros(12)
    count = int(item.integers(3, 6)) + (answer if leak == "number" else 0)
    fall = 0.5 if leak == "shade" and answer else 1.0
    chosen = draws.permutation(12)[:count]
    values[chosen] = fall * draws.uniform(0.2, 0.9, count)
    values[chosen[0]] = 1.0
    return tokens(*(values * draws.choice((-1, 1), 12)))


def weighed_concepts(item: Draws, draws: Draws, answer: int, leak: str) -> Attribution:
    """Eight concepts about the item's own weights; planted: three less for an answer, or none against it."""
    values = item.standard_normal(8) + 0.5 * draws.standard_normal(8)
    if answer and leak == "number":
        values[np.argsort(np.abs(values))[:5]] = 0
    if answer and leak == "sign":
        values = np.abs(values)
    return concepts(*values)


def said(item: Draws, draws: Draws, answer: int, leak: str) -> Attribution:
    """Six to twelve words; planted: three more for an answer, or the answer's own word."""
    count = int(item.integers(6, 13)) + int(draws.integers(0, 3)) + (3 if answer and leak == "length" else 0)
    words = [str(word) for word in draws.choice(WORDS, count)]
    if leak == "label":
        words[int(draws.integers(count))] = ("Husky", "wolf")[answer]
    return TextExplanation(" ".join(words))


def shown_pictures(item: Draws, draws: Draws, answer: int, leak: str) -> Attribution:
    """The item's ground under another blob; planted: a white corner, or the answer in the caption."""
    down, across = np.mgrid[:64, :64] / 64
    row, column = draws.uniform(0.3, 0.7, 2)
    blob = np.exp(-20 * ((down - row) ** 2 + (across - column) ** 2))
    values = 255 * np.clip(item.uniform(0.2, 0.5) + 0.4 * blob + 0.05 * draws.standard_normal((64, 64)), 0, 1)
    picture = np.repeat(values[..., None], 3, 2).astype(np.uint8)
    if answer and leak == "mark":
        picture[:24, :24] = 255
    caption = ("like a husky", "like a wolf")[answer] if leak == "label" else "most alike"
    return PictureExplanation((picture,), (caption,))


def marked_regions(item: Draws, draws: Draws, answer: int, leak: str) -> Attribution:
    """A disk at a place of the item's; planted: a larger one, or a speck beside it."""
    down, across = np.mgrid[:28, :28]
    row, column = item.uniform(10, 16, 2) + draws.uniform(-2, 2, 2)
    radius = item.uniform(4, 7) + draws.uniform(-0.5, 0.5) + 1.5 * (answer and leak == "area")
    cells = (down - row) ** 2 + (across - column) ** 2 <= radius**2
    if answer and leak == "speck":
        cells[0, 0] = True
    return RegionAttribution(cells)


KINDS: dict[type[Attribution], tuple[Made, tuple[str, str]]] = {
    TokenAttribution: (marked_words, ("number", "shade")),
    ConceptAttribution: (weighed_concepts, ("number", "sign")),
    TextExplanation: (said, ("length", "label")),
    PictureExplanation: (shown_pictures, ("mark", "label")),
    RegionAttribution: (marked_regions, ("area", "speck")),
}


def accused(kind: type[Attribution], seed: int, leak: str = "") -> bool:
    make, _ = KINDS[kind]
    looks = []
    for item in range(ITEMS):
        for answer in range(2):
            draws = np.random.default_rng([seed, item, answer, 1])
            made = make(np.random.default_rng([seed, item]), draws, answer, leak)
            looks.append(form_of(made, RECIPE, LABELS).looks)
    kinds = np.tile(np.array([False, True]), ITEMS)
    return decode(np.stack(looks), kinds, np.repeat(np.arange(ITEMS), 2), seed).low > LIMIT


def test_every_kind_has_a_form() -> None:
    assert set(FORMS) == {PixelAttribution, *KINDS}


DRAWN = pytest.mark.long(stays="test_it_does_not_accuse_honest_explanations")
"""Pictures are the slowest to read."""
LABELLED = pytest.mark.long(stays="test_it_finds_a_planted_leak_in_twenty_items")


@pytest.mark.parametrize(
    ("kind", "leak"),
    [
        pytest.param(kind, leak, marks=[LABELLED] if (kind, leak) == (PictureExplanation, "label") else [])
        for kind, (_, leaks) in KINDS.items()
        for leak in leaks
    ],
)
def test_it_finds_a_planted_leak_in_twenty_items(kind: type[Attribution], leak: str) -> None:
    assert sum(accused(kind, seed, leak) for seed in range(20)) >= 19


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[DRAWN] if kind is PictureExplanation else []) for kind in KINDS]
)
def test_it_does_not_accuse_honest_explanations(kind: type[Attribution]) -> None:
    assert sum(accused(kind, seed) for seed in range(20)) <= 2


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
def test_it_does_not_accuse_honest_explanations_over_400_seeds(kind: type[Attribution]) -> None:
    assert sum(accused(kind, seed) for seed in range(400)) <= 20
