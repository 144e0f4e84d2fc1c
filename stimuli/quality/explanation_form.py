"""The form of an explanation of any kind, as it is drawn: numbers that know nothing of what is explained.

Of maps these are the `LOOKS`, of marked words their number and shades, of concepts their number, sides and
sum, of sentences their length and the labels' own words in them. Which word is marked, or which concept is
named, is content, and in none of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from stimuli.quality.field_faults import is_flat
from stimuli.quality.look_decodability import looks_of
from stimuli.regions.overlap_and_form import form_numbers
from stimuli.render.attribution_field import drawn_field
from stimuli.render.bars import has_sides, importance, ranking
from stimuli.render.explanation_drawing import said_of
from stimuli.render.heatmap import grey
from stimuli.render.picture_explanation import draw_panels_tile
from stimuli.render.recipe import RenderSpec
from stimuli.render.sentences import LEAST_SHARE
from stimuli.render.tokens import shades_of
from stimuli.types import (
    Attribution,
    ConceptAttribution,
    PictureExplanation,
    PixelAttribution,
    Plane,
    RegionAttribution,
    TextExplanation,
    TokenAttribution,
)

Floats = NDArray[np.float64]
WORD = re.compile(r"\w+")
LEVEL = 1 / 255
"""The smallest step of a drawn picture."""


@dataclass(frozen=True, slots=True)
class Form:
    """How an explanation looks. `looks` float64 (F,) has one length for all of a kind under one recipe and
    the same labels; `is_flat` says that nothing is marked or said; `field` is what is drawn of a map.
    """

    looks: Floats
    is_flat: bool
    field: Plane | None = None


def form_of(made: Attribution, recipe: RenderSpec, labels: Sequence[str]) -> Form:
    """The form of an explanation under a recipe, in a study whose answers are called `labels`.

    Errors as the drawing of its kind.
    """
    return FORMS[type(made)](made, recipe, labels)


def _of_map(made: PixelAttribution, recipe: RenderSpec, labels: Sequence[str]) -> Form:
    field = drawn_field(made, recipe)
    return Form(looks_of(field), is_flat(field), field)


def _of_tokens(made: TokenAttribution, recipe: RenderSpec, labels: Sequence[str]) -> Form:
    """Number of the marked pieces; mean, largest and least shade, and their spread."""
    shades = np.array([shade for shade in shades_of(made) if shade > 0])
    if not len(shades):
        return Form(np.zeros(5), True)
    looks = [len(shades), shades.mean(), shades.max(), shades.min(), shades.std()]
    return Form(np.array(looks, np.float64), False)


def _of_concepts(made: ConceptAttribution, recipe: RenderSpec, labels: Sequence[str]) -> Form:
    """Number of the concepts that are drawn with any weight, of those for and against; their sum, largest
    share and spread. If they are told in words, those too.
    """
    shares = importance(made)
    shown = ranking(made)[: recipe.concept_top]
    drawn = shares[shown]
    signs = np.zeros(len(shown))
    if recipe.concept_signed and has_sides(made):
        signs = np.sign(np.asarray(made.values, np.float64)[shown])
    marked = drawn > 0
    looks = np.array(
        [
            marked.sum(),
            (signs[marked] > 0).sum(),
            (signs[marked] < 0).sum(),
            drawn.sum(),
            (signs * drawn).sum(),
            drawn.std(),
        ],
        np.float64,
    )
    if recipe.concept_form != "bars":
        looks = np.concatenate([looks, sentence_looks(said_of(made, recipe), labels)])
    return Form(looks, not marked.any())


def _of_sentence(made: TextExplanation, recipe: RenderSpec, labels: Sequence[str]) -> Form:
    return Form(sentence_looks(made.text, labels), not made.text.strip())


def _of_pictures(made: PictureExplanation, recipe: RenderSpec, labels: Sequence[str]) -> Form:
    """Their number, the looks of them as they are drawn together, and their captions as one sentence."""
    drawn: Plane = np.asarray(grey(draw_panels_tile(made, recipe.tile_px))[..., 0] / 255, np.float32)
    told = sentence_looks(" ".join(made.captions), labels)
    plain = all(int(np.ptp(picture)) == 0 for picture in made.pictures)
    looks = np.concatenate([[float(len(made.pictures))], looks_of(drawn), told])
    return Form(looks, plain and not any(caption.strip() for caption in made.captions))


def _of_region(made: RegionAttribution, recipe: RenderSpec, labels: Sequence[str]) -> Form:
    return Form(form_numbers(made.cells), not made.cells.any())


def sentence_looks(text: str, labels: Sequence[str]) -> Floats:
    """Number of words and characters, and per label the share (0-1) of its own words that stand in the text
    as whole words, in capitals or not; float64 (2 + labels,).
    """
    said = _words(text)
    names = [_words(label) for label in labels]
    shares = [sum(word in said for word in words) / len(words) if words else 0.0 for words in names]
    return np.array([len(said), len(text.strip()), *shares], np.float64)


def _words(text: str) -> list[str]:
    """The words of a text or label; what joins them in names of classes is none of them."""
    return WORD.findall(normalize("NFC", text).casefold().replace("_", " "))


def naming_faults(made: Attribution, recipe: RenderSpec) -> tuple[bool, bool]:
    """Whether concepts that are told in words include, like those that speak for the answer, one that speaks
    against it; and one that weighs less than `LEAST_SHARE` of the first. Never of anything else.
    """
    if not isinstance(made, ConceptAttribution) or recipe.concept_form == "bars":
        return False, False
    shares, sides = importance(made), has_sides(made)
    named = [place for place in ranking(made)[: recipe.concept_top] if sides or shares[place] > 0]
    tiny = [place for place in named if shares[place] < LEAST_SHARE]
    if recipe.concept_form == "reasons":
        named, tiny = [place for place in named if place not in tiny], []
    against = sides and not recipe.concept_signed and any(made.values[place] < 0 for place in named)
    return against, bool(tiny)


def is_drawn_alike(first: Attribution, second: Attribution, recipe: RenderSpec) -> bool:
    """Whether two explanations of different items mark or say the same under a recipe, the items apart: maps
    to a level of 8 bits, concepts by name, order and length. False if they are not of one kind or size.
    """
    return type(first) is type(second) and SAME[type(first)](first, second, recipe)


def _same_maps(first: PixelAttribution, second: PixelAttribution, recipe: RenderSpec) -> bool:
    left, right = drawn_field(first, recipe), drawn_field(second, recipe)
    return left.shape == right.shape and float(np.abs(left - right).max()) <= LEVEL


def _bars(made: ConceptAttribution, recipe: RenderSpec) -> list[tuple[str, int, bool]]:
    """Name, length in levels and side of each concept that is drawn, in the order drawn."""
    shares = importance(made)
    signed = recipe.concept_signed and has_sides(made)
    shown = ranking(made)[: recipe.concept_top]
    return [
        (made.concepts[k], round(float(shares[k]) / LEVEL), bool(signed and made.values[k] < 0))
        for k in shown
    ]


def _same_pictures(first: PictureExplanation, second: PictureExplanation, recipe: RenderSpec) -> bool:
    pairs = zip(first.pictures, second.pictures, strict=False)
    alike = len(first.pictures) == len(second.pictures) and all(np.array_equal(*pair) for pair in pairs)
    return alike and first.captions == second.captions


def _same_spans(first: TokenAttribution, second: TokenAttribution, _: RenderSpec) -> bool:
    return first.spans == second.spans and shades_of(first) == shades_of(second)


SAME: Mapping[type[Attribution], Callable[[Any, Any, RenderSpec], bool]] = {
    PixelAttribution: _same_maps,
    TokenAttribution: _same_spans,
    ConceptAttribution: lambda left, right, recipe: _bars(left, recipe) == _bars(right, recipe),
    TextExplanation: lambda left, right, _: left.text == right.text,
    PictureExplanation: _same_pictures,
    RegionAttribution: lambda left, right, _: np.array_equal(left.cells, right.cells),
}
"""How two explanations of a kind are compared."""

FORMS: Mapping[type[Attribution], Callable[[Any, RenderSpec, Sequence[str]], Form]] = {
    PixelAttribution: _of_map,
    TokenAttribution: _of_tokens,
    ConceptAttribution: _of_concepts,
    TextExplanation: _of_sentence,
    PictureExplanation: _of_pictures,
    RegionAttribution: _of_region,
}
"""What the form of each kind of explanation is read from."""
