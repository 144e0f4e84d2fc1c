"""How an explanation is drawn: one recipe for all conditions of a study, a value with content in every key.

A recipe has two halves. The *field* is what is shown: the method's values after smoothing, sign, clip and
scaling. The rest says how a field becomes a picture: palette, opacity, base and style. Metrics of the picture
score the field, so what is measured is what was drawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from stimuli.errors import BadSpec
from stimuli.types import WHOLE, Box

Sign = Literal["positive", "magnitude", "diverging", "signed_range"]
Style = Literal["heat", "contour", "mask", "top_share"]
Base = Literal["colour", "grey"]
Unsigned = Literal["refuse", "for"]
Opacity = Literal["constant", "rising"]
View = Literal["original", "network"]
Interpolation = Literal["smooth", "pixelated"]
Sequential = Literal["viridis", "cividis", "inferno", "magma", "plasma", "gray"]
Diverging = Literal["PuOr_r"]
OfPresets = Literal["jet", "bwr"]
OF_PRESETS: tuple[OfPresets, ...] = get_args(OfPresets)
"""Palettes of published figures: lightness does not grow with importance. Only presets name them."""
SEQUENTIAL: tuple[Sequential, ...] = get_args(Sequential)
DIVERGING: tuple[Diverging, ...] = get_args(Diverging)
Colormap = Sequential | Diverging | OfPresets
COLORMAPS: tuple[Colormap, ...] = (*SEQUENTIAL, *DIVERGING, *OF_PRESETS)

LINES_VERSION = 2
"""Stands in the keys of contour pictures alone; raised when their lines are drawn otherwise."""
_CONCEPTS = {"concept_form": "bars", "concept_top": 6, "concept_signed": True, "concept_letters": None}
"""Fields of concepts, left out of keys at these values: recipes of before they joined have none of them."""
_BEFORE_SIGNS = ("colormap", "alpha", "clip_low", "clip_high", "tile_px")


@dataclass(frozen=True, slots=True)
class RenderSpec:
    """How a map becomes a picture (0-1 are shares, percentiles 0-100). The default's palette and opacity were
    chosen by how well strengths are read off photographs: docs/evidence/recipes.md.

    `sign` says what of a method's values is shown: its evidence for the target ("positive"; the strength of a
    method without a sign), its "magnitude", both sides with zero in the palette's middle ("diverging"), or
    the whole "signed_range" with zero anywhere. `smooth_px` is the standard deviation, in pixels of the
    network's view, of a Gaussian over the values before their sign is taken. `clip_low`, `clip_high` are the
    percentiles that become 0 and 1. `unsigned` says what a diverging recipe does with a method without a
    sign: "refuse" it, or draw its strength on the side of what speaks "for" the target.

    `style` "heat" covers the picture with the palette's colours at the opacity `alpha`; "contour" draws lines
    of equal strength; "mask" greys what matters less; "top_share" greys all but the `top_share` of the pixels
    that matter most. `base` is the picture below, in "colour" or "grey". `tile_px` is the longer side at
    reservoir size. Concepts are drawn as bars, named in a row, or told as reasons: the `concept_top` most
    important ones, with their sign if `concept_signed`. `concept_letters` is the size of the names on bars,
    a share of the chart's width (0.02-0.1; None: 1/23).

    `opacity` "rising" is the law of studies that opened before recipes had a sign; no new study can ask for
    it.
    """

    colormap: Colormap = "viridis"
    alpha: float = 0.75
    clip_low: float = 1.0
    clip_high: float = 99.0
    sign: Sign = "positive"
    smooth_px: float = 0.0
    style: Style = "heat"
    top_share: float = 0.1
    base: Base = "colour"
    unsigned: Unsigned = "refuse"
    opacity: Opacity = "constant"
    tile_px: int = 112
    concept_form: Literal["bars", "names", "reasons"] = "bars"
    concept_top: int = 6
    concept_signed: bool = True
    concept_letters: float | None = None

    def as_json(self) -> dict[str, Any]:
        """The recipe as it enters keys. One of before the signs has the form that it had then."""
        whole = asdict(self)
        concepts = {name: whole[name] for name, before in _CONCEPTS.items() if whole[name] != before}
        if self.opacity == "rising":
            old = {name: whole[name] for name in _BEFORE_SIGNS}
            return {**old, "absolute": self.sign == "magnitude", **concepts}
        lines = {"lines": LINES_VERSION} if self.style == "contour" else {}
        return {name: value for name, value in whole.items() if name not in _CONCEPTS} | concepts | lines

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> RenderSpec:
        """The inverse of `as_json`, also for recipes stored before they had a sign."""
        rest = {name: entry for name, entry in value.items() if name not in ("absolute", "lines")}
        if "absolute" not in value:
            return cls(**rest)
        return cls(**rest, **before_signs(absolute=bool(value["absolute"])))


@dataclass(frozen=True, slots=True)
class Canvas:
    """The picture that people see of an item, and where on it lies what the network saw.

    `picture` is the key of the stored picture, `box` the network's view in shares of its width and height,
    see `Framing.box`. `interpolation` says how what has fewer pixels than the picture is enlarged: "smooth"
    (pictures bicubic, fields bilinear) or "pixelated" (nearest neighbour). What has more is averaged.
    """

    picture: str
    box: Box = WHOLE
    interpolation: Interpolation = "smooth"

    def as_json(self) -> dict[str, Any]:
        return {"picture": self.picture, "box": list(self.box), "interpolation": self.interpolation}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Canvas:
        left, top, right, bottom = value["box"]
        return cls(value["picture"], (left, top, right, bottom), value["interpolation"])


ALPHA_DIVERGING = 0.8
"""The opacity from which both sides are read over colour: docs/evidence/recipes.md."""
ALPHA_BEFORE = 0.55
"""The opacity of such recipes, if a study does not say."""


def before_signs(*, absolute: bool) -> dict[str, Any]:
    """What `absolute` meant in recipes of before the signs."""
    return {"sign": "magnitude" if absolute else "signed_range", "opacity": "rising"}


@dataclass(frozen=True, slots=True)
class Preset:
    """A recipe with a name and its source. `must_say` are keys that the source is silent about, so that a
    study which names the preset has to state them."""

    values: Mapping[str, Any]
    source: str
    must_say: tuple[str, ...] = ()


PRESETS: Mapping[str, Preset] = {
    "colin-2022-figures": Preset(
        {"colormap": "jet", "alpha": 0.5, "clip_low": 0.0, "clip_high": 100.0},
        "read off the figures of Colin et al. (2022); the sign is not published",
        must_say=("sign",),
    ),
    "xplique": Preset(
        {"colormap": "jet", "alpha": 0.5, "clip_low": 0.1, "clip_high": 99.9, "sign": "signed_range"},
        "the defaults of Xplique's plot of single attributions",
    ),
    "pasta": Preset(
        {"colormap": "bwr", "alpha": 0.5, "clip_low": 0.0, "clip_high": 100.0, "sign": "positive"},
        "the pictures of Kazmierczak et al. (2025); each method's own sign rule is the method's preset",
    ),
    "reverse-turing": Preset(
        {"colormap": "gray", "sign": "magnitude"},
        "the marked texts of Gonzalez and Sogaard (2020): grey by magnitude, no colour for a side",
    ),
}
"""Recipes of published studies. None is called "as in the paper" if the paper is silent."""


def written_out(table: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of [render], with those that a `preset` or a diverging `sign` brings along. BadSpec if a
    preset is not known, or is silent about what `table` does not say.
    """
    whole = dict(table)
    if name := str(whole.get("preset", "")):
        if name not in PRESETS:
            raise BadSpec(f"render preset {name!r} is not known: name one of {', '.join(PRESETS)}")
        preset = PRESETS[name]
        silent = [key for key in preset.must_say if key not in table]
        if silent:
            raise BadSpec(
                f"preset {name!r} does not say {' and '.join(silent)} ({preset.source}): state it in [render]"
            )
        whole = {**preset.values, **whole}
    if whole.get("sign") == "diverging":
        whole = {"colormap": DIVERGING[0], "alpha": ALPHA_DIVERGING, **whole}
    return whole
