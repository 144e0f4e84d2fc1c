"""The files that make a package readable and re-runnable by a stranger, beside the tables themselves."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path

from django.utils import timezone

from analysis.columns import Column, codebook
from analysis.exports import scripts, study_facts_file
from analysis.exports.delimited import write_rows
from analysis.exports.readme_and_citation import DataPackage, files, table_of
from analysis.exports.report_from_package import absent_sections, made_from
from analysis.exports.study_facts_file import OriginFile, StudyFile, read_tables
from analysis.facts import ReportError, StudyFacts
from analysis.frames import Frames
from analysis.reports.report import Report
from analysis.spreadsheet_cells import escape_cell
from analysis.stored_reports.departures import report_facts
from analysis.stored_reports.refresh import REPORTED, make_report, without_questions
from analysis.tables.response_reader import code_version, study_facts
from experiments.definition.study import StudyDefinition
from experiments.models import Response, Study

ANALYSED = ("trials", "participants", "stimuli")
"""The tables that a report is made of."""
REPORT_MAX = 200_000
"""Answers up to which an export makes the report too: it would hold all of them in memory."""
SCRIPTS = resources.files(scripts)
LIBRARIES = ("numpy", "pandas", "scipy")
CONDITIONS = "conditions.csv"
CONDITION_HEADS = ("condition", "label", "role", "wanted", "method", "shows")


@dataclass(frozen=True, slots=True)
class Shape:
    """What was written: the columns that kinds of trial added, and of the request what matters here."""

    extra: tuple[Column, ...]
    cleaned: bool
    public: bool
    release: str
    origins: Sequence[str]
    special: frozenset[str] = frozenset()
    """Questions of which nothing is told."""


def accompany(study: Study, folder: Path, written: Mapping[str, int], shape: Shape) -> dict[str, int]:
    """Writes study.json and the reports of the moment into a folder that holds the tables already; returns
    rows per file. A sealed report holds no result, as everywhere.
    """
    is_large = Response.objects.filter(session__study=study).count() > REPORT_MAX
    # An extension's report also tells of its parent, whose rows are not in this package.
    is_partial = shape.cleaned or bool(study.definition.get("extends"))
    rows: dict[str, int] = {}
    reports: dict[str, Report] = {}
    parts = {}
    for origin in () if shape.public else shape.origins:
        facts = without_questions(report_facts(study, origin), shape.special)
        if is_large and not is_partial:
            # `report --from` makes it from the files alone.
            parts[origin] = OriginFile(facts)
            continue
        try:
            _refuse(origin, is_large=is_large)
            reports[origin] = make_report(study, origin, release=shape.release, untold=shape.special)
            rows |= _write_report(folder, reports[origin])
            parts[origin] = OriginFile(facts, report=report_name(origin))
        except ReportError as error:
            parts[origin] = OriginFile(facts, why=str(error))
    content = StudyFile(
        version=study_facts_file.VERSION,
        code_version=code_version(),
        study=study.slug,
        paradigm=study.paradigm,
        cleaned=shape.cleaned,
        tables=_tables(written),
        extra=shape.extra,
        origins=parts,
    )
    if content.tables and is_partial and reports:
        content = _with_absent(content, reports, read_tables(folder, content))
    rows |= write_conditions(folder, study_facts(study))
    if not shape.public:
        (folder / study_facts_file.NAME).write_text(study_facts_file.as_text(content), encoding="utf-8")
        rows[study_facts_file.NAME] = len(parts)
    if content.has_csv:
        rows |= write_scripts(folder, study.paradigm, report_facts(study).level)
    return rows | _write_words(study, folder, content, {**written, **rows}, shape.origins)


def _tables(written: Mapping[str, int]) -> dict[str, str]:
    """The file of each table; none if the format is not one of tables."""
    named = {table_of(name): name for name in written}
    return {table: named[table] for table in ANALYSED if table in named}


def _refuse(origin: str, *, is_large: bool) -> None:
    """ReportError if no report is made at the export: none is asked for of previews."""
    if origin not in REPORTED:
        raise ReportError(f"Sessions of origin '{origin}' have no report.")
    if is_large:
        raise ReportError(
            f"The study has more than {REPORT_MAX:,} answers, so no report was made at the export, and this "
            "package does not hold all of its sessions: export it whole and give that to report --from."
        )


def report_name(origin: str) -> str:
    return f"report-{origin}.json"


def _write_report(folder: Path, report: Report) -> dict[str, int]:
    """The report as JSON, and unless it is sealed its first table as CSV."""
    name = report_name(report.origin)
    text = json.dumps(report.json(), indent=1, ensure_ascii=False, allow_nan=False)
    (folder / name).write_text(text + "\n", encoding="utf-8")
    table = next((main.table for main in report.main if main.table is not None), None)
    if table is None or report.seal.sealed:
        return {name: 1}
    first = f"table1-{report.origin}.csv"
    write_rows(
        folder / first, list(table.columns), ([escape_cell(cell) for cell in row] for row in table.rows)
    )
    return {name: 1, first: len(table.rows)}


def write_conditions(folder: Path, facts: StudyFacts) -> dict[str, int]:
    """conditions.csv: the conditions in their order, with what a script must know of them."""
    rows = [
        [escape_cell(c.name), escape_cell(c.label), c.role, str(c.wanted), escape_cell(c.method), c.shows]
        for c in facts.conditions
    ]
    write_rows(folder / CONDITIONS, list(CONDITION_HEADS), rows)
    return {CONDITIONS: len(rows)}


def write_scripts(folder: Path, paradigm: str, level: float) -> dict[str, int]:
    """The scripts of the paradigm with the plan's level of intervals; none if there are none. A script is one
    unit of its file."""
    there = {"analysis.py": f"{paradigm}.py", "analysis.R": f"{paradigm}.R"}
    copied = {}
    for name, source in there.items():
        if (SCRIPTS / source).is_file():
            text = (SCRIPTS / source).read_text(encoding="utf-8")
            text = _with_shared_parts(text) if name.endswith(".py") else text
            for sign in ("=", "<-"):
                text = text.replace(f"TOGETHER {sign} 0.95", f"TOGETHER {sign} {level!r}")
            (folder / name).write_text(text, encoding="utf-8")
            copied[name] = 1
    return copied


def _with_shared_parts(script: str) -> str:
    """A script in Python with what the scripts share written into it, so that it needs no other file."""
    head, imports, rest = "", set(), []
    for text in (script, (SCRIPTS / "steps.py").read_text(encoding="utf-8")):
        nodes = [node for node in ast.parse(text).body if isinstance(node, ast.Import | ast.ImportFrom)]
        imports |= {ast.unparse(node) for node in nodes}
        lines = text.splitlines(keepends=True)
        head = head or "".join(lines[: nodes[0].lineno - 1])
        rest.append("".join(lines[nodes[-1].end_lineno :]))
    ours = {line for line in imports if line.startswith(f"from {scripts.__name__}")}
    kept = sorted(imports - ours, key=lambda line: (line.split()[1].split(".")[0] in LIBRARIES, line))
    return head + "\n".join(kept) + "\n" + rest[1] + "\n\n" + rest[0].lstrip("\n")


def _write_words(
    study: Study, folder: Path, content: StudyFile, rows: Mapping[str, int], origins: Sequence[str]
) -> dict[str, int]:
    """README, citation, licence if there is one, and the description of the tables."""
    book = codebook(content.extra)
    tables = [table for table in map(table_of, rows) if table]
    columns = {table: [entry for entry in book if entry["table"] == table] for table in tables}
    # Read anew: these words are no part of the digest, by which parsed definitions are kept.
    definition = StudyDefinition.model_validate(study.definition)
    package = DataPackage(definition, content, rows, columns, study.digest, timezone.now().date(), origins)
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
