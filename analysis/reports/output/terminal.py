"""A report in the terminal: the same tables, aligned, without colour when piped."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from analysis.any_table.result_tables import Table
from analysis.reports.base import MARK_WORDS
from analysis.reports.report import Report
from analysis.seal import UNSEALED
from experiments.terminal import whole_table, wrap_lines


def print_report(report: Report, console: Console | None = None) -> None:
    """Heading, flow, and what the reporter named as its main result."""
    out = console or Console()
    out.print(Text(f"{report.facts.title} ({report.facts.slug})", style="bold"))
    for line in (report.heading, report.facts.note):
        if line:
            out.print(Text(wrap_lines(line, out), style="yellow"))
    if report.origin not in UNSEALED:
        out.print(Text(wrap_lines(report.seal.sentence, out)))
    out.print(Text(wrap_lines(flow_line(report), out)))
    for main in report.main:
        for sentence in main.sentences:
            out.print(Text(wrap_lines(sentence, out)))
        if main.table is not None:
            print_table(main.table, out, MARK_WORDS.get(main.mark, ""))


def flow_line(report: Report) -> str:
    """The n-flow in one line."""
    steps = report.flow.content["steps"]
    return " \N{RIGHTWARDS ARROW} ".join(f"{step['count']} {step['step']}" for step in steps)


def print_table(table: Table, out: Console, mark: str = "") -> None:
    """The table for a terminal, with its short headings if it has some; nothing is cut off. `mark` stands
    behind the title."""
    heads = table.short or table.columns
    shown = [index for index, name in enumerate(heads) if name]
    cells = [[row[index] for index in shown] for row in table.rows]
    numeric = [index >= table.left for index in shown]
    out.print()
    out.print(Text(f"{table.title} [{mark.lower()}]" if mark else table.title, style="italic"))
    # A pipe gets one line per row, however long.
    out.print(whole_table([heads[index] for index in shown], cells, numeric, out), soft_wrap=True)
    if table.note:
        out.print(Text(wrap_lines(table.note, out), style="dim"))
