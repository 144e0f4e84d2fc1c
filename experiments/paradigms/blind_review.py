"""A lead judges solutions of hidden solvers within a decision-time budget (Saralajew et al. 2022)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from experiments.definition.colour_vision_verdict import Eyes
from experiments.definition.study import StudyDefinition
from experiments.design.rng import Streams
from experiments.errors import Problem
from experiments.paradigms import base
from experiments.paradigms.masking import words_said
from experiments.paradigms.material import material_of
from experiments.paradigms.reviewing import JUDGEMENTS, review_plans
from experiments.paradigms.shared import BaseParadigm
from experiments.paradigms.solutions import LabelledItem, solutions_of_labels
from experiments.paradigms.solving import solve_choices, solve_plans
from experiments.paradigms.weaving import refuse_repeats
from stimuli.types import Use

LABELS = "labels"
TELLING = (
    *("ai", "model*", "machine*", "predict*", "explain*", "explanation*", "legible*"),
    *("ki", "modell*", "maschin*", "vorhersag*", "vorhergesag*", "erklär*"),
)
"""Words that would tell experts or leads that a model is among the solvers, or what the study is about."""

SOLUTIONS_MAX = 20
SEES: Mapping[str, Eyes] = {"expert": "ordinary", "lead": "reduced"}
"""Who may solve, and who may review: by what the colour check says of them."""


class BlindReviewDesign(base.Design):
    """Two stages of one paradigm, each a study.

    `role = "solve"`: experts solve every task `solutions_per_task` times, in lists of up to `tasks_per_list`
    and `known_per_list` known tasks. `role = "review"`: leads judge the frozen solutions of the study
    `solutions_from`, in two `runs`, without explanations and with them for as many other tasks, or in one run
    without. "labels" in the place of a study: the items' labels against what the model predicts, in one run.
    Per run there are `tasks_per_run` real solutions, `lures_per_run` false answers, `known_per_run` known
    tasks, and in the run with explanations `alone_per_run` regions on blank items. `order`: "paper" (without,
    then with) or "counterbalanced". `grid` is the side of the grid on which regions are marked. `budget_ms`
    and `margin` are for the analysis, never shown. `colour_vision`: whether plates find out who may be an
    expert and who a lead, or everybody may.
    """

    role: Literal["solve", "review"] = "review"
    solutions_from: str = ""
    tasks_per_list: int = Field(20, ge=1, le=500)
    solutions_per_task: int = Field(1, ge=1, le=SOLUTIONS_MAX)
    known_per_list: int = Field(2, ge=0, le=100)
    runs: Literal[1, 2] = 2
    tasks_per_run: int = Field(20, ge=1, le=500)
    lures_per_run: int = Field(4, ge=0, le=100)
    known_per_run: int = Field(2, ge=0, le=100)
    alone_per_run: int = Field(2, ge=0, le=100)
    order: Literal["counterbalanced", "paper"] = "counterbalanced"
    grid: int = Field(28, ge=4, le=64)
    budget_ms: int = Field(3000, ge=0, le=600_000)
    margin: float = Field(0.1, gt=0, lt=1)
    colour_vision: Literal["plates", "none"] = "none"
    gap_ms: int = Field(300, ge=0, le=10_000)
    picture_px: int = Field(320, ge=64, le=1024)

    @model_validator(mode="after")
    def _names_its_solutions(self) -> Self:
        if (self.role == "review") != bool(self.solutions_from):
            raise ValueError(
                'solutions_from names the solve study when role = "review", and is absent when role = "solve"'
            )
        if self.solutions_from == LABELS and self.runs != 1:
            raise ValueError(
                f'solutions_from = "{LABELS}" has no regions to show, so there is no run with explanations: '
                "set runs = 1"
            )
        return self


class BlindReview(BaseParadigm):
    """Stage and lane follow the design's role: experts solve, leads review."""

    name: ClassVar[str] = "blind_review"
    Design: ClassVar[type[base.Design]] = BlindReviewDesign
    kinds: ClassVar[tuple[str, ...]] = ("review", "solve", "instructed")
    roles: ClassVar[Mapping[str, base.Role]] = {
        "source": base.Role(explained=False, at_least=1, at_most=1),
        "method": base.Role(explained=None, at_least=1),
    }
    gates: ClassVar[tuple[str, ...]] = (*BaseParadigm.gates[:2], "plates", *BaseParadigm.gates[2:])

    def plans(self, design: BlindReviewDesign, pool: base.Pool, streams: Streams) -> Iterator[base.Plan]:
        """Solve: disjoint lists, as many as the items need. Review: one plan per lead, with all conditions.

        In review a condition is a source of solutions, and `slots` (equal for all) is the number of leads.
        """
        refuse_repeats(pool, "no repeat checks here, as nothing is trained")
        return (solve_plans if design.role == "solve" else review_plans)(design, pool, streams)

    def material(
        self, definition: StudyDefinition, surveys: Mapping[base.Source, base.Survey]
    ) -> base.Material:
        """Tasks as everywhere, and beside them the other uses of items that the stage has. A study that
        starts from labels makes its solutions here."""
        design = BlindReviewDesign.model_validate(definition.design)
        beside: tuple[Use, ...] = ("known", "blank", *(("tuning",) if design.role == "solve" else ()))
        made = material_of(definition, surveys, beside)
        if design.solutions_from != LABELS:
            return made
        return replace(made, pool=replace(made.pool, solutions=_of_labels(definition, made)))

    def check_definition(self, definition: StudyDefinition) -> Iterator[Problem]:
        is_solved = _is_solved(definition)
        yield from _plates_problems(definition)
        if not definition.choices:
            yield Problem(
                "stimuli", "no answers", "tasks have 2 or more answers", 'Give classes = ["a", "b"].'
            )
        yield from words_said(
            definition,
            TELLING,
            "would tell people that a model is among those who solve",
            "Say it in other words: only the debrief may tell.",
        )
        for index, condition in enumerate(definition.conditions):
            if condition.role == "method" and (condition.explainer is not None) != is_solved:
                yield Problem(f"conditions.{index}", repr(condition.name), *_explainer_problem(is_solved))

    def kinds_of(self, definition: StudyDefinition) -> tuple[str, ...]:
        """A stage has its own, and checks."""
        other = "review" if _is_solved(definition) else "solve"
        return tuple(kind for kind in self.kinds if kind != other)

    def buttons(self, definition: StudyDefinition) -> tuple[tuple[str, str], ...]:
        """Solvers have the answers and "cannot say", leads two judgements."""
        return solve_choices(definition.choices) if _is_solved(definition) else JUDGEMENTS

    def scores(self, design: BlindReviewDesign) -> bool:
        """Solving is right or wrong; accepting is not, and is never paid for."""
        return design.role == "solve"

    def eyes(self, design: BlindReviewDesign) -> Eyes | None:
        """Of those whom the check lets in; without one all see."""
        checked = design.colour_vision == "plates"
        return SEES["lead" if design.role == "review" else "expert"] if checked else "ordinary"

    def pilot_slots(self, design: BlindReviewDesign, pool: base.Pool, count: int) -> int:
        """Every lead judges all sources, so each condition has as many slots as there are leads. The lists of
        experts follow from the tasks; slots have no influence there."""
        return 1 if design.role == "solve" else count

    def more_places(self, design: BlindReviewDesign) -> Mapping[str, object]:
        """One more solution of each task; of leads, slots make more."""
        if design.role != "solve":
            return {}
        return {"solutions_per_task": min(design.solutions_per_task + 1, SOLUTIONS_MAX)}

    def lane(self, route: base.Route) -> str | None:
        """A person stays in the lane of earlier sessions; else the first that has a free slot, of those that
        the colour check allows if there is one."""
        if route.lane:
            return route.lane if route.lane in route.free else None
        fitting = (lane for lane in route.free if route.vision in (None, SEES[lane.partition("/")[0]]))
        return min(fitting, default=None)


def _plates_problems(definition: StudyDefinition) -> Iterator[Problem]:
    """`colour_vision` and the table [plates] go together."""
    written = definition.design.get("colour_vision", "none")
    if written == "plates" and definition.plates is None:
        yield Problem(
            "design.colour_vision",
            "'plates'",
            "asks for a colour check, and the study has no [plates]",
            'Add the table [plates], or set colour_vision = "none".',
        )
    elif written != "plates" and definition.plates is not None:
        yield Problem(
            "plates",
            "",
            "is a colour check that decides nothing here",
            'Set [design] colour_vision = "plates", or remove the table.',
        )


def _is_solved(definition: StudyDefinition) -> bool:
    return bool(definition.design.get("role", "review") == "solve")


def _explainer_problem(is_solved: bool) -> tuple[str, str]:
    if is_solved:
        return (
            'role "method" needs an explainer, whose maps mark where its model looks',
            "Add explainer = { name = … }.",
        )
    return (
        "shows what was frozen of its solve study, so that an explainer would do nothing",
        "Remove the explainer.",
    )


def _of_labels(definition: StudyDefinition, made: base.Material) -> tuple[base.PlanSolution, ...]:
    """The solutions of a study that starts from labels."""
    ((_, chosen),) = made.chosen.items()
    items = [
        LabelledItem(
            item.key,
            item.truth,
            item.predicted,
            tuple(definition.value_of(label) for _, label in item.annotated),
            item.use,
        )
        for item in chosen
    ]
    people = next((c.name for c in definition.conditions if c.role == "source"), "")
    models = [c.name for c in definition.conditions if c.role == "method"]
    answers = [value for value, _ in definition.choices]
    solutions = solutions_of_labels(items, answers, people, models, definition.slug, Streams(definition.seed))
    return tuple(base.PlanSolution(s.key, s.item, s.source, s.choice, s.use) for s in solutions)
