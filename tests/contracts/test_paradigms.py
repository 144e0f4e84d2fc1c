"""What every paradigm promises."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from typing import Any

import pytest

from experiments.design.rng import Streams
from experiments.kinds import get_kind
from experiments.kinds.scoring import score
from experiments.paradigms import PARADIGMS, get_paradigm
from experiments.paradigms.base import GateTry, Plan, PlanCondition, PlanError, Pool, Route
from stimuli.errors import UnknownName
from tests.experiments.pools import (
    answer,
    as_json,
    from_json,
    make_pool,
    perfect_value,
    review_pool,
    stage_pool,
    view,
)

pytestmark = pytest.mark.pure

ROLES = ("baseline", "advice", "method", "control")
ASSISTED = dataclasses.replace(
    make_pool(check_repeat=0, balance="none"),
    conditions=tuple(PlanCondition(role, role, 4) for role in ROLES),
)
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
        stage_pool(),
    ),
    "blind_review review": ("blind_review", {"solutions_from": "plates-solve"}, review_pool()),
    "blind_review labels": ("blind_review", {"solutions_from": "labels", "runs": 1}, review_pool()),
    "rating together": ("rating", {}, make_pool(30, check_repeat=0)),
    "assisted_decision": ("assisted_decision", {"advice_accuracy": 0.75}, ASSISTED),
    "assisted_decision untrained": (
        "assisted_decision",
        {"advice_accuracy": 0.6, "test_items": 5, "train_items": 0},
        ASSISTED,
    ),
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
    all_plans = plans(case)
    assert [plan.ordinal for plan in all_plans] == list(range(len(all_plans)))
    for plan in all_plans:
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
    for trial in plans(case)[0].trials:
        seen = view(trial, case[2])
        get_kind(trial.kind).check(seen, perfect_value(trial, seen))


def test_it_says_what_is_right_in_the_plan_alone(case: tuple[str, dict[str, Any], Pool]) -> None:
    """A right value is one of the buttons; checks and training have none."""
    for plan in plans(case):
        for trial in plan.trials:
            assert trial.right is None or trial.right in {choice.value for choice in trial.choices}
            assert trial.right is None or (trial.phase == "test" and not trial.check)


def test_it_scores_what_can_be_right(case: tuple[str, dict[str, Any], Pool]) -> None:
    name, design, pool = case
    paradigm = get_paradigm(name)
    scores = [
        score(view(trial, pool), perfect_value(trial, view(trial, pool))) for trial in plans(case)[0].trials
    ]
    is_scored = paradigm.scores(paradigm.Design(**design))
    assert {value for value in scores if value is not None} == ({1.0} if is_scored else set())


def test_its_lanes_are_those_of_its_plans(case: tuple[str, dict[str, Any], Pool]) -> None:
    """Every person gets a lane that has slots, and keeps it."""
    lanes = Counter(plan.lane for plan in plans(case))
    paradigm = get_paradigm(case[0])
    first = paradigm.lane(Route((), "", lanes))
    assert first in lanes
    for lane in lanes:
        if len(lanes) > 1:
            assert paradigm.lane(Route((), lane, lanes)) == lane
            others = {name: count for name, count in lanes.items() if name != lane}
            assert paradigm.lane(Route((), lane, others)) is None, "nobody changes the lane"


def test_its_pilot_has_as_many_plans_as_asked(case: tuple[str, dict[str, Any], Pool]) -> None:
    name, design, pool = case
    paradigm = get_paradigm(name)
    read = paradigm.Design(**design)
    for count in (1, 3):
        slots = paradigm.pilot_slots(read, pool, count)
        small = dataclasses.replace(
            pool, conditions=tuple(dataclasses.replace(c, slots=slots) for c in pool.conditions)
        )
        assert len(list(itertools.islice(paradigm.plans(read, small, Streams(1)), count))) == count


def test_matched_plans_differ_in_the_condition_alone(case: tuple[str, dict[str, Any], Pool]) -> None:
    first: dict[int, Any] = {}
    for plan in plans(case):
        if plan.matched is None:
            continue
        shared = [
            (t.position, t.block, t.phase, t.kind, t.item, t.check, t.expected, t.right, t.choices)
            for t in plan.trials
        ]
        assert first.setdefault(plan.matched, shared) == shared


def test_it_reveals_nothing_at_test(case: tuple[str, dict[str, Any], Pool]) -> None:
    paradigm = get_paradigm(case[0])
    for trial in plans(case)[0].trials:
        seen = view(trial, case[2])
        feedback = paradigm.feedback(seen, perfect_value(trial, seen))
        assert feedback is None or (trial.phase == "train" and set(feedback) == {"label", "correct"})


RULES = {
    "instructed_share_min": 1.0,
    "repeat_share_min": 0.6,
    "known_share_min": 1.0,
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
            value = {"choice": "other"}
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
    with pytest.raises(UnknownName, match="did you mean 'meta_predictor'"):
        get_paradigm("meta_predict")
