"""Plans of experts: disjoint lists of tasks to solve, each with known tasks of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from experiments.design.disjoint_lists import disjoint_lists
from experiments.design.rng import Streams
from experiments.kinds.base import KNOWN, Choice
from experiments.kinds.solve import CANNOT_SAY
from experiments.paradigms import base
from experiments.paradigms.answer_keys import answer_buttons
from experiments.paradigms.weaving import CheckDraw, draw_instructed, instructed_trial, weave

LANE = "expert"
ASKED = ("task", "tuning")
"""Uses of the items that every expert's list is made of."""


class SolveDesign(Protocol):
    """The part of a design that plans of experts depend on."""

    @property
    def tasks_per_list(self) -> int: ...
    @property
    def solutions_per_task(self) -> int: ...
    @property
    def known_per_list(self) -> int: ...
    @property
    def grid(self) -> int: ...


def solve_plans(design: SolveDesign, pool: base.Pool, streams: Streams) -> Iterator[base.Plan]:
    """Rounds of disjoint lists, as many as each task has solutions. A person stays in one round, so that
    no task is solved twice by one person."""
    people = [condition.name for condition in pool.conditions if condition.role == "source"]
    tasks = [item for item in pool.items if item.use in ASKED]
    if len(people) != 1 or not tasks:
        raise base.BadDesign(
            f"the solve stage has one condition of role source and some tasks, this study has {len(people)} "
            f"such conditions and {len(tasks)} tasks: mend [[conditions]], or add items"
        )
    choices = solve_choices(pool.choices)
    ordinal = 0
    for turn in range(design.solutions_per_task):
        dealt = disjoint_lists([i.group for i in tasks], design.tasks_per_list, streams("lists", turn))
        lists = [[tasks[unit] for unit in units] for units in dealt]
        lane = LANE if design.solutions_per_task == 1 else f"{LANE}/round-{turn}"
        for number, known in enumerate(_pick_known_tasks(design.known_per_list, lists, pool, turn, streams)):
            units = [*lists[number], *known]
            order = streams("order", ordinal).permutation(len(units)) if known else range(len(units))
            shown = [units[int(place)] for place in order]
            trials = _trials(shown, people[0], choices, design.grid, pool, ordinal, streams)
            yield base.Plan(ordinal, lane, f"round-{turn}/list-{number}", people[0], trials)
            ordinal += 1


def _pick_known_tasks(
    count: int,
    lists: Sequence[Sequence[base.PoolItem]],
    pool: base.Pool,
    turn: int,
    streams: Streams,
) -> list[list[base.PoolItem]]:
    """Known tasks of each list: others in every list of the round, and of other groups than its tasks."""
    known = [item for item in pool.items if item.use == KNOWN]
    left = [known[int(place)] for place in streams("known", turn).permutation(len(known))]
    chosen: list[list[base.PoolItem]] = []
    for tasks in lists:
        groups = {item.group for item in tasks}
        drawn: dict[str, base.PoolItem] = {}
        for item in left:
            if item.group not in groups and len(drawn) < count:
                drawn.setdefault(item.group, item)
        if len(drawn) < count:
            raise base.NotEnoughItems(
                f"needs {count} known tasks in each of {len(lists)} lists, of other groups than its tasks, "
                f"and there are {len(known)} in all: mark more items as known, or set [design] "
                f"known_per_list = {len(known) // len(lists)}"
            )
        chosen.append(list(drawn.values()))
        left = [item for item in left if item not in chosen[-1]]
    return chosen


def _trials(
    shown: Sequence[base.PoolItem],
    condition: str,
    choices: Sequence[tuple[str, str]],
    grid: int,
    pool: base.Pool,
    ordinal: int,
    streams: Streams,
) -> tuple[base.PlannedTrial, ...]:
    checks = draw_instructed(pool.check_instructed, None, streams("checks", ordinal))
    buttons = _buttons(choices, ordinal, streams)
    return tuple(
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
            right=entry.truth if entry.use == "task" else None,
            extra=_extra(entry, grid),
        )
        for place, entry in enumerate(weave(shown, checks, streams("check places", ordinal)))
    )


def _extra(item: base.PoolItem, grid: int) -> dict[str, Any]:
    extra: dict[str, Any] = {"grid": grid, "use": item.use}
    if item.use == KNOWN:
        extra |= {"truth": item.truth, "planted": list(item.planted)}
    return extra


def solve_choices(choices: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """The answers, and "cannot say", whose words are those of the study's language."""
    return tuple(choices) if CANNOT_SAY in dict(choices) else (*choices, (CANNOT_SAY, ""))


def _buttons(choices: Sequence[tuple[str, str]], ordinal: int, streams: Streams) -> tuple[Choice, ...]:
    """The answers with their keys, then "cannot say", whose words are the study's."""
    named = [pair for pair in choices if pair[0] != CANNOT_SAY]
    return (*answer_buttons(named, ordinal, streams), Choice(CANNOT_SAY, dict(choices)[CANNOT_SAY], "x"))
