"""Two stages: lists to solve, then counterbalanced reviews with and without explanations."""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from typing import Any

import pytest

from experiments.design.rng import Streams
from experiments.kinds.scoring import score
from experiments.kinds.solve import CANNOT_SAY
from experiments.paradigms.base import BadDesign, NotEnoughItems, Plan, PlannedTrial, Pool, Solved
from experiments.paradigms.blind_review import BlindReview, BlindReviewDesign
from tests.experiments.pools import make_pool, review_pool, view

pytestmark = pytest.mark.pure


def plans(pool: Pool, seed: int = 1, **design: Any) -> list[Plan]:
    if design.get("role") != "solve":
        design["solutions_from"] = "plates-solve"
    return list(BlindReview().plans(BlindReviewDesign(**design), pool, Streams(seed)))


def reviews(plan: Plan) -> list[PlannedTrial]:
    return [trial for trial in plan.trials if trial.kind == "review"]


def solve_pool(count: int = 50, **fields: Any) -> Pool:
    return make_pool(count, conditions=1, check_repeat=0, **fields)


def test_it_has_every_task_solved_as_often_as_asked() -> None:
    for times in (1, 3):
        all_plans = plans(solve_pool(), role="solve", solutions_per_task=times)
        solved = Counter(t.item for plan in all_plans for t in plan.trials if not t.check)
        assert len(all_plans) == 3 * times and set(solved.values()) == {times} and len(solved) == 50
        for lane in {plan.lane for plan in all_plans}:
            assert lane.startswith("expert")
            in_lane = [t.item for plan in all_plans if plan.lane == lane for t in plan.trials if t.item]
            assert len(set(in_lane)) == len(in_lane) == 50


def test_it_lets_a_solver_say_that_nothing_can_be_seen() -> None:
    digits = tuple((str(n), str(n)) for n in range(10))
    choices = plans(solve_pool(choices=digits), role="solve")[0].trials[0].choices
    assert [c.key for c in choices] == [*"0123456789", "x"]
    assert choices[-1].value == CANNOT_SAY


def test_it_gives_each_lead_two_runs_of_different_tasks() -> None:
    for plan in plans(review_pool(slots=16)):
        shown = reviews(plan)
        assert plan.lane == "lead" and plan.condition is None
        assert len({t.item for t in shown}) == len(shown) == 40
        assert Counter((t.block, t.explained) for t in shown).keys() in (
            {(0, True), (1, False)},
            {(0, False), (1, True)},
        )
        assert Counter(t.explained for t in shown) == {True: 20, False: 20}


def test_it_draws_both_sources_equally_in_every_run() -> None:
    for plan in plans(review_pool()):
        assert set(Counter((t.block, t.condition) for t in reviews(plan)).values()) == {10}


def test_it_crosses_task_source_explanation_and_run_over_eight_leads() -> None:
    all_plans = plans(review_pool(slots=8))
    assert len({plan.arm for plan in all_plans}) == 8
    seen: dict[str | None, Counter[Any]] = defaultdict(Counter)
    for plan in all_plans:
        for trial in reviews(plan):
            seen[trial.item][trial.condition, trial.explained, trial.block] += 1
    assert len(seen) == 40
    for counts in seen.values():
        assert len(counts) == 8 and set(counts.values()) == {1}


def test_it_follows_the_paper_where_asked() -> None:
    for plan in plans(review_pool(), order="paper"):
        assert all(trial.explained == (trial.block == 1) for trial in reviews(plan))


def test_it_carries_the_solution_of_the_right_source() -> None:
    pool = review_pool()
    texts = dict(pool.choices)
    solutions = {s.key: (s.item, s.source, texts[s.choice]) for s in pool.solutions}
    for plan in plans(pool):
        for trial in reviews(plan):
            expected = (trial.item, trial.condition, trial.extra["answer"])
            assert solutions[trial.extra["solution"]] == expected


def test_it_spreads_tasks_evenly_over_leads() -> None:
    pool = review_pool(60, slots=24)
    counts = Counter(t.item for plan in plans(pool) for t in reviews(plan))
    assert len(counts) == 60 and set(counts.values()) == {16}


def test_it_never_shows_two_tasks_of_one_group() -> None:
    pool = review_pool(120)
    paired = tuple(dataclasses.replace(item, group=f"g{place // 2}") for place, item in enumerate(pool.items))
    groups = {item.key: item.group for item in paired}
    for plan in plans(dataclasses.replace(pool, items=paired)):
        shown_groups = [groups[t.item] for t in reviews(plan) if t.item]
        assert len(set(shown_groups)) == len(shown_groups)


def test_it_scores_solutions_and_never_acceptance() -> None:
    pool = review_pool()
    review = view(reviews(plans(pool)[0])[0], pool)
    assert score(review, {"accept": True}) is None and score(review, {"accept": False}) is None
    solve = next(t for t in plans(solve_pool(), role="solve")[0].trials if not t.check)
    seen = view(solve, solve_pool())
    assert score(seen, {"choice": seen.truth, "region": [3]}) == 1.0
    assert score(seen, {"choice": CANNOT_SAY}) == 0.0


def test_it_says_when_too_few_tasks_are_solved_by_all() -> None:
    pool = review_pool(60)
    unsolved = tuple(s for s in pool.solutions if s[2] == "c0" or int(s[1][1:]) < 30)
    with pytest.raises(NotEnoughItems, match=r"needs 40 tasks .*, there are 30"):
        plans(dataclasses.replace(pool, solutions=unsolved))


def test_it_refuses_a_source_without_condition() -> None:
    pool = review_pool()
    with pytest.raises(BadDesign, match="'oracle'"):
        plans(dataclasses.replace(pool, solutions=(Solved("s", "i0", "oracle", "wolf"),)))


def test_it_refuses_repeats_and_unequal_slots() -> None:
    with pytest.raises(BadDesign, match="repeat = 2"):
        plans(review_pool(check_repeat=2))
    pool = review_pool()
    uneven = (pool.conditions[0], dataclasses.replace(pool.conditions[1], slots=9))
    with pytest.raises(BadDesign, match="c0: 8, c1: 9"):
        plans(dataclasses.replace(pool, conditions=uneven))


@pytest.mark.parametrize("fields", [{"role": "review"}, {"role": "solve", "solutions_from": "x"}])
def test_it_wants_the_solve_study_named_by_reviews_only(fields: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="solutions_from"):
        BlindReviewDesign(**fields)  # type: ignore[arg-type]
