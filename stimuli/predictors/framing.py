"""How a picture of any size becomes the square that a network sees, and which part of it that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Literal

import numpy as np
from PIL import Image
from pydantic import Field

from stimuli.datasets.colour_profiles import Colour
from stimuli.errors import BadSpec
from stimuli.registry import Params
from stimuli.spec import JsonValue
from stimuli.types import Box, Pixels

Channels = tuple[float, float, float]
Fit = Literal["crop", "squash", "pad"]
Interpolation = Literal["nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"]
Rounding = Literal["legible", "torchvision", "transformers"]


@dataclass(frozen=True, slots=True)
class Framing:
    """A picture is resized by Pillow, which smooths what it shrinks; then its centre becomes the square.

    `resize_px` (none: the square's side) is what `fit` brings a side to: "crop" the shorter one, "squash"
    both, "pad" the longer one, with bars of one colour beside the picture. `rounding` names the library whose
    sizes and places are met to the pixel: timm's are torchvision's. "legible" is our own, and belongs to
    a resize to the square's side.
    """

    resize_px: int | None = None
    interpolation: Interpolation = "bicubic"
    fit: Fit = "crop"
    rounding: Rounding = "legible"

    def as_json(self) -> dict[str, JsonValue]:
        """The content of a key; empty for the framing that was the only one, so that older keys stay."""
        return {} if self == Framing() else asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, JsonValue]) -> Framing:
        return cls(**value)

    def view(self, pixels: Pixels, side: int, mean: Sequence[float] = (0.0, 0.0, 0.0)) -> Pixels:
        """The square, uint8 (side, side, 3); bars have the colour `mean`, in 0-1."""
        size, left, top = self._placement(pixels.shape[0], pixels.shape[1], side)
        if (*size[::-1], 3) == pixels.shape == (side, side, 3):
            return np.ascontiguousarray(pixels)
        resized = Image.fromarray(pixels).resize(size, Image.Resampling[self.interpolation.upper()])
        red, green, blue = (round(255 * value) for value in mean)
        square = Image.new("RGB", (side, side), (red, green, blue))
        square.paste(resized, (-left, -top))
        return np.asarray(square, dtype=np.uint8).copy()

    def box(self, height: int, width: int, side: int) -> Box:
        """Left, top, right and bottom of the square in shares of the picture's width and height: 0-1, beyond
        that where "pad" puts bars.
        """
        (wide, high), left, top = self._placement(height, width, side)
        return left / wide, top / high, (left + side) / wide, (top + side) / high

    def _placement(self, height: int, width: int, side: int) -> tuple[tuple[int, int], int, int]:
        """Width and height after resizing, and where the square begins in it: negative where bars come."""
        aim = self.resize_px or side
        short, long = min(height, width), max(height, width)
        if self.fit == "squash":
            size = aim, aim
        elif self.fit == "pad":
            size = max(1, round(width / (long / aim))), max(1, round(height / (long / aim)))
        elif self.rounding == "legible":
            size = max(side, round(width * (side / short))), max(side, round(height * (side / short)))
        else:
            further = int(aim * long / short)
            size = (aim, further) if width <= height else (further, aim)
        return size, self._start(size[0] - side), self._start(size[1] - side)

    def _start(self, spare: int) -> int:
        """Half of what is left over: torchvision takes the even one of two, and the lower one for bars."""
        if spare < 0:
            return -(-spare // 2)
        return round(spare / 2) if self.rounding == "torchvision" else spare // 2


@dataclass(frozen=True, slots=True)
class PictureSettings:
    """Square pictures of `input_px` pixels in 0-1, made as `framing` says, normalised by `mean` and `std` per
    channel.
    """

    input_px: int
    mean: Channels = (0.0, 0.0, 0.0)
    std: Channels = (1.0, 1.0, 1.0)
    framing: Framing = Framing()

    def view(self, pixels: Pixels) -> Pixels:
        """The square that the network sees, uint8 (input_px, input_px, 3); bars are as the mean."""
        return self.framing.view(pixels, self.input_px, self.mean)

    def at(self, input_px: int | None) -> PictureSettings:
        """The same for squares of another side, which show the same part of a picture."""
        if input_px is None or input_px == self.input_px:
            return self
        aim = self.framing.resize_px
        scaled = None if aim is None else aim * input_px // self.input_px
        return replace(self, input_px=input_px, framing=replace(self.framing, resize_px=scaled))


class FramingParams(Params):
    """`resize_px`, `interpolation` and `fit` as in `Framing`; none takes what the model's files say.
    `published_accuracy` is the share of pictures that others found it right on, for comparison;
    `training_colour` is how the colours of its training were read. Neither changes what the network sees.
    """

    resize_px: Annotated[int, Field(ge=8, le=2048)] | None = None
    interpolation: Interpolation | None = None
    fit: Fit | None = None
    published_accuracy: Annotated[float, Field(ge=0, le=1)] | None = None
    training_colour: Colour | None = None

    def framing_over(self, known: Framing, side: int) -> Framing:
        """What is given here over what is known. BadSpec as `check_framing`."""
        given = self.model_dump(include={"resize_px", "interpolation", "fit"}, exclude_none=True)
        made = replace(known, **given)
        if made != known and made.rounding == "legible":
            made = replace(made, rounding="torchvision")
        return check_framing(made, side)

    def told(self) -> dict[str, JsonValue]:
        """What stands in the provenance."""
        return self.model_dump(include={"published_accuracy", "training_colour"}, exclude_none=True)


def cropped_share(box: Box) -> float:
    """The share (0-1) of a picture that lies outside of a box."""
    left, top, right, bottom = box
    return 1 - (min(right, 1) - max(left, 0)) * (min(bottom, 1) - max(top, 0))


def check_framing(framing: Framing, side: int) -> Framing:
    """The framing. BadSpec if the square would not be filled."""
    if framing.fit != "pad" and framing.resize_px is not None and framing.resize_px < side:
        raise BadSpec(
            f"resize_px = {framing.resize_px}, but the network takes {side} pixels: pictures are resized to "
            'at least input_px, unless fit = "pad"'
        )
    return framing


def square_view(pixels: Pixels, side: int) -> Pixels:
    """Shorter side resized to `side`, centre cropped: uint8 (side, side, 3)."""
    return Framing().view(pixels, side)
