"""Methods that read the gradient of the explained logit with respect to the pixels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from stimuli.explainers.base import AnyPredictor, Batch, Differentiable, number
from stimuli.types import PixelAttribution

# `passes` imports torch and captum; it is imported when a map is computed, so that names and parameters can
# be checked in a process that must stay light.


@dataclass(frozen=True, slots=True)
class Saliency(AnyPredictor):
    """Magnitude of the gradient, largest over the colour channels. Unsigned. [Simonyan, Vedaldi and Zisserman
    2014]
    """

    version: ClassVar[int] = 1

    def attribute(self, predictor: Differentiable, batch: Batch) -> PixelAttribution:
        from stimuli.explainers import passes

        return passes.each(predictor, batch, passes.saliency, signed=False)


@dataclass(frozen=True, slots=True)
class GradientXInput(AnyPredictor):
    """Gradient times pixel value, mean over the colour channels. Signed. [Shrikumar et al. 2016]"""

    version: ClassVar[int] = 1

    def attribute(self, predictor: Differentiable, batch: Batch) -> PixelAttribution:
        from stimuli.explainers import passes

        return passes.each(predictor, batch, passes.gradient_x_input, signed=True)


@dataclass(frozen=True, slots=True)
class IntegratedGradients(AnyPredictor):
    """Mean gradient on the straight way from a flat picture of value `baseline`, times the difference to it.

    `steps` points by the trapezoid rule, both ends included; mean over the colour channels, so that three
    times the sum of a map is the logit's difference from the baseline's (completeness). Signed. [Sundararajan
    et al. 2017]
    """

    version: ClassVar[int] = 1
    steps: int = number(50, 2, 1000)
    baseline: float = number(0.0, 0.0, 1.0)

    def attribute(self, predictor: Differentiable, batch: Batch) -> PixelAttribution:
        from stimuli.explainers import passes

        return passes.each(
            predictor,
            batch,
            passes.integrated_gradients,
            signed=True,
            steps=self.steps,
            baseline=self.baseline,
        )


@dataclass(frozen=True, slots=True)
class SmoothGrad(AnyPredictor):
    """Mean signed gradient over `draws` noisy copies, mean over the colour channels. Signed. [Smilkov et al.
    2017]

    The noise is normal with standard deviation `sigma` in 0-1 pixels, without clipping. Each draw has a
    generator of its own, counted from the image's key and the seed: neither batch nor order nor retry can
    change a map.
    """

    version: ClassVar[int] = 1
    draws: int = number(50, 1, 1000)
    sigma: float = number(0.2, 0.0, 2.0)

    def attribute(self, predictor: Differentiable, batch: Batch) -> PixelAttribution:
        from stimuli.explainers import passes

        return passes.each(
            predictor, batch, passes.smooth_grad, signed=True, draws=self.draws, sigma=self.sigma
        )
