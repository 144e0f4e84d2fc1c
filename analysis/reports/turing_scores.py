"""Scores of a reverse Turing test: one row per person and condition, and the tests between conditions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from analysis.frames import Frames, by_hand
from analysis.reports.base import ConditionFacts, StudyFacts
from analysis.stats.crossed import LikelihoodRatio, fit_crossed, likelihood_ratio
from analysis.stats.labels import label_scores
from analysis.stats.nonparametric import mann_whitney, signed_rank
from analysis.stats.posthoc import holm
from analysis.stats.results import Floats, StatsError, mean_interval

LEVEL = 0.95
MEASURES = {
    "accuracy": "accuracy against the model",
    "truth": "accuracy against the gold label",
    "test_s": "time for the test",
}
CROSSED_MIN = 6
"""With fewer people a mixed model says nothing about them."""


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
    trials = frames.trials
    tests = scored_tests(frames)
    people = frames.participants.assign(by_hand=by_hand(frames.participants)).set_index("session")
    classes = sorted({*tests["model_label"], *tests["response"]} - {""})
    rows = []
    for (session, condition), given in tests.groupby(["session", "condition"], sort=True):
        training = trials[(trials["session"] == session) & (trials["condition"] == condition)]
        training = training[training["phase"] == "train"]
        rows.append(
            {
                "session": session,
                "condition": condition,
                "period": int(given["block"].min()),
                "n": len(given),
                "accuracy": _mean(given["matches_model"]),
                "truth": _mean(given["matches_truth"]),
                "f1": _f1(given, classes),
                "test_s": _sum_s(given["rt_ms"]),
                "train_s": _sum_s(training["rt_ms"]),
                "elapsed_s": _elapsed_s(given),
            }
        )
    columns = [
        "session",
        "condition",
        "period",
        "n",
        "accuracy",
        "truth",
        "f1",
        "test_s",
        "train_s",
        "elapsed_s",
    ]
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
        if within:
            ranks = signed_rank(first.to_numpy(float), second.to_numpy(float))
            return Contrast(name, measure, within, n, ranks.rank_biserial, ranks.p)
        test = mann_whitney(first.to_numpy(float), second.to_numpy(float))
        return Contrast(name, measure, within, n, test.rank_biserial, test.p)
    except StatsError as error:
        return Contrast(name, measure, within, n, problem=str(error))


def with_holm(made: Sequence[Contrast]) -> tuple[Contrast, ...]:
    """The same with p corrected over those that have one (Holm 1979)."""
    p_of = {place: c.p for place, c in enumerate(made) if c.p is not None}
    corrected = dict(zip(p_of, holm(list(p_of.values())), strict=True))
    return tuple(replace(c, p_holm=corrected.get(place)) for place, c in enumerate(made))


@dataclass(frozen=True, slots=True)
class MixedTest:
    """Whether conditions differ once people, texts, and texts by condition are random.

    `adjusted`: place in the session and the condition before are in the model. `shares`: the modelled share
    of answers that agree with the model, by condition, over all people and texts."""

    ratio: LikelihoodRatio
    shares: dict[str, float]
    sds: dict[str, float]
    adjusted: bool


def mixed_test(frames: Frames, facts: StudyFacts) -> MixedTest:
    """The logistic mixed model of single answers. Raises StatsError with too few people or no convergence."""
    tests = scored_tests(frames)
    names = [c.name for c in facts.conditions if (tests["condition"] == c.name).any()]
    people = tests.groupby("condition")["session"].nunique()
    if len(names) < 2 or int(people.min()) < CROSSED_MIN:
        raise StatsError(
            f"A model of single answers needs at least {CROSSED_MIN} people in each of 2 conditions; wait "
            "for more participants."
        )
    others = {name: (tests["condition"] == name).to_numpy(float) for name in names[1:]}
    order = order_columns(tests, names)
    cell = tests["item"].str.cat(tests["condition"], sep="\x1f")
    factors = {"person": list(tests["session"]), "text": list(tests["item"]), "text by condition": list(cell)}
    answers = tests["matches_model"].to_numpy(float)
    whole = fit_crossed(answers, {**others, **order}, factors)
    part = fit_crossed(answers, order, factors)
    # At the mean of the columns of the order, which are balanced by the square.
    at_mean = {name: float(column.mean()) for name, column in order.items()}
    shares = {
        name: whole.probabilities({**at_mean, **({name: 1.0} if name in others else {})})[-1]
        for name in names
    }
    return MixedTest(likelihood_ratio(whole, part), shares, whole.sds, bool(order))


def order_columns(tests: pd.DataFrame, names: Sequence[str]) -> Mapping[str, Floats]:
    """Columns for the place in the session and for the condition before; none if people met one condition."""
    met = tests.groupby(["session", "block"])["condition"].first().unstack("block")
    if met.shape[1] < 2:
        return {}
    columns: dict[str, Floats] = {}
    for block in list(met.columns)[1:]:
        columns[f"period {block}"] = (tests["block"] == block).to_numpy(float)
    before = met.shift(1, axis=1).fillna("")
    previous = [
        before.at[session, block] for session, block in zip(tests["session"], tests["block"], strict=True)
    ]
    # With every condition once per session, the condition itself and the place fix one more column.
    for name in names[1:]:
        columns[f"after {name}"] = np.array([float(given == name) for given in previous])
    return columns


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


def strategies(frames: Frames) -> dict[str, float | None]:
    """What an answerer without eyes scores against the model: chance over the answers that were offered,
    always the model's most frequent answer, always the truth."""
    tests = scored_tests(frames)
    stimuli = frames.stimuli.drop_duplicates("item").set_index("item")
    shown = stimuli.loc[stimuli.index.intersection(tests["item"].unique())]
    labels = tests["model_label"]
    classes = {*labels, *tests["response"]} - {""}
    return {
        "chance": 1 / len(classes) if classes else None,
        "majority": _number(labels.value_counts(normalize=True).max()) if len(labels) else None,
        "gold": _number((shown["truth"] == shown["predicted"]).mean()) if len(shown) else None,
    }


def _f1(given: pd.DataFrame, classes: Sequence[str]) -> float | None:
    try:
        return label_scores(list(given["model_label"]), list(given["response"]), classes).f1
    except StatsError:
        return None


def _elapsed_s(given: pd.DataFrame) -> float | None:
    ordered = given.sort_values("trial_index")
    received = ordered["received_at"].dropna()
    if len(received) < 2 or len(received) < len(ordered):
        return None
    first_ms = ordered["rt_ms"].iloc[0]
    return float((received.iloc[-1] - received.iloc[0]).total_seconds() + first_ms / 1000)


def _sum_s(times_ms: pd.Series) -> float | None:
    return None if times_ms.dropna().empty else float(times_ms.sum()) / 1000


def _mean(values: pd.Series) -> float | None:
    return _number(values.mean())


def _number(value: Any) -> float | None:
    return None if value is None or pd.isna(value) else float(value)
