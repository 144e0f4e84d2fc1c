"""Sanity checks: a map should change with the network's weights, and not with the seed or a little noise."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from stimuli.errors import NotApplicable, ShapeMismatch
from stimuli.explainers import is_seeded, kind_of
from stimuli.explainers.donor_maps import Lenders, noisy_key, randomised_key
from stimuli.metrics.base import Better, MetricValue, PictureMetric, Scored
from stimuli.metrics.correlation import product, standardise_values
from stimuli.planner.asks import Steps
from stimuli.planner.values import Subject, counted_generator
from stimuli.registry import parameters
from stimuli.spec import Component, StimulusSpec
from stimuli.types import Weights

FLAT = 1e-6
"""A map whose range is no more than this share of its magnitude has no order."""


@parameters
class ParameterRandomisation(PictureMetric):
    """Spearman correlation of the map with the one that the same method makes of the same item in a network
    whose weights are permuted; lower is better. [Adebayo et al. 2018]

    Near 1, the map does not depend on what the network has learnt. The weights of the last `layers` layers of
    the pass are permuted, of all with 0, drawn by `seed`, as `predictors.randomised` has it. Two maps without
    any structure have 1, one beside another that has some 0.
    """

    version: ClassVar[int] = 1
    unit: ClassVar[str] = "correlation"
    better: ClassVar[Better] = "lower"
    layers: Annotated[int, Field(ge=0, le=10_000)] = 0
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0

    def lenders(self, spec: StimulusSpec) -> Lenders:
        """The same stimulus of the randomised network. NotApplicable if it is no map of a picture."""
        _refuse_others(spec)
        key = randomised_key(spec.predictor_key, self.layers, self.seed)
        return {"randomised": replace(spec, predictor_key=key)}

    def measure(self, predictor: Any, subject: Subject, attribution: Weights) -> Steps:
        """Return the correlation, -1 to 1, as a Measured; asks nothing."""
        return MetricValue(alike(attribution, _lent_to(subject)["randomised"]))
        yield


@parameters
class ParameterRandomisationDrawn(ParameterRandomisation):
    """`ParameterRandomisation` of the drawn fields: whether people could see the difference."""

    scores: ClassVar[Scored] = "drawn"


@parameters
class LogitRandomisation(PictureMetric):
    """Spearman correlation of the map with the one that the same method makes of the same item for another
    class; lower is better. [Sixt et al. 2020, the random logit test]

    Near 1, the map does not depend on the class that it explains. The class is drawn by the item's key and
    the study's seed from the `labels` classes of the model, whose number is filled in when the metric is
    asked for; of two it is the other one. Two maps without any structure have 1, one beside another that has
    some 0.
    """

    version: ClassVar[int] = 1
    unit: ClassVar[str] = "correlation"
    better: ClassVar[Better] = "lower"
    labels: Annotated[int, Field(ge=0, le=1_000_000)] = 0

    def lenders(self, spec: StimulusSpec) -> Lenders:
        """The same stimulus for the other class. NotApplicable if it is no map of a picture, or the number of
        classes is not known.
        """
        _refuse_others(spec)
        if self.labels <= max(1, spec.target):
            raise NotApplicable(
                f"logit_randomisation draws another class of {self.labels}, and class {spec.target} (from 0) "
                "is explained: set labels to the number of the model's classes"
            )
        draws = counted_generator(f"other class\x1f{spec.image_key}\x1f{spec.seed}")
        drawn = int(draws.integers(self.labels - 1))
        other = drawn + (drawn >= spec.target)
        against = spec.target if spec.operator == "margin" else None
        return {"other": replace(spec, target=other, against=against)}

    def measure(self, predictor: Any, subject: Subject, attribution: Weights) -> Steps:
        """Return the correlation, -1 to 1, as a Measured; asks nothing."""
        return MetricValue(alike(attribution, _lent_to(subject)["other"]))
        yield


@parameters
class Stability(PictureMetric):
    """Mean Spearman correlation between the maps of `runs` seeds, over all their pairs; higher is better.

    The study's seed and the next ones. A method that draws nothing has 1 by construction, and is not run
    again. `details`: `runs`, 1 for such a method, and `lowest`, the lowest correlation of a pair. [Ours; for
    LIME: Visani et al. 2022]
    """

    version: ClassVar[int] = 1
    unit: ClassVar[str] = "correlation"
    better: ClassVar[Better] = "higher"
    runs: Annotated[int, Field(ge=2, le=20)] = 3

    def lenders(self, spec: StimulusSpec) -> Lenders:
        """The same stimulus by the next seeds; none if the method draws nothing. NotApplicable if it is no
        map of a picture.
        """
        if not is_seeded(_refuse_others(spec)):
            return {}
        return {f"{run}": replace(spec, seed=spec.seed + run) for run in range(1, self.runs)}

    def measure(self, predictor: Any, subject: Subject, attribution: Weights) -> Steps:
        """Return the mean correlation, -1 to 1, as a Measured; asks nothing."""
        made = [attribution, *_lent_to(subject).values()]
        pairs = [alike(first, second) for first, second in combinations(made, 2)] or [1.0]
        return MetricValue(float(np.mean(pairs)), {"runs": len(made), "lowest": min(pairs)})
        yield


@parameters
class StabilityDrawn(Stability):
    """`Stability` of the drawn fields: whether people would see another picture with another seed."""

    scores: ClassVar[Scored] = "drawn"


@parameters
class MaxSensitivity(PictureMetric):
    """The largest change of the map, as a share of its size, when a little noise is added to the picture;
    lower is better. [Yeh et al. 2019]

    The picture gets uniform noise from -`radius` to `radius` on every colour value in 0-1, not clipped,
    `draws` times. A change is the Euclidean norm of the difference of the maps over that of the map. A method
    that draws by the seed draws anew for each copy, and its changes hold both. `details`: `changes`.
    NotApplicable for a map that is 0 everywhere.
    """

    version: ClassVar[int] = 1
    unit: ClassVar[str] = "share of the map's norm"
    better: ClassVar[Better] = "lower"
    draws: Annotated[int, Field(ge=1, le=100)] = 10
    radius: Annotated[float, Field(gt=0, le=1)] = 0.02

    def lenders(self, spec: StimulusSpec) -> Lenders:
        """The same stimulus of the noisy pictures. NotApplicable if it is no map of a picture."""
        _refuse_others(spec)
        keys = [noisy_key(spec.image_key, self.radius, draw) for draw in range(self.draws)]
        return {f"{draw}": replace(spec, image_key=key) for draw, key in enumerate(keys)}

    def measure(self, predictor: Any, subject: Subject, attribution: Weights) -> Steps:
        """Return the largest share, 0 or more, as a Measured; asks nothing."""
        size = float(np.linalg.norm(attribution.values))
        if not size:
            raise NotApplicable("a change is a share of the map's size, and this map is 0 everywhere")
        changes = [
            float(np.linalg.norm(made.values.astype(np.float64) - attribution.values)) / size
            for made in _lent_to(subject).values()
        ]
        return MetricValue(max(changes), {"changes": changes})
        yield


def _refuse_others(spec: StimulusSpec) -> Component:
    """The method of the stimulus, if it draws maps of pictures."""
    if spec.explainer is None or kind_of(spec.explainer) != "image":
        raise NotApplicable("this metric compares maps of pictures, not words, concepts or no explanation")
    return spec.explainer


def alike(first: Weights, second: Weights) -> float:
    """Spearman correlation of the values of two explanations, -1 to 1."""
    if first.values.shape != second.values.shape:
        raise ShapeMismatch(
            f"explanations of {first.values.shape} and {second.values.shape} values cannot be compared"
        )
    rows = [
        standardise_values(np.asarray(made.values, np.float64).ravel(), "spearman", FLAT)
        for made in (first, second)
    ]
    if rows[0] is None or rows[1] is None:
        return 1.0 if rows[0] is rows[1] else 0.0
    return product(rows[0], rows[1])


def _lent_to(subject: Subject) -> dict[str, Weights]:
    if subject.lent is None:
        raise NotApplicable("this metric compares stored maps: measure it by specs, with stimuli.pipeline")
    return dict(subject.lent)
