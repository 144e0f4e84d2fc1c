"""The table of cells: counted again on plans that are made by hand, and on those of whole paradigms."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from crowd.study_check.prediction_cells import cell_rows
from experiments.design.rng import Streams
from experiments.paradigms import get_paradigm
from experiments.paradigms.base import Plan, Pool
from tests.experiments.pools import make_pool, review_pool

pytestmark = pytest.mark.pure


def planned(paradigm: str, pool: Pool, **design: Any) -> list[Plan]:
    protocol = get_paradigm(paradigm)
    return list(protocol.plans(protocol.Design(**design), pool, Streams(1)))


@pytest.mark.parametrize("assignment", ["between", "square"])
def test_it_counts_each_cell_of_the_pool_the_plans_and_a_session(assignment: str) -> None:
    pool = make_pool(120, slots=18)
    plans = planned("reverse_turing", pool, train_items=9, test_items=5, assignment=assignment)
    cell = {item.key: (item.predicted, "right" if item.correct else "wrong") for item in pool.items}
    for label, mark, have, shown, train, test in cell_rows(plans, pool):
        assert have == 30
        used = {t.item for p in plans for t in p.trials if t.item and cell[t.item] == (label, mark)}
        assert shown == len(used) and 3 * 14 // 4 <= shown <= 3 * 14 // 4 + 1
        for phase, said in (("train", train), ("test", test)):
            counts = set()
            for plan in plans:
                for condition in {t.condition for t in plan.trials}:
                    met = Counter(
                        cell[t.item]
                        for t in plan.trials
                        if t.item and t.phase == phase and not t.check and t.condition == condition
                    )
                    counts.add(met[label, mark])  # fmt: skip
            assert said == (f"{min(counts)} to {max(counts)}" if len(counts) > 1 else str(counts.pop()))


def test_without_training_and_without_a_cell_it_says_so() -> None:
    """A pool of wrong predictions alone has no row for right ones."""
    pool = make_pool(80, slots=6, check_repeat=0, balance="prediction")
    wrong = tuple(item for item in pool.items if not item.correct)
    plans = planned("reverse_turing", make_pool(items=wrong, slots=6, check_repeat=0, balance="prediction"),
                    train_items=0, test_items=4)  # fmt: skip
    rows = cell_rows(plans, make_pool(items=wrong, slots=6))
    assert [row[:2] for row in rows] == [("husky", "wrong"), ("wolf", "wrong")]
    assert [row[4:] for row in rows] == [("0", "2"), ("0", "2")]


def test_there_is_none_where_nobody_is_asked_for_the_model_s_answer() -> None:
    pool = make_pool(30, check_repeat=0)
    assert cell_rows(planned("rating", pool), pool) == []
    pool = review_pool()
    assert cell_rows(planned("blind_review", pool, solutions_from="tasks"), pool) == []
