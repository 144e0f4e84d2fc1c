"""Several scenarios side by side in the layout of Colin et al. (2022), Table 1, and what Utility goes along
with.

Everything is taken from the reports of the single studies, as they are stored; nothing is computed anew but
the correlations over (scenario x method) points.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from analysis.any_table.formats import NONE, confidence, interval, number, p_value, percent, stars
from analysis.any_table.result_tables import Table
from analysis.reports.report import SIMULATED_HEADING
from analysis.reports.utility.accuracy_anova import LEVEL, planned_p
from analysis.reports.utility.faithfulness import across
from analysis.stats.intervals_and_checks import Interval
from analysis.stats.means.tukey_and_corrections import holm
from experiments.definition.preregistration_table import ALPHA

POINTS_MIN = 10
"""Below it no interval of a correlation is given: at 6 points it spans most of the range."""
PREDICTORS = {
    "deletion": "1 - deletion, the method's own map",
    "deletion_drawn": "1 - deletion, the drawn field",
    "insertion": "insertion, the method's own map",
    "insertion_drawn": "insertion, the drawn field",
    "jpeg_complexity": "complexity (size as JPEG)",
    "diagnostic_similarity": "similarity of the classes' marked regions",
    "method_similarity": "similarity to the other methods",
}
REVERSED = frozenset({"deletion", "deletion_drawn"})
"""Metrics of which the paper takes one minus the value."""
READ = ("baseline", "permuted", "other_image", "oracle", "ceiling")


@dataclass(frozen=True, slots=True)
class Scenario:
    """One study: `conditions` as in its report.json, `metrics` the mean value by condition and metric,
    `controls` the rows of all observers together, by control: accuracy, gain, gain_low, gain_high (0-1), and
    `gain_p` of a gain of 0, two-sided.
    `notes` are sentences about it, such as faults of observers, `faithfulness` is that part of its
    report.json."""

    slug: str
    conditions: Sequence[Mapping[str, Any]]
    metrics: Mapping[str, Mapping[str, float]]
    controls: Mapping[str, Mapping[str, float]]
    notes: tuple[str, ...] = ()
    faithfulness: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class Correlation:
    """Pearson's r of Utility with a metric over (scenario x method) points; None if it is not defined."""

    metric: str
    n: int
    r: float | None
    low: float | None
    high: float | None


def correlations(scenarios: Sequence[Scenario]) -> list[Correlation]:
    """Of Utility with each metric that was measured, over methods without the control, all scenarios."""
    return [_correlation(metric, _points(scenarios, metric)) for metric in PREDICTORS]


def _points(scenarios: Sequence[Scenario], metric: str) -> list[tuple[float, float]]:
    points = []
    for scenario in scenarios:
        for row in scenario.conditions:
            value = scenario.metrics.get(str(row["name"]), {}).get(metric)
            if row["role"] != "method" or row["utility"] is None or value is None:
                continue
            points.append((float(row["utility"]), 1 - value if metric in REVERSED else value))
    return points


def _correlation(metric: str, points: Sequence[tuple[float, float]]) -> Correlation:
    """Fisher's z for the interval, from POINTS_MIN points on."""
    n = len(points)
    utility, value = np.array(points, dtype=np.float64).reshape(n, 2).T
    if n < 3 or utility.std() == 0 or value.std() == 0:
        return Correlation(metric, n, None, None, None)
    r = float(np.corrcoef(utility, value)[0, 1])
    if n < POINTS_MIN or abs(r) >= 1:
        return Correlation(metric, n, r, None, None)
    centre, half = math.atanh(r), 1.959964 / math.sqrt(n - 3)
    return Correlation(metric, n, r, math.tanh(centre - half), math.tanh(centre + half))


def tables(scenarios: Sequence[Scenario]) -> tuple[Table, ...]:
    """Table 1's layout, Utility-K and Utility with intervals, the correlations, the controls."""
    return (
        _layout(scenarios),
        _utilities(scenarios),
        _correlation_table(correlations(scenarios)),
        _control_table(scenarios),
        *((faithful,) if (faithful := _faithfulness(scenarios)[0]).rows else ()),
    )


def _faithfulness(scenarios: Sequence[Scenario]) -> tuple[Table, tuple[str, ...]]:
    return across({s.slug: s.faithfulness for s in scenarios})


def rankings(scenarios: Sequence[Scenario]) -> tuple[str, ...]:
    """Where the methods stand in another order by what was seen than by their own maps."""
    return _faithfulness(scenarios)[1]


def _condition_labels(scenarios: Sequence[Scenario]) -> list[tuple[str, str]]:
    """The conditions of all scenarios in order of appearance: name and label."""
    names: dict[str, str] = {}
    for scenario in scenarios:
        for row in scenario.conditions:
            names.setdefault(str(row["name"]), str(row["label"]))
    return list(names.items())


def _row(scenario: Scenario, name: str) -> Mapping[str, Any] | None:
    return next((row for row in scenario.conditions if row["name"] == name), None)


def _blocks(scenario: Scenario) -> int:
    return max((len(row["accuracy"] or ()) for row in scenario.conditions), default=0)


def _layout(scenarios: Sequence[Scenario]) -> Table:
    heads, short = ["Condition"], ["Condition"]
    for scenario in scenarios:
        blocks = range(1, _blocks(scenario) + 1)
        heads += [*(f"{scenario.slug} {block}" for block in blocks), f"{scenario.slug} Utility"]
        short += [*(f"B{block}" for block in blocks), scenario.slug]
    rows = []
    for name, label in _condition_labels(scenarios):
        cells = [label]
        for scenario in scenarios:
            row = _row(scenario, name)
            accuracy = (row or {}).get("accuracy") or [None] * _blocks(scenario)
            cells += [percent(share) for share in accuracy]
            cells.append(_utility(row))
        rows.append(tuple(cells))
    return Table(
        "scenarios",
        "Accuracy (%) per block, and Utility, by scenario",
        tuple(heads),
        tuple(rows),
        f"{SIMULATED_HEADING} * in this scenario alone: Dunnett against the baseline on accuracy per person, "
        "p < .05, as in each study's own report, not corrected over scenarios; no threshold removes a null.",
        short=tuple(short),
    )


def _utility(row: Mapping[str, Any] | None) -> str:
    if row is None or row["role"] == "baseline":
        return NONE
    return number(row["utility"]) + stars(planned_p(row))


def _utilities(scenarios: Sequence[Scenario]) -> Table:
    rows, held = [], set()
    for scenario in scenarios:
        for row in scenario.conditions:
            if row["role"] == "baseline":
                continue
            # Reports of before plans had a level of their own do not tell it.
            held.add(confidence(row["intervals"].get("simultaneous_level", LEVEL)))
            by_block = " ".join(number(value) for value in row["utility_k"] or ())
            utility = (
                by_block or NONE,
                interval(row["intervals"]["utility_simultaneous"]),
                p_value(planned_p(row)),
            )
            rows.append((scenario.slug, str(row["label"]), *utility))
    return Table(
        "scenario_utilities",
        "Utility-K per block, and the interval of Utility that holds for all conditions",
        ("Scenario", "Condition", "Utility-K", f"Utility {' or '.join(sorted(held))}", "p"),
        tuple(rows),
        f"{SIMULATED_HEADING} p and intervals are those of each scenario alone, and not corrected over them.",
        left=2,
    )


def _correlation_table(rows_of: Sequence[Correlation]) -> Table:
    rows = tuple(
        (PREDICTORS[c.metric], str(c.n), number(c.r), _correlation_interval(c)) for c in rows_of if c.n
    )
    return Table(
        "scenario_correlations",
        "Utility and automatic metrics, over scenario x method",
        ("Metric", "n", "Pearson's r", "95 % interval"),
        rows,
        f"{SIMULATED_HEADING} Fisher's z, from {POINTS_MIN} points on; methods of one scenario share its "
        "pictures and baseline, so the points are not independent and the intervals are too narrow.",
    )


def _correlation_interval(correlation: Correlation) -> str:
    if correlation.r is None:
        return "not defined"
    if correlation.low is None or correlation.high is None:
        return "n too small"
    return interval(Interval(correlation.low, correlation.high))


def _control_table(scenarios: Sequence[Scenario]) -> Table:
    rows = []
    for scenario in scenarios:
        for control in READ:
            row = scenario.controls.get(control)
            if row is None:
                continue
            gain = Interval(row["gain_low"], row["gain_high"])
            moved = NONE if control == "baseline" else f"{100 * row['gain']:+z.1f} {interval(gain, 1, 100)}"
            name = control.replace("_", " ").replace("baseline", "none")
            rows.append((scenario.slug, name, percent(row["accuracy"]), moved))
    return Table(
        "scenario_controls",
        "Controls of the observers",
        ("Scenario", "Explanation", "Accuracy %", "Gain"),
        tuple(rows),
        f"{SIMULATED_HEADING} Intervals are those of each scenario alone.",
        left=2,
    )


def reading(scenarios: Sequence[Scenario]) -> str:
    """The one sentence that reads the controls. It speaks of all scenarios, so it follows Holm's correction
    over them; a permuted map that helps in a scenario alone already speaks against a gain there."""
    helped = {control: _slugs_with_gain(scenarios, control) for control in ("oracle", "permuted")}
    doubted = {s.slug for s in scenarios if s.controls.get("permuted", {}).get("gain_low", 0) > 0}
    sound = [slug for slug in helped["oracle"] if slug not in {*helped["permuted"], *doubted}]
    return (
        "By Holm's correction over scenarios, the planted region helps these observers "
        f"{_where(helped['oracle'])} and a permuted map {_where(helped['permuted'])}, so a gain says "
        f"something about where a map points {_where(sound)}."
    )


def _slugs_with_gain(scenarios: Sequence[Scenario], control: str) -> list[str]:
    read = {s.slug: s.controls[control] for s in scenarios if control in s.controls}
    corrected = holm([row["gain_p"] for row in read.values()])
    return [
        slug for (slug, row), p in zip(read.items(), corrected, strict=True) if row["gain"] > 0 and p < ALPHA
    ]


def _where(slugs: Sequence[str]) -> str:
    return f"in {', '.join(slugs)}" if slugs else "nowhere"


def as_json(scenarios: Sequence[Scenario]) -> dict[str, Any]:
    """All numbers of the tables."""
    return {
        "heading": SIMULATED_HEADING,
        "scenarios": [asdict(scenario) for scenario in scenarios],
        "correlations": [asdict(row) for row in correlations(scenarios)],
        "reading": reading(scenarios),
        "rankings": list(rankings(scenarios)),
    }
