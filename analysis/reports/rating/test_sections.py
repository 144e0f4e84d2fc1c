"""What the report of ratings tests: pairs on shared pictures, the ordinal model, automatic metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from analysis.any_table.formats import (
    NONE,
    finding,
    interval,
    number,
    p_sentence,
    percent,
    ratio_sentence,
)
from analysis.any_table.result_tables import Table
from analysis.facts import StudyFacts
from analysis.reports.base import Section
from analysis.reports.parts.basis import difference_cells
from analysis.reports.rating.method_means import (
    CHEAP_CONDITIONS,
    CHEAP_ROWS,
    CONCEPTS,
    FORMS,
    SALIENCY,
    OrdinalTest,
    Pair,
)
from analysis.reports.utility.faithfulness import metric_name
from analysis.reports.utility.metric_correlation import PREDICTED
from experiments.definition.preregistration_table import ALPHA

PAIRS_SHOWN = 60
Labels = Mapping[str, str]
Missing = Mapping[tuple[str, str], float | None]
"""(condition, question) -> the share of explanations that it was not asked of."""


def forms(made: Sequence[Pair], labels: Labels) -> Section:
    names = {SALIENCY: FORMS[SALIENCY], CONCEPTS: FORMS[CONCEPTS]}
    title = f"{FORMS[SALIENCY]} against {FORMS[CONCEPTS].lower()}" if made else ""
    tables = (_pair_table("forms", title, made, names, labels, "questions"),) if made else ()
    return Section("forms", title, [pair.as_json() for pair in made], (), tables)


def comparisons(made: Sequence[Pair], facts: StudyFacts, labels: Labels) -> Section:
    """All pairs of conditions, or those with the smallest p if they are many."""
    names = facts.labels
    content = [pair.as_json() for pair in made]
    shown = made
    if len(made) > PAIRS_SHOWN:
        tested = sorted((p for p in made if p.p_holm is not None), key=lambda pair: pair.p_holm or 0.0)
        shown = tested[:PAIRS_SHOWN]
    title = "Pairs of conditions"
    if len(shown) < len(made):
        title = f"{title}: the {len(shown)} with the smallest p of {len(made)}, all in report.json"
    said = _planned_sentences(made, facts, labels) or (
        "No two conditions share a picture yet, so none are compared.",
    )
    tables = (
        (_pair_table("comparisons", title, shown, names, labels, "pairs of one question"),) if made else ()
    )
    return Section("comparisons", "Comparisons on shared pictures", content, said, tables)


def _planned_sentences(made: Sequence[Pair], facts: StudyFacts, labels: Labels) -> tuple[str, ...]:
    """What the planned comparisons find, a sentence per question."""
    names = facts.labels
    questions = dict.fromkeys(pair.question for pair in made)
    return tuple(
        _pairs_sentence([pair for pair in made if pair.question == q], names, labels[q]) for q in questions
    )


def _pairs_sentence(made: Sequence[Pair], names: Labels, label: str) -> str:
    tested = [
        (pair.p_holm, pair.result.p or 0.0, pair, pair.result.estimate)
        for pair in made
        if pair.result is not None and pair.p_holm is not None
    ]
    if not tested:
        return f"{label}: none of {len(made)} pairs of conditions could be compared."
    of = f"{len(tested)} pair{'s' if len(tested) > 1 else ''} of conditions"
    differing = sum(p < ALPHA for p, *_ in tested)
    p, _, pair, gap = min(tested, key=lambda row: row[:2])
    if not differing:
        return f"{label}: no difference in {of} was detected, smallest {p_sentence(p)} (Holm)."
    first, second = names[pair.first], names[pair.second]
    high, low = (first, second) if gap > 0 else (second, first)
    differ = "differ; the clearest:" if differing > 1 else "differs:"
    return (
        f"{label}: {differing} of {of} {differ} {high} above {low} by {number(abs(gap))} points, "
        f"{p_sentence(p)} (Holm)."
    )


def _pair_table(
    key: str, title: str, made: Sequence[Pair], names: Labels, labels: Labels, family: str
) -> Table:
    """`family`: over what Holm's correction goes."""
    lines = tuple(
        (
            labels[pair.question],
            names[pair.first],
            names[pair.second],
            str(pair.pictures),
            str(pair.result.people if pair.result else 0),
            *difference_cells(pair.result, pair.p_holm),
        )
        for pair in made
    )
    columns = (
        "Question",
        "First",
        "Second",
        "Pictures",
        "People",
        "First less second",
        "95 %",
        "p",
        "p, Holm",
    )
    note = (
        "Mean of the first less that of the second, high is good. Only pictures that both have, each "
        "counting alike. People and pictures both drawn at random (two-way clustered errors). Holm: over the "
        f"{family}. No p: fewer than two people or pictures, or no spread."
    )
    return Table(key, title, columns, lines, note, left=3)


def ordinal(made: Sequence[OrdinalTest], facts: StudyFacts, labels: Labels, missing: Missing) -> Section:
    names = facts.labels
    datasets = {test.dataset for test in made}
    said = tuple(_ordinal_sentence(test, labels, len(datasets) > 1) for test in made)
    modelled = [test for test in made if test.means]
    has_odds = any(test.odds for test in made)
    means = tuple(
        (
            labels[test.question],
            test.dataset,
            names[name],
            number(mean),
            percent(missing.get((name, test.question))),
            *(_odds_cells(test, name) if has_odds else ()),
        )
        for test in modelled
        for name, mean in (test.means or {}).items()
    )
    note = (
        "Cumulative logit model (Laplace) with random intercepts of people, pictures, and pictures by "
        "condition, fitted to each question of each dataset on pictures that two conditions have at least. "
        "Log odds ratio: against the first condition, profile likelihood interval; left out above "
        f"{CHEAP_ROWS:,} ratings or {CHEAP_CONDITIONS} conditions. Shared ratings are in it once."
    )
    odds = ("Log odds ratio", "95 %") if has_odds else ()
    columns = ("Question", "Dataset", "Condition", "Modelled mean", "Not asked %", *odds)
    table = Table("ordinal", "Modelled means, high is good", columns, means, note, left=3)
    content = [test.as_json() for test in made]
    return Section("ordinal", "Ordinal model: people and pictures at random", content, said, (table,))


def _odds_cells(test: OrdinalTest, name: str) -> tuple[str, str]:
    if name not in (test.odds or {}):
        return NONE, NONE
    estimate, ends = (test.odds or {})[name]
    return number(estimate), interval(ends)


def _ordinal_sentence(test: OrdinalTest, labels: Labels, names_dataset: bool) -> str:
    place = f"{labels[test.question]}{f', {test.dataset}' if names_dataset else ''}"
    if test.ratio is not None:
        what = finding(test.ratio.p, "the rating, by people like these of pictures like these,")
        return f"{place}: {ratio_sentence(test.ratio)}: {what}."
    if test.p_people is not None:
        what = finding(test.p_people, "the rating on these pictures")
        return (
            f"{place}: no ordinal model ({test.problem}). The test of each person's means stands in, "
            f"{p_sentence(test.p_people)}: {what}."
        )
    return f"{place}: no ordinal model ({test.problem})."


def metrics(content: list[dict[str, Any]], labels: Labels) -> Section:
    """Ratings beside what was measured, and beside what a scorer predicted of the very same question."""
    if not content:
        return Section("metrics", "", content)
    measured = [row for row in content if not row["metric"].startswith(PREDICTED)]
    predicted = [row for row in content if row["metric"].lower() == f"{PREDICTED}{row['question']}".lower()]
    tables = (
        Table(
            "metrics",
            "Spearman's correlation over explanations",
            ("Metric", "Question", "The method", "What was seen", "Explanations"),
            tuple((metric_name(row, measured), labels[row["question"]], *_rhos(row)) for row in measured),
            "Mean rating (high is good) against the metric of the same explanation; 95 % by leaving out "
            "whole pictures. The method: of its own values. What was seen: of the field as it was drawn. "
            "Neither stands in for the other. Conditions are pooled: differences between methods are in it.",
            left=2,
        ),
        Table(
            "predicted",
            "People's ratings and a scorer's predictions: Spearman's correlation over explanations",
            ("Question", "Scorer", "Correlation", "Explanations"),
            tuple(
                (labels[row["question"]], str(row["parameters"].get("scorer", "")), *_rhos(row)[1:])
                for row in predicted
            ),
            "Predicted ratings were given by no person, and stand in no result of people. Mean rating (high "
            "is good); 95 % by leaving out whole pictures. Conditions are pooled.",
            left=2,
        ),
    )
    there = tuple(table for table in tables if table.rows)
    return Section("metrics", "Ratings and automatic metrics", content, (), there)


def _rhos(row: Mapping[str, Any]) -> tuple[str, str, str]:
    """The correlation by the method's own values and by what was seen, and of how many explanations."""
    method, seen = (
        f"{number(told['rho'])} {interval(told['interval'])}" if (told := row[column]) else NONE
        for column in ("method", "seen")
    )
    return method, seen, str((row["method"] or row["seen"] or {"n": 0})["n"])
