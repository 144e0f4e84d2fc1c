"""The section of every report on what was planned: the stored plan, its witness, and the departures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from analysis.any_table.formats import NONE, percent
from analysis.any_table.result_tables import Table
from analysis.facts import StudyFacts
from analysis.reports.base import Section
from analysis.reports.report import Report
from experiments.opening.preregistration_text import BOUNDARIES, entries

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
    sections = (*report.sections[:place], _section(report.facts), *report.sections[place:], *whole)
    return replace(report, sections=sections)


def _section(facts: StudyFacts) -> Section:
    plan = facts.preregistration
    if not plan["stored"]:
        return Section(KEY, "Preregistration", dict(plan), (NO_PLAN,))
    stored = (
        f"The plan was stored when the study opened, on {plan['stored_at'][:16].replace('T', ' ')} UTC. "
        f"SHA-256 of the document: {plan['digest']}. {plan['witness']} It stands at the end of this report."
    )
    departures = plan["departures"]
    count = "1 departure" if len(departures) == 1 else f"{len(departures)} departures"
    said = f"{count} from the stored plan." if departures else KEPT
    looked = _look_sentences(facts) if facts.looks else ()
    tables = (*([_looks(facts)] if facts.looks else []), _departures(departures))
    return Section(KEY, "Preregistration", dict(plan), (stored, said, *looked, *plan["notes"]), tables)


def _look_sentences(facts: StudyFacts) -> tuple[str, ...]:
    """How many looks were taken, and at which level the planned contrasts are therefore tested."""
    taken, level = facts.looks_taken, percent(facts.alpha, 2)
    stopped = [row["number"] for row in taken if row["answer"] == "stop"]
    where = f"look {stopped[0]}, which said stop" if stopped else "the end"
    return (
        f"{len(taken)} of {len(facts.looks)} planned looks taken. The planned contrasts are tested at the "
        f"level of {where}: {level} %, all together; over all looks they err at most at the plan's alpha.",
    )


def _looks(facts: StudyFacts) -> Table:
    taken = {row["number"]: row for row in facts.looks_taken}
    rows = []
    for number, (people, level) in enumerate(zip(facts.looks, facts.levels, strict=False), start=1):
        row = taken.get(number, {"answer": "not taken", "at": "", "by": ""})
        when = f"{row['at'][:16].replace('T', ' ')} UTC" if row["at"] else NONE
        rows.append((str(number), str(people), percent(level, 4), row["answer"], when, row["by"] or NONE))
    boundary = BOUNDARIES[facts.preregistration["document"]["boundary"]]
    return Table(
        "looks",
        "Looks before the end",
        ("Look", "People per condition", "Level, %", "Said", "When", "By"),
        tuple(rows),
        f"Error spent as {boundary} (Lan and DeMets), of all contrasts with the baseline together. Nothing "
        f"but the word was shown or stored. At the end the level is {percent(facts.levels[-1], 4)} %.",
    )


def _departures(departures: list[dict[str, str]]) -> Table:
    return Table(
        "departures",
        "Departures from the stored plan",
        ("Field", "Planned", "Now"),
        tuple((row["field"], row["planned"], row["now"]) for row in departures),
        left=3,
    )


def _whole(plan: Mapping[str, Any]) -> Section:
    lines = entries(plan["document"])
    rows = tuple((title, "; ".join(line.rstrip(".") for line in told)) for title, told in lines)
    table = Table("preregistration", "The stored plan", ("Part", "What was planned"), rows, left=2)
    return Section(PLAN, "The stored plan", plan["digest"], (), (table,))
