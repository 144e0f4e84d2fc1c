"""The published design: matched plans, balance, checks, exposure, errors."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crowd.study_check.stimulus_exposures import exposures
from experiments.design.rng import Streams
from experiments.kinds.scoring import score
from experiments.paradigms.base import NotEnoughItems, Plan, PlanCondition, PlanError, PlannedTrial, Pool
from experiments.paradigms.blind import shortage
from experiments.paradigms.meta_predictor import MetaPredictor, MetaPredictorDesign
from tests.experiments.pools import make_pool, view

pytestmark = pytest.mark.pure


def plans(pool: Pool, seed: int = 1, **design: Any) -> list[Plan]:
    return list(MetaPredictor().plans(MetaPredictorDesign(**design), pool, Streams(seed)))


def scored(plan: Plan, phase: str) -> list[PlannedTrial]:
    return [trial for trial in plan.trials if trial.phase == phase and not trial.check]


def cells(trials: Iterable[PlannedTrial], pool: Pool) -> list[int]:
    items = {item.key: item for item in pool.items}
    counts = Counter((items[t.item].predicted, items[t.item].correct) for t in trials if t.item)
    return [counts[label, correct] for label, _ in pool.choices for correct in (True, False)]


def spread(counts: list[int]) -> int:
    return max(counts) - min(counts)


def shared(trial: PlannedTrial) -> PlannedTrial:
    return dataclasses.replace(trial, condition="", explained=False)


def test_it_plans_three_blocks_of_five_and_seven() -> None:
    for plan in plans(make_pool()):
        assert Counter((t.block, t.phase) for t in plan.trials if not t.check) == {
            (block, phase): count for block in range(3) for phase, count in (("train", 5), ("test", 7))
        }
        assert [t.block for t in plan.trials] == sorted(t.block for t in plan.trials)
        for block in range(3):
            phases = [t.phase for t in plan.trials if t.block == block]
            assert phases == sorted(phases, reverse=True)


def test_it_holds_each_condition_once_per_block_of_slots() -> None:
    arms = [plan.arm for plan in plans(make_pool(conditions=8, slots=31))]
    assert len(arms) == 248
    for start in range(0, 248, 8):
        assert sorted(arms[start : start + 8]) == [f"c{n}" for n in range(8)]


def test_it_matches_slot_j_of_every_condition() -> None:
    by_condition: dict[str, list[Plan]] = {}
    for plan in plans(make_pool(conditions=8, slots=10)):
        by_condition.setdefault(plan.arm, []).append(plan)
    for matched in zip(*by_condition.values(), strict=True):
        assert len({tuple(map(repr, map(shared, plan.trials))) for plan in matched}) == 1


def test_it_explains_training_only_and_never_to_the_baseline() -> None:
    for plan in plans(make_pool()):
        explained = {trial.phase for trial in plan.trials if trial.explained}
        assert explained == (set() if plan.arm == "c0" else {"train"})
        assert all(t.explained for t in scored(plan, "train")) == (plan.arm != "c0")


def test_it_explains_tests_where_asked_and_repeats_alike() -> None:
    for plan in plans(make_pool(), test_explanations=True):
        tests = {t.explained for t in plan.trials if t.phase == "test" and t.item}
        assert tests == {plan.arm != "c0"}


def test_it_balances_session_and_blocks() -> None:
    pool = make_pool(slots=20)
    for plan in plans(pool):
        for phase in ("train", "test"):
            trials = scored(plan, phase)
            assert spread(cells(trials, pool)) <= 1
            for block in range(3):
                assert spread(cells([t for t in trials if t.block == block], pool)) <= 1


@settings(max_examples=40, deadline=None)
@given(
    blocks=st.integers(1, 4),
    train=st.integers(1, 7),
    test=st.integers(1, 9),
    group_size=st.integers(1, 3),
    repeat=st.integers(0, 3),
    instructed=st.integers(0, 3),
    seed=st.integers(0, 2**32),
)
def test_it_balances_designs_of_any_size(
    blocks: int, train: int, test: int, group_size: int, repeat: int, instructed: int, seed: int
) -> None:
    repeat = min(repeat, blocks * train)
    pool = make_pool(240, group_size=group_size, check_repeat=repeat, check_instructed=instructed)
    groups = {item.key: item.group for item in pool.items}
    for plan in plans(pool, seed, blocks=blocks, train_per_block=train, test_per_block=test):
        sides = [{groups[t.item or ""] for t in scored(plan, phase)} for phase in ("train", "test")]
        assert sides[0].isdisjoint(sides[1])
        for phase, count in (("train", train), ("test", test)):
            trials = scored(plan, phase)
            assert len({t.item for t in trials}) == len(trials) == blocks * count
            assert spread(cells(trials, pool)) <= 1
            for block in range(blocks):
                assert spread(cells([t for t in trials if t.block == block], pool)) <= 1
        assert Counter(t.check for t in plan.trials if t.check) == +Counter(
            instructed=instructed, repeat=repeat
        )


@pytest.mark.parametrize("balance", ["prediction", "none"])
def test_it_balances_no_more_than_asked(balance: Any) -> None:
    mostly_right = [i for i in make_pool(200).items if i.correct or int(i.key[1:]) < 8]
    pool = dataclasses.replace(make_pool(), items=tuple(mostly_right), balance=balance)
    for plan in plans(pool):
        counts = cells(scored(plan, "test"), pool)
        assert len(scored(plan, "test")) == 21
        if balance == "prediction":
            assert abs(counts[0] + counts[1] - counts[2] - counts[3]) <= 1


def test_it_offers_the_training_so_far_at_every_test() -> None:
    for plan in plans(make_pool()):
        for trial in plan.trials:
            learned = tuple(t.position for t in plan.trials if t.phase == "train" and t.block <= trial.block)
            assert trial.reservoir == (learned if trial.phase == "test" else ())
    assert {t.reservoir for plan in plans(make_pool(), reservoir=False) for t in plan.trials} == {()}


def test_it_repeats_training_items_that_look_like_tests() -> None:
    pool = make_pool()
    predicted = {item.key: item.predicted for item in pool.items}
    for plan in plans(pool):
        trained = {t.item: t.position for t in scored(plan, "train")}
        repeats = [t for t in plan.trials if t.check == "repeat"]
        assert len({t.item for t in repeats}) == 3
        assert {t.expected for t in repeats} == {"husky", "wolf"}
        for trial in repeats:
            test = next(t for t in scored(plan, "test") if t.block == trial.block)
            assert trained[trial.item] < trial.position
            assert trial.expected == predicted[trial.item or ""]
            for name in ("phase", "kind", "explained", "choices", "label", "reservoir", "extra"):
                assert getattr(trial, name) == getattr(test, name)


def test_it_spreads_checks_over_blocks_and_places() -> None:
    places = set()
    for plan in plans(make_pool(slots=30, conditions=1)):
        checks = [t for t in plan.trials if t.check]
        assert spread([sum(t.block == block for t in checks) for block in range(3)]) <= 1
        places |= {t.position for t in checks}
    assert len(places) > 15


def test_it_asks_for_all_four_keys_over_the_slots() -> None:
    asked = Counter(
        t.expected for plan in plans(make_pool(slots=30)) for t in plan.trials if t.check == "instructed"
    )
    assert set(asked) == {"d", "f", "j", "k"}


def test_it_puts_each_class_left_in_every_other_slot() -> None:
    first_choices = [plan.trials[0].choices for plan in plans(make_pool(conditions=1, slots=20))]
    assert {choices[0].key for choices in first_choices} == {"f"}
    for even, odd in zip(first_choices[::2], first_choices[1::2], strict=True):
        assert {even[0].value, odd[0].value} == {"husky", "wolf"}


def test_it_draws_items_per_slot_or_once() -> None:
    pool = make_pool(200, conditions=1, slots=6)
    per_slot = {frozenset(t.item for t in scored(plan, "test")) for plan in plans(pool)}
    fixed = plans(pool, items="fixed")
    assert len(per_slot) == 6
    for block in range(3):
        for phase in ("train", "test"):
            sets = {frozenset(t.item for t in scored(plan, phase) if t.block == block) for plan in fixed}
            assert len(sets) == 1
    assert len({tuple(t.item for t in scored(plan, "test")) for plan in fixed}) == 6


@pytest.mark.parametrize("count", [36, 48, 100, 400])
def test_it_spreads_exposure_evenly_over_the_pool(count: int) -> None:
    pool = make_pool(count, conditions=1, slots=31)
    exposure = exposures(plans(pool))
    for counts in (exposure.train, exposure.test):
        assert spread([counts[item.key, "c0"] for item in pool.items]) <= 2


def test_it_plans_slot_j_alike_with_any_other_slots_and_conditions() -> None:
    few = [plan for plan in plans(make_pool(conditions=2, slots=3)) if plan.arm == "c1"]
    many = [plan for plan in plans(make_pool(conditions=5, slots=9)) if plan.arm == "c1"]
    assert [plan.trials for plan in few] == [plan.trials for plan in many[:3]]


def test_it_fills_conditions_of_unequal_size() -> None:
    levels = (PlanCondition("c0", "baseline", 7), PlanCondition("c1", "method", 3))
    all_plans = plans(dataclasses.replace(make_pool(), conditions=levels))
    assert Counter(plan.arm for plan in all_plans) == {"c0": 7, "c1": 3}
    short = [plan for plan in all_plans if plan.arm == "c1"]
    long = [plan for plan in all_plans if plan.arm == "c0"]
    for short_plan, long_plan in zip(short, long, strict=False):
        assert [shared(t) for t in short_plan.trials] == [shared(t) for t in long_plan.trials]


def test_it_keeps_large_groups_on_one_side() -> None:
    pool = make_pool(96, group_size=12)
    groups = {item.key: item.group for item in pool.items}
    for plan in plans(pool):
        sides = [{groups[t.item or ""] for t in scored(plan, phase)} for phase in ("train", "test")]
        assert sides[0].isdisjoint(sides[1])


def test_it_finds_the_only_division_of_the_groups() -> None:
    # Four groups hold one cell each, two hold two: the former must train, the latter test.
    items = make_pool(48).items
    cell = {item.key: (item.predicted, item.correct) for item in items}
    of_cell = {c: [i for i in items if cell[i.key] == c] for c in sorted(set(cell.values()))}
    grouped = []
    for number, members in enumerate(of_cell.values()):
        for place, item in enumerate(members):
            group = f"train{number}" if place < 4 else f"test{number // 2}"
            grouped.append(dataclasses.replace(item, group=group))
    pool = make_pool(48, items=tuple(grouped), check_repeat=0)
    for plan in plans(pool, blocks=1, train_per_block=16, test_per_block=32):
        assert {t.item for t in scored(plan, "train")} == {
            i.key for i in grouped if i.group.startswith("train")
        }


def test_it_says_how_many_wrong_predictions_are_missing() -> None:
    few = [i for i in make_pool(80).items if i.correct or int(i.key[1:]) < 14]
    wrong = sum(not i.correct for i in few)
    message = f"needs 18 wrong predictions per session, the pool has {wrong}: "
    with pytest.raises(NotEnoughItems, match=message):
        plans(make_pool(items=tuple(few)))


def test_it_names_the_cell_that_is_too_small() -> None:
    few = [i for i in make_pool(120).items if i.correct or i.predicted == "wolf" or int(i.key[1:]) < 16]
    with pytest.raises(NotEnoughItems, match="needs 9 wrong predictions of 'husky' .* has 4"):
        plans(make_pool(items=tuple(few)))


def test_it_says_when_groups_cannot_be_divided() -> None:
    with pytest.raises(NotEnoughItems, match="2 groups of items cannot be divided") as refused:
        plans(make_pool(80, group_size=79))
    assert 'such as the 79 of "' in str(refused.value)
    assert shortage(refused.value, ["were the trained weights loaded?"]) == str(refused.value)


def test_it_refuses_predictions_outside_the_answers() -> None:
    fox = dataclasses.replace(make_pool().items[0], predicted="fox")
    with pytest.raises(NotEnoughItems, match="'fox'"):
        plans(make_pool(items=(fox, *make_pool().items[1:])))


def test_it_refuses_more_repeats_than_training() -> None:
    with pytest.raises(PlanError, match="repeat = 16"):
        plans(make_pool(check_repeat=16))


@pytest.mark.parametrize(
    "design",
    [
        {"blocks": 0},
        {"train_per_block": 0},
        {"test_per_block": 201},
        {"reservoir": "sometimes"},
        {"items": ""},
    ],
)
def test_it_refuses_designs_out_of_bounds(design: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(design))):
        MetaPredictorDesign(**design)


def test_it_scores_agreement_with_the_model() -> None:
    pool = make_pool()
    trial = next(t for t in plans(pool)[0].trials if t.kind == "predict" and not t.check)
    seen = view(trial, pool)
    other = next(value for value, _ in pool.choices if value != seen.predicted)
    assert score(seen, {"choice": seen.predicted}) == 1.0
    assert score(seen, {"choice": other}) == 0.0
