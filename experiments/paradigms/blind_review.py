"""A lead judges solutions of hidden solvers within a decision-time budget (Saralajew et al. 2022)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from experiments.definition import StudyDefinition
from experiments.design.blocks import permuted_level
from experiments.design.lists import disjoint_lists
from experiments.design.rng import Streams
from experiments.errors import Problem
from experiments.kinds.base import Choice
from experiments.kinds.solve import CANNOT_SAY
from experiments.paradigms import base
from experiments.paradigms.shared import BaseParadigm
from experiments.paradigms.weaving import (
    CheckDraw,
    answer_buttons,
    draw_instructed,
    instructed_trial,
    weave,
)


class BlindReviewDesign(base.Design):
    """Two stages of one paradigm, each a study.

    `role = "solve"`: experts solve every task `solutions_per_task` times, in lists of up to `tasks_per_list`.
    `role = "review"`: leads judge the frozen solutions of the study `solutions_from`, `tasks_per_run` without
    and as many other tasks with explanations. `order`: "counterbalanced", or "paper" (without, then with).
    `grid` is the side of the grid on which regions are marked. `budget_ms` is for the analysis, never shown.
    """

    role: Literal["solve", "review"] = "review"
    solutions_from: str = ""
    tasks_per_list: int = Field(20, ge=1, le=500)
    solutions_per_task: int = Field(1, ge=1, le=20)
    tasks_per_run: int = Field(20, ge=1, le=500)
    order: Literal["counterbalanced", "paper"] = "counterbalanced"
    grid: int = Field(28, ge=4, le=64)
    budget_ms: int = Field(3000, ge=0, le=600_000)
    gap_ms: int = Field(300, ge=0, le=10_000)
    picture_px: int = Field(320, ge=64, le=1024)

    @model_validator(mode="after")
    def _names_its_solutions(self) -> Self:
        if (self.role == "review") != bool(self.solutions_from):
            raise ValueError(
                'solutions_from names the solve study when role = "review", and is absent when role = "solve"'
            )
        return self


@dataclass(frozen=True, slots=True)
class _Cell:
    """A counterbalance cell: what comes first, which set has explanations, whose solution a task gets."""

    with_first: bool
    set_with: int
    rotation: int

    @property
    def arm(self) -> str:
        order = "with-without" if self.with_first else "without-with"
        return f"{order}/set-{self.set_with}/rotation-{self.rotation}"


class BlindReview(BaseParadigm):
    """Stage and lane follow the design's role: experts solve, leads review."""

    name: ClassVar[str] = "blind_review"
    Design: ClassVar[type[base.Design]] = BlindReviewDesign
    kinds: ClassVar[tuple[str, ...]] = ("review", "solve", "instructed")
    roles: ClassVar[Mapping[str, base.Role]] = {
        "source": base.Role(explained=None),
        "method": base.Role(),
    }
    gates: ClassVar[tuple[str, ...]] = (
        "device",
        "consent",
        "plates",
        "questions",
        "instructions",
        "quiz",
        "screen",
        "practice",
    )

    def plans(self, design: BlindReviewDesign, pool: base.Pool, streams: Streams) -> Iterator[base.Plan]:
        """Solve: disjoint lists, as many as the items need. Review: one plan per lead, with all conditions.

        In review a condition is a source of solutions, and `slots` (equal for all) is the number of leads.
        Each run of leads as long as there are counterbalance cells shares its tasks, so that over the run
        every task is judged with and without explanation, from every source, first and last.
        """
        if pool.check_repeat:
            raise base.BadDesign(
                f"[checks] repeat = {pool.check_repeat}: no repeat checks here, as nothing is trained; "
                "set repeat = 0"
            )
        return (_solve_plans if design.role == "solve" else _review_plans)(design, pool, streams)

    def check_definition(self, definition: StudyDefinition) -> Iterator[Problem]:
        if _is_solved(definition) and not definition.choices:
            yield Problem(
                "stimuli", "no answers", "tasks have 2 or more answers", 'Give classes = ["a", "b"].'
            )

    def kinds_of(self, definition: StudyDefinition) -> tuple[str, ...]:
        """A stage has its own, and checks."""
        other = "review" if _is_solved(definition) else "solve"
        return tuple(kind for kind in self.kinds if kind != other)

    def buttons(self, definition: StudyDefinition) -> tuple[tuple[str, str], ...]:
        """Solvers have the answers and "cannot say", leads two judgements."""
        choices = definition.choices
        return _with_cannot_say(choices) if _is_solved(definition) else _judgements(choices)

    def scores(self, design: BlindReviewDesign) -> bool:
        """Solving is right or wrong; accepting is not, and is never paid for."""
        return design.role == "solve"

    def pilot_slots(self, design: BlindReviewDesign, pool: base.Pool, count: int) -> int:
        """Every lead judges all sources, so each condition has as many slots as there are leads."""
        return count

    def lane(self, route: base.Route) -> str | None:
        """A person stays in the lane of earlier sessions; else the first that has a free slot."""
        if route.lane:
            return route.lane if route.lane in route.free else None
        return min(route.free, default=None)


def _is_solved(definition: StudyDefinition) -> bool:
    return bool(definition.design.get("role", "review") == "solve")


def _with_cannot_say(choices: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """The answers of a task."""
    said = () if CANNOT_SAY in dict(choices) else ((CANNOT_SAY, "Cannot say"),)
    return (*choices, *said)


def _judgements(choices: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """The answers of a lead."""
    texts = dict(choices)
    return (("accept", texts.get("accept", "Accept")), ("reject", texts.get("reject", "Reject")))


def _solve_plans(design: BlindReviewDesign, pool: base.Pool, streams: Streams) -> Iterator[base.Plan]:
    if len(pool.conditions) != 1 or not pool.items:
        raise base.BadDesign(
            f"the solve stage has one condition and some items, this study has {len(pool.conditions)} "
            f"conditions and {len(pool.items)} items"
        )
    condition = pool.conditions[0].name
    choices = _with_cannot_say(pool.choices)
    ordinal = 0
    for turn in range(design.solutions_per_task):
        lists = disjoint_lists([i.group for i in pool.items], design.tasks_per_list, streams("lists", turn))
        lane = "expert" if design.solutions_per_task == 1 else f"expert/round-{turn}"
        for number, units in enumerate(lists):
            checks = draw_instructed(pool.check_instructed, None, streams("checks", ordinal))
            buttons = _solve_buttons(choices, ordinal, streams)
            woven = weave([pool.items[unit] for unit in units], checks, streams("check places", ordinal))
            trials = tuple(
                instructed_trial(entry, place, 0, condition)
                if isinstance(entry, CheckDraw)
                else base.PlannedTrial(
                    position=place,
                    block=0,
                    phase="test",
                    kind="solve",
                    item=entry.key,
                    condition=condition,
                    explained=False,
                    choices=buttons,
                    right=entry.truth,
                    extra={"grid": design.grid},
                )
                for place, entry in enumerate(woven)
            )
            yield base.Plan(ordinal, lane, f"round-{turn}/list-{number}", condition, trials)
            ordinal += 1


def _review_plans(design: BlindReviewDesign, pool: base.Pool, streams: Streams) -> Iterator[base.Plan]:
    slots = {condition.slots for condition in pool.conditions}
    if len(slots) != 1:
        raise base.BadDesign(
            "every lead judges all sources, so all conditions need the same number of slots; got "
            f"{', '.join(f'{condition.name}: {condition.slots}' for condition in pool.conditions) or 'none'}"
        )
    solutions = _by_task(pool)
    cells = [
        _Cell(with_first, set_with, rotation)
        for with_first in ((False, True) if design.order == "counterbalanced" else (False,))
        for set_with in (0, 1)
        for rotation in range(len(pool.conditions))
    ]
    seen: Counter[str] = Counter()
    sets: list[list[str]] = []
    for ordinal in range(slots.pop()):
        if ordinal % len(cells) == 0:
            sets = _task_sets(design, pool, solutions, seen, streams, ordinal // len(cells))
        cell = cells[permuted_level(len(cells), ordinal, streams, "counterbalance")]
        trials = _review_trials(cell, sets, solutions, pool, ordinal, streams)
        yield base.Plan(ordinal, "lead", cell.arm, None, trials)


def _by_task(pool: base.Pool) -> dict[str, list[list[base.Solved]]]:
    """Item -> for each condition in order, its solutions; only items that every source has solved."""
    names = [condition.name for condition in pool.conditions]
    by_item: dict[str, list[list[base.Solved]]] = defaultdict(lambda: [[] for _ in names])
    for solution in pool.solutions:
        if solution.source not in names:
            raise base.BadDesign(
                f"solution {solution.key!r} comes from {solution.source!r}, which is none of the conditions "
                f"{', '.join(names)}: add the condition, or leave the solution out"
            )
        by_item[solution.item][names.index(solution.source)].append(solution)
    return {item: by_source for item, by_source in by_item.items() if all(by_source)}


def _task_sets(
    design: BlindReviewDesign,
    pool: base.Pool,
    solutions: Mapping[str, list[list[base.Solved]]],
    seen: Counter[str],
    streams: Streams,
    index: int,
) -> list[list[str]]:
    """Two disjoint sets of the tasks least judged so far, no two tasks of one group."""
    rng = streams("tasks", index)
    tasks = [item for item in pool.items if item.key in solutions]
    ties = rng.random(len(tasks))
    chosen: dict[str, str] = {}
    for place in sorted(range(len(tasks)), key=lambda i: (seen[tasks[i].key], ties[i])):
        chosen.setdefault(tasks[place].group, tasks[place].key)
    need = 2 * design.tasks_per_run
    if len(chosen) < need:
        raise base.NotEnoughItems(
            f"needs {need} tasks of different groups, each solved by every source, per session, there are "
            f"{len(chosen)}: ask for fewer tasks ([design] tasks_per_run), or have more tasks solved"
        )
    drawn = list(chosen.values())[:need]
    seen.update(drawn)
    drawn = [drawn[int(place)] for place in rng.permutation(need)]
    return [drawn[: design.tasks_per_run], drawn[design.tasks_per_run :]]


def _review_trials(
    cell: _Cell,
    sets: Sequence[Sequence[str]],
    solutions: Mapping[str, list[list[base.Solved]]],
    pool: base.Pool,
    ordinal: int,
    streams: Streams,
) -> tuple[base.PlannedTrial, ...]:
    rng = streams("order", ordinal)
    texts = dict(pool.choices)
    buttons = answer_buttons(_judgements(pool.choices), ordinal, streams)
    checks = draw_instructed(pool.check_instructed, None, streams("checks", ordinal))
    places = streams("check places", ordinal)
    trials: list[base.PlannedTrial] = []
    for block, explained in enumerate((cell.with_first, not cell.with_first)):
        tasks = sets[cell.set_with if explained else 1 - cell.set_with]
        picked = []
        for place, task in enumerate(tasks):
            offered = solutions[task][(place + cell.rotation) % len(pool.conditions)]
            picked.append(offered[int(rng.integers(len(offered)))])
        shuffled = [picked[int(place)] for place in rng.permutation(len(picked))]
        for entry in weave(shuffled, checks[block::2], places):
            if isinstance(entry, CheckDraw):
                trials.append(instructed_trial(entry, len(trials), block, trials[-1].condition))
                continue
            trials.append(
                base.PlannedTrial(
                    position=len(trials),
                    block=block,
                    phase="test",
                    kind="review",
                    item=entry.item,
                    condition=entry.source,
                    explained=explained,
                    choices=buttons,
                    extra={"solution": entry.key, "answer": texts.get(entry.choice, entry.choice)},
                )
            )
    return tuple(trials)


def _solve_buttons(choices: Sequence[tuple[str, str]], ordinal: int, streams: Streams) -> tuple[Choice, ...]:
    named = [pair for pair in choices if pair[0] != CANNOT_SAY]
    text = dict(choices)[CANNOT_SAY]
    return (*answer_buttons(named, ordinal, streams), Choice(CANNOT_SAY, text, "x"))
