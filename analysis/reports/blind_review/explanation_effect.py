"""What explanations do to acceptance: hits and false acceptances, usefulness, order, single reviews."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import pandas as pd

from analysis.any_table.formats import finding, p_sentence, p_value, stars
from analysis.any_table.result_tables import Table
from analysis.facts import StudyFacts
from analysis.reports.base import Section
from analysis.reports.blind_review.acceptance_contrasts import (
    AS_ABOVE,
    CANNOT,
    EstimateOrProblem,
    SignalRow,
    UsefulnessRow,
    contrast,
    difference,
    problems,
    signal_row,
    usefulness_row,
    words_of,
)
from analysis.reports.blind_review.rows import (
    MODEL,
    DeclaredDesign,
    Group,
    answered_reviews,
    groups_of,
    of_group,
    real,
)
from analysis.reports.parts.basis import holm_of_known

SHOWN = {False: "not shown", True: "shown"}
PAPER = "p(with) \N{MINUS SIGN} p(without)"
NO_RUN = "There are no reviews {kind} an explanation: a run is missing, and nothing can be compared."


def has_both_runs(rows: pd.DataFrame) -> bool:
    return bool(rows["explained"].any()) and not bool(rows["explained"].all())


def signal_section(rows: pd.DataFrame, facts: StudyFacts, told: DeclaredDesign) -> Section:
    """Hits, false acceptances, d' and criterion by source and explanation, at any time and in the budget."""
    shown = [value for value in (False, True) if (rows["explained"] == value).any()]
    made = [
        signal_row(rows, group, explained, budget, facts.seed)
        for budget in (None, float(told.budget_ms))
        for group in groups_of(facts)
        for explained in shown
    ]
    tables = []
    for budget in dict.fromkeys(row.budget_ms for row in made):
        part = [row for row in made if row.budget_ms == budget]
        tables += [_signal_table(part, budget), _sensitivity_table(part, budget), _apart_table(part, budget)]
    content = [row.as_json() for row in made]
    sentences = problems(
        (f"d\N{PRIME} of {row.group.label}, explanation {SHOWN[row.explained]}", row.d_prime) for row in made
    )
    title = "Right and wrong answers: hits and false acceptances"
    return Section("signal", title, content, sentences, tuple(tables))


def _signal_table(made: Sequence[SignalRow], budget_ms: float | None) -> Table:
    lines = tuple((*_who(row), *_counted(row.hits), *_counted(row.false)) for row in made)
    columns = ("Solutions of", "Explanation", "Right", "Hits %", "95 %", "Wrong", "False acc. %", "95 %")
    note = (
        "Hits: right answers accepted. False acceptances: wrong answers accepted, the source's errors and "
        f"lures together; {CANNOT} is in neither. {AS_ABOVE}"
    )
    key = f"signal{_suffix(budget_ms)}"
    return Table(key, f"Accepted {_limit(budget_ms)}", columns, lines, note, left=2)


def _who(row: SignalRow) -> tuple[str, str]:
    return row.group.label, SHOWN[row.explained]


def _counted(told: EstimateOrProblem) -> tuple[str, str, str]:
    """A share after the number of its answers."""
    return str(told.estimate.answers) if told.estimate else "0", *told.cells()


def _sensitivity_table(made: Sequence[SignalRow], budget_ms: float | None) -> Table:
    lines = tuple((*_who(row), *row.d_prime.cells(2, 1), *row.criterion.cells(2, 1)) for row in made)
    columns = ("Solutions of", "Explanation", "d\N{PRIME}", "95 %", "Criterion", "95 %")
    note = (
        "d\N{PRIME} = z(H) \N{MINUS SIGN} z(F) of hits and false acceptances, over all leads together; "
        "criterion below 0: more is accepted than rejected. Both with the log-linear correction, one half "
        f"added to the accepted and one to all (Hautus 1995). {AS_ABOVE}"
    )
    title = f"How well right and wrong answers are told apart {_limit(budget_ms)}"
    return Table(f"sensitivity{_suffix(budget_ms)}", title, columns, lines, note, left=2)


def _limit(budget_ms: float | None) -> str:
    return "at any time" if budget_ms is None else f"within {words_of(budget_ms)}"


def _suffix(budget_ms: float | None) -> str:
    return "" if budget_ms is None else "_in_time"


def _apart_table(made: Sequence[SignalRow], budget_ms: float | None) -> Table:
    lines = tuple((*_who(row), *_counted(row.errors), *_counted(row.lures)) for row in made)
    columns = ("Solutions of", "Explanation", "Errors", "Accepted %", "95 %", "Lures", "Accepted %", "95 %")
    note = (
        "Errors: wrong answers that the source itself gave. Lures: wrong answers that it did not give; if a "
        "region is shown, it is one that the same source marked for this answer elsewhere. No interval: too "
        "few, or none of them accepted."
    )
    title = f"False acceptances {_limit(budget_ms)}, errors and lures apart"
    return Table(f"false{_suffix(budget_ms)}", title, columns, lines, note, left=2)


def usefulness_section(rows: pd.DataFrame, facts: StudyFacts, told: DeclaredDesign) -> Section:
    """Gains by explanations, at the primary budget and at others."""
    title = "Usefulness of explanations"
    if told.runs == 1:
        # The study asks for one run, so that nothing is missing.
        return Section("usefulness", "", None)
    if not has_both_runs(rows):
        kind = "with" if not rows["explained"].any() else "without"
        return Section("usefulness", title, None, (NO_RUN.format(kind=kind),))
    budgets: list[float | None] = [*told.budgets_ms, None]
    made = [
        usefulness_row(rows, group, budget, facts.seed) for group in groups_of(facts) for budget in budgets
    ]
    primary = [row for row in made if row.budget_ms == told.budget_ms]
    sentences = [_useful_sentence(row) for row in primary]
    if told.order == "paper":
        sentences.append(
            "Everybody had the run without explanations first, so what explanations change cannot be told "
            "from what practice changes."
        )
    table = _usefulness_table(made, told)
    content = {"primary_budget_ms": told.budget_ms, "rows": [row.as_json() for row in made]}
    return Section("usefulness", title, content, tuple(sentences), (table,))


def _usefulness_table(made: Sequence[UsefulnessRow], told: DeclaredDesign) -> Table:
    lines = tuple(
        (
            row.group.label,
            f"{words_of(row.budget_ms)}{', primary' if row.budget_ms == told.budget_ms else ''}",
            *row.hits.cells()[:1],
            *row.false.cells()[:1],
            *_tested(row),
        )
        for row in made
    )
    columns = ("Solutions of", "Budget", "Gain in hits", "Gain in false acc.", "Usefulness", "95 %", "p",
               PAPER, "95 %", "p")  # fmt: skip
    note = (
        "Percentage points with explanations less without, accepted within the budget. Usefulness: gain in "
        f"hits less gain in false acceptances. {PAPER}: the difference of the paper, of real solutions, "
        "right or wrong; it rises also if more wrong answers are accepted. p: no difference, by the same "
        f"bootstrap, not corrected; other budgets than the primary one are a description. {AS_ABOVE}"
    )
    return Table("usefulness", "What explanations change", columns, lines, note, left=2)


def _tested(row: UsefulnessRow) -> tuple[str, ...]:
    measures = row.usefulness, row.acceptance
    return tuple(cell for told in measures for cell in (*told.cells(), p_value(told.p)))


def _useful_sentence(row: UsefulnessRow) -> str:
    place = f"{row.group.label}, within {words_of(row.budget_ms)}"
    value, p = row.usefulness.value, row.usefulness.p
    if value is None:
        return f"{place}: no usefulness can be told, for {row.usefulness.problem}."
    points, ends = row.usefulness.cells()
    if p is None:
        return f"{place}: usefulness {points} points; {row.usefulness.problem}."
    what = "a usefulness other than 0 was not shown"
    if p < 0.05:
        what = f"explanations {'helped' if value > 0 else 'hindered'} to tell right from wrong answers"
    return f"{place}: usefulness {points} points, 95 % {ends}, {p_sentence(p)}: {what}."


def explainers_section(rows: pd.DataFrame, facts: StudyFacts, told: DeclaredDesign) -> Section:
    """Explainers against one another in the run with explanations; without, their solutions are alike."""
    methods = [g for g in groups_of(facts) if not g.is_people and g.name != MODEL]
    told_rows = answered_reviews(rows)
    told_rows = told_rows[told_rows["explained"]]
    if len(methods) < 2 or told_rows.empty:
        return Section("explainers", "", None)
    made: list[tuple[Group, Group, EstimateOrProblem, EstimateOrProblem]] = [
        (a, b, _net(told_rows, a, b, told, facts.seed), _paper(rows, a, b, told, facts.seed))
        for a, b in combinations(methods, 2)
    ]
    corrected = (holm_of_known([row[2].p for row in made]), holm_of_known([row[3].p for row in made]))
    lines, content = [], []
    for (a, b, net, accepted), p_net, p_accepted in zip(made, *corrected, strict=True):
        first = (*net.cells(), p_value(p_net) + stars(p_net))
        lines.append((a.label, b.label, *first, *accepted.cells(), p_value(p_accepted) + stars(p_accepted)))
        row: dict[str, Any] = {"first": a.name, "second": b.name, "usefulness": net.as_json()}
        row |= {"usefulness_p_holm": p_net, "paper_difference": accepted.as_json()}
        content.append(row | {"paper_difference_p_holm": p_accepted})
    columns = ("First", "Second", "Usefulness", "95 %", "p, Holm", "Accepted", "95 %", "p, Holm")
    note = (
        f"First less second, percentage points, accepted within {words_of(told.budget_ms)} in the run with "
        "explanations. Usefulness: hits less false acceptances; the run without explanations shows the same "
        "answers for every explainer, and so falls out of the difference. Accepted: real solutions, right or "
        f"wrong. Holm: over the pairs. {AS_ABOVE}"
    )
    table = Table("explainers", "Pairs of explainers", columns, tuple(lines), note, left=2)
    sentences = problems((f"{a.label} and {b.label}", net) for a, b, net, _ in made)
    return Section("explainers", "Explainers compared", content, sentences, (table,))


def _net(
    rows: pd.DataFrame, first: Group, second: Group, told: DeclaredDesign, seed: int
) -> EstimateOrProblem:
    parts = {}
    for group, sign in ((first, 1.0), (second, -1.0)):
        mine = of_group(rows, group)
        parts[f"{group.name}/right"] = (mine & (rows["right"] == 1), sign)
        parts[f"{group.name}/wrong"] = (mine & (rows["right"] == 0), -sign)
    return contrast(rows, parts, seed=seed, budget_ms=told.budget_ms)


def _paper(
    rows: pd.DataFrame, first: Group, second: Group, told: DeclaredDesign, seed: int
) -> EstimateOrProblem:
    solutions = real(rows)
    solutions = solutions[solutions["explained"]]
    a, b = of_group(solutions, first), of_group(solutions, second)
    return difference(solutions, a, b, seed=seed, budget_ms=told.budget_ms)


def first_run_section(rows: pd.DataFrame, facts: StudyFacts, told: DeclaredDesign) -> Section:
    """Only each lead's first run, which nothing could carry over into: different leads with and without."""
    first = rows[rows["block"] == rows["block"].min()]
    if not has_both_runs(rows):
        return Section("first_run", "", None)
    title = "First run only"
    if not has_both_runs(first):
        kind = "with" if not first["explained"].any() else "without"
        sentence = f"In the first run nobody reviewed {kind} explanations, so it cannot be analysed alone."
        return Section("first_run", title, None, (sentence,))
    made = [
        usefulness_row(first, group, budget, facts.seed)
        for group in groups_of(facts)
        for budget in (float(told.budget_ms), None)
    ]
    lines = tuple((row.group.label, words_of(row.budget_ms), *_tested(row)) for row in made)
    leads = first.groupby("explained")["participant"].nunique()
    columns = ("Solutions of", "Budget", "Usefulness", "95 %", "p", PAPER, "95 %", "p")
    note = (
        f"{int(leads[True])} leads with and {int(leads[False])} others without explanations, percentage "
        "points. Different leads, so less power than above."
    )
    table = Table("first_run", "Only the run that each lead had first", columns, lines, note, left=2)
    sentences = problems((row.group.label, row.usefulness) for row in made)
    return Section("first_run", title, [row.as_json() for row in made], sentences, (table,))


def order_section(rows: pd.DataFrame, facts: StudyFacts, told: DeclaredDesign) -> Section:
    """Whether what explanations change depends on the run that came first."""
    solutions = real(rows)
    orders = {0.0: "without first", 1.0: "with first"}
    there = [order for order in orders if (solutions["with_first"] == order).any()]
    if len(there) < len(orders):
        return Section("order", "", None)
    lines, content = [], []
    for group in groups_of(facts):
        mine = of_group(solutions, group)
        shown = solutions["explained"]
        parts: dict[str, tuple[pd.Series, float]] = {}
        row: dict[str, Any] = {"name": group.name, "label": group.label}
        cells: list[str] = []
        for order, words in orders.items():
            here = mine & (solutions["with_first"] == order)
            gain = difference(
                solutions, here & shown, here & ~shown, seed=facts.seed, budget_ms=told.budget_ms
            )
            sign = 1.0 if order else -1.0
            parts |= {f"{words}/with": (here & shown, sign), f"{words}/without": (here & ~shown, -sign)}
            row[words.replace(" ", "_")] = gain.as_json()
            cells += gain.cells()
        effect = contrast(solutions, parts, seed=facts.seed, budget_ms=told.budget_ms)
        content.append(row | {"difference": effect.as_json()})
        lines.append((group.label, *cells, *effect.cells(), p_value(effect.p)))
    columns = ("Solutions of", "Without first", "95 %", "With first", "95 %", "Difference", "95 %", "p")
    note = (
        f"{PAPER} of real solutions within {words_of(told.budget_ms)}, percentage points, by the run that a "
        "lead had first; difference: with first less without first, between leads."
    )
    table = Table("order", "The order of the runs", columns, tuple(lines), note)
    sentences = tuple(
        f"{row['label']}: {finding(row['difference']['p'], 'what explanations change', 'orders')}"
        f"{_p_in_brackets(row['difference']['p'])}."
        for row in content
    )
    return Section("order", "Order of the runs", content, sentences, (table,))


def _p_in_brackets(p: float | None) -> str:
    return "" if p is None else f" ({p_sentence(p)})"
