"""Colour profiles of pictures: followed once, into sRGB, or left aside, as training code does.

Conversion is relative colorimetric with black point compensation, so that what sRGB can show stays what it is
and what it cannot show is clipped to its edge.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageCms

Colour = Literal["convert", "numbers"]
Intent = Literal["relative", "perceptual"]
INTENTS = {
    "relative": ImageCms.Intent.RELATIVE_COLORIMETRIC,
    "perceptual": ImageCms.Intent.PERCEPTUAL,
}
MODES = {"RGB": "RGB", "GRAY": "L", "CMYK": "CMYK"}
"""Pillow's mode of the pictures that a profile of a colour space is about."""
FLAGS = ImageCms.Flags.BLACKPOINTCOMPENSATION | ImageCms.Flags.NOCACHE
SAME_LEVELS = 2
"""A profile that moves no colour by more than this is sRGB under another name."""
OUTSIDE_LEVELS = 6
"""A pixel at the edge of sRGB that comes back as another colour by more than this was clipped."""


class UnknownProfile(Exception):
    """A profile that cannot be followed, with the reason."""


def profile_of(picture: Image.Image) -> bytes:
    """The embedded profile, empty if there is none or it is sRGB in all but name. UnknownProfile for one
    that is damaged, or about other channels than the picture has."""
    profile = picture.info.get("icc_profile") or b""
    try:
        if not profile or _is_srgb(profile):
            return b""
        space = _space(profile)
    except (OSError, TypeError, KeyError, ImageCms.PyCMSError):
        raise UnknownProfile("it is damaged, or none of a picture") from None
    has = mode_of(picture)
    if has != MODES[space] and (has, space) != ("L", "RGB"):
        raise UnknownProfile(f"its profile is about {space} colours, the picture is {picture.mode}")
    return bytes(profile)


def converted(picture: Image.Image, profile: bytes, intent: Intent = "relative") -> Image.Image:
    """The colours of a picture of mode RGB, L or CMYK in sRGB, mode RGB. Greys under a profile of RGB are its
    greys."""
    mode = MODES[_space(profile)]
    before = picture if picture.mode == mode else picture.convert(mode)
    return cast(Image.Image, ImageCms.applyTransform(before, _transform(profile, intent)))


@dataclass(frozen=True, slots=True)
class ColourDifference:
    """How far colours under their profile lie from their bare numbers: `apart` is CIEDE2000 of each pixel
    that was looked at, `clipped` how many of them sRGB cannot show."""

    apart: NDArray[np.float64]
    clipped: int

    @property
    def words(self) -> str:
        median, largest = np.median(self.apart), self.apart.max()
        outside = f"{self.clipped / self.apart.size:.1%} of their pixels outside sRGB"
        return f"median Delta E {median:.1f}, largest {largest:.1f}, {outside}"


def joined(measured: Sequence[ColourDifference]) -> ColourDifference:
    """Those of several pictures as one."""
    return ColourDifference(
        np.concatenate([each.apart for each in measured]), sum(each.clipped for each in measured)
    )


def colour_difference(picture: Image.Image, profile: bytes, intent: Intent = "relative") -> ColourDifference:
    """Of every pixel of a picture."""
    from skimage.color import deltaE_ciede2000, rgb2lab

    numbers, shown = picture.convert("RGB"), converted(picture, profile, intent)
    apart = deltaE_ciede2000(rgb2lab(np.asarray(numbers)), rgb2lab(np.asarray(shown)))  # type: ignore[no-untyped-call]
    return ColourDifference(apart.ravel(), int(clipped(picture, profile, intent).sum()))


def clipped(numbers: Image.Image, profile: bytes, intent: Intent = "relative") -> NDArray[np.bool_]:
    """Which pixels sRGB cannot show, bool (H, W): they lie at its edge and do not come back."""
    mode = MODES[_space(profile)]
    before = numbers if numbers.mode == mode else numbers.convert(mode)
    shown = converted(before, profile, intent)
    after = np.asarray(shown)
    is_edge: NDArray[np.bool_] = ((after == 0) | (after == 255)).any(axis=2)
    try:
        back = ImageCms.applyTransform(shown, _transform(profile, intent, back=True))
    except ImageCms.PyCMSError:  # a profile of a camera says no way back; black and white are in sRGB
        is_edge &= np.ptp(after, axis=2) > 0
        return is_edge
    moved = np.abs(np.asarray(back, np.int16) - np.asarray(before, np.int16)).reshape(*is_edge.shape, -1)
    outside: NDArray[np.bool_] = is_edge & (moved > OUTSIDE_LEVELS).any(axis=2)
    return outside


def mode_of(picture: Image.Image) -> str:
    """L for greys of any depth and with alpha, CMYK, else RGB."""
    if picture.mode in {"1", "L", "LA"} or picture.mode.startswith("I"):
        return "L"
    return "CMYK" if picture.mode == "CMYK" else "RGB"


@lru_cache(maxsize=64)
def _opened(profile: bytes) -> ImageCms.ImageCmsProfile:
    return ImageCms.ImageCmsProfile(io.BytesIO(profile))


def _space(profile: bytes) -> str:
    return _opened(profile).profile.xcolor_space.strip()


@lru_cache(maxsize=64)
def _transform(profile: bytes, intent: Intent, *, back: bool = False) -> ImageCms.ImageCmsTransform:
    """Into sRGB, or back."""
    ends = ((_opened(profile), MODES[_space(profile)]), (ImageCms.createProfile("sRGB"), "RGB"))
    (here, mode), (there, into) = ends[::-1] if back else ends
    return ImageCms.buildTransform(here, there, mode, into, INTENTS[intent], FLAGS)


@lru_cache(maxsize=64)
def _is_srgb(profile: bytes) -> bool:
    """Whether colours, spaced equally, stay what they are: where nothing differs nothing is rounded."""
    if _space(profile) == "CMYK":
        return False
    steps = np.arange(0, 256, 17, dtype=np.uint8)
    if _space(profile) == "GRAY":
        before = np.repeat(steps[:, None], 3, axis=1)[None]
    else:
        before = np.stack(np.meshgrid(steps, steps, steps), axis=-1).reshape(1, -1, 3)
    after = np.asarray(converted(Image.fromarray(before), profile), np.int16)
    return bool(np.abs(after - before).max() <= SAME_LEVELS)
