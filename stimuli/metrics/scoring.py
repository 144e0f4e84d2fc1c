"""What a metric is given: a method's own values, or the field that a recipe draws of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from stimuli.errors import NotApplicable
from stimuli.metrics import scored_by
from stimuli.metrics.base import Measured
from stimuli.render.field import drawn_field
from stimuli.render.recipe import RenderSpec
from stimuli.spec import Component, StimulusSpec
from stimuli.types import Attribution, PictureExplanation, PixelAttribution, TextExplanation, Weights


@dataclass(frozen=True, slots=True)
class Scoring:
    """A metric to be measured: of the method's own values, or of the field that `recipe` draws."""

    metric: Component
    recipe: RenderSpec | None = None


@dataclass(frozen=True, slots=True)
class Number:
    """What a metric said of one stimulus: a value, or why there is none. `recipe` says of which field, and is
    None for the method's own values."""

    metric: Component
    measured: Measured | None
    error: str = ""
    recipe: RenderSpec | None = None


def scorings(metrics: Sequence[Component], spec: StimulusSpec) -> tuple[Scoring, ...]:
    """The metrics of one stimulus, each with what it scores."""
    return tuple(Scoring(m, spec.render if scored_by(m) == "drawn" else None) for m in metrics)


def weights_of(made: Attribution, asking: str) -> Weights:
    """The explanation, if it says in numbers how much each part matters; else NotApplicable."""
    if isinstance(made, PictureExplanation | TextExplanation):
        raise NotApplicable(
            f"{asking} needs weights, and this explanation has none: it is made of "
            f"{'sentences' if isinstance(made, TextExplanation) else 'pictures'}"
        )
    return made


def as_scored(made: Weights, recipe: RenderSpec | None) -> Weights:
    """The method's own values, or the field that the recipe draws of them."""
    if recipe is None or not isinstance(made, PixelAttribution):
        return made
    return replace(made, values=drawn_field(made, recipe))
