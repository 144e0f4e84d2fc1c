"""Closed forms, a naive twin of the bootstrap, and Fieller's defining property."""

import numpy as np
import pytest
from scipy.stats import bootstrap, ttest_ind_from_stats

from analysis.stats.results import StatsError
from analysis.stats.utility import fieller, utilities, utility_mean_of_ratios, utility_trapezoid

pytestmark = pytest.mark.pure


def study(seed: int = 1, people: int = 30) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    rates = {"baseline": 0.6, "saliency": 0.6, "grad_cam": 0.8}
    return {name: rng.binomial(7, rate, (people, 3)) / 7 for name, rate in rates.items()}


def test_it_divides_means_by_the_baselines() -> None:
    scores = {"baseline": np.array([[0.5, 0.6], [0.7, 0.6]]), "m": np.array([[0.9, 0.3], [0.6, 0.9]])}
    base, method = utilities(scores, "baseline", seed=1, draws=50)
    assert base.utility == 1.0 and base.interval is None
    assert method.utility_k == pytest.approx((1.25, 1.0))
    assert method.utility == pytest.approx(0.675 / 0.6)
    assert method.utility_mean_of_ratios == pytest.approx(1.125)


def test_it_keeps_the_other_forms_under_their_own_names() -> None:
    assert utility_trapezoid([0.6, 0.9, 0.6], [0.6, 0.6, 0.6]) == pytest.approx(1.25)
    assert utility_trapezoid([0.6], [0.5]) == pytest.approx(1.2)
    assert utility_mean_of_ratios([0.6, 0.9], [0.6, 0.6]) == pytest.approx(1.25)


def test_it_agrees_with_scipys_percentile_bootstrap() -> None:
    scores = study()
    ours = utilities(scores, "baseline", seed=3)[2].interval
    people = [scores["grad_cam"].mean(axis=1), scores["baseline"].mean(axis=1)]
    theirs = bootstrap(
        people,
        lambda a, b, axis: a.mean(axis=axis) / b.mean(axis=axis),
        method="percentile",
        n_resamples=10_000,
        rng=np.random.default_rng(9),
    ).confidence_interval
    assert ours is not None
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.006)


def test_it_is_witnessed_by_fieller() -> None:
    for utility in utilities(study(), "baseline", seed=3)[1:]:
        assert utility.interval is not None and utility.fieller is not None
        assert utility.interval.low == pytest.approx(utility.fieller.low, abs=0.015)
        assert utility.interval.high == pytest.approx(utility.fieller.high, abs=0.015)


def test_it_returns_the_ratios_that_a_t_test_does_not_reject() -> None:
    x, y = study(7)["grad_cam"].mean(axis=1), study(8)["baseline"].mean(axis=1)
    interval = fieller(x, y)
    assert interval is not None
    for end in (interval.low, interval.high):
        p = ttest_ind_from_stats(
            x.mean(), x.std(ddof=1), x.size, end * y.mean(), end * y.std(ddof=1), y.size, equal_var=False
        ).pvalue
        # The degrees of freedom are taken at the estimated ratio, not at the end, hence the tolerance.
        assert p == pytest.approx(0.05, abs=0.002)


def test_it_has_no_fieller_interval_where_the_baseline_may_be_zero() -> None:
    assert fieller([0.5, 0.6, 0.7], [-0.5, 0.6, 0.1]) is None


def test_it_widens_simultaneous_intervals() -> None:
    for utility in utilities(study(), "baseline", seed=3)[1:]:
        assert utility.interval is not None and utility.simultaneous is not None
        assert (
            utility.simultaneous.high - utility.simultaneous.low
            > utility.interval.high - utility.interval.low
        )


def test_it_draws_the_same_for_the_same_seed_with_other_conditions_in_the_table() -> None:
    scores = study()
    alone = {k: scores[k] for k in ("baseline", "grad_cam")}
    assert (
        utilities(scores, "baseline", seed=3)[2].interval == utilities(alone, "baseline", seed=3)[1].interval
    )
    assert (
        utilities(scores, "baseline", seed=4)[2].interval != utilities(scores, "baseline", seed=3)[2].interval
    )


def test_it_takes_blocks_that_a_person_did_not_do() -> None:
    scores = study()
    scores["saliency"][0, 2] = np.nan
    utility = utilities(scores, "baseline", seed=3, draws=500)[1]
    assert utility.accuracy[2] == pytest.approx(np.nanmean(scores["saliency"][:, 2]))
    assert utility.interval is not None and utility.interval.holds(utility.utility)


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        ({"m": np.ones((3, 2))}, "'baseline' is not among"),
        ({"baseline": np.ones((1, 2)), "m": np.ones((3, 2))}, "'baseline' has 1 people"),
        ({"baseline": np.zeros((3, 2)), "m": np.ones((3, 2))}, "accuracy is 0"),
        ({"baseline": np.array([[0.5, np.nan]] * 3), "m": np.ones((3, 2))}, "Nobody in condition"),
    ],
)
def test_it_refuses_what_has_no_utility(scores: dict[str, np.ndarray], words: str) -> None:
    with pytest.raises(StatsError, match=words):
        utilities(scores, "baseline", seed=1, draws=10)
