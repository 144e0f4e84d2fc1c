"""A report from a package alone: no database, no study, only the files that were exported."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from analysis.exports import manifest
from analysis.exports.base import ExportError
from analysis.exports.study_facts_file import OriginFile, StudyFile, read_study_file, read_tables
from analysis.facts import ReportError
from analysis.frames import Frames
from analysis.reports import held_for
from analysis.reports.base import Main, Section
from analysis.reports.parts.stimulus_pictures import with_seen
from analysis.reports.report import Report
from analysis.reports.report_assembly import report_of_origin, reporter_of
from analysis.tables.stimulus_pictures import packed_pictures

FLOW = "flow"
CLEANED = "This package holds only the sessions that were kept."
WHOLE = "This package holds the sessions of one study alone."


def rebuilt(folder: Path, origin: str = "", made_at: str = "") -> Report:
    """The report of one origin of a package that is as it was exported; without `origin` the only one, or
    people.

    What the package's tables cannot give, since they hold no session that screening removed, is left out and
    named; the flow is then told as it was stored. Raises ExportError for a package that was changed or that
    holds no tables, ReportError for one without that origin or without a report.
    """
    checked = manifest.check(folder)
    if checked.problems:
        raise ExportError("\n".join((*checked.problems, "No report is made from a changed package.")))
    content = read_study_file(folder)
    chosen = origin or (next(iter(content.origins)) if len(content.origins) == 1 else "human")
    if chosen not in content.origins:
        raise ReportError(
            f"The package holds no sessions of origin '{chosen}' (there are: "
            f"{', '.join(content.origins) or 'none'}); choose with --origin."
        )
    part = content.origins[chosen]
    if part.why:
        raise ReportError(part.why)
    frames = read_tables(folder, content, held_for(reporter_of(content.paradigm)))
    report = made_from(frames, content, chosen, made_at)
    report = with_seen(report, frames.stimuli, packed_pictures(folder))
    if not part.absent:
        return report
    stored = json.loads((folder / part.report).read_text(encoding="utf-8"))
    return _drop_sections(report, part, stored, CLEANED if content.cleaned else WHOLE)


def made_from(frames: Frames, content: StudyFile, origin: str, made_at: str = "") -> Report:
    """The report that these tables give, whole, whether or not all of it can be meant."""
    name = reporter_of(content.paradigm)
    return report_of_origin(frames, content.origins[origin].facts, name, origin, made_at)


def absent_sections(whole: Report, partial: Report) -> tuple[str, ...]:
    """Keys of the sections that differ between the report of all sessions and that of the exported ones, in
    the order of the first."""
    told = [
        {section.key: _section_json(section) for section in report.sections} for report in (whole, partial)
    ]
    keys = dict.fromkeys([*told[0], *told[1]])
    return tuple(key for key in keys if told[0].get(key) != told[1].get(key))


def _section_json(section: Section) -> str:
    tables = [(table.key, table.rows, table.note) for table in section.tables]
    return json.dumps([section.content, section.paragraphs, tables], sort_keys=True)


def _drop_sections(report: Report, part: OriginFile, stored: Mapping[str, Any], sentence: str) -> Report:
    """The report without the sections that cannot be made, with a sentence that names them."""
    gone = [section for section in report.sections if section.key in part.absent]
    kept = [section for section in report.sections if section.key not in part.absent]
    flow = report.flow
    if FLOW in part.absent:
        said = "As it was stored at the export; the sessions that were removed are not in this package."
        flow = Section(FLOW, report.flow.title, stored[FLOW], (said,))
        kept.append(flow)
    absent = [key for key in part.absent if key != FLOW]
    titles = {section.key: section.title for section in gone}
    # A section of another study's rows has no title here.
    named = ", ".join(f"{titles[key]} ({key})" if titles.get(key) else key for key in absent)
    if absent:
        sentence += (
            f" Left out, since they need other sessions too: {named}. The file {part.report} has them "
            "as they were at the export."
        )
    note = Section(
        "package",
        "What the package cannot give",
        {"absent": absent, "as_stored": [FLOW] if FLOW in part.absent else [], "report": part.report},
        (sentence,),
    )
    return replace(
        report,
        flow=flow,
        sections=(*kept, note),
        headline=(),
        opening="",
        main=(*_main(report, kept, gone), Main(None, (sentence,))),
    )


def _main(report: Report, kept: list[Section], gone: list[Section]) -> list[Main]:
    """What the terminal prints, without tables and sentences of the sections that are left out."""
    tables = {table.key for section in kept for table in section.tables}
    unsaid = [paragraph for section in gone for paragraph in section.paragraphs]
    return [
        Main(
            main.table if main.table and main.table.key in tables else None,
            tuple(line for line in main.sentences if not any(part in line for part in unsaid)),
        )
        for main in report.main
    ]
