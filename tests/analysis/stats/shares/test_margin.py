"""Decisions by a margin: the rule by hand, the numbers that would decide, error rates at planted values."""

from __future__ import annotations

import math
from collections import Counter
from statistics import NormalDist

import numpy as np
import pytest
from scipy.optimize import brentq

from analysis.stats.intervals_and_checks import StatsError
from analysis.stats.shares.margin_decision import MarginDecision, margin_decision
from analysis.stats.shares.pigeonhole import CrossedEstimate, pigeonhole
from tests.analysis.reviewed import crossed_table, marginal
from tests.proofs.chance import likely_share
from tests.proofs.scale import Scale

pytestmark = [pytest.mark.pure, pytest.mark.filterwarnings("error")]
MARGIN = 0.1
STUDIES, STUDIES_FULL = 40, 500
SDS = (0.6, 0.5, 0.3)
Z = NormalDist()


def estimate(difference: float, se: float, leads: int = 24, tasks: int = 60) -> CrossedEstimate:
    """One whose t values are those of the normal distribution, so that its intervals are known."""
    quantiles = np.array([Z.inv_cdf((at + 0.5) / 4001) for at in range(4001)])
    return CrossedEstimate(
        difference, difference, se, leads, tasks, 960, {}, "share", 4001, 0, "", (-1.0, 1.0), quantiles
    )


@pytest.mark.parametrize(
    ("difference", "se", "decision"),
    [
        (0.0, 0.04, "equivalent"),  # 90 %: ±.066
        (0.05, 0.03, "equivalent"),  # .05 + 1.645 x .03 = .0993
        (0.05, 0.031, "inconclusive"),  # .101
        (-0.2, 0.05, "worse"),  # -.2 + 1.96 x .05 = -.102
        (-0.2, 0.052, "inconclusive"),  # -.098
        (0.2, 0.05, "superior"),
        (0.2, 0.052, "inconclusive"),
        (0.0, 0.07, "inconclusive"),  # ±.115
    ],
)
def test_the_intervals_decide(difference: float, se: float, decision: str) -> None:
    made = margin_decision(estimate(difference, se), MARGIN)
    assert made.decision == decision
    assert made.wide.low == pytest.approx(difference - 1.95996 * se, abs=2e-4)
    assert made.narrow.high == pytest.approx(difference + 1.64485 * se, abs=2e-4)
    assert (made.factor is None) == (decision != "inconclusive")
    assert made.table()[0]["decision"] == decision


def decided(made: MarginDecision, se: float) -> float:
    """With how much power the study would decide with that many people and items: by simulated estimates."""
    assert made.factor is not None
    error = se / math.sqrt(made.factor)
    rng = np.random.default_rng(1)
    tried = made.difference + error * rng.standard_normal(200_000)
    if abs(made.difference) < made.margin:
        right = (tried - 1.64485 * error > -made.margin) & (tried + 1.64485 * error < made.margin)
    else:
        right = np.abs(tried) - 1.95996 * error > made.margin
    return float(right.mean())


@pytest.mark.parametrize(("difference", "se"), [(0.0, 0.07), (0.05, 0.04), (-0.15, 0.05), (0.13, 0.03)])
@pytest.mark.parametrize("power", [0.8, 0.9])
def test_the_numbers_named_decide_with_the_power_named(difference: float, se: float, power: float) -> None:
    made = margin_decision(estimate(difference, se), MARGIN, power=power)
    assert decided(made, se) == pytest.approx(power, abs=0.005)
    assert made.factor is not None and made.people_needed == math.ceil(24 * made.factor)
    assert made.items_needed == math.ceil(60 * made.factor)


def test_at_the_margin_no_number_decides() -> None:
    made = margin_decision(estimate(0.1, 0.05), MARGIN)
    assert made.decision == "inconclusive" and made.factor is None and made.people_needed is None


@pytest.mark.parametrize(
    ("leads", "tasks", "margin", "words"),
    [
        (11, 60, MARGIN, "There are 11 people and 60 items; a decision needs at least 12 and 30"),
        (24, 29, MARGIN, "There are 24 people and 29 items"),
        (24, 60, 0.0, "The margin 0.0 and the power 0.8 must lie in"),
        (24, 60, 1.0, "The margin 1.0"),
    ],
)
def test_too_little_is_a_sentence_and_no_verdict(leads: int, tasks: int, margin: float, words: str) -> None:
    with pytest.raises(StatsError, match=words):
        margin_decision(estimate(0.0, 0.01, leads, tasks), margin)


def test_a_difference_without_an_interval_has_no_verdict() -> None:
    leads, tasks = np.divmod(np.arange(12 * 30), 30)
    cells = ["a" if (lead + task) % 2 else "b" for lead, task in zip(leads, tasks, strict=True)]
    always = pigeonhole(np.ones(360), cells, leads, tasks, {"a": 1, "b": -1})
    with pytest.raises(StatsError, match="the answers do not vary"):
        margin_decision(always, MARGIN)


def planted(difference: float, *, leads: int, tasks: int, scale: Scale, seed: int) -> Counter[str]:
    """How often each decision falls if the model's solutions are accepted that much more often than people's,
    which are accepted in 72 of 100 cases."""
    people = 1.05
    share = marginal(people, SDS)
    model = float(brentq(lambda logit: marginal(logit, SDS) - share - difference, -5, 8))
    told: Counter[str] = Counter()
    for number in range(scale.of(STUDIES, STUDIES_FULL)):
        at = number + 10_000 * scale.seed + 100_000 * seed
        t = crossed_table(
            {"model": model, "people": people}, leads=leads, tasks=tasks, per_lead=40, sds=SDS, seed=at
        )
        weights = {"model": 1.0, "people": -1.0}
        made = pigeonhole(t.yes, t.source, t.leads, t.tasks, weights, draws=800, seed=at)
        told[margin_decision(made, MARGIN).decision] += 1
    return told


@pytest.mark.parametrize(("leads", "tasks"), [(16, 80), (48, 160)])
@pytest.mark.parametrize(
    ("difference", "wrong"),
    [
        (MARGIN, {"equivalent": 0.05, "superior": 0.025, "worse": 0.0}),
        (-MARGIN, {"equivalent": 0.05, "worse": 0.025, "superior": 0.0}),
        (0.0, {"worse": 0.0, "superior": 0.0}),
    ],
)
def test_wrong_decisions_are_as_rare_as_promised(
    leads: int, tasks: int, difference: float, wrong: dict[str, float], scale: Scale
) -> None:
    """At the margin itself every decision is wrong; without a difference only two are."""
    told = planted(difference, leads=leads, tasks=tasks, scale=scale, seed=1)
    count = told.total()
    print(f"{leads} leads, {tasks} tasks, difference {difference}: {dict(told)}")
    for decision, rate in wrong.items():
        assert told[decision] / count <= likely_share(rate, count).high, told


@pytest.mark.parametrize(("difference", "right"), [(0.0, "equivalent"), (-0.25, "worse"), (0.25, "superior")])
def test_what_is_there_is_found(difference: float, right: str, scale: Scale) -> None:
    told = planted(difference, leads=48, tasks=160, scale=scale, seed=2)
    count = told.total()
    print(f"48 leads, 160 tasks, difference {difference}: {dict(told)}")
    assert told[right] / count >= likely_share(0.8, count).low, told
