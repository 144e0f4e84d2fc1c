"""A study and the studies that extend it: what may be compared between people who came at different times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from analysis.any_table.formats import interval, number, percent
from analysis.any_table.result_tables import Table
from analysis.facts import StudyFacts
from analysis.frames import Frames
from analysis.reports.base import Section
from analysis.reports.utility.accuracy_anova import DRAWS, LEVEL, PEOPLE_MIN, person_scores
from analysis.stats.intervals_and_checks import Floats, Interval, StatsError, json_of
from analysis.stats.means.equivalence import Equivalence, equivalent_means
from analysis.stats.ranks.method_rank_intervals import MethodRank, rank_methods
from analysis.stats.utility import Utility, utilities

APART = "Not randomised together."
KEY = "extension"


@dataclass(frozen=True, slots=True)
class Member:
    """One study of a family. `groups`: the kept people's accuracies (n,) by condition, of conditions with two
    people or more. `opened_on`: the day, as text."""

    facts: StudyFacts
    groups: Mapping[str, Floats]
    opened_on: str

    @classmethod
    def of(cls, frames: Frames, facts: StudyFacts, opened_on: str) -> Member:
        people, _ = person_scores(frames.kept())
        groups = {
            c.name: people.loc[people["condition"] == c.name, "accuracy"].to_numpy(dtype=float)
            for c in facts.conditions
        }
        return cls(facts, {name: values for name, values in groups.items() if len(values) > 1}, opened_on)

    @property
    def slug(self) -> str:
        return self.facts.slug

    @property
    def baseline(self) -> Floats | None:
        return self.groups.get(self.facts.baseline)

    def label(self, condition: str) -> str:
        return next(c.label for c in self.facts.conditions if c.name == condition)


@dataclass(frozen=True, slots=True)
class Drift:
    """The bridge's mean accuracy less the parent's baseline's, in shares. `test` is None without a declared
    margin; `narrow` and `wide` are Welch's 90 and 95 % intervals."""

    difference: float
    narrow: Interval
    wide: Interval
    test: Equivalence | None

    @property
    def is_one_baseline(self) -> bool:
        """Whether the 90 % interval lies within the declared margin."""
        return self.test is not None and self.test.decision == "equivalent"


def drift_of(parent: Member, extension: Member, margin: float | None) -> Drift | None:
    """`margin` in shares. None unless both baselines have enough people who differ."""
    before, now = parent.baseline, extension.baseline
    if before is None or now is None or min(before.size, now.size) < PEOPLE_MIN:
        return None
    try:
        # Without a margin of its own the intervals are the same for any.
        told = equivalent_means(now, before, margin or 1.0)
    except StatsError:
        return None
    return Drift(told.difference, told.narrow, told.wide, told if margin else None)


def extension_section(parent: Member, extension: Member, table: Mapping[str, Any]) -> Section:
    """How the extension compares with its parent. `table`: the study's `[extension]`."""
    margin = table["drift_points"] / 100 if table.get("drift_points") else None
    drift = drift_of(parent, extension, margin)
    pooled = (
        _pooled_utilities(parent, extension) if table.get("pool") and drift and drift.is_one_baseline else {}
    )
    rows = [row for member in (parent, extension) for row in _rows(member)]
    content = {
        "parent": parent.slug,
        "randomised_together": False,
        "drift": _drift_json(drift, extension, parent),
        "pooled": [_utility_json(utility) for utility in pooled.values()],
        "methods": [
            {"study": member.slug, **_utility_json(utility)}
            for member in (parent, extension)
            for utility in _utilities(member.groups, member.facts).values()
        ],
    }
    sentences = (
        f"{APART} The methods of {parent.slug} (opened on {parent.opened_on}) and of this study "
        f"(opened on {extension.opened_on}) were shown to people who were recruited apart. Each Utility is "
        "against the study's own baseline; a difference between the studies may be one between their people.",
        _drift_sentence(drift, parent, extension, margin),
        _pool_sentence(drift, asked=bool(table.get("pool"))),
    )
    tables = [_methods_table(rows)]
    if pooled:
        tables.append(_pooled_table(extension, pooled))
    title = f"Beside {parent.slug}, which this study extends"
    return Section(KEY, title, content, tuple(filter(None, sentences)), tuple(tables))


def sealed_section(parent: str, sentence: str) -> Section:
    """In the place of `extension_section` while one of the two is sealed."""
    said = f"This study extends {parent}. {sentence} The two are compared once both are open."
    return Section(KEY, f"Beside {parent}, which this study extends", None, (said,))


def _drift_json(drift: Drift | None, extension: Member, parent: Member) -> dict[str, Any] | None:
    if drift is None:
        return None
    return {
        "n": len(extension.groups[extension.facts.baseline]),
        "n_parent": len(parent.groups[parent.facts.baseline]),
        **json_of(drift, "difference", interval_90="narrow", interval_95="wide"),
        **{key: getattr(drift.test, key, None) for key in ("margin", "decision")},
    }


def _drift_sentence(drift: Drift | None, parent: Member, extension: Member, margin: float | None) -> str:
    if drift is None:
        return (
            f"The bridge (this study's own baseline) or the baseline of {parent.slug} has fewer than "
            f"{PEOPLE_MIN} people who differ, so nothing is said of how people have changed between the two."
        )
    before, now = parent.baseline, extension.baseline
    assert before is not None and now is not None
    said = (
        f"Bridge: the baseline was met again by {now.size} people here, mean accuracy "
        f"{percent(float(now.mean()))} %, beside {percent(float(before.mean()))} % of {before.size} there. "
        f"Drift {number(100 * drift.difference, 1)} points, 90 % interval {interval(drift.narrow, 1, 100)}, "
        f"95 % {interval(drift.wide, 1, 100)}."
    )
    if margin is None:
        return f"{said} No margin was declared for it."
    limit = f"{number(100 * margin, 1)} points, which was declared before"
    if drift.is_one_baseline:
        return f"{said} The 90 % interval lies within {limit}: the baselines count as one."
    return f"{said} The 90 % interval does not lie within {limit}: the baselines do not count as one."


def _pool_sentence(drift: Drift | None, *, asked: bool) -> str:
    if not asked:
        return "Nothing is pooled: the plan did not say so."
    if drift is not None and drift.is_one_baseline:
        return "As the plan said, the two baselines are also pooled, as a second result."
    return "The plan allowed to pool the two baselines if their drift lay within its margin; they are not."


def _pooled_utilities(parent: Member, extension: Member) -> dict[str, Utility]:
    """Utilities of the extension's methods against both baselines together."""
    assert parent.baseline is not None
    base = extension.facts.baseline
    together = np.concatenate([parent.baseline, extension.groups[base]])
    return _utilities({**extension.groups, base: together}, extension.facts)


def _utilities(groups: Mapping[str, Floats], facts: StudyFacts) -> dict[str, Utility]:
    """Of every condition but the baseline; none if they cannot be computed."""
    scores = {name: values[:, np.newaxis] for name, values in groups.items()}
    try:
        made = utilities(scores, facts.baseline, seed=facts.seed, draws=DRAWS, level=LEVEL)
    except StatsError:
        return {}
    return {utility.condition: utility for utility in made if utility.condition != facts.baseline}


def _has_enough(member: Member, condition: str) -> bool:
    base = member.baseline
    return base is not None and min(base.size, len(member.groups.get(condition, ()))) >= PEOPLE_MIN


def _rows(member: Member) -> list[tuple[str, ...]]:
    """Label, study, n, accuracy, the intervals and the Utility of each condition but the baseline."""
    made = _utilities(member.groups, member.facts)
    rows: list[tuple[str, ...]] = []
    for condition in member.facts.conditions:
        if condition.name == member.facts.baseline:
            continue
        utility, values = made.get(condition.name), member.groups.get(condition.name)
        held = utility.simultaneous if utility and _has_enough(member, condition.name) else None
        rows.append(
            (
                condition.label,
                member.slug,
                str(0 if values is None else len(values)),
                percent(None if values is None else float(values.mean())),
                interval(held),
                number(utility.utility if utility else None),
            )
        )
    return rows


def _methods_table(rows: Sequence[tuple[str, ...]]) -> Table:
    return Table(
        "extension_methods",
        "Methods of both studies, each against its own baseline",
        ("Condition", "Study", "n", "Accuracy %", "Utility, 95 %", "Utility"),
        tuple(rows),
        f"{APART} Intervals hold together within a study; none is given with fewer than {PEOPLE_MIN} people.",
        left=2,
    )


def _pooled_table(extension: Member, pooled: Mapping[str, Utility]) -> Table:
    return Table(
        "extension_pooled",
        "This study's methods against both baselines together",
        ("Condition", "n", "Utility", "95 %"),
        tuple(
            (
                extension.label(name),
                str(utility.n),
                number(utility.utility),
                interval(utility.simultaneous if utility.n >= PEOPLE_MIN else None),
            )
            for name, utility in pooled.items()
        ),
        "A second result, declared in the plan; the first is against this study's own baseline.",
    )


def _utility_json(utility: Utility) -> dict[str, Any]:
    return json_of(utility, "condition", "n", "utility", interval="simultaneous")


@dataclass(frozen=True, slots=True)
class Ranking:
    """Methods of a family in order; `left_out` are sentences on those without a rank."""

    ranks: tuple[MethodRank, ...]
    left_out: tuple[str, ...]


def ranking_of(members: Sequence[Member]) -> Ranking:
    """Every condition but the baselines with enough people, in its study and its baseline."""
    left_out, studies = [], {}
    for member in members:
        told = {c.name for c in member.facts.conditions if _has_enough(member, c.name)}
        for condition in member.facts.conditions:
            if condition.name not in told and condition.name != member.facts.baseline:
                left_out.append(
                    f"{condition.label} of {member.slug} has no rank: it, or the baseline, has fewer than "
                    f"{PEOPLE_MIN} people."
                )
        kept = {name: values for name, values in member.groups.items() if name in told}
        if len(kept) > 1:
            studies[member.slug] = kept
    try:
        ranks = rank_methods(studies, {m.slug: m.facts.baseline for m in members}, level=LEVEL)
    except StatsError as error:
        return Ranking((), (*left_out, str(error)))
    return Ranking(ranks, tuple(left_out))


def ranking_table(ranking: Ranking, members: Sequence[Member]) -> Table:
    by_slug = {member.slug: member for member in members}
    rows = [
        (
            by_slug[rank.study].label(rank.condition),
            rank.study,
            str(rank.n),
            number(rank.utility),
            str(rank.rank),
            f"{rank.best}\N{EN DASH}{rank.worst}" if rank.best < rank.worst else str(rank.best),
        )
        for rank in ranking.ranks
    ]
    return Table(
        "methods",
        "Methods by Utility against the baseline of their own study",
        ("Condition", "Study", "n", "Utility", "Rank", "95 % interval of the rank"),
        tuple(rows),
        "The intervals of all ranks hold together: a rank counts the methods that are significantly better "
        "or worse, every pair tested at 5 % over all pairs (Bonferroni).",
        left=2,
    )
