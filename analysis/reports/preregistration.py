"""The section of every report on what was planned: the stored plan, its witness, and the departures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from analysis.reports.base import Section, Table
from analysis.reports.report import Report
from experiments.preregistration_text import entries

KEY, PLAN = "preregistration", "stored_plan"
NO_PLAN = (
    "No plan is stored: this study was opened before plans were stored with it, so departures cannot be told."
)
KEPT = "No departure from the stored plan."


def with_plan(report: Report) -> Report:
    """The report with what departs from the plan after its flow, and the plan itself last; as it is if its
    facts do not tell."""
    plan = report.facts.preregistration
    if not plan:
        return report
    keys = [part.key for part in report.sections]
    place = keys.index(report.flow.key) + 1 if report.flow.key in keys else len(keys)
    whole = (_whole(plan),) if plan["stored"] else ()
    sections = (*report.sections[:place], _section(plan), *report.sections[place:], *whole)
    return replace(report, sections=sections)


def _section(plan: Mapping[str, Any]) -> Section:
    if not plan["stored"]:
        return Section(KEY, "Preregistration", dict(plan), (NO_PLAN,))
    stored = (
        f"The plan was stored when the study opened, on {plan['stored_at'][:16].replace('T', ' ')} UTC. "
        f"SHA-256 of the document: {plan['digest']}. {plan['witness']} It stands at the end of this report."
    )
    departures = plan["departures"]
    count = "1 departure" if len(departures) == 1 else f"{len(departures)} departures"
    said = f"{count} from the stored plan." if departures else KEPT
    tables = (_departures(departures),)
    return Section(KEY, "Preregistration", dict(plan), (stored, said, *plan["notes"]), tables)


def _whole(plan: Mapping[str, Any]) -> Section:
    return Section(PLAN, "The stored plan", plan["digest"], (), (_document(plan["document"]),))


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
