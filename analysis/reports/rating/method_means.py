"""Numbers of a rating study: means with intervals, comparisons on shared pictures, the ordinal model."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from analysis.any_table.formats import condition_label
from analysis.facts import ConditionFacts, StudyFacts
from analysis.ratings import SCALE, missing_shares, mode_of, rated_once
from analysis.reports.parts.basis import holm_of_known
from analysis.reports.utility.faithfulness import newest
from analysis.stats.intervals_and_checks import Interval, StatsError, json_of
from analysis.stats.means.randomised_block import randomised_block
from analysis.stats.ranks.grouped_correlation import rank_association
from analysis.stats.ratings.clustered_means import ClusteredEstimate, clustered_difference, clustered_mean
from analysis.stats.ratings.ordinal_model import (
    RATIO_KEYS,
    ROWS_MAX,
    CrossedFit,
    LikelihoodRatio,
    fit_crossed,
    likelihood_ratio,
    profile_interval,
)

LEVEL = 0.95
FACTORS = {
    "condition": "Condition",
    "method": "Method",
    "predictor": "Model",
    "dataset": "Dataset",
    "shows": "Form",
}
FORMS = {
    "image": "Saliency",
    "concept": "Concepts",
    "pictures": "Pictures",
    "sentence": "Sentence",
    "text": "Marked text",
}
"""What a method explains with, in words."""
SALIENCY, CONCEPTS = "image", "concept"
PEOPLE_MIN = 6
"""With fewer people a mixed model says nothing about them."""
CHEAP_ROWS, CHEAP_CONDITIONS = 2000, 6
"""Profile intervals need dozens of fits; above these sizes the report leaves them out and says so."""


def explained_conditions(facts: StudyFacts) -> tuple[ConditionFacts, ...]:
    """The conditions with an explanation to rate."""
    return tuple(c for c in facts.conditions if c.role != "baseline")


def methods(facts: StudyFacts) -> tuple[ConditionFacts, ...]:
    """The conditions that are no control: of these are the means of a model, a dataset or a form."""
    return tuple(c for c in explained_conditions(facts) if c.role != "control")


@dataclass(frozen=True, slots=True)
class RatingSummary:
    """One question about the explanations of one level of a factor. `asked` is the mean of the points as they
    were asked, `value` the same with high as good and its interval, and so for the modes; `missing` the share
    of explanations that the question could not be asked of; `shared` how many ratings stand for an equal
    picture."""

    by: str
    name: str
    label: str
    question: str
    explanations: int
    ratings: int
    shared: int
    asked: float | None
    value: ClusteredEstimate | None
    mode_asked: float | None
    mode: float | None
    missing: float | None
    points: tuple[int, ...]

    def as_json(self) -> dict[str, Any]:
        ends = self.value.interval if self.value else None
        return {
            **json_of(self, "by", "name", "label", "question", "explanations", "ratings", "shared"),
            "mean_asked": self.asked,
            "mean": self.value.estimate if self.value else None,
            "interval": ends.as_json() if ends else None,
            **json_of(self, "mode_asked", "mode", "missing"),
            "points": list(self.points),
        }


def levels_of(facts: StudyFacts) -> Iterator[tuple[str, str, str, list[str]]]:
    """Factor, name, label and conditions of every level; factors with one level for all are left out. A
    control is a level of its own, by condition and by method, and is in no other mean."""
    for by in FACTORS:
        conditions = explained_conditions(facts) if by in {"condition", "method"} else methods(facts)
        if by == "condition":
            yield from ((by, c.name, c.label, [c.name]) for c in conditions)
            continue
        names = list(dict.fromkeys(getattr(c, by) for c in conditions if getattr(c, by)))
        together = {name: [c.name for c in conditions if getattr(c, by) == name] for name in names}
        if len(names) < 2 or (by == "method" and all(len(part) == 1 for part in together.values())):
            continue
        for name, members in together.items():
            label = FORMS.get(name, name) if by == "shows" else name
            label = condition_label(name) if by == "method" else label
            yield by, name, label, members


def summaries(rows: pd.DataFrame, facts: StudyFacts, questions: Sequence[str]) -> list[RatingSummary]:
    """Every level of every factor by question, without anchors. `rows`: see `analysis.ratings`."""
    rows = add_codes(rows[~rows["is_anchor"]])
    missing = missing_shares(rows)
    made = []
    for by, name, label, members in levels_of(facts):
        part = rows[rows["condition"].isin(members)]
        for question in questions:
            given = part[part["question"] == question]
            lacking = [
                missing.at[c, question] for c in members if c in missing.index and question in missing.columns
            ]
            made.append(
                _summary(by, name, label, question, given, float(np.mean(lacking)) if lacking else None)
            )
    return made


def add_codes(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with whole numbers for person and item, which are faster to group than names."""
    return rows.assign(person=pd.factorize(rows["participant"])[0], picture=pd.factorize(rows["item"])[0])


def _summary(
    by: str, name: str, label: str, question: str, given: pd.DataFrame, missing: float | None
) -> RatingSummary:
    value = None
    if len(given):
        people, pictures = given["person"].to_numpy(np.intp), given["picture"].to_numpy(np.intp)
        value = clustered_mean(given["value"], people, pictures, level=LEVEL)
    return RatingSummary(
        by=by,
        name=name,
        label=label,
        question=question,
        explanations=len(given.drop_duplicates(["item", "condition"])),
        ratings=len(given),
        shared=int(given["is_shared"].sum()),
        asked=float(given["asked"].mean()) if len(given) else None,
        value=value,
        mode_asked=mode_of(given["asked"].to_list()),
        mode=mode_of(given["value"].to_list()),
        missing=missing,
        points=tuple(int((given["asked"] == point).sum()) for point in SCALE),
    )


@dataclass(frozen=True, slots=True)
class Coverage:
    """`raters`: how many (explanation, question) have how many raters, most raters first, anchors apart;
    `wanted` is their number by the plan."""

    wanted: int
    raters: tuple[tuple[int, int], ...]

    @property
    def fewer(self) -> int:
        return sum(cells for count, cells in self.raters if count < self.wanted)

    def sentences(self) -> tuple[str, ...]:
        """What is short of the plan; nothing if every explanation has its raters."""
        if not self.fewer:
            return ()
        every = sum(cells for _, cells in self.raters)
        return (
            f"{self.fewer:,} of {every:,} questions about an explanation were answered by fewer than the "
            f"{self.wanted} raters wanted.",
        )

    def as_json(self) -> dict[str, Any]:
        return {"wanted": self.wanted, "fewer": self.fewer, "counts": [list(row) for row in self.raters]}


def coverage(rows: pd.DataFrame, wanted: int) -> Coverage:
    """`rows`: see `analysis.ratings`."""
    once = rated_once(rows)
    each = once.groupby(["item", "condition", "question"])["participant"].nunique()
    counts = each.value_counts().sort_index(ascending=False)
    return Coverage(wanted, tuple((int(n), int(cells)) for n, cells in counts.items()))


@dataclass(frozen=True, slots=True)
class Pair:
    """Two conditions (or forms) on one question, on the pictures that both have: first less second, with high
    as good. `p_holm` holds over the pairs of the question. `problem`: why there is no test."""

    question: str
    first: str
    second: str
    pictures: int
    result: ClusteredEstimate | None = None
    p_holm: float | None = None
    problem: str = ""

    def as_json(self) -> dict[str, Any]:
        keys = {"people": "people", "difference": "estimate", "interval": "interval", "p": "p"}
        return {
            **json_of(self, "question", "first", "second", "pictures"),
            **(json_of(self.result, **keys) if self.result else dict.fromkeys(keys)),
            "p_holm": self.p_holm,
        }


def pairs(rows: pd.DataFrame, facts: StudyFacts, questions: Sequence[str]) -> list[Pair]:
    """All pairs of conditions that share pictures, by question, with Holm's correction."""
    rows = add_codes(rows[~rows["is_anchor"]])
    items = {str(name): set(part["item"]) for name, part in rows.groupby("condition")}
    names = [c.name for c in explained_conditions(facts) if c.name in items]
    made: list[Pair] = []
    for question in questions:
        given = rows[rows["question"] == question]
        by_name = {str(name): part for name, part in given.groupby("condition")}
        tried = [
            _pair(question, a, b, by_name.get(a, given[:0]), by_name.get(b, given[:0]))
            for a, b in combinations(names, 2)
            if items[a] & items[b]
        ]
        made += with_holm(tried)
    return made


def saliency_and_concepts(rows: pd.DataFrame, facts: StudyFacts, questions: Sequence[str]) -> list[Pair]:
    """Saliency less concepts by question, without controls, on the pictures that have both; none if the study
    has not both."""
    forms = {c.name: c.shows for c in methods(facts)}
    if not {SALIENCY, CONCEPTS} <= set(forms.values()):
        return []
    rows = add_codes(rows[~rows["is_anchor"]])
    form = rows["condition"].map(forms)
    made = []
    for question in questions:
        asked = rows["question"] == question
        parts = (rows[asked & (form == SALIENCY)], rows[asked & (form == CONCEPTS)])
        made.append(_pair(question, SALIENCY, CONCEPTS, *parts))
    return with_holm(made)


def _pair(question: str, first: str, second: str, a: pd.DataFrame, b: pd.DataFrame) -> Pair:
    shared = set(a["picture"]) & set(b["picture"])
    if not shared:
        return Pair(question, first, second, 0, problem="no shared picture")
    both = pd.concat([a, b])
    is_first = np.r_[np.ones(len(a)), np.zeros(len(b))]
    people, pictures = both["person"].to_numpy(np.intp), both["picture"].to_numpy(np.intp)
    result = clustered_difference(both["value"], is_first, people, pictures, level=LEVEL)
    return Pair(question, first, second, len(shared), result)


def with_holm(made: Sequence[Pair]) -> list[Pair]:
    """The same with p corrected over those that have one."""
    corrected = holm_of_known([pair.result.p if pair.result else None for pair in made])
    return [replace(pair, p_holm=p) for pair, p in zip(made, corrected, strict=True)]


@dataclass(frozen=True, slots=True)
class OrdinalTest:
    """Whether conditions differ on one question of one dataset, people, pictures and pictures by condition
    being random. `means`: the modelled mean point (high is good) by condition. `odds`: profile intervals of
    the log odds ratio against the first condition; empty if they were left out. `problem` says why there is
    no model; `p` is then that of the person-level test, if there is one."""

    dataset: str
    question: str
    rows: int
    people: int
    pictures: int
    ratio: LikelihoodRatio | None = None
    means: Mapping[str, float] | None = None
    sds: Mapping[str, float] | None = None
    odds: Mapping[str, tuple[float, Interval]] | None = None
    problem: str = ""
    p_people: float | None = None

    @property
    def p(self) -> float | None:
        return self.ratio.p if self.ratio else self.p_people

    def as_json(self) -> dict[str, Any]:
        return {
            **json_of(self, "dataset", "question", "rows", "people", "pictures"),
            **(self.ratio.as_json() if self.ratio else dict.fromkeys(RATIO_KEYS)),
            "p_people": self.p_people,
            "means": dict(self.means) if self.means else None,
            "sds": dict(self.sds) if self.sds else None,
            "log_odds": {
                name: {"estimate": estimate, "interval": ends.as_json()}
                for name, (estimate, ends) in (self.odds or {}).items()
            },
            "problem": self.problem,
        }


def ordinal_tests(rows: pd.DataFrame, facts: StudyFacts, questions: Sequence[str]) -> list[OrdinalTest]:
    """One test per dataset and question, of the pictures that at least two conditions have."""
    once = rated_once(rows)
    made = []
    for dataset in dict.fromkeys(c.dataset for c in explained_conditions(facts)):
        names = [c.name for c in explained_conditions(facts) if c.dataset == dataset]
        part = once[once["condition"].isin(names)]
        for question in questions:
            given = part[part["question"] == question]
            wide = given.groupby("item")["condition"].transform("nunique") if len(given) else []
            made.append(_ordinal_test(dataset, question, given[np.asarray(wide) > 1], names))
    return made


def _ordinal_test(dataset: str, question: str, given: pd.DataFrame, names: Sequence[str]) -> OrdinalTest:
    rated = given.groupby("condition")["participant"].nunique()
    names = [name for name in names if name in rated.index]
    told = OrdinalTest(dataset, question, len(given), given["participant"].nunique(), given["item"].nunique())
    if len(names) < 2 or told.people < PEOPLE_MIN:
        return replace(
            told, problem=f"it needs {PEOPLE_MIN} people who rated 2 conditions on shared pictures"
        )
    try:
        if len(given) > ROWS_MAX:
            raise StatsError(f"There are {len(given):,} ratings; a mixed model takes at most {ROWS_MAX:,}.")
        whole, part = _fits(given, names)
        ratio = likelihood_ratio(whole, part)
    except StatsError as error:
        return replace(told, problem=str(error).rstrip("."), p_people=_person_level(given))
    return replace(
        told,
        ratio=ratio,
        means={name: _mean_point(whole, name, names) for name in names},
        sds=whole.sds,
        odds=_odds(whole, names) if len(given) <= CHEAP_ROWS and len(names) <= CHEAP_CONDITIONS else {},
    )


def _fits(given: pd.DataFrame, names: Sequence[str]) -> tuple[CrossedFit, CrossedFit]:
    """The model with the conditions, and the model without them."""
    columns = {name: (given["condition"] == name).to_numpy(float) for name in names[1:]}
    factors = {
        "person": list(given["participant"]),
        "picture": list(given["item"]),
        "picture by condition": list(given["item"].str.cat(given["condition"], sep="\x1f")),
    }
    values = given["value"].to_numpy(float)
    return fit_crossed(values, columns, factors), fit_crossed(values, {}, factors)


def _mean_point(fit: CrossedFit, name: str, names: Sequence[str]) -> float:
    shares = fit.probabilities({name: 1.0} if name != names[0] else {})
    return sum(point * share for point, share in zip(fit.points, shares, strict=True))


def _odds(fit: CrossedFit, names: Sequence[str]) -> dict[str, tuple[float, Interval]]:
    try:
        return {name: (fit.effects[name], profile_interval(fit, name, level=LEVEL)) for name in names[1:]}
    except StatsError:
        return {}


def _person_level(given: pd.DataFrame) -> float | None:
    """p of the conditions over the means of each person, people as blocks: of people on these pictures."""
    means = given.groupby(["participant", "condition"])["value"].mean().reset_index()
    people = pd.factorize(means["participant"])[0]
    try:
        return randomised_block(means["value"], list(means["condition"]), people.tolist()).p
    except StatsError:
        return None


def associations(rows: pd.DataFrame, stimuli: pd.DataFrame, questions: Sequence[str]) -> list[dict[str, Any]]:
    """Mean rating of an explanation against each automatic metric of it: Spearman's correlation over
    explanations, intervals by leaving out whole pictures. `method` and `seen` are the metric of the method's
    own values and that of the drawn field."""
    once = rated_once(rows)
    mean = once.groupby(["item", "condition", "question"])["value"].mean()
    measured = newest(stimuli)
    made = []
    for (metric, parameters), columns in measured.items():
        for question in questions:
            row: dict[str, Any] = {
                "metric": metric,
                "parameters": json.loads(parameters),
                "question": question,
            }
            for column in ("method", "seen"):
                row[column] = _association(mean, question, columns.get(column, {}))
            made.append(row)
    return made


def _association(
    mean: pd.Series, question: str, values: Mapping[tuple[str, str], float]
) -> dict[str, Any] | None:
    if question not in mean.index.get_level_values("question"):
        return None
    rated = mean.xs(question, level="question")
    places = [place for place in rated.index if place in values]
    try:
        told = rank_association(
            [rated[place] for place in places],
            [values[place] for place in places],
            [item for item, _ in places],
            level=LEVEL,
        )
    except StatsError:
        return None
    ends = told.interval.as_json() if told.interval else None
    return {"rho": told.rho, "n": told.n, "pictures": told.groups, "interval": ends}
