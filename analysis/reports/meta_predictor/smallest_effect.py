"""The planned contrasts against the smallest effect that the plan declares."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.any_table.formats import NONE, confidence, interval, number, p_value, percent
from analysis.any_table.result_tables import Table
from analysis.facts import StudyFacts
from analysis.reports.base import Section
from analysis.reports.utility.accuracy_anova import Analysis
from analysis.stats.intervals_and_checks import StatsError, json_of
from analysis.stats.means.equivalence import Equivalence, equivalent_means
from analysis.stats.means.tukey_and_corrections import holm
from analysis.stats.shares.margin_decision import Decision
from experiments.opening.preregistration_text import effect_words

TITLE = "Against the smallest effect of interest"
WORDS: dict[Decision, str] = {
    "equivalent": "Smaller than the declared smallest effect",
    "superior": "Higher by more than the declared smallest effect",
    "worse": "Lower by more than the declared smallest effect",
    "inconclusive": "Inconclusive against the declared smallest effect",
}


@dataclass(frozen=True, slots=True)
class _PairComparison:
    """A pair with its test by itself (`test.decision`), and with what Holm's correction over all pairs leaves
    of it: `decision`, and the corrected p of being smaller."""

    first: str
    second: str
    test: Equivalence
    decision: Decision
    p_holm: float


def smallest_effect_sections(result: Analysis, facts: StudyFacts) -> tuple[Section, ...]:
    """One section if the plan declares a smallest effect, else none."""
    if not facts.smallest_effect:
        return ()
    margin = _margin(result, facts)
    if margin is None:
        return (Section("smallest_effect", TITLE, None, result.problems),)
    tests: dict[tuple[str, str], Equivalence] = {}
    failed: dict[tuple[str, str], str] = {}
    for pair in _pairs(result, facts):
        try:
            tests[pair] = _equivalence(result, *pair, margin, facts.alpha)
        except StatsError as error:
            failed[pair] = str(error)
    compared = _compare_pairs(tests, facts.alpha)
    labels = facts.labels

    def name(pair: tuple[str, str]) -> str:
        return f"{labels[pair[0]]} \N{MINUS SIGN} {labels[pair[1]]}"

    rows = [(name((c.first, c.second)), *_cells(c)) for c in compared]
    rows += [(name(pair), why, *[NONE] * 5) for pair, why in failed.items()]
    contents = [{"condition": c.first, "against": c.second, **_content(c)} for c in compared]
    content = {"declared": dict(facts.smallest_effect), "margin": margin, "contrasts": contents}
    named = [(name((c.first, c.second)), c) for c in compared]
    table = _table(tuple(rows), margin, facts.alpha, len(compared))
    sentences = tuple(_sentences(named, effect_words(facts.smallest_effect)))
    return (Section("smallest_effect", TITLE, content, sentences, (table,)),)


def _compare_pairs(tests: Mapping[tuple[str, str], Equivalence], alpha: float) -> list[_PairComparison]:
    """Smaller, or larger: each of the two claims is corrected over the same pairs."""
    smaller = holm([test.p for test in tests.values()])
    larger = holm([test.p_beyond for test in tests.values()])
    made = []
    for (pair, test), p, beyond in zip(tests.items(), smaller, larger, strict=True):
        decision: Decision = "inconclusive"
        if beyond < alpha:
            decision = "superior" if test.difference > 0 else "worse"
        elif p < alpha:
            decision = "equivalent"
        made.append(_PairComparison(*pair, test, decision, p))
    return made


def _sentences(named: Sequence[tuple[str, _PairComparison]], told: str) -> Iterator[str]:
    """What holds for all pairs together, and then of which pairs more would be said each by itself."""
    over = f", by Holm's correction over {len(named)} pairs" if len(named) > 1 else ""
    for decision, words in WORDS.items():
        if pairs := [pair for pair, c in named if c.decision == decision]:
            yield f"{words}, {told}{over}: {', '.join(pairs)}."
    for pair, c in named:
        if c.test.decision != c.decision:
            words = WORDS[c.test.decision]
            yield f"{words}, if the pair is taken by itself and not corrected: {pair}."


def _cells(c: _PairComparison) -> tuple[str, ...]:
    test = c.test
    ends = interval(test.narrow, 1, 100)
    difference = number(100 * test.difference, 1)
    return WORDS[c.decision], WORDS[test.decision], difference, ends, p_value(test.p), p_value(c.p_holm)


def _table(rows: tuple[tuple[str, ...], ...], margin: float, alpha: float, pairs: int) -> Table:
    narrow, wide = confidence(1 - 2 * alpha), confidence(1 - alpha)
    return Table(
        "smallest_effect",
        TITLE,
        ("Pair", "Finding", "By itself", "Difference", f"{narrow} interval", "p", "p (Holm)"),
        rows,
        f"Percentage points of accuracy per person; the smallest effect is {100 * margin:.1f} of them. "
        f"Welch's two one-sided tests at {percent(alpha, 2)} %. The finding holds for all {pairs} pairs "
        f"together (Holm). By itself a pair is smaller, if the whole {narrow} interval lies within the "
        f"smallest effect; higher or lower, if the whole {wide} interval lies beyond it.",
        left=3,
    )


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


def _equivalence(result: Analysis, first: str, second: str, margin: float, alpha: float) -> Equivalence:
    people = result.people
    x, y = (people.loc[people["condition"] == name, "accuracy"] for name in (first, second))
    return equivalent_means(x, y, margin, alpha=alpha)


def _content(c: _PairComparison) -> dict[str, Any]:
    told = {"decision_alone": "decision", "difference": "difference"}
    told |= {"interval_narrow": "narrow", "interval_wide": "wide", "p": "p"}
    return {"decision": c.decision, **json_of(c.test, **told), "p_holm": c.p_holm}
