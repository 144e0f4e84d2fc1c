"""Beside the main results of a reverse Turing test: the paper's own unit, and how firm marks are."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pandas as pd

from analysis.any_table.formats import interval, number, p_value, percent
from analysis.any_table.result_tables import Table
from analysis.facts import StudyFacts
from analysis.frames import Frames
from analysis.reports.base import Section
from analysis.stats.intervals_and_checks import StatsError, mean_interval
from analysis.stats.ranks.two_groups import mann_whitney

MEASURES = {"matches_model": "agreement with the model", "rt_ms": "time per answer"}
LEVEL = 0.95


def as_printed(frames: Frames, facts: StudyFacts) -> Section:
    """Mann-Whitney over single answers, the unit that the paper's table allows; never a result of ours."""
    trials = frames.trials
    tests = trials[trials["scored_index"].notna() & (trials["phase"] == "test")]
    labels = facts.labels
    content, lines = [], []
    for c in facts.conditions:
        if c.name == facts.baseline:
            continue
        for measure, words in MEASURES.items():
            first, second = (
                tests.loc[tests["condition"] == name, measure].dropna().to_numpy(float)
                for name in (c.name, facts.baseline)
            )
            try:
                test = mann_whitney(first, second)
            except StatsError:
                continue
            row = {"condition": c.name, "measure": measure, "n": [len(first), len(second)], "p": test.p}
            content.append({**row, "effect": test.rank_biserial})
            n = f"{len(first)} and {len(second)}"
            lines.append((c.label, words, n, number(test.rank_biserial), p_value(test.p)))
    title = "As printed in the paper: single answers, units not independent"
    note = (
        f"Mann-Whitney of single answers against {labels[facts.baseline]}. Answers of a person resemble "
        "each other, so these p are too small: for comparison with the paper's table only."
    )
    columns = ("Condition", "Measure", "Answers", "Rank-biserial", "p")
    table = Table("as_printed", title, columns, tuple(lines), note, left=2)
    return Section("as_printed", "As printed" if lines else "", content, (), (table,) if lines else ())


def marks(frames: Frames, facts: StudyFacts) -> Section:
    """How much the marked words of two runs with other seeds have in common, beside random marks."""
    content: dict[str, dict[str, object]] = {}
    lines = []
    for c in facts.conditions:
        measured = _stability(frames.stimuli[frames.stimuli["condition"] == c.name])
        if measured.empty:
            continue
        gain = measured["stability"] - measured["stability_by_chance"]
        ends = mean_interval(gain.to_numpy(float), level=LEVEL)
        shares = {name: float(measured[name].mean()) for name in measured}
        content[c.name] = {"n": len(measured), **shares, "gain": float(gain.mean())}
        content[c.name]["interval"] = ends.as_json() if ends else None
        lines.append(
            (
                c.label,
                str(len(measured)),
                percent(shares["stability"]),
                percent(shares["stability_by_chance"]),
                interval(ends.as_json() if ends else None, 1, 100),
            )
        )
    note = (
        "Share of marked words that two runs with other seeds have in common. Marks that return no more "
        "often than random ones say nothing about single words: the model decides by something else."
    )
    columns = ("Condition", "Texts", "In common %", "By chance %", "Difference, 95 %")
    table = Table("marks", "Do the same words return?", columns, tuple(lines), note)
    return Section("marks", "Marks" if lines else "", content, (), (table,) if lines else ())


def _stability(stimuli: pd.DataFrame) -> pd.DataFrame:
    """`stability` and `stability_by_chance` of the stimuli whose method measured them."""
    told = [_checks(str(text)) for text in stimuli["provenance"] if str(text).strip()]
    names = ["stability", "stability_by_chance"]
    return pd.DataFrame([t for t in told if "stability" in t], columns=names, dtype=float).dropna()


def _checks(provenance: str) -> Mapping[str, float]:
    checks = json.loads(provenance).get("checks", {})
    return checks if isinstance(checks, Mapping) else {}
