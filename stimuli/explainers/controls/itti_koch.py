"""Bottom-up saliency after Itti, Koch and Niebur (1998): what stands out from its surround.

Three features (intensity, two colour opponencies, four orientations) are compared between a fine and a coarse
level of a Gaussian pyramid (centre and surround); maps with one outstanding place are promoted over maps with
many alike; the features are summed. Our choices: oriented energy by steerable second derivatives of a
Gaussian instead of Gabor filters, and centre levels 1-3 with surrounds 2 and 3 levels coarser, for pictures
of 100 to 500 pixels.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import scipy
from numpy.typing import NDArray

Plane = NDArray[np.float32]

_CENTRES = (1, 2, 3)
_SURROUNDS = (2, 3)
_TURNS = ((1.0, 0.0), (0.5**0.5, 0.5**0.5), (0.0, 1.0), (-(0.5**0.5), 0.5**0.5))
_KERNEL = np.array([1, 4, 6, 4, 1], np.float32) / 16


def bottom_up_map(picture: NDArray[np.floating]) -> Plane:
    """Saliency of a picture, float (H, W, 3) in 0-1, as float32 (H, W) in 0-1; all zero if nothing stands
    out.
    """
    picture = np.asarray(picture, np.float32)
    intensity, red_green, blue_yellow = _channels(picture)
    levels = _pyramid(intensity)
    shape = levels[_CENTRES[0]].shape
    conspicuous = [
        _promote(_contrast(levels, shape)),
        _promote(_contrast(_pyramid(red_green), shape) + _contrast(_pyramid(blue_yellow), shape)),
        _promote(_sum(_promote(_contrast(turned, shape)) for turned in _orientations(levels))),
    ]
    fine = _resize(_smooth(_sum(conspicuous)), picture.shape[:2])
    low, high = float(fine.min()), float(fine.max())
    return np.zeros_like(fine) if high - low < 1e-6 else (fine - low) / np.float32(high - low)


def _channels(picture: Plane) -> tuple[Plane, Plane, Plane]:
    """Intensity, red-green and blue-yellow; hues count only at places bright enough to see them."""
    intensity = picture.mean(axis=2)
    lit = intensity > 0.1 * max(float(intensity.max()), 1e-6)
    hues = np.where(lit[..., None], picture / np.maximum(intensity, 1e-6)[..., None], 0)
    r, g, b = np.moveaxis(hues, 2, 0)
    red, green, blue = (np.maximum(v, 0) for v in (r - (g + b) / 2, g - (r + b) / 2, b - (r + g) / 2))
    yellow = np.maximum((r + g) / 2 - np.abs(r - g) / 2 - b, 0)
    return intensity, red - green, blue - yellow


def _pyramid(plane: Plane) -> list[Plane]:
    levels = [plane]
    for _ in range(max(_CENTRES) + max(_SURROUNDS)):
        # Resized and not decimated: every second pixel would shift each level against the one before.
        levels.append(_resize(_smooth(levels[-1]), tuple((side + 1) // 2 for side in levels[-1].shape)))
    return levels


def _smooth(plane: Plane) -> Plane:
    rows = scipy.ndimage.correlate1d(plane, _KERNEL, axis=0, mode="nearest")
    smooth: Plane = scipy.ndimage.correlate1d(rows, _KERNEL, axis=1, mode="nearest")
    return smooth


def _orientations(levels: list[Plane]) -> list[list[Plane]]:
    """Per angle a pyramid of the magnitude of the second derivative across it."""
    derivatives = [
        [
            scipy.ndimage.gaussian_filter(level, 1.0, order=order, mode="nearest", truncate=3.0)
            for level in levels
        ]
        for order in ((0, 2), (1, 1), (2, 0))
    ]
    return [
        [
            np.abs(cos * cos * xx - 2 * cos * sin * xy + sin * sin * yy)
            for xx, xy, yy in zip(*derivatives, strict=True)
        ]
        for cos, sin in _TURNS
    ]


def _contrast(levels: list[Plane], shape: tuple[int, ...]) -> Plane:
    """Sum of the promoted centre-surround differences, on a grid of `shape`."""
    return _sum(
        _resize(
            _promote(np.abs(levels[centre] - _resize(levels[centre + step], levels[centre].shape))), shape
        )
        for centre in _CENTRES
        for step in _SURROUNDS
    )


def _promote(plane: Plane) -> Plane:
    """The normalisation N(.): scale to 0-1, then weigh by (1 - mean of the other local maxima) squared."""
    low, high = float(plane.min()), float(plane.max())
    if high - low < 1e-6:
        return np.zeros_like(plane)
    scaled = (plane - low) / np.float32(high - low)
    size = max(3, min(plane.shape) // 8)
    peaks = scaled[
        (scipy.ndimage.maximum_filter(scaled, size=size, mode="nearest") == scaled) & (scaled > 0.05)
    ]
    others = (peaks.sum() - 1.0) / (peaks.size - 1) if peaks.size > 1 else 0.0
    return scaled * np.float32((1.0 - others) ** 2)


def _resize(plane: Plane, shape: tuple[int, ...]) -> Plane:
    """Bilinear, with half-pixel centres."""
    rows, columns = (_weights(new, old) for new, old in zip(shape, plane.shape, strict=True))
    resized: Plane = np.asarray(rows @ plane @ columns.T, np.float32)
    return resized


def _weights(new: int, old: int) -> Plane:
    at = np.clip((np.arange(new) + 0.5) * old / new - 0.5, 0, old - 1)
    weights: Plane = np.maximum(1 - np.abs(at[:, None] - np.arange(old)[None]), 0).astype(np.float32)
    return weights


def _sum(planes: Iterable[Plane]) -> Plane:
    return np.asarray(sum(planes), np.float32)
