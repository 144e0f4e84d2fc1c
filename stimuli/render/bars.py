"""The concepts that matter most as horizontal bars, one recipe for every concept method.

Each bar stands below its concept's name; the longest one has the full length, the others are proportional to
it. If most names run from right to left, all names begin at the right, and bars without sides too. No number,
class or probability is drawn, nor the method's label. Blue and orange are equally light, so that length alone
says how much, and stay apart for every kind of colour vision [Okabe and Ito 2008].
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

import numpy as np
from numpy.typing import NDArray
from PIL import ImageDraw

from stimuli.errors import BadSpec, ShapeMismatch
from stimuli.render.heatmap import TILE_SCALE
from stimuli.render.text_draw import (
    INK,
    canvas,
    font,
    is_rtl,
    legible_text,
    line_px,
    wrap_text,
    write,
)
from stimuli.spec import JsonValue
from stimuli.types import ConceptAttribution, Pixels

Floats = NDArray[np.float64]

FOR, AGAINST = (0, 122, 191), (198, 83, 0)
"""Blue and orange of one CIE lightness, 49 to 50."""
NEUTRAL = (150, 95, 165)
"""Bars without sides: a purple as light as the two."""
FAR = 1000.0
"""The distance of a concept that cannot change the decision, however far it moves; no distance is larger."""
LINE, BAND = (110, 110, 110), (244, 244, 244)
"""The zero line, and the ground of every second row."""
NAME_CHARS = 200
TILE_ROWS = 5
"""A tile shows no more concepts than this; more would not be legible."""


@dataclass(frozen=True, slots=True)
class BarSpec:
    """How concept weights become bars; one recipe for all conditions of a study.

    `top` concepts are drawn, most important first (1 to 15). With `signed` the zero line stands in the
    middle: bars to the right speak for the decision, to the left against it; without it all bars start at the
    left and show magnitudes, in a colour of neither side. Distances have no sign and are always drawn so.
    Names have letters of that share of the width (0.02 to 0.1; None: 1/23), or as large as their row holds.
    `width` and `height` are the picture's size in pixels, twice the size at which a
    page shows it (320 to 2048); `tile_px` is the side at reservoir size (64 to 512).
    """

    top: int = 8
    signed: bool = True
    letters: float | None = None
    width: int = 640
    height: int = 640
    tile_px: int = 112

    def as_json(self) -> dict[str, JsonValue]:
        return asdict(self)


def draw_bars(attribution: ConceptAttribution, spec: BarSpec) -> Pixels:
    """The picture, uint8 (height, width, 3). Its size depends on the recipe alone.

    BadSpec for a name that cannot be drawn or a recipe out of its limits, ShapeMismatch for values that are
    not finite or not one per concept.
    """
    check_bars(spec)
    return _draw_bars(attribution, min(spec.top, len(attribution.concepts)), spec, spec.width, spec.height)


def draw_bars_tile(attribution: ConceptAttribution, spec: BarSpec) -> Pixels:
    """The same at reservoir size, drawn anew: at most `TILE_ROWS` concepts, uint8 (2 x tile_px, same, 3)."""
    check_bars(spec)
    side = TILE_SCALE * spec.tile_px
    return _draw_bars(attribution, min(spec.top, TILE_ROWS, len(attribution.concepts)), spec, side, side)


def bars_in_words(attribution: ConceptAttribution, spec: BarSpec) -> str:
    """The same in words: the drawn concepts in their order, each with the length of its bar and its side."""
    shares, signed = importance(attribution), spec.signed and has_sides(attribution)
    parts = []
    for place in ranking(attribution)[: spec.top]:
        side = ("−" if attribution.values[place] < 0 else "+") if signed and shares[place] else ""
        parts.append(f"{attribution.concepts[place]} {side}{shares[place]:.0%}")
    return ", ".join(parts)


def check_bars(spec: BarSpec) -> BarSpec:
    """Return `spec` if it can be drawn; BadSpec names the value and its limits."""
    check_sizes("bars", spec, 15)
    if spec.letters is not None and not 0.02 <= spec.letters <= 0.1:
        raise BadSpec(f"bars letters is {spec.letters!r}, but must lie between 0.02 and 0.1")
    return spec


def check_sizes(what: str, spec: object, top: int) -> None:
    """BadSpec if a recipe with a `top`, a size and a tile has one of them out of its limits."""
    limits = {"top": (1, top), "width": (320, 2048), "height": (320, 2048), "tile_px": (64, 512)}
    for name, (low, high) in limits.items():
        value = getattr(spec, name)
        if not low <= value <= high:
            raise BadSpec(f"{what} {name} is {value!r}, but must lie between {low} and {high}")


def importance(attribution: ConceptAttribution) -> Floats:
    """How much each concept matters, float64 (K,) in 0-1 with 1 for the first: the shares of a bar's length.

    The magnitude divided by the largest. If small values matter most ("ascending", distances), the smallest
    distance divided by the concept's own, so that twice the distance is half the bar, and 0 for those that
    are FAR. All zero if all magnitudes are, or all distances are FAR.
    """
    sizes = np.abs(np.asarray(attribution.values, np.float64))
    if sizes.shape != (len(attribution.concepts),) or not sizes.size or not np.isfinite(sizes).all():
        raise ShapeMismatch(
            f"{len(attribution.concepts)} concepts have values of shape {sizes.shape}: one finite value per "
            "concept is needed, and at least one concept"
        )
    if attribution.order == "ascending":
        decides = sizes < FAR
        if not decides.any():
            return np.zeros_like(sizes)
        near = np.maximum(sizes, 1e-6 * sizes[decides].max() or 1.0)
        return np.where(decides, near.min() / near, 0.0)
    return sizes / (sizes.max() or 1.0)


def has_sides(attribution: ConceptAttribution) -> bool:
    """Whether values speak for or against the decision; distances do neither."""
    return attribution.order != "ascending"


def ranking(attribution: ConceptAttribution) -> list[int]:
    """The places of the concepts, most important first; equal ones in the order of the concepts."""
    shares = importance(attribution)
    return sorted(range(len(shares)), key=lambda place: (-shares[place], place))


def _draw_bars(attribution: ConceptAttribution, rows: int, spec: BarSpec, width: int, height: int) -> Pixels:
    shares = importance(attribution)
    signed = spec.signed and has_sides(attribution)
    names = [legible_text(name, "a concept's name", NAME_CHARS) for name in attribution.concepts]
    picture, draw = canvas(width, height)
    frame = _Frame.of(rows, signed, width, height, spec.letters)
    leftwards = 2 * sum(map(is_rtl, names)) > len(names)
    name_at, anchor = (width - frame.margin, "ra") if leftwards else (frame.margin, "la")
    if leftwards and not signed:
        frame = replace(frame, zero=width - frame.zero)
    if signed:
        _draw_signs(draw, frame)
    for row, place in enumerate(ranking(attribution)[:rows]):
        top = frame.top + row * frame.pitch
        if row % 2 == 0:
            end = height if row == rows - 1 else top + frame.pitch
            draw.rectangle((0, top, width - 1, end - 1), BAND)
        lines = wrap_text(names[place], frame.text_px, width - 2 * frame.margin, frame.lines)
        # A name of one line stands right above its bar, however many lines others may have.
        name_top = top + frame.inset + (frame.lines - len(lines)) * line_px(frame.text_px)
        write(draw, lines, (name_at, name_top), frame.text_px, anchor)
        bar_top = top + frame.inset + frame.lines * line_px(frame.text_px) + frame.overhang
        is_against = bool(attribution.values[place] < 0)
        colour = (AGAINST if is_against else FOR) if signed else NEUTRAL
        side = -1 if (is_against if signed else leftwards) else 1
        _draw_bar(draw, frame, bar_top, side * shares[place], colour)
    return np.asarray(picture, np.uint8).copy()


@dataclass(frozen=True, slots=True)
class _Frame:
    """The layout in pixels: rows `pitch` high below `top`, their content `inset` below their edge, the zero
    line at `zero`, bars up to `reach` long and `thick` high.
    """

    margin: int
    top: int
    pitch: int
    inset: int
    text_px: int
    lines: int
    thick: int
    zero: int
    reach: int

    @property
    def overhang(self) -> int:
        """How far the zero line extends above and below a bar."""
        return max(1, self.thick // 6)

    @classmethod
    def of(cls, rows: int, signed: bool, width: int, height: int, letters: float | None = None) -> _Frame:
        margin = max(6, width // 32)
        top = line_px(_sign_px(width)) if signed else 0
        pitch = (height - top) // rows
        wanted = width // 23 if letters is None else round(letters * width)
        text_px = max(12, min(pitch // 2, max(wanted, 20)))
        while text_px > 12 and line_px(text_px) > pitch * 7 // 10:
            text_px -= 1
        lines = 2 if 2 * line_px(text_px) <= pitch * 7 // 10 else 1
        room = pitch - lines * line_px(text_px)
        thick = max(4, min(room * 6 // 10, width // 24))
        inset = max(0, (room - thick) * 4 // 10)
        zero = width // 2 if signed else margin
        return cls(margin, top, pitch, inset, text_px, lines, thick, zero, width - margin - zero)


def _sign_px(width: int) -> int:
    return max(20, width // 20)


def _draw_signs(draw: ImageDraw.ImageDraw, frame: _Frame) -> None:
    """A minus on the side of what speaks against, a plus on the other: no word of any language."""
    for sign, at in (("−", frame.zero - frame.reach // 2), ("+", frame.zero + frame.reach // 2)):
        draw.text((at, 0), sign, INK, font(_sign_px(2 * frame.zero)), "ma")


def _draw_bar(
    draw: ImageDraw.ImageDraw, frame: _Frame, top: int, share: float, colour: tuple[int, int, int]
) -> None:
    """A bar of `share`, -1 to 1, of the reach; below 0 to the left of the zero line."""
    length = round(abs(float(share)) * frame.reach)
    bottom = top + frame.thick - 1
    if length:
        left = frame.zero - length if share < 0 else frame.zero
        draw.rectangle((left, top, left + length - 1, bottom), colour)
    over = frame.overhang
    draw.rectangle((frame.zero - 1, top - over, frame.zero, bottom + over), LINE)
