"""Acceptance of each source by the time to decide, and of right and wrong answers, also of single leads."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from analysis.facts import StudyFacts
from analysis.reports.blind_review.acceptance_contrasts import share
from analysis.reports.blind_review.rows import (
    DeclaredDesign,
    Group,
    answered_reviews,
    groups_of,
    of_group,
    real,
)
from analysis.stats.acceptance_within_budget import BudgetCurve, budget_curve, within_budget
from analysis.stats.intervals_and_checks import Interval, StatsError, json_of
from analysis.stats.shares.signal_detection import signal_detection

STEPS = 40


@dataclass(frozen=True, slots=True)
class Curve:
    """The curve of one source with or without explanations. `in_time`: the share accepted within each budget
    that is shown; `leads`: the shares that single leads accept within the primary budget."""

    group: Group
    explained: bool
    reviews: int
    people: int
    curve: BudgetCurve
    signal: list[dict[str, float | None]]
    in_time: dict[float, float]
    leads: tuple[float, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            **json_of(self.group, "name", "label"),
            **json_of(self, "explained", "reviews"),
            "at_any_time": self.curve.at_any_time,
            "curve": [{**point, **told} for point, told in zip(self.curve.table(), self.signal, strict=True)],
        }


def budgets_of(rows: pd.DataFrame, primary_ms: int) -> list[float]:
    """From 0 to nearly the slowest acceptance, in equal steps, with the primary budget among them."""
    times = rows.loc[(rows["accepted"] == 1) & (rows["rt_ms"] > 0), "rt_ms"]
    most = max(float(primary_ms), float(times.quantile(0.98)) if len(times) else 0.0, 1000.0)
    end = 500 * math.ceil(most / 500)
    return sorted({*np.linspace(0, end, STEPS + 1).round().tolist(), float(primary_ms)})


def curves(rows: pd.DataFrame, facts: StudyFacts, told: DeclaredDesign) -> list[Curve]:
    """One for each single source and explanation that was reviewed. `rows`: all reviews."""
    solutions, right_or_wrong = real(rows), answered_reviews(rows)
    budgets = budgets_of(solutions, told.budget_ms)
    made = []
    for group, explained in _sources(facts):
        part, judged = (_of_source(table, group, explained) for table in (solutions, right_or_wrong))
        if part.empty:
            continue
        columns = (part[name] for name in ("accepted", "rt_ms", "participant", "item"))
        accepted, times, people, items = (list(column) for column in columns)
        in_time = within_budget(accepted, times, told.budget_ms)
        single = pd.Series(in_time).groupby(np.asarray(people, dtype=object)).mean()
        made.append(
            Curve(
                group,
                explained,
                len(part),
                part["participant"].nunique(),
                budget_curve(accepted, times, people, items, budgets),
                [_signal(judged, budget) for budget in budgets],
                {b: float(within_budget(accepted, times, b).mean()) for b in told.budgets_ms},
                tuple(float(value) for value in single),
            )
        )
    return made


def _sources(facts: StudyFacts) -> Iterator[tuple[Group, bool]]:
    """Every single source without and with explanations."""
    yield from product((group for group in groups_of(facts) if len(group.conditions) == 1), (False, True))


def _of_source(rows: pd.DataFrame, group: Group, explained: bool) -> pd.DataFrame:
    return rows[of_group(rows, group) & (rows["explained"] == explained)]


def _signal(judged: pd.DataFrame, budget_ms: float) -> dict[str, float | None]:
    in_time = within_budget(list(judged["accepted"]), list(judged["rt_ms"]), budget_ms)
    right = judged["right"].to_numpy() == 1
    names = ("hit_rate", "false_rate", "d_prime", "criterion")
    try:
        made = signal_detection(
            int(in_time[right].sum()), int(right.sum()), int(in_time[~right].sum()), int((~right).sum())
        )
    except StatsError:
        return dict.fromkeys(names)
    return {name: getattr(made, name) for name in names}


@dataclass(frozen=True, slots=True)
class SharesOf:
    """Of one source, with or without explanations: shares accepted of right and of wrong answers with their
    intervals, and (false acceptances, hits) of single leads."""

    name: str
    label: str
    explained: bool
    hits: float
    false: float
    hits_ends: Interval | None
    false_ends: Interval | None
    single: tuple[tuple[float, float], ...]
    people: int
    reviews: int


def shares_of(rows: pd.DataFrame, facts: StudyFacts) -> list[SharesOf]:
    """One for each single source and explanation with right and with wrong answers. `rows`: all reviews."""
    told = answered_reviews(rows)
    made: list[SharesOf] = []
    for group, explained in _sources(facts):
        part = _of_source(told, group, explained)
        if part["right"].nunique() < 2:
            continue
        hits, false = (share(part, part["right"] == value, seed=facts.seed) for value in (1, 0))
        means = part.pivot_table("accepted", "participant", "right", aggfunc="mean").dropna()
        made.append(
            SharesOf(
                name=group.name,
                label=group.label,
                explained=explained,
                hits=hits.value or 0.0,
                false=false.value or 0.0,
                hits_ends=hits.ends(),
                false_ends=false.ends(),
                single=tuple((float(row[0.0]), float(row[1.0])) for _, row in means.iterrows()),
                people=int(part["participant"].nunique()),
                reviews=len(part),
            )
        )
    return made
