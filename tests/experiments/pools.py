"""Pools of items for planner tests: four even cells, groups of their own unless asked otherwise."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from experiments.kinds.base import Choice, TrialView
from experiments.paradigms.base import Answer, Plan, PlanCondition, PlannedTrial, PlanSolution, Pool, PoolItem
from stimuli.types import Use

CHOICES = (("husky", "Husky"), ("wolf", "Wolf"))


def make_pool(
    count: int = 80, *, conditions: int = 3, slots: int = 4, group_size: int = 1, **fields: Any
) -> Pool:
    """`count` items in even cells of predicted label x correct; the first condition is the baseline."""
    labels = [value for value, _ in CHOICES]
    items = tuple(
        PoolItem(
            key=f"i{number}",
            truth=labels[number % 2],
            predicted=labels[(number // 2) % 2],
            confidence=0.5 + number / (2 * count),
            group=f"g{number // group_size}",
        )
        for number in range(count)
    )
    levels = tuple(PlanCondition(f"c{n}", "method" if n else "baseline", slots) for n in range(conditions))
    pool = Pool(items, levels, CHOICES, "prediction_x_correct", check_instructed=2, check_repeat=3)
    return dataclasses.replace(pool, **fields)


def stage_pool(
    count: int = 60, *, methods: int = 1, slots: int = 8, known: int = 12, blank: int = 8, **fields: Any
) -> Pool:
    """Tasks, known and blank items for sources: people are "c0", the model has conditions "c1" and so on."""
    pool = make_pool(count + known + blank, check_repeat=0)
    counts: dict[Use, int] = {"task": count, "known": known, "blank": blank}
    uses = [use for use, times in counts.items() for _ in range(times)]
    items = tuple(
        dataclasses.replace(item, use=use, truth="" if use == "blank" else item.truth)
        for item, use in zip(pool.items, uses, strict=True)
    )
    roles = ["source", *methods * ["method"]]
    levels = tuple(PlanCondition(f"c{n}", role, slots) for n, role in enumerate(roles))
    return dataclasses.replace(pool, items=items, conditions=levels, **fields)


def review_pool(count: int = 60, *, by_people: int = 1, **fields: Any) -> Pool:
    """A pool in which every source has solved every item, people `by_people` times, and has a lure of each
    and an answer on each blank item."""
    pool = stage_pool(count, **fields)
    solutions = []
    for item in pool.items:
        for condition in pool.conditions:
            name = f"{item.key}/{condition.name}"
            if item.use == "blank":
                solutions.append(PlanSolution(f"{name}/alone", item.key, condition.name, "wolf", "alone"))
                continue
            times = by_people if condition.role == "source" else 1
            given = [PlanSolution(f"{name}/{n}", item.key, condition.name, item.truth) for n in range(times)]
            false = next(value for value, _ in CHOICES if value != item.truth)
            solutions += [*given, PlanSolution(f"{name}/lure", item.key, condition.name, false, "lure")]
    return dataclasses.replace(pool, solutions=tuple(solutions))


def as_json(plan: Plan) -> str:
    return json.dumps(dataclasses.asdict(plan))


def from_json(text: str) -> Plan:
    fields = json.loads(text)
    trials = []
    for trial in fields.pop("trials"):
        choices = tuple(Choice(**choice) for choice in trial.pop("choices"))
        reservoir = tuple(trial.pop("reservoir"))
        others = {role: tuple(place) for role, place in trial.pop("others").items()}
        trials.append(PlannedTrial(**trial, choices=choices, reservoir=reservoir, others=others))
    return Plan(**fields, trials=tuple(trials))


def view(trial: PlannedTrial, pool: Pool) -> TrialView:
    """A planned trial as screening and scoring see it, with what model and world say of its item."""
    item = next((item for item in pool.items if item.key == trial.item), None)
    if item is None:
        return trial.view()
    return dataclasses.replace(
        trial.view(), truth=item.truth, predicted=pool.predicted(item, trial.condition)
    )


def perfect_value(trial: PlannedTrial, view: TrialView) -> dict[str, Any]:
    """What an attentive person who knows the model would answer."""
    if trial.kind == "learn":
        return {"seen": True} if trial.label else {"choice": view.predicted}
    if trial.kind == "rate":
        return dict.fromkeys(trial.extra["questions"], 3)
    if trial.kind == "review":
        return {"accept": trial.extra["value"] == trial.extra["truth"]}
    if trial.kind == "solve":
        return {"choice": trial.right or trial.extra["truth"], "region": [0]}
    return {"choice": trial.expected or trial.right or trial.choices[0].value}


def answer(position: int, value: dict[str, Any], rt_ms: int = 2000) -> Answer:
    return Answer(position, value, rt_ms, shown_ms=rt_ms)
