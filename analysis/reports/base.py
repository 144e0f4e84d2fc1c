"""What a report is made of, whatever the paradigm: facts about the study, sections of tables and figures,
a seal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


class ReportError(ValueError):
    """A report cannot be made; the message names what is missing and what to do."""


@dataclass(frozen=True, slots=True)
class ConditionFacts:
    """A level of the factor: how many slots are wanted, and how many are kept by somebody who passed."""

    name: str
    label: str
    role: str
    wanted: int
    kept: int


@dataclass(frozen=True, slots=True)
class QuestionFacts:
    id: str
    when: str
    kind: str
    prompt: str


@dataclass(frozen=True, slots=True)
class StudyFacts:
    """What a report must know about its study beside the answers."""

    slug: str
    title: str
    paradigm: str
    digest: str
    seed: int
    state: str
    conditions: tuple[ConditionFacts, ...]
    questions: tuple[QuestionFacts, ...] = ()
    unsealed_at: str = ""
    unsealed_by: str = ""
    unsealed_reason: str = ""
    code_version: str = ""
    note: str = ""

    @property
    def baseline(self) -> str:
        """Name of the baseline condition. Raises ReportError where the study has none."""
        for condition in self.conditions:
            if condition.role == "baseline":
                return condition.name
        raise ReportError(f"Study '{self.slug}' has no baseline condition, and Utility divides by one.")


@dataclass(frozen=True, slots=True)
class Seal:
    """Whether per-condition results are still closed, and why or why not, as a sentence."""

    sealed: bool
    sentence: str

    def as_json(self) -> dict[str, Any]:
        return {"sealed": self.sealed, "sentence": self.sentence}


def seal_of(facts: StudyFacts, origin: str) -> Seal:
    """Per-condition results of people stay sealed until the stopping rule is met.

    The rule is met when every wanted slot is kept, or the study is closed. Somebody may break the seal with
    name and reason, which every report then prints. Simulated observers are no data that could tempt anybody
    to stop early, so their reports are open.
    """
    if origin == "simulated":
        return Seal(False, "Simulated observers are never sealed.")
    wanted = sum(c.wanted for c in facts.conditions)
    kept = sum(min(c.kept, c.wanted) for c in facts.conditions)
    if facts.unsealed_at and facts.unsealed_by:
        return Seal(False, f"Unsealed by {facts.unsealed_by} on {facts.unsealed_at}: {facts.unsealed_reason}")
    if facts.state == "closed":
        return Seal(False, f"The study is closed, with {kept} of {wanted} places kept.")
    if wanted and kept >= wanted:
        return Seal(False, f"The stopping rule is met: all {wanted} places are kept.")
    return Seal(True, f"Sealed until the stopping rule is met: {kept} of {wanted} places are kept.")


@dataclass(frozen=True, slots=True)
class Table:
    """A printable table: cells are already text.

    `left` counts the leading columns that are words, not numbers. `short` are the headings in a terminal of
    80 columns, where an empty one leaves the column out.
    """

    key: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    left: int = 1
    short: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture to be drawn when it is needed: `draw` returns a matplotlib figure. `alt` says what it
    shows.
    """

    key: str
    caption: str
    alt: str
    draw: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the report: `content` goes to report.json under `key`, the rest is for people."""

    key: str
    title: str
    content: Any
    paragraphs: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
