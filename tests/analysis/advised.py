"""Frames of a study of advice made in memory: people with known decisions, without a database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from analysis.facts import ConditionFacts, SlotFacts, StudyFacts
from analysis.frames import Frames, frame
from experiments.kinds.decide import Decide
from tests.analysis.worlds import person_row

SLUG = "advised"
ROLES = {"alone": "baseline", "plain": "advice", "marked": "method", "unrelated": "control"}


@dataclass(frozen=True, slots=True)
class Decision:
    """What one person said of one item, and what the model says of it."""

    item: str
    truth: str
    advice: str
    first: str
    second: str


def advised_facts(
    names: Sequence[str] = tuple(ROLES), *, state: str = "closed", kept: int = 30, wanted: int = 30
) -> StudyFacts:
    return StudyFacts(
        slug=SLUG,
        title="What is it?",
        paradigm="assisted_decision",
        digest="b" * 64,
        seed=5,
        state=state,
        conditions=tuple(ConditionFacts(n, n.capitalize(), ROLES[n], wanted, kept) for n in names),
        slots=tuple(SlotFacts(n, n.capitalize(), wanted, kept) for n in names),
        design={"advice_accuracy": 0.75, "test_items": 4},
    )


def frames_of(
    decided: Mapping[str, Mapping[str, Sequence[Decision]]],
    *,
    origin: str = "human",
    status: Mapping[str, str] | None = None,
) -> Frames:
    """Frames of `decided[condition][person]`; `status` of people who did not pass."""
    trials: list[dict[str, object]] = []
    people: list[dict[str, object]] = []
    stimuli: dict[tuple[str, str], dict[str, object]] = {}
    for condition, persons in decided.items():
        for plan, (person, decisions) in enumerate(persons.items()):
            shared = {
                **{"study": SLUG, "participant": person, "session": f"s-{person}", "origin": origin},
                **{"condition": condition, "role": ROLES[condition], "arm": condition, "slot": plan},
                "plan": plan,
            }
            row = shared | person_row(plan)
            people.append(row | ({"status": status[person]} if status and person in status else {}))
            for decision in decisions:
                stimuli[decision.item, condition] = {
                    **{"study": SLUG, "item": decision.item, "condition": condition},
                    **{"truth": decision.truth, "predicted": decision.advice},
                }
                for step in ("first", "second"):
                    trials.append(shared | _answer(decision, step, len(trials), condition))
    return Frames(
        frame("trials", trials, Decide.columns),
        frame("participants", people),
        frame("stimuli", list(stimuli.values())),
        Decide.columns,
    )


def _answer(decision: Decision, step: str, place: int, condition: str) -> dict[str, object]:
    given = decision.first if step == "first" else decision.second
    is_told = step == "second" and condition != "alone"
    return {
        **{"block": 1, "phase": "test", "kind": "decide", "check": "", "trial_index": place},
        **{"scored_index": place, "item": decision.item, "explained": False, "response": given},
        "model_label": decision.advice,
        "matches_model": float(given == decision.advice),
        "matches_truth": float(given == decision.truth),
        **{"rt_ms": 1500, "shown_ms": 1500, "late": False, "step": step},
        "advice": decision.advice if is_told else "",
    }


def decisions(text: str) -> list[Decision]:
    """Rows of "item truth advice first second", one per line."""
    return [Decision(*line.split()) for line in text.strip().splitlines()]


@dataclass(frozen=True, slots=True)
class Habit:
    """How people of a condition decide again: the chance (0-1) to take right advice and wrong advice that
    they had not given themselves, and to change by themselves."""

    takes_right: float = 0.0
    takes_wrong: float = 0.0
    changes: float = 0.1


def planted(
    habits: Mapping[str, Habit],
    *,
    people: int,
    seed: int,
    items: int = 60,
    per_person: int = 20,
    accuracy: float = 0.75,
    spread: float = 0.6,
    right_share: float | None = None,
) -> Frames:
    """People with these habits on items drawn from `items`, slot j of every condition alike. First decisions
    are right with log odds .8, of which people and items vary by `spread`. The model is right about
    `right_share` of the items, else as often as its advice is, which is `accuracy` of what a person meets."""
    rng = np.random.default_rng(seed)
    truths = rng.integers(0, 2, items)
    is_right = np.zeros(items, dtype=bool)
    is_right[: round((accuracy if right_share is None else right_share) * items)] = True
    of_item = rng.normal(0, spread, items)
    wrong = round((1 - accuracy) * per_person)
    decided: dict[str, dict[str, list[Decision]]] = {name: {} for name in habits}
    for slot in range(people):
        chosen = [
            *rng.choice(np.flatnonzero(is_right), per_person - wrong, replace=False),
            *rng.choice(np.flatnonzero(~is_right), wrong, replace=False),
        ]
        for name, habit in habits.items():
            ability = 0.8 + rng.normal(0, spread)
            decided[name][f"{name}-{slot}"] = [
                _decided(int(i), int(truths[i]), bool(is_right[i]), ability + of_item[i], habit, rng)
                for i in chosen
            ]
    return frames_of(decided)


def _decided(
    item: int, truth: int, is_right: bool, odds: float, habit: Habit, rng: np.random.Generator
) -> Decision:
    advice = truth if is_right else 1 - truth
    first = truth if rng.random() < 1 / (1 + np.exp(-odds)) else 1 - truth
    second = 1 - first if rng.random() < habit.changes else first
    if first != advice and rng.random() < (habit.takes_right if is_right else habit.takes_wrong):
        second = advice
    names = "ab"
    return Decision(f"i{item}", names[truth], names[advice], names[first], names[second])
