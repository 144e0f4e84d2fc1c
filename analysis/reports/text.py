"""A report in the terminal: the same tables, aligned, without colour when piped."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from analysis.reports.base import Table
from analysis.reports.report import Report

MAIN = ("conditions", "tukey_baseline")


def print_report(report: Report, console: Console | None = None) -> None:
    """Heading, flow, the table of conditions, the ANOVA and Tukey's comparisons with the baseline."""
    out = console or Console()
    out.print(Text(f"{report.facts.title} ({report.facts.slug})", style="bold"))
    for line in (report.heading, report.facts.note):
        if line:
            out.print(Text(line, style="yellow"))
    if report.origin != "simulated":
        out.print(Text(report.seal.sentence))
    out.print(Text(flow_line(report)))
    tables = report.tables()
    sections = {section.key: section for section in report.sections}
    for key in MAIN:
        if key == "tukey_baseline" and "anova" in sections:
            for sentence in sections["anova"].paragraphs:
                out.print(Text(f"One-way ANOVA of accuracy per person: {sentence}"))
        if key in tables:
            out.print()
            out.print(rich_table(tables[key]))
            if tables[key].note:
                out.print(Text(tables[key].note, style="dim"))


def flow_line(report: Report) -> str:
    """The n-flow in one line."""
    steps = report.flow.content["steps"]
    return " \N{RIGHTWARDS ARROW} ".join(f"{step['count']} {step['step']}" for step in steps)


def rich_table(table: Table) -> RichTable:
    """The table for a terminal, with its short headings where it has some."""
    made = RichTable(title=table.title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    heads = table.short or table.columns
    shown = [index for index, name in enumerate(heads) if name]
    for index in shown:
        made.add_column(heads[index], justify="left" if index < table.left else "right", no_wrap=True)
    for row in table.rows:
        # As text, not as markup: a label in square brackets stays what it is.
        made.add_row(*(Text(row[index]) for index in shown))
    return made
