"""Files of pictures as pixels: upright, on white, eight bits for each of red, green and blue."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from stimuli.datasets.colour_profiles import (
    Colour,
    ColourDifference,
    Intent,
    UnknownProfile,
    colour_difference,
    converted,
    joined,
    mode_of,
    profile_of,
)
from stimuli.errors import BadSpec, first_of
from stimuli.types import Pixels

MAX_PIXELS = 50_000_000
MIN_SIDE_PX = 8
LEVELS = 65_536
"""Of grey pictures of 16 bits, unless a study declares fewer."""
ORIENTATION = 274
SIDEWAYS = frozenset({5, 6, 7, 8})
"""EXIF orientations that exchange width and height."""
SAMPLE_PX = 64
"""Side of the grid of pixels on which colours are compared."""
WITH_ALPHA = frozenset({"RGBA", "LA", "PA"})
Size = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Decoding:
    """How files become pixels: what is done with colour profiles, and how many levels the greys of 16-bit
    files have. The default is how training code reads pictures: profiles are left aside."""

    colour: Colour = "numbers"
    intent: Intent = "relative"
    levels: int = LEVELS


NUMBERS = Decoding()


def read_picture(path: Path, decoding: Decoding = NUMBERS) -> Pixels:
    """One file as RGB, uint8 (H, W, 3): upright, flattened on white, without metadata.

    Raises BadSpec that names the file if it is damaged or has a profile that cannot be followed, and the
    limit if it is too large.
    """
    check_pictures([path], decoding)
    try:
        with Image.open(path) as picture:
            profile = profile_of(picture) if decoding.colour == "convert" else b""
            upright = ImageOps.exif_transpose(picture)
            alpha = None
            if upright.mode in WITH_ALPHA or "transparency" in upright.info:
                is_grey = mode_of(upright) == "L"
                upright = upright.convert("RGBA")
                alpha = upright.getchannel("A")
                upright = upright.getchannel(0) if is_grey else upright.convert("RGB")
            upright = eight_bit(upright, decoding.levels)
            upright = converted(upright, profile, decoding.intent) if profile else upright.convert("RGB")
            if alpha is not None:
                upright.putalpha(alpha)
                ground = Image.new("RGBA", upright.size, "white")
                upright = Image.alpha_composite(ground, upright).convert("RGB")
            return np.asarray(upright, dtype=np.uint8).copy()
    except (OSError, SyntaxError, ValueError) as error:
        raise BadSpec(f'the picture "{path}" cannot be read ({error}); replace or remove it') from error


def eight_bit(picture: Image.Image, levels: int = LEVELS) -> Image.Image:
    """16-bit greys scaled to 8 bit; Pillow's own conversion would clip everything above 255 to white."""
    if not picture.mode.startswith("I"):
        return picture
    values = np.asarray(picture, dtype=np.int64).clip(0, levels - 1)
    return Image.fromarray((values * 255 // (levels - 1)).astype(np.uint8))


def upright_size(path: Path) -> Size:
    """Width and height in pixels of the picture as `read_picture` gives it."""
    with Image.open(path) as picture:
        width, height = picture.size
        return (height, width) if picture.getexif().get(ORIENTATION) in SIDEWAYS else (width, height)


def check_pictures(paths: Sequence[Path], decoding: Decoding = NUMBERS) -> list[Path]:
    """Those whose profile is not sRGB, by the headers alone. BadSpec that tells every kind of fault once,
    with its number and the first pictures."""
    faults: dict[str, list[str]] = {}
    profiled = []
    for path in paths:
        seen = _look(path, decoding)
        if isinstance(seen, tuple):
            faults.setdefault(seen[1], []).append(f'"{path}"{seen[0]}')
        elif seen:
            profiled.append(path)
    if faults:
        raise BadSpec("; ".join(_said_of_pictures(places, remedy) for remedy, places in faults.items()))
    return profiled


def _said_of_pictures(places: Sequence[str], remedy: str) -> str:
    if len(places) == 1:
        return f"the picture {places[0]} {remedy}"
    return f"{len(places)} pictures {first_of(places)}, each of which {remedy}"


def _look(path: Path, decoding: Decoding) -> bool | tuple[str, str]:
    """Whether a picture has a profile that is not sRGB; or what is wrong with it by its header: a word about
    this one, then limit and remedy."""
    size, profiled = "", False
    try:
        with Image.open(path) as picture:
            width, height = picture.size
            size = f" ({width} x {height} pixels)"
            profiled = bool(profile_of(picture))
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        width = height = MAX_PIXELS
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError):
        return "", "cannot be read; replace or remove it"
    except UnknownProfile as error:
        if decoding.colour == "convert":
            return f" ({error})", (
                'has a colour profile that cannot be followed; save it in sRGB, or set colour = "numbers" in '
                "the dataset's table, which leaves profiles aside"
            )
    if width * height > MAX_PIXELS:
        return size, f"is above the limit of {MAX_PIXELS:,} pixels; scale it down"
    if min(width, height) < MIN_SIDE_PX:
        return size, f"is too small; at least {MIN_SIDE_PX} pixels on each side are needed"
    return profiled


def check_levels(paths: Sequence[Path], levels: int | None, place: str = "in the dataset's table") -> None:
    """BadSpec if grey pictures of 16 bits use a part of their levels and it is not said how many they have
    (`levels` None), or if some lie above those that are declared; with the number of pictures, and the
    `place` where to say it."""
    deep = []
    for path in paths:
        # One that breaks off is told when it is read.
        with Image.open(path) as picture, suppress(OSError, SyntaxError):
            if picture.mode.startswith("I"):
                deep.append((path, int(np.asarray(picture).max())))
    above = [f'"{path}" ({most})' for path, most in deep if most >= (levels or LEVELS)]
    if above:
        raise BadSpec(
            f"{len(above)} of {len(deep)} pictures of 16 bits have levels above {(levels or LEVELS) - 1}: "
            f"{first_of(above)}; declare more levels {place}, at most {LEVELS}"
        )
    most = max((most for _, most in deep), default=LEVELS)
    if levels is None and most < LEVELS // 2:
        fitting = 1 << max(8, most.bit_length())
        raise BadSpec(
            f"{len(deep)} of {len(paths)} pictures have 16 bits and use levels 0 to {most} of {LEVELS - 1}, "
            f"so that people and model would see them dark or black: set levels = {fitting} {place} if that "
            f"is white, or levels = {LEVELS} if they are meant so dark"
        )


def measured_difference(paths: Sequence[Path], decoding: Decoding) -> ColourDifference:
    """How far the two ways to read pictures with profiles lie apart, on equally spaced pixels of each."""
    measured = []
    for path in paths:
        with Image.open(path) as picture:
            profile = profile_of(picture)
            picture.draft(None, (SAMPLE_PX, SAMPLE_PX))  # JPEG is decoded at no more than it takes
            size = min(SAMPLE_PX, picture.width), min(SAMPLE_PX, picture.height)
            small = eight_bit(picture, decoding.levels).resize(size, Image.Resampling.NEAREST)
        measured.append(colour_difference(small, profile, decoding.intent))
    return joined(measured)
