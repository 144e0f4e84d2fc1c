"""A whole report: one study, one origin; as values, as tables, as a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from analysis.frames import Frames
from analysis.reports.base import Seal, Section, StudyFacts, Table
from analysis.reports.html import page

SIMULATED_HEADING = "Computational observers, not people."


@dataclass(frozen=True, slots=True)
class Report:
    """One study, one origin: the flow of participants and the paradigm's sections."""

    facts: StudyFacts
    origin: str
    seal: Seal
    flow: Section
    sections: tuple[Section, ...]
    made_at: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def heading(self) -> str:
        """A sentence that must stand over everything, or nothing."""
        return SIMULATED_HEADING if self.origin == "simulated" else ""

    @property
    def parts(self) -> tuple[Section, ...]:
        return (*self.sections, self.flow)

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
            "code_version": self.facts.code_version,
            "made_at": self.made_at,
            "flow": self.flow.content,
            **{section.key: section.content for section in self.sections},
            **self.extra,
        }

    def tables(self) -> dict[str, Table]:
        """Every table by its key, in the order of the report."""
        return {table.key: table for part in self.parts for table in part.tables}

    def html(self) -> str:
        """One self-contained page: no request to anywhere, figures inside."""
        return page(self)


class Reporter(Protocol):
    """A paradigm's report. Raises MixedOrigins where frames hold more than one origin."""

    def __call__(self, frames: Frames, definition: StudyFacts, *, made_at: str = "") -> Report: ...
