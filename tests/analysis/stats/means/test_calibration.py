"""Calibration over 2,000 simulated studies: error rates in [.035, .065], 95 % intervals cover 93-97 %. In
`make test` over 400 or 120, with the limits that chance has there; tests/proofs shows what these notice.

People differ (beta-distributed ability) and answer 3 blocks of 7 binary trials, as in a real study, so that
nothing here is normal by construction. A rate over 2,000 studies has a standard error of .005 at 5 %.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom, studentized_range

from analysis.stats.intervals_and_checks import Interval, mean_interval
from analysis.stats.means.anova import one_way
from analysis.stats.means.randomised_block import randomised_block
from analysis.stats.means.tukey_and_corrections import tukey_kramer
from analysis.stats.shares.proportions import newcombe, wilson
from analysis.stats.utility import utilities
from tests.proofs.chance import likely_share
from tests.proofs.scale import Scale

pytestmark = pytest.mark.pure
STUDIES, STUDIES_FULL = 400, 2000
SHORTER = 120
"""Studies for the intervals of Utility, each of which is drawn 500 times."""
PEOPLE, TRIALS, BLOCKS = 30, 7, 3
NULL = (0.62,) * 8
PLANTED = (0.60, 0.58, 0.66, 0.70, 0.72, 0.80, 0.73, 0.64)
CONCENTRATION = 8.0
"""Ability is beta(c m, c (1 - m)): its standard deviation is sqrt(m (1 - m) / (c + 1)), about .16 at m =
.6.
"""


def studies(rates: tuple[float, ...], seed: int, scale: Scale, count: int = 0) -> NDArray[np.float64]:
    """Accuracies float (studies, conditions, people, blocks); as many studies as the scale says"""
    rng = np.random.default_rng(seed + 100 * scale.seed)
    count = count or scale.of(STUDIES, STUDIES_FULL)
    means = np.array(rates)[None, :, None]
    ability = rng.beta(CONCENTRATION * means, CONCENTRATION * (1 - means), (count, len(rates), PEOPLE))
    return rng.binomial(TRIALS, ability[..., None], (*ability.shape, BLOCKS)) / TRIALS


def is_error_rate(rate: float, scale: Scale) -> bool:
    return (Interval(0.035, 0.065) if scale.is_full else likely_share(0.05, STUDIES)).holds(rate)


def is_coverage(rate: float, scale: Scale, studies: int = STUDIES) -> bool:
    return (Interval(0.93, 0.97) if scale.is_full else likely_share(0.95, studies)).holds(rate)


def person_variance(rate: float) -> float:
    """Variance of one person's accuracy over all trials: that of the ability plus the binomial."""
    ability = rate * (1 - rate) / (CONCENTRATION + 1)
    return ability + (rate * (1 - rate) - ability) / (TRIALS * BLOCKS)


def named(study: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    return {f"c{i}": x for i, x in enumerate(study)}


def largest_q(accuracy: NDArray[np.float64], truth: NDArray[np.float64]) -> NDArray[np.float64]:
    """max over pairs of |difference - true difference| / standard error, per study.

    `accuracy` is float (studies, conditions, people).
    """
    error = np.sqrt(accuracy.var(axis=2, ddof=1).mean(axis=1) / PEOPLE)
    off = accuracy.mean(axis=2) - truth
    return np.asarray((off.max(axis=1) - off.min(axis=1)) / error)


def test_it_keeps_the_error_rate_of_the_anova(scale: Scale) -> None:
    accuracy = studies(NULL, 1, scale).mean(axis=3)
    rate = float(np.mean([one_way(named(study)).p < 0.05 for study in accuracy]))
    assert is_error_rate(rate, scale), rate


@pytest.mark.parametrize(("rates", "seed"), [(NULL, 2), (PLANTED, 3)])
def test_it_keeps_the_family_wise_error_of_tukey(rates: tuple[float, ...], seed: int, scale: Scale) -> None:
    # Under planted effects an error is that a simultaneous interval misses its true difference.
    accuracy = studies(rates, seed, scale).mean(axis=3)
    critical = studentized_range.ppf(0.95, len(rates), len(rates) * (PEOPLE - 1))
    rate = float(np.mean(largest_q(accuracy, np.array(rates)) > critical))
    assert is_error_rate(rate, scale), rate


def test_it_is_the_same_tukey_as_the_vectorised_one(scale: Scale) -> None:
    accuracy = studies(NULL, 2, scale, count=scale.of(4, 12)).mean(axis=3)
    critical = studentized_range.ppf(0.95, 8, 232)
    for study, q in zip(accuracy, largest_q(accuracy, np.array(NULL)), strict=True):
        pairs = tukey_kramer(named(study)).pairs
        assert max(pair.q for pair in pairs) == pytest.approx(q)
        assert (min(pair.p for pair in pairs) < 0.05) == (q > critical)


def test_it_covers_eta_squared_and_the_mean(scale: Scale) -> None:
    accuracy = studies(PLANTED, 4, scale).mean(axis=3)
    within = np.mean([person_variance(rate) for rate in PLANTED])
    between = np.var(PLANTED)
    eta = float(between / (between + within))
    covered = float(np.mean([one_way(named(study)).eta_squared_interval.holds(eta) for study in accuracy]))
    assert is_coverage(covered, scale), covered
    intervals = [mean_interval(study[0]) for study in accuracy]
    covered = float(np.mean([i is not None and i.holds(PLANTED[0]) for i in intervals]))
    assert is_coverage(covered, scale), covered


@pytest.mark.long(stays="test_it_covers_eta_squared_and_the_mean")
@pytest.mark.parametrize(("rates", "seed"), [((0.62,) * 3, 5), ((0.58, 0.70, 0.80), 6)])
def test_it_covers_utility(rates: tuple[float, ...], seed: int, scale: Scale) -> None:
    # 500 draws instead of 10,000: noisier quantiles cost coverage rather than hide a lack of it.
    hits: dict[str, list[bool]] = {"interval": [], "block": [], "bootstrap": [], "simultaneous": []}
    count = scale.of(SHORTER, STUDIES_FULL)
    for number, study in enumerate(studies(rates, seed, scale, count)):
        together = True
        for i, utility in enumerate(utilities(named(study), "c0", seed=number, draws=500)[1:], start=1):
            truth = rates[i] / rates[0]
            assert utility.utility_k_intervals
            first = utility.utility_k_intervals[0]
            assert utility.interval and utility.bootstrap and utility.simultaneous and first
            hits["interval"].append(utility.interval.holds(truth))
            hits["block"].append(first.holds(truth))
            hits["bootstrap"].append(utility.bootstrap.holds(truth))
            together &= utility.simultaneous.holds(truth)
        hits["simultaneous"].append(together)
    rate = {key: float(np.mean(values)) for key, values in hits.items()}
    assert all(is_coverage(covered, scale, SHORTER) for covered in rate.values()), rate


def test_it_keeps_the_error_rate_of_the_blocked_analysis(scale: Scale) -> None:
    rng = np.random.default_rng(7 + 100 * scale.seed)
    accuracy = studies((0.62,) * 4, 8, scale).mean(axis=3)
    conditions, plans = np.repeat(list("abcd"), PEOPLE), np.tile(np.arange(PEOPLE), 4)
    shared = rng.normal(0, 0.1, (len(accuracy), 1, PEOPLE))
    ps = [randomised_block(study.ravel(), list(conditions), list(plans)).p for study in accuracy + shared]
    assert is_error_rate(float(np.mean(np.array(ps) < 0.05)), scale)


def test_it_covers_proportions() -> None:
    # Exact coverage, averaged over the true share, since that of any interval of a count jumps with it.
    shares = np.linspace(0.05, 0.95, 181)
    counts = np.arange(PEOPLE + 1)
    pmf = binom.pmf(counts[:, None], PEOPLE, shares)
    single = [wilson(int(k), PEOPLE) for k in counts]
    held = np.array([[i.holds(p) for p in shares] for i in single])
    assert 0.93 <= (pmf * held).sum(axis=0).mean() <= 0.97
    second = np.clip(shares[::-1] * 0.8, 0, 1)
    pmf_second = binom.pmf(counts[:, None], PEOPLE, second)
    pairs = [[newcombe(int(a), PEOPLE, int(b), PEOPLE) for b in counts] for a in counts]
    low = np.array([[i.low for i in line] for line in pairs])[..., None]
    high = np.array([[i.high for i in line] for line in pairs])[..., None]
    inside = (low <= shares - second) & (shares - second <= high)
    assert 0.93 <= (pmf[:, None] * pmf_second[None] * inside).sum(axis=(0, 1)).mean() <= 0.97
