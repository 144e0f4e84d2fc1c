"""Pooled shares: by hand, against statsmodels and people drawn one by one; their level over studies."""

from __future__ import annotations

import math

import numpy as np
import pytest
import statsmodels.api as sm

from analysis.stats.intervals_and_checks import Floats, StatsError
from analysis.stats.shares.pooled import pooled_share
from tests.proofs.chance import likely_share
from tests.proofs.scale import Scale

pytestmark = [pytest.mark.pure, pytest.mark.filterwarnings("error")]
STUDIES, STUDIES_FULL = 100, 1000


def drawn(people: int, seed: int, spread: float = 0.8, odds: float = 0.6) -> tuple[Floats, list[int]]:
    """Answers of people with a share of their own; person i gives 0 to 5 of them."""
    rng = np.random.default_rng(seed)
    yes, who = [], []
    for person in range(people):
        share = 1 / (1 + math.exp(-(odds + rng.normal(0, spread))))
        count = int(rng.integers(0, 6))
        yes += list((rng.random(count) < share).astype(float))
        who += [person] * count
    return np.array(yes), who


def test_it_counts_each_answer_alike_whoever_gave_it() -> None:
    """Ann 3 of 4, Ben 0 of 1, Cy 1 of 1: 4 of 6. Deviations from 2/3: 1/3, -2/3, 1/3, so that the share has
    the squared error (3/2) (6/9) / 36 = 1/36, and log(4.5/2.5) the error 1/6 / (4.5 x 2.5/49)."""
    yes = [1, 1, 1, 0, 0, 1]
    made = pooled_share(yes, ["ann"] * 4 + ["ben", "cy"], seed=1)
    assert (made.yes, made.total, made.people) == (4, 6, 3) and made.share == pytest.approx(2 / 3)
    assert made.se == pytest.approx((1 / 6) / (4.5 * 2.5 / 49))
    # One person alone in 3 of 27 draws.
    assert made.interval is None and "in 11 % of the draws there is no value" in made.problem
    (row,) = made.table()
    assert (row["share"], row["interval"], row["problem"]) == (made.share, None, made.problem)
    assert (row["yes"], row["total"], row["people"]) == (4, 6, 3)


def test_its_error_is_that_of_a_logistic_regression_clustered_by_people() -> None:
    """Without the half answers and the small-sample factor: statsmodels' GEE with independence."""
    yes, who = drawn(40, 3)
    fit = sm.GEE(yes, np.ones(len(yes)), groups=who, family=sm.families.Binomial()).fit()
    people, total, count = len(set(who)), len(yes), yes.sum()
    share, half = count / total, (count + 0.5) / (total + 1)
    scale = math.sqrt(people / (people - 1)) * share * (1 - share) / (half * (1 - half))
    assert pooled_share(yes, who).se == pytest.approx(float(fit.bse[0]) * scale, rel=1e-6)


def test_its_interval_is_that_of_people_drawn_one_by_one() -> None:
    yes, who = drawn(12, 5)
    made = pooled_share(yes, who, draws=20_000, seed=2)
    rng = np.random.default_rng(9)
    names = sorted(set(who))
    answers = [yes[np.array(who) == name] for name in names]

    def log_odds(chosen: list[Floats]) -> tuple[float, float]:
        both = np.concatenate(chosen)
        share, half = both.mean(), (both.sum() + 0.5) / (len(both) + 1)
        squares = sum((person.sum() - share * len(person)) ** 2 for person in chosen)
        error = math.sqrt(squares * len(chosen) / (len(chosen) - 1)) / len(both)
        return math.log(half / (1 - half)), error / (half * (1 - half))

    at, se = log_odds(answers)
    values = []
    for _ in range(20_000):
        tried, error = log_odds([answers[i] for i in rng.integers(0, len(names), len(names))])
        if error > 1e-9:
            values.append((tried - at) / error)
    low, high = (1 / (1 + math.exp(-(at - q * se))) for q in np.quantile(values, [0.975, 0.025]))
    assert made.interval is not None
    assert (made.interval.low, made.interval.high) == pytest.approx((low, high), abs=0.01)


def test_names_and_their_order_make_no_difference_and_a_seed_repeats() -> None:
    yes, who = drawn(15, 8)
    order = np.random.default_rng(0).permutation(len(yes))
    other = pooled_share(yes[order], [f"p{who[i]:02d}" for i in order], seed=4)
    assert other == pooled_share(yes, [f"p{name:02d}" for name in who], seed=4)
    assert other.interval != pooled_share(yes, who, seed=5).interval


def test_without_an_interval_there_is_a_sentence() -> None:
    assert "2 people" in pooled_share([1, 0, 1], ["a"] * 3).problem
    always = pooled_share(np.ones(20), [i // 2 for i in range(20)])
    assert always.share == 1 and always.interval is None and "do not differ" in always.problem
    rare = pooled_share([1.0] + [0.0] * 29, list(range(30)))
    assert rare.interval is None and "no value" in rare.problem
    for yes, who, words in (
        ([], [], "at least one"),
        ([1], ["a", "b"], "1 answers of 2"),
        ([2], ["a"], "0 or 1"),
    ):
        with pytest.raises(StatsError, match=words):
            pooled_share(yes, who)


@pytest.mark.parametrize(
    ("people", "spread", "least"), [(10, 0.0, 0.9), (10, 0.8, 0.9), (20, 0.8, 0.93), (40, 1.2, 0.93)]
)
def test_its_interval_keeps_its_level(people: int, spread: float, least: float, scale: Scale) -> None:
    """With 10 people of 25 answers together somewhat too few hold the share."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(41)
    truth = float((weights / weights.sum()) @ (1 / (1 + np.exp(-(0.6 + spread * nodes)))))
    count, held = scale.of(STUDIES, STUDIES_FULL), []
    for number in range(count):
        made = pooled_share(*drawn(people, number + 10_000 * scale.seed, spread), draws=600, seed=number)
        held.append(made.interval is not None and made.interval.holds(truth))
    print(f"{people} people, SD {spread}: {np.mean(held):.3f} of {count} intervals hold the share")
    assert likely_share(least, count).low <= np.mean(held) <= likely_share(0.98, count).high
