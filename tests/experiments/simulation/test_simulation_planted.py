"""People who know the answer: the planted accuracy is measured again."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from scipy.stats import binom

from experiments.design.rng import Streams
from experiments.paradigms import get_paradigm
from experiments.paradigms.base import Answer, Plan, PlanCondition, Pool, PoolItem
from experiments.simulation import PEOPLE
from tests.planted import Planted, ideal

pytestmark = pytest.mark.pure

ITEMS = tuple(PoolItem(f"i{n}", ("a", "b")[n % 2], ("a", "b")[n // 2 % 2], 0.9, f"i{n}") for n in range(80))
PREDICTED = {item.key: item.predicted for item in ITEMS}


def plans(slots: int) -> list[Plan]:
    conditions = (PlanCondition("none", "baseline", slots), PlanCondition("map", "method", slots))
    pool = Pool(ITEMS, conditions, (("a", "A"), ("b", "B")), "prediction_x_correct", 2, 3)
    paradigm = get_paradigm("meta_predictor")
    return list(paradigm.plans(paradigm.Design(), pool, Streams(1)))


def hits(plan: Plan, answers: Sequence[Answer], block: int | None = None) -> list[bool]:
    by_position = {answer.position: answer for answer in answers}
    return [
        by_position[t.position].value["choice"] == PREDICTED[t.item or ""]
        for t in plan.trials
        if t.kind == "predict" and not t.check and block in (None, t.block)
    ]


def test_it_is_always_right_as_an_ideal_person() -> None:
    person = ideal(PREDICTED, Streams(4))
    for plan in plans(4):
        answers = person.answers(plan)
        assert [a.position for a in answers] == [t.position for t in plan.trials]
        assert all(hits(plan, answers))
        checks = {t.position: t.expected for t in plan.trials if t.check == "instructed"}
        assert all(a.value["choice"] == checks[a.position] for a in answers if a.position in checks)


def test_it_recovers_the_planted_accuracy_within_binomial_bounds() -> None:
    def accuracy(condition: str, block: int) -> float:
        return {"none": 0.6, "map": 0.75}[condition] + 0.05 * block

    person = Planted(PREDICTED, accuracy, Streams(4))
    cells: dict[tuple[str, int], list[bool]] = {}
    for plan in plans(40):
        answers = person.answers(plan)
        for block in range(3):
            cells.setdefault((plan.condition or "", block), []).extend(hits(plan, answers, block))
    assert len(cells) == 6
    for (condition, block), agreed in cells.items():
        low, high = binom.interval(0.999, len(agreed), accuracy(condition, block))
        assert low <= sum(agreed) <= high, (condition, block)


def test_it_spreads_people_when_asked() -> None:
    def share(sd: float) -> list[float]:
        person = Planted(PREDICTED, lambda condition, block: 0.5, Streams(4), person_sd=sd)
        return [
            sum(matches) / len(matches)
            for plan in plans(30)
            for matches in [hits(plan, person.answers(plan))]
        ]

    alike, spread = share(0.0), share(0.3)
    # Binomial spread alone is sqrt(.25 / 21) = .109; with .3 on top about .32, cut at 0 and 1.
    assert max(alike) - min(alike) < max(spread) - min(spread)
    assert sum(abs(s - 0.5) > 0.3 for s in spread) > 5 * max(1, sum(abs(s - 0.5) > 0.3 for s in alike))


def test_it_answers_alike_from_the_same_seed() -> None:
    plan = plans(1)[0]
    planted = Planted(PREDICTED, lambda condition, block: 0.5, Streams(4))
    assert planted.answers(plan) == Planted(PREDICTED, planted.accuracy, Streams(4)).answers(plan)
    assert planted.answers(plan) != Planted(PREDICTED, planted.accuracy, Streams(5)).answers(plan)


def test_it_stays_out_of_the_registry() -> None:
    assert not set(PEOPLE) & {"planted", "ideal"}
