"""Accuracy and Utility by condition: the main section of the meta-predictor report, with its figures."""

from __future__ import annotations

from functools import partial
from typing import Any

import pandas as pd

from analysis.any_table.formats import NONE, confidence, interval, level, number, p_value, percent, stars
from analysis.any_table.result_tables import Table
from analysis.facts import StudyFacts
from analysis.reports.base import Data, Figure, Section
from analysis.reports.drawing import figures
from analysis.reports.meta_predictor.conclusion import TESTS, sizes
from analysis.reports.utility.accuracy_anova import (
    DRAWS,
    LEVEL,
    Analysis,
    condition_rows,
    planned_p,
    utility_note,
)


def _interval_note(facts: StudyFacts) -> str:
    return (
        f"Intervals of accuracy: Student's t over people, {confidence(LEVEL)}. Those of Utility: Fieller's, "
        "variances of each condition by itself, simultaneous: those of all conditions hold together, at "
        f"{confidence(facts.level)}."
    )


def accuracy_section(result: Analysis, facts: StudyFacts, look: figures.Look) -> Section:
    rows = condition_rows(result, facts)
    few, names = utility_note(result, facts), block_names(result.blocks, facts)
    tables = (
        _utility_table(rows, names, facts, " ".join(filter(None, (few, *facts.stimuli)))),
        _block_table(rows, names, few),
        _forms_table(rows, few),
    )
    drawn = _make_figures(rows, result, facts, look, few)
    return Section("conditions", "Accuracy and Utility", rows, result.problems, tables, drawn)


def block_names(blocks: tuple[int, ...], facts: StudyFacts) -> tuple[str, ...]:
    """A block by K, the examples seen before its test: those of all blocks so far. By its number if the
    design does not tell how many there are."""
    examples = int(facts.design.get("train_per_block") or 0)
    if not examples:
        return tuple(f"Block {block + 1}" for block in blocks)
    return tuple(f"K = {examples * (block + 1)}" for block in blocks)


def chance_of(facts: StudyFacts) -> float | None:
    """Accuracy of a guess among the study's answers; None if they are not told."""
    return 1 / len(facts.answers) if len(facts.answers) > 1 else None


def _make_figures(
    rows: list[dict[str, Any]], result: Analysis, facts: StudyFacts, look: figures.Look, few: str
) -> tuple[Figure, ...]:
    """The figures, if there is something to draw; each caption gives n and the kind of interval."""
    if not result.scores:
        return ()
    n, names, chance = sizes(rows), block_names(result.blocks, facts), chance_of(facts)
    k = " K: examples seen so far." if names[0].startswith("K") else ""
    dashed = "" if chance is None else f" Dashed: chance among {len(facts.answers)} answers."
    accuracy = Figure(
        "accuracy",
        f"Accuracy of single {look.many} (faint) and mean with 95 % interval (Student's t over {look.many})."
        f"{dashed} {n}.",
        "Mean accuracy per condition with intervals; the numbers stand in the table above.",
        partial(figures.people, rows, result.people, look, chance=chance),
        people_data(rows, result.people),
    )
    blocks = Figure(
        "blocks",
        f"Accuracy per block with 95 % intervals (Student's t over {look.many}); "
        f"the baseline in grey in every panel.{k} {n}.",
        "Accuracy per block and condition; the numbers stand in the tables.",
        partial(figures.blocks, rows, look, names),
        blocks_data(rows, names, "accuracy"),
    )
    by_k = Figure(
        "utility_k",
        "Utility-K: accuracy in the block divided by the baseline's in the same block, with Fieller's 95 % "
        f"intervals, each of one block and condition alone.{k} {n}. {few}".rstrip(),
        "Utility per block and condition; the numbers stand in the table of Utility-K.",
        partial(figures.utility_by_block, rows, look, names),
        blocks_data([r for r in rows if r["role"] != "baseline"], names, "utility_k"),
    )
    return (accuracy, blocks, by_k) if len(result.utilities) > 1 else (accuracy, blocks)


def people_data(rows: list[dict[str, Any]], people: pd.DataFrame) -> Data:
    """The mean of each condition with its interval, then every person, in shares."""
    made: list[tuple[str | float | None, ...]] = [
        (r["label"], "mean", r["accuracy_mean"], *(r["intervals"]["accuracy_mean"] or (None, None)))
        for r in rows
        if r["accuracy_mean"] is not None
    ]
    for r in rows:
        accuracies = people.loc[people["condition"] == r["name"], "accuracy"]
        made += [(r["label"], "person", float(value), None, None) for value in accuracies]
    return Data(("condition", "of", "accuracy", "low", "high"), tuple(made))


def blocks_data(rows: list[dict[str, Any]], names: tuple[str, ...], key: str) -> Data:
    """A value of each condition and block with its interval."""
    made: list[tuple[str | float | None, ...]] = []
    for r in rows:
        ends = r["intervals"][key] or [None] * len(names)
        for name, value, pair in zip(names, r[key] or [], ends, strict=False):
            made.append((r["label"], name, value, *(pair or (None, None))))
    return Data(("condition", "block", key, "low", "high"), tuple(made))


def _star_note(facts: StudyFacts) -> str:
    return (
        "* The planned contrast of accuracy per person with the baseline (two-sided "
        f"{TESTS[facts.contrasts]}), p < {level(facts.alpha)}; the star belongs to accuracy."
    )


def _utility_table(rows: list[dict[str, Any]], names: tuple[str, ...], facts: StudyFacts, last: str) -> Table:
    cells = []
    for r in rows:
        first, utility = _row_cells(r, names, facts)
        cells.append((*first, interval(r["intervals"]["accuracy_mean"], 1, 100), *utility))
    tested, held = f"p ({TESTS[facts.contrasts].split('-')[0]})", confidence(facts.level)
    return Table(
        "conditions",
        "Accuracy (%) and Utility",
        ("Condition", "n", *names, "Mean", "95 % interval", "Utility", f"{held}, together", tested),
        tuple(cells),
        f"{_star_note(facts)} {_interval_note(facts)} {_k_note(names)}{last}".rstrip(),
        short=("Condition", "n", *map(_short, names), "Mean", "", "Utility", held, "p"),
    )


def _row_cells(
    r: dict[str, Any], names: tuple[str, ...], facts: StudyFacts
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Of a condition: n and accuracy, by block and in the mean; Utility with its interval, and p."""
    p, by_block = planned_p(r), map(percent, r["accuracy"] or [None] * len(names))
    mean = percent(r["accuracy_mean"]) + stars(p, facts.alpha)
    utility = NONE if r["role"] == "baseline" else number(r["utility"])
    last = utility, interval(r["intervals"]["utility_simultaneous"]), p_value(p)
    return (r["label"], str(r["n"]), *by_block, mean), last


def _short(name: str) -> str:
    return name.replace("Block ", "B").replace(" ", "")


def _k_note(names: tuple[str, ...]) -> str:
    return "K: examples seen before the test. " if names and names[0].startswith("K") else ""


def paper_table(result: Analysis, facts: StudyFacts) -> Table:
    """Table 1 in the paper's layout: accuracy and Utility after each number of examples, and Utility."""
    names = block_names(result.blocks, facts)
    cells = []
    for r in condition_rows(result, facts):
        first, last = _row_cells(r, names, facts)
        utilities = (None if r["role"] == "baseline" else u for u in r["utility_k"] or [None] * len(names))
        cells.append((*first, *map(number, utilities), *last))
    tested = f"p ({TESTS[facts.contrasts]})"
    return Table(
        "table_1",
        f"Accuracy (%) and Utility: {facts.title}",
        (
            "Condition",
            "n",
            *(f"%, {name}" for name in names),
            "Mean %",
            *(f"Utility, {name}" for name in names),
            "Utility",
            f"{confidence(facts.level)}, together",
            tested,
        ),
        tuple(cells),
        f"{_star_note(facts)} {_interval_note(facts)} {_k_note(names)}{utility_note(result, facts)}".rstrip(),
    )


def _block_table(rows: list[dict[str, Any]], names: tuple[str, ...], few: str) -> Table:
    def cell(r: dict[str, Any], index: int) -> str:
        intervals, value = r["intervals"]["utility_k"], number(r["utility_k"][index])
        return f"{value} {interval(intervals[index])}" if intervals else value

    usable = [r for r in rows if r["role"] != "baseline" and r["utility_k"]]
    return Table(
        "utility_k",
        "Utility-K",
        ("Condition", *names),
        tuple((r["label"], *(cell(r, i) for i in range(len(names)))) for r in usable),
        "Accuracy in the block divided by the baseline's in the same block; Fieller's 95 % intervals, each "
        f"of one block alone. {_k_note(names)}{few}".rstrip(),
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
