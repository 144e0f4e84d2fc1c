"""Colour profiles, written byte by byte, and what they mean by closed form (ICC.1:2010, IEC 61966-2-1)."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Floats = NDArray[np.float64]
Colours = Sequence[Sequence[float]]
P3 = ((0.51512, 0.2412, -0.00105), (0.29198, 0.69225, 0.04189), (0.1571, 0.06657, 0.78407))
"""Red, green and blue of Display P3 in XYZ of D50, as its profile has them."""
ADOBE = ((0.60974, 0.31111, 0.01947), (0.20528, 0.62567, 0.06087), (0.14919, 0.06322, 0.74457))
SRGB = ((0.43607, 0.22249, 0.01392), (0.38515, 0.71687, 0.09708), (0.14307, 0.06061, 0.7141))
WHITE = (0.9642, 1.0, 0.8249)


def linear(shares: Floats) -> Floats:
    """The light of sRGB values, both 0-1."""
    return np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)


def between(levels: NDArray[Any], here: Colours, there: Colours, gamma: float | None = None) -> Floats:
    """Levels (0-255, not clipped) of colours `here` as those `there`; `gamma` is that of the first (None:
    sRGB's, which the second has)."""
    shares = levels / 255
    light = linear(shares) if gamma is None else shares**gamma
    light = light @ np.array(here) @ np.linalg.inv(np.array(there))
    up = np.where(light <= 0.0031308, 12.92 * light, 1.055 * np.abs(light) ** (1 / 2.4) - 0.055)
    return np.asarray(255 * up)


def matrix_profile(colours: Colours, gamma: float | None) -> bytes:
    """An RGB display profile of primaries and a gamma; None is sRGB's curve, as a table."""
    if gamma is None:
        table = np.rint(65535 * linear(np.linspace(0, 1, 1024))).astype(">u2")
        curve = b"curv" + struct.pack(">II", 0, 1024) + table.tobytes()
    else:
        curve = b"curv" + struct.pack(">IIH", 0, 1, round(gamma * 256))
    tags = {name: _xyz(colour) for name, colour in zip((b"rXYZ", b"gXYZ", b"bXYZ"), colours, strict=True)}
    tags |= {b"wtpt": _xyz(WHITE), b"rTRC": curve, b"gTRC": curve, b"bTRC": curve}
    return _profile(b"mntr", b"RGB ", b"XYZ ", tags)


def grey_profile(gamma: float) -> bytes:
    curve = b"curv" + struct.pack(">IIH", 0, 1, round(gamma * 256))
    return _profile(b"mntr", b"GRAY", b"XYZ ", {b"wtpt": _xyz(WHITE), b"kTRC": curve})


def table_profile(space: bytes, middle: float, perceptual: float = 50.0, black: float = 0.0) -> bytes:
    """A profile of tables without colours: the light of no channel is `black`, of half of each `middle` and
    of all 100, in L* (0-100); inks the other way round. By the perceptual intent half is `perceptual`."""
    channels = 4 if space == b"CMYK" else 3

    def table(half: float, least: float) -> bytes:
        corners = product((0.0, 0.5, 1.0), repeat=channels)
        shares = [1 - max(c) if channels == 4 else sum(c) / 3 for c in corners]
        levels = np.rint(np.interp(shares, (0, 0.5, 1), (least, half, 100)) * 2.55).astype(int)
        unit = struct.pack(">9i", *(65536 * (at % 4 == 0) for at in range(9)))
        head = b"mft1" + struct.pack(">IBBBB", 0, channels, 3, 3, 0) + unit
        ramp = bytes(range(256))
        return head + ramp * channels + b"".join(bytes((level, 128, 128)) for level in levels) + ramp * 3

    tags = {b"A2B0": table(perceptual, 0), b"A2B1": table(middle, black), b"wtpt": _xyz(WHITE)}
    return _profile(b"prtr" if channels == 4 else b"scnr", space, b"Lab ", tags)


def grey_of(lightness: float) -> float:
    """The level of sRGB (0-255) of an L* above 8."""
    light = ((lightness + 16) / 116) ** 3
    return float(255 * (1.055 * light ** (1 / 2.4) - 0.055))


def paint(path: Path, pixels: NDArray[np.generic], profile: bytes = b"") -> Path:
    """A PNG of the pixels, with a profile if one is given."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, icc_profile=profile)
    return path


def _xyz(colour: Sequence[float]) -> bytes:
    return b"XYZ " + struct.pack(">4i", 0, *(round(65536 * value) for value in colour))


def _profile(kind: bytes, space: bytes, between: bytes, tags: dict[bytes, bytes]) -> bytes:
    tags = {b"desc": b"desc" + struct.pack(">II", 0, 5) + b"test\0" + bytes(78), **tags}
    tags[b"cprt"] = b"text" + struct.pack(">I", 0) + b"none\0"
    at, index, body = 128 + 4 + 12 * len(tags), b"", b""
    for name, content in tags.items():
        content += bytes(-len(content) % 4)
        index += name + struct.pack(">II", at + len(body), len(content))
        body += content
    head = struct.pack(">I4sI4s4s4s", 0, bytes(4), 0x02400000, kind, space, between)
    head += struct.pack(">6H", 2026, 1, 1, 0, 0, 0) + b"acsp" + bytes(28)
    head += struct.pack(">3i", *(round(65536 * value) for value in WHITE))
    head = head.ljust(128, b"\0")
    whole = head + struct.pack(">I", len(tags)) + index + body
    return struct.pack(">I", len(whole)) + whole[4:]
