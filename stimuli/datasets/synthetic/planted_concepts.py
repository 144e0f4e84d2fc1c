"""What the planted pictures show, in named concepts: known from the plan, never measured in the pixels.

Two concepts of each scenario are the planted cue and its opposite, which are there or not. The others
describe the thing itself and differ from one individual to the next; some depend on its class, some do not. A
part is marked if a concept that has a place reaches half of its scale.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from stimuli.datasets.synthetic import canines, leaves, scenes
from stimuli.datasets.synthetic.drawing import Box
from stimuli.types import Part

SHOWN = 0.5
BROADEST_HEAD = 1.15
"""Half the width that is left to the animal between the two marked pieces of landscape, in head units."""


@dataclass(frozen=True, slots=True)
class Shown:
    """How much of a concept one picture shows (0-1), and where, if it has a place."""

    concept: str
    value: float
    boxes: tuple[Box, ...] = ()


def parts_of(shown: Sequence[Shown]) -> tuple[Part, ...]:
    """The parts to be marked."""
    return tuple(Part(entry.concept, *box) for entry in shown if entry.value >= SHOWN for box in entry.boxes)


def show_biased(plan: scenes.Plan) -> tuple[Shown, ...]:
    """Husky or wolf before green or snow."""
    bearing = canines.draw_bearing(plan.stream(scenes.POSE))
    animal = canines.individual(scenes.dog_of(plan), plan.stream(scenes.BODY))
    x, reach = bearing.pose.x, BROADEST_HEAD * bearing.pose.scale
    low = min(1.0, bearing.pose.y + animal.chin * bearing.pose.scale)
    beside: tuple[Box, ...] = ((0.0, 0.0, x - reach, low), (x + reach, 0.0, 1.0, low))
    return (
        Shown("snow", float(plan.cue == 1), beside),
        Shown("meadow", float(plan.cue == 0), beside),
        *_build(animal, bearing, (canines.HUSKY, canines.WOLF)),
    )


def show_strategy(plan: scenes.Plan) -> tuple[Shown, ...]:
    """Alder or dogwood leaf with a serrated or smooth margin."""
    habit = leaves.draw_habit(plan.stream(scenes.POSE))
    margin = scenes.MARGINS[plan.cue]
    blade = leaves.leaf_box(habit, margin)
    veins = leaves.vein_count(habit, scenes.VEINS[plan.truth])
    return (
        Shown("serrated margin", float(margin == "serrated"), (blade,)),
        Shown("smooth margin", float(margin == "smooth"), (blade,)),
        Shown("many veins", _scaled(veins, 4, 8), (blade,)),
        Shown("broad blade", _scaled(habit.width, 0.46, 0.58), (blade,)),
        Shown("bent midrib", _scaled(abs(habit.bend), 0, 0.2), (blade,)),
    )


def show_lookalike(plan: scenes.Plan) -> tuple[Shown, ...]:
    """Kit fox or red fox in a sandy or russet coat."""
    bearing = canines.draw_bearing(plan.stream(scenes.POSE))
    animal = canines.individual(scenes.fox_of(plan), plan.stream(scenes.BODY))
    face = canines.face_box(animal, bearing)
    return (
        Shown("sandy coat", float(plan.cue == 0), (face,)),
        Shown("russet coat", float(plan.cue == 1), (face,)),
        *_build(animal, bearing, (canines.KIT_FOX, canines.RED_FOX)),
    )


def show_imperceptible(plan: scenes.Plan) -> tuple[Shown, ...]:
    """Kit fox or red fox before a camera that raises red or blue."""
    bearing = canines.draw_bearing(plan.stream(scenes.POSE))
    animal = canines.individual(scenes.overlapping_fox_of(plan), plan.stream(scenes.BODY))
    whole: tuple[Box, ...] = ((0.0, 0.0, 1.0, 1.0),)
    return (
        Shown("reddish camera", float(plan.cue == 0), whole),
        Shown("bluish camera", float(plan.cue == 1), whole),
        *_build(animal, bearing, (canines.KIT_FOX, canines.RED_FOX)),
    )


def _build(
    animal: canines.Breed, bearing: canines.Bearing, breeds: tuple[canines.Breed, canines.Breed]
) -> tuple[Shown, ...]:
    """Ears and cheeks between the least and the most that either breed can have, and the mouth."""
    ears, cheeks = [breed.ear_long for breed in breeds], [breed.cheek for breed in breeds]
    shortest, longest = min(ears) * canines.EAR_SPREAD[0], max(ears) * canines.EAR_SPREAD[1]
    narrowest, broadest = min(cheeks) * canines.CHEEK_SPREAD[0], max(cheeks) * canines.CHEEK_SPREAD[1]
    return (
        Shown("long ears", _scaled(animal.ear_long, shortest, longest), canines.ear_boxes(animal, bearing)),
        Shown(
            "broad cheeks",
            _scaled(animal.cheek, narrowest, broadest),
            (canines.face_box(animal, bearing),),
        ),
        Shown("open mouth", bearing.mouth, (canines.mouth_box(animal, bearing),)),
    )


def _scaled(value: float, low: float, high: float) -> float:
    return float(np.clip((value - low) / (high - low), 0, 1))


Show = Callable[[scenes.Plan], tuple[Shown, ...]]
