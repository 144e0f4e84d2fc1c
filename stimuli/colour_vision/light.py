"""From what a picture stores to the light that a screen makes of it, and to how that looks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stimuli.types import Pixels

Linear = NDArray[np.float64]
"""Colours in linear light, float64 (..., 3) of sRGB's primaries, 0-1."""
LUMINANCE = np.array((0.2126, 0.7152, 0.0722))
"""The shares of sRGB's primaries in luminance, Y of linear light [IEC 61966-2-1]."""
TO_XYZ = np.array(((0.4124, 0.3576, 0.1805), LUMINANCE, (0.0193, 0.1192, 0.9505)))
"""From linear sRGB to CIE 1931 XYZ [IEC 61966-2-1]; its row sums are the white point, D65."""


def decoded(pixels: Pixels) -> Linear:
    """Linear light of uint8 sRGB (..., 3)."""
    level = np.asarray(pixels, np.float64) / 255
    return np.where(level <= 0.04045, level / 12.92, ((level + 0.055) / 1.055) ** 2.4)


def encoded(light: Linear) -> Pixels:
    """The nearest uint8 sRGB of linear light (..., 3); what the screen cannot show is cut off."""
    inside = np.clip(light, 0, 1)
    level = np.where(inside <= 0.0031308, inside * 12.92, 1.055 * inside ** (1 / 2.4) - 0.055)
    return np.asarray(np.rint(level * 255), np.uint8)


def to_lab(light: Linear) -> Linear:
    """CIELAB (L*, a*, b*), white D65, of linear light (..., 3) [CIE 15:2004]."""
    share = light @ TO_XYZ.T / TO_XYZ.sum(axis=1)
    edge = 6 / 29
    bent = np.where(share > edge**3, np.cbrt(share), share / (3 * edge**2) + 4 / 29)
    x, y, z = np.moveaxis(bent, -1, 0)
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=-1)
