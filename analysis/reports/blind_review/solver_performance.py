"""The stage in which people solve: how well, how alike, how long; known tasks apart."""

from __future__ import annotations

import json
from collections.abc import Collection
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from analysis.any_table.formats import interval, number, percent
from analysis.any_table.result_tables import Table
from analysis.facts import StudyFacts
from analysis.frames import Frames
from analysis.reports.base import Section
from analysis.reports.blind_review.rows import KNOWN, TASK
from analysis.stats.intervals_and_checks import StatsError
from analysis.stats.ratings.clustered_means import clustered_mean
from analysis.stats.ratings.region_overlap import region_overlap
from analysis.stats.shares.proportions import wilson
from experiments.kinds.solve import CANNOT_SAY, Solve

LEVEL = 0.95


def solve_rows(frames: Frames) -> pd.DataFrame:
    """One row per solution: `participant`, `item`, `use`, `choice`, `truth`, `right` (1 or 0, "cannot say"
    is 0), `cannot_say`, `cells` (marked, NaN without region), `region` (cells of the grid, or None), `rt_ms`.
    """
    trials = frames.trials[frames.trials["kind"] == Solve.name]
    given = trials.reindex(
        columns=["participant", "item", "use", "response", "region_cells", "region", "rt_ms"]
    )
    truths = frames.stimuli.drop_duplicates("item").set_index("item")["truth"].to_dict()
    rows = pd.DataFrame(
        {
            "participant": given["participant"].astype(object),
            "item": given["item"].astype(object),
            "use": given["use"].astype("string").fillna("").astype(object).replace("", TASK),
            "choice": [_choice(str(text)) for text in given["response"]],
            "truth": [str(truths.get(item, "")) for item in given["item"]],
            "cells": given["region_cells"].astype("float64"),
            "region": [_region(text) for text in given["region"]],
            "rt_ms": given["rt_ms"].astype("float64"),
        }
    ).reset_index(drop=True)
    rows["right"] = (rows["choice"] == rows["truth"]).astype(float)
    rows["cannot_say"] = rows["choice"] == CANNOT_SAY
    return rows


def _choice(response: str) -> str:
    """The choice alone, also of an answer that is stored with its region."""
    return str(json.loads(response).get("choice", "")) if response.startswith("{") else response


def _region(text: object) -> list[int] | None:
    cells = json.loads(str(text)) if isinstance(text, str) and text else None
    return [int(cell) for cell in cells] if cells else None


def solving_sections(frames: Frames, facts: StudyFacts) -> list[Section]:
    """Everything that is open once the stage has ended."""
    rows = solve_rows(frames)
    tasks = rows[rows["use"] == TASK]
    grid = int(facts.design.get("grid", 28))
    return [_answers(tasks, facts, grid), _agreement(tasks), _known_task_section(rows[rows["use"] == KNOWN])]


def _answers(tasks: pd.DataFrame, facts: StudyFacts, grid: int) -> Section:
    """Accuracy, abstentions, area and time by the true digit, and over all."""
    parts = [("All tasks", "", tasks)]
    parts += [(str(truth), str(truth), part) for truth, part in tasks.groupby("truth", sort=True) if truth]
    content = [_digit(label, truth, part, grid) for label, truth, part in parts]
    lines = tuple(
        (
            row["label"],
            str(row["solutions"]),
            percent(row["accuracy"]),
            interval(row["interval"], 1, 100),
            percent(row["cannot_say"]),
            percent(row["area_median"]),
            number(None if row["rt_median_ms"] is None else row["rt_median_ms"] / 1000, 1),
        )
        for row in content
    )
    table = Table(
        "answers",
        "Solutions of tasks",
        ("True answer", "Solutions", "Right %", "95 %", "Cannot say %", "Area, median %", "Time, median s"),
        lines,
        '"Cannot say" is not right. Area: share of the grid that was marked, of solutions with a region. '
        "Intervals: 95 %, two-way clustered errors of solvers and tasks, Student's t, cut at 0 and 100 %. "
        f"{' '.join(facts.stimuli)}".rstrip(),
    )
    return Section("answers", "Answers", content, (), (table,))


def _digit(label: str, truth: str, part: pd.DataFrame, grid: int) -> dict[str, Any]:
    ends = None
    if len(part):
        told = clustered_mean(list(part["right"]), list(part["participant"]), list(part["item"]))
        if told.interval:
            ends = [max(0.0, told.interval.low), min(1.0, told.interval.high)]
    cells = part["cells"].dropna()
    return {
        "label": label,
        "truth": truth,
        "solutions": len(part),
        "solvers": int(part["participant"].nunique()),
        "tasks": int(part["item"].nunique()),
        "accuracy": _mean(part["right"]),
        "interval": ends,
        "cannot_say": _mean(part["cannot_say"]),
        "area_median": float(cells.median()) / grid**2 if len(cells) else None,
        "rt_median_ms": float(part["rt_ms"].median()) if part["rt_ms"].notna().any() else None,
    }


def _agreement(tasks: pd.DataFrame) -> Section:
    """How far solvers of one task agree: in the answer, and in the region if they do."""
    title = "Agreement of solvers"
    pairs = [
        bool(a == b)
        for _, part in tasks.drop_duplicates(["item", "participant"]).groupby("item")
        for a, b in combinations(part["choice"], 2)
    ]
    if not pairs:
        return Section("agreement", title, None, ("No task was solved by two people, so none are compared.",))
    content: dict[str, Any] = {"pairs": len(pairs), "same_answer": float(np.mean(pairs)), "overlap": None}
    marked = tasks[tasks["region"].notna() & ~tasks["cannot_say"]]
    # Regions of different answers show different things; a task and an answer are compared together.
    shown = list(marked["item"].str.cat(marked["choice"], sep="\x1f"))
    regions: list[Collection[int]] = list(marked["region"])
    sentences = [
        f"{percent(content['same_answer'])} % of {len(pairs)} pairs of solvers gave the same answer."
    ]
    try:
        told = region_overlap(regions, list(marked["participant"]), shown, level=LEVEL)
    except StatsError as error:
        return Section("agreement", title, content, (*sentences, str(error)))
    content["overlap"] = told.table()[0]
    line = (str(told.items), str(told.pairs), number(told.mean), interval(told.interval), str(told.apart))
    table = Table(
        "overlap",
        "Regions of solvers who gave the same answer",
        ("Tasks", "Pairs", "IoU", "95 %", "Pairs that share nothing"),
        (line,),
        "Cells in both regions by cells in either; every task and answer counts alike. Student's t over "
        "these: the interval speaks of these solvers.",
        left=1,
    )
    return Section("agreement", title, content, tuple(sentences), (table,))


def _known_task_section(known: pd.DataFrame) -> Section:
    """Tasks that everybody can solve: who did not."""
    if known.empty:
        return Section("audits", "", None)
    right, total = int(known["right"].sum()), len(known)
    by_solver: list[dict[str, Any]] = [
        {"participant": str(person), "known": len(part), "right": int(part["right"].sum())}
        for person, part in known.groupby("participant", sort=True)
    ]
    all_right = sum(row["known"] == row["right"] for row in by_solver)
    ends = wilson(right, total, level=LEVEL)
    sentence = (
        f"{right} of {total} known tasks were solved ({percent(right / total)} %, 95 % "
        f"{interval(ends, 1, 100)}, Wilson); {all_right} of {len(by_solver)} solvers solved all of theirs. "
        "They are in no other number."
    )
    content = {"tasks": total, "right": right, "interval": ends.as_json(), "solvers": by_solver}
    lines = tuple(
        (str(row["participant"]), str(row["known"]), str(row["right"]))
        for row in by_solver
        if row["right"] < row["known"]
    )
    table = Table("audits", "Solvers who missed a known task", ("Solver", "Known tasks", "Right"), lines)
    return Section("audits", "Audits of solvers", content, (sentence,), (table,))


def _mean(values: pd.Series) -> float | None:
    return float(values.astype("float64").mean()) if len(values) else None
