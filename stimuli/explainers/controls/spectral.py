"""Spectral residual: what a picture's spectrum has beyond the smooth fall that all spectra share."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import numpy as np
import scipy
from numpy.typing import NDArray
from pydantic import Field

from stimuli.explainers.base import AnyImage
from stimuli.planner.asks import Steps
from stimuli.planner.values import Subject
from stimuli.registry import parameters
from stimuli.types import PixelAttribution, Plane


@parameters
class SpectralResidual(AnyImage):
    """What stands out in the picture itself, by `spectral_residual_map`; never asks the network. Unsigned.
    [Hou and Zhang 2007]
    """

    version: ClassVar[int] = 1
    side: Annotated[int, Field(ge=8, le=512)] = 64
    sigma: Annotated[float, Field(ge=0.0, le=50.0)] = 2.5

    def has_sign(self) -> bool:
        return False

    def explain(self, predictor: Any, subject: Subject) -> Steps:
        picture = subject.pixels.detach().cpu().numpy().transpose(1, 2, 0)
        return PixelAttribution(spectral_residual_map(picture, self.side, self.sigma), signed=self.has_sign())
        yield


def spectral_residual_map(picture: NDArray[np.floating], side: int = 64, sigma: float = 2.5) -> Plane:
    """Saliency of a picture, float (H, W, 3) in 0-1, as float32 (H, W) in 0-1; all zero if nothing stands
    out.

    The grey picture (mean of the channels) is brought to `side` pixels along its longer side. The logarithm
    of its amplitude spectrum, less the mean over 3 x 3 frequencies around each, goes back with the phase; the
    squared magnitude, smoothed by a Gaussian of `sigma` pixels of the small picture, is brought to full size
    and scaled to 0-1.
    """
    grey = np.asarray(picture, np.float64).mean(axis=2)
    if np.ptp(grey) < 1e-6:
        return np.zeros(grey.shape, np.float32)
    small = _resize_plane(grey, side / max(grey.shape))
    spectrum = scipy.fft.fft2(small)
    # The spectrum goes round: its last frequency is a neighbour of the first. A zero has no logarithm.
    amplitude = np.log(np.maximum(np.abs(spectrum), 1e-9 * np.abs(spectrum).max()))
    residual = amplitude - scipy.ndimage.uniform_filter(amplitude, 3, mode="wrap")
    strength = np.abs(scipy.fft.ifft2(np.exp(residual + 1j * np.angle(spectrum)))) ** 2
    smooth = scipy.ndimage.gaussian_filter(strength, sigma, mode="nearest") if sigma else strength
    fine = _enlarge_plane(smooth, grey.shape)
    low, high = float(fine.min()), float(fine.max())
    if high - low < 1e-12:
        return np.zeros(grey.shape, np.float32)
    return np.asarray((fine - low) / (high - low), np.float32)


def _resize_plane(plane: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    """Smaller by the mean over areas, so that fine texture does not fold into coarse; larger bilinearly."""
    shape = tuple(max(2, round(length * scale)) for length in plane.shape)
    if scale >= 1:
        return _enlarge_plane(plane, shape)
    rows, columns = (_areas(new, old) for new, old in zip(shape, plane.shape, strict=True))
    return np.asarray(rows @ plane @ columns.T, np.float64)


def _areas(new: int, old: int) -> NDArray[np.float64]:
    """The matrix (new, old) of the share of each old pixel in each new one."""
    edges = np.arange(new + 1) * old / new
    pixels = np.arange(old)
    overlap = np.minimum(edges[1:, None], pixels + 1) - np.maximum(edges[:-1, None], pixels)
    return np.asarray(np.clip(overlap, 0, None) * new / old, np.float64)


def _enlarge_plane(plane: NDArray[np.float64], shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Bilinear, with half-pixel centres."""
    rows, columns = (_weights(new, old) for new, old in zip(shape, plane.shape, strict=True))
    return np.asarray(rows @ plane @ columns.T, np.float64)


def _weights(new: int, old: int) -> NDArray[np.float64]:
    at = np.clip((np.arange(new) + 0.5) * old / new - 0.5, 0, old - 1)
    return np.asarray(np.maximum(1 - np.abs(at[:, None] - np.arange(old)), 0), np.float64)
