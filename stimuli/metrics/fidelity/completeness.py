"""Whether the values of a map add up to what the picture adds to the score."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Literal

from stimuli.errors import NotApplicable
from stimuli.explainers import is_colour_mean, is_recorded
from stimuli.metrics.base import Better, MetricValue, PictureMetric
from stimuli.metrics.fidelity.faithfulness import CHANNELS
from stimuli.metrics.fidelity.importance_and_fill import baseline_fill, importance
from stimuli.planner.asks import Scores, Steps
from stimuli.planner.ranking import most_important_first
from stimuli.planner.values import Subject
from stimuli.planner.variants import PixelReplacements
from stimuli.predictors.interface import ImagePredictor
from stimuli.registry import parameters
from stimuli.spec import Component
from stimuli.types import Attribution, PixelAttribution

ROUNDING = 1e-6
"""A change of the score by no more than this share of it (of 1, if that is larger) is rounding."""


@parameters
class Completeness(PictureMetric):
    """How far the sum of the map is from the score of the picture less that of its `baseline`, as a share of
    that difference; 0 is complete, lower is better. [Sundararajan et al. 2017; Bach et al. 2015]

    The `baseline` is that of the method: "black" (0), the picture's "mean" colour, "grey" (0.5) or its
    "blur". `score` is the target's "logit", or its softmax "probability". `colours` says what a value of the
    map is: the "sum" over the colours, or their "mean", which then counts three times; "method" knows it by
    the method's name. A signed map that promises no sum, such as SmoothGrad's, has a gap all the same.

    `details`: `sum` of the map and `change` of the score. NotApplicable for a map without a sign, or if the
    score does not change.
    """

    version: ClassVar[int] = 1
    unit: ClassVar[str] = "share of the change"
    better: ClassVar[Better] = "lower"
    baseline: Literal["black", "mean", "grey", "blur"] = "black"
    score: Literal["logit", "probability"] = "logit"
    colours: Literal["method", "mean", "sum"] = "method"

    def adapted(self, explainer: Component | None) -> Completeness:
        """The metric, told what the values of that method are."""
        if self.colours != "method" or explainer is None or is_recorded(explainer):
            return self
        return replace(self, colours="mean" if is_colour_mean(explainer) else "sum")

    def measure(self, predictor: ImagePredictor, subject: Subject, attribution: Attribution) -> Steps:
        """Ask for the score of the picture and of its baseline; return the gap as a Measured."""
        values = importance(attribution, subject, absolute=False)
        assert isinstance(attribution, PixelAttribution)
        if not attribution.signed:
            raise NotApplicable(
                "completeness adds up evidence for and against the answer, and this method's map has no sign"
            )
        if self.colours == "method":
            raise NotApplicable(
                "completeness does not know this method: set colours to what its values are, 'sum' or 'mean'"
            )
        fill = baseline_fill(subject, self.baseline)
        ends = PixelReplacements(most_important_first(values), (0, values.size), fill)
        whole, hidden = yield Scores(ends, self.score)
        change = float(whole - hidden)
        least = 1.0 if self.score == "logit" and subject.operator != "probability" else 0.0
        if abs(change) <= ROUNDING * max(abs(float(whole)), least):
            raise NotApplicable(
                "completeness is a share of the change of the score, and the picture and its "
                f"{self.baseline} baseline have the same: choose another baseline"
            )
        total = float(values.sum()) * (CHANNELS if self.colours == "mean" else 1)
        return MetricValue(abs(total - change) / abs(change), {"sum": total, "change": change})
