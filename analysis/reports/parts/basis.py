"""What the report of every paradigm begins with, and how its sections become a report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from analysis.any_table.formats import interval, number, p_value, stars
from analysis.any_table.result_tables import Table
from analysis.facts import StudyFacts
from analysis.frames import Frames
from analysis.reports.base import Headline, Main, Section
from analysis.reports.drawing.figures import Look
from analysis.reports.parts import participants
from analysis.reports.parts.flow import flow_headline, flow_section
from analysis.reports.report import Report
from analysis.seal import Seal, seal_of
from analysis.stats.means.tukey_and_corrections import holm
from analysis.stats.ratings.clustered_means import ClusteredEstimate


@dataclass(frozen=True, slots=True)
class ReportBasis:
    """One study, one origin. `confirmed`: the sessions that their platform does not deny, as in `Frames`."""

    facts: StudyFacts
    frames: Frames
    origin: str
    seal: Seal
    flow: Section
    look: Look
    confirmed: Frames

    @classmethod
    def of(cls, frames: Frames, facts: StudyFacts, note: str = "") -> ReportBasis:
        """`note` as for `flow_section`. Raises MixedOrigins if frames hold more than one origin."""
        origin = frames.one_origin()
        seal = seal_of(facts, origin)
        flow = flow_section(frames.participants, facts, sealed=seal.sealed, note=note)
        return cls(facts, frames, origin, seal, flow, Look.of(facts, origin), frames.confirmed())

    @property
    def kept(self) -> Frames:
        """The people of the results. While sealed, with those left out by hand: otherwise a number before and
        after would reveal a person's score to the person who decides."""
        return self.confirmed.passed() if self.seal.sealed else self.frames.kept()

    def open_sections(self) -> list[Section]:
        """What may be seen while data are collected."""
        return participants.open_sections(self.confirmed, self.facts)

    def sealed_section(self, rows: pd.DataFrame, person: str) -> Section:
        """How many there are of each condition, in place of its results; `person` is the column that names
        them."""
        content = []
        for c in self.facts.conditions:
            people = int(rows.loc[rows["condition"] == c.name, person].nunique())
            content.append(
                {"name": c.name, "label": c.label, "role": c.role, "wanted": c.wanted, "n": people}
            )
        lines = tuple((str(c["label"]), str(c["n"]), str(c["wanted"])) for c in content)
        table = Table("conditions", "Kept so far", ("Condition", "n", "Wanted"), lines)
        return Section("conditions", "Results by condition", content, (self.seal.sentence,), (table,))

    def report(
        self,
        sections: Iterable[Section],
        made_at: str,
        headline: Sequence[Headline],
        main: tuple[Main, ...],
        opening: str,
        papers: tuple[Table, ...] = (),
    ) -> Report:
        """The flow's numbers stand before those of `headline`."""
        numbers = (*flow_headline(self.flow, self.facts), *headline)
        kinds = self.facts, self.origin, self.seal, self.flow
        return Report(*kinds, tuple(sections), made_at, numbers, main, opening, papers)


def holm_of_known(p_values: Sequence[float | None]) -> list[float | None]:
    """p of each, corrected over those that have one (Holm 1979)."""
    known = {place: p for place, p in enumerate(p_values) if p is not None}
    corrected = dict(zip(known, holm(list(known.values())), strict=True))
    return [corrected.get(place) for place in range(len(p_values))]


def difference_cells(
    result: ClusteredEstimate | None, p_holm: float | None, digits: int = 2, scale: float = 1.0
) -> tuple[str, str, str, str]:
    """A difference, its interval, its p, and p by Holm with a star."""
    estimate = number(scale * result.estimate if result else None, digits)
    ends = interval(result.interval if result else None, digits, scale)
    return estimate, ends, p_value(result.p if result else None), p_value(p_holm) + stars(p_holm)
