"""Accuracy and Utility by condition: the main section of the meta-predictor report, with its figures."""

from __future__ import annotations

from functools import partial
from typing import Any

from analysis.reports import figures
from analysis.reports.accuracy import DRAWS, Analysis, condition_rows, planned_p, utility_note
from analysis.reports.base import Figure, Section, StudyFacts, Table
from analysis.reports.formats import NONE, interval, level, number, p_value, percent, stars

INTERVAL_NOTE = (
    "95 % intervals. Accuracy: Student's t over people. Utility: Fieller's, variances of each condition by "
    "itself, simultaneous: those of all conditions hold together."
)


def accuracy_section(result: Analysis, facts: StudyFacts, origin: str) -> Section:
    rows = condition_rows(result, facts)
    few = utility_note(result, facts)
    tables = (
        _utility_table(rows, result, facts, " ".join(filter(None, (few, *facts.stimuli)))),
        _block_table(rows, result, few),
        _forms_table(rows, few),
    )
    drawn = _drawn(rows, result, figures.Look.of(facts, origin), few)
    return Section("conditions", "Accuracy and Utility", rows, result.problems, tables, drawn)


def _drawn(rows: list[dict[str, Any]], result: Analysis, look: figures.Look, few: str) -> tuple[Figure, ...]:
    """The three figures, if there is something to draw; each caption gives n and the kind of interval."""
    sizes = [r["n"] for r in rows if r["n"]]
    if not result.scores:
        return ()
    n = (
        f"n = {min(sizes)}"
        + (f"\N{EN DASH}{max(sizes)}" if min(sizes) < max(sizes) else "")
        + " per condition"
    )
    utility = Figure(
        "utility",
        "Utility: mean accuracy over blocks divided by the baseline's. Thick: simultaneous 95 % intervals, "
        "which hold together. Light: the interval of one condition alone, Fieller's over "
        f"{look.many}. {n}. {few}".rstrip(),
        "Forest plot of Utility with intervals; the numbers stand in the table above.",
        partial(figures.forest, rows, look),
    )
    accuracy = Figure(
        "accuracy",
        f"Accuracy of single {look.many} (faint) and mean with 95 % interval (Student's t over {look.many}). "
        f"Dashed: chance. {n}.",
        "Mean accuracy per condition with intervals; the numbers stand in the table above.",
        partial(figures.people, rows, result.people, look),
    )
    blocks = Figure(
        "blocks",
        f"Accuracy per block with 95 % intervals (Student's t over {look.many}); "
        f"the baseline in grey in every panel. {n}.",
        "Accuracy per block and condition; the numbers stand in the tables.",
        partial(figures.blocks, rows, look),
    )
    return (utility, accuracy, blocks) if len(result.utilities) > 1 else (accuracy, blocks)


def _utility_table(rows: list[dict[str, Any]], result: Analysis, facts: StudyFacts, last: str) -> Table:
    cells, test = [], facts.contrasts.capitalize()
    star_note = (
        f"* The planned contrast of accuracy per person with the baseline (two-sided {test}), p < "
        f"{level(facts.alpha)}; the star belongs to accuracy."
    )
    for r in rows:
        intervals, base = r["intervals"], r["role"] == "baseline"
        cells.append(
            (
                r["label"],
                str(r["n"]),
                *(percent(a) for a in r["accuracy"] or [None] * len(result.blocks)),
                percent(r["accuracy_mean"]),
                interval(intervals["accuracy_mean"], 1, 100),
                NONE if base else number(r["utility"]) + stars(planned_p(r), facts.alpha),
                interval(intervals["utility_simultaneous"]),
                p_value(planned_p(r)),
            )
        )
    blocks = tuple(f"Block {block + 1}" for block in result.blocks)
    return Table(
        "conditions",
        "Accuracy (%) and Utility",
        ("Condition", "n", *blocks, "Mean", "95 % interval", "Utility", "95 %, together", f"p ({test})"),
        tuple(cells),
        f"{star_note} {INTERVAL_NOTE} {last}".rstrip(),
        short=(
            "Condition",
            "n",
            *(f"B{block + 1}" for block in result.blocks),
            "Mean",
            "",
            "Utility",
            "95 %",
            "p",
        ),
    )


def _block_table(rows: list[dict[str, Any]], result: Analysis, few: str) -> Table:
    def cell(r: dict[str, Any], index: int) -> str:
        intervals, value = r["intervals"]["utility_k"], number(r["utility_k"][index])
        return f"{value} {interval(intervals[index])}" if intervals else value

    usable = [r for r in rows if r["role"] != "baseline" and r["utility_k"]]
    return Table(
        "utility_k",
        "Utility-K",
        ("Condition", *(f"Block {block + 1}" for block in result.blocks)),
        tuple((r["label"], *(cell(r, i) for i in range(len(result.blocks)))) for r in usable),
        "Accuracy in the block divided by the baseline's in the same block; Fieller's 95 % intervals, each "
        "of one block alone. "
        f"{few}".rstrip(),
    )


def _forms_table(rows: list[dict[str, Any]], few: str) -> Table:
    usable = [r for r in rows if r["role"] != "baseline" and r["utility"] is not None]
    return Table(
        "utility_forms",
        "Other forms and intervals of Utility",
        ("Condition", "Utility", "Mean of ratios", "Trapezoid", "95 % alone", "95 % bootstrap"),
        tuple(
            (
                r["label"],
                number(r["utility"], 3),
                number(r["utility_mean_of_ratios"], 3),
                number(r["utility_trapezoid"], 3),
                interval(r["intervals"]["utility"], 3),
                interval(r["intervals"]["utility_bootstrap"], 3),
            )
            for r in usable
        ),
        "Utility is the ratio of mean accuracies; the other two forms stand here under their own names. 95 % "
        "alone: Fieller's interval of one condition; its witness is a bootstrap of whole people "
        f"({DRAWS:,} draws). "
        f"{few}".rstrip(),
    )
