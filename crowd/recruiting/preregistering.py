"""The plan of a study as Markdown, to be deposited before data are collected."""

from __future__ import annotations

from collections import Counter

from analysis.planned import PlannedPower
from crowd.recruiting.checking import DryRun
from crowd.recruiting.rated import rated_lines
from experiments.paradigms import get_paradigm


def document(run: DryRun) -> str:
    """The plan of the study as Markdown, to be deposited before data are collected."""
    definition = run.definition
    analysis = get_paradigm(definition.paradigm).planned_analysis
    lines = [
        f"# Preregistration: {definition.title}",
        "",
        f"Definition `{definition.digest}` of study `{definition.slug}`, paradigm `{definition.paradigm}`, "
        f"seed {definition.seed}.",
        "",
        *([f"Explained is {run.explained}.", ""] if run.explained else []),
        *_groups(run),
        "",
        *_rated(run),
        "## Trials of one session",
        "",
        *(f"- {name}: {count}" for name, count in run.trials_rows()),
        "",
        "## Exclusion rules",
        "",
        *(f"- {name}: {rule}" for name, rule in definition.rules.items()),
        "",
        "## Stopping rule",
        "",
        f"Data are collected until {_stop(run)} who passed all rules. "
        "Results per condition are sealed until then.",
        "",
        *(["## Analysis", "", analysis, ""] if analysis else []),
        *_power(run.power),
    ]  # fmt: skip
    return "\n".join(lines)


def _rated(run: DryRun) -> list[str]:
    """What is rated by how many; nothing of other studies."""
    lines = list(rated_lines(run.rated))
    return ["## What is rated", "", *(f"- {line}" for line in lines), ""] if lines else []


def _power(power: PlannedPower | None) -> list[str]:
    if power is None:
        return []
    return [
        "## Power",
        "",
        power.title + ".",
        "",
        # Shares have three digits, numbers of people none.
        *(f"- {name}: {value if isinstance(value, int) else f'{value:.3f}'}" for name, value in power.rows),
        "",
    ]


def _groups(run: DryRun) -> list[str]:
    """Who gets what: the conditions if a slot has one, else the lanes with their slots."""
    if run.is_between:
        rows = [f"| {c.name} | {c.role} | {c.slots} |" for c in run.definition.conditions]
        title, columns = "## Conditions (between subjects)", "| condition | role | participants wanted |"
        return [title, "", columns, "|---|---|---|", *rows]
    lanes = Counter(plan.lane for plan in run.plans)
    rows = [f"| {lane} | {count} |" for lane, count in sorted(lanes.items())]
    return ["## Slots by lane", "", "| lane | sessions wanted |", "|---|---|", *rows]


def _stop(run: DryRun) -> str:
    if run.is_between:
        return "every condition has the participants wanted above"
    return "every slot is filled by a session of a person"
