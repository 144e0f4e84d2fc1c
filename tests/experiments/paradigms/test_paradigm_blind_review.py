"""Two stages: lists to solve, then counterbalanced reviews with and without explanations."""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from itertools import product
from typing import Any

import pytest

from experiments.design.rng import Streams
from experiments.kinds.scoring import score
from experiments.kinds.solve import CANNOT_SAY
from experiments.paradigms.base import BadDesign, NotEnoughItems, Plan, PlannedTrial, PlanSolution, Pool
from experiments.paradigms.blind_review import BlindReview, BlindReviewDesign
from tests.experiments.pools import review_pool, stage_pool, view

pytestmark = pytest.mark.pure

PEOPLE = "c0"
LEADS = 64


def plans(pool: Pool, seed: int = 1, **design: Any) -> list[Plan]:
    if design.get("role") != "solve":
        design.setdefault("solutions_from", "plates-solve")
    return list(BlindReview().plans(BlindReviewDesign(**design), pool, Streams(seed)))


def reviews(plan: Plan, *uses: str) -> list[PlannedTrial]:
    """The reviews of a plan: all, or those of these uses."""
    return [t for t in plan.trials if t.kind == "review" and (not uses or t.extra["use"] in uses)]


def solves(plan: Plan) -> list[PlannedTrial]:
    return [trial for trial in plan.trials if trial.kind == "solve"]


# Solving


def test_it_has_every_task_solved_as_often_as_asked() -> None:
    for times in (1, 3):
        all_plans = plans(stage_pool(50), role="solve", solutions_per_task=times)
        tasks = [t.item for plan in all_plans for t in solves(plan) if t.extra["use"] == "task"]
        solved = Counter(tasks)
        assert len(all_plans) == 3 * times and set(solved.values()) == {times} and len(solved) == 50
        for lane in {plan.lane for plan in all_plans}:
            assert lane.startswith("expert")
            in_lane = [t.item for plan in all_plans if plan.lane == lane for t in solves(plan)]
            assert len(set(in_lane)) == len(in_lane) == 50 + 3 * 2, "no task twice, known ones neither"


def test_each_list_has_known_tasks_of_its_own_among_the_others() -> None:
    places = []
    for plan in plans(stage_pool(50), role="solve"):
        known = [t for t in solves(plan) if t.extra["use"] == "known"]
        assert len(known) == 2
        for trial in known:
            assert trial.right is None and trial.extra["truth"] in {"husky", "wolf"}
            places.append(trial.position / len(plan.trials))
    assert len(set(places)) > 3 and min(places) < 0.4 and max(places) > 0.6


def test_a_known_task_carries_the_cells_of_its_figure_and_no_other_task_does() -> None:
    pool = stage_pool(20)
    items = tuple(dataclasses.replace(item, planted=(1, 2)) for item in pool.items)
    for plan in plans(dataclasses.replace(pool, items=items), role="solve"):
        for trial in solves(plan):
            assert trial.extra.get("planted") == ([1, 2] if trial.extra["use"] == "known" else None)


def test_tuning_tasks_are_solved_and_score_nothing() -> None:
    pool = stage_pool(20)
    items = (dataclasses.replace(pool.items[0], use="tuning"), *pool.items[1:])
    trials = [t for plan in plans(dataclasses.replace(pool, items=items), role="solve") for t in solves(plan)]
    [tuning] = [t for t in trials if t.extra["use"] == "tuning"]
    assert tuning.item == "i0" and tuning.right is None
    assert not {t.item for t in trials} & {item.key for item in items if item.use == "blank"}


def test_it_asks_people_alone_to_solve() -> None:
    assert {t.condition for plan in plans(stage_pool(methods=2), role="solve") for t in plan.trials} == {
        PEOPLE
    }


def test_it_lets_a_solver_say_that_nothing_can_be_seen() -> None:
    digits = tuple((str(n), str(n)) for n in range(10))
    choices = solves(plans(stage_pool(choices=digits), role="solve")[0])[0].choices
    assert [c.key for c in choices] == [*"0123456789", "x"]
    assert choices[-1].value == CANNOT_SAY


def test_it_says_how_many_known_tasks_are_missing() -> None:
    with pytest.raises(NotEnoughItems, match=r"needs 3 known tasks in each of 3 lists.* there are 5 in all"):
        plans(stage_pool(50, known=5), role="solve", known_per_list=3)
    assert plans(stage_pool(50, known=0), role="solve", known_per_list=0)


def test_it_wants_one_condition_in_which_people_solve() -> None:
    pool = stage_pool(20)
    both = tuple(dataclasses.replace(condition, role="source") for condition in pool.conditions)
    with pytest.raises(BadDesign, match="has 2 such conditions and 20 tasks"):
        plans(dataclasses.replace(pool, conditions=both), role="solve")


# Reviewing: what one lead meets


def test_it_gives_each_lead_two_runs_of_different_tasks() -> None:
    for plan in plans(review_pool(slots=16)):
        shown = reviews(plan)
        assert plan.lane == "lead" and plan.condition is None
        assert len({t.item for t in shown}) == len(shown) == 2 * (20 + 4 + 2) + 2
        assert Counter((t.block, t.explained) for t in shown).keys() in (
            {(0, True), (1, False)},
            {(0, False), (1, True)},
        )
        for block in (0, 1):
            run = [t for t in shown if t.block == block]
            counts = Counter(t.extra["use"] for t in run)
            alone = {"alone": 2} if run[0].explained else {}
            assert counts == {"task": 20, "lure": 4, "known": 2} | alone


def test_it_draws_both_sources_equally_in_every_run() -> None:
    for plan in plans(review_pool()):
        assert set(Counter((t.block, t.condition) for t in reviews(plan, "task")).values()) == {10}
        for use, each in (("lure", 2), ("known", 1)):
            assert set(Counter((t.block, t.condition) for t in reviews(plan, use)).values()) == {each}
        assert sorted(t.condition for t in reviews(plan, "alone")) == ["c0", "c1"]


def test_people_have_one_half_and_the_methods_of_the_model_share_the_other() -> None:
    for plan in plans(review_pool(methods=2, slots=16)):
        for block in (0, 1):
            counts = Counter(t.condition for t in reviews(plan, "task") if t.block == block)
            assert counts == {"c0": 10, "c1": 5, "c2": 5}


def test_a_run_has_a_right_and_a_wrong_known_task_of_both_sources() -> None:
    for plan in plans(review_pool(slots=16)):
        for block in (0, 1):
            known = [t for t in reviews(plan, "known") if t.block == block]
            assert {t.condition for t in known} == {"c0", "c1"}
            assert sorted(t.extra["value"] == t.extra["truth"] for t in known) == [False, True]


def test_it_carries_the_solution_that_it_shows() -> None:
    pool = review_pool(by_people=2)
    texts, items = dict(pool.choices), {item.key: item for item in pool.items}
    solutions = {s.key: s for s in pool.solutions}
    uses = {"task": "solution", "lure": "lure", "alone": "alone"}
    for plan in plans(pool):
        for trial in reviews(plan):
            solved, extra = solutions[trial.extra["solution"]], trial.extra
            assert trial.variant == solved.key
            assert (trial.item, trial.condition, extra["value"]) == (
                solved.item,
                solved.source,
                solved.choice,
            )
            assert extra["answer"] == texts[solved.choice] and extra["truth"] == items[solved.item].truth
            assert extra["use"] == "known" or solved.use == uses[extra["use"]]
            expected = {"task": "task", "lure": "task", "known": "known", "alone": "blank"}
            assert items[solved.item].use == expected[extra["use"]]


def test_it_words_a_solution_without_answer_later() -> None:
    """The plan knows no language; the page says it in the study's words."""
    pool = review_pool()
    mute = tuple(s._replace(choice=CANNOT_SAY) if s.use == "solution" else s for s in pool.solutions)
    shown = reviews(plans(dataclasses.replace(pool, solutions=mute), known_per_run=0)[0], "task")
    assert {(t.extra["value"], t.extra["answer"]) for t in shown} == {(CANNOT_SAY, "")}


def test_the_uses_stand_at_drawn_places() -> None:
    """The first and the last third of a run have as many lures and known tasks as the middle, over leads."""
    thirds: Counter[int] = Counter()
    for plan in plans(review_pool(slots=LEADS)):
        for block in (0, 1):
            run = [t for t in reviews(plan) if t.block == block]
            thirds.update(3 * at // len(run) for at, t in enumerate(run) if t.extra["use"] != "task")
    share = thirds.total() / 3
    assert all(abs(thirds[third] - share) < 4 * share**0.5 for third in range(3))


def test_it_never_shows_two_items_of_one_group() -> None:
    pool = review_pool(120, known=24, blank=16)
    paired = tuple(dataclasses.replace(item, group=f"g{place // 2}") for place, item in enumerate(pool.items))
    groups = {item.key: item.group for item in paired}
    for plan in plans(dataclasses.replace(pool, items=paired, solutions=pool.solutions)):
        shown_groups = [groups[t.item] for t in reviews(plan) if t.item]
        assert len(set(shown_groups)) == len(shown_groups)


# Reviewing: balance over leads


def test_it_crosses_task_source_explanation_and_run_over_eight_leads() -> None:
    all_plans = plans(review_pool(slots=8))
    assert len({plan.arm for plan in all_plans}) == 8
    for use, items in (("task", 40), ("lure", 8)):
        seen: dict[str | None, Counter[Any]] = defaultdict(Counter)
        for plan in all_plans:
            for trial in reviews(plan, use):
                seen[trial.item][trial.condition, trial.explained, trial.block] += 1
        assert len(seen) == items
        for counts in seen.values():
            assert len(counts) == 8 and set(counts.values()) == {1}


@pytest.mark.parametrize("methods", [1, 2])
def test_in_64_leads_every_task_and_source_stands_equally_often_in_both_runs(methods: int) -> None:
    """Exactly within whole rounds; and tasks differ by one round at most, when a lure has to stand aside."""
    pool = review_pool(48, by_people=3, methods=methods, slots=LEADS)
    per_round = 8 * methods
    for use in ("task", "lure"):
        counts: Counter[Any] = Counter()
        for plan in plans(pool):
            for t in reviews(plan, use):
                counts[t.item, t.condition, t.block, t.explained] += 1
        tasks = [item.key for item in pool.items if item.use == "task"]
        for task, source in product(tasks, (c.name for c in pool.conditions)):
            cells = {counts[task, source, block, shown] for block in (0, 1) for shown in (True, False)}
            assert len(cells) == 1, "both runs, with and without explanation"
        rounds = {task: sum(counts[task, PEOPLE, b, e] for b in (0, 1) for e in (0, 1)) for task in tasks}
        assert max(rounds.values()) - min(rounds.values()) <= per_round // 2
        for task, method in product(tasks, (c.name for c in pool.conditions if c.name != PEOPLE)):
            times = sum(counts[task, method, block, shown] for block in (0, 1) for shown in (0, 1))
            assert times * methods == rounds[task], "people have one half, each method its part of the other"


def test_without_lures_every_task_stands_exactly_equally_often() -> None:
    counts: Counter[Any] = Counter()
    for plan in plans(review_pool(40, by_people=3, slots=LEADS), lures_per_run=0):
        counts.update((t.item, t.condition, t.block, t.explained) for t in reviews(plan, "task"))
    assert len(counts) == 40 * 2 * 2 * 2 and set(counts.values()) == {8}


def test_of_several_solutions_each_is_shown_equally_often_in_both_runs() -> None:
    """P21: three expert solutions per task were shown 2 to 9 times, and nine of 120 never in both runs."""
    pool = review_pool(40, by_people=3, slots=LEADS)
    total: Counter[str] = Counter()
    run: Counter[tuple[str, int]] = Counter()
    for plan in plans(pool, lures_per_run=0):
        for trial in reviews(plan, "task"):
            if trial.condition == PEOPLE:
                total[trial.variant] += 1
                run[trial.variant, trial.block] += 1
    by_people = [s.key for s in pool.solutions if s.source == PEOPLE and s.use == "solution"]
    of_tasks = [key for key in by_people if key in total]
    assert len(of_tasks) == 120 and sum(total.values()) == LEADS * 20
    assert {total[key] for key in of_tasks} == {10, 11}
    assert {run[key, block] for key in of_tasks for block in (0, 1)} == {5, 6}


def test_controls_are_spread_over_items_sources_and_runs() -> None:
    pool = review_pool(48, slots=LEADS, known=12, blank=8)
    for use, items in (("known", 12), ("alone", 8)):
        shown = [t for plan in plans(pool) for t in reviews(plan, use)]
        per_item = Counter(t.item for t in shown)
        assert len(per_item) == items and max(per_item.values()) - min(per_item.values()) <= 1
        sources = Counter((t.condition, t.block) for t in shown)
        assert max(sources.values()) - min(sources.values()) <= 1


def test_a_pool_of_more_tasks_is_used_up_evenly() -> None:
    pool = review_pool(71, slots=LEADS)
    counts = Counter(t.item for plan in plans(pool) for t in reviews(plan, "task"))
    assert len(counts) == 71 and max(counts.values()) - min(counts.values()) <= 8


def test_it_follows_the_paper_where_asked() -> None:
    all_plans = plans(review_pool(), order="paper")
    for plan in all_plans:
        assert all(trial.explained == (trial.block == 1) for trial in reviews(plan))
    assert len({plan.arm for plan in all_plans}) == 4


# One run without explanations


def test_a_single_run_shows_no_explanation_and_no_blank_item() -> None:
    for plan in plans(review_pool(by_people=3), solutions_from="labels", runs=1):
        shown = reviews(plan)
        assert {(t.block, t.explained) for t in shown} == {(0, False)}
        assert Counter(t.extra["use"] for t in shown) == {"task": 20, "lure": 4, "known": 2}
        assert Counter(t.condition for t in shown if t.extra["use"] == "task") == {"c0": 10, "c1": 10}


def test_one_annotator_s_label_stands_for_a_task_and_all_of_them_equally_often() -> None:
    pool = review_pool(24, by_people=3, slots=24)
    total: Counter[str] = Counter()
    for plan in plans(pool, solutions_from="labels", runs=1):
        people = [t for t in reviews(plan, "task") if t.condition == PEOPLE]
        assert len({t.item for t in people}) == len(people)
        total.update(t.variant for t in people)
    per_task: dict[str, list[int]] = defaultdict(list)
    for key, count in total.items():
        per_task[key.split("/")[0]].append(count)
    assert all(max(counts) - min(counts) <= 1 for counts in per_task.values())


# Scores and refusals


def test_it_scores_solutions_and_never_acceptance() -> None:
    pool = review_pool()
    review = view(reviews(plans(pool)[0])[0], pool)
    assert score(review, {"accept": True}) is None and score(review, {"accept": False}) is None
    solve = next(t for t in solves(plans(stage_pool(), role="solve")[0]) if t.extra["use"] == "task")
    seen = view(solve, stage_pool())
    assert score(seen, {"choice": seen.truth, "region": [3]}) == 1.0
    assert score(seen, {"choice": CANNOT_SAY}) == 0.0


def test_it_says_when_too_few_tasks_are_solved_by_all() -> None:
    pool = review_pool(60)
    unsolved = tuple(
        s for s in pool.solutions if s.source == PEOPLE or s.use == "lure" or int(s.item[1:]) < 30
    )
    with pytest.raises(NotEnoughItems, match=r"needs 40 tasks .* beside 8 others, there are 22: ask for few"):
        plans(dataclasses.replace(pool, solutions=unsolved))


def test_it_says_when_tasks_are_too_few_for_two_runs() -> None:
    assert plans(review_pool(26), solutions_from="labels", runs=1)
    with pytest.raises(
        NotEnoughItems, match=r"needs 40 tasks of different groups per session.* there are 18"
    ):
        plans(review_pool(26))


def test_it_says_which_controls_are_missing() -> None:
    with pytest.raises(NotEnoughItems, match=r"needs more known tasks, with a (right answer|lure) of c[01]"):
        plans(review_pool(known=3))
    with pytest.raises(NotEnoughItems, match=r"needs more blank items, with a region of c[01]"):
        plans(review_pool(blank=1))
    assert plans(review_pool(known=0, blank=0), known_per_run=0, alone_per_run=0)


def test_it_refuses_a_source_without_condition_and_a_condition_without_solutions() -> None:
    pool = review_pool()
    with pytest.raises(BadDesign, match="'oracle'"):
        plans(dataclasses.replace(pool, solutions=(PlanSolution("s", "i0", "oracle", "wolf"),)))
    alone = tuple(s for s in pool.solutions if s.source == PEOPLE)
    with pytest.raises(BadDesign, match="there are no solutions of c1: freeze a stage that has this source"):
        plans(dataclasses.replace(pool, solutions=alone))


def test_it_refuses_repeats_unequal_slots_and_people_alone() -> None:
    with pytest.raises(BadDesign, match="repeat = 2"):
        plans(dataclasses.replace(review_pool(), check_repeat=2))
    pool = review_pool()
    uneven = (pool.conditions[0], dataclasses.replace(pool.conditions[1], slots=9))
    with pytest.raises(BadDesign, match="c0: 8, c1: 9"):
        plans(dataclasses.replace(pool, conditions=uneven))
    with pytest.raises(BadDesign, match="has 1 conditions of role source and 0 others"):
        plans(dataclasses.replace(pool, conditions=pool.conditions[:1]))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"role": "review"}, "solutions_from"),
        ({"role": "solve", "solutions_from": "x"}, "solutions_from"),
        ({"solutions_from": "labels"}, "no regions to show"),
        ({"solutions_from": "x", "runs": 3}, "runs"),
        ({"solutions_from": "x", "margin": 0}, "margin"),
    ],
)
def test_it_refuses_designs_that_contradict_themselves(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        BlindReviewDesign(**fields)
