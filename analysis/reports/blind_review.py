"""The report of a blind review: whose solutions leads accept, and what explanations change in it.

Both stages have their report: solving (accuracy, agreement, audits) and reviewing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from analysis.frames import Frames
from analysis.reports import figures, quality
from analysis.reports.base import Headline, Main, ReportError, Section, StudyFacts, Table, seal_of
from analysis.reports.flow import flow_headline, flow_section
from analysis.reports.formats import percent
from analysis.reports.report import Report
from analysis.reports.review_acceptance import acceptance_section
from analysis.reports.review_budget import budget_section, signal_figure
from analysis.reports.review_controls import (
    alone_section,
    audits_section,
    labels_section,
    source_section,
    suspicion_section,
    timing_section,
)
from analysis.reports.review_model import model_section
from analysis.reports.review_rows import TASK, Declared, declared, groups_of, real, review_rows
from analysis.reports.review_solving import solve_rows, solving_sections
from analysis.reports.review_usefulness import (
    explainers_section,
    first_run_section,
    order_section,
    signal_section,
    usefulness_section,
)

SOLVE = "solve"
NOTHING = "No solution was reviewed yet, so nothing can be said of any source."


def report(frames: Frames, definition: StudyFacts, *, made_at: str = "") -> Report:
    """Of the stage that the study is; nothing by source while it collects."""
    origin = frames.one_origin()
    seal = seal_of(definition, origin)
    flow = flow_section(frames.participants, definition, sealed=seal.sealed)
    kept = frames.confirmed().passed() if seal.sealed else frames.kept()
    told = declared(definition)
    look = figures.Look.of(definition, origin)
    pooled = _solved(kept) if told.role == SOLVE else _reviewed(kept)
    if seal.sealed:
        results = [Section("acceptance", "Results", None, (seal.sentence,))]
    elif told.role == SOLVE:
        results = [*solving_sections(kept, definition), *quality.questions(kept, definition)]
    else:
        results = [*_reviews(kept, definition, told, look), *quality.questions(kept, definition)]
    sections = (pooled, *results, *quality.open_sections(frames.confirmed(), definition), flow)
    return Report(
        definition,
        origin,
        seal,
        flow,
        sections,
        made_at,
        headline=(*flow_headline(flow, definition), _headline(pooled)),
        main=_main(sections),
        opening=_opening(pooled, look),
    )


def _reviews(frames: Frames, facts: StudyFacts, told: Declared, look: figures.Look) -> list[Section]:
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


def _reviewed(kept: Frames) -> Section:
    """What may be seen while leads review: no source in it."""
    rows = real(review_rows(kept))
    content = {
        "people": int(rows["participant"].nunique()),
        "answers": len(rows),
        "share": float(rows["accepted"].mean()) if len(rows) else None,
        "words": "of the solutions were accepted, all sources together",
        "counted": f"{len(rows):,} reviews",
    }
    return Section("pooled", "", content)


def _solved(kept: Frames) -> Section:
    rows = solve_rows(kept)
    rows = rows[rows["use"] == TASK]
    content = {
        "people": int(rows["participant"].nunique()),
        "answers": len(rows),
        "share": float(rows["right"].mean()) if len(rows) else None,
        "words": "of the solutions are right",
        "counted": f"{len(rows):,} solutions",
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
