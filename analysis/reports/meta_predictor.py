"""The report of a meta-predictor study: can people predict the model, and does an explanation help them?"""

from __future__ import annotations

from functools import partial
from typing import Any

import pandas as pd

from analysis.frames import Frames, by_hand
from analysis.reports import figures, quality
from analysis.reports.accuracy import (
    DRAWS,
    LEVEL,
    Analysis,
    analyse,
    anova_content,
    condition_rows,
    mean_of,
    person_scores,
    tukey_content,
)
from analysis.reports.base import Figure, Section, StudyFacts, Table, seal_of
from analysis.reports.flow import flow_section
from analysis.reports.formats import NONE, interval, number, p_sentence, p_value, percent, stars
from analysis.reports.report import Report
from analysis.stats.anova import OneWayAnova
from analysis.stats.blocked import randomised_block
from analysis.stats.results import StatsError, mean_interval

STAR_NOTE = (
    "* Tukey-Kramer against the baseline on accuracy per person, p < .05; the star belongs to accuracy."
)
INTERVAL_NOTE = (
    "95 % intervals. Accuracy: Student's t over people. Utility: percentile bootstrap over people, "
    f"{DRAWS:,} draws."
)


def report(frames: Frames, definition: StudyFacts, *, made_at: str = "") -> Report:
    """Flow, accuracy, Utility, ANOVA and Tukey per protocol, with those left out by hand, and as assigned;
    sealed where the study still collects.
    """
    origin = frames.one_origin()
    seal = seal_of(definition, origin)
    flow = flow_section(frames.participants, definition, sealed=seal.sealed)
    people, blocks = person_scores(frames)
    passed = people[people["status"] == "passed"]
    if seal.sealed:
        # With the people left out by hand: else the mean before and after would tell a person's score to
        # whoever decides, and that is to be decided without it.
        sections = [_pooled(passed, blocks, shown=True)]
        sections += _sealed_sections(passed, definition, seal.sentence)
    else:
        kept = passed[~passed["by_hand"]]
        main, assigned = (analyse(p, blocks, definition) for p in (kept, people))
        sections = [
            _pooled(kept, blocks, shown=False),
            _conditions(main, definition, origin),
            _anova(main),
            _tukey(main, definition),
            _by_hand(main, passed, _left_out(frames), definition),
            _as_assigned(main, assigned, definition),
            _blocked(kept),
            *quality.sections(frames, definition),
        ]
    sections += quality.open_sections(frames, definition)
    return Report(definition, origin, seal, flow, tuple(sections), made_at)


def _left_out(frames: Frames) -> pd.DataFrame:
    """The sittings that screening kept and a person did not."""
    people = frames.passed().participants
    return people[by_hand(people)]


def _pooled(kept: pd.DataFrame, blocks: tuple[int, ...], shown: bool) -> Section:
    """What may always be seen; an open report has it among the four numbers and needs no section for it."""
    ci = mean_interval(kept["accuracy"], level=LEVEL)
    mean = mean_of(kept["accuracy"])
    content = {
        "n": len(kept),
        "accuracy_mean": mean,
        "accuracy": [mean_of(kept[block]) for block in blocks],
        "interval": ci.as_json() if ci else None,
    }
    sentence = f"Over all conditions, {len(kept)} sittings were kept"
    sentence += f" with a mean accuracy of {percent(mean)} % {interval(ci, 1, 100)}." if len(kept) else "."
    return Section("pooled", "All conditions together" if shown else "", content, (sentence,))


def _sealed_sections(kept: pd.DataFrame, facts: StudyFacts, sentence: str) -> list[Section]:
    rows: list[dict[str, Any]] = [
        {
            "name": c.name,
            "label": c.label,
            "role": c.role,
            "wanted": c.wanted,
            "n": int((kept["condition"] == c.name).sum()),
            **dict.fromkeys(("accuracy", "accuracy_mean", "utility_k", "utility", "intervals")),
        }
        for c in facts.conditions
    ]
    table = Table(
        "conditions",
        "Kept so far",
        ("Condition", "n", "Wanted"),
        tuple((r["label"], str(r["n"]), str(r["wanted"])) for r in rows),
    )
    closed = [Section(key, "", None) for key in ("anova", "tukey", "by_hand", "as_assigned", "blocked")]
    return [Section("conditions", "Results by condition", rows, (sentence,), (table,)), *closed]


def _conditions(found: Analysis, facts: StudyFacts, origin: str) -> Section:
    rows = condition_rows(found, facts)
    tables = (_utility_table(rows, found), _block_table(rows, found), _forms_table(rows))
    drawn = _drawn(rows, found, figures.Look.of(facts, origin))
    return Section("conditions", "Accuracy and Utility", rows, found.problems, tables, drawn)


def _drawn(rows: list[dict[str, Any]], found: Analysis, look: figures.Look) -> tuple[Figure, ...]:
    """The three figures, where there is something to draw; each caption gives n and the kind of interval."""
    sizes = [r["n"] for r in rows if r["n"]]
    if not found.scores:
        return ()
    n = (
        f"n = {min(sizes)}"
        + (f"\N{EN DASH}{max(sizes)}" if min(sizes) < max(sizes) else "")
        + " per condition"
    )
    utility = Figure(
        "utility",
        "Utility: mean accuracy over blocks divided by the baseline's. Thick: 95 % interval of one condition "
        f"(percentile bootstrap over {look.many}). Thin: simultaneous 95 % intervals, which hold "
        f"together. {n}.",
        "Forest plot of Utility with intervals; the numbers stand in the table above.",
        partial(figures.forest, rows, look),
    )
    accuracy = Figure(
        "accuracy",
        f"Accuracy of single {look.many} (faint) and mean with 95 % interval (Student's t over {look.many}). "
        f"Dashed: chance. {n}.",
        "Mean accuracy per condition with intervals; the numbers stand in the table above.",
        partial(figures.people, rows, found.people, look),
    )
    blocks = Figure(
        "blocks",
        f"Accuracy per block with 95 % intervals (Student's t over {look.many}); the baseline in grey in "
        "every "
        f"panel. {n}.",
        "Accuracy per block and condition; the numbers stand in the tables.",
        partial(figures.blocks, rows, look),
    )
    return (utility, accuracy, blocks) if len(found.utilities) > 1 else (accuracy, blocks)


def _utility_table(rows: list[dict[str, Any]], found: Analysis) -> Table:
    cells = []
    for r in rows:
        intervals, base = r["intervals"], r["role"] == "baseline"
        cells.append(
            (
                r["label"],
                str(r["n"]),
                *(percent(a) for a in r["accuracy"] or [None] * len(found.blocks)),
                percent(r["accuracy_mean"]),
                interval(intervals["accuracy_mean"], 1, 100),
                NONE if base else number(r["utility"]) + stars(r["tukey_p"]),
                interval(intervals["utility"]),
                p_value(r["tukey_p"]),
            )
        )
    blocks = tuple(f"Block {block + 1}" for block in found.blocks)
    return Table(
        "conditions",
        "Accuracy (%) and Utility",
        ("Condition", "n", *blocks, "Mean", "95 % interval", "Utility", "95 % interval", "p (Tukey)"),
        tuple(cells),
        f"{STAR_NOTE} {INTERVAL_NOTE}",
        short=(
            "Condition",
            "n",
            *(f"B{block + 1}" for block in found.blocks),
            "Mean",
            "",
            "Utility",
            "95 %",
            "p",
        ),
    )


def _block_table(rows: list[dict[str, Any]], found: Analysis) -> Table:
    def cell(r: dict[str, Any], index: int) -> str:
        intervals = r["intervals"]["utility_k"]
        return f"{number(r['utility_k'][index])} {interval(intervals[index])}" if intervals else NONE

    usable = [r for r in rows if r["role"] != "baseline" and r["utility_k"]]
    return Table(
        "utility_k",
        "Utility-K",
        ("Condition", *(f"Block {block + 1}" for block in found.blocks)),
        tuple((r["label"], *(cell(r, i) for i in range(len(found.blocks)))) for r in usable),
        "Accuracy in the block divided by the baseline's in the same block; 95 % bootstrap intervals.",
    )


def _forms_table(rows: list[dict[str, Any]]) -> Table:
    usable = [r for r in rows if r["role"] != "baseline" and r["utility"] is not None]
    return Table(
        "utility_forms",
        "Other forms and intervals of Utility",
        ("Condition", "Utility", "Mean of ratios", "Trapezoid", "Fieller 95 %", "Simultaneous 95 %"),
        tuple(
            (
                r["label"],
                number(r["utility"], 3),
                number(r["utility_mean_of_ratios"], 3),
                number(r["utility_trapezoid"], 3),
                interval(r["intervals"]["utility_fieller"]),
                interval(r["intervals"]["utility_simultaneous"]),
            )
            for r in usable
        ),
        "Utility is the ratio of mean accuracies; the other two forms stand here under their own names.",
    )


def anova_sentence(a: OneWayAnova) -> str:
    """F(df, df) = ..., p, eta squared with its interval, as a paper prints it."""
    return (
        f"F({a.df_between}, {a.df_within}) = {number(a.f)}, {p_sentence(a.p)}, "
        f"\N{GREEK SMALL LETTER ETA}\N{SUPERSCRIPT TWO} = {number(a.eta_squared, 3)} "
        f"95 % interval {interval(a.eta_squared_interval, 3)}"
    )


def _anova(found: Analysis) -> Section:
    content, a = anova_content(found), found.anova
    if a is None:
        return Section("anova", "Analysis of variance", None, found.problems)
    rows = (
        ("Condition", number(a.ss_between, 3), str(a.df_between), number(a.f), p_value(a.p)),
        ("Within", number(a.ss_within, 3), str(a.df_within), "", ""),
    )
    effects = (
        (
            "\N{GREEK SMALL LETTER ETA}\N{SUPERSCRIPT TWO} (one factor: also the partial)",
            number(a.eta_squared, 3),
        ),
        ("95 % interval (noncentral F)", interval(a.eta_squared_interval, 3)),
        ("\N{GREEK SMALL LETTER OMEGA}\N{SUPERSCRIPT TWO}", number(a.omega_squared, 3)),
        (
            "\N{GREEK SMALL LETTER ETA}\N{SUPERSCRIPT TWO} of the condition \N{MULTIPLICATION SIGN} "
            "session table",
            number(found.eta_squared_mixed, 3),
        ),
    )
    tables = (
        Table("anova", "One-way ANOVA of accuracy per person", ("Source", "SS", "df", "F", "p"), rows),
        Table("anova_effects", "Effect sizes", ("Measure", "Value"), effects),
    )
    return Section("anova", "Analysis of variance", content, (anova_sentence(a) + ".",), tables)


def _tukey(found: Analysis, facts: StudyFacts) -> Section:
    if found.tukey is None:
        return Section("tukey", "Comparisons of conditions", None, found.problems)
    labels = {c.name: c.label for c in facts.conditions}
    columns = ("Pair", "Difference", "95 % interval", "q", "p")

    def row(first: str, second: str) -> tuple[str, ...]:
        assert found.tukey is not None
        pair = found.tukey.between(first, second)
        return (
            f"{labels[first]} \N{MINUS SIGN} {labels[second]}",
            number(100 * pair.difference, 1),
            interval(pair.interval, 1, 100),
            number(pair.q),
            p_value(pair.p) + stars(pair.p),
        )

    base = facts.baseline
    others = [pair for pair in found.tukey.pairs if base not in (pair.first, pair.second)]
    tables = (
        Table(
            "tukey_baseline",
            "Against the baseline",
            columns,
            tuple(row(name, base) for name in found.scores if name != base and base in found.scores),
            "Percentage points. Tukey-Kramer: family-wise over all pairs, simultaneous 95 % intervals.",
        ),
        Table(
            "tukey_all", "All other pairs", columns, tuple(row(pair.second, pair.first) for pair in others)
        ),
    )
    return Section("tukey", "Comparisons of conditions", tukey_content(found), (), tables)


def _as_assigned(main: Analysis, found: Analysis, facts: StudyFacts) -> Section:
    """Everybody who got a place and answered a scored trial, whatever was decided afterwards."""
    content, sentence, table = _beside(
        "as_assigned",
        "As assigned, beside per protocol",
        "Without the rules that act after assignment, and with those left out by hand: everybody who got a "
        "place and answered, with the answers they gave.",
        main,
        found,
        facts,
    )
    return Section("as_assigned", "Results as assigned", content, sentence, (table,))


def _by_hand(main: Analysis, passed: pd.DataFrame, left_out: pd.DataFrame, facts: StudyFacts) -> Section:
    """The main result once more, with the people whom somebody left out by hand."""
    n = len(left_out)
    if n == 0:
        return Section("by_hand", "", {"n": 0, "conditions": None, "anova": None, "tukey": None})
    content, sentence, table = _beside(
        "by_hand",
        "With those left out by hand, beside the main result",
        "Kept: the main result, without them.",
        main,
        analyse(passed, main.blocks, facts),
        facts,
    )
    labels = {c.name: c.label for c in facts.conditions}
    reasons = Table(
        "by_hand_reasons",
        "Who was left out by hand, and why",
        ("Participant", "Condition", "Reason"),
        tuple(
            (row["participant"], labels.get(row["condition"], row["condition"]), row["excluded_reason"])
            for _, row in left_out.iterrows()
        ),
        left=3,
    )
    people = "1 person was" if n == 1 else f"{n} people were"
    first = f"{people} left out by hand, on a page that shows neither condition nor score."
    without = (f"Without: {anova_sentence(main.anova)}.",) if main.anova else ()
    title = "With the people excluded by hand"
    return Section(
        "by_hand",
        title,
        {"n": n, **content},
        (first, *(f"With: {line}" for line in sentence), *without),
        (table, reasons),
    )


def _beside(
    key: str, title: str, note: str, main: Analysis, found: Analysis, facts: StudyFacts
) -> tuple[dict[str, Any], tuple[str, ...], Table]:
    """Other people's results beside the main ones: as values, as a sentence, as a table."""
    rows = condition_rows(found, facts)
    kept = {r["name"]: r for r in condition_rows(main, facts)} if len(main.people) else {}
    table = Table(
        key,
        title,
        ("Condition", "n", "Mean %", "Utility", "95 % interval", "n kept", "Utility kept"),
        tuple(
            (
                r["label"],
                str(r["n"]),
                percent(r["accuracy_mean"]),
                NONE if r["role"] == "baseline" else number(r["utility"]),
                interval(r["intervals"]["utility"]),
                str(kept[r["name"]]["n"]) if kept else NONE,
                NONE if r["role"] == "baseline" or not kept else number(kept[r["name"]]["utility"]),
            )
            for r in rows
        ),
        note,
    )
    content = {"conditions": rows, "anova": anova_content(found), "tukey": tukey_content(found)}
    sentences = (anova_sentence(found.anova) + ".",) if found.anova else found.problems
    return content, sentences, table


def _blocked(kept: pd.DataFrame) -> Section:
    """The sensitivity check that matched plans allow."""
    title = "Matched plans as blocks"
    own = kept[kept["plan"].notna()]
    try:
        a = randomised_block(own["accuracy"], list(own["condition"]), [int(plan) for plan in own["plan"]])
    except StatsError as error:
        return Section("blocked", title, None, (str(error),))
    content = {
        "F": a.f,
        "df_condition": a.df_condition,
        "df_residual": a.df_residual,
        "p": a.p,
        "partial_eta_squared": a.partial_eta_squared,
        "blocks": a.blocks,
    }
    sentence = (
        "People with the same plan saw the same items in the same order, whatever their condition. With "
        "the plan as "
        f"block: F({a.df_condition}, {a.df_residual}) = {number(a.f)}, {p_sentence(a.p)} over {a.blocks} "
        "plans."
    )
    return Section("blocked", title, content, (sentence,))
