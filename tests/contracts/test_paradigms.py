"""What every paradigm promises, whatever it measures."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

import pytest

from experiments.design.rng import Streams
from experiments.paradigms import PARADIGMS, get_paradigm
from experiments.paradigms.base import GateTry, InvalidResponse, Plan, PlanError, Pool
from tests.experiments.pools import (
    answer,
    as_json,
    from_json,
    make_pool,
    perfect_value,
    review_pool,
    view,
)

pytestmark = pytest.mark.pure

CASES: dict[str, tuple[str, dict[str, Any], Pool]] = {
    "meta_predictor": ("meta_predictor", {}, make_pool()),
    "meta_predictor fixed": ("meta_predictor", {"items": "fixed", "reservoir": False}, make_pool()),
    "reverse_turing between": (
        "reverse_turing",
        {"train_items": 8, "test_items": 5},
        make_pool(slots=6),
    ),
    "reverse_turing square": (
        "reverse_turing",
        {"train_items": 8, "test_items": 5, "assignment": "square"},
        make_pool(slots=18),
    ),
    "blind_review solve": (
        "blind_review",
        {"role": "solve", "solutions_per_task": 2},
        make_pool(conditions=1, check_repeat=0),
    ),
    "blind_review review": ("blind_review", {"solutions_from": "plates-solve"}, review_pool()),
    "rating together": ("rating", {}, make_pool(30, check_repeat=0)),
    "rating split": ("rating", {"questions": "split"}, make_pool(30, check_repeat=0)),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any], Pool]:
    return CASES[request.param]


def plans(case: tuple[str, dict[str, Any], Pool], seed: int = 1) -> list[Plan]:
    name, design, pool = case
    paradigm = get_paradigm(name)
    return list(paradigm.plans(paradigm.Design(**design), pool, Streams(seed)))


def test_it_runs_every_registered_paradigm() -> None:
    assert {name for name, _, _ in CASES.values()} == set(PARADIGMS)


def test_it_plans_the_same_from_the_same_seed(case: tuple[str, dict[str, Any], Pool]) -> None:
    assert plans(case, 7) == plans(case, 7)


def test_it_plans_differently_from_another_seed(case: tuple[str, dict[str, Any], Pool]) -> None:
    assert plans(case, 7) != plans(case, 8)


def test_it_survives_json(case: tuple[str, dict[str, Any], Pool]) -> None:
    for plan in plans(case):
        assert from_json(as_json(plan)) == plan


def test_it_numbers_slots_and_positions_from_zero(case: tuple[str, dict[str, Any], Pool]) -> None:
    found = plans(case)
    assert [plan.ordinal for plan in found] == list(range(len(found)))
    for plan in found:
        assert [trial.position for trial in plan.trials] == list(range(len(plan.trials)))


def test_it_names_lane_arm_and_known_conditions(case: tuple[str, dict[str, Any], Pool]) -> None:
    known = {condition.name for condition in case[2].conditions}
    for plan in plans(case):
        assert plan.lane and plan.arm
        assert plan.condition is None or {trial.condition for trial in plan.trials} == {plan.condition}
        assert {trial.condition for trial in plan.trials} <= known


def test_it_uses_its_own_kinds_and_one_set_of_buttons(case: tuple[str, dict[str, Any], Pool]) -> None:
    kinds = get_paradigm(case[0]).kinds
    for plan in plans(case):
        assert {trial.kind for trial in plan.trials} <= set(kinds)
        assert len({trial.choices for trial in plan.trials if trial.check != "instructed"}) == 1
        for trial in plan.trials:
            for names in ([c.value for c in trial.choices], [c.key for c in trial.choices]):
                assert len(set(names)) == len(names) >= 2


def test_it_plans_the_checks_asked_for(case: tuple[str, dict[str, Any], Pool]) -> None:
    pool = case[2]
    for plan in plans(case):
        counts = Counter(trial.check for trial in plan.trials)
        assert (counts["instructed"], counts["repeat"]) == (pool.check_instructed, pool.check_repeat)
        for trial in plan.trials:
            assert bool(trial.expected) == bool(trial.check)
            if trial.check == "instructed":
                assert trial.item is None and len(trial.choices) > 2
                assert trial.expected in [choice.value for choice in trial.choices]


def test_it_never_opens_a_test_with_a_check(case: tuple[str, dict[str, Any], Pool]) -> None:
    for plan in plans(case):
        for before, trial in zip((None, *plan.trials), plan.trials, strict=False):
            opens = before is None or (before.block, before.phase) != (trial.block, trial.phase)
            assert not (opens and trial.check)


def test_it_never_tests_what_the_session_trained(case: tuple[str, dict[str, Any], Pool]) -> None:
    groups = {item.key: item.group for item in case[2].items}
    for plan in plans(case):
        shown = [trial for trial in plan.trials if trial.item and not trial.check]
        trained = {groups[t.item] for t in shown if t.phase == "train" and t.item}
        assert trained.isdisjoint(groups[t.item] for t in shown if t.phase == "test" and t.item)


def test_it_accepts_what_its_own_page_sends(case: tuple[str, dict[str, Any], Pool]) -> None:
    paradigm = get_paradigm(case[0])
    for trial in plans(case)[0].trials:
        seen = view(trial, case[2])
        paradigm.check(trial.kind, seen.choices, perfect_value(trial, seen), trial.extra)
        paradigm.check(trial.kind, seen.choices, perfect_value(trial, seen))


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"choice": None},
        {"choice": True},
        {"choice": 1},
        {"choice": ["husky"]},
        {"choice": "no such answer"},
        {"choice": "husky", "more": 1},
        {"seen": 1},
        {"seen": False},
        {"seen": "true"},
        {"accept": 1},
        {"accept": None},
        {"accept": True, "choice": "husky"},
        {"q1": True},
        {"q1": 0},
        {"q1": 6},
        {"q1": 3.0},
        {"q1": "3"},
        {"q7": 3},
        {"choice": "husky", "region": [2, 1]},
        {"choice": "husky", "region": [1, 1]},
        {"choice": "husky", "region": [-1]},
        {"choice": "husky", "region": [True]},
        {"choice": "husky", "region": [4096]},
        {"choice": "husky", "region": "1"},
        {"choice": "husky", "region": list(range(5000))},
    ],
)
def test_it_refuses_other_values(case: tuple[str, dict[str, Any], Pool], value: dict[str, Any]) -> None:
    paradigm = get_paradigm(case[0])
    for trial in plans(case)[0].trials:
        with pytest.raises(InvalidResponse):
            paradigm.check(trial.kind, ("husky", "wolf", "1"), value)


def test_it_refuses_unknown_kinds() -> None:
    for name in PARADIGMS:
        paradigm = get_paradigm(name)
        for kind in ("learn", "predict", "review", "solve", "rate"):
            if kind not in paradigm.kinds:
                with pytest.raises(InvalidResponse, match=kind):
                    paradigm.check(kind, ("a", "b"), {"choice": "a"})


def test_it_scores_no_check_and_no_training(case: tuple[str, dict[str, Any], Pool]) -> None:
    paradigm = get_paradigm(case[0])
    for trial in plans(case)[0].trials:
        seen = view(trial, case[2])
        found = paradigm.score(seen, perfect_value(trial, seen))
        if trial.check or trial.phase == "train":
            assert found is None
        assert found is None or 0 <= found <= 1


def test_it_reveals_nothing_at_test(case: tuple[str, dict[str, Any], Pool]) -> None:
    paradigm = get_paradigm(case[0])
    for trial in plans(case)[0].trials:
        seen = view(trial, case[2])
        found = paradigm.feedback(seen, perfect_value(trial, seen))
        assert found is None or (trial.phase == "train" and set(found) == {"label", "correct"})


RULES = {
    "instructed_share_min": 1.0,
    "repeat_share_min": 0.6,
    "practice_attempts_max": 3,
    "total_minutes": [2, 30],
    "fastest_median_ms": 300,
    "side_share_max": 1.0,
}


def test_it_passes_an_attentive_person(case: tuple[str, dict[str, Any], Pool]) -> None:
    plan = plans(case)[0]
    views = [view(trial, case[2]) for trial in plan.trials]
    given = [answer(t.position, perfect_value(t, seen)) for t, seen in zip(plan.trials, views, strict=True)]
    verdict = get_paradigm(case[0]).screen(views, [GateTry("practice", 1, True)], given, 12.0, RULES)
    assert verdict.status == "passed" and not verdict.reasons


def test_it_screens_a_careless_person_with_evidence(case: tuple[str, dict[str, Any], Pool]) -> None:
    plan = plans(case)[0]
    views = [view(trial, case[2]) for trial in plan.trials]
    given = []
    for trial, seen in zip(plan.trials, views, strict=True):
        value = perfect_value(trial, seen)
        if trial.check == "instructed":
            value = {"q1": 1 + int(trial.expected) % 5} if trial.kind == "rate" else {"choice": "other"}
        given.append(answer(trial.position, value, rt_ms=40))
    verdict = get_paradigm(case[0]).screen(views, [GateTry("practice", 1, True)], given, 1.0, RULES)
    assert verdict.status == "screened"
    assert [reason.rule for reason in verdict.reasons] == [
        "instructed_share_min",
        "total_minutes",
        "fastest_median_ms",
    ]
    assert all(reason.evidence and reason.timing == "after" for reason in verdict.reasons)


def test_it_finds_a_session_incomplete(case: tuple[str, dict[str, Any], Pool]) -> None:
    plan = plans(case)[0]
    views = [view(trial, case[2]) for trial in plan.trials]
    given = [answer(t.position, perfect_value(t, v)) for t, v in zip(plan.trials, views, strict=True)]
    verdict = get_paradigm(case[0]).screen(views, [], given[:-1], 12.0, {})
    (reason,) = verdict.reasons
    assert verdict.status == "incomplete"
    assert (reason.rule, reason.found, reason.limit) == ("incomplete", len(views) - 1, len(views))


def test_it_refuses_a_pool_that_cannot_carry_the_design(case: tuple[str, dict[str, Any], Pool]) -> None:
    name, design, pool = case
    with pytest.raises(PlanError):
        plans((name, design, dataclasses.replace(pool, items=(), solutions=())))


def test_it_refuses_unknown_design_keys() -> None:
    for name in PARADIGMS:
        with pytest.raises(ValueError, match="no_such_key"):
            get_paradigm(name).Design(**{"no_such_key": 1})


def test_it_names_the_known_paradigms_when_asked_for_another() -> None:
    with pytest.raises(LookupError, match="meta_predictor"):
        get_paradigm("meta")
