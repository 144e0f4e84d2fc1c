"""How a model of the hub wants its pictures: size, framing, normalisation, by its preprocessor's settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from stimuli.errors import BadSpec
from stimuli.predictors.files.hub_folder import Config, HubFolder, library
from stimuli.predictors.files.picture_settings import PictureSettings, channels, interpolation
from stimuli.predictors.framing import Framing
from stimuli.predictors.parameters import MAX_PX, MIN_PX, HubPictureParams
from stimuli.spec import JsonValue

RESCALE = 1 / 255
ODDITIES = {
    "do_flip_channel_order": "it takes blue, green, red",
    "rescale_offset": "it takes pixels from -1 to 1",
    "include_top": "it normalises twice",
    "do_color_quantize": "it takes colours as numbers of a palette",
}
RESAMPLE = ("nearest", "lanczos", "bilinear", "bicubic", "box", "hamming")
"""By the numbers that Pillow gives them, which the settings hold."""
DECISIVE = (
    *("do_resize", "size", "default_to_square", "resample", "do_center_crop", "crop_size", "crop_pct"),
    *("do_pad", "do_rescale", "do_normalize", "image_mean", "image_std"),
)
"""What decides how a picture is prepared, beside the oddities."""
OWN_WAYS = ("Levit", "PoolFormer", "Perceiver", "TextNet", "Donut", "PPLCNet")
"""Processors that resize or crop in ways of their own."""
CONVNEXT_CROPPED_BELOW = 384
TABLE = "transformers.models.auto.image_processing_auto"


def picture_settings(
    folder: HubFolder, image_size: JsonValue, model_type: JsonValue, given: HubPictureParams | None = None
) -> PictureSettings:
    """The settings in `folder`, unless the study says otherwise; `image_size` is the configuration's, and
    `model_type` says which processor of the library is meant where the settings do not.

    Raises BadSpec for settings that a square view of 0-1 pixels with one mean and std cannot follow.
    """
    given = given or HubPictureParams(folder=folder.shown)
    preprocessor = folder.json("preprocessor_config.json")
    if preprocessor is None:
        whole = folder.json("processor_config.json") or {}
        preprocessor = (
            whole.get("image_processor") if isinstance(whole.get("image_processor"), dict) else None
        )
    settings = {} if preprocessor is None else _complete(preprocessor, model_type)
    mean, std = given.mean, given.std
    if mean is None or std is None:
        if preprocessor is None:
            raise BadSpec(
                f'"{folder.shown}" holds no preprocessor_config.json: give mean and std of the training, for '
                "pixels in 0-1, or save the image processor there"
            )
        _check_pixels(settings, folder.shown)
        normalises = bool(settings.get("do_normalize", True))
        mean = mean or (channels(settings, "image_mean", folder.shown) if normalises else (0.0, 0.0, 0.0))
        std = std or (channels(settings, "image_std", folder.shown) if normalises else (1.0, 1.0, 1.0))
    side = _side_of(settings, image_size) or given.input_px
    if side is None:
        raise BadSpec(f'"{folder.shown}" does not say how large its square pictures are; give input_px')
    if not MIN_PX <= (given.input_px or side) <= MAX_PX:
        raise BadSpec(f'"{folder.shown}" takes pictures of {side} pixels; {MIN_PX} to {MAX_PX} are taken')
    framing = _framing(settings, folder.shown, is_told=given.fit is not None)
    known = PictureSettings(side, mean, std, framing).at(given.input_px)
    return replace(known, framing=given.framing_over(known.framing, known.input_px))


def _complete(settings: Config, model_type: JsonValue) -> Config:
    """The settings over the defaults of the library's processor that they are for; nothing of it is run."""
    named = settings.get("image_processor_type") or settings.get("feature_extractor_type") or ""
    if not isinstance(named, str) or not named:
        listed = library(TABLE).IMAGE_PROCESSOR_MAPPING_NAMES.get(model_type)
        named = str((listed or {}).get("pil", ""))
    name = named.replace("FeatureExtractor", "ImageProcessor").removesuffix("Fast").removesuffix("Pil")
    kind: Any = getattr(library(), f"{name}Pil", None) if name.endswith("ImageProcessor") else None
    defaults = {setting: getattr(kind, setting, None) for setting in (*DECISIVE, *ODDITIES)}
    whole = {"default_to_square": True, **_there(defaults), **_there(settings)}
    return {**whole, "image_processor_type": name}


def _there(settings: Mapping[str, JsonValue]) -> Config:
    return {name: value for name, value in settings.items() if value is not None}


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


def _framing(settings: Mapping[str, JsonValue], shown: str, *, is_told: bool) -> Framing:
    """How the settings make the square. BadSpec for a way of their own, unless the study tells how."""
    name = str(settings.get("image_processor_type", ""))
    if not is_told and (name.startswith(OWN_WAYS) or settings.get("do_pad")):
        raise BadSpec(
            f'"{shown}" prepares its pictures in a way that is not offered ({name}): give fit and resize_px'
        )
    if not settings.get("do_resize", True) or not settings.get("size"):
        return Framing()
    number = settings.get("resample", 2)
    ways = interpolation(RESAMPLE[number] if number in range(len(RESAMPLE)) else number, shown)
    aim, is_square = _aim_of(settings)
    if aim is None:
        return Framing()
    if name.startswith("ConvNext") and not is_square:
        is_square = aim >= CONVNEXT_CROPPED_BELOW
        aim = aim if is_square else int(aim / _share(settings, shown))
    return Framing(aim, ways, "squash" if is_square else "crop", "transformers")


def _share(settings: Mapping[str, JsonValue], shown: str) -> float:
    share = settings.get("crop_pct", 0.875)
    if type(share) not in {int, float} or not 0.1 <= share <= 1:
        raise BadSpec(f'crop_pct of "{shown}" is {share!r}, and 0.1 to 1 is taken; give resize_px')
    return float(share)


def _aim_of(settings: Mapping[str, JsonValue]) -> tuple[int | None, bool]:
    """What sides are resized to, None if they are not to be equal, and whether all of them are."""
    size = settings.get("size")
    if isinstance(size, dict):
        return _side(size), "shortest_edge" not in size
    return _side(size), bool(settings.get("default_to_square", True))


def _side_of(settings: Mapping[str, JsonValue], image_size: JsonValue) -> int | None:
    crops = settings.get("do_center_crop", False) and settings.get("crop_size") is not None
    sides = (settings.get("crop_size") if crops else None, settings.get("size"), image_size)
    return next((side for value in sides if (side := _side(value)) is not None), None)


def _side(value: JsonValue) -> int | None:
    """One side from the ways in which a square is written down; None if it is none."""
    if isinstance(value, dict):
        sides = [value[name] for name in ("shortest_edge", "height", "width") if name in value]
    else:
        sides = value if isinstance(value, list) else [value]
    return sides[0] if sides and all(type(side) is int and side == sides[0] for side in sides) else None
