"""Numbers of a study of advice: what is gained by a second decision, and on whose answers people rely."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from analysis.facts import ConditionFacts, StudyFacts
from analysis.frames import Frames
from analysis.reports.parts.basis import holm_of_known
from analysis.stats.intervals_and_checks import Interval, StatsError, json_of
from analysis.stats.ratings.clustered_means import ClusteredEstimate, clustered_difference, clustered_mean
from analysis.stats.shares.pigeonhole import CrossedEstimate, pigeonhole
from analysis.stats.shares.pooled import PooledShare, pooled_share
from experiments.kinds.decide import FIRST, SECOND, Decide
from experiments.paradigms.assisted_decision import ADVICE, BASELINE

LEVEL = 0.95
Measure = Literal["gain", "final"]
MEASURES: Mapping[Measure, str] = {"gain": "accuracy gain", "final": "final accuracy"}
NAMES = ("participant", "session", "condition", "item")
NUMBERS = ("initial", "final", "advice", "agreed", "follows", "switched", "gain")


def decision_rows(frames: Frames) -> pd.DataFrame:
    """One row per item that a session decided about twice: `participant`, `session`, `condition`, `item`;
    1 or 0: `initial` and `final` (right by the truth), `advice` (the model is right), `agreed` (the first
    decision was the model's answer), `follows` (the second is), `switched`; `gain` (final less initial).
    """
    trials = frames.trials[(frames.trials["kind"] == Decide.name) & (frames.trials["check"] == "")]
    if "step" not in trials or trials.empty:
        return pd.DataFrame(columns=[*NAMES, *NUMBERS])
    first, second = (_step(trials, step) for step in (FIRST, SECOND))
    both = first.join(second.add_suffix("_2"), how="inner").reset_index()
    known = frames.stimuli.drop_duplicates("item").set_index("item")
    is_right = dict(zip(known.index, known["truth"] == known["predicted"], strict=True))
    rows = both[list(NAMES)].astype(object)
    numbers = {
        "initial": both["matches_truth"],
        "final": both["matches_truth_2"],
        "advice": both["item"].map(is_right),
        "agreed": both["matches_model"],
        "follows": both["matches_model_2"],
        "switched": both["response"] != both["response_2"],
        "gain": both["matches_truth_2"] - both["matches_truth"],
    }
    return rows.assign(**{name: column.astype("float64") for name, column in numbers.items()})


def _step(trials: pd.DataFrame, step: str) -> pd.DataFrame:
    part = trials[trials["step"] == step].set_index(["session", "item"])
    columns = ["response", "matches_truth", "matches_model"]
    return part[columns] if step == SECOND else part[["participant", "condition", *columns]]


# Accuracy ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Beside:
    """The final accuracy less another accuracy."""

    estimate: float
    interval: Interval | None

    def as_json(self) -> dict[str, Any]:
        return json_of(self)


@dataclass(frozen=True, slots=True)
class AccuracyRow:
    """A condition: accuracy of first and second decisions, of the advice alone, and what is between them.

    `over_advice` and `over_better` are final accuracy less that of the advice alone, and less the better of
    both. None: there are no decisions yet.
    """

    condition: ConditionFacts
    people: int
    items: int
    advice: float | None = None
    initial: ClusteredEstimate | None = None
    final: ClusteredEstimate | None = None
    gain: ClusteredEstimate | None = None
    over_advice: Beside | None = None
    over_better: Beside | None = None

    @property
    def is_advised(self) -> bool:
        return self.condition.role != BASELINE

    @property
    def is_above_both(self) -> bool:
        """Whether the final accuracy lies above the people's first and above the advice, by both intervals:
        each test has its level, so both together have no larger one (Berger 1982, intersection-union)."""
        ends = self.over_better.interval if self.over_better else None
        return self.is_advised and ends is not None and ends.low > 0

    def as_json(self) -> dict[str, Any]:
        return {
            **json_of(self.condition, "name", "label", "role", "wanted"),
            **{"n": self.people, "items": self.items, "advice": self.advice},
            **{name: _estimate_json(getattr(self, name)) for name in ("initial", "final", "gain")},
            **json_of(self, "over_advice", "over_better", above_both="is_above_both"),
        }


def _estimate_json(told: ClusteredEstimate | None) -> dict[str, Any] | None:
    return None if told is None else json_of(told, "estimate", "interval", "p")


def accuracy_rows(rows: pd.DataFrame, facts: StudyFacts) -> list[AccuracyRow]:
    return [_accuracy(rows[rows["condition"] == c.name], c) for c in facts.conditions]


def _accuracy(part: pd.DataFrame, condition: ConditionFacts) -> AccuracyRow:
    told = AccuracyRow(condition, int(part["participant"].nunique()), int(part["item"].nunique()))
    if part.empty:
        return told
    names = list(part["participant"]), list(part["item"])
    means: dict[str, Any] = {
        name: clustered_mean(part[name], *names, level=LEVEL) for name in ("initial", "final", "gain")
    }
    advice, final, gain = float(part["advice"].mean()), means["final"], means["gain"]
    # The accuracy of the advice is declared, the same in every session: it has no error.
    alone = Beside(final.estimate - advice, _shift_interval(final.interval, -advice))
    better = _least([Beside(gain.estimate, gain.interval), alone])
    return replace(told, advice=advice, over_advice=alone, over_better=better, **means)


def _shift_interval(ends: Interval | None, by: float) -> Interval | None:
    return None if ends is None else Interval(ends.low + by, ends.high + by, ends.level)


def _least(beside: Sequence[Beside]) -> Beside:
    """The difference to the better is the smaller of both; so are the ends of its interval."""
    estimate = min(row.estimate for row in beside)
    intervals = [row.interval for row in beside if row.interval is not None]
    if len(intervals) < len(beside):
        return Beside(estimate, None)
    return Beside(
        estimate, Interval(min(e.low for e in intervals), min(e.high for e in intervals), intervals[0].level)
    )


@dataclass(frozen=True, slots=True)
class AdviceContrast:
    """Two conditions on one measure, on the items that both have, at the declared accuracy of the advice.
    `family`: which contrasts Holm's correction
    is over. `problem` says why there is no test."""

    family: Literal["advice", "explanation"]
    measure: Measure
    first: str
    second: str
    result: ClusteredEstimate | None = None
    p_holm: float | None = None
    problem: str = ""

    def as_json(self) -> dict[str, Any]:
        told = json_of(self, "family", "measure", "first", "second")
        return {**told, "difference": _estimate_json(self.result), **json_of(self, "p_holm", "problem")}


def contrasts(rows: pd.DataFrame, facts: StudyFacts, measure: Measure) -> list[AdviceContrast]:
    """Each condition with advice less the second look without, and each with an explanation less unexplained
    advice."""
    roles = {c.name: c.role for c in facts.conditions}
    baseline = [name for name, role in roles.items() if role == BASELINE]
    unexplained = [name for name, role in roles.items() if role == ADVICE]
    made = []
    families: Mapping[Literal["advice", "explanation"], tuple[list[str], tuple[str, ...]]] = {
        "advice": (baseline, (BASELINE,)),
        "explanation": (unexplained, (BASELINE, ADVICE)),
    }
    for family, (others, left_out) in families.items():
        names = [name for name, role in roles.items() if role not in left_out]
        pairs = [(first, second) for second in others for first in names]
        made += _with_holm([_contrast(rows, family, measure, *pair) for pair in pairs])
    return made


def _contrast(
    rows: pd.DataFrame,
    family: Literal["advice", "explanation"],
    measure: Measure,
    first: str,
    second: str,
) -> AdviceContrast:
    part = rows[rows["condition"].isin([first, second])]
    told = AdviceContrast(family, measure, first, second)
    try:
        result = clustered_difference(
            part[measure],
            (part["condition"] == first).to_numpy(float),
            list(part["participant"]),
            list(part["item"]),
            # The design fixes how often advice is right; how often it would be in the pool is another number.
            strata=list(part["advice"]),
            level=LEVEL,
        )
    except StatsError as error:
        return replace(told, problem=str(error).rstrip("."))
    return replace(told, result=result)


def _with_holm(made: Sequence[AdviceContrast]) -> list[AdviceContrast]:
    corrected = holm_of_known([c.result.p if c.result else None for c in made])
    return [replace(c, p_holm=p) for c, p in zip(made, corrected, strict=True)]


# Reliance ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Share:
    """A share of a kind of decisions, or why there is none. `told` None: there is no such decision."""

    told: PooledShare | None

    def as_json(self) -> dict[str, Any]:
        if self.told is None:
            return {"share": None, "interval": None, "yes": 0, "total": 0, "people": 0, "problem": UNDEFINED}
        (row,) = self.told.table()
        return dict(row)


UNDEFINED = "there is no such decision, so it is not defined"
Chosen = Callable[[pd.DataFrame], tuple[pd.Series, pd.Series]]
"""Which of the decisions are looked at, and whether each is what is counted."""
SHARES: Mapping[str, tuple[str, Chosen]] = {
    "rair": ("RAIR", lambda r: ((r["initial"] == 0) & (r["advice"] == 1), r["follows"])),
    "rsr": ("RSR", lambda r: ((r["initial"] == 1) & (r["advice"] == 0), 1 - r["switched"])),
    "over_reliance": ("Over-reliance", lambda r: (r["advice"] == 0, r["follows"])),
    "under_reliance": ("Under-reliance", lambda r: (r["advice"] == 1, 1 - r["follows"])),
    "to_right": (
        "Switched to right advice",
        lambda r: ((r["agreed"] == 0) & (r["advice"] == 1), r["follows"]),
    ),
    "to_wrong": (
        "Switched to wrong advice",
        lambda r: ((r["agreed"] == 0) & (r["advice"] == 0), r["follows"]),
    ),
    "from_right": ("Changed a right decision", lambda r: (r["initial"] == 1, r["switched"])),
    "from_wrong": ("Changed a wrong decision", lambda r: (r["initial"] == 0, r["switched"])),
    "switched": ("Changed the decision", lambda r: (r["initial"] >= 0, r["switched"])),
}
"""By name: what it is called, and of which decisions which share it is."""


@dataclass(frozen=True, slots=True)
class RelianceRow:
    """A condition: the shares of `SHARES`, and d' and criterion of following (signal: the advice is right;
    response: the second decision is the model's answer), or why there are none."""

    condition: ConditionFacts
    shares: Mapping[str, Share]
    d_prime: CrossedEstimate | None = None
    criterion: CrossedEstimate | None = None
    problem: str = ""

    def as_json(self) -> dict[str, Any]:
        crossed = {"d_prime": self.d_prime, "criterion": self.criterion}
        return {
            **json_of(self.condition, "name", "label", "role"),
            **{name: share.as_json() for name, share in self.shares.items()},
            **{name: told.table(LEVEL)[0] if told else None for name, told in crossed.items()},
            "problem": self.problem,
        }

    def undefined(self, names: Sequence[str]) -> Iterator[str]:
        """What could not be computed, of these."""
        yield from (SHARES[name][0] for name in names if self.shares[name].told is None)


def reliance_rows(rows: pd.DataFrame, facts: StudyFacts) -> list[RelianceRow]:
    return [_reliance(rows[rows["condition"] == c.name], c, facts.seed) for c in facts.conditions]


def _reliance(part: pd.DataFrame, condition: ConditionFacts, seed: int) -> RelianceRow:
    shares = {name: Share(_pool_share(part, of, seed)) for name, (_, of) in SHARES.items()}
    told = RelianceRow(condition, shares)
    cells = list(np.where(part["advice"] == 1, "right", "wrong"))
    names = list(part["participant"]), list(part["item"])
    weights = {"right": 1.0, "wrong": -1.0}, {"right": -0.5, "wrong": -0.5}
    try:
        d_prime, criterion = (
            pigeonhole(part["follows"], cells, *names, of, scale="probit", seed=seed) for of in weights
        )
    except StatsError as error:
        return replace(told, problem=str(error).rstrip("."))
    return replace(told, d_prime=d_prime, criterion=criterion)


def _pool_share(part: pd.DataFrame, of: Chosen, seed: int) -> PooledShare | None:
    chosen, yes = of(part)
    if not chosen.any():
        return None
    return pooled_share(yes[chosen], list(part["participant"][chosen]), seed=seed, level=LEVEL)
