"""A report as a folder: report.json, report.html, every figure and every table as files for a paper."""

from __future__ import annotations

import json
from pathlib import Path

from analysis.reports.drawing.figure_files import as_pdf
from analysis.reports.output.html import page
from analysis.reports.output.markdown_latex import (
    data_csv,
    mark_coordinates,
    table_csv,
    table_latex,
    table_markdown,
)
from analysis.reports.report import Report


def write_page(report: Report, folder: Path) -> Path:
    """Writes report.html alone, which has its figures in it; the file."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "report.html"
    file.write_text(page(report), encoding="utf-8")
    return file


def write_report(report: Report, folder: Path) -> list[str]:
    """Writes the folder and returns the names of its files. A figure is SVG and PDF, with its values as CSV;
    a table is CSV; one in a published layout is Markdown and LaTeX too.
    """
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(report.json(), indent=1, ensure_ascii=False, allow_nan=False)
    files: dict[str, str | bytes] = {"report.json": text + "\n", "report.html": page(report)}
    for figure in (figure for section in report.sections for figure in section.figures):
        picture, stem = figure.draw(), f"figures/{figure.key}"
        files[f"{stem}.csv"] = data_csv(figure.data or mark_coordinates(picture))
        files[f"{stem}.svg"] = figure.svg
        files[f"{stem}.pdf"] = as_pdf(picture)
    for table in report.papers:
        files[f"tables/{table.key}.md"] = table_markdown(table)
        files[f"tables/{table.key}.tex"] = table_latex(table)
    for table in (*report.papers, *report.tables().values()):
        files[f"tables/{table.key}.csv"] = table_csv(table)
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return list(files)
