"""Subsets, Latin square, Williams order, coverage, guess-then-reveal."""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from itertools import pairwise
from typing import Any

import pytest

from crowd.study_check.stimulus_exposures import exposures
from experiments.design.rng import Streams
from experiments.paradigms.base import BadDesign, NotEnoughItems, Plan, Pool, PoolItem, Survey, SurveyItem
from experiments.paradigms.reverse_turing import ReverseTuring, ReverseTuringDesign
from tests.experiments.definitions import definition
from tests.experiments.pools import make_pool, view

pytestmark = pytest.mark.pure

SMALL: dict[str, Any] = {"train_items": 8, "test_items": 5}
TURING: dict[str, Any] = {"paradigm": "reverse_turing", "render": {"preset": "reverse-turing"}}


def plans(pool: Pool, seed: int = 1, **design: Any) -> list[Plan]:
    return list(ReverseTuring().plans(ReverseTuringDesign(**design), pool, Streams(seed)))


def items(plan: Plan, phase: str, condition: str | None = None) -> frozenset[str | None]:
    return frozenset(
        t.item for t in plan.trials if t.phase == phase and not t.check and condition in (None, t.condition)
    )


def test_it_has_the_published_sizes_by_default() -> None:
    plan = plans(make_pool(120, slots=6, check_instructed=0, check_repeat=0))[0]
    assert Counter(t.phase for t in plan.trials) == {"train": 25, "test": 15}


def test_it_hides_the_label_until_the_guess() -> None:
    pool = make_pool(slots=6)
    for trial in plans(pool, **SMALL)[0].trials:
        assert trial.label is None
        seen = view(trial, pool)
        feedback = ReverseTuring().feedback(seen, {"choice": "husky"})
        if trial.kind == "learn":
            assert feedback == {"label": seen.predicted, "correct": seen.predicted == "husky"}
        else:
            assert feedback is None


def test_it_plans_a_run_without_training() -> None:
    for plan in plans(make_pool(slots=6, check_repeat=0), train_items=0, test_items=5):
        assert Counter(t.phase for t in plan.trials) == {"test": 5 + 2}


def test_the_pre_experiment_takes_only_what_the_model_gets_wrong() -> None:
    fields = {**TURING, "design": {"predictions": "wrong"}}
    study = definition({"balance": "prediction"}, **fields)
    labels = ("husky", "wolf")
    items = tuple(
        SurveyItem(f"i{n}", labels[n % 2], f"g{n}", labels[(n // 2) % 2], (n // 2) % 2, 0.5, (0.0, 0.0))
        for n in range(40)
    )
    material = ReverseTuring().material(study, {("", ""): Survey(labels, items)})
    assert {item.key for item in material.pool.items} == {i.key for i in items if i.truth != i.predicted}
    assert not list(ReverseTuring().check_definition(study))
    (problem,) = ReverseTuring().check_definition(definition({}, **fields))
    assert problem.key == "stimuli.balance"


def test_it_shows_the_mark_up_at_test_unless_told_otherwise() -> None:
    for shown in (True, False):
        for plan in plans(make_pool(slots=6), **SMALL, test_explanations=shown):
            explained = {t.explained for t in plan.trials if t.phase == "test" and t.item}
            assert explained == {shown and plan.condition != "c0"}


def test_it_cuts_three_disjoint_balanced_subsets() -> None:
    pool = make_pool(slots=6)
    cell = {item.key: (item.predicted, item.correct) for item in pool.items}
    for phase, size in (("train", 8), ("test", 5)):
        subsets = {items(plan, phase) for plan in plans(pool, **SMALL)}
        assert len(subsets) == 3 and len(frozenset().union(*subsets)) == 3 * size
        for subset in subsets:
            counts = Counter(cell[key] for key in subset if key)
            assert len(subset) == size and max(counts.values()) - min(counts.values()) <= 1


def test_it_matches_slot_j_between_conditions() -> None:
    by_condition = defaultdict(list)
    for plan in plans(make_pool(slots=6), **SMALL):
        trials = [dataclasses.replace(t, condition="", explained=False) for t in plan.trials]
        by_condition[plan.condition].append((plan.arm, trials))
    assert by_condition["c0"] == by_condition["c1"] == by_condition["c2"]


def test_it_covers_every_evaluation_item_in_every_condition() -> None:
    square = {"assignment": "square"}
    cases: list[tuple[dict[str, Any], int, int]] = [({}, 6, 2), ({}, 9, 3), (square, 18, 6)]
    for design, slots, times in cases:
        pool = make_pool(slots=slots)
        exposure = exposures(plans(pool, **SMALL, **design))
        assert len(exposure.test) == 3 * 15 and set(exposure.test.values()) == {times}


def test_it_fills_each_cell_of_the_square_once() -> None:
    pool = make_pool(slots=36)
    all_plans = plans(pool, **SMALL, assignment="square")
    assert len(all_plans) == 36 and set(Counter(plan.arm for plan in all_plans).values()) == {2}
    for half in (all_plans[:18], all_plans[18:]):
        orders = [tuple(dict.fromkeys(t.condition for t in plan.trials)) for plan in half]
        assert set(Counter(orders).values()) == {3} and len(set(orders)) == 6
        follows = Counter(pair for order in orders for pair in pairwise(order))
        assert set(follows.values()) == {6} and len(follows) == 6


def test_it_gives_group_g_and_condition_c_the_subset_g_plus_c() -> None:
    all_plans = plans(make_pool(slots=18), **SMALL, assignment="square")
    first = next(plan for plan in all_plans if plan.arm.endswith("group-0"))
    for phase in ("train", "test"):
        subsets = [items(first, phase, f"c{c}") for c in range(3)]
        for plan in all_plans:
            group = int(plan.arm[-1])
            assert [items(plan, phase, f"c{c}") for c in range(3)] == [
                subsets[(group + c) % 3] for c in range(3)
            ]


def test_it_repeats_only_what_the_same_condition_trained() -> None:
    for plan in plans(make_pool(slots=18), **SMALL, assignment="square"):
        for trial in plan.trials:
            if trial.check == "repeat":
                assert trial.item in items(plan, "train", trial.condition)


def test_it_keeps_a_scale_in_its_order() -> None:
    bins = tuple((str(n), text) for n, text in enumerate(["5-8", "9-12", "13-16", "17-20"]))
    pool = make_pool(slots=6, choices=bins, balance="none")
    relabelled = tuple(dataclasses.replace(item, predicted="2") for item in pool.items)
    all_plans = plans(dataclasses.replace(pool, items=relabelled), **SMALL)
    keys = {tuple((c.value, c.key) for c in plan.trials[0].choices) for plan in all_plans}
    assert keys == {(("0", "1"), ("1", "2"), ("2", "3"), ("3", "4"))}


@pytest.mark.parametrize(
    ("design", "slots", "message"),
    [
        ({}, 5, "at least 6 slots"),
        ({"assignment": "square"}, 20, "a multiple of 18"),
        ({"assignment": "square", "predictions_per_item_min": 7}, 18, "6 predictions per condition"),
    ],
)
def test_it_refuses_slots_that_do_not_fill_the_design(design: Any, slots: int, message: str) -> None:
    with pytest.raises(BadDesign, match=message):
        plans(make_pool(slots=slots), **SMALL, **design)


def test_it_says_what_the_pool_lacks() -> None:
    with pytest.raises(
        NotEnoughItems,
        match="needs 60 wrong predictions for the 3 disjoint subsets of 25 \\+ 15 items, the pool has 40",
    ):
        plans(make_pool(slots=6))


CROSSED: dict[str, Any] = {"task": "masked", "task_words": ("tense",), "masking": "crossed"}


def twins(all_plans: list[Plan]) -> dict[tuple[str | None, int | None], list[Plan]]:
    by_number = defaultdict(list)
    for plan in all_plans:
        by_number[plan.condition, plan.matched].append(plan)
    return by_number


@pytest.mark.parametrize(("design", "slots"), [({}, 12), ({"assignment": "square"}, 36)])
def test_a_crossed_study_shows_the_same_texts_to_both_halves(design: dict[str, Any], slots: int) -> None:
    all_plans = plans(make_pool(slots=slots), **SMALL, **CROSSED, **design)
    pairs = twins(all_plans)
    assert {len(pair) for pair in pairs.values()} == {2}
    for first, second in pairs.values():
        assert first.trials == second.trials
        (side, arm), (other, twin) = first.arm.split("/", 1), second.arm.split("/", 1)
        assert {side, other} == {"known", "masked"} and arm == twin
    firsts = Counter(pair[0].arm.split("/")[0] for pair in pairs.values())
    assert len(firsts) == 2, "which half comes first is drawn"


def test_a_crossed_study_covers_each_text_on_each_side() -> None:
    all_plans = plans(make_pool(slots=12), **SMALL, **CROSSED)
    for side in ("known", "masked"):
        half = [plan for plan in all_plans if plan.arm.startswith(side)]
        exposure = exposures(half)
        assert len(exposure.test) == 3 * 15 and set(exposure.test.values()) == {2}


@pytest.mark.parametrize(
    ("design", "slots", "message"),
    [
        ({}, 11, "over 3 subsets and 2 sides, so that an evaluation item gets 1 predictions"),
        ({}, 13, "13 slots, of which half are to be told the task: ask for an even number, such as 14"),
        ({"assignment": "square"}, 18, "each for 2 sides: all conditions need .* a multiple of 36"),
    ],
)
def test_it_refuses_slots_that_cannot_be_halved(design: Any, slots: int, message: str) -> None:
    with pytest.raises(BadDesign, match=message):
        plans(make_pool(slots=slots), **SMALL, **CROSSED, **design)


@pytest.mark.parametrize(
    "design", [{}, {"assignment": "square"}, CROSSED, {"assignment": "square"} | CROSSED]
)
def test_a_pilot_has_slots_that_can_be_planned(design: dict[str, Any]) -> None:
    sized = ReverseTuringDesign(**SMALL, **design)
    count = ReverseTuring().pilot_slots(sized, make_pool(), 3)
    assert len(plans(make_pool(slots=count), **SMALL, **design)) >= 3


@pytest.mark.parametrize("design", [{}, {"assignment": "square"}])
def test_six_answers_are_balanced_over_predicted_and_correct(design: dict[str, Any]) -> None:
    """Twelve cells over 24 training and 12 test texts of each of three subsets."""
    bins = tuple((f"b{n}", f"Class {n + 1}") for n in range(6))
    names = [value for value, _ in bins]
    texts = tuple(
        PoolItem(f"i{n}", names[(n + (n // 6) % 2) % 6], names[n % 6], 0.5, f"g{n}") for n in range(12 * 12)
    )
    pool = make_pool(slots=18, items=texts, choices=bins, check_repeat=0)
    all_plans = plans(pool, train_items=24, test_items=12, **design)
    cell = {item.key: (item.predicted, item.correct) for item in pool.items}
    for plan in all_plans:
        for phase, each in (("train", 2), ("test", 1)):
            for condition in {trial.condition for trial in plan.trials}:
                counts = Counter(cell[key] for key in items(plan, phase, condition) if key)
                assert len(counts) == 12 and set(counts.values()) == {each}


def test_a_signed_colour_is_refused_while_the_marks_stay_in_the_test() -> None:
    for sign in ("positive", "diverging", "signed_range"):
        fields = {"paradigm": "reverse_turing", "render": {"sign": sign}}
        (problem,) = ReverseTuring().check_definition(definition({}, **fields))
        assert problem.key == "render.sign" and "would hint at the answer" in problem.limit
        shown = {"test_explanations": False}
        assert not list(ReverseTuring().check_definition(definition({}, **fields, design=shown)))
    assert not list(ReverseTuring().check_definition(definition({}, **TURING)))


def test_a_text_takes_as_long_as_in_the_paper() -> None:
    """Figure 3's means over 15 texts, from Table 1: 124.5 s and 442.2 s."""
    for task, whole_s in (("known", 124.5), ("masked", 442.2)):
        seconds = ReverseTuring().seconds(ReverseTuringDesign.model_validate({"task": task}))
        assert 15 * seconds["predict"] == pytest.approx(whole_s, abs=5) and seconds["learn"] > 3
