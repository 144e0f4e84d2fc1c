"""Power of the planned comparison of two methods' ratings: against a closed form, and against whole studies
of ratings that the report analyses."""

from __future__ import annotations

import numpy as np
import pytest
from statsmodels.stats.power import TTestPower

from analysis.ratings import rating_rows
from analysis.reports.rating.method_means import pairs
from analysis.stats.intervals_and_checks import StatsError
from analysis.stats.planning.rating_power import EFFECTS, PairPower, pair_power
from tests.analysis.rated import planted, rating_facts
from tests.proofs.chance import likely_share

pytestmark = pytest.mark.pure


@pytest.mark.parametrize("items", [20, 40])
def test_without_people_of_their_own_level_it_is_the_paired_t_test(items: int) -> None:
    """One rater per explanation, all different: what is left is a t test of one sample, over items; clustered
    errors with few clusters are a little smaller or larger than its, and never below either one-way error."""
    deviation = np.sqrt(2 * (0.75**2 + 0.5**2))
    theirs = TTestPower().power(0.7 / deviation, items, 0.05)
    made = pair_power(items, 1, 2 * items, person_share=0.0, draws=2000)
    assert made.of(0.7) == pytest.approx(theirs, abs=0.06)
    assert 0.025 <= made.of(0.0) <= 0.06


@pytest.mark.long(stays="test_without_people_of_their_own_level_it_is_the_paired_t_test")
def test_the_report_finds_a_planted_difference_as_often_as_promised() -> None:
    """Whole studies with three methods: one pair differs, and Holm goes over three. Points are rounded, which
    adds a variance of 1/12 to single ratings."""
    people, residual, cell, studies = 0.5, 0.8, 0.4, 40
    single = people**2 + residual**2 + 1 / 12
    promised = pair_power(
        24,
        5,
        15,
        pairs=3,
        rater_sd=single**0.5,
        explanation_sd=cell,
        person_share=people**2 / single,
        draws=2000,
    ).of(0.7)
    effects = {"grad_cam": 0.7, "rise": 0.0, "random": 0.0}
    facts = rating_facts(tuple(effects), asked=("q1",))
    hits = 0
    for seed in range(studies):
        frames = planted(effects, raters=15, items=24, per_item=5, seed=seed)
        made = {(p.first, p.second): p for p in pairs(rating_rows(frames), facts, ("q1",))}
        hits += (made["grad_cam", "rise"].p_holm or 0.0) < 0.05
    # Holm's later steps are easier, so the promise is the least.
    assert promised > 0.7
    assert hits / studies >= likely_share(promised, studies).low, (hits, promised)
    assert hits / studies <= likely_share(min(0.99, promised + 0.12), studies).high, (hits, promised)


def test_more_people_items_and_fewer_pairs_find_more() -> None:
    base = pair_power(20, 3, 9, pairs=10).of(0.6)
    assert pair_power(40, 3, 9, pairs=10).of(0.6) > base
    assert pair_power(20, 3, 30, pairs=10).of(0.6) > base
    assert pair_power(20, 3, 9, pairs=1).of(0.6) > base
    assert pair_power(20, 3, 9, pairs=10, rater_sd=1.5).of(0.6) < base


def test_the_detectable_difference_is_that_of_its_power() -> None:
    made = pair_power(24, 5, 15, seed=3)
    least = made.detectable(0.8)
    assert least is not None
    assert made.of(least + 1e-9) == pytest.approx(0.8, abs=0.005)
    assert made.of(least - 0.05) < 0.8 < made.of(least + 0.05)
    assert [row["difference"] for row in made.table()] == [*EFFECTS, least]
    assert pair_power(24, 5, 15, seed=3).table() == made.table()
    assert pair_power(24, 5, 15, seed=4).table() != made.table()


def test_a_study_without_a_standard_error_finds_nothing() -> None:
    made = PairPower(np.array([0.0, 0.2]), np.array([1e50, 1e50]))
    assert made.of(4.0) == 0 and made.detectable() is None
    assert made.table()[-1] == {"difference": None, "power": None}


@pytest.mark.parametrize(
    ("arguments", "more", "sentence"),
    [
        ((1, 5, 9), {}, "The number of items is 1; give a whole number from 2"),
        ((10, 5, 4), {}, "5 raters of each explanation need as many people, got 4"),
        ((10, 5, 9), {"rater_sd": 0, "explanation_sd": 0}, "not both 0"),
        ((10, 5, 9), {"person_share": 1.5}, "a share of people from 0 to 1"),
        ((10, 5, 9), {"pairs": 0}, "The number of pairs is 0"),
        ((100_000, 5, 9), {}, "1,000,000 ratings, at most 100,000 are simulated"),
    ],
)
def test_it_refuses_what_has_no_power(
    arguments: tuple[int, int, int], more: dict[str, float], sentence: str
) -> None:
    with pytest.raises(StatsError, match=sentence):
        pair_power(*arguments, **more)  # type: ignore[arg-type]
    with pytest.raises(StatsError, match="between 0 and 1"):
        pair_power(10, 2, 4, draws=5).detectable(1.2)
