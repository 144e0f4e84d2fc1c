"""Decisions in two steps: matched plans, advice of the declared accuracy, what a condition sees, errors."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crowd.study_check.stimulus_exposures import exposures
from experiments.design.rng import Streams
from experiments.paradigms.assisted_decision import AssistedDecision, AssistedDecisionDesign
from experiments.paradigms.base import (
    BadDesign,
    NotEnoughItems,
    Plan,
    PlanCondition,
    PlannedTrial,
    Pool,
    PoolItem,
)
from experiments.paradigms.blind import blind_scores, imbalance
from tests.experiments.definitions import TEXTS, definition
from tests.experiments.pools import make_pool, view

pytestmark = pytest.mark.pure
ROLES = ("baseline", "advice", "method", "control")
ROOT = Path(__file__).resolve().parents[3]
ROOMS = ("analysis", "crowd", "experiments", "stimuli", "setup", "frontend/src", "frontend/build", "deploy")
NAMES = "|".join(
    (
        r"assisted_(decision|scores)",
        "AssistedDecision",
        "alder-or-dogwood",
        r"Decide(Trial|Content)",
        r"(kinds\.|plugins/|\"\./)decide\b",
    )
)
"""Of the paradigm, its kind, its plugin, the parts of its report and its study."""


def advised_pool(
    count: int = 80, slots: int = 6, labels: tuple[str, ...] = ("husky", "wolf"), **fields: Any
) -> Pool:
    """Items of every true class, right and wrong alike, each in a group of its own."""
    items = tuple(
        PoolItem(
            f"i{n}", labels[n % len(labels)], labels[(n + (n // len(labels)) % 2) % len(labels)], 0.7, f"g{n}"
        )
        for n in range(count)
    )
    conditions = tuple(PlanCondition(role, role, slots) for role in ROLES)
    choices = tuple((label, label.capitalize()) for label in labels)
    pool = make_pool(balance="none", check_repeat=0, conditions=1)
    return dataclasses.replace(pool, items=items, conditions=conditions, choices=choices, **fields)


def plans(pool: Pool, seed: int = 1, **design: Any) -> list[Plan]:
    read = AssistedDecisionDesign(**{"advice_accuracy": 0.75, **design})
    return list(AssistedDecision().plans(read, pool, Streams(seed)))


def decided(plan: Plan, step: str) -> list[PlannedTrial]:
    return [trial for trial in plan.trials if trial.kind == "decide" and trial.extra["step"] == step]


def spread(counts: Counter[str], labels: tuple[str, ...] = ("husky", "wolf")) -> int:
    return int(np.ptp([counts[label] for label in labels]))


def test_each_item_is_decided_twice_in_a_row_with_no_check_between() -> None:
    for plan in plans(advised_pool()):
        tests = [trial for trial in plan.trials if trial.phase == "test"]
        assert Counter(t.kind for t in tests) == {"decide": 40, "instructed": 2}
        for first in decided(plan, "first"):
            second = plan.trials[first.position + 1]
            assert (second.item, second.extra, second.choices) == (
                first.item,
                {"step": "second"},
                first.choices,
            )
            assert first.right == second.right is not None
        items = [trial.item for trial in decided(plan, "first")]
        assert len(set(items)) == len(items) == 20


def test_what_is_right_is_what_the_item_is() -> None:
    pool = advised_pool()
    truth = {item.key: item.truth for item in pool.items}
    for plan in plans(pool):
        assert all(t.right == truth[t.item or ""] for t in plan.trials if t.kind == "decide")


def test_conditions_differ_in_the_second_step_alone() -> None:
    """Advice and explanation by role; everything else of slot j is the same."""
    by_slot: dict[int, dict[str, Plan]] = {}
    for plan in plans(advised_pool()):
        assert plan.matched is not None and plan.condition == plan.arm
        by_slot.setdefault(plan.matched, {})[str(plan.condition)] = plan
    shown = {
        "baseline": (False, False),
        "advice": (True, False),
        "method": (True, True),
        "control": (True, True),
    }
    for of in by_slot.values():
        assert set(of) == set(ROLES)
        for role, plan in of.items():
            assert all(
                t.label is None and not t.explained for t in plan.trials if t not in decided(plan, "second")
            )
            seen = {(t.label is not None, t.explained) for t in decided(plan, "second")}
            assert seen == {shown[role]}
        alike = {
            tuple(
                repr(dataclasses.replace(t, condition="", label=None, explained=False)) for t in plan.trials
            )
            for plan in of.values()
        }
        assert len(alike) == 1


def test_the_advice_is_what_the_model_says() -> None:
    pool = advised_pool()
    said = {item.key: item.predicted for item in pool.items}
    for plan in plans(pool):
        if plan.condition != "baseline":
            assert all(t.label == said[t.item or ""] for t in decided(plan, "second"))


@settings(max_examples=30, deadline=None)
@given(
    count=st.integers(2, 4),
    tests=st.integers(2, 24),
    right=st.integers(0, 24),
    train=st.integers(0, 9),
    seed=st.integers(0, 2**32),
)
def test_advice_has_the_declared_accuracy_in_every_session_and_classes_are_even(
    count: int, tests: int, right: int, train: int, seed: int
) -> None:
    """Among right advice, among wrong advice, and among all items to within one; training over both."""
    labels = ("husky", "wolf", "fox", "dog")[:count]
    right = min(right, tests)
    pool = advised_pool(240, slots=3, labels=labels)
    items = {item.key: item for item in pool.items}
    for plan in plans(pool, seed, advice_accuracy=right / tests, test_items=tests, train_items=train):
        tested = [items[t.item or ""] for t in decided(plan, "first")]
        assert sum(item.correct for item in tested) == right and len(tested) == tests
        for part in (
            [i for i in tested if i.correct], [i for i in tested if not i.correct], tested
        ):  # fmt: skip
            assert spread(Counter(item.truth for item in part), labels) <= 1
        trained = [items[t.item or ""] for t in plan.trials if t.phase == "train"]
        assert len(trained) == train and abs(2 * sum(item.correct for item in trained) - train) <= 1
        assert {i.group for i in trained}.isdisjoint(i.group for i in tested)


def test_the_odd_places_go_round_the_classes() -> None:
    """15 right and 5 wrong: in two sessions each class has the larger half of both once."""
    items = {item.key: item for item in advised_pool().items}
    seen: Counter[tuple[str, bool]] = Counter()
    of_one = [plan for plan in plans(advised_pool(slots=8)) if plan.condition == "advice"]
    for plan in of_one:
        tested = [items[t.item or ""] for t in decided(plan, "first")]
        seen.update((item.truth, item.correct) for item in tested)
    assert seen == {("husky", True): 60, ("wolf", True): 60, ("husky", False): 20, ("wolf", False): 20}


def test_items_of_right_and_of_wrong_advice_are_met_evenly() -> None:
    """In 12 sessions 15 of 40 and 5 of 40 items: each 4 or 5 times, and once or twice; two decisions each."""
    pool = advised_pool(slots=12)
    shown = exposures([plan for plan in plans(pool) if plan.condition == "advice"]).test
    counts = {is_right: [shown[i.key, "advice"] / 2 for i in pool.items if i.correct == is_right]
              for is_right in (True, False)}  # fmt: skip
    assert sum(counts[True]) == 180 and sum(counts[False]) == 60
    assert all(max(told) - min(told) <= 2 for told in counts.values())


def test_training_comes_first_in_a_part_of_its_own() -> None:
    plan = plans(advised_pool())[0]
    assert [t.kind for t in plan.trials[:7]] == ["learn"] * 6 + ["decide"]
    assert {(t.block, t.phase) for t in plan.trials} == {(0, "train"), (1, "test")}
    assert all(t.label is None and t.right is None for t in plan.trials if t.phase == "train"), (
        "guessed first"
    )
    untrained = plans(advised_pool(), train_items=0)[0]
    assert {(t.block, t.phase) for t in untrained.trials} == {(0, "test")}


def test_after_a_guess_it_says_what_the_item_is_and_never_in_a_test() -> None:
    pool = advised_pool()
    plan, paradigm = plans(pool)[1], AssistedDecision()
    told = [paradigm.feedback(view(t, pool), {"choice": "wolf"}) for t in plan.trials]
    truth = {item.key: item.truth for item in pool.items}
    for trial, feedback in zip(plan.trials, told, strict=True):
        if trial.phase == "test":
            assert feedback is None
        else:
            is_wolf = truth[trial.item or ""] == "wolf"
            assert feedback == {"label": truth[trial.item or ""], "correct": is_wolf}


def test_more_conditions_and_slots_leave_the_plans_of_the_others_as_they_were() -> None:
    small, large = advised_pool(slots=2), advised_pool(slots=5)
    fewer = dataclasses.replace(small, conditions=small.conditions[:2])
    known = {(p.condition, p.matched): p.trials for p in plans(large)}
    for plan in plans(fewer):
        assert plan.trials == known[plan.condition, plan.matched]


def test_following_the_model_blindly_scores_the_declared_accuracy_and_one_answer_half() -> None:
    pool = advised_pool()
    made = plans(pool)
    scores = {score.strategy: score for score in blind_scores(made, pool, lambda key: np.zeros(1))}
    followed = scores["model's answer"]
    assert (followed.lowest, followed.highest) == (0.75, 0.75) and "true class" not in scores
    assert scores["always husky"].pooled == scores["always wolf"].pooled == 0.5
    assert imbalance(list(scores.values())) is None
    # All pictures are alike here, so the nearest tells nothing; what is learned of an example is what it is.
    near = {item.key: np.array([float(item.truth == "wolf")]) for item in pool.items}
    nearest = {s.strategy: s.pooled for s in blind_scores(made, pool, near.__getitem__)}["nearest"]
    assert nearest == 1.0


@pytest.mark.parametrize(
    ("items", "design", "words"),
    [
        (
            [i for i in advised_pool().items if i.correct],
            {},
            "needs 8 wrong predictions per session, the pool has 0",
        ),
        (
            [i for i in advised_pool().items if i.correct or i.truth == "wolf"],
            {},
            "needs 5 items of 'husky' about which the model is wrong per session, the pool has 0",
        ),
        (advised_pool(12).items, {}, "needs 18 right predictions per session, the pool has 6"),
    ],
)
def test_a_pool_that_cannot_give_the_accuracy_is_refused(
    items: list[PoolItem], design: dict[str, Any], words: str
) -> None:
    with pytest.raises(NotEnoughItems) as refused:
        plans(dataclasses.replace(advised_pool(), items=tuple(items)), **design)
    assert words in str(refused.value) and "or another advice_accuracy" in str(refused.value)
    assert "set balance" not in str(refused.value)


def test_training_items_are_not_asked_again() -> None:
    with pytest.raises(BadDesign, match="set repeat = 0"):
        plans(advised_pool(check_repeat=1))


def test_people_read_the_text_of_their_role_if_there_is_one() -> None:
    rows = [
        {"name": role, "role": role, **({"explainer": {"name": "saliency"}} if role in ROLES[2:] else {})}
        for role in ROLES
    ]
    study = {"paradigm": "assisted_decision", "conditions": rows, "design": {"advice_accuracy": 0.5}}
    texts = {**TEXTS, "instructions_again": "again", "instructions_advice": "advice"}
    told = AssistedDecision().arm_texts(definition({"balance": "none"}, texts=texts, **study))
    assert told == {"baseline": "instructions_again", **dict.fromkeys(ROLES[1:], "instructions_advice")}
    assert AssistedDecision().arm_texts(definition({"balance": "none"}, **study)) == {}


def test_no_other_file_of_the_program_names_it_than_the_docs_say() -> None:
    page = (ROOT / "docs" / "adding.md").read_text()
    page = page.split("What one more costs")[1].split("## A trial kind")[0]
    told = {ROOT / path for path in re.findall(r"\]\(\.\./([^)]+)\)", page)}
    told |= {path for pattern in re.findall(r"`([\w/]+/\*\.\w+)`", page) for path in ROOT.glob(pattern)}
    files = (
        path
        for room in ROOMS
        for path in (ROOT / room).rglob("*")
        if path.suffix in {".py", ".ts", ".css", ".toml", ".html"} and not path.name.endswith(".spec.ts")
    )
    hits = {path for path in files if re.search(NAMES, path.read_text())}
    assert hits - told == set()
    assert len(hits) > 10, "the names are those that the files use"
