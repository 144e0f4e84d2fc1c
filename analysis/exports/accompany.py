"""The files that make a package readable and re-runnable by a stranger, beside the tables themselves."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path

from django.utils import timezone

from analysis.columns import TABLES, Column, codebook
from analysis.departures import report_facts
from analysis.exports import study_file
from analysis.exports.delimited import guarded, write_rows
from analysis.exports.readme import Described, files
from analysis.exports.rebuilding import absent_sections, made_from
from analysis.exports.study_file import OriginFile, StudyFile, read_tables
from analysis.frames import Frames
from analysis.refresh import REPORTED, make_report
from analysis.reports.base import ReportError, StudyFacts
from analysis.reports.report import Report
from analysis.tables import code_version, study_facts
from experiments.definition import StudyDefinition
from experiments.models import Study

CONDITIONS = "conditions.csv"
CONDITION_HEADS = ("condition", "label", "role", "wanted", "method")


@dataclass(frozen=True, slots=True)
class Shape:
    """What was written: the columns that kinds of trial added, and of the request what matters here."""

    extra: tuple[Column, ...]
    cleaned: bool
    release: str
    origins: Sequence[str]


def accompany(study: Study, folder: Path, written: Mapping[str, int], shape: Shape) -> dict[str, int]:
    """Writes study.json and the reports of the moment into a folder that holds the tables already; returns
    rows per file. A sealed report holds no result, as everywhere.
    """
    rows: dict[str, int] = {}
    reports: dict[str, Report] = {}
    parts = {}
    for origin in shape.origins:
        facts = report_facts(study, origin)
        try:
            reports[origin] = _report(study, origin, shape.release)
            rows |= _write_report(folder, reports[origin])
            parts[origin] = OriginFile(facts, report=report_name(origin))
        except ReportError as error:
            parts[origin] = OriginFile(facts, why=str(error))
    content = StudyFile(
        version=study_file.VERSION,
        code_version=code_version(),
        study=study.slug,
        paradigm=study.paradigm,
        cleaned=shape.cleaned,
        tables=_tables(written),
        extra=shape.extra,
        origins=parts,
    )
    # An extension's report also tells of its parent, whose rows are not in this package.
    if content.tables and (shape.cleaned or study.definition.get("extends")):
        content = _with_absent(content, reports, read_tables(folder, content))
    (folder / study_file.NAME).write_text(study_file.as_text(content), encoding="utf-8")
    rows |= {study_file.NAME: len(parts), **_write_conditions(folder, study_facts(study))}
    rows |= _write_scripts(folder, study.paradigm) if content.tables else {}
    return rows | _write_words(study, folder, content, {**written, **rows})


def _tables(written: Mapping[str, int]) -> dict[str, str]:
    """The file of each table; none if the format is not one of tables."""
    named = {table: [f for f in written if _is_table(f, table)] for table in TABLES}
    return {table: names[0] for table, names in named.items() if names}


def _is_table(name: str, table: str) -> bool:
    return name == f"{table}.csv" or name.endswith(f"-{table}_data.csv")


def report_name(origin: str) -> str:
    return f"report-{origin}.json"


def _report(study: Study, origin: str, release: str) -> Report:
    if origin not in REPORTED:
        raise ReportError(f"Sessions of origin '{origin}' have no report.")
    return make_report(study, origin, release=release)


def _write_report(folder: Path, report: Report) -> dict[str, int]:
    """The report as JSON, and unless it is sealed its first table as CSV."""
    name = report_name(report.origin)
    text = json.dumps(report.json(), indent=1, ensure_ascii=False, allow_nan=False)
    (folder / name).write_text(text + "\n", encoding="utf-8")
    table = next((main.table for main in report.main if main.table is not None), None)
    if table is None or report.seal.sealed:
        return {name: 1}
    first = f"table1-{report.origin}.csv"
    write_rows(folder / first, list(table.columns), ([guarded(cell) for cell in row] for row in table.rows))
    return {name: 1, first: len(table.rows)}


def _write_conditions(folder: Path, facts: StudyFacts) -> dict[str, int]:
    """conditions.csv: the conditions in their order, with what a script must know of them."""
    rows = [
        [guarded(c.name), guarded(c.label), c.role, str(c.wanted), guarded(c.method)]
        for c in facts.conditions
    ]
    write_rows(folder / CONDITIONS, list(CONDITION_HEADS), rows)
    return {CONDITIONS: len(rows)}


def _write_scripts(folder: Path, paradigm: str) -> dict[str, int]:
    """The scripts of the paradigm as they stand; none if there are none. A script is one unit of its file."""
    there = {"analysis.py": f"{paradigm}.py", "analysis.R": f"{paradigm}.R"}
    copied = {}
    for name, source in there.items():
        script = resources.files("analysis.exports.scripts") / source
        if script.is_file():
            (folder / name).write_bytes(script.read_bytes())
            copied[name] = 1
    return copied


def _write_words(study: Study, folder: Path, content: StudyFile, rows: Mapping[str, int]) -> dict[str, int]:
    """README, citation, licence if there is one, and the description of the tables."""
    book = codebook(content.extra)
    columns = {table: [entry for entry in book if entry["table"] == table] for table in content.tables}
    # Read anew: these words are no part of the digest, by which parsed definitions are kept.
    definition = StudyDefinition.model_validate(study.definition)
    package = Described(definition, content, rows, columns, study.digest, timezone.now().date())
    made = files(package)
    for name, text in made.items():
        (folder / name).write_text(text, encoding="utf-8")
    return dict.fromkeys(made, 1)


def _with_absent(content: StudyFile, reports: Mapping[str, Report], kept: Frames) -> StudyFile:
    """The same, knowing which sections of each report the kept sessions cannot give."""
    parts = {
        origin: replace(
            content.origins[origin],
            absent=absent_sections(report, made_from(kept, content, origin, report.made_at)),
        )
        for origin, report in reports.items()
    }
    return replace(content, origins={**content.origins, **parts})
