"""A whole report: one study, one origin; the paradigm's reporter alone decides its contents."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Protocol

from analysis.any_table.result_tables import Table
from analysis.facts import ReportError, StudyFacts
from analysis.frames import Frames
from analysis.reports.base import Headline, Main, Section
from analysis.seal import Seal

SIMULATED_HEADING = "Computational observers, not people."
MODEL_HEADING = "A model answered, not people."
HEADINGS = {"simulated": SIMULATED_HEADING, "model": MODEL_HEADING}
HEAD_KEYS = (
    "study",
    "origin",
    "heading",
    "note",
    "seal",
    "sealed",
    "section_marks",
    "code_version",
    "made_at",
)
"""What report.json holds for every paradigm, besides the flow."""


@dataclass(frozen=True, slots=True)
class Report:
    """One study, one origin.

    `sections` stand on the page in this order; the flow of participants is one of them. `headline` are the
    numbers that the page starts with, `main` is what the terminal prints. `opening` is one sentence for
    places that show a single line of a study, such as the dashboard's overview: it must be fit to be read
    while results are sealed. Raises ReportError if two sections, tables or figures have one key.
    """

    facts: StudyFacts
    origin: str
    seal: Seal
    flow: Section
    sections: tuple[Section, ...]
    made_at: str = ""
    headline: tuple[Headline, ...] = ()
    main: tuple[Main, ...] = ()
    opening: str = ""
    papers: tuple[Table, ...] = ()

    def __post_init__(self) -> None:
        _refuse_twice("sections", [*HEAD_KEYS, *(section.key for section in self.sections)])
        tables = [table for section in self.sections for table in section.tables]
        _refuse_twice("tables", [table.key for table in (*tables, *self.papers)])
        _refuse_twice("figures", [figure.key for section in self.sections for figure in section.figures])

    @property
    def heading(self) -> str:
        """A sentence that must be printed above everything else; empty if there is none."""
        return HEADINGS.get(self.origin, "")

    def json(self) -> dict[str, Any]:
        """All numbers, as values that JSON can carry; sealed results are null."""
        return {
            "study": {
                "slug": self.facts.slug,
                "title": self.facts.title,
                "paradigm": self.facts.paradigm,
                "digest": self.facts.digest,
                "seed": self.facts.seed,
                "state": self.facts.state,
            },
            "origin": self.origin,
            "heading": self.heading,
            "note": self.facts.note,
            "seal": self.seal.as_json(),
            "sealed": self.seal.sealed,
            "section_marks": {section.key: section.mark for section in self.sections if section.mark},
            "code_version": self.facts.code_version,
            "made_at": self.made_at,
            "flow": self.flow.content,
            **{section.key: section.content for section in self.sections},
        }

    def tables(self) -> dict[str, Table]:
        """Every table by its key, in the order of the report."""
        return {table.key: table for section in self.sections for table in section.tables}


def _refuse_twice(what: str, keys: list[str]) -> None:
    twice = [key for key, count in Counter(keys).items() if count > 1]
    if twice:
        raise ReportError(
            f"The keys of {what} must differ, and must not be one of {', '.join(HEAD_KEYS)}; these stand "
            f"twice: {', '.join(twice)}. Rename them in the reporter."
        )


class Reporter(Protocol):
    """A paradigm's report. Raises MixedOrigins if frames hold more than one origin."""

    def __call__(self, frames: Frames, definition: StudyFacts, *, made_at: str = "") -> Report: ...
