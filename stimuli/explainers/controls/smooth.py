"""A random field that is as smooth as a method's map and has its values: no seam, no salt, no information."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from stimuli.explainers.controls.inner_method import OfMethod
from stimuli.planner.asks import Steps
from stimuli.planner.values import Subject
from stimuli.registry import parameters
from stimuli.types import PixelAttribution

Floats = NDArray[np.float64]


@parameters
class SmoothRandom(OfMethod):
    """A random field with the spectrum and the values of the map of method `of`.

    The map's mirrored extension keeps the amplitudes of its Fourier transform and gets the phases of white
    noise; one quarter of the result is the field, and gets the values of the map in the order of their size
    (an amplitude adjusted surrogate). It is not iterated: that restores the spectrum no better here, and
    makes another map of a difference by rounding. `parameters` are the method's, as JSON text; those that are
    not named have their defaults. The phases are drawn from the image's key and the seed. [Theiler et al.
    1992]
    """

    version: ClassVar[int] = 2
    control: ClassVar[str] = "smooth_random"
    verb: ClassVar[str] = "imitate"

    def explain(self, predictor: Any, subject: Subject) -> Steps:
        source = yield from self.method.explain(predictor, subject)
        drawn = surrogate(source.values.astype(np.float64), subject.draws("phases"))
        return PixelAttribution(drawn.astype(np.float32), source.signed)


def surrogate(values: Floats, draws: np.random.Generator) -> Floats:
    """A field (H, W) with the same values in other places, and nearly the same spectrum."""
    # The Fourier transform takes a field to go round: without its mirror images, edges would be seams.
    mirrored = np.pad(values, [(0, side) for side in values.shape], mode="symmetric")
    waves = np.fft.rfft2(draws.standard_normal(mirrored.shape))
    smooth = np.fft.irfft2(np.abs(np.fft.rfft2(mirrored)) * waves / np.abs(waves), mirrored.shape)
    height, width = values.shape
    order = np.argsort(smooth[:height, :width], axis=None, kind="stable")
    placed = np.empty(values.size)
    placed[order] = np.sort(values, axis=None)
    return placed.reshape(values.shape)
