"""Perturbations that change the values of pixels and move none. Strengths in 0-1; 0 changes nothing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stimuli.types import Pixels

Floats = NDArray[np.float64]
LUMA = np.array([0.299, 0.587, 0.114])
"""How bright red, green and blue are [ITU-R BT.601]."""
FURTHEST = 0.9
"""How far the factors of brightness and contrast may lie from 1."""


def brightness(picture: Pixels, strength: float, draws: np.random.Generator) -> Pixels:
    """Brighter: every value times 1 + 0.9 strength."""
    return _mix_pictures(np.zeros(1), picture, 1 + FURTHEST * strength)


def contrast(picture: Pixels, strength: float, draws: np.random.Generator) -> Pixels:
    """Flatter: 1 - 0.9 strength of the distance to the mean grey is kept."""
    return _mix_pictures(_mean_grey(picture), picture, 1 - FURTHEST * strength)


def saturation(picture: Pixels, strength: float, draws: np.random.Generator) -> Pixels:
    """Paler: 1 - strength of the distance to the pixel's own grey is kept; 1 leaves greys only."""
    return _mix_pictures(_greys(picture)[..., None], picture, 1 - strength)


def brightness_jitter(picture: Pixels, strength: float, draws: np.random.Generator) -> Pixels:
    """Brighter or darker: every value times 1 ± 0.9 strength times a draw in 0.5-1."""
    return _mix_pictures(np.zeros(1), picture, _factor(strength, draws))


def contrast_jitter(picture: Pixels, strength: float, draws: np.random.Generator) -> Pixels:
    """Sharper or flatter: the distance to the mean grey times 1 ± 0.9 strength times a draw in 0.5-1."""
    return _mix_pictures(_mean_grey(picture), picture, _factor(strength, draws))


def posterise(picture: Pixels, strength: float, draws: np.random.Generator) -> Pixels:
    """Fewer shades: the lowest 7 strength bits of every value (rounded half up) become 0."""
    dropped = int(7 * strength + 0.5)
    return np.asarray(picture & np.uint8(0xFF << dropped & 0xFF), np.uint8)


def solarise(picture: Pixels, strength: float, draws: np.random.Generator) -> Pixels:
    """Light turned over: values from 256 (1 - strength²) on, rounded up, become 255 minus themselves.

    Squared, because light values are many and light magnitudes should be so too.
    """
    threshold = int(np.ceil(256 * (1 - strength**2)))
    return np.where(picture >= threshold, 255 - picture, picture)


def _factor(strength: float, draws: np.random.Generator) -> float:
    way = 1.0 if draws.random() < 0.5 else -1.0
    return 1 + way * FURTHEST * strength * float(draws.uniform(0.5, 1))


def _mix_pictures(base: Floats, picture: Pixels, factor: float) -> Pixels:
    """`factor` of the way from the base to the picture, past it for more than 1; cut to 0-255."""
    return np.clip(np.rint(base + factor * (picture - base)), 0, 255).astype(np.uint8)


def _greys(picture: Pixels) -> Floats:
    return np.asarray(np.rint(picture @ LUMA), np.float64)


def _mean_grey(picture: Pixels) -> Floats:
    return np.asarray([np.rint(_greys(picture).mean())], np.float64)
