"""How fast the score falls when the most important pixels go, or rises when they come."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from stimuli.metrics.base import Better, MetricValue, PictureMetric, Scored
from stimuli.metrics.fidelity.importance_and_fill import baseline_fill, importance, tied_share
from stimuli.planner.asks import Scores, Steps
from stimuli.planner.ranking import most_important_first
from stimuli.planner.values import Floats, Subject
from stimuli.planner.variants import PixelReplacements
from stimuli.predictors.interface import ImagePredictor
from stimuli.registry import parameters
from stimuli.types import Attribution


@parameters
class Deletion(PictureMetric):
    """Area under the deletion curve; lower is more faithful. 1 - Deletion is what [Colin et al. 2022] call
    faithfulness. [Petsiuk et al. 2018]

    Pixels are ranked by descending value (by magnitude with `absolute`), equal ones in one drawn order that
    all methods share, and replaced in `steps` equal shares by the `baseline`, all colours of a pixel
    together: "black" (0), the picture's "mean" colour, "grey" (0.5) or its "blur" (11 taps, standard
    deviation 5 pixels). `pixels_per_step` sets the share in pixels instead (0 = off); 224 is RISE's variant.
    `score` is what is watched: the target's softmax "probability", or its "logit".

    `value` is the trapezoid over the curve, divided by its width: the mean score, 0-1 for probabilities.
    `details`: `curve`, the scores, and `shares`, the shares of pixels changed, both from 0 to all; `tied`,
    the share of pixels whose place in the ranking was drawn. The first and last state are the same for all
    methods, and run once.
    """

    version: ClassVar[int] = 2
    unit: ClassVar[str] = "mean score"
    better: ClassVar[Better] = "lower"
    inserts: ClassVar[bool] = False
    steps: Annotated[int, Field(ge=1, le=5000)] = 10
    pixels_per_step: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    baseline: Literal["black", "mean", "grey", "blur"] = "black"
    score: Literal["probability", "logit"] = "probability"
    absolute: bool = False

    def measure(self, predictor: ImagePredictor, subject: Subject, attribution: Attribution) -> Steps:
        """Ask for the states of the curve; return the area as a Measured."""
        values = importance(attribution, subject, absolute=self.absolute)
        counts = state_counts(values.size, self.steps, self.pixels_per_step)
        ranked = PixelReplacements(
            most_important_first(values), counts, baseline_fill(subject, self.baseline), self.inserts
        )
        scores = yield Scores(ranked, self.score)
        shares = np.asarray(counts) / values.size
        details = {"curve": scores.tolist(), "shares": shares.tolist(), "tied": tied_share(values)}
        return MetricValue(trapezoid(scores, shares), details)


@parameters
class Insertion(Deletion):
    """Area under the insertion curve; higher is more faithful. [Petsiuk et al. 2018]

    As `Deletion`, but the most important pixels of the picture come first into the `baseline`, which is the
    blurred picture unless told.
    """

    better: ClassVar[Better] = "higher"
    inserts: ClassVar[bool] = True
    baseline: Literal["blur", "black", "mean", "grey"] = "blur"


@parameters
class DeletionDrawn(Deletion):
    """`Deletion` by the drawn field: how fast the score falls when what people see brightest goes."""

    scores: ClassVar[Scored] = "drawn"


@parameters
class InsertionDrawn(Insertion):
    """`Insertion` by the drawn field: how fast the score rises when what people see brightest comes."""

    scores: ClassVar[Scored] = "drawn"


def state_counts(pixels: int, steps: int, pixels_per_step: int = 0) -> list[int]:
    """How many pixels have changed in each state: from 0 to all, in `steps` equal shares (rounded), or by
    `pixels_per_step` with a smaller last step if they do not divide.
    """
    if pixels_per_step:
        return [*range(0, pixels, pixels_per_step), pixels]
    return [round(state * pixels / steps) for state in range(steps + 1)]


def trapezoid(scores: Floats, shares: Floats) -> float:
    """The area under `scores` over `shares`, which run from 0 to 1."""
    return float(((scores[1:] + scores[:-1]) / 2 * np.diff(shares)).sum())
