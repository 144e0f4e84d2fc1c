"""Accuracy per person and what follows from it: Utility, ANOVA, Tukey, as values and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from analysis.facts import StudyFacts
from analysis.frames import Frames, by_hand
from analysis.stats.intervals_and_checks import Floats, Interval, StatsError, json_of, mean_interval
from analysis.stats.means.anova import OneWayAnova, eta_squared_condition_by_session, one_way
from analysis.stats.means.dunnett import Dunnett, dunnett
from analysis.stats.means.effect_size import MeanDifference
from analysis.stats.means.tukey_and_corrections import TukeyKramer, tukey_kramer
from analysis.stats.utility import Utility, utilities

DRAWS = 10_000
LEVEL = 0.95
"""Of intervals that describe; those of contrasts, and those that hold together, are at the plan's level."""
PEOPLE_MIN = 5
"""With fewer people in a condition or in the baseline, Utility gets no interval and the contrast no p: beside
20 people in the baseline, 95 % intervals of 3 hold in 91 %, and in 88 % in the worst case, those of 5 in 94
and 91 % (tests/analysis/stats/test_utility_grid.py).
"""
UNEVEN = 1.5
FORMS = ("utility", "utility_trapezoid", "utility_mean_of_ratios")


@dataclass(frozen=True, slots=True)
class Analysis:
    """The tests over one set of people; what is not defined yet is None, with a sentence in `problems`.

    `people` has one row per session (condition, plan, accuracy and one column per block). `scores` holds the
    accuracies (people, blocks) of each condition with at least two people; NaN: did not answer the block.
    `secondary` compares the methods with the control.
    """

    people: pd.DataFrame
    blocks: tuple[int, ...]
    scores: dict[str, Floats]
    utilities: dict[str, Utility]
    dunnett: Dunnett | None
    secondary: Dunnett | None
    anova: OneWayAnova | None
    tukey: TukeyKramer | None
    eta_squared_mixed: float | None
    problems: tuple[str, ...]

    def planned(self, condition: str) -> MeanDifference | None:
        """The planned contrast of a condition with the baseline; None below PEOPLE_MIN people."""
        return self._comparison_of(self.dunnett, condition)

    def against_control(self, condition: str) -> MeanDifference | None:
        """The key secondary contrast of a method with the control; None below PEOPLE_MIN people."""
        return self._comparison_of(self.secondary, condition)

    def _comparison_of(self, test: Dunnett | None, condition: str) -> MeanDifference | None:
        if test is None or not self.has_enough(condition, test.control):
            return None
        return next((each for each in test.comparisons if each.first == condition), None)

    def tukey_p(self, condition: str, baseline: str) -> float | None:
        pairs = self.tukey.pairs if self.tukey else ()
        names = {condition, baseline}
        return next((pair.p for pair in pairs if {pair.first, pair.second} == names), None)

    def has_enough(self, condition: str, baseline: str) -> bool:
        """Whether condition and baseline have enough people for the condition's intervals and p."""
        sizes = [len(self.scores.get(name, ())) for name in (condition, baseline)]
        return min(sizes) >= PEOPLE_MIN


def person_scores(frames: Frames) -> tuple[pd.DataFrame, tuple[int, ...]]:
    """One row per session that answered a scored trial: condition, plan, status, whether it was left out by
    hand, accuracy, number of answers, accuracy per block.
    """
    scored = frames.trials[frames.trials["scored_index"].notna()]
    columns = ["session", "condition", "plan", "status"]
    people = frames.participants.assign(by_hand=by_hand(frames.participants))
    people = people.loc[people["condition"] != "", [*columns, "by_hand"]].set_index("session")
    if scored.empty:
        return people.iloc[:0].assign(accuracy=np.empty(0), answers=np.empty(0)), ()
    by_block = scored.pivot_table(index="session", columns="block", values="matches_model", aggfunc="mean")
    by_block.columns = [int(block) for block in by_block.columns]
    given = scored.groupby("session")["matches_model"]
    accuracy = pd.DataFrame({"accuracy": given.mean(), "answers": given.count()})
    joined = people.join(accuracy, how="inner").join(by_block)
    return joined, tuple(int(block) for block in by_block.columns)


def analyse(people: pd.DataFrame, blocks: tuple[int, ...], facts: StudyFacts) -> Analysis:
    """Every test that these people allow. `problems` says what is left out of a test, and why."""
    scores, groups, problems = {}, {}, []
    for condition in facts.conditions:
        members = people[people["condition"] == condition.name]
        if len(members) >= 2:
            scores[condition.name] = members[list(blocks)].to_numpy(dtype=np.float64)
            groups[condition.name] = members["accuracy"].to_numpy(dtype=np.float64)
        else:
            problems.append(
                f"{condition.label} has {len(members)} finished so far and is left out of the tests"
                f"{', so no condition has a Utility' if condition.role == 'baseline' else ''}."
            )
    empty = {name: _empty_blocks(x, blocks) for name, x in scores.items()}
    complete = {name: x for name, x in scores.items() if not empty[name]}
    problems += _empty_sentences(empty, facts)
    results: dict[str, Any] = {"utilities": ()}
    results |= dict.fromkeys(("dunnett", "secondary", "anova", "tukey", "eta_squared_mixed"))
    for key, compute in (
        ("utilities", lambda: _utilities(complete, groups, facts)),
        ("dunnett", lambda: _dunnett(groups, facts.baseline, facts)),
        ("secondary", lambda: _secondary(groups, facts)),
        ("anova", lambda: one_way(groups, level=LEVEL)),
        ("tukey", lambda: tukey_kramer(groups, level=facts.level)),
        ("eta_squared_mixed", lambda: _mixed_effect_size(scores)),
    ):
        try:
            results[key] = compute()
        except StatsError as error:
            problems.append(str(error))
    results["utilities"] = {utility.condition: utility for utility in results["utilities"]}
    return Analysis(people, blocks, scores, problems=tuple(dict.fromkeys(problems)), **results)


def _utilities(
    scores: Mapping[str, Floats], people: Mapping[str, Floats], facts: StudyFacts
) -> tuple[Utility, ...]:
    # Why the baseline is not there was said already.
    if facts.baseline not in scores:
        return ()
    levels = {"level": LEVEL, "together": facts.level}
    return utilities(scores, facts.baseline, people=people, seed=facts.seed, draws=DRAWS, **levels)


def _dunnett(groups: Mapping[str, Floats], control: str, facts: StudyFacts) -> Dunnett | None:
    """All groups against one of them. Variances are pooled unless the plan's sizes differ by more than a
    half; what variances turn out to be decides nothing."""
    if control not in groups or len(groups) < 2:
        return None
    planned = [condition.wanted for condition in facts.conditions if condition.name in groups]
    is_even = max(planned) <= UNEVEN * min(planned)
    return dunnett(groups, control, variances="equal" if is_even else "separate", level=facts.level)


def control_of(facts: StudyFacts) -> str | None:
    """The condition that methods are compared with after the baseline; None if there are none or several, of
    which the plan names no one."""
    controls = [condition.name for condition in facts.conditions if condition.role == "control"]
    return controls[0] if len(controls) == 1 else None


def _secondary(groups: Mapping[str, Floats], facts: StudyFacts) -> Dunnett | None:
    """Every method against the control, also those of which it is not read: the plan names the family."""
    control = control_of(facts)
    if control is None or facts.contrasts != "dunnett":
        return None
    compared = {c.name for c in facts.conditions if c.role == "method"} | {control}
    return _dunnett({name: x for name, x in groups.items() if name in compared}, control, facts)


def _empty_blocks(scores: Floats, blocks: tuple[int, ...]) -> list[int]:
    """The blocks without any answer in this condition."""
    return [block for block, column in zip(blocks, scores.T, strict=True) if np.isnan(column).all()]


def _empty_sentences(empty: Mapping[str, list[int]], facts: StudyFacts) -> list[str]:
    return [
        f"Nobody in {condition.label} answered block {', '.join(str(b + 1) for b in empty[condition.name])}: "
        "there is no accuracy to give there, and no Utility "
        f"{'of any condition' if condition.role == 'baseline' else 'of this condition'}."
        for condition in facts.conditions
        if empty.get(condition.name)
    ]


def utility_note(result: Analysis, facts: StudyFacts) -> str:
    """Says for which conditions no interval of Utility is given, and why; empty if there is none."""
    few = [
        c.label
        for c in facts.conditions
        if c.name in result.utilities
        and c.name != facts.baseline
        and not result.has_enough(c.name, facts.baseline)
    ]
    if not few:
        return ""
    return (
        f"No interval of Utility and no p for {', '.join(few)}: with fewer than {PEOPLE_MIN} people in the "
        "condition or in the baseline they would not hold their level."
    )


def _mixed_effect_size(scores: dict[str, Floats]) -> float | None:
    complete = {name: x[~np.isnan(x).any(axis=1)] for name, x in scores.items()}
    return eta_squared_condition_by_session({name: x for name, x in complete.items() if len(x)})


def mean_of(values: pd.Series) -> float | None:
    """The mean without missing values, or None if there is no value."""
    mean = values.mean()
    return None if pd.isna(mean) else float(mean)


def condition_rows(result: Analysis, facts: StudyFacts) -> list[dict[str, Any]]:
    """The `conditions` of report.json."""
    rows = []
    for c in facts.conditions:
        members = result.people[result.people["condition"] == c.name]
        utility = result.utilities.get(c.name)
        row: dict[str, Any] = {
            **json_of(c, "name", "label", "role", "wanted"),
            "n": len(members),
            "accuracy": [mean_of(members[block]) for block in result.blocks] if len(members) else None,
            "accuracy_mean": mean_of(members["accuracy"]),
            "utility_k": list(utility.utility_k) if utility else None,
            **(json_of(utility, *FORMS) if utility else dict.fromkeys(FORMS)),
            "intervals": _intervals(result, members, c.name, facts),
            "dunnett": contrast_content(result.planned(c.name)),
            "planned_p": _planned_p(result, c.name, facts),
            "tukey_p": result.tukey_p(c.name, facts.baseline),
        }
        rows.append(row)
    return rows


def _intervals(result: Analysis, members: pd.DataFrame, condition: str, facts: StudyFacts) -> dict[str, Any]:
    utility = result.utilities.get(condition)
    if not result.has_enough(condition, facts.baseline):
        utility = None
    by_block = [mean_interval(members[block], level=LEVEL) for block in result.blocks]
    return {
        "level": LEVEL,
        "simultaneous_level": facts.level,
        "accuracy": [_ends(ci) for ci in by_block],
        "accuracy_mean": _ends(mean_interval(members["accuracy"], level=LEVEL)),
        "utility_k": [_ends(ci) for ci in utility.utility_k_intervals]
        if utility and utility.utility_k_intervals
        else None,
        "utility": _ends(utility.interval if utility else None),
        "utility_simultaneous": _ends(utility.simultaneous if utility else None),
        "utility_fieller": _ends(utility.interval if utility else None),
        "utility_bootstrap": _ends(utility.bootstrap if utility else None),
    }


def planned_p(row: Mapping[str, Any]) -> float | None:
    """p of the planned contrast with the baseline in a row of `condition_rows`, or of an older report."""
    if "planned_p" in row:
        p: float | None = row["planned_p"]
        return p
    return row["dunnett"]["p"] if row.get("dunnett") else None


def _planned_p(result: Analysis, condition: str, facts: StudyFacts) -> float | None:
    """By the contrasts that the plan declares."""
    if facts.contrasts == "tukey":
        has_people = result.has_enough(condition, facts.baseline)
        return result.tukey_p(condition, facts.baseline) if has_people else None
    contrast = result.planned(condition)
    return contrast.p if contrast else None


def contrast_content(comparison: MeanDifference | None) -> dict[str, Any] | None:
    """The condition less the baseline, in shares of accuracy, as JSON."""
    if comparison is None:
        return None
    told = json_of(comparison, difference="difference", ci="interval", t="t", df="df", p="p")
    return told | json_of(comparison.size, hedges_g="g", hedges_g_ci="interval")


def _ends(interval: Interval | None) -> list[float | None] | None:
    return interval.as_json() if interval else None


def anova_content(result: Analysis) -> dict[str, Any] | None:
    """The `anova` of report.json."""
    a = result.anova
    if a is None:
        return None
    sizes = ("eta_squared", "partial_eta_squared", "omega_squared", "eta_squared_interval")
    return {
        "F": a.f,
        **json_of(a, "df_between", "df_within", "p", *sizes),
        "eta_squared_condition_by_session": result.eta_squared_mixed,
        **json_of(a, "ss_between", "ss_within"),
        "n": a.df_between + a.df_within + 1,
    }


def tukey_content(result: Analysis) -> dict[str, Any] | None:
    """The `tukey` of report.json."""
    if result.tukey is None:
        return None
    names = ("first", "second", "difference", "q", "p")
    pairs = [json_of(pair, *names, ci="interval") for pair in result.tukey.pairs]
    return {"pairs": pairs, "level": result.tukey.level, "df": result.tukey.df_within}
