"""The section of every report on what was planned: the stored plan, its witness, and the departures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from analysis.reports.base import Section, Table
from analysis.reports.report import Report
from experiments.preregistration_text import entries

KEY = "preregistration"
NO_PLAN = (
    "No plan is stored: this study was opened before plans were stored with it, so departures cannot be told."
)
KEPT = "No departure from the stored plan."


def with_plan(report: Report) -> Report:
    """The report with the section on what was planned, after the flow; as it is if its facts do not tell."""
    plan = report.facts.preregistration
    if not plan:
        return report
    place = next((at for at, part in enumerate(report.sections, 1) if part.key == report.flow.key), None)
    before, after = (
        report.sections[:place],
        report.sections[len(report.sections) if place is None else place :],
    )
    return replace(report, sections=(*before, _section(plan), *after))


def _section(plan: Mapping[str, Any]) -> Section:
    if not plan["stored"]:
        return Section(KEY, "Preregistration", dict(plan), (NO_PLAN,))
    stored = (
        f"The plan was stored when the study opened, on {plan['stored_at'][:16].replace('T', ' ')} UTC. "
        f"SHA-256 of the document: {plan['digest']}. {plan['witness']}"
    )
    departures = plan["departures"]
    count = "1 departure" if len(departures) == 1 else f"{len(departures)} departures"
    said = f"{count} from the stored plan." if departures else KEPT
    tables = (_departures(departures), _document(plan["document"]))
    return Section(KEY, "Preregistration", dict(plan), (stored, said, *plan["notes"]), tables)


def _departures(departures: list[dict[str, str]]) -> Table:
    return Table(
        "departures",
        "Departures from the stored plan",
        ("Field", "Planned", "Now"),
        tuple((row["field"], row["planned"], row["now"]) for row in departures),
        left=3,
    )


def _document(document: Mapping[str, Any]) -> Table:
    return Table(
        "preregistration",
        "The stored plan",
        ("Part", "What was planned"),
        tuple((title, "; ".join(line.rstrip(".") for line in lines)) for title, lines in entries(document)),
        left=2,
    )
