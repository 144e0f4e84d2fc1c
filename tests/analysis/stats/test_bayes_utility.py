"""Witnesses: importance sampling that shares no code with the grid, and Fieller's interval at large n."""

from __future__ import annotations

import numpy as np
import pytest

from analysis.stats import bayes_utility as module
from analysis.stats.bayes_utility import BayesUtility, bayes_utility
from analysis.stats.intervals_and_checks import StatsError
from analysis.stats.utility import fieller

pytestmark = pytest.mark.pure
DRAWS = 1_000_000


def people(n: int, mean: float, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.asarray(rng.binomial(21, rng.beta(8 * mean, 8 * (1 - mean), n)) / 21)


@pytest.mark.parametrize("n", [3, 10, 30, 300])
def test_importance_sampling_agrees(n: int) -> None:
    """Means are drawn from Student's t, and weighted by the prior of the logarithm of their ratio."""
    x, y = people(n, 0.72, 1), people(n, 0.6, 2)
    made = bayes_utility(x, y)
    rng = np.random.default_rng(3)
    method, base = (
        values.mean() + values.std(ddof=1) / n**0.5 * rng.standard_t(n - 1, DRAWS) for values in (x, y)
    )
    kept = (method > 0) & (method < 1) & (base > 0) & (base < 1)
    method, base = method[kept], base[kept]
    log = np.log(method / base)
    weight = np.exp(-0.5 * (log / 0.5) ** 2) / method
    order = np.argsort(log)
    below = np.cumsum(weight[order]) / weight.sum()
    ends = [float(np.exp(log[order][np.searchsorted(below, q)])) for q in (0.025, 0.5, 0.975)]
    assert (made.interval.low, made.utility, made.interval.high) == pytest.approx(ends, rel=0.006)
    assert made.p_above == pytest.approx(float(weight[log > 0].sum() / weight.sum()), abs=0.004)


def test_with_many_people_it_is_fiellers_interval() -> None:
    x, y = people(100_000, 0.7, 4), people(100_000, 0.6, 5)
    made, interval = bayes_utility(x, y), fieller(x, y)
    assert interval is not None
    assert (made.interval.low, made.interval.high) == pytest.approx((interval.low, interval.high), abs=5e-6)
    assert made.utility == pytest.approx(x.mean() / y.mean(), abs=5e-6)


def test_the_prior_draws_a_small_study_towards_1_and_swapped_groups_have_the_inverse() -> None:
    x, y = [0.9, 0.95, 1.0], [0.3, 0.4, 0.6]
    assert 1 < bayes_utility(x, y).utility < np.mean(x) / np.mean(y)
    rng = np.random.default_rng(6)
    same = bayes_utility(rng.normal(0.5, 0.05, 40), rng.normal(0.5, 0.05, 40))
    assert 0.02 < same.p_above < 0.98


def test_it_says_that_it_decides_nothing() -> None:
    for text in (module.__doc__, BayesUtility.__doc__, bayes_utility.__doc__):
        assert text is not None and "decides nothing" in text


def test_it_refuses_what_has_no_posterior() -> None:
    with pytest.raises(StatsError, match="no variance"):
        bayes_utility([0.5, 0.5], [0.4, 0.6])
    with pytest.raises(StatsError, match="a share from 0 to 1, not percent"):
        bayes_utility([50, 60], [0.4, 0.6])
    with pytest.raises(StatsError, match="1 accuracies"):
        bayes_utility([0.5], [0.4, 0.6])
