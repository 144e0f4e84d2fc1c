"""The toy's report: how often each pile was chosen, by lane; no condition, no baseline, no ANOVA."""

from __future__ import annotations

from functools import partial
from typing import Any

import pandas as pd
from matplotlib.figure import Figure as Drawing

from analysis.any_table.result_tables import Table
from analysis.frames import Frames
from analysis.reports.base import Figure, Headline, Main, Section, StudyFacts, seal_of
from analysis.reports.parts.flow import flow_headline, flow_section
from analysis.reports.report import Report

PILES = ("single", "several", "unsure")


def report(frames: Frames, definition: StudyFacts, *, made_at: str = "") -> Report:
    origin = frames.one_origin()
    seal = seal_of(definition, origin)
    flow = flow_section(frames.participants, definition, sealed=seal.sealed)
    cleaned = frames.kept()
    answers = cleaned.trials[cleaned.trials["kind"] == "sort"].merge(
        cleaned.participants[["session", "lane"]], on="session"
    )
    piles = None if seal.sealed else _piles(answers)
    rows = tuple((row["lane"], *(str(row[pile]) for pile in PILES)) for row in piles or [])
    table = Table("piles", "Texts on each pile", ("Desk", *PILES), rows)
    opening = f"{len(answers)} texts were sorted."
    section = Section("piles", "The piles", piles, (opening,), (table,), _drawn(piles))
    return Report(
        definition,
        origin,
        seal,
        flow,
        (flow, section),
        made_at,
        headline=(*flow_headline(flow, definition), Headline(str(len(answers)), "texts sorted")),
        main=(Main(table, (opening,)),),
        opening=opening,
    )


def _piles(answers: pd.DataFrame) -> list[dict[str, Any]]:
    return [
        {"lane": lane, **{pile: int((rows["response"] == pile).sum()) for pile in PILES}}
        for lane, rows in answers.groupby("lane")
    ]


def _drawn(piles: list[dict[str, Any]] | None) -> tuple[Figure, ...]:
    return (Figure("piles", "Texts per pile.", "Bars.", partial(_bars, piles)),) if piles else ()


def _bars(piles: list[dict[str, Any]]) -> Any:
    figure = Drawing(figsize=(4, 2))
    axes = figure.add_subplot()
    for row in piles:
        axes.plot(PILES, [row[pile] for pile in PILES], "o", label=row["lane"])
    return figure
