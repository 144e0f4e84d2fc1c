"""Witnesses: a naive bootstrap that repeats rows, with the same draws; scipy for independent rows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from analysis.stats.cluster_correlation import CLUSTERS_MIN, Kind, correlation
from analysis.stats.intervals_and_checks import StatsError

pytestmark = pytest.mark.pure
KINDS: tuple[Kind, ...] = ("pearson", "spearman")
PEOPLE, EACH = 40, 6


def columns(seed: int = 1, rho: float = 0.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of people who differ in both columns: few people, many rows; some values are tied."""
    rng = np.random.default_rng(seed)
    level = rng.multivariate_normal([0, 0], [[1, rho], [rho, 1]], PEOPLE)
    person = np.repeat(np.arange(PEOPLE), EACH)
    noise = rng.normal(0, 0.4, (2, person.size))
    return np.round(level[person, 0] + noise[0], 1), level[person, 1] + noise[1], person


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_the_naive_bootstrap_with_the_same_draws(kind: Kind) -> None:
    x, y, person = columns(rho=0.5)
    made = correlation(x, y, person, kind=kind, draws=200, seed=3)
    rng = np.random.default_rng(3)
    theirs = {"pearson": scipy_stats.pearsonr, "spearman": scipy_stats.spearmanr}[kind]
    drawn = []
    for _ in range(200):
        rows = np.concatenate([np.flatnonzero(person == who) for who in rng.integers(0, PEOPLE, PEOPLE)])
        drawn.append(theirs(x[rows], y[rows]).statistic)
    assert made.r == pytest.approx(theirs(x, y).statistic)
    assert made.interval is not None
    ends = np.quantile(drawn, [0.025, 0.975])
    assert (made.interval.low, made.interval.high) == pytest.approx(tuple(ends), abs=1e-10)
    assert (made.rows, made.clusters, made.undefined, made.fisher) == (240, 40, 0, None)


def test_independent_rows_have_fishers_interval_beside_it() -> None:
    rng = np.random.default_rng(5)
    x = rng.normal(0, 1, 400)
    y = 0.6 * x + rng.normal(0, 0.8, 400)
    made = correlation(x, y, draws=4000)
    theirs = scipy_stats.pearsonr(x, y).confidence_interval()
    assert made.fisher is not None and made.interval is not None
    assert (made.fisher.low, made.fisher.high) == pytest.approx((theirs.low, theirs.high))
    assert (made.interval.low, made.interval.high) == pytest.approx((theirs.low, theirs.high), abs=0.02)
    ranks = correlation(x, y, kind="spearman", draws=20).fisher
    half = scipy_stats.norm.ppf(0.975) * math.sqrt(1.06 / 397)
    centre = math.atanh(scipy_stats.spearmanr(x, y).statistic)
    assert ranks is not None and ranks.low == pytest.approx(math.tanh(centre - half))


def test_it_keeps_its_level_when_rows_of_people_go_together() -> None:
    """300 studies without correlation: rows that count as independent hold 0 far too seldom."""
    whole, apart = 0, 0
    for seed in range(300):
        x, y, person = columns(seed)
        by_people, by_rows = correlation(x, y, person, draws=300), correlation(x, y, draws=1)
        assert by_people.interval is not None and by_rows.fisher is not None
        whole += by_people.interval.holds(0)
        apart += by_rows.fisher.holds(0)
    print(f"{whole / 300:.3f} of 95 % intervals by people hold 0, {apart / 300:.3f} by rows")
    assert whole >= 0.89 * 300 and apart < 0.75 * 300


def test_few_clusters_have_no_interval_and_bad_columns_a_sentence() -> None:
    x, y, person = columns()
    few = person < CLUSTERS_MIN - 1
    assert correlation(x[few], y[few], person[few], draws=20).interval is None
    with pytest.raises(StatsError, match="differ in both columns"):
        correlation([1, 2, 3], [5, 5, 5])
    with pytest.raises(StatsError, match="3 and 4 values"):
        correlation([1, 2, 3], [1, 2, 3, 4])
    with pytest.raises(StatsError, match="name it 'pearson' or 'spearman'"):
        correlation([1, 2, 3], [1, 3, 2], kind="kendall")  # type: ignore[arg-type]
    with pytest.raises(StatsError, match="There are 2 clusters"):
        correlation([1, 2, 3], [1, 3, 2], [1, 2])
