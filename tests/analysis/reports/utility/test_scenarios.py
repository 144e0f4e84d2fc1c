"""Scenarios side by side: the layout of Table 1, correlations against scipy, and sentences that follow the
numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import norm, pearsonr, ttest_1samp

from analysis.reports.output.html import document
from analysis.reports.parts.simulated_observers import agreement
from analysis.reports.report import SIMULATED_HEADING
from analysis.reports.utility.scenarios import POINTS_MIN, Scenario, as_json, correlations, reading, tables
from experiments.simulation.controls.substitute_explanations import _row

pytestmark = pytest.mark.pure

METHODS = ("saliency", "occlusion", "grad_cam", "smooth_grad")


def condition(name: str, role: str, accuracy: list[float], utility: float, p: float | None) -> dict[str, Any]:
    return {
        "name": name,
        "label": name.title(),
        "role": role,
        "accuracy": accuracy,
        "utility": utility,
        "utility_k": [utility] * len(accuracy),
        "intervals": {"utility_simultaneous": [utility - 0.1, utility + 0.1]},
        "dunnett": None if p is None else {"p": p},
    }


def control(gain: float, half: float = 0.02) -> dict[str, float]:
    """The p is that of a normal gain with this 95 % interval."""
    p = float(2 * norm.sf(abs(gain) * norm.isf(0.025) / half))
    ends = {"gain_low": gain - half, "gain_high": gain + half}
    return {"accuracy": 0.6 + gain, "gain": gain, **ends, "gain_p": p}


def scenario(slug: str, seed: int, oracle: float = 0.1, permuted: float = 0.0) -> Scenario:
    rng = np.random.default_rng(seed)
    rows = [condition("baseline", "baseline", [0.557, 0.662, 0.629], 1.0, None)]
    rows.append(condition("control", "control", [0.5, 0.6, 0.6], 0.9, 0.7))
    metrics = {"control": {"deletion": 99.0}}
    for name in METHODS:
        utility = float(rng.uniform(0.8, 1.4))
        rows.append(condition(name, "method", [0.7, 0.8, 0.9], utility, 0.01 if utility > 1.1 else 0.4))
        metrics[name] = {"deletion": float(rng.random()), "jpeg_complexity": 5.0}
    controls = {"baseline": control(0.0), "permuted": control(permuted), "oracle": control(oracle)}
    return Scenario(slug, rows, metrics, controls, ("A fault.",))


def three() -> list[Scenario]:
    return [scenario("bias", 1), scenario("strategy", 2, permuted=0.1), scenario("failure", 3, oracle=0.0)]


def test_it_correlates_utility_with_one_minus_deletion_over_methods_of_all_scenarios() -> None:
    scenarios = three()
    correlation = {c.metric: c for c in correlations(scenarios)}["deletion"]
    rows = [(s, r) for s in scenarios for r in s.conditions if r["role"] == "method"]
    utility = [r["utility"] for _, r in rows]
    faithful = [1 - s.metrics[r["name"]]["deletion"] for s, r in rows]
    expected = pearsonr(utility, faithful)
    assert correlation.n == 12
    assert correlation.r == pytest.approx(expected.statistic)
    assert (correlation.low, correlation.high) == pytest.approx(tuple(expected.confidence_interval(0.95)))


def test_it_gives_no_interval_of_few_points_and_no_correlation_without_spread() -> None:
    few = {c.metric: c for c in correlations(three()[:2])}
    assert few["deletion"].n == 8 < POINTS_MIN
    assert few["deletion"].r is not None and few["deletion"].low is None
    assert few["jpeg_complexity"].r is None
    assert (few["insertion"].n, few["insertion"].r) == (0, None)
    printed = {row[0]: row for row in tables(three()[:2])[2].rows}
    assert printed["1 - deletion, the method's own map"][3] == "n too small"
    assert "insertion, the drawn field" not in printed


def test_it_lays_out_conditions_by_scenarios() -> None:
    layout, utilities, _, controls = tables(three())
    assert [row[0] for row in layout.rows] == ["Baseline", "Control", *(name.title() for name in METHODS)]
    assert layout.rows[0] == ("Baseline", *(("55.7", "66.2", "62.9", "\N{EN DASH}") * 3))
    for index, made in enumerate(three()):
        for cells, row in zip(layout.rows[1:], made.conditions[1:], strict=True):
            star = "*" if row["dunnett"]["p"] < 0.05 else ""
            assert cells[4 * (index + 1)] == f"{row['utility']:.2f}{star}"
    assert all(SIMULATED_HEADING in table.note for table in tables(three()))
    methods = ["Control", *(name.title() for name in METHODS)]
    assert [row[:2] for row in utilities.rows] == [
        (made.slug, label) for made in three() for label in methods
    ]
    assert controls.rows[0] == (three()[0].slug, "none", "60.0", "\N{EN DASH}")


def test_a_null_stays_a_null() -> None:
    """With a high p and no gain, every condition has its row and its number all the same."""
    made = scenario("failure", 4, oracle=0.0)
    rows = [{**row, "utility": 1.0, "dunnett": {"p": 0.9}} for row in made.conditions]
    nothing = Scenario(made.slug, rows, made.metrics, made.controls)
    cells = [row[4] for row in tables([nothing])[0].rows]
    assert cells == ["\N{EN DASH}", *["1.00"] * 5]


def test_a_scenario_without_a_condition_has_a_dash() -> None:
    first, second = scenario("bias", 1), scenario("strategy", 2)
    shorter = Scenario("strategy", second.conditions[:3], {}, {})
    layout = tables([first, shorter])[0]
    assert len(layout.rows) == 6
    assert layout.rows[-1][5:] == ("\N{EN DASH}",) * 4


def test_it_reads_the_controls_in_one_sentence() -> None:
    sentence = reading(three())
    assert sentence.count(".") == 1
    assert "helps these observers in bias, strategy and a permuted map in strategy" in sentence
    assert sentence.endswith("where a map points in bias.")
    assert "nowhere" in reading([scenario("failure", 3, oracle=0.0)])


def of_gains(**gains: tuple[float, float]) -> list[Scenario]:
    """Scenarios in which the planted region and a permuted map gain so much, in standard errors."""
    made = []
    for slug, (oracle, permuted) in gains.items():
        half = 0.01 * norm.isf(0.025)
        rows = {"oracle": control(0.01 * oracle, half), "permuted": control(0.01 * permuted, half)}
        made.append(Scenario(slug, [], {}, rows))
    return made


def test_the_sentence_over_all_scenarios_follows_holm_over_them() -> None:
    """Of p .04, .03 and .02 Holm keeps none (.06 at first), of .001, .02 and .04 all; singly all are kept."""
    z = {p: float(norm.isf(p / 2)) for p in (0.001, 0.02, 0.03, 0.04)}
    none = reading(of_gains(a=(z[0.04], 0), b=(z[0.03], 0), c=(z[0.02], 0)))
    assert none.startswith(
        "By Holm's correction over scenarios, the planted region helps these observers nowhere"
    )
    every = reading(of_gains(a=(z[0.04], 0), b=(z[0.02], 0), c=(z[0.001], 0)))
    assert "helps these observers in a, b, c and a permuted map nowhere" in every
    assert "in a and" in reading(of_gains(a=(z[0.04], 0)))
    harmed = reading(of_gains(a=(-z[0.001], 0), b=(z[0.001], 0)))
    assert "helps these observers in b and" in harmed


def test_a_permuted_map_that_helps_in_one_scenario_alone_is_not_excused_by_the_correction() -> None:
    """With p .04 it is in the sentence nowhere, and still no gain there is about where a map points."""
    z = float(norm.isf(0.02))
    said = reading(of_gains(a=(6, z), b=(6, 0)))
    assert "in a, b and a permuted map nowhere" in said and said.endswith("where a map points in b.")


def test_p_of_a_gain_is_that_of_the_t_test_of_its_interval() -> None:
    values = np.random.default_rng(2).normal(0.03, 0.1, 12).astype(np.float32)
    base = np.full(12, 0.5, dtype=np.float32)
    row = _row(("all", "oracle", ""), base + values, base, 84)
    assert row.gain_p == pytest.approx(ttest_1samp(values, 0).pvalue, rel=1e-4)
    assert _row(("all", "oracle", ""), base[:1] + 0.1, base[:1], 7).gain_p == 1
    assert _row(("all", "oracle", ""), base, base, 84).gain_p == 1


def test_stars_and_intervals_are_called_those_of_one_scenario() -> None:
    layout, utilities, _, controls = tables(three())
    assert (
        "* in this scenario alone: Dunnett" in layout.note and "not corrected over scenarios" in layout.note
    )
    assert "of each scenario alone" in utilities.note and "of each scenario alone" in controls.note


def test_it_says_that_differing_rankings_are_undecided() -> None:
    alike = {"a": {"x": 0.6, "y": 0.7, "z": 0.9}, "b": {"x": 0.5, "y": 0.51, "z": 0.8}}
    assert agreement(alike) == "All observers rank the methods alike."
    differ = {**alike, "c": {"x": 0.7, "y": 0.6, "z": 0.9}}
    assert "2 of 3 pairs" in agreement(differ) and agreement(differ).endswith("undecided.")
    tied = {**alike, "c": {"x": 0.6, "y": 0.6, "z": 0.9}}
    assert "undecided" in agreement(tied)
    assert "nothing is ranked" in agreement({"a": {"x": 0.5}})


def test_it_says_on_every_page_that_they_are_observers() -> None:
    scenarios = three()
    page = document("Side by side", SIMULATED_HEADING, [reading(scenarios)], tables(scenarios))
    assert SIMULATED_HEADING in page and "<script" not in page
    assert page.count("<table") == 4
    told = as_json(scenarios)
    assert told["heading"] == SIMULATED_HEADING
    assert [s["slug"] for s in told["scenarios"]] == ["bias", "strategy", "failure"]
