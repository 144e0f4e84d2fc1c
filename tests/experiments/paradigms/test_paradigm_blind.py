"""Blind strategies against hand-made plans and a second implementation."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

import numpy as np
import pytest

from experiments.design.rng import Streams
from experiments.kinds.base import Choice
from experiments.paradigms import PARADIGMS, base, get_paradigm
from experiments.paradigms.base import Plan, PlannedTrial, Pool, PoolItem
from experiments.paradigms.blind import (
    BlindScore,
    ModelAnswers,
    asks_for_model,
    blind_scores,
    imbalance,
    likeness,
    opposite,
)
from tests.experiments.pools import make_pool

pytestmark = pytest.mark.pure

BUTTONS = (Choice("husky", "Husky", "f"), Choice("wolf", "Wolf", "j"))


def hand_made(train: list[str], test: list[str], predicted: dict[str, str], truth: str) -> tuple[Plan, Pool]:
    """A plan over items whose model label is given and whose true class is `truth` throughout."""
    trials: list[PlannedTrial] = []
    for item in [*train, *test]:
        learning = item in train
        trials.append(
            PlannedTrial(
                position=len(trials),
                block=0,
                phase="train" if learning else "test",
                kind="learn" if learning else "predict",
                item=item,
                condition="c0",
                explained=False,
                choices=BUTTONS,
                right=None if learning else predicted[item],
                reservoir=() if learning else tuple(range(len(train))),
            )
        )
    items = tuple(PoolItem(key, truth, label, 0.9, key) for key, label in predicted.items())
    return Plan(0, "participant", "c0", "c0", tuple(trials)), make_pool(4, items=items)


def by_name(scores: tuple[BlindScore, ...]) -> dict[str, float]:
    return {score.strategy: score.pooled for score in scores}


def test_it_scores_each_strategy_by_hand() -> None:
    labels = {"t1": "wolf", "t2": "wolf", "t3": "husky", "x": "wolf", "y": "husky", "z": "husky", "w": "wolf"}
    plan, pool = hand_made(["t1", "t2", "t3"], ["x", "y", "z", "w"], labels, truth="husky")
    places = {"t1": 0.0, "t2": 5.0, "t3": 10.0, "x": 1.0, "y": 9.0, "z": 4.0, "w": 7.5}
    scores = by_name(blind_scores([plan], pool, lambda key: np.array([[places[key]]])))
    assert scores == {
        "true class": 0.5,
        "always husky": 0.5,
        "always wolf": 0.5,
        "alternate": 0.5,
        "majority": 0.5,
        "nearest": pytest.approx((1 + 1 + 0 + 0.5) / 4),
    }


def test_it_counts_a_tied_majority_as_an_even_guess() -> None:
    plan, pool = hand_made(["a", "b"], ["x"], {"a": "wolf", "b": "husky", "x": "wolf"}, truth="wolf")
    assert by_name(blind_scores([plan], pool))["majority"] == 0.5


def test_it_counts_repeats_when_alternating_and_scores_none_of_them() -> None:
    plan, pool = hand_made(["a"], ["x", "y"], {"a": "wolf", "x": "wolf", "y": "husky"}, truth="wolf")
    check = dataclasses.replace(plan.trials[1], check="repeat", expected="wolf", right=None, item="a")
    woven = dataclasses.replace(plan, trials=(plan.trials[0], check, *plan.trials[1:]))
    numbered = [dataclasses.replace(t, position=n) for n, t in enumerate(woven.trials)]
    scores = by_name(blind_scores([dataclasses.replace(woven, trials=tuple(numbered))], pool))
    assert scores["alternate"] == 1.0 and scores["always wolf"] == 0.5


def planned(pool: Pool, **design: Any) -> list[Plan]:
    paradigm = get_paradigm("meta_predictor")
    return list(paradigm.plans(paradigm.Design(**design), pool, Streams(4)))


def test_it_agrees_with_a_second_count_on_whole_plans() -> None:
    pool = make_pool(100, slots=8)
    items = {item.key: item for item in pool.items}
    vectors = {item.key: np.random.default_rng(n).random((3, 3)) for n, item in enumerate(pool.items)}
    plans = planned(pool)
    right: Counter[str] = Counter()
    total = 0
    for plan in plans:
        learned: list[str] = []
        for trial in plan.trials:
            assert trial.item or trial.check == "instructed"
            if trial.phase == "train":
                learned.append(trial.item or "")
            elif trial.item and not trial.check:
                total += 1
                item = items[trial.item]
                near = min(learned, key=lambda key: np.linalg.norm(vectors[key] - vectors[item.key]))
                labels = Counter(items[key].predicted for key in learned)
                (common, most), *rest = labels.most_common()
                right["nearest"] += items[near].predicted == item.predicted
                right["true class"] += item.truth == item.predicted
                tied = bool(rest) and rest[0][1] == most
                right["twice majority"] += 1 if tied else 2 * (common == item.predicted)
    scores = by_name(blind_scores(plans, pool, vectors.__getitem__))
    assert scores["nearest"] == pytest.approx(right["nearest"] / total)
    assert scores["true class"] == pytest.approx(right["true class"] / total)
    assert scores["majority"] == pytest.approx(right["twice majority"] / total / 2)


def test_it_leaves_balanced_plans_without_blind_advantage() -> None:
    scores = blind_scores(planned(make_pool(200, conditions=1, slots=28)), make_pool(200))
    for score in scores:
        assert len(score.per_plan) == 28 and 0.4 <= score.pooled <= 0.6
        if score.strategy == "true class":
            assert (score.lowest, score.highest) == (10 / 21, 11 / 21)
    assert imbalance(scores) is None


def test_it_names_a_study_in_which_the_true_class_is_enough() -> None:
    right = tuple(item for item in make_pool(200).items if item.correct)
    pool = make_pool(items=right, balance="prediction")
    sentence = imbalance(blind_scores(planned(pool), pool))
    assert sentence is not None and "1.00" in sentence and "0.40 to 0.60" in sentence


def test_it_has_nothing_to_score_without_predictions() -> None:
    paradigm = get_paradigm("rating")
    pool = make_pool(20, check_repeat=0)
    assert blind_scores(list(paradigm.plans(paradigm.Design(), pool, Streams(1))), pool) == ()


def plan_of(*rights: str, kind: str = "predict", ordinal: int = 0) -> base.Plan:
    """A plan of test trials that have these right answers."""
    buttons = tuple(Choice(value, value, value) for value in ("a", "b"))
    trials = [
        base.PlannedTrial(place, 0, "test", kind, "item", "c", False, buttons, right=right)
        for place, right in enumerate(rights)
    ]
    return base.Plan(ordinal, base.LANE, "c", "c", tuple(trials), ordinal)


def pool_of(*predicted: str) -> base.Pool:
    items = tuple(
        base.PoolItem(str(place), "a", said, 0.9, str(place)) for place, said in enumerate(predicted)
    )
    return base.Pool(items, (base.PlanCondition("c", "baseline", 1),), (("a", "A"), ("b", "B")))


def unfit(plans: list[base.Plan], pool: base.Pool, *unknowing: str) -> list[str]:
    answers = ModelAnswers()
    assert list(answers.watched(plans)) == plans
    return answers.unfit(pool, unknowing)


def test_an_answer_that_is_right_too_often_is_refused_over_all_plans() -> None:
    pool = pool_of("a", "b")
    assert unfit([plan_of(*"aaab"), plan_of(*"abbb")], pool) == []
    at_limit = [plan_of(*("a" * 13 + "b" * 7))]  # .65 exactly
    assert unfit(at_limit, pool) == []
    (sentence,) = unfit([plan_of(*("a" * 14 + "b" * 6))], pool)
    assert "'a' is right in 0.70 of the test trials, more than 0.65" in sentence


def test_an_answer_that_the_model_never_gives_is_refused() -> None:
    sentences = unfit([plan_of(*"aaaa")], pool_of("a", "a", "a"))
    assert "says 'b' of none of the pool's 3 items" in sentences[0] and "right in 1.00" in sentences[1]
    assert unfit([plan_of(*"ab")], pool_of("a", "b"), "it knows nothing") == ["it knows nothing"]


def test_only_studies_that_ask_for_the_model_s_answer_are_refused() -> None:
    """In a solve study the truth is right, and a rating is neither."""
    assert unfit([plan_of(*"aaaa", kind="solve")], pool_of("a"), "it knows nothing") == []
    asking = {name for name in PARADIGMS if asks_for_model(get_paradigm(name))}
    assert asking == {"meta_predictor", "reverse_turing"}


def nearest(pooled: float, *per_plan: float, tests: int = 21) -> list[BlindScore]:
    return [BlindScore("nearest", per_plan, pooled, (tests,) * len(per_plan))]


@pytest.mark.parametrize(
    ("scores", "is_told"),
    [
        (nearest(0.72, 0.6, 0.8), True),  # measured in a study that passed
        (nearest(0.64, *[0.6] * 29, 0.905), True),
        (nearest(0.64, *[0.6] * 29, 0.85), False),
        (nearest(0.55, *[0.5] * 29, 1.0, tests=4), False),  # four of four: a guesser in thirty reaches it
        (nearest(0.55, *[0.5] * 29, 1.0, tests=21), True),
        ([BlindScore("majority", (1.0,), 1.0, (21,))], False),
    ],
)
def test_likeness_is_told_if_it_is_more_than_luck(scores: list[BlindScore], is_told: bool) -> None:
    assert (likeness(scores, 2) is not None) == is_told


def test_the_opposite_of_the_true_class_is_told_of_two_answers_alone() -> None:
    """A study of nothing but wrong predictions, as the paper's pre-experiment is one."""
    wrong = tuple(item for item in make_pool(200).items if not item.correct)
    pool = make_pool(items=wrong, balance="prediction")
    sentence = opposite(blind_scores(planned(pool), pool))
    assert sentence is not None and "right in 1.00 of the test trials, more than 0.65" in sentence
    assert opposite(blind_scores(planned(make_pool(200)), make_pool(200))) is None
    six = [BlindScore("true class", (0.0,), 0.0)] + [BlindScore(f"always {n}", (0.2,), 0.2) for n in range(6)]
    assert opposite(six) is None, "of six answers one of five others is right"


def test_the_advice_fits_the_shortage() -> None:
    """Few wrong predictions want a weaker model, few right ones a stronger, one answer alone neither."""
    for right, wrong, advice in ((40, 1, "weaker"), (1, 40, "stronger")):
        items = [("a", "a"), ("b", "b")] * right + [("a", "b"), ("b", "a")] * wrong
        with pytest.raises(base.NotEnoughItems, match=f"take a {advice} model") as short:
            planned(pool_from(items))
        assert "model" not in short.value.need and "the pool has 2" in short.value.need
    same = [("a", "a"), ("b", "a")] * 40
    with pytest.raises(base.NotEnoughItems) as short:
        planned(pool_from(same))
    assert "take a" not in str(short.value)


def pool_from(pairs: list[tuple[str, str]]) -> base.Pool:
    """Items as (truth, prediction), in a study that asks for balance."""
    items = tuple(base.PoolItem(str(i), t, p, 0.9, str(i)) for i, (t, p) in enumerate(pairs))
    condition = base.PlanCondition("baseline", "baseline", 1)
    return base.Pool(items, (condition,), (("a", "A"), ("b", "B")), balance="prediction_x_correct")
