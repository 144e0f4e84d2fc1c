"""A report in the terminal: the same tables, aligned, without colour when piped."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from analysis.reports.base import Table
from analysis.reports.report import Report


def print_report(report: Report, console: Console | None = None) -> None:
    """Heading, flow, and what the reporter named as its main result."""
    out = console or Console()
    out.print(Text(f"{report.facts.title} ({report.facts.slug})", style="bold"))
    for line in (report.heading, report.facts.note):
        if line:
            out.print(Text(line, style="yellow"))
    if report.origin != "simulated":
        out.print(Text(report.seal.sentence))
    out.print(Text(flow_line(report)))
    for main in report.main:
        for sentence in main.sentences:
            out.print(Text(sentence))
        if main.table is not None:
            out.print()
            out.print(rich_table(main.table))
            if main.table.note:
                out.print(Text(main.table.note, style="dim"))


def flow_line(report: Report) -> str:
    """The n-flow in one line."""
    steps = report.flow.content["steps"]
    return " \N{RIGHTWARDS ARROW} ".join(f"{step['count']} {step['step']}" for step in steps)


def rich_table(table: Table) -> RichTable:
    """The table for a terminal, with its short headings if it has some."""
    made = RichTable(title=table.title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    heads = table.short or table.columns
    shown = [index for index, name in enumerate(heads) if name]
    for index in shown:
        made.add_column(heads[index], justify="left" if index < table.left else "right", no_wrap=True)
    for row in table.rows:
        # As text, not as markup, so that a label in square brackets is printed as it is.
        made.add_row(*(Text(row[index]) for index in shown))
    return made
