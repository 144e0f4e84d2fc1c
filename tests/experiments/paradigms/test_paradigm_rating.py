"""k distinct raters per explanation, by construction; copies, anchors, subsets and pages that coincide."""

from __future__ import annotations

import tracemalloc
from collections import Counter, defaultdict
from dataclasses import replace
from typing import Any

import pytest

from crowd.study_check.stimulus_exposures import exposures
from experiments.design.rng import Streams
from experiments.kinds import get_kind
from experiments.paradigms.base import BadDesign, NotEnoughItems, Plan, Pool
from experiments.paradigms.rating import QUESTIONS, Rating, RatingDesign
from tests.experiments.pools import make_pool
from tests.oracles import pasta
from tests.proofs.scale import Scale

pytestmark = pytest.mark.pure


def plans(pool: Pool, seed: int = 1, **design: Any) -> list[Plan]:
    return list(Rating().plans(RatingDesign(**design), pool, Streams(seed)))


def pool(count: int = 30, **fields: Any) -> Pool:
    return make_pool(count, check_repeat=0, **fields)


def copied(count: int = 30, **fields: Any) -> Pool:
    """A pool in which every explanation has both copies, but i0 no light and i1 no strong one."""
    copies = {
        (f"i{n}", condition, aim): f"{aim}~i{n}"
        for n in range(count)
        for condition in ("c1", "c2")
        for aim in ("light", "strong")
        if (n, aim) not in {(0, "light"), (1, "strong")}
    }
    return pool(count, copies=copies, **fields)


def rated(all_plans: list[Plan], *, anchors: bool = False) -> Counter[tuple[Any, str, str]]:
    """How often each (item, condition) is asked each question, anchors or all others."""
    return Counter(
        (trial.item, trial.condition, question)
        for plan in all_plans
        for trial in plan.trials
        if not trial.check and bool(trial.extra.get("anchor")) == anchors
        for question in trial.extra["questions"]
    )


@pytest.mark.parametrize("questions", ["together", "split"])
@pytest.mark.parametrize("raters", [1, 3, 5])
@pytest.mark.parametrize("anchors", [0, 3])
def test_it_has_each_explanation_rated_by_k_people(questions: str, raters: int, anchors: int) -> None:
    """A question is asked k times of every explanation that has what it compares with, in k lanes."""
    all_plans = plans(copied(), raters_per_explanation=raters, questions=questions, anchors=anchors)
    lanes: dict[Any, set[str]] = defaultdict(set)
    repeated = {unit[:2] for unit in rated(all_plans, anchors=True)}
    assert len(repeated) == anchors
    for plan in all_plans:
        for trial in plan.trials:
            if trial.check or trial.extra.get("anchor"):
                continue
            for question in trial.extra["questions"]:
                key = (trial.item, trial.condition, question)
                assert plan.lane not in lanes[key], "one lane, hence one person, would rate it twice"
                lanes[key].add(plan.lane)
    expected = {
        (f"i{n}", condition, question)
        for n in range(30)
        for condition in ("c1", "c2")
        for question in QUESTIONS
        if (n, question) not in {(0, "q5"), (1, "q6")} and (f"i{n}", condition) not in repeated
    }
    assert {key: len(names) for key, names in lanes.items()} == dict.fromkeys(expected, raters)


def test_it_asks_no_question_without_the_copy_that_it_compares_with() -> None:
    """Nothing else of the explanation is left out."""
    for plan in plans(copied(), raters_per_explanation=1):
        for trial in plan.trials:
            if trial.check:
                continue
            gap = {"i0": "q5", "i1": "q6"}.get(str(trial.item))
            assert trial.extra["questions"] == [name for name in QUESTIONS if name != gap]
            pairs = {"q5": ["", "light"], "q6": ["", "strong"]}
            assert trial.extra["pairs"] == {name: pair for name, pair in pairs.items() if name != gap}
            aims = {pair[1] for pair in trial.extra["pairs"].values()}
            assert trial.others == {aim: (f"{aim}~{trial.item}", trial.condition) for aim in aims}
    without = rated(plans(pool(), raters_per_explanation=1))
    assert {question for *_, question in without} == set(QUESTIONS[:4])


def test_it_counts_copies_apart_from_what_is_rated() -> None:
    shown = exposures(plans(copied(), raters_per_explanation=2))
    assert len(shown.test) == 60 and set(shown.test.values()) == {2}
    assert len(shown.copies) == 29 * 2 * 2 and set(shown.copies.values()) == {2}
    assert not shown.test.keys() & shown.copies.keys()


def test_it_says_what_the_explained_answer_is() -> None:
    """The answer of the condition's own model."""
    said = {("i3", "c1"): "fox"}
    labels = {
        (str(trial.item), trial.condition): trial.label
        for plan in plans(pool(predictions=said), raters_per_explanation=1)
        for trial in plan.trials
        if not trial.check
    }
    of_item = {item.key: item.predicted for item in pool().items}
    assert labels == {key: said.get(key, of_item[key[0]]) for key in labels} and len(labels) == 60


def test_it_holds_lists_to_their_length() -> None:
    for plan in plans(pool(), list_length=20, anchors=4):
        trials = [t for t in plan.trials if not t.check]
        assert len([t for t in trials if "anchor" not in t.extra]) in (18, 19)
        assert len([t for t in trials if "anchor" in t.extra]) == 4


def test_it_shows_an_image_once_per_list_where_it_can() -> None:
    for plan in plans(pool(), list_length=10):
        shown = [t.item for t in plan.trials if t.item]
        assert len(set(shown)) == len(shown)


def test_it_deals_other_lists_in_every_round() -> None:
    lists = {frozenset((t.item, t.condition) for t in plan.trials if t.item) for plan in plans(pool())}
    assert len(lists) == len(plans(pool())) == 15


def test_split_studies_ask_one_question_per_list() -> None:
    for plan in plans(pool(), questions="split"):
        assert len({tuple(t.extra["questions"]) for t in plan.trials if not t.check}) == 1
        assert len(plan.trials[0].extra["questions"]) == 1


# The order of the questions


def test_each_person_meets_the_questions_in_an_order_of_their_own() -> None:
    """The same on every page and in every session; what is left out on a page moves no other question."""
    kind = get_kind("rate")
    trials = [t for plan in plans(copied()) for t in plan.trials if not t.check]
    orders = {}
    for person in map(str, range(40)):
        seen = [list(kind.seen_by(t.view(), person, Streams(1)).extra["questions"]) for t in trials]
        whole = next(order for order in seen if len(order) == 6)
        orders[person] = tuple(whole)
        for trial, order in zip(trials, seen, strict=True):
            assert order == [name for name in whole if name in trial.extra["questions"]]
    assert len(set(orders.values())) > 30
    first = Counter(order[0] for order in orders.values())
    assert set(first) == set(QUESTIONS) and max(first.values()) < 20


def test_lists_of_before_keep_their_own_order() -> None:
    """Studies that opened when the order was drawn per list have it in the plan."""
    trial = plans(pool())[0].trials[0].view()
    old = {"questions": ["q3", "q1", "q2"]}
    seen = get_kind("rate").seen_by(_with(trial, old), "p", Streams(1))
    assert seen.extra["questions"] == old["questions"]


def _with(trial: Any, extra: dict[str, Any]) -> Any:
    return replace(trial, extra=extra)


# Which explanations are rated


def test_it_rates_the_explanations_listed_and_no_others() -> None:
    listed = (("i1", "c1"), ("i1", "c2"), ("i7", "c0"))
    all_plans = plans(pool(explanations=listed), raters_per_explanation=1)
    assert sorted((t.item, t.condition) for plan in all_plans for t in plan.trials if t.item) == list(listed)


def many(items: int, conditions: int, **fields: Any) -> Pool:
    named = tuple((f"i{n}", f"c{c}") for n in range(items) for c in range(1, conditions + 1))
    return pool(items, conditions=conditions + 1, explanations=named, **fields)


@pytest.mark.parametrize(("conditions", "per_item"), [(46, 21), (7, 3), (5, 5), (9, 1)])
def test_it_draws_so_many_explanations_of_each_item(conditions: int, per_item: int) -> None:
    """Every condition as often as any other, to within one; in all rounds the same."""
    drawn = rated(plans(many(40, conditions), per_item, explanations_per_item=per_item, asked=["q1"]))
    assert set(drawn.values()) == {5}
    assert set(Counter(item for item, *_ in drawn).values()) == {per_item}
    times = Counter(condition for _, condition, _ in drawn)
    assert len(times) == min(conditions, 40 * per_item)
    assert max(times.values()) - min(times.values()) <= 1


def test_it_draws_other_explanations_from_another_seed() -> None:
    first, second = (rated(plans(many(20, 8), seed, explanations_per_item=3)) for seed in (1, 2))
    assert first.keys() != second.keys() and len(first) == len(second)


def test_it_rates_pages_that_coincide_once() -> None:
    """c2 and c3 are the same page on i4: c2 is rated, and takes no place of another explanation of i4."""
    shared = {("i4", "c3"): "c2"}
    drawn = rated(plans(many(10, 4, shared=shared), explanations_per_item=3, asked=["q1"]))
    assert ("i4", "c3", "q1") not in drawn
    assert {condition for item, condition, _ in drawn if item == "i4"} == {"c1", "c2", "c4"}


def test_anchors_are_the_same_in_every_list_and_spread_over_conditions() -> None:
    all_plans = plans(many(20, 6), anchors=8, list_length=10, asked=["q1", "q2"])
    repeated = rated(all_plans, anchors=True)
    assert set(repeated.values()) == {len(all_plans)}
    units = {(item, condition) for item, condition, _ in repeated}
    assert len(units) == 8
    assert set(Counter(condition for _, condition in units).values()) == {1, 2}
    assert not units & {(item, condition) for item, condition, _ in rated(all_plans)}
    places = {tuple(t.position for t in plan.trials if t.extra.get("anchor")) for plan in all_plans}
    assert len(places) > len(all_plans) / 2, "they stand at other places in other lists"


@pytest.mark.parametrize(
    ("error", "message", "fields", "design"),
    [
        (BadDesign, "'c9'", {"explanations": (("i1", "c9"),)}, {}),
        (BadDesign, "repeat = 1", {"check_repeat": 1}, {}),
        (NotEnoughItems, "0 conditions", {"conditions": 1}, {}),
        (BadDesign, "anchors = 50, and there are 4 explanations", {"count": 2}, {"anchors": 50}),
        (NotEnoughItems, "none of 4 explanations is left beside 4 anchors", {"count": 2}, {"anchors": 4}),
        (NotEnoughItems, "none has the copy", {}, {"asked": ["q5", "q6"]}),
        (BadDesign, "'clear' is not PASTA's and has no", {}, {"asked": ["clear"]}),
    ],
)
def test_it_refuses_what_it_cannot_rate(
    error: type[ValueError], message: str, fields: Any, design: dict[str, Any]
) -> None:
    with pytest.raises(error, match=message):
        plans(make_pool(**({"count": 30, "check_repeat": 0} | fields)), **design)


@pytest.mark.long(stays="test_it_rates_the_explanations_that_the_design_names_alone")
def test_it_plans_the_published_size_in_bounded_memory(scale: Scale) -> None:
    """About 21,100 explanations, 5 raters each: 633,000 answers to six questions; a fifth of them, and all in
    the full proof. The plans are made one by one, so that what is held at a time grows with
    the explanations, and neither with rounds nor questions."""
    pictures = scale.of(201, 1005)
    count = 21 * pictures
    big = many(pictures, 46)
    copies = {
        (item.key, condition.name, aim): f"{aim}~{item.key}"
        for item in big.items
        for condition in big.conditions
        for aim in ("light", "strong")
    }
    big = replace(big, copies=copies)
    asked: dict[str, Any] = {"explanations_per_item": 21, "anchors": 5}
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    answers, lists, explanations = 0, 0, Counter[str]()
    for plan in Rating().plans(RatingDesign(**asked), big, Streams(5)):
        lists += 1
        for trial in plan.trials:
            if not trial.check and "anchor" not in trial.extra:
                answers += len(trial.extra["questions"])
                explanations[plan.lane] += 1
    peak = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    assert set(explanations.values()) == {count} and len(explanations) == 5
    assert answers == 5 * count * 6 > pasta.RATINGS * pictures / 1005
    assert lists == 5 * -(-count // 20)
    assert peak < 2_850 * count, f"{peak / 1e6:.0f} MB"


def test_it_rates_the_explanations_that_the_design_names_alone() -> None:
    named = [["i3", "c1"], ["i3", "c2"], ["i7", "c2"]]
    drawn = rated(plans(copied(), explanations=named, raters_per_explanation=4, asked=["q1"]))
    assert drawn == {(item, condition, "q1"): 4 for item, condition in named}
    with pytest.raises(BadDesign, match=r"names \['i99', 'c1'\], and 1 of 4 are none of the study's"):
        plans(copied(), explanations=[*named, ["i99", "c1"]])
