"""Infidelity and sensitivity-n: does the map say what hiding a part does to the score?"""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from stimuli.errors import NotApplicable
from stimuli.metrics.base import Better, MetricValue, PictureMetric
from stimuli.metrics.fidelity.faithfulness import (
    DRAWS_MAX,
    FeatureReplacements,
    Places,
    correlation_of,
    random_subsets,
)
from stimuli.metrics.fidelity.importance_and_fill import baseline_fill, importance
from stimuli.planner.asks import Scores, Steps
from stimuli.planner.values import Subject, counted_generator
from stimuli.planner.variants import OnPath
from stimuli.predictors.interface import ImagePredictor
from stimuli.registry import parameters
from stimuli.types import Attribution


@parameters
class Infidelity(PictureMetric):
    """Mean squared difference between what hiding a square does to the score and the sum of the map over it;
    lower is more faithful. [Yeh et al. 2019]

    `runs` random squares of `side_share` of the picture's side (rounded, at least 1 pixel) become the
    `baseline` ("black" 0, the picture's "mean" colour, "grey" 0.5 or its "blur"). `score` is the target's
    "logit" or its softmax "probability". With `scaled` the sums are multiplied by the one factor that fits
    them best, as that paper does before methods in other units are compared; so the value says nothing about
    the map's sum, which `Completeness` does.

    `details`: `scale`, that factor, and `share`, the value as a share of the mean squared fall: 0 if the map
    says all, 1 if it says nothing (NaN if nothing falls). The squares are drawn from the study's seed alone,
    the same for all items and methods.
    """

    version: ClassVar[int] = 1
    unit: ClassVar[str] = "squared score"
    better: ClassVar[Better] = "lower"
    runs: Annotated[int, Field(ge=3, le=10_000)] = 100
    side_share: Annotated[float, Field(ge=0.01, le=0.9)] = 0.2
    baseline: Literal["black", "mean", "grey", "blur"] = "black"
    score: Literal["logit", "probability"] = "logit"
    scaled: bool = True

    def measure(self, predictor: ImagePredictor, subject: Subject, attribution: Attribution) -> Steps:
        """Ask for the score of the picture and of every copy; return the mean square as a Measured."""
        values = importance(attribution, subject, absolute=False)
        height, width = values.shape
        side = max(1, round(self.side_share * min(height, width)))
        _refuse_many(self.runs * side * side, "runs or side_share")
        chosen = random_squares(subject.seed, height, width, side, self.runs)
        hidden = FeatureReplacements(chosen, baseline_fill(subject, self.baseline), by_scalars=False)
        (whole,), scores = yield (Scores(OnPath((1.0,), 0.0), self.score), Scores(hidden, self.score))
        falls, sums = whole - scores, values.ravel()[chosen].sum(1)
        scale = 1.0
        if self.scaled:
            power = float(sums @ sums)
            scale = float(sums @ falls) / power if power > 0 else 0.0
        value, whole_square = (float(np.square(part).mean()) for part in (scale * sums - falls, falls))
        share = value / whole_square if whole_square > 0 else float("nan")
        return MetricValue(value, {"scale": scale, "share": share})


@parameters
class SensitivityN(PictureMetric):
    """Pearson correlation between what hiding n random pixels does to the score and the sum of the map over
    them, averaged over `sizes` numbers n; higher is more faithful. [Ancona et al. 2018]

    n goes from 1 % to 80 % of the pixels in equal ratios, with `runs` random subsets of each. The other
    parameters, the seeded bank that items and methods share, and NotApplicable are as in
    `FaithfulnessCorrelation`. `details`: `pixels`, the numbers n, and `curve`, the correlation of each.
    """

    version: ClassVar[int] = 1
    unit: ClassVar[str] = "correlation"
    better: ClassVar[Better] = "higher"
    sizes: Annotated[int, Field(ge=2, le=50)] = 6
    runs: Annotated[int, Field(ge=3, le=1000)] = 50
    baseline: Literal["black", "mean", "grey", "blur"] = "black"
    score: Literal["logit", "probability"] = "logit"

    def measure(self, predictor: ImagePredictor, subject: Subject, attribution: Attribution) -> Steps:
        """Ask for the score of the picture and of every copy; return the mean correlation as a Measured."""
        values = importance(attribution, subject, absolute=False)
        if not np.ptp(values):
            raise NotApplicable("the correlation is not defined: the map is the same everywhere")
        numbers = subset_sizes(values.size, self.sizes)
        _refuse_many(self.runs * numbers[-1], "runs")
        banks = [random_subsets(subject.seed, values.size, number, self.runs) for number in numbers]
        fill = baseline_fill(subject, self.baseline)
        hidden = [Scores(FeatureReplacements(chosen, fill, by_scalars=False), self.score) for chosen in banks]
        (whole,), *scores = yield (Scores(OnPath((1.0,), 0.0), self.score), *hidden)
        curve = [
            correlation_of(values.ravel()[chosen].sum(1), whole - said, "pearson")
            for chosen, said in zip(banks, scores, strict=True)
        ]
        return MetricValue(float(np.mean(curve)), {"pixels": numbers, "curve": curve})


def subset_sizes(pixels: int, sizes: int) -> list[int]:
    """So many numbers of pixels from 1 % to 80 % of all, in equal ratios (rounded); each at least 1, once."""
    shares = np.geomspace(0.01, 0.8, sizes)
    return sorted({max(1, round(float(share) * pixels)) for share in shares})


@lru_cache(maxsize=8)
def random_squares(seed: int, height: int, width: int, side: int, number_of: int) -> Places:
    """The study's bank of squares: the flat indices of their pixels, int64 (number_of, side * side); each
    lies within the picture, all places are equally likely.
    """
    name = f"squares\x1f{height}\x1f{width}\x1f{side}\x1f{seed}"
    corners = [
        counted_generator(name, row).integers(0, (height - side + 1, width - side + 1))
        for row in range(number_of)
    ]
    tops, lefts = np.array(corners, np.int64).T
    inside = np.arange(side)[:, None] * width + np.arange(side)
    bank: Places = (tops * width + lefts)[:, None] + inside.ravel()
    bank.setflags(write=False)
    return bank


def _refuse_many(draws: int, names: str) -> None:
    if draws > DRAWS_MAX:
        raise NotApplicable(
            f"this picture needs {draws:,} places of hidden pixels, and {DRAWS_MAX:,} fit into memory: "
            f"lower {names}"
        )
