"""Whose solutions are accepted how often, the difference against the margin, and acc_L."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import pandas as pd

from analysis.any_table.formats import NONE, interval, number, percent
from analysis.any_table.result_tables import Table
from analysis.facts import StudyFacts
from analysis.reports.base import Section
from analysis.reports.blind_review.acceptance_contrasts import (
    CANNOT,
    INTERVALS,
    MAIN_DRAWS,
    EstimateOrProblem,
    contrast,
    difference,
    problems,
    share,
    words_of,
)
from analysis.reports.blind_review.rows import DeclaredDesign, Group, groups_of, of_group, real
from analysis.stats.intervals_and_checks import Interval, StatsError, json_of
from analysis.stats.shares.margin_decision import NARROW, MarginDecision, margin_decision
from analysis.stats.shares.proportions import newcombe, wilson


@dataclass(frozen=True, slots=True)
class AcceptanceRow:
    """Real solutions of one group: accepted at any time, and within the primary budget. `right` is the share
    of them whose answer is the true one."""

    group: Group
    reviews: int
    accepted: EstimateOrProblem
    accepted_naive: Interval | None
    within_budget: EstimateOrProblem
    cannot_say: int
    cannot_say_accepted: int
    right: float | None

    def as_json(self) -> dict[str, Any]:
        names = [field.name for field in fields(self) if field.name != "group"]
        return json_of(self.group, "name", "label", "is_people") | json_of(self, *names)


def acceptance_row(rows: pd.DataFrame, group: Group, budget_ms: float, seed: int) -> AcceptanceRow:
    """`rows`: reviews of real solutions."""
    mask = of_group(rows, group)
    mine = rows[mask]
    accepted = int(mine["accepted"].sum())
    silent = mine[mine["cannot_say"]]
    return AcceptanceRow(
        group,
        len(mine),
        share(rows, mask, seed=seed, draws=MAIN_DRAWS),
        wilson(accepted, len(mine)) if len(mine) else None,
        share(rows, mask, seed=seed, budget_ms=budget_ms, draws=MAIN_DRAWS),
        len(silent),
        int(silent["accepted"].sum()),
        float((mine["right"] == 1).mean()) if len(mine) else None,
    )


@dataclass(frozen=True, slots=True)
class DifferenceRow:
    """One group's share accepted less people's, what the margin says of it, and acc_L; or why not."""

    group: Group
    difference: EstimateOrProblem
    naive: Interval | None
    decision: MarginDecision | None
    undecided: str
    acc: EstimateOrProblem

    def as_json(self) -> dict[str, Any]:
        narrow = self.difference.ends(NARROW)
        return {
            **json_of(self.group, "name", "label"),
            "difference": self.difference.as_json(),
            "interval_90": narrow.as_json() if narrow else None,
            "newcombe_naive": self.naive.as_json() if self.naive else None,
            "verdict": self.decision.table()[0] if self.decision else None,
            **json_of(self, no_verdict="undecided", acc="acc"),
        }


def difference_row(
    rows: pd.DataFrame, people: Group, group: Group, margin: float, seed: int
) -> DifferenceRow:
    """`rows`: reviews of real solutions."""
    mine, theirs = of_group(rows, group), of_group(rows, people)
    told = difference(rows, mine, theirs, seed=seed, draws=MAIN_DRAWS)
    decision, why = None, told.problem
    if told.estimate is not None:
        try:
            decision = margin_decision(told.estimate, margin)
        except StatsError as error:
            why = str(error)
    counts = [int(rows.loc[mask, "accepted"].sum()) for mask in (mine, theirs)]
    totals = [int(mask.sum()) for mask in (mine, theirs)]
    naive = newcombe(counts[0], totals[0], counts[1], totals[1]) if all(totals) else None
    parts = {"model": (mine, 1.0), "people": (theirs, -1.0)}
    acc = contrast(rows, parts, seed=seed, scale="log", draws=MAIN_DRAWS)
    return DifferenceRow(group, told, naive, decision, why, acc)


def acceptance_section(rows: pd.DataFrame, facts: StudyFacts, told: DeclaredDesign) -> Section:
    """The main tables. `rows`: all reviews of the study."""
    solutions = real(rows)
    people, *others = groups_of(facts)
    made = [acceptance_row(solutions, group, told.budget_ms, facts.seed) for group in (people, *others)]
    compared = [difference_row(solutions, people, group, told.margin, facts.seed) for group in others]
    content = {
        "margin": told.margin,
        "budget_ms": told.budget_ms,
        "rows": [row.as_json() for row in made],
        "differences": [row.as_json() for row in compared],
    }
    sentences = [_verdict_sentence(row, people, told.margin) for row in compared]
    sentences += problems((row.group.label, row.accepted) for row in made if row.reviews)
    sentences += _acc_sentences(made[0], compared)
    tables = (
        _acceptance_table(made, told, facts),
        _difference_table(compared, people, told.margin),
        _acc_table(made, compared),
    )
    return Section("acceptance", "Acceptance of solutions", content, tuple(sentences), tables)


def _acceptance_table(made: Sequence[AcceptanceRow], told: DeclaredDesign, facts: StudyFacts) -> Table:
    lines = []
    for row in made:
        of = row.accepted.estimate
        silent = f"{row.cannot_say} ({row.cannot_say_accepted})" if row.cannot_say else "0"
        lines.append(
            (
                row.group.label,
                str(row.reviews),
                *((str(of.people), str(of.items)) if of else ("0", "0")),
                *row.accepted.cells(),
                interval(row.accepted_naive, 1, 100),
                *row.within_budget.cells(),
                silent,
            )
        )
    columns = ("Solutions of", "Reviews", "Leads", "Tasks", "Accepted %", "95 %", "Naive 95 %",
               f"In {words_of(told.budget_ms)} %", "95 %", "Cannot say")  # fmt: skip
    note = (
        f"Real solutions of tasks, {'both runs together' if told.runs > 1 else 'one run'}; {CANNOT} is a "
        f"solution too, and in brackets stands how often it was accepted. {INTERVALS} Naive: Wilson, as if "
        "all reviews were independent. "
        f"{' '.join(facts.stimuli)}"
    ).rstrip()
    short = ("Solutions of", "Reviews", "Leads", "Tasks", "Acc. %", "95 %", "", "", "", "")
    return Table("acceptance", "Acceptance", columns, tuple(lines), note, short=short)


def _difference_table(compared: Sequence[DifferenceRow], people: Group, margin: float) -> Table:
    lines = tuple(
        (
            row.group.label,
            *row.difference.cells(),
            interval(row.difference.ends(NARROW), 1, 100),
            interval(row.naive, 1, 100),
            row.decision.decision if row.decision else NONE,
        )
        for row in compared
    )
    note = (
        f"Percentage points, accepted at any time. Margin {number(100 * margin, 1)} points, declared before "
        "opening. Worse or superior: the 95 % interval lies wholly below minus the margin, or above it. "
        "Equivalent: the 90 % interval lies within the margin on both sides. Naive: Newcombe, as if all "
        "reviews were independent. Several rows are not corrected for one another."
    )
    columns = ("Solutions of", "Points", "95 %", "90 %", "Naive 95 %", "Verdict")
    return Table("difference", f"Less {people.label}", columns, lines, note)


def _acc_table(made: Sequence[AcceptanceRow], compared: Sequence[DifferenceRow]) -> Table:
    right = {row.group.name: row.right for row in made}
    base = made[0]
    first = (base.group.label, *(("1.00", "by definition") if base.accepted.value else (NONE, NONE)),
             percent(base.right))  # fmt: skip
    lines = [first]
    lines += [(row.group.label, *row.acc.cells(2, 1), percent(right[row.group.name])) for row in compared]
    note = (
        "acc_L = share accepted by share of people's solutions accepted. It equals ordinary accuracy if "
        "people always give the true answer and leads accept just what is true; the last column is ordinary "
        "accuracy over the same reviews. Intervals of the ratio: bootstrap-t of its logarithm."
    )
    columns = ("Solutions of", "acc_L", "95 %", "True answers %")
    return Table("acc", "Accuracy by the leads' acceptance", columns, tuple(lines), note)


def _acc_sentences(base: AcceptanceRow, compared: Sequence[DifferenceRow]) -> list[str]:
    if base.accepted.value is None:
        return [f"acc_L is not defined: no solution of {base.group.label} was reviewed."]
    if base.accepted.value == 0:
        return [
            f"acc_L is not defined: none of the {base.reviews} reviews of {base.group.label} ended in "
            "acceptance, so there is nothing to divide by."
        ]
    if any(row.acc.value is None for row in compared):
        names = ", ".join(row.group.label for row in compared if row.acc.value is None)
        return [f"acc_L has no value or interval for {names}: no solution was accepted, or none reviewed."]
    return list(problems((f"acc_L of {row.group.label}", row.acc) for row in compared))


def _verdict_sentence(row: DifferenceRow, people: Group, margin: float) -> str:
    name = row.group.label
    if row.difference.value is None:
        return f"{name}: no comparison with {people.label}, for {_lower_sentence(row.difference.problem)}"
    points = number(100 * abs(row.difference.value), 1)
    way = "more" if row.difference.value > 0 else "less"
    said = f"{name}: accepted {points} percentage points {way} often than {people.label}"
    if row.difference.value == 0:
        said = f"{name}: accepted as often as {people.label}"
    ends = row.difference.ends()
    if ends is not None:
        said += f", 95 % {interval(ends, 1, 100)}"
    if row.decision is None:
        return f"{said}. No verdict: {_lower_sentence(row.undecided)}"
    return f"{said}. {_decision_sentence(row.decision, name, people.label, margin)}"


def _lower_sentence(text: str) -> str:
    whole = text if text.endswith(".") else f"{text}."
    return whole[0].lower() + whole[1:]


def _decision_sentence(decision: MarginDecision, name: str, people: str, margin: float) -> str:
    within = f"the margin of {number(100 * margin, 1)} points"
    told: Mapping[str, str] = {
        "worse": f"Verdict: {name} is worse than {people} by more than {within}.",
        "superior": f"Verdict: {name} is superior to {people} by more than {within}.",
        "equivalent": (
            f"Verdict: {name} is equivalent to {people} within {within}, as the 90 % interval "
            f"{interval(decision.narrow, 1, 100)} says."
        ),
    }
    if decision.decision in told:
        return told[decision.decision]
    if decision.factor is None:
        return (
            f"Inconclusive: the difference lies at {within}, so that no number of leads and tasks within "
            "reach would decide if it stays there."
        )
    return (
        f"Inconclusive against {within}. If the difference stays as it is, {decision.people_needed:,} leads "
        f"and {decision.items_needed:,} tasks ({number(decision.factor, 1)} times as many of both) would "
        f"decide with a power of {percent(decision.power, 0)} %."
    )
