"""A report as one self-contained page: styles, figures and numbers inside, no script, no request to any
server.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import groupby

from analysis.any_table.result_tables import Table
from analysis.reports.base import ANSWER, MARK_WORDS, Figure, Mark, Section
from analysis.reports.drawing.figure_files import inline
from analysis.reports.drawing.figures import Look
from analysis.reports.output.page_style import STYLE
from analysis.reports.report import Report
from analysis.seal import UNSEALED

UPRIGHT = 8
"""More columns of numbers than these have their headings along the column: a page is not that wide."""
ORIGIN_WORDS = {
    "human": "people",
    "simulated": "simulated observers",
    "pilot": "pilot",
    "preview": "preview",
    "model": "models",
}


def page(report: Report) -> str:
    """The whole document. All text from a person or a file is escaped."""
    facts = report.facts
    look = Look.of(facts, report.origin)
    swatches = {c.label: look.colours[c.name] for c in facts.conditions}
    parts = [
        part for part in report.sections if part.title and (part.paragraphs or part.tables or part.figures)
    ]
    # The answer is what a reader opens the page for: it stands before the list of the parts.
    count = 1 if parts and parts[0].key == ANSWER else 0
    first, rest = (
        "".join(_section(part, swatches) for part in some) for some in (parts[:count], parts[count:])
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="robots" content="noindex"><link rel="icon" href="data:,">'
        f"<title>{escape(facts.title)} \N{MIDDLE DOT} report</title><style>{STYLE}</style></head><body>"
        f"{_header(report)}<main>{_banners(report)}{_numbers(report)}{first}{_contents(parts)}{rest}</main>"
        f"{_footer(report)}</body></html>\n"
    )


def _contents(parts: Sequence[Section]) -> str:
    """Links to the parts, in lines of one mark each."""
    lines = "".join(
        f"<li>{_mark(mark)}<ol>"
        + "".join(f'<li><a href="#{part.key}">{escape(part.title)}</a></li>' for part in same)
        + "</ol></li>"
        for mark, same in groupby(parts, key=lambda part: part.mark)
    )
    return f'<nav aria-label="Contents"><ol>{lines}</ol></nav>'


def _mark(mark: Mark) -> str:
    return f'<span class="mark {mark}">{MARK_WORDS[mark]}</span>' if mark else ""


def document(title: str, heading: str, sentences: Sequence[str], tables: Sequence[Table]) -> str:
    """A page of tables alone, under a heading that must stand above them."""
    body = "".join(_table(table, {}) for table in tables)
    words = "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,"><title>{escape(title)}</title><style>{STYLE}</style></head><body>'
        f"<header><h1>{escape(title)}</h1></header>"
        f'<main><p class="banner observers"><strong>{escape(heading)}</strong></p>'
        f"<section>{body}{words}</section></main></body></html>\n"
    )


def _header(report: Report) -> str:
    facts = report.facts
    return (
        f'<header><p class="eyebrow">Report \N{MIDDLE DOT} {escape(facts.slug)} \N{MIDDLE DOT} '
        f"{escape(ORIGIN_WORDS.get(report.origin, report.origin))}</p><h1>{escape(facts.title)}</h1></header>"
    )


def _banners(report: Report) -> str:
    lines = []
    if report.heading:
        lines.append(f'<p class="banner observers"><strong>{escape(report.heading)}</strong></p>')
    if report.facts.note:
        lines.append(f'<p class="banner observers">{escape(report.facts.note)}</p>')
    if report.origin not in UNSEALED:
        kind = "sealed" if report.seal.sealed else "open"
        lines.append(f'<p class="banner {kind}">{escape(report.seal.sentence)}</p>')
    return "".join(lines)


def _numbers(report: Report) -> str:
    """The numbers to start with, as the reporter chose them."""
    if not report.headline:
        return ""
    cells = "".join(
        f"<div><dd>{escape(number.value)}{_small(number.small)}</dd><dt>{escape(number.label)}</dt></div>"
        for number in report.headline
    )
    return f'<dl class="numbers">{cells}</dl>'


def _small(text: str) -> str:
    return f"<small>{escape(text)}</small>" if text else ""


def _section(part: Section, swatches: dict[str, str]) -> str:
    paragraphs = "".join(f"<p>{escape(text)}</p>" for text in part.paragraphs)
    tables = [_table(table, swatches) for table in part.tables if table.rows]
    figures = [_figure(figure) for figure in part.figures if not figure.leads]
    leading = [_figure(figure) for figure in part.figures if figure.leads]
    # The main table, then the pictures of it, then the details.
    blocks = [*leading, *tables[:1], *figures, *tables[1:]]
    heading = f"<h2>{escape(part.title)}{_mark(part.mark)}</h2>"
    return f'<section id="{part.key}">{heading}{paragraphs}{"".join(blocks)}</section>'


def _table(table: Table, swatches: dict[str, str]) -> str:
    head = "".join(
        f'<th scope="col"{_side(i, table)}>{escape(name)}</th>' for i, name in enumerate(table.columns)
    )
    rows = "".join(f"<tr>{_cells(row, table, swatches)}</tr>" for row in table.rows)
    note = f'<p class="note">{escape(table.note)}</p>' if table.note else ""
    many = ' class="many"' if len(table.columns) - table.left > UPRIGHT else ""
    return (
        f'<div class="table" role="region" aria-label="{escape(table.title)}" tabindex="0"><table{many}>'
        f"<caption>{escape(table.title)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{rows}</tbody></table></div>{note}"
    )


def _cells(row: tuple[str, ...], table: Table, swatches: dict[str, str]) -> str:
    cells = []
    for index, text in enumerate(row):
        if index == 0:
            colour = swatches.get(text)
            dot = f'<i class="dot" style="background:{colour}"></i>' if colour else ""
            cells.append(f'<th scope="row">{dot}{escape(text)}</th>')
        else:
            cells.append(f"<td{_side(index, table)}>{escape(text)}</td>")
    return "".join(cells)


def _side(index: int, table: Table) -> str:
    return "" if index < table.left else ' class="n"'


def _figure(figure: Figure) -> str:
    svg = inline(figure.svg, figure.key)
    named = svg.replace("<svg ", f'<svg role="img" aria-label="{escape(figure.alt)}" ', 1)
    return (
        f'<figure id="figure-{figure.key}"><div class="drawing" role="region" tabindex="0" '
        f'aria-label="{escape(figure.alt)}">{named}</div><figcaption>{escape(figure.caption)}</figcaption></figure>'
    )


def _footer(report: Report) -> str:
    facts = report.facts
    shown = [
        ("Definition", facts.digest[:16]),
        ("Seed", str(facts.seed)),
        ("State", facts.state),
        ("Legible", facts.code_version),
        ("Made", report.made_at),
    ]
    cells = "".join(f"<div><dt>{name}</dt><dd>{escape(value)}</dd></div>" for name, value in shown if value)
    return f"<footer><dl>{cells}</dl></footer>"
