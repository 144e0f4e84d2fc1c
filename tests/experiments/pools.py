"""Pools of items for planner tests: four even cells, groups of their own unless asked otherwise."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from experiments.kinds.base import Choice, TrialView
from experiments.paradigms.base import Answer, Plan, PlanCondition, PlannedTrial, Pool, PoolItem, Solved

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


def review_pool(count: int = 60, *, conditions: int = 2, slots: int = 8, **fields: Any) -> Pool:
    """A pool in which every condition is a source that has solved every item."""
    pool = make_pool(count, conditions=conditions, slots=slots, check_repeat=0)
    solutions = tuple(
        Solved(f"{item.key}/{condition.name}", item.key, condition.name, item.truth)
        for item in pool.items
        for condition in pool.conditions
    )
    return dataclasses.replace(pool, solutions=solutions, **fields)


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
        return {"accept": trial.position % 2 == 0}
    if trial.kind == "solve":
        return {"choice": trial.right, "region": [0]}
    return {"choice": trial.expected or trial.right or trial.choices[0].value}


def answer(position: int, value: dict[str, Any], rt_ms: int = 2000) -> Answer:
    return Answer(position, value, rt_ms, shown_ms=rt_ms)
