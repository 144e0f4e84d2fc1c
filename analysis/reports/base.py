"""The parts of a report in every paradigm: sections of tables and figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

# Reporters of installed packages import these from here.
from analysis.any_table.result_tables import Table as Table
from analysis.facts import ConditionFacts as ConditionFacts
from analysis.facts import ReportError as ReportError
from analysis.facts import SlotFacts as SlotFacts
from analysis.facts import StudyFacts as StudyFacts
from analysis.reports.drawing.figure_files import as_svg_file
from analysis.seal import seal_of as seal_of


@dataclass(frozen=True, slots=True)
class Data:
    """What a figure shows, unrounded: one row per mark. None: no value, so no mark."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str | float | None, ...], ...]


@dataclass(frozen=True)
class Figure:
    """A picture that is drawn when it is needed: `draw` returns a matplotlib figure. `alt` says what it
    shows. Without `data` the coordinates of its marks stand for it. One that `leads` stands above the
    section's tables.
    """

    key: str
    caption: str
    alt: str
    draw: Callable[[], Any]
    data: Data | None = None
    leads: bool = False

    @cached_property
    def svg(self) -> bytes:
        """The picture as a file of its own. Pages and folders show the same one, and drawing is slow."""
        return as_svg_file(self.draw(), self.key)


ANSWER = "answer"
"""The section with which an open report begins."""
Mark = Literal["", "planned", "paper", "exploratory"]
MARK_WORDS: Mapping[Mark, str] = {
    "planned": "Planned",
    "paper": "As in the paper",
    "exploratory": "Exploratory",
}
"""What a section is: named before people came, repeated from the paper beside it, or neither."""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the report: `content` goes to report.json under `key`, the rest is for people. Without a mark
    it tells how the study went, and no result.
    """

    key: str
    title: str
    content: Any
    paragraphs: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    mark: Mark = ""


@dataclass(frozen=True, slots=True)
class Headline:
    """A number that the page starts with: the number as text, what it counts, and what follows it in small
    type (" of 90").
    """

    value: str
    label: str
    small: str = ""


@dataclass(frozen=True, slots=True)
class Main:
    """What the terminal prints of a report: sentences, and below them a table with its mark."""

    table: Table | None = None
    sentences: tuple[str, ...] = ()
    mark: Mark = ""
