"""Planted effects of advice and of its explanation are found again in the tables of decisions, and none is
found without one. In `make test` over 20 studies, in full over 500.

In each study 30 people per condition decide twice about 20 of 60 items, slot j of every condition about the
same; people and items vary by .6 in log odds of a right first decision (`tests.analysis.advised.planted`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

import numpy as np
import pandas as pd
import pytest

from analysis.reports.assisted_decision.accuracy_and_reliance import (
    AdviceContrast,
    Measure,
    accuracy_rows,
    contrasts,
    decision_rows,
    reliance_rows,
)
from tests.analysis.advised import Habit, advised_facts, planted
from tests.proofs.chance import likely_share
from tests.proofs.scale import Scale

pytestmark = pytest.mark.pure
STUDIES, STUDIES_FULL = 20, 500
"""Of 20 studies likely_share asks that 13 find what 9 in 10 do, and lets 6 err at .06."""
ALPHA = 0.05
NAMES = ("alone", "plain", "marked", "unrelated")
SAME = {name: Habit(changes=0.15) for name in NAMES}
"""No person heeds advice: second decisions differ from first ones by chance alone."""
ADVISED = Habit(takes_right=0.7, takes_wrong=0.3)


def studies(habits: Mapping[str, Habit], seed: int, scale: Scale) -> Iterator[list[AdviceContrast]]:
    facts = advised_facts(tuple(habits))
    for number in range(scale.of(STUDIES, STUDIES_FULL)):
        at = 1_000_000 * scale.seed + 10_000 * seed + number
        rows = decision_rows(planted(habits, people=30, seed=at))
        yield [c for m in MEASURES for c in contrasts(rows, facts, m)]


MEASURES: tuple[Measure, ...] = ("gain", "final")


def found(made: list[AdviceContrast], family: str, measure: str) -> bool:
    """Whether any contrast of a family is told by its corrected p."""
    return any(
        c.p_holm is not None and c.p_holm < ALPHA for c in made if (c.family, c.measure) == (family, measure)
    )


@pytest.mark.long(stays="test_contrasts_are_at_the_declared_accuracy_whatever_the_pool_holds")
def test_without_an_effect_a_family_is_rarely_told(scale: Scale) -> None:
    every = list(studies(SAME, 1, scale))
    for family in ("advice", "explanation"):
        for measure in MEASURES:
            share = float(np.mean([found(made, family, measure) for made in every]))
            print(f"{family}, {measure}: told in {share:.3f} of {len(every)} studies without an effect")
            assert share <= likely_share(0.06, len(every)).high, (family, measure)


@pytest.mark.long(stays="test_contrasts_are_at_the_declared_accuracy_whatever_the_pool_holds")
def test_advice_that_is_heeded_is_found_and_its_interval_holds_the_gain(scale: Scale) -> None:
    """Right advice about a wrong first decision adds what is taken of it; wrong advice takes away."""
    habits = {"alone": Habit(), "plain": ADVISED, "marked": ADVISED}
    every = list(studies(habits, 2, scale))
    truth = gain_of(ADVISED) - gain_of(Habit())
    told = [found(made, "advice", "gain") for made in every]
    results = [made[0].result for made in every]
    held = [r is not None and r.interval is not None and r.interval.holds(truth) for r in results]
    print(f"a gain of {truth:.3f} found in {np.mean(told):.3f}, held by {np.mean(held):.3f} of intervals")
    assert np.mean(told) >= likely_share(0.9, len(every)).low
    assert np.mean(held) >= likely_share(0.93, len(every)).low
    null = float(np.mean([found(made, "explanation", "gain") for made in every]))
    assert null <= likely_share(0.06, len(every)).high, "both take advice alike"


def test_contrasts_are_at_the_declared_accuracy_whatever_the_pool_holds(scale: Scale) -> None:
    """The model is right about 3 in 10 of the items, and of those that people meet about 3 in 4."""
    habits = {"alone": Habit(), "plain": ADVISED}
    facts = advised_facts(tuple(habits))
    truth = gain_of(ADVISED) - gain_of(Habit())
    results = []
    for number in range(count := scale.of(STUDIES, STUDIES_FULL)):
        at = 1_000_000 * scale.seed + 50_000 + number
        rows = decision_rows(planted(habits, people=30, seed=at, right_share=0.3))
        (told,) = contrasts(rows, facts, "gain")
        assert told.result is not None and told.result.interval is not None
        results.append(told.result)
    held = float(np.mean([r.interval is not None and r.interval.holds(truth) for r in results]))
    mean = float(np.mean([r.estimate for r in results]))
    error = float(np.std([r.estimate for r in results]) / np.sqrt(count))
    print(f"a gain of {truth:.3f}: {mean:.3f} on the mean, held by {held:.3f} of intervals")
    assert abs(mean - truth) < 4 * error
    assert held >= likely_share(0.93, count).low


@cache
def very_large(habit: Habit) -> pd.DataFrame:
    """Twenty thousand decisions of one condition, whose mean is off by a fifth of a study's error."""
    return decision_rows(planted({"plain": habit}, people=1000, seed=99, items=2000))


def gain_of(habit: Habit) -> float:
    """The expected gain."""
    return float(very_large(habit)["gain"].mean())


@pytest.mark.long(
    stays="tests/analysis/reports/assisted_decision/test_assisted_report.py::test_reliance_is_that_of_a_table_counted_by_hand"
)
def test_an_explanation_that_tells_right_from_wrong_advice_is_found(scale: Scale) -> None:
    """It raises self-reliance and lowers over-reliance, and nothing else."""
    habits = {
        "alone": Habit(),
        "plain": Habit(takes_right=0.6, takes_wrong=0.9),
        "marked": Habit(takes_right=0.6, takes_wrong=0.0),
    }
    every = list(studies(habits, 3, scale))
    told = [found(made, "explanation", "gain") for made in every]
    print(f"found in {np.mean(told):.3f} of {len(every)} studies")
    assert np.mean(told) >= likely_share(0.8, len(every)).low
    rows = decision_rows(planted(habits, people=60, seed=7))
    by_name = {row.condition.name: row for row in reliance_rows(rows, advised_facts(tuple(habits)))}
    rsr = {name: row.shares["rsr"].told for name, row in by_name.items()}
    assert rsr["plain"] and rsr["marked"] and rsr["plain"].interval and rsr["marked"].interval
    assert rsr["plain"].interval.high < rsr["marked"].interval.low
    rair = {name: row.shares["rair"].told for name, row in by_name.items()}
    assert rair["plain"] and rair["marked"] and rair["plain"].interval and rair["marked"].interval
    assert rair["plain"].interval.high > rair["marked"].interval.low
    d_prime = {name: row.d_prime for name, row in by_name.items()}
    assert d_prime["plain"] and d_prime["marked"]
    assert d_prime["marked"].estimate > d_prime["plain"].estimate


OTHER = pytest.mark.long(stays="test_the_interval_to_the_better_of_both_keeps_its_level")


@pytest.mark.parametrize(
    ("takes_right", "takes_wrong"),
    [pytest.param(0.0, 0.0, marks=OTHER), (0.45, 0.2), pytest.param(0.8, 0.1, marks=OTHER)],
)
def test_the_interval_to_the_better_of_both_keeps_its_level(
    takes_right: float, takes_wrong: float, scale: Scale
) -> None:
    """Also where people and advice are as good as each other, and the better of both is a toss-up."""
    habit = Habit(takes_right, takes_wrong, changes=0.05)
    facts = advised_facts(("plain",))
    rows = very_large(habit)
    truth = float(min((rows["final"] - rows["initial"]).mean(), rows["final"].mean() - 0.75))
    held = []
    for number in range(count := scale.of(STUDIES, STUDIES_FULL)):
        at = 1_000_000 * scale.seed + 40_000 + number
        (row,) = accuracy_rows(decision_rows(planted({"plain": habit}, people=30, seed=at)), facts)
        assert row.over_better is not None and row.over_better.interval is not None
        held.append(row.over_better.interval.holds(truth))
    print(f"takes {takes_right}, {takes_wrong}: {np.mean(held):.3f} hold {truth:.3f}")
    assert np.mean(held) >= likely_share(0.925, count).low
