"""The report of a blind review: whose solutions leads accept, and what explanations change in it.

Both stages have their report: solving (accuracy, agreement, audits) and reviewing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from analysis.any_table.formats import percent
from analysis.any_table.result_tables import Table
from analysis.facts import ReportError, StudyFacts
from analysis.frames import Frames
from analysis.reports.base import Headline, Main, Section
from analysis.reports.blind_review.acceptance import acceptance_section
from analysis.reports.blind_review.explanation_effect import (
    explainers_section,
    first_run_section,
    order_section,
    signal_section,
    usefulness_section,
)
from analysis.reports.blind_review.mixed_model import model_section
from analysis.reports.blind_review.rows import TASK, DeclaredDesign, groups_of, read_design, real, review_rows
from analysis.reports.blind_review.secondary_results import (
    alone_section,
    audits_section,
    labels_section,
    source_section,
    suspicion_section,
    timing_section,
)
from analysis.reports.blind_review.solver_performance import solve_rows, solving_sections
from analysis.reports.blind_review.time_budget_section import budget_section, signal_figure
from analysis.reports.drawing import figures
from analysis.reports.parts import participants
from analysis.reports.parts.basis import ReportBasis
from analysis.reports.report import Report

SOLVE = "solve"
NOTHING = "No solution was reviewed yet, so nothing can be said of any source."


def report(frames: Frames, definition: StudyFacts, *, made_at: str = "") -> Report:
    """Of the stage that the study is; nothing by source while it collects."""
    basis = ReportBasis.of(frames, definition)
    kept, told = basis.kept, read_design(definition)
    pooled = _solve_section(kept) if told.role == SOLVE else _review_section(kept)
    if basis.seal.sealed:
        results = [Section("acceptance", "Results", None, (basis.seal.sentence,))]
    elif told.role == SOLVE:
        results = [*solving_sections(kept, definition), *participants.questions(kept, definition)]
    else:
        results = [*_reviews(kept, definition, told, basis.look), *participants.questions(kept, definition)]
    sections = (pooled, *results, *basis.open_sections(), basis.flow)
    return basis.report(sections, made_at, [_headline(pooled)], _main(sections), _opening(pooled, basis.look))


def _reviews(frames: Frames, facts: StudyFacts, told: DeclaredDesign, look: figures.Look) -> list[Section]:
    rows = review_rows(frames)
    if real(rows).empty:
        return [Section("acceptance", "Acceptance of solutions", None, (NOTHING,))]
    try:
        groups_of(facts)
    except ReportError as error:
        # Of this study alone; the reports of others are made in the same run.
        return [Section("acceptance", "Acceptance of solutions", None, (str(error),))]
    signal = signal_section(rows, facts, told)
    return [
        acceptance_section(rows, facts, told),
        budget_section(rows, facts, told, look),
        replace(signal, figures=signal_figure(rows, facts, look)),
        usefulness_section(rows, facts, told),
        explainers_section(rows, facts, told),
        first_run_section(rows, facts, told),
        order_section(rows, facts, told),
        model_section(rows, facts, told),
        labels_section(rows, facts),
        alone_section(rows, facts),
        source_section(facts),
        suspicion_section(frames, facts),
        audits_section(rows),
        timing_section(rows, facts, told),
    ]


def _review_section(kept: Frames) -> Section:
    """What may be seen while leads review: no source in it."""
    words = "of the solutions were accepted, all sources together"
    return _pooled_section(real(review_rows(kept)), "accepted", words, "reviews")


def _solve_section(kept: Frames) -> Section:
    rows = solve_rows(kept)
    return _pooled_section(rows[rows["use"] == TASK], "right", "of the solutions are right", "solutions")


def _pooled_section(rows: pd.DataFrame, column: str, words: str, counted: str) -> Section:
    content = {
        "people": int(rows["participant"].nunique()),
        "answers": len(rows),
        "share": float(rows[column].mean()) if len(rows) else None,
        "words": words,
        "counted": f"{len(rows):,} {counted}",
    }
    return Section("pooled", "", content)


def _headline(pooled: Section) -> Headline:
    return Headline(percent(pooled.content["share"]), pooled.content["words"], " %")


def _opening(pooled: Section, look: figures.Look) -> str:
    told = pooled.content
    if told["share"] is None:
        return ""
    return f"{look.counted(told['people'])}, {told['counted']}; {percent(told['share'])} % {told['words']}."


def _main(sections: Sequence[Section]) -> tuple[Main, ...]:
    tables: dict[str, Table] = {table.key: table for section in sections for table in section.tables}
    told = {section.key: section.paragraphs for section in sections}
    first = tables.get("acceptance") or tables.get("answers")
    made = [Main(first, told.get("acceptance", ()))]
    if told.get("usefulness"):
        made.append(Main(None, told["usefulness"]))
    return tuple(made)
