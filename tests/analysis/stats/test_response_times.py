"""Witnesses: R 4.2 (the calls stand beside the values), recovery of known parameters, counts by hand."""

import math

import numpy as np
import pytest
from scipy.stats import exponnorm

from analysis.stats.intervals_and_checks import StatsError
from analysis.stats.response_times import ex_gaussian, log_summary, speed_accuracy

pytestmark = pytest.mark.pure
# R: set.seed(7); round(rnorm(120, 400, 40) + rexp(120, 1/150))
TIMES = [
    921, 420, 449, 532, 441, 484, 435, 464, 410, 645, 747, 561, 595, 536, 563, 548, 456, 524, 443, 453, 457,
    491, 504, 536, 547, 450, 533, 593, 695, 490, 652, 633, 424, 906, 408, 644, 495, 477, 518, 574, 505, 439,
    429, 850, 606, 402, 625, 468, 423, 680, 594, 527, 490, 485, 643, 517, 422, 568, 447, 382, 404, 470, 455,
    493, 489, 632, 468, 551, 971, 551, 427, 554, 445, 422, 365, 515, 444, 894, 433, 613, 472, 444, 608, 439,
    701, 889, 436, 580, 759, 677, 676, 415, 585, 631, 601, 548, 568, 461, 746, 462, 530, 436, 495, 470, 427,
    692, 626, 443, 525, 923, 472, 524, 455, 703, 384, 603, 990, 595, 653, 620,
]  # fmt: skip


def test_it_agrees_with_r_on_the_ex_gaussian() -> None:
    """R: nll <- function(p) {mu <- p[1]; s <- exp(p[2]); t <- exp(p[3]); -sum(-log(t) + (mu - y)/t +
    s^2/(2*t^2) + pnorm((y - mu)/s - s/t, log.p = TRUE))}; optim(c(400, log(40), log(150)), nll), twice."""
    fit = ex_gaussian(TIMES)
    assert (fit.mu, fit.sigma, fit.tau) == pytest.approx(
        (412.0671174740, 25.0850798394, 138.0662116270), rel=1e-4
    )
    assert fit.log_likelihood == pytest.approx(-730.3555035230, abs=1e-6)


def test_its_likelihood_is_scipys() -> None:
    """scipy writes the distribution with K = tau / sigma."""
    fit = ex_gaussian(TIMES)
    other = exponnorm.logpdf(TIMES, fit.tau / fit.sigma, loc=fit.mu, scale=fit.sigma).sum()
    assert fit.log_likelihood == pytest.approx(other)
    near = exponnorm.logpdf(TIMES, fit.tau / fit.sigma * 1.05, loc=fit.mu + 2, scale=fit.sigma).sum()
    assert near < other


def test_it_recovers_what_the_times_were_drawn_from() -> None:
    rng = np.random.default_rng(1)
    fits = [ex_gaussian(rng.normal(500, 50, 400) + rng.exponential(200, 400)) for _ in range(30)]
    for name, truth in (("mu", 500), ("sigma", 50), ("tau", 200)):
        values = np.array([getattr(fit, name) for fit in fits])
        assert abs(values.mean() - truth) < 4 * values.std(ddof=1) / 30**0.5, name


def test_a_unit_makes_no_difference() -> None:
    ms, s = ex_gaussian(TIMES), ex_gaussian(np.array(TIMES) / 1000)
    assert (s.mu, s.sigma, s.tau) == pytest.approx((ms.mu / 1000, ms.sigma / 1000, ms.tau / 1000), rel=1e-5)
    assert s.log_likelihood == pytest.approx(ms.log_likelihood + len(TIMES) * math.log(1000))


def test_it_refuses_a_distribution_with_a_part_that_vanishes() -> None:
    rng = np.random.default_rng(3)
    with pytest.raises(StatsError, match="at least 40"):
        ex_gaussian(TIMES[:39])
    with pytest.raises(StatsError, match="skewed to the left"):
        ex_gaussian(1000 - np.array(TIMES) + 5)
    with pytest.raises(StatsError, match="one part vanishes"):
        ex_gaussian(300 + rng.exponential(200, 300))
    with pytest.raises(StatsError, match="All response times are equal"):
        ex_gaussian([500] * 50)
    with pytest.raises(StatsError, match="above 0"):
        ex_gaussian([*TIMES, -1])


def test_it_agrees_with_r_on_logarithms() -> None:
    """R: exp(mean(log(y))); exp(t.test(log(y))$conf.int); sd(log(y))."""
    made = log_summary(TIMES)
    assert made.interval is not None
    assert (made.geometric_mean, made.interval.low, made.interval.high) == pytest.approx(
        (536.334189145298, 515.456145207746, 558.057877707928)
    )
    assert (made.log_sd, made.median) == pytest.approx((0.219660113741, sum(sorted(TIMES)[59:61]) / 2))
    assert log_summary([300]).interval is None


def test_accuracy_by_speed_is_counted_within_people() -> None:
    """Ada is slow and Bo fast; each one's own faster half is counted, beside other people's times too."""
    times = [900, 800, 700, 600, 100, 200, 300, 400]
    correct = [1, 1, 0, 1, 0, 0, 1, 1]
    people = ["ada"] * 4 + ["bo"] * 4
    fast, slow = speed_accuracy(correct, times, people, bins=2).bins
    assert (fast.accuracy, slow.accuracy) == ((0.5 + 0.0) / 2, 1.0)
    assert (fast.mean_time, slow.mean_time) == ((650 + 150) / 2, (850 + 350) / 2)
    assert (fast.people, fast.trials, slow.bin, slow.interval) == (2, 4, 2, None)


def test_people_with_fewer_trials_than_bins_are_left_out() -> None:
    result = speed_accuracy([1, 0, 1, 1, 0], [5, 6, 7, 8, 9], list("aaaab"), bins=2)
    assert [row.people for row in result.bins] == [1, 1]
    with pytest.raises(StatsError, match="No person has 9 trials"):
        speed_accuracy([1, 0, 1, 1, 0], [5, 6, 7, 8, 9], list("aaaab"), bins=9)
    with pytest.raises(StatsError, match="as 1 or 0"):
        speed_accuracy([2, 0], [5, 6], list("aa"), bins=2)
