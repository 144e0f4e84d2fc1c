"""Accuracy per person and what follows from it: Utility, ANOVA, Tukey, as values and as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from analysis.frames import Frames, by_hand
from analysis.reports.base import StudyFacts
from analysis.stats.anova import OneWayAnova, eta_squared_condition_by_session, one_way
from analysis.stats.posthoc import TukeyKramer, tukey_kramer
from analysis.stats.results import Floats, StatsError, mean_interval
from analysis.stats.utility import Utility, utilities

DRAWS = 10_000
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Analysis:
    """The tests over one set of people; what is not defined yet is None, with a sentence in `problems`.

    `people` has one row per sitting (condition, plan, accuracy and one column per block); `scores` the
    accuracies (people, blocks) of each condition with at least two people.
    """

    people: pd.DataFrame
    blocks: tuple[int, ...]
    scores: dict[str, Floats]
    utilities: dict[str, Utility]
    anova: OneWayAnova | None
    tukey: TukeyKramer | None
    eta_squared_mixed: float | None
    problems: tuple[str, ...]

    def tukey_p(self, condition: str, baseline: str) -> float | None:
        names = (
            set()
            if self.tukey is None
            else {n for pair in self.tukey.pairs for n in (pair.first, pair.second)}
        )
        if self.tukey is None or condition == baseline or not {condition, baseline} <= names:
            return None
        return self.tukey.between(condition, baseline).p


def person_scores(frames: Frames) -> tuple[pd.DataFrame, tuple[int, ...]]:
    """One row per sitting that answered a scored trial: condition, plan, status, whether it was left out by
    hand, accuracy, accuracy per block.
    """
    scored = frames.trials[frames.trials["scored_index"].notna()]
    columns = ["session", "condition", "plan", "status"]
    people = frames.participants.assign(by_hand=by_hand(frames.participants))
    people = people.loc[people["condition"] != "", [*columns, "by_hand"]].set_index("session")
    if scored.empty:
        return people.iloc[:0].assign(accuracy=np.empty(0)), ()
    by_block = scored.pivot_table(index="session", columns="block", values="matches_model", aggfunc="mean")
    by_block.columns = [int(block) for block in by_block.columns]
    accuracy = scored.groupby("session")["matches_model"].mean().rename("accuracy")
    joined = people.join(accuracy, how="inner").join(by_block)
    return joined, tuple(int(block) for block in by_block.columns)


def analyse(people: pd.DataFrame, blocks: tuple[int, ...], facts: StudyFacts) -> Analysis:
    """Every test that these people allow. Conditions with fewer than two people wait, which `problems`
    says.
    """
    scores, groups, problems = {}, {}, []
    for condition in facts.conditions:
        own = people[people["condition"] == condition.name]
        if len(own) >= 2:
            scores[condition.name] = own[list(blocks)].to_numpy(dtype=np.float64)
            groups[condition.name] = own["accuracy"].to_numpy(dtype=np.float64)
        else:
            problems.append(f"{condition.label} has {len(own)} finished so far and is left out of the tests.")
    found: dict[str, Any] = {"utilities": (), "anova": None, "tukey": None, "eta_squared_mixed": None}
    for key, compute in (
        ("utilities", lambda: utilities(scores, facts.baseline, seed=facts.seed, draws=DRAWS, level=LEVEL)),
        ("anova", lambda: one_way(groups, level=LEVEL)),
        ("tukey", lambda: tukey_kramer(groups, level=LEVEL)),
        ("eta_squared_mixed", lambda: _mixed(scores)),
    ):
        try:
            found[key] = compute()
        except StatsError as error:
            problems.append(str(error))
    found["utilities"] = {one.condition: one for one in found["utilities"]}
    return Analysis(people, blocks, scores, problems=tuple(dict.fromkeys(problems)), **found)


def _mixed(scores: dict[str, Floats]) -> float | None:
    complete = {name: x[~np.isnan(x).any(axis=1)] for name, x in scores.items()}
    return eta_squared_condition_by_session({name: x for name, x in complete.items() if len(x)})


def mean_of(values: pd.Series) -> float | None:
    """The mean without missing values, or None where there is no value."""
    mean = values.mean()
    return None if pd.isna(mean) else float(mean)


def condition_rows(found: Analysis, facts: StudyFacts) -> list[dict[str, Any]]:
    """The `conditions` of report.json."""
    rows = []
    for c in facts.conditions:
        own = found.people[found.people["condition"] == c.name]
        one = found.utilities.get(c.name)
        mean_ci = mean_interval(own["accuracy"], level=LEVEL)
        block_cis = [mean_interval(own[block], level=LEVEL) for block in found.blocks]
        row: dict[str, Any] = {
            "name": c.name,
            "label": c.label,
            "role": c.role,
            "wanted": c.wanted,
            "n": len(own),
            "accuracy": [mean_of(own[block]) for block in found.blocks] if len(own) else None,
            "accuracy_mean": mean_of(own["accuracy"]),
            "utility_k": list(one.utility_k) if one else None,
            "utility": one.utility if one else None,
            "utility_trapezoid": one.utility_trapezoid if one else None,
            "utility_mean_of_ratios": one.utility_mean_of_ratios if one else None,
            "intervals": {
                "level": LEVEL,
                "accuracy": [ci.as_json() if ci else None for ci in block_cis],
                "accuracy_mean": mean_ci.as_json() if mean_ci else None,
                "utility_k": [i.as_json() for i in one.utility_k_intervals]
                if one and one.utility_k_intervals
                else None,
                **{
                    key: value.as_json() if value else None
                    for key, value in (
                        ("utility", one.interval if one else None),
                        ("utility_simultaneous", one.simultaneous if one else None),
                        ("utility_fieller", one.fieller if one else None),
                    )
                },
            },
            "tukey_p": found.tukey_p(c.name, facts.baseline),
        }
        rows.append(row)
    return rows


def anova_content(found: Analysis) -> dict[str, Any] | None:
    """The `anova` of report.json."""
    a = found.anova
    if a is None:
        return None
    return {
        "F": a.f,
        "df_between": a.df_between,
        "df_within": a.df_within,
        "p": a.p,
        "eta_squared": a.eta_squared,
        "partial_eta_squared": a.partial_eta_squared,
        "omega_squared": a.omega_squared,
        "eta_squared_interval": a.eta_squared_interval.as_json(),
        "eta_squared_condition_by_session": found.eta_squared_mixed,
        "ss_between": a.ss_between,
        "ss_within": a.ss_within,
        "n": a.df_between + a.df_within + 1,
    }


def tukey_content(found: Analysis) -> dict[str, Any] | None:
    """The `tukey` of report.json."""
    if found.tukey is None:
        return None
    pairs = [
        {
            "first": pair.first,
            "second": pair.second,
            "difference": pair.difference,
            "q": pair.q,
            "p": pair.p,
            "ci": pair.interval.as_json(),
        }
        for pair in found.tukey.pairs
    ]
    return {"pairs": pairs, "level": found.tukey.level, "df": found.tukey.df_within}
