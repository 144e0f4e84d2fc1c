"""Defaults that most paradigms share; a paradigm may also define everything itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from experiments.definition.colour_vision_verdict import Eyes
from experiments.definition.preregistration_table import Contrasts
from experiments.definition.study import StudyDefinition
from experiments.errors import Problem
from experiments.kinds.base import TrialView
from experiments.paradigms.base import (
    LANE,
    CopiesWanted,
    Material,
    PlannedTest,
    Pool,
    Role,
    Route,
    Source,
    Survey,
)
from experiments.paradigms.material import material_of
from experiments.paradigms.screening import screen


class BaseParadigm:
    """Defaults for a crowd: one lane, one model, nothing revealed, the usual rules of screening."""

    name: ClassVar[str]
    kinds: ClassVar[tuple[str, ...]]
    gates: ClassVar[tuple[str, ...]] = (
        "device",
        "consent",
        "questions",
        "instructions",
        "quiz",
        "screen",
        "practice",
    )
    roles: ClassVar[Mapping[str, Role]] = {}
    answers_count: ClassVar[tuple[int, int]] = (0, 0)
    modalities: ClassVar[tuple[str, ...]] = ("image",)
    checks: ClassVar[Mapping[str, int]] = {"instructed": 2, "repeat": 0}
    merges_coinciding: ClassVar[bool] = False
    render: ClassVar[Mapping[str, str]] = {}
    texts: ClassVar[tuple[str, ...]] = ()
    is_extensible: ClassVar[bool] = False
    planned_test: ClassVar[PlannedTest] = "anova"
    planned_analysis: ClassVar[str] = ""
    planned_contrasts: ClassVar[Mapping[Contrasts, str]] = {}

    def scores(self, design: Any) -> bool:
        return True

    def eyes(self, design: Any) -> Eyes | None:
        """All that see."""
        return None

    def check_definition(self, definition: StudyDefinition) -> Iterator[Problem]:
        yield from ()

    def kinds_of(self, definition: StudyDefinition) -> tuple[str, ...]:
        """All of them."""
        return self.kinds

    def buttons(self, definition: StudyDefinition) -> tuple[tuple[str, str], ...]:
        """The study's answers."""
        return definition.choices

    def wording(self, definition: StudyDefinition) -> Mapping[str, str]:
        """All sentences are the paradigm's."""
        return {}

    def voices(self, definition: StudyDefinition) -> tuple[str, ...]:
        """One table, by the paradigm's name."""
        return (self.name,)

    def arm_texts(self, definition: StudyDefinition) -> Mapping[str, str]:
        """All arms read the same."""
        return {}

    def seconds(self, design: Any) -> Mapping[str, float]:
        """As long as the kinds say."""
        return {}

    def material(self, definition: StudyDefinition, surveys: Mapping[Source, Survey]) -> Material:
        """One dataset, one model: items balanced over predicted answer x correct."""
        return material_of(definition, surveys)

    def withholds(self, definition: StudyDefinition) -> tuple[str, ...]:
        """Nothing that the study would have to declare."""
        return ()

    def copies(self, definition: StudyDefinition) -> CopiesWanted | None:
        """None of its pictures is changed."""
        return None

    def pilot_slots(self, design: Any, pool: Pool, count: int) -> int:
        """Plans in permuted blocks hold every condition once per round."""
        return -(-count // len(pool.conditions))

    def more_places(self, design: Any) -> Mapping[str, Any]:
        """Slots do."""
        return {}

    def lane(self, route: Route) -> str | None:
        """One lane for all people."""
        return LANE

    def feedback(self, trial: TrialView, value: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Nothing is revealed."""
        return None

    screen = staticmethod(screen)
