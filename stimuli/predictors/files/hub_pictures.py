"""How a model of the hub wants its pictures: size and normalisation, from its preprocessor's settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from stimuli.errors import BadSpec
from stimuli.predictors.base import Channels
from stimuli.predictors.files.hub_folder import HubFolder
from stimuli.registry import Params
from stimuli.spec import JsonValue

MIN_PX, MAX_PX = 8, 1024
RESCALE = 1 / 255
ODDITIES = {
    "do_flip_channel_order": "it takes blue, green, red",
    "rescale_offset": "it takes pixels from -1 to 1",
    "include_top": "it normalises twice",
    "do_color_quantize": "it takes colours as numbers of a palette",
}


class HubPictureParams(Params):
    """`folder` lies in the study's folder. `input_px`, `mean` and `std` (for pixels in 0-1) are those of the
    preprocessor's settings unless given. `layer` is a module path; `token_prefix` the number of class and
    register tokens before the cells, if it is not known for the architecture.
    """

    folder: str
    labels: tuple[str, ...] = ()
    input_px: Annotated[int, Field(ge=MIN_PX, le=MAX_PX)] | None = None
    layer: str = ""
    mean: tuple[float, float, float] | None = None
    std: tuple[float, float, float] | None = None
    token_prefix: Annotated[int, Field(ge=0, le=64)] | None = None


@dataclass(frozen=True, slots=True)
class PictureSettings:
    """Square pictures of `input_px` pixels in 0-1, normalised by `mean` and `std` per channel."""

    input_px: int
    mean: Channels
    std: Channels


def picture_settings(
    folder: HubFolder,
    image_size: JsonValue,
    input_px: int | None = None,
    mean: Channels | None = None,
    std: Channels | None = None,
) -> PictureSettings:
    """The settings in `folder`, unless the study says otherwise; `image_size` is the configuration's.

    Raises BadSpec for settings that a square view of 0-1 pixels with one mean and std cannot follow. The view
    is always the same: shorter side resized, centre cropped.
    """
    preprocessor = folder.json("preprocessor_config.json")
    if preprocessor is None:
        whole = folder.json("processor_config.json") or {}
        preprocessor = (
            whole.get("image_processor") if isinstance(whole.get("image_processor"), dict) else None
        )
    settings: Mapping[str, JsonValue] = preprocessor or {}
    if mean is None or std is None:
        if preprocessor is None:
            raise BadSpec(
                f'"{folder.shown}" holds no preprocessor_config.json: give mean and std of the training, for '
                "pixels in 0-1, or save the image processor there"
            )
        _check_pixels(settings, folder.shown)
        normalises = bool(settings.get("do_normalize", True))
        mean = mean or (_channels(settings, "image_mean", folder.shown) if normalises else (0.0, 0.0, 0.0))
        std = std or (_channels(settings, "image_std", folder.shown) if normalises else (1.0, 1.0, 1.0))
    side = input_px or _side_of(settings, image_size, folder.shown)
    if not MIN_PX <= side <= MAX_PX:
        raise BadSpec(f'"{folder.shown}" takes pictures of {side} pixels; {MIN_PX} to {MAX_PX} are taken')
    return PictureSettings(side, mean, std)


def _check_pixels(settings: Mapping[str, JsonValue], shown: str) -> None:
    remedy = "if it can be said by a mean and std for pixels in 0-1, give both"
    factor = settings.get("rescale_factor", RESCALE)
    if not isinstance(factor, int | float) or abs(factor - RESCALE) > 1e-7:
        raise BadSpec(f'"{shown}" multiplies pixels by {factor!r} instead of 1/255; {remedy}')
    if not settings.get("do_rescale", True):
        raise BadSpec(f'"{shown}" takes pixels in 0-255 instead of 0-1; {remedy}')
    for name, meaning in ODDITIES.items():
        if settings.get(name):
            raise BadSpec(f'"{shown}" sets {name}: {meaning}, which is not offered; {remedy}')


def _channels(settings: Mapping[str, JsonValue], name: str, shown: str) -> Channels:
    value = settings.get(name)
    numbers = value if isinstance(value, list) else []
    if len(numbers) != 3 or not all(type(number) in {int, float} and abs(number) < 1e3 for number in numbers):
        raise BadSpec(f'{name} of "{shown}" is {value!r}, not three numbers; give mean and std')
    return float(numbers[0]), float(numbers[1]), float(numbers[2])


def _side_of(settings: Mapping[str, JsonValue], image_size: JsonValue, shown: str) -> int:
    crops = settings.get("do_center_crop", False) and settings.get("crop_size") is not None
    for value in (settings.get("crop_size") if crops else None, settings.get("size"), image_size):
        side = _side(value)
        if side is not None:
            return side
    raise BadSpec(f'"{shown}" does not say how large its square pictures are; give input_px')


def _side(value: JsonValue) -> int | None:
    """One side from the ways in which a square is written down; None if it is none."""
    if isinstance(value, dict):
        sides = [value[name] for name in ("shortest_edge", "height", "width") if name in value]
    else:
        sides = value if isinstance(value, list) else [value]
    return sides[0] if sides and all(type(side) is int and side == sides[0] for side in sides) else None
