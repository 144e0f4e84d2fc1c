"""k distinct raters per explanation, by construction."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import pytest

from experiments.design.rng import Streams
from experiments.paradigms.base import BadDesign, NotEnoughItems, Plan, Pool
from experiments.paradigms.rating import QUESTIONS, Rating, RatingDesign
from tests.experiments.pools import make_pool

pytestmark = pytest.mark.pure


def plans(pool: Pool, seed: int = 1, **design: Any) -> list[Plan]:
    return list(Rating().plans(RatingDesign(**design), pool, Streams(seed)))


def pool(count: int = 30, **fields: Any) -> Pool:
    return make_pool(count, check_repeat=0, **fields)


@pytest.mark.parametrize("questions", ["together", "split"])
@pytest.mark.parametrize("raters", [1, 3, 5])
def test_it_has_each_explanation_rated_by_k_people(questions: str, raters: int) -> None:
    all_plans = plans(pool(), raters_per_explanation=raters, questions=questions)
    lanes: dict[Any, set[str]] = defaultdict(set)
    times: Counter[Any] = Counter()
    for plan in all_plans:
        for trial in plan.trials:
            for question in [] if trial.check else trial.extra["questions"]:
                rated = (trial.item, trial.condition, question)
                assert plan.lane not in lanes[rated], "one lane, hence one person, would rate it twice"
                lanes[rated].add(plan.lane)
                times[rated] += 1
    assert len(times) == 30 * 2 * 6 and set(times.values()) == {raters}


def test_it_holds_lists_to_their_length() -> None:
    for plan in plans(pool(), list_length=20):
        assert len([t for t in plan.trials if not t.check]) == 20


def test_it_shows_an_image_once_per_list_where_it_can() -> None:
    for plan in plans(pool(), list_length=10):
        shown = [t.item for t in plan.trials if t.item]
        assert len(set(shown)) == len(shown)


def test_it_deals_other_lists_in_every_round() -> None:
    lists = {frozenset((t.item, t.condition) for t in plan.trials if t.item) for plan in plans(pool())}
    assert len(lists) == len(plans(pool())) == 15


def test_it_orders_the_questions_per_list_or_asks_one() -> None:
    together = [plan.trials[0].extra["questions"] for plan in plans(pool())]
    assert all(sorted(asked) == list(QUESTIONS) for asked in together)
    assert len({tuple(asked) for asked in together}) > 5
    for plan in plans(pool(), questions="split"):
        assert len({tuple(t.extra["questions"]) for t in plan.trials if not t.check}) == 1
        assert len(plan.trials[0].extra["questions"]) == 1


def test_it_rates_the_explanations_listed_and_no_others() -> None:
    listed = (("i1", "c1"), ("i1", "c2"), ("i7", "c0"))
    all_plans = plans(pool(explanations=listed), raters_per_explanation=1)
    assert sorted((t.item, t.condition) for plan in all_plans for t in plan.trials if t.item) == list(listed)


@pytest.mark.parametrize(
    ("error", "message", "fields"),
    [
        (BadDesign, "'c9'", {"explanations": (("i1", "c9"),)}),
        (BadDesign, "repeat = 1", {"check_repeat": 1}),
        (NotEnoughItems, "0 conditions", {"conditions": 1}),
    ],
)
def test_it_refuses_what_it_cannot_rate(error: type[ValueError], message: str, fields: Any) -> None:
    with pytest.raises(error, match=message):
        plans(make_pool(30, **({"check_repeat": 0} | fields)))
