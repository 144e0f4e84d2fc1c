"""Witnesses: power.t.test and mvtnorm of R (calls beside the values), PowerTOST, the tests themselves."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import nct

from analysis.stats.intervals_and_checks import StatsError
from analysis.stats.means.equivalence import equivalent_means
from analysis.stats.planning.contrast_power import (
    detectable_contrast,
    dunnett_power,
    equivalence_power,
    paired_power,
    utility_power,
)
from analysis.stats.utility import fieller
from tests.proofs.chance import likely_share

pytestmark = pytest.mark.pure
SIMULATED = 2000


def test_one_contrast_has_the_power_of_r() -> None:
    """R: power.t.test(n = 20, delta = .5, sd = 1, strict = TRUE), n = 30 with sig.level = .01, n = 20 with
    delta = 1."""
    rows = [
        (20, 0.5, 0.05, 0.33793902892509),
        (30, 0.5, 0.01, 0.24371972397350),
        (20, 1.0, 0.05, 0.86895302772459),
    ]
    for n, effect, alpha, expected in rows:
        made = dunnett_power(n, [n], [effect], alpha=alpha)
        assert (made.each[0], made.any) == pytest.approx((expected, expected), abs=1e-8)


def test_pairs_have_the_power_of_r() -> None:
    """R: power.t.test(n = 20, delta = .5, sd = 1, type = "paired", strict = TRUE)."""
    assert paired_power(20, 0.5) == pytest.approx(0.56450441843908, abs=1e-8)
    assert paired_power(20, 0.5, tests=5) == pytest.approx(paired_power(20, 0.5, alpha=0.01))


def test_any_of_three_contrasts_has_the_power_of_mvtnorm() -> None:
    """R: n0 <- 20; n <- c(15, 20, 30); l <- sqrt((1/n0)/(1/n + 1/n0)); R <- outer(l, l); diag(R) <- 1; q <-
    qmvt(.95, tail = "both.tails", df = 81, corr = R); 1 - pmvt(-q, q, delta = d * sqrt(n*n0/(n + n0)),
    df = 81, corr = R, type = "Kshirsagar"); each by pt with its ncp. Its q is drawn, to about 1e-4."""
    made = dunnett_power(20, [15, 20, 30], [0.5, 0.8, 0.0])
    assert made.critical == pytest.approx(2.392219, abs=2e-4)
    assert made.any == pytest.approx(0.597705, abs=1e-4)
    assert made.each == pytest.approx((0.182763, 0.556685, 0.019063), abs=1e-4)
    # By scipy's noncentral t at the very same limit.
    shift = 0.8 * math.sqrt(10)
    expected = nct.sf(made.critical, 81, shift) + nct.cdf(-made.critical, 81, shift)
    assert made.each[1] == pytest.approx(expected, abs=1e-9)


def test_without_an_effect_the_family_errs_with_alpha() -> None:
    made = dunnett_power(30, [30] * 7, [0.0] * 7)
    assert made.any == pytest.approx(0.05, abs=1e-8) and max(made.each) < 0.02
    assert made.table()[-1] == {"contrast": "any", "power": made.any}


def test_the_detectable_difference_is_told_with_that_power() -> None:
    effect = detectable_contrast(40, [30, 20])
    assert dunnett_power(40, [30, 20], [0.0, effect]).each[1] == pytest.approx(0.8, abs=1e-7)
    with pytest.raises(StatsError, match="plan more people"):
        detectable_contrast(1, [2], alpha=0.001)


def test_equivalence_has_the_published_power() -> None:
    """PowerTOST: power.TOST(CV = .3, n = 40) = 0.8158453, a cross-over whose means have the errors of two
    groups of 20 with a variance half as large. R, by `integrate` over the variance: groups of 30 and 25."""
    deviation = math.sqrt(math.log(1.09) / 2)
    power = equivalence_power(20, 20, math.log(1.25) / deviation, difference=math.log(0.95) / deviation)
    assert power == pytest.approx(0.8158453, abs=1e-7)
    assert equivalence_power(30, 25, 0.5, difference=0.1) == pytest.approx(0.140743707298, abs=1e-7)
    assert equivalence_power(2, 2, 0.01) == pytest.approx(0, abs=1e-3)


def test_the_test_of_equivalence_finds_it_as_often() -> None:
    rng = np.random.default_rng(1)
    told = [
        equivalent_means(rng.normal(0.1, 1, 60), rng.normal(0, 1, 60), 0.6).decision == "equivalent"
        for _ in range(SIMULATED)
    ]
    assert likely_share(equivalence_power(60, 60, 0.6, difference=0.1), SIMULATED).holds(float(np.mean(told)))


def test_fiellers_interval_leaves_out_1_as_often() -> None:
    """Whole studies of normal accuracies, each by the function that the report calls."""
    made = utility_power((25, 40), (0.72, 0.62), (0.15, 0.2))
    rng = np.random.default_rng(2)
    out = []
    for _ in range(SIMULATED):
        interval = fieller(rng.normal(0.72, 0.15, 25), rng.normal(0.62, 0.2, 40))
        out.append(interval is not None and not interval.holds(1))
    assert likely_share(made.power, SIMULATED).holds(float(np.mean(out)))
    assert made.error == pytest.approx(math.sqrt(made.power * (1 - made.power) / 20_000))
    assert utility_power((25, 40), (0.72, 0.62), (0.15, 0.2)) == made, "the seed is stored"


def test_it_refuses_what_no_study_can_have() -> None:
    with pytest.raises(StatsError, match="one effect of at most 20 SD per group"):
        dunnett_power(10, [10, 10], [0.5])
    with pytest.raises(StatsError, match="at least 2 people, got 1"):
        paired_power(1, 0.5)
    with pytest.raises(StatsError, match="margin above 0"):
        equivalence_power(10, 10, 0.0)
    with pytest.raises(StatsError, match="2 people in each group"):
        utility_power((1, 5), (0.7, 0.6), (0.1, 0.1))
