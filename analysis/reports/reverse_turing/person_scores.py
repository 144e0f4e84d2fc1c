"""Scores of a reverse Turing test: one row per person and condition, and the tests between conditions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from analysis.facts import ConditionFacts, StudyFacts
from analysis.frames import Frames, by_hand
from analysis.reports.parts.basis import holm_of_known
from analysis.stats.intervals_and_checks import StatsError, mean_interval
from analysis.stats.ranks.two_groups import mann_whitney, signed_rank
from analysis.stats.shares.label_scores import label_scores

LEVEL = 0.95
MEASURES = {
    "accuracy": "accuracy against the model",
    "truth": "accuracy against the gold label",
    "test_s": "time for the test",
}
SCORES = ("accuracy", "truth", "f1", "test_s", "train_s", "elapsed_s")
READ = (
    *("session", "condition", "block", "matches_model", "matches_truth", "model_label", "response"),
    *("rt_ms", "received_at", "trial_index"),
)
"""The columns of trials from which scores are made."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """A condition against the baseline on one measure: one score per person and condition.

    `within`: the same people in both (signed ranks), else different people (Mann-Whitney). `effect` is the
    rank-biserial correlation, above 0 if the condition is higher. `p_holm` holds over the conditions of the
    measure. `problem` says why there is no test.
    """

    condition: str
    measure: str
    within: bool
    n: tuple[int, int]
    effect: float | None = None
    p: float | None = None
    p_holm: float | None = None
    problem: str = ""


def person_rows(frames: Frames) -> pd.DataFrame:
    """One row per session and condition that it answered scored trials of: accuracy, truth (agreement with
    the gold label), f1 (macro), test_s and train_s (sums of response times), elapsed_s (first onset to last
    answer of the test), period (place of the condition in the session, from 0), status, by_hand.
    """
    training = frames.trials[frames.trials["phase"] == "train"]
    # Without a single time there is no sum.
    train_s = training.groupby(["session", "condition"])["rt_ms"].sum(min_count=1) / 1000
    # Each group is a copy of its columns, so only those that are read are divided.
    tests = scored_tests(frames)[list(READ)]
    people = frames.participants.assign(by_hand=by_hand(frames.participants)).set_index("session")
    rows = []
    for (session, condition), given in tests.groupby(["session", "condition"], sort=True):
        rows.append(
            {
                "session": session,
                "condition": condition,
                "period": int(given["block"].min()),
                "n": len(given),
                "accuracy": _mean(given["matches_model"]),
                "truth": _mean(given["matches_truth"]),
                "f1": _f1(given),
                "test_s": _sum_s(given["rt_ms"]),
                "train_s": train_s.get((session, condition)),
                "elapsed_s": _elapsed_s(given),
            }
        )
    columns = ["session", "condition", "period", "n", *SCORES]
    table = pd.DataFrame(rows, columns=columns)
    return table.join(people[["status", "by_hand", "arm"]], on="session")


def scored_tests(frames: Frames) -> pd.DataFrame:
    """The answers of the test that are scored."""
    trials = frames.trials
    return trials[trials["scored_index"].notna() & (trials["phase"] == "test")]


def is_within(rows: pd.DataFrame) -> bool:
    """Whether people met more than one condition."""
    return bool(len(rows)) and int(rows.groupby("session")["condition"].nunique().max()) > 1


def contrasts(rows: pd.DataFrame, facts: StudyFacts, measure: str) -> tuple[Contrast, ...]:
    """Every other condition against the baseline, with Holm's correction over them."""
    baseline = facts.baseline
    within = is_within(rows)
    made = [_contrast(rows, c, baseline, measure, within) for c in facts.conditions if c.name != baseline]
    return with_holm(made)


def _contrast(
    rows: pd.DataFrame, condition: ConditionFacts, baseline: str, measure: str, within: bool
) -> Contrast:
    of = {name: rows[rows["condition"] == name].set_index("session")[measure].dropna()
          for name in (condition.name, baseline)}  # fmt: skip
    first, second = of[condition.name], of[baseline]
    if within:
        shared = first.index.intersection(second.index)
        first, second = first[shared], second[shared]
    return rank_contrast(condition.name, measure, first, second, within=within)


def rank_contrast(name: str, measure: str, first: pd.Series, second: pd.Series, *, within: bool) -> Contrast:
    """Two sets of scores by the rank test that fits them; why there is none, if so."""
    n = (len(first), len(second))
    try:
        test = (signed_rank if within else mann_whitney)(first.to_numpy(float), second.to_numpy(float))
        return Contrast(name, measure, within, n, test.rank_biserial, test.p)
    except StatsError as error:
        return Contrast(name, measure, within, n, problem=str(error))


def with_holm(made: Sequence[Contrast]) -> tuple[Contrast, ...]:
    """The same with p corrected over those that have one."""
    corrected = holm_of_known([c.p for c in made])
    return tuple(replace(c, p_holm=p) for c, p in zip(made, corrected, strict=True))


def learning_curve(frames: Frames, names: Sequence[str], parts: int = 5) -> dict[str, list[float | None]]:
    """Share of guesses that met the model in each fifth of the training, by condition."""
    trials = frames.trials
    # Training is not scored, so agreement is counted here; an example without a guess has no class as answer.
    guesses = trials[
        (trials["phase"] == "train") & trials["response"].isin(set(trials["model_label"]) - {""})
    ]
    place = guesses.groupby(["session", "condition"]).cumcount()
    count = guesses.groupby(["session", "condition"])["item"].transform("size")
    part = np.minimum((parts * place / count).astype(int), parts - 1)
    met = guesses["response"] == guesses["model_label"]
    shares = met.groupby([guesses["condition"], part]).mean()
    return {name: [_number(shares.get((name, at))) for at in range(parts)] for name in names}


def coverage(frames: Frames) -> dict[str, dict[str, int]]:
    """Predictions per evaluation text and condition: the fewest, the most, and how many texts."""
    tests = scored_tests(frames)
    counts = tests.groupby(["condition", "item"]).size()
    return {
        str(name): {"fewest": int(part.min()), "most": int(part.max()), "texts": len(part)}
        for name, part in counts.groupby(level="condition")
    }


def belief(frames: Frames, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """On texts that the model gets wrong: how often people say what the model says, and how often the truth.
    Who says the truth there answers what they believe, not what the model does."""
    stimuli = frames.stimuli.drop_duplicates("item").set_index("item")
    wrong = set(stimuli.index[stimuli["truth"] != stimuli["predicted"]])
    tests = scored_tests(frames)
    tests = tests[tests["item"].isin(wrong)]
    told = {}
    for name in names:
        part = tests[tests["condition"] == name]
        by_person = part.groupby("session")[["matches_model", "matches_truth"]].mean()
        gap = by_person["matches_truth"] - by_person["matches_model"]
        ends = mean_interval(gap.to_numpy(float), level=LEVEL) if len(gap) else None
        told[name] = {
            "n": len(part),
            "model": _mean(part["matches_model"]),
            "truth": _mean(part["matches_truth"]),
            "gap": _number(gap.mean()),
            "interval": ends.as_json() if ends else None,
        }
    return told


@dataclass(frozen=True, slots=True)
class Blind:
    """What answers without understanding score against the model, 0-1: `chance` over the answers that were
    offered, `majority` for the one answer that the model gives most often, `gold` for the gold label. None
    without answers.
    """

    chance: float | None
    majority: float | None
    gold: float | None


def blind(tests: pd.DataFrame, stimuli: pd.DataFrame, answers: int) -> Blind:
    """Of these scored answers, each text counted as often as it was answered. `answers`: how many people
    choose from; 0 if that is not known."""
    if tests.empty:
        return Blind(1 / answers if answers else None, None, None)
    truth = stimuli.drop_duplicates("item").set_index("item")["truth"]
    labels = tests["model_label"]
    is_gold = tests["item"].map(truth) == labels
    most = labels.value_counts(normalize=True).max()
    return Blind(1 / answers if answers else None, float(most), float(is_gold.mean()))


def geometric_mean(seconds: pd.Series) -> float | None:
    """The mean on the log scale, as time; None without a time above 0."""
    values = [float(value) for value in seconds.dropna() if value > 0]
    return math.exp(sum(math.log(value) for value in values) / len(values)) if values else None


def geometric_interval(seconds: pd.Series) -> list[float | None] | None:
    """Student's t interval of the logarithms, as times; None if there is none."""
    values = [math.log(value) for value in seconds.dropna() if value > 0]
    ends = mean_interval(values, level=LEVEL) if values else None
    return None if ends is None else [math.exp(ends.low), math.exp(ends.high)]


def _f1(given: pd.DataFrame) -> float | None:
    """Over the classes that this person met or answered: one that never came is no fault of theirs."""
    right, answered = list(given["model_label"]), list(given["response"])
    if right == answered:
        return 1.0
    try:
        return label_scores(right, answered, sorted({*right, *answered} - {""})).f1
    except StatsError:
        return None


def _elapsed_s(given: pd.DataFrame) -> float | None:
    if len(given) < 2 or given["received_at"].isna().any():
        return None
    ordered = given.sort_values("trial_index")
    received = ordered["received_at"]
    first_ms = ordered["rt_ms"].iloc[0]
    return float((received.iloc[-1] - received.iloc[0]).total_seconds() + first_ms / 1000)


def _sum_s(times_ms: pd.Series) -> float | None:
    return None if times_ms.dropna().empty else float(times_ms.sum()) / 1000


def _mean(values: pd.Series) -> float | None:
    return _number(values.mean())


def _number(value: Any) -> float | None:
    return None if value is None or pd.isna(value) else float(value)
