"""Concept weights in words: the sentence that a person reads, or that a text encoder embeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np

from stimuli.errors import BadSpec
from stimuli.render.bars import NAME_CHARS, check_sizes, has_sides, importance, ranking
from stimuli.render.heatmap import TILE_SCALE
from stimuli.render.text_draw import canvas, is_rtl, legible_text, line_px, wrap_text, write
from stimuli.spec import JsonValue
from stimuli.types import ConceptAttribution, Pixels

Template = Literal["pasta", "reasons"]
TEMPLATES: tuple[Template, ...] = ("pasta", "reasons")
SIGN = "−"
LEAST_SHARE = 0.01
"""What matters less than this share of the most important concept is not given as a reason."""


@dataclass(frozen=True, slots=True)
class SentenceSpec:
    """How concept weights become a sentence; the default is PASTA's released form.

    "pasta": the names of the `top` most important concepts (1 to 50), joined by `separator` (1 to 8
    characters); the sign is dropped, or with `signed` a minus stands before what speaks against the decision.
    "reasons": a sentence about the `top` concepts that matter most; with `signed` about those that speak for
    the decision, and the strongest that speaks against it. Distances have no sign, even with `signed`;
    concepts that cannot change the decision are left out, and if none can, the sentence says so.
    `names_label` puts the label into "reasons". The picture of the sentence has `width` x `height` pixels,
    twice the size at which a page shows it (320 to 2048), its tile the side `tile_px` (64 to 512).
    """

    template: Template = "pasta"
    top: int = 15
    signed: bool = False
    separator: str = ", "
    names_label: bool = False
    width: int = 640
    height: int = 640
    tile_px: int = 112

    def as_json(self) -> dict[str, JsonValue]:
        return asdict(self)


PASTA = SentenceSpec()
"""As PASTA's released code writes it."""
REASONS = SentenceSpec("reasons", top=3, signed=True)


@dataclass(frozen=True, slots=True)
class Wording:
    """The words of "reasons" in one language, with the places {concepts}, {label} and {concept}."""

    rests: str = "The decision rests mostly on {concepts}"
    rests_for_label: str = "The decision for {label} rests mostly on {concepts}"
    against: str = "{concept} speaks against it"
    only_against: str = "No concept speaks for the decision; {concept} speaks against it"
    only_against_label: str = "No concept speaks for {label}; {concept} speaks against it"
    nothing: str = "No concept speaks for or against the decision"
    nothing_label: str = "No concept speaks for or against {label}"
    no_change: str = "No single concept changes the decision"
    comma: str = ", "
    conjunction: str = " and "
    link: str = "; "
    stop: str = "."


ENGLISH = Wording()


def sentence(
    attribution: ConceptAttribution,
    spec: SentenceSpec = PASTA,
    *,
    label: str = "",
    wording: Wording = ENGLISH,
) -> str:
    """The sentence about the concepts. `label` is used only if the recipe names it.

    Most important concepts first: large magnitudes, or with the order "ascending" small ones (distances);
    equal ones in the order of the concepts. BadSpec for names that cannot be shown, a recipe out of its
    limits or a label that is missing; ShapeMismatch for values that are not finite or not one per concept.
    """
    check_sentence(spec)
    order = ranking(attribution)
    names = [legible_text(name, "a concept's name", NAME_CHARS) for name in attribution.concepts]
    is_list = spec.template == "pasta"
    shown = legible_text(label, "the label", NAME_CHARS) if spec.names_label and not is_list else ""
    shares, signed = importance(attribution), spec.signed and has_sides(attribution)
    if not has_sides(attribution):
        order = [place for place in order if shares[place] > 0]
        if not order:
            return wording.no_change + wording.stop
    if is_list:
        signs = [SIGN if signed and value < 0 else "" for value in attribution.values]
        return spec.separator.join(signs[place] + names[place] for place in order[: spec.top])
    reasons = [place for place in order if shares[place] >= LEAST_SHARE]
    against = [place for place in reasons if signed and attribution.values[place] < 0]
    pro = [place for place in reasons if place not in set(against)][: spec.top]
    return _reasons([names[place] for place in pro], [names[place] for place in against[:1]], shown, wording)


def check_sentence(spec: SentenceSpec) -> SentenceSpec:
    """Return `spec` if it can be written; BadSpec names the value and its limits."""
    if spec.template not in TEMPLATES:
        raise BadSpec(f"sentence template {spec.template!r} is not known: use one of {', '.join(TEMPLATES)}")
    check_sizes("sentence", spec, 50)
    if not 1 <= len(spec.separator) <= 8 or not spec.separator.isprintable():
        raise BadSpec(f"sentence separator is {spec.separator!r}, but must be 1 to 8 printable characters")
    return spec


def draw_sentence(text: str, spec: SentenceSpec = PASTA) -> Pixels:
    """The sentence as wrapped black text on white, uint8 (height, width, 3), for every length.

    Text is as large as at reading size (16 CSS pixels at 320 wide), and smaller, down to 10, only if it would
    not fit; what still does not fit ends in an ellipsis.
    """
    check_sentence(spec)
    return _draw_text(text, spec.width, spec.height, spec.width // 20, spec.width // 32)


def check_fits(text: str, spec: SentenceSpec = PASTA) -> str:
    """The sentence as it is drawn, if all of it can be; BadSpec if it cannot, or has a character that
    cannot."""
    clean = legible_text(text, "the sentence", 100 * NAME_CHARS)
    margin, size = _margin(spec.width), spec.width // 32
    room = (spec.height - 2 * margin) // line_px(size)
    if len(wrap_text(clean, size, spec.width - 2 * margin, room + 1)) > room:
        raise BadSpec(
            f"the sentence has {len(clean)} characters ({clean[:24]!r}…), more than the {room} lines of its "
            "picture hold: shorten it"
        )
    return clean


def draw_sentence_tile(text: str, spec: SentenceSpec = PASTA) -> Pixels:
    """The beginning of the sentence at reservoir size, uint8 (2 x tile_px, 2 x tile_px, 3)."""
    check_sentence(spec)
    side = TILE_SCALE * spec.tile_px
    return _draw_text(text, side, side, max(14, side // 10), max(12, side // 12))


def _reasons(pro: Sequence[str], against: Sequence[str], label: str, wording: Wording) -> str:
    if pro:
        head = wording.rests_for_label if label else wording.rests
        parts = [head.format(concepts=_list_names(pro, wording), label=label)]
        parts += [wording.against.format(concept=name) for name in against]
    elif against:
        head = wording.only_against_label if label else wording.only_against
        parts = [head.format(concept=against[0], label=label)]
    else:
        parts = [(wording.nothing_label if label else wording.nothing).format(label=label)]
    return wording.link.join(parts) + wording.stop


def _list_names(names: Sequence[str], wording: Wording) -> str:
    """a, b and c."""
    if len(names) == 1:
        return names[0]
    return wording.comma.join(names[:-1]) + wording.conjunction + names[-1]


def _draw_text(text: str, width: int, height: int, largest: int, smallest: int) -> Pixels:
    margin = _margin(width)
    text = legible_text(text, "the sentence", 100 * NAME_CHARS)
    for size in range(largest, smallest - 1, -1):
        room = max(1, (height - 2 * margin) // line_px(size))
        lines = wrap_text(text, size, width - 2 * margin, room + 1)
        if len(lines) <= room or size == smallest:
            break
    picture, draw = canvas(width, height)
    x, anchor = (width - margin, "ra") if is_rtl(text) else (margin, "la")
    write(draw, wrap_text(text, size, width - 2 * margin, room), (x, margin), size, anchor)
    return np.asarray(picture, np.uint8).copy()


def _margin(width: int) -> int:
    return max(6, width // 20)
