"""The report of a meta-predictor study: can people predict the model, and does an explanation help them?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd

from analysis.any_table.formats import (
    NONE,
    confidence,
    finding,
    interval,
    number,
    p_sentence,
    p_value,
    percent,
    stars,
)
from analysis.any_table.result_tables import Table
from analysis.facts import StudyFacts
from analysis.frames import Frames, by_hand
from analysis.reports.base import ANSWER, Headline, Main, Section
from analysis.reports.drawing import figures
from analysis.reports.meta_predictor import learning_times
from analysis.reports.meta_predictor.conclusion import answer_section, mark_of
from analysis.reports.meta_predictor.secondary_contrasts import (
    contrast_cells,
    contrast_columns,
    secondary_sections,
)
from analysis.reports.meta_predictor.smallest_effect import smallest_effect_sections
from analysis.reports.meta_predictor.utility_tables import accuracy_section, block_names, paper_table
from analysis.reports.parts import participants
from analysis.reports.parts.basis import ReportBasis
from analysis.reports.parts.dropout import leavers_content, leavers_sentence
from analysis.reports.report import Report
from analysis.reports.utility import faithfulness, metric_correlation
from analysis.reports.utility.accuracy_anova import (
    LEVEL,
    Analysis,
    analyse,
    anova_content,
    condition_rows,
    contrast_content,
    mean_of,
    person_scores,
    tukey_content,
    utility_note,
)
from analysis.stats.intervals_and_checks import StatsError, json_of, mean_interval
from analysis.stats.means.anova import OneWayAnova
from analysis.stats.means.randomised_block import randomised_block
from analysis.stats.means.tukey_and_corrections import TukeyKramer
from experiments.definition.preregistration_table import ALPHA

ESTIMAND = (
    "These tests speak of people like these on this study's items; other items may favour other methods. "
    "People with one plan saw the same items, which is ignored here: tests are rather too careful than bold."
)
ETA = "\N{GREEK SMALL LETTER ETA}\N{SUPERSCRIPT TWO}"
OMEGA = "\N{GREEK SMALL LETTER OMEGA}\N{SUPERSCRIPT TWO}"
AS_ASSIGNED = "The main result is therefore also given as assigned."


def report(frames: Frames, definition: StudyFacts, *, made_at: str = "") -> Report:
    """Flow, accuracy, Utility, ANOVA and Tukey per protocol, with those left out by hand, and as assigned;
    sealed while the study collects.
    """
    basis = ReportBasis.of(frames, definition, AS_ASSIGNED)
    frames, sealed = basis.confirmed, basis.seal.sealed
    people, blocks = person_scores(frames)
    passed = people[people["status"] == "passed"]
    # While sealed, with the people left out by hand, as `ReportBasis.kept` says.
    analysed = passed if sealed else passed[~passed["by_hand"]]
    pooled = _pooled_section(analysed, blocks, shown=sealed)
    first: list[Section] = []
    papers: tuple[Table, ...] = ()
    measured = faithfulness.sections(frames, definition)
    if sealed:
        results = _sealed_sections(passed, definition, basis.seal.sentence)
    else:
        main, assigned = (analyse(p, blocks, definition) for p in (analysed, people))
        first = [answer_section(main, definition, basis.look)]
        contrasts = [_dunnett_section(main, definition), _tukey(main, definition)]
        if definition.contrasts == "tukey":
            contrasts.reverse()
        papers = (paper_table(main, definition),)
        results = [
            contrasts[0],
            *secondary_sections(main, definition),
            accuracy_section(main, definition, basis.look),
            *smallest_effect_sections(main, definition),
            _anova(main, definition.alpha),
            contrasts[1],
            _by_hand(main, passed, _left_out(frames), definition),
            _as_assigned(main, assigned, definition),
            _block_section(analysed, definition.alpha),
            *participants.sections(frames, definition),
            *learning_times.sections(frames, definition, block_names(blocks, definition)),
        ]
        rows = condition_rows(main, definition)
        measured += metric_correlation.sections(frames, rows, definition, basis.look, measured)
    sections = tuple(
        replace(section, mark=mark_of(section.key, definition) if section.title else "")
        for section in (*first, pooled, basis.flow, *results, *measured, *basis.open_sections())
    )
    planned = "tukey" if definition.contrasts == "tukey" else "planned"
    opening = _opening(pooled, basis.look)
    return basis.report(sections, made_at, _headline(sections), _main(sections, planned), opening, papers)


def _headline(sections: tuple[Section, ...]) -> tuple[Headline, ...]:
    """Mean accuracy, and F once results are open."""
    content = {section.key: section.content for section in sections}
    mean, anova = content["pooled"]["accuracy_mean"], content["anova"]
    numbers = [Headline(percent(mean), "mean accuracy, all conditions", " %")]
    if anova:
        label = (
            f"F({anova['df_between']}, {anova['df_within']}) over conditions, {p_sentence(anova['p'])}, "
            f"{OMEGA} = {number(anova['omega_squared'], 3)}"
        )
        numbers.append(Headline(number(anova["F"]), label))
    return tuple(numbers)


def _main(sections: tuple[Section, ...], planned: str) -> tuple[Main, ...]:
    """The answer, table 1, the ANOVA in a sentence, the planned contrasts, and if measures of the maps and of
    what was seen rank the methods otherwise."""
    by_key = {section.key: section for section in sections}
    tables = {table.key: table for section in sections for table in section.tables}
    anova, first = by_key["anova"], "One-way ANOVA of accuracy per person: "
    # Why there is none is told by the answer.
    sentences = tuple(first + text for text in anova.paragraphs) if anova.content else ()
    measured = by_key.get("faithfulness")
    unlike = faithfulness.differing(measured.content) if measured else ()
    return (
        *([Main(None, by_key[ANSWER].paragraphs)] if ANSWER in by_key else []),
        Main(tables["conditions"], mark=by_key["conditions"].mark),
        Main(None, sentences),
        Main(tables.get(planned), mark=by_key[planned].mark),
        *([Main(tables["secondary"], mark=by_key["secondary"].mark)] if "secondary" in tables else []),
        Main(None, unlike),
    )


def _opening(pooled: Section, look: figures.Look) -> str:
    """The sentence that is open while data are collected: the mean over all conditions."""
    n, mean = pooled.content["n"], pooled.content["accuracy_mean"]
    if mean is None:
        return ""
    return f"{look.counted(n)} kept; mean accuracy over all conditions {percent(mean)} %."


def _left_out(frames: Frames) -> pd.DataFrame:
    """The sessions that screening kept and that were left out by hand."""
    people = frames.passed().participants
    return people[by_hand(people)]


def _pooled_section(people: pd.DataFrame, blocks: tuple[int, ...], shown: bool) -> Section:
    """What may always be seen; an open report has it among the four numbers and needs no section for it."""
    ci = mean_interval(people["accuracy"], level=LEVEL)
    mean = mean_of(people["accuracy"])
    content = {
        "n": len(people),
        "accuracy_mean": mean,
        "accuracy": [mean_of(people[block]) for block in blocks],
        "interval": ci.as_json() if ci else None,
    }
    sentence = f"Over all conditions, {len(people)} sittings were kept"
    sentence += f" with a mean accuracy of {percent(mean)} % {interval(ci, 1, 100)}." if len(people) else "."
    return Section("pooled", "All conditions together" if shown else "", content, (sentence,))


def _sealed_sections(people: pd.DataFrame, facts: StudyFacts, sentence: str) -> list[Section]:
    rows: list[dict[str, Any]] = [
        {
            "name": c.name,
            "label": c.label,
            "role": c.role,
            "wanted": c.wanted,
            "n": int((people["condition"] == c.name).sum()),
            **dict.fromkeys(("accuracy", "accuracy_mean", "utility_k", "utility", "intervals")),
        }
        for c in facts.conditions
    ]
    table = Table(
        "conditions",
        "Kept so far",
        ("Condition", "n", "Wanted"),
        tuple((r["label"], str(r["n"]), str(r["wanted"])) for r in rows),
        " ".join(facts.stimuli),
    )
    closed = [
        Section(key, "", None) for key in ("planned", "anova", "tukey", "by_hand", "as_assigned", "blocked")
    ]
    return [Section("conditions", "Results by condition", rows, (sentence,), (table,)), *closed]


def anova_sentence(a: OneWayAnova, alpha: float = ALPHA) -> str:
    """F(df, df) = ..., p, omega squared, eta squared with its interval as a paper prints it, and its meaning
    in words. Omega squared comes first: eta squared is too large where people are few."""
    return (
        f"F({a.df_between}, {a.df_within}) = {number(a.f)}, {p_sentence(a.p)}, "
        f"{OMEGA} = {number(a.omega_squared, 3)}, {ETA} = {number(a.eta_squared, 3)}, "
        f"95 % interval {interval(a.eta_squared_interval, 3)}: {finding(a.p, 'accuracy', alpha=alpha)}"
    )


def _anova(result: Analysis, alpha: float) -> Section:
    content, a = anova_content(result), result.anova
    if a is None:
        return Section("anova", "Analysis of variance", None, result.problems)
    rows = (
        ("Condition", number(a.ss_between, 3), str(a.df_between), number(a.f), p_value(a.p)),
        ("Within", number(a.ss_within, 3), str(a.df_within), "", ""),
    )
    effects = (
        (OMEGA, number(a.omega_squared, 3)),
        (f"{ETA} (one factor: also the partial)", number(a.eta_squared, 3)),
        (f"95 % interval of {ETA} (noncentral F)", interval(a.eta_squared_interval, 3)),
        (
            f"{ETA} of the condition \N{MULTIPLICATION SIGN} session table",
            number(result.eta_squared_mixed, 3),
        ),
    )
    tables = (
        Table("anova", "One-way ANOVA of accuracy per person", ("Source", "SS", "df", "F", "p"), rows),
        Table("anova_effects", "Effect sizes", ("Measure", "Value"), effects),
    )
    return Section("anova", "Analysis of variance", content, (anova_sentence(a, alpha) + ".",), tables)


def _dunnett_section(result: Analysis, facts: StudyFacts) -> Section:
    """Each method and the control against the baseline: the planned contrasts, unless the plan declares all
    pairs."""
    is_planned = facts.contrasts == "dunnett"
    title = f"{'Planned' if is_planned else 'Exploratory'} contrasts with the baseline"
    if result.dunnett is None:
        return Section("planned", title, None, result.problems)
    rows, contents = [], []
    for condition in facts.conditions:
        each = result.planned(condition.name)
        if each is None:
            continue
        contents.append({"condition": condition.name, **(contrast_content(each) or {})})
        rows.append((condition.label, *contrast_cells(each, facts.alpha if is_planned else 0.0)))
    variances = "pooled" if result.dunnett.variances == "equal" else "separate for each condition"
    table = Table(
        "planned",
        title,
        ("Condition", *contrast_columns(result.dunnett.level)),
        tuple(rows),
        f"Percentage points of accuracy per person. Dunnett's two-sided test, variances {variances}: p and "
        "intervals of differences hold for all rows together; those of g are of one row alone. "
        f"{ESTIMAND} {utility_note(result, facts)}".rstrip(),
    )
    told = json_of(result.dunnett, "variances", "level")
    content = {"is_planned": is_planned, **told, "contrasts": contents}
    return Section("planned", title, content, (), (table,))


def _tukey(result: Analysis, facts: StudyFacts) -> Section:
    """All pairs: as in the paper, or planned if the plan declares them."""
    is_planned = facts.contrasts == "tukey"
    title = "Planned contrasts: all pairs of conditions" if is_planned else "All pairs of conditions"
    if result.tukey is None:
        return Section("tukey", title, None, result.problems)
    labels = facts.labels
    held = confidence(result.tukey.level)
    columns = ("Pair", "Difference", f"{held} interval", "q", "p")

    def row(first: str, second: str) -> tuple[str, ...]:
        assert result.tukey is not None
        pair = result.tukey.between(first, second)
        return (
            f"{labels[first]} \N{MINUS SIGN} {labels[second]}",
            number(100 * pair.difference, 1),
            interval(pair.interval, 1, 100),
            number(pair.q),
            p_value(pair.p) + (stars(pair.p, facts.alpha) if is_planned else ""),
        )

    pairs = [(pair.second, pair.first) for pair in result.tukey.pairs]
    table = Table(
        "tukey",
        "All pairs, as planned" if is_planned else "All pairs, as in the paper",
        columns,
        tuple(row(*pair) for pair in pairs),
        f"Percentage points. Tukey-Kramer: family-wise over all pairs, simultaneous {held} intervals.",
    )
    matrix = _matrix(result.tukey, [c.name for c in facts.conditions], labels)
    content = {**(tukey_content(result) or {}), "is_planned": is_planned}
    return Section("tukey", title, content, (), (table, matrix))


def _matrix(tukey: TukeyKramer, names: list[str], labels: dict[str, str]) -> Table:
    """Every pair as a cell: the line less the column below the diagonal, p above it."""
    there = {name for pair in tukey.pairs for name in (pair.first, pair.second)}
    shown = [name for name in names if name in there]

    def cell(down: int, across: int) -> str:
        if down == across:
            return ""
        pair = tukey.between(shown[down], shown[across])
        return number(100 * pair.difference, 1) if down > across else p_value(pair.p)

    places = range(len(shown))
    return Table(
        "tukey_matrix",
        "All pairs as a matrix",
        ("Condition", *(labels[name] for name in shown)),
        tuple((labels[shown[down]], *(cell(down, across) for across in places)) for down in places),
        "Below the diagonal: the line less the column, in percentage points. Above it: Tukey-Kramer's p.",
    )


def _as_assigned(main: Analysis, result: Analysis, facts: StudyFacts) -> Section:
    """Every person who got a slot and answered a scored trial, also those screened or left out by hand."""
    content, sentence, table = _beside(
        "as_assigned",
        "As assigned, beside per protocol",
        "Without the rules that act after assignment, and with those left out by hand: everybody who got a "
        "place and answered, with the answers they gave.",
        main,
        result,
        facts,
    )
    left = leavers_content(result.people)
    told = leavers_sentence(left)
    said = (*sentence, *([told] if told else []))
    return Section("as_assigned", "Results as assigned", {**content, "leavers": left}, said, (table,))


def _by_hand(main: Analysis, passed: pd.DataFrame, left_out: pd.DataFrame, facts: StudyFacts) -> Section:
    """The main result once more, with the people who were left out by hand."""
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
    labels = facts.labels
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
    without = (f"Without: {anova_sentence(main.anova, facts.alpha)}.",) if main.anova else ()
    title = "With the people excluded by hand"
    return Section(
        "by_hand",
        title,
        {"n": n, **content},
        (first, *(f"With: {line}" for line in sentence), *without),
        (table, reasons),
    )


def _beside(
    key: str, title: str, note: str, main: Analysis, result: Analysis, facts: StudyFacts
) -> tuple[dict[str, Any], tuple[str, ...], Table]:
    """Other people's results beside the main ones: as values, as a sentence, as a table."""
    rows = condition_rows(result, facts)
    main_rows = {r["name"]: r for r in condition_rows(main, facts)} if len(main.people) else {}
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
                str(main_rows[r["name"]]["n"]) if main_rows else NONE,
                NONE if r["role"] == "baseline" or not main_rows else number(main_rows[r["name"]]["utility"]),
            )
            for r in rows
        ),
        f"{note} {utility_note(result, facts)}".rstrip(),
    )
    content = {"conditions": rows, "anova": anova_content(result), "tukey": tukey_content(result)}
    sentences = (anova_sentence(result.anova, facts.alpha) + ".",) if result.anova else result.problems
    return content, sentences, table


def _block_section(people: pd.DataFrame, alpha: float) -> Section:
    """The sensitivity check that matched plans allow."""
    title = "Matched plans as blocks"
    planned = people[people["plan"].notna()]
    try:
        a = randomised_block(
            planned["accuracy"], list(planned["condition"]), [int(plan) for plan in planned["plan"]]
        )
    except StatsError as error:
        return Section("blocked", title, None, (str(error),))
    names = ("df_condition", "df_residual", "p", "partial_eta_squared", "blocks")
    content = {"F": a.f, **json_of(a, *names)}
    sentence = (
        "People with the same plan saw the same items in the same order, whatever their condition. With "
        "the plan as "
        f"block: F({a.df_condition}, {a.df_residual}) = {number(a.f)}, {p_sentence(a.p)}, "
        f"partial {ETA} = {number(a.partial_eta_squared, 3)}, over {a.blocks} "
        f"plans: {finding(a.p, 'accuracy', alpha=alpha)}."
    )
    return Section("blocked", title, content, (sentence,))
