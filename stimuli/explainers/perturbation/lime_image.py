"""LIME for pictures: a linear model of the network's score with hidden segments."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from stimuli.errors import NotApplicable
from stimuli.explainers.base import AnyImage, OfOutput
from stimuli.explainers.maps import says_nothing
from stimuli.explainers.perturbation.segments import Segmentation, segment_means, segment_picture
from stimuli.explainers.perturbation.surrogate import Floats, cosine_kernel, fit_share, ridge
from stimuli.planner.asks import Scores, Steps
from stimuli.planner.values import Subject
from stimuli.planner.variants import Cells, Fill
from stimuli.predictors.interface import ImagePredictor
from stimuli.registry import LATER, parameters
from stimuli.types import PixelAttribution

MIDDLE = 0.49
"""The level of segments that are not shown, on PASTA's scale of 0 to 1."""
COMPARED = 5
"""How many top segments `stability` compares if all are shown."""


@parameters
class LimeImage(OfOutput, AnyImage):
    """Every pixel has the weight of its segment in a linear model of the score. Signed.

    `samples` copies keep each segment with probability 1/2 (the first keeps all) and hide the rest by `fill`:
    black, or each segment's mean colour. The model is a ridge regression with penalty `alpha`, near copies
    weigh more: sqrt(exp(-(d / kernel_width)^2)), d the cosine distance to the whole picture. `output` is the
    explained number. `segmentation` is described in `segments.segmented`; `segments` is the number asked of
    "slic-1" and "grid-1". With `shown` above 0 only that many segments of the largest magnitude are kept, the
    rest is 0. With `levels` "three" a map is what the study PASTA drew, without a sign: .98 on shown segments
    that speak for the target, 0 on those against it, .49 elsewhere. If all copies have the same score except
    for rounding (a millionth of it), all weights are 0.

    Checks: `segments` found; `fit`, the share of the scores' variance that the linear model explains; with
    `stability` above 0, `stability`: that many further models from other copies, and the mean share of the
    `shown` (or 5) top segments on which two models agree, 0-1. Equal copies run once. [Ribeiro, Singh and
    Guestrin 2016]

    NotApplicable if the picture is one single segment.
    """

    version: ClassVar[int] = 2
    samples: Annotated[int, Field(ge=10, le=5000)] = 100
    segmentation: Segmentation = "quickshift-1"
    segments: Annotated[int, Field(ge=2, le=1000)] = 50
    fill: Literal["black", "mean"] = "black"
    kernel_width: Annotated[float, Field(ge=0.01, le=100.0)] = 0.25
    alpha: Annotated[float, Field(ge=0.0, le=1000.0)] = 1.0
    output: Literal["probability", "logit"] = "probability"
    shown: Annotated[int, Field(ge=0, le=1000)] = 0
    stability: Annotated[int, Field(ge=0, le=20)] = 0
    levels: Annotated[Literal["weights", "three"], LATER] = "weights"

    def has_sign(self) -> bool:
        return self.levels == "weights"

    def explain(self, predictor: ImagePredictor, subject: Subject) -> Steps:
        picture = subject.pixels.detach().cpu().numpy().transpose(1, 2, 0)
        cells = segment_picture(picture, self.segmentation, self.segments)
        if not cells.any():
            raise NotApplicable(
                f"LimeImage: {self.segmentation!r} finds a single segment in this picture, so nothing can be "
                "hidden: set segmentation = 'grid-1'"
            )
        fill: Fill = 0.0 if self.fill == "black" else segment_means(picture, cells)
        kept = [
            self._draw_samples(subject, number, int(cells.max()) + 1) for number in range(1 + self.stability)
        ]
        scores = yield Scores(Cells(cells, np.concatenate(kept), fill), self.output)
        if says_nothing(scores, self.output):
            scores = np.zeros_like(scores)
        models = [
            self._weights(some, said) for some, said in zip(kept, np.split(scores, len(kept)), strict=True)
        ]
        weights = models[0]
        checks = {
            "segments": float(len(weights)),
            "fit": fit_share(
                kept[0], scores[: self.samples], cosine_kernel(kept[0], self.kernel_width), weights
            ),
        }
        if self.stability:
            checks["stability"] = agreement(models, min(self.shown or COMPARED, len(weights)))
        if self.shown:
            weights = np.where(np.isin(np.arange(len(weights)), _top(weights, self.shown)), weights, 0.0)
        if self.levels == "three":
            weights = MIDDLE * (1 + np.sign(weights))
        values = weights[cells].astype(np.float32)
        return PixelAttribution(values, signed=self.has_sign(), checks=checks)

    def _draw_samples(self, subject: Subject, number: int, count: int) -> NDArray[np.bool_]:
        kept = subject.draws("lime", number).integers(0, 2, (self.samples, count)).astype(bool)
        kept[0] = True
        return kept

    def _weights(self, kept: NDArray[np.bool_], scores: Floats) -> Floats:
        return ridge(kept, scores, cosine_kernel(kept, self.kernel_width), self.alpha)


def agreement(models: list[Floats], count: int) -> float:
    """Mean over all pairs of models of the share of their `count` largest magnitudes that both have, 0-1."""
    tops = [set(_top(weights, count).tolist()) for weights in models]
    pairs = [(first, second) for at, first in enumerate(tops) for second in tops[at + 1 :]]
    return float(np.mean([len(first & second) / count for first, second in pairs]))


def _top(weights: Floats, count: int) -> NDArray[np.int64]:
    """The places of the largest magnitudes; of equal ones the first."""
    return np.argsort(-np.abs(weights), kind="stable")[:count]
