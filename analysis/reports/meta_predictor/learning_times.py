"""What people saw and how they went through it: items by condition, learning, times with their limits."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from analysis.any_table.formats import number, percent
from analysis.any_table.result_tables import Table
from analysis.facts import StudyFacts
from analysis.frames import Frames
from analysis.reports.base import Data, Figure, Section
from analysis.reports.drawing.figures import Look
from analysis.reports.meta_predictor import learning_time_figures
from analysis.stats.shares.proportions import wilson
from experiments.kinds.base import INSTRUCTED, REPEAT

READ = (
    "condition",
    "block",
    "check",
    "scored_index",
    "item",
    "matches_model",
    "check_passed",
    "rt_ms",
    "reservoir_ms",
)
ENDS = 5
"""How many of the hardest and of the easiest items are printed."""
DURATION = ("passed", "screened")


def sections(frames: Frames, facts: StudyFacts, names: Sequence[str]) -> list[Section]:
    """Results by condition, so only for a report that is not sealed. `names` are those of the blocks."""
    look = Look.of(facts, frames.one_origin())
    kept = frames.kept()
    # Only what is read here: there may be a million rows, which are cut by item and by condition below.
    trials = kept.trials[list(READ)]
    scored = trials[trials["scored_index"].notna()]
    if scored.empty:
        return []
    times = _times(frames.participants, scored, facts, look)
    return [_items(scored, facts, look), _learning(trials, scored, facts, look, names), times]


def _items(scored: pd.DataFrame, facts: StudyFacts, look: Look) -> Section:
    """Items with the share of answers that match the model, hardest first; equal ones by name."""
    rows = []
    for item, given in scored.groupby("item"):
        cells = {c.name: _cell(given[given["condition"] == c.name]) for c in facts.conditions}
        rows.append({"item": str(item), **_cell(given), "by_condition": cells})
    rows = [row for row in rows if row["n"]]
    rows.sort(key=lambda row: (row["accuracy"], row["item"]))
    labels = [c.label for c in facts.conditions]
    ends = rows if len(rows) <= 2 * ENDS else [*rows[:ENDS], *rows[-ENDS:]]
    table = Table(
        "items",
        "Items" if len(ends) == len(rows) else f"The {ENDS} hardest and the {ENDS} easiest items",
        ("Item", "Answers", "%", *labels),
        tuple(
            (
                row["item"],
                str(row["n"]),
                percent(row["accuracy"]),
                *(percent(cell["accuracy"]) for cell in row["by_condition"].values()),
            )
            for row in ends
        ),
        "Answers that match the model, in percent.",
    )
    figure = Figure(
        "items",
        f"Answers that match the model, for each of {len(rows)} items (hardest left) in each condition. "
        "Without intervals: it describes. White: not shown there.",
        "Accuracy per item and condition; the numbers stand in figures/items.csv.",
        partial(learning_time_figures.items, rows, facts, look),
        Data(
            ("item", "condition", "n", "accuracy"),
            tuple(
                (
                    row["item"],
                    c.label,
                    row["by_condition"][c.name]["n"],
                    row["by_condition"][c.name]["accuracy"],
                )
                for row in rows
                for c in facts.conditions
            ),
        ),
    )
    return Section("items", "What people saw", rows, (), (table,), (figure,))


def _cell(given: pd.DataFrame) -> dict[str, Any]:
    answers = given["matches_model"].dropna().astype(float)
    return {"n": len(answers), "accuracy": float(answers.mean()) if len(answers) else None}


def _learning(
    trials: pd.DataFrame, scored: pd.DataFrame, facts: StudyFacts, look: Look, names: Sequence[str]
) -> Section:
    """Accuracy trial by trial, and what changes from block to block."""
    rows: list[dict[str, Any]] = []
    for c in facts.conditions:
        shown = scored[(scored["condition"] == c.name) & scored["matches_model"].notna()]
        for place, given in shown.groupby("scored_index"):
            right, n = int(given["matches_model"].sum()), len(given)
            ends = wilson(right, n).as_json()
            rows.append(
                {
                    "condition": c.name,
                    "label": c.label,
                    "trial": int(place) + 1,
                    "n": n,
                    "accuracy": right / n,
                }
                | {"interval": ends}
            )
    blocks = [_over_block(trials[trials["block"] == block]) for block in sorted(scored["block"].unique())]
    heads = list(names) if len(names) == len(blocks) else [f"Block {i + 1}" for i in range(len(blocks))]
    table = Table(
        "over_blocks",
        "From block to block, all conditions together",
        ("Block", "Test answer, median s", "Reservoir opened %", "Instructed checks %", "Repeat checks %"),
        tuple(
            (
                head,
                number(None if b["median_ms"] is None else b["median_ms"] / 1000, 1),
                *(percent(b[key]) for key in ("reservoir_share", "instructed_share", "repeat_share")),
            )
            for head, b in zip(heads, blocks, strict=True)
        ),
    )
    figure = Figure(
        "learning",
        "Answers that match the model at each test trial, in the order of the session; shaded: Wilson's 95 % "
        f"interval of one trial and condition over {look.many}; the baseline in grey.",
        "Accuracy per test trial and condition; the numbers stand in figures/learning.csv.",
        partial(learning_time_figures.learning, rows, facts, look),
        Data(
            ("condition", "trial", "n", "accuracy", "low", "high"),
            tuple((r["label"], r["trial"], r["n"], r["accuracy"], *r["interval"]) for r in rows),
        ),
    )
    content = {"trials": rows, "blocks": blocks}
    return Section("course", "Learning and checks over the session", content, (), (table,), (figure,))


def _over_block(trials: pd.DataFrame) -> dict[str, Any]:
    scored = trials[trials["scored_index"].notna()]
    times = scored["rt_ms"].dropna()
    opened = scored["reservoir_ms"]
    return {
        "median_ms": float(times.median()) if len(times) else None,
        "reservoir_share": float((opened.fillna(0) > 0).mean()) if opened.notna().any() else None,
        "instructed_share": _passing_share(trials, INSTRUCTED),
        "repeat_share": _passing_share(trials, REPEAT),
    }


def _passing_share(trials: pd.DataFrame, check: str) -> float | None:
    results = trials.loc[trials["check"] == check, "check_passed"].dropna().astype(float)
    return float(results.mean()) if len(results) else None


def _times(people: pd.DataFrame, scored: pd.DataFrame, facts: StudyFacts, look: Look) -> Section:
    """Densities of answer times and of durations, with the limits that screen by them."""
    judged = people[people["status"].isin(DURATION) & people["condition"].isin(list(look.colours))]
    series = {
        "answer_s": scored[["condition", "rt_ms"]].assign(value=scored["rt_ms"].astype(float) / 1000),
        "session_min": judged[["condition"]].assign(value=judged["duration_s"].astype(float) / 60),
    }
    limits = {
        "answer_s": _ends(facts, "fastest_median_ms", 1 / 1000),
        "session_min": _ends(facts, "total_minutes"),
    }
    curves = [curve for what, table in series.items() for curve in _densities(what, table, facts)]
    content = {"limits": limits, "n": {what: int(t["value"].gt(0).sum()) for what, t in series.items()}}
    if not curves:
        return Section("times", "Times", content)
    figure = Figure(
        "times",
        "Densities on a logarithmic scale (Gaussian kernel, Scott's width). Left: time to each scored "
        "answer of those kept. Right: time from arrival to the end of those kept or screened. "
        "Dashed: limits by which the study screens, on the left a limit of a person's median.",
        "Densities of answer times and of durations per condition; the numbers stand in figures/times.csv.",
        partial(learning_time_figures.times, curves, limits, facts, look),
        Data(
            ("what", "condition", "value", "density"),
            tuple((c["what"], c["label"], x, y) for c in curves for x, y in zip(c["x"], c["y"], strict=True)),
        ),
    )
    return Section("times", "Times", content, (), (), (figure,))


def _ends(facts: StudyFacts, rule: str, scale: float = 1.0) -> list[float]:
    """The limits of a rule, none without the rule."""
    declared = facts.screening.get(rule)
    limit = declared.get("limit") if isinstance(declared, dict) else declared
    if limit is None:
        return []
    values = limit if isinstance(limit, list | tuple) else [limit]
    return [float(value) * scale for value in values]


def _densities(what: str, table: pd.DataFrame, facts: StudyFacts) -> list[dict[str, Any]]:
    """A curve per condition over log10 of the value; none for fewer than three different values."""
    from scipy.stats import gaussian_kde

    logs = np.log10(table.loc[table["value"] > 0, "value"])
    if logs.nunique() < 3:
        return []
    xs = np.linspace(logs.min() - 0.15, logs.max() + 0.15, 80)
    curves: list[dict[str, Any]] = []
    for c in facts.conditions:
        values = logs[table.loc[logs.index, "condition"] == c.name]
        if values.nunique() >= 3:
            ys = gaussian_kde(values)(xs)
            points = {"x": [float(x) for x in 10**xs], "y": [float(y) for y in ys]}
            curves.append({"what": what, "condition": c.name, "label": c.label, **points})
    return curves
