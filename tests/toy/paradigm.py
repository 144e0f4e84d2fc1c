"""The paradigm `toy`: one module, as a lab would write it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from pydantic import Field

from experiments.definition.study import StudyDefinition
from experiments.design.rng import Streams
from experiments.errors import Problem
from experiments.paradigms import base
from experiments.paradigms.material import material_by_condition
from experiments.paradigms.shared import BaseParadigm
from experiments.paradigms.weaving import answer_buttons, draw_instructed, instructed_trial
from tests.toy.kind import PAIR

LANES = ("left-desk", "right-desk")


class ToyDesign(base.Design):
    people_per_lane: int = Field(2, ge=1, le=50)
    texts: int = Field(4, ge=2, le=50)
    solutions_from: str = ""


class Toy(BaseParadigm):
    name: ClassVar[str] = "toy"
    Design: ClassVar[type[base.Design]] = ToyDesign
    kinds: ClassVar[tuple[str, ...]] = ("sort", "instructed")
    gates: ClassVar[tuple[str, ...]] = ("device", "consent", "promise", "instructions")
    roles: ClassVar[Mapping[str, base.Role]] = {
        "text": base.Role(at_least=1),
        "picture": base.Role(explained=None, at_least=1, at_most=1),
    }
    answers_count: ClassVar[tuple[int, int]] = (3, 3)
    modalities: ClassVar[tuple[str, ...]] = ("image", "text")

    def check_definition(self, definition: StudyDefinition) -> Iterator[Problem]:
        if len(definition.stimuli.datasets) != 2:
            count = len(definition.stimuli.datasets)
            yield Problem("stimuli.datasets", str(count), "must be texts and pictures", "Give both.")

    def material(
        self, definition: StudyDefinition, surveys: Mapping[base.Source, base.Survey]
    ) -> base.Material:
        return material_by_condition(definition, surveys)

    def plans(self, design: ToyDesign, pool: base.Pool, streams: Streams) -> Iterator[base.Plan]:
        """Lane by lane; every slot mixes the text conditions, and every second trial has no right answer."""
        texts = [(i, c) for i, c in pool.explanations if i.startswith("texts/")]
        pictures = [item.key for item in pool.items if item.key.startswith("photos/")]
        photo = next(c.name for c in pool.conditions if c.role == "picture")
        if len(texts) < design.texts or len(pictures) < 2:
            raise base.NotEnoughItems(f"needs {design.texts} texts and 2 pictures: add items")
        items = {item.key: item for item in pool.items}
        for ordinal in range(len(LANES) * design.people_per_lane):
            rng = streams("toy", ordinal)
            buttons = answer_buttons(pool.choices, ordinal, streams)
            trials: list[base.PlannedTrial] = []
            for place in rng.permutation(len(texts))[: design.texts]:
                item, condition = texts[int(place)]
                first, second = (pictures[int(n)] for n in rng.permutation(len(pictures))[:2])
                trials.append(
                    base.PlannedTrial(
                        position=len(trials),
                        block=0,
                        phase="test",
                        kind="sort",
                        item=item,
                        condition=condition,
                        explained=True,
                        choices=buttons,
                        right=pool.predicted(items[item], condition) if len(trials) % 2 == 0 else None,
                        others={PAIR[0]: (first, photo), PAIR[1]: (second, photo)},
                    )
                )
            for check in draw_instructed(pool.check_instructed, None, streams("checks", ordinal)):
                trials.append(instructed_trial(check, len(trials), 0, trials[-1].condition))
            yield base.Plan(ordinal, LANES[ordinal % 2], f"desk-{ordinal}", None, tuple(trials))

    def pilot_slots(self, design: ToyDesign, pool: base.Pool, count: int) -> int:
        return 1

    def lane(self, route: base.Route) -> str | None:
        """Back to the desk of an earlier session, else to the one with most free slots."""
        if route.lane:
            return route.lane if route.lane in route.free else None
        return min(route.free, key=lambda lane: (-route.free[lane], lane), default=None)
