"""The planned contrasts against the smallest effect that the plan declares."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from analysis.reports.accuracy import Analysis
from analysis.reports.base import Section, StudyFacts, Table
from analysis.reports.formats import NONE, interval, number, p_value
from analysis.stats.equivalence import Equivalence, equivalent_means
from analysis.stats.margin import Decision
from analysis.stats.results import StatsError
from experiments.preregistration_text import effect_words

TITLE = "Against the smallest effect of interest"
WORDS: dict[Decision, str] = {
    "equivalent": "Smaller than the declared smallest effect",
    "superior": "Higher by more than the declared smallest effect",
    "worse": "Lower by more than the declared smallest effect",
    "inconclusive": "Inconclusive against the declared smallest effect",
}


def smallest_effect_sections(result: Analysis, facts: StudyFacts) -> tuple[Section, ...]:
    """One section if the plan declares a smallest effect, else none."""
    if not facts.smallest_effect:
        return ()
    told = effect_words(facts.smallest_effect)
    margin = _margin(result, facts)
    if margin is None:
        return (Section("smallest_effect", TITLE, None, result.problems),)
    labels = {c.name: c.label for c in facts.conditions}
    rows, contents, by_decision = [], [], defaultdict(list)
    for first, second in _pairs(result, facts):
        pair = f"{labels[first]} \N{MINUS SIGN} {labels[second]}"
        try:
            test = _equivalence(result, first, second, margin)
        except StatsError as error:
            rows.append((pair, str(error), *[NONE] * 3))
            continue
        by_decision[test.decision].append(pair)
        contents.append({"condition": first, "against": second, **_content(test)})
        ends = interval(test.narrow, 1, 100)
        rows.append((pair, WORDS[test.decision], number(100 * test.difference, 1), ends, p_value(test.p)))
    sentences = tuple(
        f"{words}, {told}: {', '.join(by_decision[decision])}."
        for decision, words in WORDS.items()
        if by_decision[decision]
    )
    table = Table(
        "smallest_effect",
        TITLE,
        ("Pair", "Finding", "Difference", "90 % interval", "p"),
        tuple(rows),
        f"Percentage points of accuracy per person; the smallest effect is {100 * margin:.1f} of them. "
        "Welch's two one-sided tests at 5 %, each pair by itself: smaller, if the whole 90 % interval lies "
        "within the smallest effect; higher or lower, if the whole 95 % interval lies beyond it.",
        left=2,
    )
    content = {"declared": dict(facts.smallest_effect), "margin": margin, "contrasts": contents}
    return (Section("smallest_effect", TITLE, content, sentences, (table,)),)


def _margin(result: Analysis, facts: StudyFacts) -> float | None:
    """The smallest effect as a difference of shares; None if it is one of deviations that are not known."""
    effect = facts.smallest_effect
    if "points" in effect:
        return effect["points"] / 100
    if result.anova is None or not result.anova.ss_within:
        return None
    return effect["d"] * math.sqrt(result.anova.ss_within / result.anova.df_within)


def _pairs(result: Analysis, facts: StudyFacts) -> Iterator[tuple[str, str]]:
    """The planned contrasts that have enough people."""
    if facts.contrasts == "tukey":
        names = [(pair.second, pair.first) for pair in (result.tukey.pairs if result.tukey else ())]
    else:
        names = [(c.name, facts.baseline) for c in facts.conditions if c.name != facts.baseline]
    yield from (pair for pair in names if result.has_enough(*pair))


def _equivalence(result: Analysis, first: str, second: str, margin: float) -> Equivalence:
    people = result.people
    x, y = (people.loc[people["condition"] == name, "accuracy"] for name in (first, second))
    return equivalent_means(x, y, margin)


def _content(test: Equivalence) -> dict[str, Any]:
    return {
        "decision": test.decision,
        "difference": test.difference,
        "interval_90": test.narrow.as_json(),
        "interval_95": test.wide.as_json(),
        "p": test.p,
    }
