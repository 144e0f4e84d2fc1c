"""Pictures to PNG files and back. Files carry pixels and nothing else: no text, time, profile or palette."""

from __future__ import annotations

import hashlib
import io
import struct

import numpy as np
from PIL import Image, UnidentifiedImageError

from stimuli.errors import ShapeMismatch
from stimuli.types import Pixels

_LEVEL, _RLE = 3, 3
"""zlib's level, and its strategy for filtered pictures (Z_RLE): overlays of photographs take a third less
time than with the usual one, and their files are an eighth smaller."""


def encode(picture: Pixels) -> bytes:
    """A PNG of uint8 (H, W, 3), with the chunks IHDR, IDAT and IEND alone; the same pixels give the same
    bytes.
    """
    check_picture(picture)
    buffer = io.BytesIO()
    image = Image.fromarray(np.ascontiguousarray(picture))
    image.save(buffer, "PNG", compress_level=_LEVEL, compress_type=_RLE)
    return buffer.getvalue()


def decode(content: bytes) -> Pixels:
    """The pixels of a PNG that `encode` wrote, uint8 (H, W, 3)."""
    try:
        with Image.open(io.BytesIO(content)) as image:
            return np.asarray(image.convert("RGB"), dtype=np.uint8).copy()
    except (UnidentifiedImageError, OSError) as error:
        raise ShapeMismatch(
            f"a stored picture cannot be read ({error}): delete it and render again"
        ) from error


def pixel_key(picture: Pixels) -> str:
    """SHA-256 of shape and pixels: equal exactly for pictures that look equal, however compressed."""
    check_picture(picture)
    head = struct.pack("<3I", *picture.shape)
    return hashlib.sha256(head + np.ascontiguousarray(picture).tobytes()).hexdigest()


def check_picture(picture: Pixels) -> None:
    """ShapeMismatch unless `picture` is uint8 (H, W, 3) with at least one pixel."""
    if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] != 3 or not picture.size:
        raise ShapeMismatch(f"a picture is uint8 (H, W, 3), but got {picture.dtype} {picture.shape}")
