"""Witnesses: published limits (Jennison and Turnbull; the program of Lan and DeMets), simulated studies."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from scipy.stats import norm

from analysis.stats.intervals_and_checks import StatsError
from analysis.stats.means.dunnett import critical_value
from analysis.stats.planning.sequential_looks import (
    LookPlan,
    Spending,
    crossing_probability,
    family_levels,
    look,
    look_limits,
)
from tests.proofs.chance import likely_share

pytestmark = pytest.mark.pure
FIVE = (0.2, 0.4, 0.6, 0.8, 1.0)
STUDIES = 20_000


def test_it_has_the_published_limits_of_the_two_spending_functions() -> None:
    """Five looks of equal size, two-sided .05, by Lan and DeMets's program (ldbounds)."""
    obrien = look_limits(LookPlan(FIVE))
    assert obrien == pytest.approx((4.877, 3.357, 2.680, 2.290, 2.031), abs=6e-4)
    pocock = look_limits(LookPlan(FIVE, "pocock"))
    assert pocock == pytest.approx((2.438, 2.427, 2.410, 2.397, 2.386), abs=6e-4)


@pytest.mark.parametrize(
    ("looks", "pocock", "obrien"),
    [(2, 2.178, 1.977), (3, 2.289, 2.004), (4, 2.361, 2.024), (5, 2.413, 2.040), (10, 2.555, 2.087)],
)
def test_the_constants_of_jennison_and_turnbull_err_with_alpha(
    looks: int, pocock: float, obrien: float
) -> None:
    """Tables 2.1 and 2.3: the limit is constant, or falls with the root of the share."""
    shares = [(at + 1) / looks for at in range(looks)]
    assert crossing_probability([pocock] * looks, shares) == pytest.approx(0.05, abs=1e-4)
    falling = [obrien / math.sqrt(share) for share in shares]
    assert crossing_probability(falling, shares) == pytest.approx(0.05, abs=1e-4)


@pytest.mark.parametrize("drift", [0.0, 3.0])
def test_simulated_studies_stop_as_often(drift: float) -> None:
    """Unequal looks: sums of normal steps, none of the integral's code."""
    shares = (0.25, 0.4, 0.8, 1.0)
    limits = look_limits(LookPlan(shares, "pocock"))
    rng = np.random.default_rng(4)
    steps = np.diff((0.0, *shares))
    moves = rng.normal(drift * steps, np.sqrt(steps), (STUDIES, 4))
    z = np.cumsum(moves, axis=1) / np.sqrt(shares)
    stopped = float((np.abs(z) > limits).any(axis=1).mean())
    expected = crossing_probability(limits, shares, drift)
    assert likely_share(expected, STUDIES).holds(stopped)
    assert drift or expected == pytest.approx(0.05, abs=1e-6)


def test_a_look_says_continue_or_stop_and_nothing_else() -> None:
    plan = LookPlan(FIVE)
    limit = look_limits(plan)[2]
    beyond, within = (float(2 * norm.sf(limit + gap)) for gap in (0.01, -0.01))
    assert (look(plan, 3, beyond), look(plan, 3, within)) == ("stop", "continue")
    assert look(plan, 1, 0.01) == "continue", "what is enough at the end is not enough at the first look"
    assert look(plan, 5, 0.9) == "stop", "the study is complete"


def test_one_look_is_no_look() -> None:
    assert look_limits(LookPlan((1.0,))) == pytest.approx((1.959964,), abs=1e-6)


def test_the_family_levels_of_one_contrast_are_those_of_its_limits() -> None:
    for spending in ("obrien_fleming", "pocock"):
        plan = LookPlan(FIVE, spending)
        limits = 2 * norm.sf(look_limits(plan))
        assert family_levels(plan, 1) == pytest.approx(limits, rel=1e-4, abs=1e-9)
    with pytest.raises(StatsError, match="number of contrasts"):
        family_levels(LookPlan(FIVE), 0)


def rejected(levels: Sequence[float], sizes: Sequence[int], contrasts: int) -> float:
    """The share of studies without any difference in which Dunnett's test of normal values rejects at a look:
    sums of the first so many people per group, one pooled variance."""
    rng = np.random.default_rng(9)
    draws = rng.normal(size=(STUDIES, contrasts + 1, sizes[-1])).astype(np.float32)
    loadings = np.full(contrasts, math.sqrt(0.5))
    is_rejected = np.zeros(STUDIES, bool)
    for level, n in zip(levels, sizes, strict=True):
        seen, df = draws[:, :, :n], (contrasts + 1) * (n - 1)
        means, pooled = seen.mean(axis=2), seen.var(axis=2, ddof=1).mean(axis=1)
        t = np.abs(means[:, 1:] - means[:, :1]).max(axis=1) / np.sqrt(2 * pooled / n)
        is_rejected |= t > critical_value(loadings, df, 1 - level)
    return float(is_rejected.mean())


@pytest.mark.parametrize(("spending", "contrasts"), [("obrien_fleming", 2), ("pocock", 2), ("pocock", 7)])
def test_looks_at_several_contrasts_err_at_alpha_together(spending: Spending, contrasts: int) -> None:
    """The error of the family over all looks is at most .05 within chance, with few people too, and not far
    below; without the correction it is well above."""
    sizes = (5, 10, 15, 30)
    plan = LookPlan(tuple(n / sizes[-1] for n in sizes), spending)
    error = rejected(family_levels(plan, contrasts), sizes, contrasts)
    assert 0.035 < error <= likely_share(0.05, STUDIES).high
    assert rejected([0.05] * 4, sizes, contrasts) > 0.1


def test_looks_that_no_plan_names_are_refused() -> None:
    with pytest.raises(StatsError, match="the last of them 1"):
        look_limits(LookPlan((0.5, 0.9)))
    with pytest.raises(StatsError, match="ascending"):
        look_limits(LookPlan((0.5, 0.4, 1.0)))
    with pytest.raises(StatsError, match="The plan has 5 looks, and 6 is none of them"):
        look(LookPlan(FIVE), 6, 0.5)
    with pytest.raises(StatsError, match="name it 'obrien_fleming' or 'pocock'"):
        look_limits(LookPlan(FIVE, "mine"))  # type: ignore[arg-type]
