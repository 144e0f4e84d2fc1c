"""Frames of a rating study made in memory: raters with known points, without a database."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from analysis.facts import ConditionFacts, SlotFacts, StudyFacts
from analysis.frames import Frames, frame
from experiments.kinds.base import Column
from tests.analysis.worlds import person_row

SLUG = "how-clear"
METHODS = ("grad_cam", "random", "clip_linear")
SIX = ("q1", "q2", "q3", "q4", "q5", "q6")
EXTRA = (
    Column("questions_asked", "json", "Ratings: ids of the questions, in the order asked."),
    Column("anchor", "flag", "Ratings: of an explanation that every list holds."),
)
Explanation = tuple[str, str]
Point = Callable[[int, int, str, str], int]
"""(rater, item, condition, question) -> point."""


def rating_facts(
    names: Sequence[str] = METHODS,
    *,
    asked: Sequence[str] = SIX,
    state: str = "closed",
    forms: Mapping[str, str] | None = None,
    predictors: Mapping[str, str] | None = None,
    datasets: Mapping[str, str] | None = None,
) -> StudyFacts:
    conditions = tuple(
        ConditionFacts(
            name,
            name.replace("_", " ").capitalize(),
            "control" if name == "random" else "method",
            8,
            8,
            method=name.split("-")[0],
            predictor=(predictors or {}).get(name, "small_net"),
            dataset=(datasets or {}).get(name, "scenes"),
            shows=(forms or {}).get(name, "concept" if name.startswith("clip") else "image"),
        )
        for name in names
    )
    return StudyFacts(
        slug=SLUG,
        title="How clear is it?",
        paradigm="rating",
        digest="a" * 64,
        seed=3,
        state=state,
        conditions=conditions,
        slots=(SlotFacts("round-0", "Round 0", 8, 8, by="lane"),),
        design={"asked": list(asked)},
    )


def rated(
    session: str, person: str, place: int, explanation: Explanation, points: Mapping[str, int], **more: Any
) -> dict[str, object]:
    """One row of `trials`."""
    item, condition = explanation
    return {
        "study": SLUG,
        "participant": person,
        "session": session,
        "origin": "human",
        "condition": condition,
        "role": "method",
        "arm": "round-0/list-0",
        "block": 0,
        "phase": "test",
        "kind": "rate",
        "check": "",
        "trial_index": place,
        "scored_index": place,
        "item": item,
        "explained": True,
        "response": json.dumps(dict(points), sort_keys=True, separators=(",", ":")),
        "questions_asked": json.dumps(list(points)),
        "anchor": False,
        "rt_ms": 12_000,
        "shown_ms": 12_000,
        "late": False,
        **more,
    }


def sitting_row(session: str, person: str, place: int, **more: Any) -> dict[str, object]:
    """One row of `participants`."""
    shared = {"study": SLUG, "participant": person, "session": session, "origin": "human"}
    return shared | {"arm": "round-0/list-0", "slot": place} | person_row(place) | more


def rating_frames(
    trials: Sequence[dict[str, object]],
    people: Sequence[dict[str, object]],
    stimuli: Sequence[dict[str, object]] = (),
    same: Mapping[Explanation, str] | None = None,
) -> Frames:
    """`same`: (item, condition) -> the condition whose equal picture was rated instead."""
    pictures = frame("stimuli", stimuli).assign(rated_as="")
    for at, row in pictures.iterrows():
        pictures.loc[at, "rated_as"] = (same or {}).get((str(row["item"]), str(row["condition"])), "")
    return Frames(frame("trials", trials, EXTRA), frame("participants", people), pictures, EXTRA)


def pictures_of(items: int, names: Sequence[str], **more: Any) -> list[dict[str, object]]:
    """Rows of `stimuli`."""
    return [
        {"study": SLUG, "item": f"i{item}", "condition": name, "truth": "wolf", "predicted": "husky",
         "metrics": "", **more}
        for item in range(items)
        for name in names
    ]  # fmt: skip


def all_rated(
    point: Point, *, raters: int, items: int, names: Sequence[str] = METHODS, asked: Sequence[str] = SIX
) -> Frames:
    """Everybody rates every item under every condition."""
    trials, people = [], []
    for rater in range(raters):
        person = f"p{rater:03}"
        people.append(sitting_row(person, person, rater))
        for place, (item, name) in enumerate((i, n) for i in range(items) for n in names):
            points = {q: point(rater, item, name, q) for q in asked}
            trials.append(rated(person, person, place, (f"i{item}", name), points))
    return rating_frames(trials, people, pictures_of(items, names))


def planted(
    effects: Mapping[str, float],
    *,
    raters: int,
    items: int,
    per_item: int,
    seed: int,
    asked: Sequence[str] = ("q1",),
    item_by_condition: float = 0.4,
) -> Frames:
    """Ratings with random people (SD .5), items (.5) and items by condition, residual SD .8, rounded to 1-5;
    each item under all conditions is rated by `per_item` of the raters, drawn anew for each explanation."""
    rng = np.random.default_rng(seed)
    person, item = rng.normal(0, 0.5, raters), rng.normal(0, 0.5, items)
    names = list(effects)
    cell = rng.normal(0, item_by_condition, (items, len(names)))
    places = [0] * raters
    trials = []
    for i in range(items):
        for at, name in enumerate(names):
            for rater in rng.permutation(raters)[:per_item]:
                means = 3 + effects[name] + person[rater] + item[i] + cell[i, at]
                points = {q: int(np.clip(round(means + rng.normal(0, 0.8)), 1, 5)) for q in asked}
                who = f"p{rater:03}"
                trials.append(rated(who, who, places[rater], (f"i{i}", name), points))
                places[rater] += 1
    people = [sitting_row(f"p{rater:03}", f"p{rater:03}", rater) for rater in range(raters)]
    return rating_frames(trials, people, pictures_of(items, names))
