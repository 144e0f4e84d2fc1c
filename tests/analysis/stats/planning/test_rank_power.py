"""Power of the rank tests against the tests themselves, an approximation in closed form, and known sizes."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import beta, betabinom, binom, norm

from analysis.stats.intervals_and_checks import StatsError
from analysis.stats.planning.rank_power import PEOPLE_MAX, people_needed, rank_power
from analysis.stats.ranks.two_groups import mann_whitney, signed_rank

pytestmark = pytest.mark.pure
PUBLISHED = (0.557, 0.694)


def pmf(share: float, tests: int, spread: float) -> np.ndarray:
    """The distribution of a person's number of right answers."""
    scores = np.arange(tests + 1)
    if not spread:
        return np.asarray(binom.pmf(scores, tests, share))
    size = share * (1 - share) / spread**2 - 1
    return np.asarray(betabinom.pmf(scores, tests, share * size, (1 - share) * size))


def approximate_power(shares: tuple[float, float], tests: int, n: int, spread: float) -> float:
    """Mann-Whitney's power by the normal distribution of U, its moments from the two distributions [Lehmann
    1975, section 2.3], ties counted half."""
    p, q = (pmf(share, tests, spread) for share in shares)
    scores = np.arange(tests + 1)
    wins = (scores[None, :] > scores[:, None]) + 0.5 * (scores[None, :] == scores[:, None])
    theta = p @ wins @ q
    by_first, by_second = wins @ q, p @ wins
    alternative = p @ wins**2 @ q - theta**2
    alternative += (n - 1) * (p @ by_first**2 - theta**2 + q @ by_second**2 - theta**2)
    mixture = (p + q) / 2
    null = (2 * n + 1 - 2 * n * (mixture**3).sum()) / 12
    critical = norm.isf(0.025) * math.sqrt(null)
    return float(norm.sf((critical - n * abs(theta - 0.5)) / math.sqrt(alternative)))


@pytest.mark.parametrize(
    ("shares", "tests", "n", "spread"),
    [
        (PUBLISHED, 15, 16, 0.0),
        (PUBLISHED, 15, 24, 0.1),
        ((0.5, 0.6), 15, 40, 0.15),
        ((0.3, 0.8), 10, 8, 0.1),
    ],
)
def test_it_agrees_with_the_approximation_in_closed_form(
    shares: tuple[float, float], tests: int, n: int, spread: float
) -> None:
    expected = approximate_power(shares, tests, n, spread)
    assert rank_power(shares, tests, n, spread=spread) == pytest.approx(expected, abs=0.04)


def test_the_published_difference_is_told_with_the_numbers_of_people_that_were_computed_before() -> None:
    """16 per condition if people do not differ, 24 with an SD of .1: both reach .8."""
    assert rank_power(PUBLISHED, 15, 16) >= 0.8 and rank_power(PUBLISHED, 15, 24, spread=0.1) >= 0.8
    assert 14 <= people_needed(PUBLISHED, 15) <= 16
    assert 22 <= people_needed(PUBLISHED, 15, spread=0.1) <= 24


@pytest.mark.parametrize("within", [False, True])
def test_without_a_difference_it_errs_as_often_as_alpha_allows(within: bool) -> None:
    for people, spread in itertools.product((12, 24), (0.0, 0.1)):
        assert rank_power((0.6, 0.6), 15, people, spread=spread, within=within) <= 0.07


@pytest.mark.parametrize("within", [False, True])
def test_it_agrees_with_the_report_s_own_test_study_by_study(within: bool) -> None:
    """500 studies, each judged by the test that the report uses."""
    shares, tests, people, spread = (0.5, 0.65), 10, 20, 0.12
    rng = np.random.default_rng(5)
    told = 0
    for _ in range(500):
        places = rng.random((2, people))
        # Within: the same person is as high among the one as among the other.
        levels = [
            beta.ppf(places[0 if within else at], p * size, (1 - p) * size)
            for at, p in enumerate(shares)
            for size in [p * (1 - p) / spread**2 - 1]
        ]
        first, second = (rng.binomial(tests, level) / tests for level in levels)
        test = signed_rank(first, second) if within else mann_whitney(first, second)
        told += test.p <= 0.05
    expected = rank_power(shares, tests, people, spread=spread, within=within)
    assert told / 500 == pytest.approx(expected, abs=0.06)


def test_it_is_the_same_each_time() -> None:
    assert rank_power(PUBLISHED, 15, 16) == rank_power(PUBLISHED, 15, 16)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((0.5,), 15, 10), "Two conditions are compared, got 1 shares"),
        (((0.5, 1.0), 15, 10), "shares lie between 0 and 1"),
        (((0.5, 0.6), 0, 10), "The number of tests"),
        (((0.5, 0.6), 15, PEOPLE_MAX + 1), "at most 1000 people, got 1001"),
    ],
)
def test_what_it_cannot_compute_is_told(arguments: tuple[tuple[float, ...], int, int], message: str) -> None:
    with pytest.raises(StatsError, match=message):
        rank_power(*arguments)


def test_a_difference_that_nobody_could_pay_for_is_told() -> None:
    with pytest.raises(StatsError, match="More than 1000 people would be needed"):
        people_needed((0.5, 0.501), 10)
