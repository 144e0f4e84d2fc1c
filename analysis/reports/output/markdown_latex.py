"""A report's tables and figures as files for a paper: CSV, Markdown, LaTeX."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import Any

from analysis.any_table.formats import NONE
from analysis.any_table.result_tables import Table
from analysis.reports.base import Data
from analysis.spreadsheet_cells import escape_cell

MINUS = "\N{MINUS SIGN}"
NUMBER = re.compile(r"-?(\d+\.?\d*|\.\d+)")
LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    MINUS: "$-$",
    NONE: "--",
    "\N{MULTIPLICATION SIGN}": r"$\times$",
    "\N{INFINITY}": r"$\infty$",
    "\N{GREEK SMALL LETTER ETA}": r"$\eta$",
    "\N{GREEK SMALL LETTER OMEGA}": r"$\omega$",
    "\N{SUPERSCRIPT TWO}": r"$^2$",
}
MARKDOWN = re.compile(r"([\\|`*_<>\[\]])")


def table_csv(table: Table) -> str:
    """The printed cells: a dash is an empty cell, a minus sign a hyphen, so that numbers can be read."""
    rows = [[_cell(cell) for cell in row] for row in table.rows]
    return _csv([escape_cell(name) for name in table.columns], rows)


def data_csv(data: Data) -> str:
    """Values with every digit; None is an empty cell."""
    rows = [
        [escape_cell(c) if isinstance(c, str) else "" if c is None else repr(c) for c in r] for r in data.rows
    ]
    return _csv(data.columns, rows)


def table_markdown(table: Table) -> str:
    """A title, the table and its note, for a pipe-table reader; what Markdown would read is escaped."""
    sides = "|".join(" --- " if index < table.left else " ---: " for index in range(len(table.columns)))
    head, rows = _pipe_row(table.columns), [_pipe_row(row) for row in table.rows]
    note = ["", _plain(table.note)] if table.note else []
    return "\n".join([f"**{_plain(table.title)}**", "", head, f"|{sides}|", *rows, *note]) + "\n"


def _pipe_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(map(_plain, cells))} |"


def _plain(text: str) -> str:
    return MARKDOWN.sub(r"\\\1", " ".join(text.split()))


def table_latex(table: Table) -> str:
    """A float for the package booktabs, in UTF-8."""

    def line(cells: Iterable[str]) -> str:
        return " & ".join(latex(cell) for cell in cells) + r" \\"

    sides = "l" * table.left + "r" * (len(table.columns) - table.left)
    parts = [
        "% \\usepackage{booktabs}",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{latex(table.title)}}}",
        rf"\label{{tab:{re.sub(r'[^a-z0-9]+', '-', table.key.lower())}}}",
        rf"\begin{{tabular}}{{{sides}}}",
        r"\toprule",
        line(table.columns),
        r"\midrule",
        *map(line, table.rows),
        r"\bottomrule",
        r"\end{tabular}",
        *([rf"\par\smallskip\footnotesize {latex(table.note)}"] if table.note else []),
        r"\end{table}",
    ]
    return "\n".join(parts) + "\n"


def latex(text: str) -> str:
    """Text as LaTeX prints it; a line break becomes a space, and a bracket begins no option."""
    escaped = "".join(LATEX.get(letter, letter) for letter in " ".join(text.split()))
    return f"{{}}{escaped}" if escaped.startswith("[") else escaped


def mark_coordinates(figure: Any) -> Data:
    """The coordinates of every mark of a matplotlib figure, as drawn, by panel and series."""
    rows: list[tuple[str | float | None, ...]] = []
    for panel, axes in enumerate(figure.axes):
        name = axes.get_title(loc="left") or axes.get_title() or str(panel)
        for series, line in enumerate(axes.lines):
            pairs = zip(line.get_xdata(orig=True), line.get_ydata(orig=True), strict=True)
            rows += [(name, f"line {series}", *map(_value, pair)) for pair in pairs]
        for series, patch in enumerate(axes.patches):
            box = patch.get_path().transformed(patch.get_patch_transform()).get_extents()
            rows.append((name, f"bar {series}", _value(box.x1), _value(box.y1)))
        for series, image in enumerate(axes.images):
            cells = image.get_array()
            rows += [
                (name, f"image {series}, row {y}", float(x), _value(value))
                for y, row in enumerate(cells)
                for x, value in enumerate(row)
            ]
        for series, marks in enumerate(axes.collections):
            rows += [(name, f"marks {series}", _value(x), _value(y)) for x, y in marks.get_offsets()]
    return Data(("panel", "series", "x", "y"), tuple(rows))


def _value(value: Any) -> str | float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return str(value)
    return None if number != number else number


def _cell(text: str) -> str:
    if text == NONE:
        return ""
    plain = text.replace(MINUS, "-")
    return plain if NUMBER.fullmatch(plain) else escape_cell(plain)


def _csv(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return out.getvalue()
