"""What the planted pictures show, in named concepts: known from the plan, never measured in the pixels.

Two concepts of each scenario are the planted cue and its opposite, which are there or not. The others
describe the thing itself and differ from one individual to the next; some depend on its class, some do not. A
part is marked if a concept that has a place reaches half of its scale.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from stimuli.datasets.synthetic import canines, leaves, scenario_pictures
from stimuli.datasets.synthetic.drawing import Box
from stimuli.types import Part

SHOWN = 0.5
BROADEST_HEAD = 1.15
"""Half the width that is left to the animal between the two marked pieces of landscape, in head units."""


@dataclass(frozen=True, slots=True)
class ConceptPresence:
    """How much of a concept one picture shows (0-1), and where, if it has a place."""

    concept: str
    value: float
    boxes: tuple[Box, ...] = ()


def parts_of(shown: Sequence[ConceptPresence]) -> tuple[Part, ...]:
    """The parts to be marked."""
    return tuple(Part(entry.concept, *box) for entry in shown if entry.value >= SHOWN for box in entry.boxes)


def show_biased(plan: scenario_pictures.Plan) -> tuple[ConceptPresence, ...]:
    """Husky or wolf before green or snow."""
    bearing = canines.draw_bearing(plan.stream(scenario_pictures.POSE))
    animal = canines.individual(scenario_pictures.dog_of(plan), plan.stream(scenario_pictures.BODY))
    x, reach = bearing.pose.x, BROADEST_HEAD * bearing.pose.scale
    low = min(1.0, bearing.pose.y + animal.chin * bearing.pose.scale)
    beside: tuple[Box, ...] = ((0.0, 0.0, x - reach, low), (x + reach, 0.0, 1.0, low))
    return (
        ConceptPresence("snow", float(plan.cue == 1), beside),
        ConceptPresence("meadow", float(plan.cue == 0), beside),
        *_build(animal, bearing, (canines.HUSKY, canines.WOLF)),
    )


def show_strategy(plan: scenario_pictures.Plan) -> tuple[ConceptPresence, ...]:
    """Alder or dogwood leaf with a serrated or smooth margin."""
    habit = leaves.draw_habit(plan.stream(scenario_pictures.POSE))
    margin = scenario_pictures.MARGINS[plan.cue]
    blade = leaves.leaf_box(habit, margin)
    veins = leaves.vein_count(habit, scenario_pictures.VEINS[plan.truth])
    return (
        ConceptPresence("serrated margin", float(margin == "serrated"), (blade,)),
        ConceptPresence("smooth margin", float(margin == "smooth"), (blade,)),
        ConceptPresence("many veins", _scale_to_unit(veins, 4, 8), (blade,)),
        ConceptPresence("broad blade", _scale_to_unit(habit.width, 0.46, 0.58), (blade,)),
        ConceptPresence("bent midrib", _scale_to_unit(abs(habit.bend), 0, 0.2), (blade,)),
    )


def show_lookalike(plan: scenario_pictures.Plan) -> tuple[ConceptPresence, ...]:
    """Kit fox or red fox in a sandy or russet coat."""
    bearing = canines.draw_bearing(plan.stream(scenario_pictures.POSE))
    animal = canines.individual(scenario_pictures.fox_of(plan), plan.stream(scenario_pictures.BODY))
    face = canines.face_box(animal, bearing)
    return (
        ConceptPresence("sandy coat", float(plan.cue == 0), (face,)),
        ConceptPresence("russet coat", float(plan.cue == 1), (face,)),
        *_build(animal, bearing, (canines.KIT_FOX, canines.RED_FOX)),
    )


def show_imperceptible(plan: scenario_pictures.Plan) -> tuple[ConceptPresence, ...]:
    """Kit fox or red fox before a camera that raises red or blue."""
    bearing = canines.draw_bearing(plan.stream(scenario_pictures.POSE))
    animal = canines.individual(
        scenario_pictures.overlapping_fox_of(plan), plan.stream(scenario_pictures.BODY)
    )
    whole: tuple[Box, ...] = ((0.0, 0.0, 1.0, 1.0),)
    return (
        ConceptPresence("reddish camera", float(plan.cue == 0), whole),
        ConceptPresence("bluish camera", float(plan.cue == 1), whole),
        *_build(animal, bearing, (canines.KIT_FOX, canines.RED_FOX)),
    )


def _build(
    animal: canines.Breed, bearing: canines.Bearing, breeds: tuple[canines.Breed, canines.Breed]
) -> tuple[ConceptPresence, ...]:
    """Ears and cheeks between the least and the most that either breed can have, and the mouth."""
    ears, cheeks = [breed.ear_long for breed in breeds], [breed.cheek for breed in breeds]
    shortest, longest = min(ears) * canines.EAR_SPREAD[0], max(ears) * canines.EAR_SPREAD[1]
    narrowest, broadest = min(cheeks) * canines.CHEEK_SPREAD[0], max(cheeks) * canines.CHEEK_SPREAD[1]
    return (
        ConceptPresence(
            "long ears",
            _scale_to_unit(animal.ear_long, shortest, longest),
            canines.ear_boxes(animal, bearing),
        ),
        ConceptPresence(
            "broad cheeks",
            _scale_to_unit(animal.cheek, narrowest, broadest),
            (canines.face_box(animal, bearing),),
        ),
        ConceptPresence("open mouth", bearing.mouth, (canines.mouth_box(animal, bearing),)),
    )


def _scale_to_unit(value: float, low: float, high: float) -> float:
    return float(np.clip((value - low) / (high - low), 0, 1))


Show = Callable[[scenario_pictures.Plan], tuple[ConceptPresence, ...]]
