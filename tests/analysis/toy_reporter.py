"""A reporter with nothing of the meta-predictor's: no conditions, no baseline, no ANOVA; three answers, two
lanes. What it shows is the share of "same" among all answers, by lane.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd
from matplotlib.figure import Figure as Drawing

from analysis.any_table.formats import interval, percent
from analysis.any_table.result_tables import Table
from analysis.frames import Frames, frame
from analysis.reports.base import Figure, Headline, Main, Section, SlotFacts, StudyFacts, seal_of
from analysis.reports.parts.flow import flow_headline, flow_section
from analysis.reports.report import Report
from analysis.stats.shares.proportions import wilson
from tests.analysis.worlds import START

LANES = ("expert", "lead")


def report(frames: Frames, definition: StudyFacts, *, made_at: str = "") -> Report:
    """Shares of "same" by lane; sealed while the study collects."""
    origin = frames.one_origin()
    seal = seal_of(definition, origin)
    flow = flow_section(frames.participants, definition, sealed=seal.sealed)
    answers = frames.kept().trials.merge(frames.participants[["session", "lane"]], on="session")
    shares = None if seal.sealed else _shares(answers)
    table = _table(shares or [])
    pooled = f"{len(answers)} pairs were compared."
    return Report(
        definition,
        origin,
        seal,
        flow,
        (
            flow,
            Section(
                "sameness", "How often two pictures were called the same", shares, (), (table,), _bars(shares)
            ),
        ),
        made_at,
        headline=(*flow_headline(flow, definition), Headline(str(len(answers)), "pairs compared")),
        main=(Main(table, (pooled,)),),
        opening=pooled,
    )


def _shares(answers: pd.DataFrame) -> list[dict[str, Any]]:
    rows = []
    for lane, given in answers.groupby("lane"):
        same = int((given["response"] == "same").sum())
        rows.append(
            {
                "lane": lane,
                "n": len(given),
                "share": same / len(given),
                "interval": wilson(same, len(given)).as_json(),
            }
        )
    return rows


def _table(shares: Sequence[Mapping[str, Any]]) -> Table:
    rows = tuple(
        (s["lane"], str(s["n"]), percent(s["share"]), interval(s["interval"], 1, 100)) for s in shares
    )
    return Table("sameness", "Called the same", ("Lane", "Pairs", "Same %", "95 % interval"), rows)


def _bars(shares: Sequence[Mapping[str, Any]] | None) -> tuple[Figure, ...]:
    if not shares:
        return ()
    return (Figure("sameness", "Share of pairs called the same.", "Bars by lane.", partial(_drawn, shares)),)


def _drawn(shares: Sequence[Mapping[str, Any]]) -> Any:
    figure = Drawing(figsize=(4, 2))
    figure.add_subplot().bar([s["lane"] for s in shares], [s["share"] for s in shares])
    return figure


def toy_facts(wanted: int = 4, kept: int = 4, state: str = "closed") -> StudyFacts:
    return StudyFacts(
        slug="same-or-not",
        title="Same or not?",
        paradigm="toy",
        digest="e" * 64,
        seed=5,
        state=state,
        conditions=(),
        slots=tuple(SlotFacts(lane, lane.capitalize(), wanted // 2, kept // 2, by="lane") for lane in LANES),
    )


def toy_frames(given: Mapping[str, Sequence[Sequence[str]]], origin: str = "human") -> Frames:
    """Frames of people who gave these answers, by lane and person."""
    people: list[dict[str, object]] = []
    trials: list[dict[str, object]] = []
    for lane, answers_of_people in given.items():
        for number, answers in enumerate(answers_of_people):
            shared = {"study": "same-or-not", "session": f"{lane}-{number}", "origin": origin}
            people.append(
                shared
                | {"lane": lane, "condition": "", "arm": f"list-{number}", "slot": number, "plan": 0}
                | {"status": "passed", "reasons_detail": "[]", "consented": True, "admitted": True}
                | {"started_at": START, "claimed_at": START, "finished_at": START}
            )
            trials += [
                shared | {"kind": "sort", "phase": "test", "trial_index": i, "response": answer}
                for i, answer in enumerate(answers)
            ]
    return Frames(frame("trials", trials), frame("participants", people), frame("stimuli", []))
