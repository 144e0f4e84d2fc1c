"""Methods that read the gradient of the explained number with respect to the pixels."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from stimuli.explainers.base import ByGradient
from stimuli.explainers.maps import pixel_map
from stimuli.planner.asks import Scores, Steps, SummedGradient
from stimuli.planner.values import Subject, Trace
from stimuli.planner.variants import Noisy, OnPath
from stimuli.predictors.interface import ImagePredictor
from stimuli.registry import parameters


@parameters
class Saliency(ByGradient):
    """Magnitude of the gradient, largest over the colour channels. Unsigned. [Simonyan, Vedaldi and Zisserman
    2014]
    """

    version: ClassVar[int] = 2

    def has_sign(self) -> bool:
        return False

    def explain(self, predictor: ImagePredictor, subject: Subject) -> Steps:
        traced = yield Trace(input_gradient=True)
        return pixel_map(traced.input_gradient.abs().amax(0), signed=self.has_sign())


@parameters
class GradientXInput(ByGradient):
    """Gradient times pixel value, mean over the colour channels. Signed. [Shrikumar et al. 2016]"""

    version: ClassVar[int] = 2

    def has_sign(self) -> bool:
        return True

    def explain(self, predictor: ImagePredictor, subject: Subject) -> Steps:
        traced = yield Trace(input_gradient=True)
        return pixel_map((traced.input_gradient * subject.pixels).mean(0), signed=self.has_sign())


@parameters
class IntegratedGradients(ByGradient):
    """Mean gradient on the straight path from a flat picture of value `baseline`, times the difference to it.

    `steps` points by the trapezoid rule, both ends included; mean over the colour channels, so that three
    times the sum of a map is the number's difference from the baseline's (completeness; the check
    `completeness_gap` is the deviation from this, as a share of that difference). Signed. [Sundararajan et
    al. 2017]
    """

    version: ClassVar[int] = 2
    steps: Annotated[int, Field(ge=2, le=1000)] = 50
    baseline: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0

    def has_sign(self) -> bool:
        return True

    def explain(self, predictor: ImagePredictor, subject: Subject) -> Steps:
        last = self.steps - 1
        shares = [place / last for place in range(last)]
        weights = [0.5 / last if share == 0 else 1 / last for share in shares]
        # The end of the path is the picture itself, whose gradient is in the shared trace.
        traced, total, start = yield (
            Trace(input_gradient=True),
            SummedGradient(OnPath(shares, self.baseline), weights),
            Scores(OnPath((0.0,), self.baseline)),
        )
        total = total + 0.5 / last * traced.input_gradient.double()
        change = float(subject.explained(traced.logits)) - float(start[0])
        values = total * (subject.pixels - self.baseline).double()
        gap = abs(float(values.sum()) - change) / max(abs(change), 1e-12)
        return pixel_map(values.mean(0), signed=self.has_sign(), checks={"completeness_gap": gap})


@parameters
class SmoothGrad(ByGradient):
    """Mean signed gradient over `draws` noisy copies, mean over the colour channels. Signed. [Smilkov et al.
    2017]

    The noise is normal with standard deviation `sigma` in 0-1 pixels, without clipping. Each draw has a
    generator of its own, counted from the image's key and the seed: neither batch nor order nor retry can
    change a map.
    """

    version: ClassVar[int] = 2
    draws: Annotated[int, Field(ge=1, le=1000)] = 50
    sigma: Annotated[float, Field(ge=0.0, le=2.0)] = 0.2

    def has_sign(self) -> bool:
        return True

    def explain(self, predictor: ImagePredictor, subject: Subject) -> Steps:
        noisy = Noisy(subject, self.draws, self.sigma)
        total = yield SummedGradient(noisy, [1 / self.draws] * self.draws)
        return pixel_map(total.mean(0), signed=self.has_sign())
