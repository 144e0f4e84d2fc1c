"""The scenarios of Colin et al. one after another, with their results side by side."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.db.models import Avg

from analysis.reports.output.html import document
from analysis.reports.output.terminal import print_table
from analysis.reports.report import SIMULATED_HEADING, Report
from analysis.reports.utility.scenarios import PREDICTORS, Scenario, as_json, rankings, reading, tables
from experiments.models import Rendering, Study
from experiments.simulation.controls.substitute_explanations import ALL, ControlReport
from experiments.terminal import Terminal

SCENARIO_STUDIES = ("wolf-or-husky", "leaves", "foxes")
"""The shipped studies of the scenarios, in the order of the paper."""
TITLE = "Scenarios side by side"


def metric_tables() -> list[dict[str, Any]]:
    """What is measured of every explanation, as [[metrics]] of a study; no part of a study's digest."""
    return [{"name": name} for name in PREDICTORS]


def scenario_of(study: Study, report: Report, controls: ControlReport | None) -> Scenario:
    """What the tables need of a study that was run."""
    rows = controls.rows if controls else ()
    read = {
        row.control: {
            "accuracy": row.accuracy,
            "gain": row.gain,
            "gain_low": row.gain_low,
            "gain_high": row.gain_high,
            "gain_p": row.gain_p,
        }
        for row in reversed(rows)
        if row.observer == ALL and (not row.condition or row.control not in _together(rows))
    }
    json_report = report.json()
    return Scenario(
        study.slug,
        json_report["conditions"],
        _metrics(study),
        read,
        controls.faults if controls else (),
        json_report.get("faithfulness", ()),
    )


def _together(rows: Any) -> set[str]:
    """The controls with a row for all conditions together."""
    return {row.control for row in rows if row.observer == ALL and not row.condition}


def _metrics(study: Study) -> Mapping[str, Mapping[str, float]]:
    """The mean of each metric over a condition's explanations."""
    measured = "stimulus__measurements__"
    rows = (
        Rendering.objects.filter(item__study=study, **{f"{measured}value__isnull": False})
        .values_list("condition__name", f"{measured}metric")
        .annotate(mean=Avg(f"{measured}value"))
        .order_by()
    )
    means: dict[str, dict[str, float]] = defaultdict(dict)
    for condition, metric, mean in rows:
        means[condition][metric] = float(mean)
    return dict(means)


def print_scenarios(scenarios: list[Scenario], terminal: Terminal) -> None:
    """The tables in the terminal, and in scenarios.json and scenarios.html."""
    printed = tables(scenarios)
    notes = [*(f"{s.slug}: {note}" for s in scenarios for note in s.notes), *rankings(scenarios)]
    terminal.line("")
    terminal.line(SIMULATED_HEADING)
    for table in printed:
        print_table(table, terminal.console)
    for sentence in (reading(scenarios), *notes):
        terminal.line(sentence)
    path = settings.VAR_DIR / "scenarios.json"
    path.write_text(json.dumps(as_json(scenarios), indent=2), encoding="utf-8")
    page = document(TITLE, SIMULATED_HEADING, [reading(scenarios), *notes], printed)
    path.with_suffix(".html").write_text(page, encoding="utf-8")
    terminal.line(f"Written to {path} and {path.with_suffix('.html')}.")
