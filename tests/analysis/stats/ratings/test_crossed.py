"""Crossed random effects against R's glmer and clmm on stored data, plain differences and integrals."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import approx_fprime
from scipy.special import expit
from scipy.stats import chi2, norm
from scipy.stats import f as f_distribution

from analysis.stats.intervals_and_checks import StatsError
from analysis.stats.ratings import ordinal_model
from analysis.stats.ratings.ordinal_model import CrossedFit, fit_crossed, likelihood_ratio, profile_interval

pytestmark = [pytest.mark.pure, pytest.mark.filterwarnings("error")]
STORED = Path(__file__).resolve().parents[3] / "oracles" / "crossed"
WITNESS: dict[str, Any] = json.loads((STORED / "witness.json").read_text())


def stored(name: str) -> tuple[np.ndarray, dict[str, np.ndarray], dict[str, list[str]]]:
    with (STORED / f"{name}.csv").open() as lines:
        rows = np.array([[int(cell) for cell in row] for row in list(csv.reader(lines))[1:]])
    person, item, condition, answer = rows.T
    fixed = {f"condition{level}": (condition == level).astype(float) for level in (1, 2)}
    cells = [f"{i}/{c}" for i, c in zip(item, condition, strict=True)]
    return answer, fixed, {"person": list(map(str, person)), "item": list(map(str, item)), "cell": cells}


@pytest.fixture(scope="module", params=[("binary", "glmer"), ("ordered", "clmm")], ids=lambda pair: pair[1])
def fits(request: pytest.FixtureRequest) -> tuple[CrossedFit, CrossedFit, dict[str, Any]]:
    answers, fixed, factors = stored(request.param[0])
    return fit_crossed(answers, fixed, factors), fit_crossed(answers, {}, factors), WITNESS[request.param[1]]


def test_it_equals_r(fits: tuple[CrossedFit, CrossedFit, dict[str, Any]]) -> None:
    """Log-likelihood to .001, effects to a thousandth of their standard error, variances to 1 %."""
    fit, without, told = fits
    assert fit.log_likelihood == pytest.approx(told["log_likelihood"], abs=1e-3)
    assert without.log_likelihood == pytest.approx(told["log_likelihood_without"], abs=1e-3)
    for value, expected, error in zip(fit.effects.values(), told["effects"], told["errors"], strict=True):
        assert value == pytest.approx(expected, abs=1e-3 * error)
    assert fit.thresholds == pytest.approx(told["thresholds"], abs=1e-3)
    for factor, sd in zip(("person", "item", "cell"), told["sds"], strict=True):
        assert fit.sds[factor] ** 2 == pytest.approx(sd**2, rel=0.01)


def test_the_ratio_is_that_of_r_s_fits(fits: tuple[CrossedFit, CrossedFit, dict[str, Any]]) -> None:
    fit, without, told = fits
    ratio = likelihood_ratio(fit, without)
    difference = told["log_likelihood"] - told["log_likelihood_without"]
    assert ratio.df == 2 and ratio.statistic == pytest.approx(2 * difference, abs=2e-3)
    # R refers it to chi-square; here 45 people in three conditions are the denominator. F(2, v) has this
    # closed form, whose limit is that of chi-square, exp(-ratio / 2).
    assert ratio.df_error == 45 - 3
    assert ratio.p == pytest.approx((1 + ratio.statistic / 42) ** -21)
    assert ratio.p > math.exp(-ratio.statistic / 2)


def test_the_gradient_is_that_of_plain_differences() -> None:
    for name in ("binary", "ordered"):
        data = ordinal_model._data(*stored(name))
        gaps = [-0.1] * (data.k - 2)
        at = np.array([0.1, *gaps, 0.4, -0.2, 0.7, 0.5, 0.3])
        _, gradient = ordinal_model._Laplace(data)(at)
        plain = approx_fprime(at, lambda point, rows=data: ordinal_model._Laplace(rows)(point)[0], 1e-6)
        assert gradient == pytest.approx(plain, abs=5e-4)


def test_a_profile_interval_is_that_of_r() -> None:
    """R: confint(m, method = "profile"), whose limit is that of chi-square: F(1, 42) has it at this level."""
    fit = fit_crossed(*stored("binary"))
    level = float(f_distribution.cdf(chi2.isf(0.05, 1), 1, 42))
    interval = profile_interval(fit, "condition1", level=level)
    assert 0.94 < level < 0.95
    assert [interval.low, interval.high] == pytest.approx(WITNESS["glmer_profile"], abs=1e-3)


def test_an_interval_ends_where_the_test_begins_to_reject() -> None:
    """At the level of 1 - p an end of the interval is 0."""
    answers, fixed, factors = stored("binary")
    rest = {"condition2": fixed["condition2"]}
    fit = fit_crossed(answers, fixed, factors)
    p = likelihood_ratio(fit, fit_crossed(answers, rest, factors)).p
    interval = profile_interval(fit, "condition1", level=1 - p)
    assert interval.low == pytest.approx(0, abs=1e-3) and interval.high > 1


def test_shares_are_those_of_the_whole_population(
    fits: tuple[CrossedFit, CrossedFit, dict[str, Any]],
) -> None:
    fit, _, _ = fits
    spread = math.sqrt(sum(sd**2 for sd in fit.sds.values()))
    eta = fit.effects["condition2"]
    below = [
        quad(lambda u, cut=cut: float(expit(cut - eta - u) * norm.pdf(u, scale=spread)), -12, 12)[0]
        for cut in fit.thresholds
    ]
    shares = fit.probabilities({"condition2": 1.0})
    assert sum(shares) == pytest.approx(1)
    assert np.cumsum(shares)[:-1] == pytest.approx(below, abs=1e-8)


def test_bad_input_gets_a_sentence() -> None:
    answers, fixed, factors = stored("binary")
    people = {"person": factors["person"]}
    cases: list[tuple[tuple[Any, Any, Any], str]] = [
        (([], {}, people), "There are 0 answers"),
        ((np.ones(answers.size), {}, people), "nothing can be compared"),
        ((answers, {}, {}), "at least one factor"),
        ((answers, fixed, {"person": ["a"]}), "person: give one value for each"),
        ((answers, {"a": np.ones(3)}, people), "a: give one value"),
        ((answers, {"a": np.ones(answers.size)}, people), "depend on each other or are constant"),
        ((answers, {**fixed, "c": sum(fixed.values())}, people), "depend on each other"),
        ((["x"] * answers.size, {}, people), "must hold numbers"),
        ((answers, {"same": answers.astype(float)}, people), "no finite estimate"),
    ]
    for arguments, sentence in cases:
        with pytest.raises(StatsError, match=sentence):
            fit_crossed(*arguments)
    fit = fit_crossed(answers, {}, people)
    with pytest.raises(StatsError, match="is no effect of this fit"):
        profile_interval(fit, "condition1")
    with pytest.raises(StatsError, match="compare a fit with a smaller one"):
        likelihood_ratio(fit, fit)
    # A smaller fit is no part if it has other factors or columns.
    whole = fit_crossed(answers, fixed, factors)
    for part in (fit, fit_crossed(answers, {"other": fixed["condition1"]}, factors)):
        with pytest.raises(StatsError, match="of the same answers and factors"):
            likelihood_ratio(whole, part)
