"""Witnesses: R 4.2 (the calls stand beside the values) and the duality of tests and intervals."""

import numpy as np
import pytest
from statsmodels.stats.proportion import confint_proportions_2indep
from statsmodels.stats.weightstats import ttost_ind, ttost_paired

from analysis.stats.intervals_and_checks import StatsError
from analysis.stats.means.equivalence import equivalent_changes, equivalent_means, equivalent_shares

pytestmark = pytest.mark.pure
A = [41.2, 38.5, 44.1, 39.9, 42.7, 40.3]
C = [40.1, 41.3, 39.2, 42.2, 40.8]


def test_it_agrees_with_r_on_means() -> None:
    """R: t.test(a, c, mu = -3, alternative = "greater"); mu = 3, "less"; t.test(a, c, conf.level = .9)."""
    result = equivalent_means(A, C, 3)
    assert (result.p_above, result.p_below) == pytest.approx((0.00396892489042, 0.0137690403097))
    assert (result.narrow.low, result.narrow.high) == pytest.approx((-1.40529715707, 2.19863049040))
    assert (result.decision, result.is_noninferior, result.p) == ("equivalent", True, result.p_below)
    assert result.p == pytest.approx(ttost_ind(A, C, -3, 3, usevar="unequal")[0])


def test_it_agrees_with_statsmodels_within_people() -> None:
    """The p of pairs is smaller here than that of groups, for people differ more than they change."""
    before = np.array(A)
    after = before + [0.4, -0.2, 0.6, 0.1, 0.3, -0.1]
    for first, second, margin in [(after, before, 0.5), (before, after, 0.3), (after, before, 3)]:
        result = equivalent_changes(first, second, margin)
        p, low, high = ttost_paired(np.asarray(first), np.asarray(second), -margin, margin)
        assert (result.p, result.p_above, result.p_below) == pytest.approx((p, low[1], high[1]))
        assert result.p < equivalent_means(first, second, margin).p
        assert (result.decision == "equivalent") == (p < 0.05)
    with pytest.raises(StatsError, match="both values of at least 2 people, got 6 and 5"):
        equivalent_changes(before, after[:5], 1)
    with pytest.raises(StatsError, match="All differences are equal"):
        equivalent_changes(before, before + 1, 1)


def test_it_agrees_with_r_on_shares() -> None:
    """R: ll <- function(p2, d) dbinom(41, 60, p2 + d, log = TRUE) + dbinom(44, 62, p2, log = TRUE);
    sc <- function(d) {p2 <- optimize(ll, c(max(0, -d), min(1, 1 - d)), d = d, maximum = TRUE)$maximum; ...
    (41/60 - 44/62 - d)/sqrt(p1*(1-p1)/60 + p2*(1-p2)/62)}; pnorm(sc(-.1), lower = FALSE); pnorm(sc(.1));
    uniroot(function(d) sc(d) - qnorm(.95), c(-.6, 0)); and + qnorm(.95)."""
    result = equivalent_shares(41, 60, 44, 62, 0.1)
    assert (result.p_above, result.p_below) == pytest.approx((0.1878158908512, 0.0641343572679), rel=1e-7)
    assert (result.narrow.low, result.narrow.high) == pytest.approx(
        (-0.162667438521, 0.110229737713), rel=1e-8
    )
    assert (result.decision, result.is_noninferior) == ("inconclusive", False)


@pytest.mark.parametrize(("counts", "margin"), [((41, 60, 44, 62), 0.2), ((80, 90, 99, 110), 0.1)])
def test_it_agrees_with_statsmodels_to_its_correction(
    counts: tuple[int, int, int, int], margin: float
) -> None:
    """statsmodels' score interval counts N / (N - 1) as much variance, so its z is smaller by that root."""
    result = equivalent_shares(*counts, margin)
    theirs = confint_proportions_2indep(*counts, method="score", compare="diff", alpha=0.05)
    assert (result.wide.low, result.wide.high) == pytest.approx(theirs, abs=0.015)
    assert result.wide.low >= theirs[0] - 1e-6 and result.wide.high <= theirs[1] + 1e-6


def test_the_words_are_those_of_the_intervals() -> None:
    low, high = np.linspace(10, 11, 30), np.linspace(13, 14, 30)
    assert equivalent_means(low, high, 1).decision == "worse"
    assert equivalent_means(high, low, 1).decision == "superior"
    assert equivalent_means(low, low + 0.1, 1).decision == "equivalent"
    assert equivalent_means(low, high, 3).decision == "inconclusive"
    assert equivalent_means(high, low, 1).is_noninferior and not equivalent_means(low, high, 1).is_noninferior
    assert equivalent_shares(10, 10, 0, 10, 0.1).decision == "superior"


@pytest.mark.parametrize("margin", [0.02, 0.1, 0.15, 0.3])
def test_a_p_below_5_percent_is_a_90_percent_interval_within_the_margin(margin: float) -> None:
    rng = np.random.default_rng(1)
    for _ in range(30):
        x, y = rng.integers(20, 40, 2), rng.integers(40, 60, 2)
        result = equivalent_shares(int(x[0]), int(y[0]), int(x[1]), int(y[1]), margin)
        inside = -margin < result.narrow.low and result.narrow.high < margin
        assert inside == (result.p < 0.05) and result.is_noninferior == (result.p_above < 0.05)


def test_it_keeps_its_level_at_the_margin() -> None:
    """2,000 studies whose true difference is the margin: at most 5 % are called equivalent."""
    rng = np.random.default_rng(5)
    named = [
        equivalent_means(rng.normal(1, 1, 40), rng.normal(0, 2, 25), 1).decision == "equivalent"
        for _ in range(2000)
    ]
    assert np.mean(named) < 0.065


def test_it_refuses_a_margin_that_is_none() -> None:
    for margin in (0, -1, float("nan")):
        with pytest.raises(StatsError, match="margin"):
            equivalent_means(A, C, margin)
    with pytest.raises(StatsError, match="between 0 and 1"):
        equivalent_shares(1, 2, 1, 2, 1.5)
    with pytest.raises(StatsError, match="any variance"):
        equivalent_means([1, 1], [2, 2], 1)
