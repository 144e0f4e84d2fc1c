"""ROAD: how the score falls as pixels are removed and debiased, so that holes do not give themselves away."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from stimuli.metrics.base import Better, MetricValue, PictureMetric, Scored
from stimuli.metrics.fidelity.deletion import state_counts
from stimuli.metrics.fidelity.importance_and_fill import importance, tied_share
from stimuli.planner.asks import Scores, Steps
from stimuli.planner.imputing import Imputations
from stimuli.planner.ranking import most_important_first
from stimuli.planner.values import Subject
from stimuli.predictors.interface import ImagePredictor
from stimuli.registry import parameters
from stimuli.types import Attribution


@parameters
class Road(PictureMetric):
    """Mean score with the least important pixels removed, less that with the most important ones; higher is
    more faithful. [Rong et al. 2022]

    The picture loses 1, 2, ... `steps` - 1 of `steps` equal shares of its pixels, from either end of their
    ranking by descending value (equal ones in the one drawn order that all methods share). Removed pixels
    are filled in by noisy linear imputation: the weighted mean of the eight neighbours, solved for all at
    once, and noise of standard deviation `noise`. `score` is what is watched: the target's softmax
    "probability", or its "logit".

    `value` lies in -1 to 1 for probabilities; 0 for a ranking that says nothing. `details`: `most_first` and
    `least_first`, the two curves, `shares`, the shares of pixels removed, and `tied`, the share of pixels
    whose place in the ranking was drawn.
    """

    version: ClassVar[int] = 1
    unit: ClassVar[str] = "difference of mean scores"
    better: ClassVar[Better] = "higher"
    steps: Annotated[int, Field(ge=2, le=100)] = 5
    noise: Annotated[float, Field(ge=0, le=1)] = 0.01
    score: Literal["probability", "logit"] = "probability"

    def measure(self, predictor: ImagePredictor, subject: Subject, attribution: Attribution) -> Steps:
        """Ask for the states of both curves; return the mean difference as a Measured."""
        values = importance(attribution, subject, absolute=False)
        counts = state_counts(values.size, self.steps)[1:-1]
        order = most_important_first(values)
        most, least = yield tuple(
            Scores(Imputations(subject, ranking, counts, self.noise), self.score)
            for ranking in (order, np.ascontiguousarray(order[::-1]))
        )
        details = {
            "most_first": most.tolist(),
            "least_first": least.tolist(),
            "shares": [count / values.size for count in counts],
            "tied": tied_share(values),
        }
        return MetricValue(float((least - most).mean()), details)


@parameters
class RoadDrawn(Road):
    """`Road` by the drawn field: how much the places that people see brightest bear on the score."""

    scores: ClassVar[Scored] = "drawn"
