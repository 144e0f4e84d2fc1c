"""Closed forms, scipy's bootstrap, Fieller's defining property, and drawn multivariate t."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import bootstrap, multivariate_t, ttest_ind_from_stats

from analysis.stats.intervals_and_checks import StatsError
from analysis.stats.utility import _stream, fieller, utilities, utility_mean_of_ratios, utility_trapezoid
from experiments.design.rng import Streams

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
    ours = utilities(scores, "baseline", seed=3)[2].bootstrap
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


def test_it_is_witnessed_by_the_bootstrap() -> None:
    for utility in utilities(study(), "baseline", seed=3)[1:]:
        assert utility.interval is not None and utility.bootstrap is not None
        assert utility.bootstrap.low == pytest.approx(utility.interval.low, abs=0.015)
        assert utility.bootstrap.high == pytest.approx(utility.interval.high, abs=0.015)


def test_the_ends_of_simultaneous_intervals_are_at_the_critical_value() -> None:
    """At both ends a - R b is c times its standard error, and of drawn multivariate t (scipy's, correlations
    by hand at the estimated ratios) the largest lies beyond c in 5 %."""
    scores = {name: x.mean(axis=1) for name, x in study(5).items()}
    base, names = scores["baseline"], ("saliency", "grad_cam")
    made = {utility.condition: utility for utility in utilities(study(5), "baseline", seed=3)}
    errors = {name: x.var(ddof=1) / x.size for name, x in scores.items()}
    ratios = {name: scores[name].mean() / base.mean() for name in names}
    spread = {name: np.sqrt(errors[name] + ratios[name] ** 2 * errors["baseline"]) for name in names}
    shared = ratios["saliency"] * ratios["grad_cam"] * errors["baseline"]
    correlation = shared / (spread["saliency"] * spread["grad_cam"])
    rng = np.random.default_rng(4)
    for name in names:
        simultaneous = made[name].simultaneous
        assert simultaneous is not None
        limits = []
        for end in (simultaneous.low, simultaneous.high):
            off = scores[name].mean() - end * base.mean()
            limits.append(abs(off) / np.sqrt(errors[name] + end**2 * errors["baseline"]))
        assert limits[0] == pytest.approx(limits[1])
        parts = errors[name], ratios[name] ** 2 * errors["baseline"]
        df = sum(parts) ** 2 / sum(part**2 / 29 for part in parts)
        law = multivariate_t([0, 0], [[1, correlation], [correlation, 1]], df)
        largest = np.abs(law.rvs(200_000, random_state=rng)).max(axis=1)
        assert np.mean(largest > limits[0]) == pytest.approx(0.05, abs=0.002)


def test_one_condition_alone_needs_no_wider_interval() -> None:
    alone = {name: x for name, x in study().items() if name != "saliency"}
    utility = utilities(alone, "baseline", seed=3)[1]
    assert utility.simultaneous is not None and utility.interval is not None
    ends = utility.interval.low, utility.interval.high
    assert (utility.simultaneous.low, utility.simultaneous.high) == pytest.approx(ends, abs=1e-6)


def test_utility_is_the_ratio_of_the_means_that_are_printed() -> None:
    """A person with a short block counts by trials, in the mean, in Utility and in its interval."""
    right = {name: np.rint(7 * x) for name, x in study().items()}
    asked = {name: np.full(x.shape, 7.0) for name, x in right.items()}
    asked["grad_cam"][:, 2] = 2
    right["grad_cam"][:, 2] = np.minimum(right["grad_cam"][:, 2], 2)
    people = {name: right[name].sum(axis=1) / asked[name].sum(axis=1) for name in right}
    blocks = {name: right[name] / asked[name] for name in right}
    base, _, method = utilities(blocks, "baseline", people=people, seed=1, draws=50)
    assert method.accuracy_mean == pytest.approx(people["grad_cam"].mean())
    assert method.utility == pytest.approx(people["grad_cam"].mean() / people["baseline"].mean())
    assert method.utility != pytest.approx(np.mean(method.accuracy) / np.mean(base.accuracy), abs=1e-3)
    assert method.interval == fieller(people["grad_cam"], people["baseline"])


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
    drawn = {seed: utilities(scores, "baseline", seed=seed)[2].bootstrap for seed in (3, 4)}
    assert drawn[3] == utilities(alone, "baseline", seed=3)[1].bootstrap
    assert drawn[3] != drawn[4]


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


def test_it_refuses_people_of_another_number() -> None:
    scores = study()
    people = {name: x.mean(axis=1)[1:] for name, x in scores.items()}
    with pytest.raises(StatsError, match="has 30 people with blocks and 29 accuracies"):
        utilities(scores, "baseline", people=people, seed=1, draws=10)


@given(seed=st.integers(0, 2**63 - 1), method=st.text())
def test_its_draws_are_those_of_the_named_streams(seed: int, method: str) -> None:
    """Published numbers rest on them."""
    named = Streams(seed)("utility", method).integers(0, 2**62, 4)
    assert (_stream(seed, method).integers(0, 2**62, 4) == named).all()
