"""Explanations in named concepts that are computed from the head: weight times value, and distances to a
change.

The picture is run once, for its concept values; everything else is arithmetic on the head, in double
precision.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any, ClassVar, Literal

import numpy as np

from stimuli.errors import NotApplicable
from stimuli.explainers.base import Kind, refuse_probability
from stimuli.planner.asks import Ask, Steps
from stimuli.planner.values import Floats, Operator, Subject, Trace
from stimuli.predictors.concepts.head_interface import (
    ANNOTATIONS,
    CLIP,
    PARTS,
    Bottleneck,
    ConceptKind,
    LinearHead,
    QdaHead,
)
from stimuli.registry import parameters
from stimuli.render.bars import FAR as FAR
from stimuli.types import ConceptAttribution

_SOURCES = {
    ANNOTATIONS: "a network trained on annotations",
    PARTS: "a detector of parts",
    CLIP: "the similarity of picture and text",
}


class ConceptMethod:
    """A method that explains with named concepts: the predictor must decide by them."""

    __slots__ = ()
    kind: ClassVar[Kind] = "concept"

    def require(self, predictor: Any, layer: str) -> None:
        """NotApplicable if the predictor does not decide by named concepts."""
        bottleneck_of(predictor, type(self).__name__)

    def follow(self, operator: Operator) -> None:
        """Accept every number."""


def bottleneck_of(predictor: Any, method: str) -> Bottleneck:
    """The predictor's concepts. Raises NotApplicable with the remedy if it has none."""
    bottleneck: Bottleneck | None = getattr(predictor, "bottleneck", None)
    if bottleneck is None:
        raise NotApplicable(
            f"{method} explains with named concepts, and this predictor has none: choose the predictor "
            "concept_bottleneck, part_concepts or clip_concepts"
        )
    return bottleneck


def concept_values(subject: Subject) -> Generator[Ask, Any, Floats]:
    """Ask for the picture's concept values, float64 (concepts,)."""
    traced = yield Trace(concepts=True)
    return np.asarray(traced.concepts.detach().double().cpu().numpy(), np.float64)


def concept_attribution(
    bottleneck: Bottleneck,
    values: Floats,
    *,
    order: Literal["descending", "ascending"] = "descending",
    checks: Mapping[str, float] | None = None,
) -> ConceptAttribution:
    """Weights of all concepts, in the predictor's order. Raises NotApplicable if they are not finite."""
    weights = np.asarray(values, np.float32)
    if not np.isfinite(weights).all():
        raise NotApplicable(
            "the weights of the concepts are not finite: the head overflows on this image; "
            "raise its penalty or shrinkage"
        )
    return ConceptAttribution(bottleneck.concepts, weights, order, bottleneck.label, dict(checks or {}))


@parameters
class XNesyl(ConceptMethod):
    """Weight of each concept in the linear head, for the explained class, times its score. Signed.

    For predictors whose concepts come from a detector of parts, as in the paper, or from a network trained
    on annotations. The sum over concepts plus the bias is the explained logit. With `centred` the scores are
    taken less their mean over training pictures; the sum is then the logit's distance from its mean, and the
    values are the Shapley values of the head. [Diaz-Rodriguez et al. 2022]
    """

    version: ClassVar[int] = 1
    centred: bool = False

    def require(self, predictor: Any, layer: str) -> None:
        """NotApplicable without concepts, with concepts of CLIP, or if the head is not linear."""
        _linear(predictor, "XNesyl", (PARTS, ANNOTATIONS), "use clip_linear for concepts by CLIP")

    def follow(self, operator: Operator) -> None:
        """NotApplicable for a probability."""
        refuse_probability(operator, f"XNesyl: {_LINEAR_ONLY}", _INSTEAD)

    def explain(self, predictor: Any, subject: Subject) -> Steps:
        return (yield from _weigh_concepts(predictor.bottleneck, subject, self.centred))


@parameters
class ClipLinear(ConceptMethod):
    """Weight of each concept in the linear head, for the explained class, times the similarity of picture and
    prompt. Signed.

    As `XNesyl`, for CLIP's concepts. Similarities are never near zero; `centred` takes them less their mean
    over training pictures. [Kazmierczak et al. 2023]
    """

    version: ClassVar[int] = 1
    centred: bool = False

    def require(self, predictor: Any, layer: str) -> None:
        """NotApplicable without concepts, with concepts that are not CLIP's, or with another head."""
        _linear(predictor, "ClipLinear", (CLIP,), "use x_nesyl for them, or the predictor clip_concepts")

    def follow(self, operator: Operator) -> None:
        """NotApplicable for a probability."""
        refuse_probability(operator, f"ClipLinear: {_LINEAR_ONLY}", _INSTEAD)

    def explain(self, predictor: Any, subject: Subject) -> Steps:
        return (yield from _weigh_concepts(predictor.bottleneck, subject, self.centred))


@parameters
class ClipQda(ConceptMethod):
    """How far each concept's value must move, the others fixed, for the decision to change. Small distances
    matter most.

    The logits of the normal distributions are quadratic in each value, so the nearest change is a root of a
    quadratic, in closed form: no operator changes where a decision changes. If the explained class is the
    predicted one, it is the nearest value at which another class is as likely; if not, the nearest at which
    the explained class is as likely as all others. A concept that cannot do that has the distance FAR = 1000,
    the largest there is; the check `deciding` is the share of those that can. `unit` "value" measures in
    concept values (cosines), "deviation" in standard deviations over training pictures. [Kazmierczak et al.
    2023]
    """

    version: ClassVar[int] = 1
    unit: Literal["value", "deviation"] = "value"

    def require(self, predictor: Any, layer: str) -> None:
        """NotApplicable without concepts, or if the head is not made of normal distributions."""
        bottleneck = bottleneck_of(predictor, "ClipQda")
        if not isinstance(bottleneck.head, QdaHead):
            raise NotApplicable(
                "ClipQda reads the normal distributions of a QDA head, and this head is "
                f'{_head_word(bottleneck)}: choose the predictor clip_concepts with head = "qda"'
            )

    def explain(self, predictor: Any, subject: Subject) -> Steps:
        bottleneck: Bottleneck = predictor.bottleneck
        assert isinstance(bottleneck.head, QdaHead)
        values = yield from concept_values(subject)
        distances = np.abs(nearest_changes(bottleneck.head, values, subject.target))
        if self.unit == "deviation":
            spread = bottleneck.samples.std(axis=0)
            distances = distances / np.where(spread > 0, spread, 1.0)
        deciding = float(np.isfinite(distances).mean())
        return concept_attribution(
            bottleneck, np.minimum(distances, FAR), order="ascending", checks={"deciding": deciding}
        )


def nearest_changes(head: QdaHead, values: Floats, target: int) -> Floats:
    """Per concept the smallest move, signed, that brings the decision about `target` to its border; float64
    (concepts,), infinite if there is none.
    """
    logits = head.logits(values[None])[0]
    slopes = np.einsum("kcd,kd->kc", head.precisions, head.means - values)
    bends = -0.5 * np.diagonal(head.precisions, axis1=1, axis2=2)
    others = np.arange(len(logits)) != target
    # The lead over each other class after a move t of one concept is ahead + slope * t + bend * t^2.
    ahead = (logits[target] - logits[others])[:, None]
    slope, bend = slopes[target] - slopes[others], bends[target] - bends[others]
    moves = _roots(np.broadcast_to(ahead, slope.shape), slope, bend)
    with np.errstate(invalid="ignore", over="ignore"):
        parts = [
            np.broadcast_to(ahead, slope.shape)[None],
            slope * moves[:, None],
            bend * moves[:, None] ** 2,
        ]
        leads = parts[0] + parts[1] + parts[2]
        scale = np.abs(parts[0]) + np.abs(parts[1]) + np.abs(parts[2])
        reached = np.isfinite(moves) & (leads >= -1e-9 * scale).all(axis=1)
    reachable = np.where(reached, moves, np.inf)
    chosen = np.abs(reachable).argmin(axis=0)
    return np.asarray(np.take_along_axis(reachable, chosen[None], axis=0)[0], np.float64)


def _roots(constant: Floats, slope: Floats, bend: Floats) -> Floats:
    """Both real roots of constant + slope t + bend t^2, (2 n, ...) for arrays (n, ...); infinite if there are
    none. Written so that nearly equal numbers are never subtracted.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = slope**2 - 4 * bend * constant
        half = -0.5 * (slope + np.where(slope < 0, -1.0, 1.0) * np.sqrt(inside))
        both = np.concatenate([constant / half, half / bend])
    touching = np.broadcast_to(constant == 0, slope.shape)
    both[: len(slope)] = np.where(touching, 0.0, both[: len(slope)])
    return np.where(np.isfinite(both), both, np.inf)


def _weigh_concepts(bottleneck: Bottleneck, subject: Subject, centred: bool) -> Steps:
    assert isinstance(bottleneck.head, LinearHead)
    values = yield from concept_values(subject)
    if centred:
        values = values - bottleneck.samples.mean(axis=0)
    return concept_attribution(bottleneck, subject.explained(bottleneck.head.weights.T) * values)


_LINEAR_ONLY = "the weights of a linear head add up to a logit and to no probability"
_INSTEAD = "shap_cbm with output = 'probability'"


def _linear(predictor: Any, method: str, kinds: tuple[ConceptKind, ...], remedy: str) -> None:
    bottleneck = bottleneck_of(predictor, method)
    if bottleneck.kind not in kinds:
        wanted = " or ".join(_SOURCES[kind] for kind in kinds)
        raise NotApplicable(
            f"{method} explains concepts that come from {wanted}, and these come from "
            f"{_SOURCES[bottleneck.kind]}: {remedy}"
        )
    if not isinstance(bottleneck.head, LinearHead):
        raise NotApplicable(
            f"{method} multiplies values by the weights of a linear head, and this head is "
            f'{_head_word(bottleneck)}: use clip_qda, or set head = "linear"'
        )


def _head_word(bottleneck: Bottleneck) -> str:
    words = {LinearHead: "linear", QdaHead: "made of normal distributions"}
    return words.get(type(bottleneck.head), "of another kind")
