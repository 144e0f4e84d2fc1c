"""How a published model wants its pictures, from the file that says so."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from math import floor
from pathlib import Path
from typing import Annotated, cast, get_args

from pydantic import Field

from stimuli.errors import BadSpec
from stimuli.predictors.framing import Channels, Fit, Framing, FramingParams, Interpolation
from stimuli.predictors.framing import PictureSettings as PictureSettings
from stimuli.spec import JsonValue

IMAGENET = {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}
TIMM_FITS: Mapping[str, Fit] = {"center": "crop", "squash": "squash", "border": "pad"}
MAX_BYTES = 1 << 20


class PictureParams(FramingParams):
    """`input_px` is the side of the square; `mean` and `std` are those of the training, for inputs in 0-1.
    `preprocessing` names the file that says how a published model wants its pictures; what is given beside it
    counts more.
    """

    preprocessing: str = ""
    input_px: Annotated[int, Field(ge=8, le=1024)] | None = None
    mean: Channels = (0.0, 0.0, 0.0)
    std: Channels = (1.0, 1.0, 1.0)


def settings_of(params: PictureParams, folder: Path, owner: str) -> PictureSettings:
    """What is said of the pictures, over what the named file in `folder` says. BadSpec if `owner` ("predictor
    'torch_image'") says nothing, or the file cannot be followed.
    """
    known = PictureSettings(params.input_px or 0, params.mean, params.std)
    if params.preprocessing:
        read = read_published(folder / params.preprocessing, params.preprocessing).at(params.input_px)
        given = {name: getattr(known, name) for name in ("mean", "std") if name in params.model_fields_set}
        known = replace(read, **given)
    elif params.input_px is None:
        raise BadSpec(
            f"{owner} needs parameter 'input_px', or 'preprocessing': the file in which a published model "
            "says how large its pictures are"
        )
    return replace(known, framing=params.framing_over(known.framing, known.input_px))


def read_published(path: Path, shown: str) -> PictureSettings:
    """From timm's config.json, or torchvision's transforms written as JSON. BadSpec if it is neither."""
    try:
        text = path.read_text("utf-8") if path.stat().st_size <= MAX_BYTES else ""
        value = json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise BadSpec(f'preprocessing = "{shown}" cannot be read as JSON ({error})') from error
    if isinstance(value, dict) and isinstance(value.get("pretrained_cfg"), dict):
        return _of_timm({**IMAGENET, **value["pretrained_cfg"]}, shown)
    if isinstance(value, dict) and {"crop_size", "resize_size"} <= value.keys():
        return _of_torchvision({**IMAGENET, **value}, shown)
    raise BadSpec(
        f'preprocessing = "{shown}" is neither a config.json of timm (with "pretrained_cfg") nor the '
        'transforms of torchvision (with "crop_size", "resize_size" and "interpolation"): give input_px, '
        "mean, std, resize_px, interpolation and fit instead"
    )


def _of_timm(settings: Mapping[str, JsonValue], shown: str) -> PictureSettings:
    """As `timm.data.create_transform` reads it for evaluation, at the size that the model was trained on."""
    size = settings.get("input_size")
    sides = set(size[1:]) if isinstance(size, list) and len(size) == 3 else set()
    if len(sides) != 1:
        raise BadSpec(
            f'input_size of "{shown}" is {size!r}: squares of three channels are taken, [3, side, side]'
        )
    side = whole(sides.pop(), "input_size", shown)
    share, mode = settings.get("crop_pct") or 0.875, settings.get("crop_mode") or "center"
    if type(share) not in {int, float} or not 0.1 <= share <= 1 or mode not in TIMM_FITS:
        raise BadSpec(
            f'"{shown}" has crop_pct = {share!r} and crop_mode = {mode!r}: 0.1 to 1 and one of '
            f"{', '.join(TIMM_FITS)} are taken; give resize_px and fit instead"
        )
    ways = interpolation(settings.get("interpolation") or "bicubic", shown)
    framing = Framing(floor(side / share), ways, TIMM_FITS[mode], "torchvision")
    return PictureSettings(side, channels(settings, "mean", shown), channels(settings, "std", shown), framing)


def _of_torchvision(settings: Mapping[str, JsonValue], shown: str) -> PictureSettings:
    """The fields of its ImageClassification."""
    sides = [whole(settings[name], name, shown) for name in ("crop_size", "resize_size")]
    ways = interpolation(settings.get("interpolation") or "bilinear", shown)
    framing = Framing(sides[1], ways, rounding="torchvision")
    return PictureSettings(
        sides[0], channels(settings, "mean", shown), channels(settings, "std", shown), framing
    )


def whole(value: JsonValue, name: str, shown: str) -> int:
    """A number of pixels, which may stand alone in a list."""
    number = value[0] if isinstance(value, list) and len(value) == 1 else value
    if type(number) is not int or not 8 <= number <= 2048:
        raise BadSpec(f'{name} of "{shown}" is {value!r}: one whole number of pixels, 8 to 2048, is taken')
    return number


def interpolation(value: JsonValue, shown: str) -> Interpolation:
    """One of the words that Pillow has a filter for."""
    if value not in get_args(Interpolation):
        raise BadSpec(
            f'"{shown}" resizes by {value!r}: give interpolation, one of {", ".join(get_args(Interpolation))}'
        )
    return cast(Interpolation, value)


def channels(settings: Mapping[str, JsonValue], name: str, shown: str) -> Channels:
    """Three numbers, one per channel."""
    value = settings.get(name)
    numbers = value if isinstance(value, list) else []
    if len(numbers) != 3 or not all(type(number) in {int, float} and abs(number) < 1e3 for number in numbers):
        raise BadSpec(f'{name} of "{shown}" is {value!r}, not three numbers; give mean and std')
    return float(numbers[0]), float(numbers[1]), float(numbers[2])
