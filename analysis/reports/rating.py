"""The report of ratings: what people say of each method's explanations, how far they agree, and who rated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd

from analysis.frames import Frames
from analysis.ratings import rated_once, rating_rows, shared_with, with_shared
from analysis.reports import faithfulness, figures, quality, rating_figures
from analysis.reports.base import Figure, Headline, Main, Section, StudyFacts, Table, seal_of
from analysis.reports.flow import flow_headline, flow_section
from analysis.reports.formats import NONE, finding, interval, number, p_sentence, p_value, percent, stars
from analysis.reports.rating_agreement import agreement, agreement_section, raters_section, with_oneself
from analysis.reports.rating_scores import (
    CHEAP_CONDITIONS,
    CHEAP_ROWS,
    CONCEPTS,
    FACTORS,
    FORMS,
    SALIENCY,
    OrdinalTest,
    Pair,
    RatingSummary,
    associations,
    explained,
    labels_of,
    ordinal_tests,
    pairs,
    saliency_and_concepts,
    summaries,
)
from analysis.reports.report import Report
from experiments.languages import table_of
from experiments.paradigms.rating import RatingDesign, RatingQuestion

SAY = (
    "Ratings say what people say that they understand; only a study in which they predict the model tells "
    "whether they do."
)
INTERVALS = (
    "Intervals: 95 %, people and pictures both drawn at random (two-way clustered errors, Student's t); "
    "they speak of people and pictures like these, and may pass the ends of the scale."
)
PAIRS_SHOWN = 60
Labels = Mapping[str, str]


def report(frames: Frames, definition: StudyFacts, *, made_at: str = "") -> Report:
    """Flow, means and modes, comparisons on shared pictures, the ordinal model, agreement, metrics; sealed
    while the study collects."""
    origin = frames.one_origin()
    seal = seal_of(definition, origin)
    flow = flow_section(frames.participants, definition, sealed=seal.sealed)
    kept = frames.confirmed().passed() if seal.sealed else frames.kept()
    asked = RatingDesign(**definition.design).rows
    turned = {row.id for row in asked if row.reverse}
    rows = rating_rows(kept, turned)
    pooled = _pooled(rows, kept)
    if seal.sealed:
        results = [_sealed(rows, definition, seal.sentence)]
    else:
        everybody = rating_rows(frames.confirmed(), turned)
        results = _results(kept, rows, everybody, definition, asked, origin)
    sections = (
        pooled,
        *results,
        *faithfulness.sections(frames, definition),
        *quality.open_sections(frames.confirmed(), definition),
        flow,
    )
    look = figures.Look.of(definition, origin)
    return Report(
        definition,
        origin,
        seal,
        flow,
        sections,
        made_at,
        headline=(*flow_headline(flow, definition), *_headline(pooled)),
        main=_main(sections),
        opening=_opening(pooled, look),
    )


def _results(
    kept: Frames,
    rows: pd.DataFrame,
    everybody: pd.DataFrame,
    facts: StudyFacts,
    asked: Sequence[RatingQuestion],
    origin: str,
) -> list[Section]:
    """The sections that are open once the study has ended."""
    names = [row.id for row in asked]
    labels = {row.id: _label(row) for row in asked}
    standing = with_shared(rows, kept.stimuli)
    made = summaries(standing, facts, names)
    return [
        _conditions(made, rows, kept, facts, asked, origin),
        _levels(made, asked),
        _forms(saliency_and_concepts(standing, facts, names), labels),
        _comparisons(pairs(standing, facts, names), facts, labels),
        _ordinal(ordinal_tests(rows, facts, names), facts, labels),
        agreement_section(agreement(rows, everybody, names, facts.seed), labels),
        with_oneself(rows, names, labels),
        raters_section(rows),
        _metrics(associations(rows, kept.stimuli, names, facts.seed), labels),
        *quality.sections(kept, facts),
    ]


def _label(question: RatingQuestion) -> str:
    """Its id, as the paper prints it if it is one of the six."""
    return question.id.upper() if question.id[0] == "q" and question.id[1:].isdigit() else question.id


def _text(question: RatingQuestion, language: str) -> tuple[str, str, str]:
    """The wording with the two ends of the scale: the study's own, or ours."""
    table = table_of(language)
    ours = {**table["pages"], **table["paradigms"].get("rating", {})}
    given = {"": question.text, "_low": question.low, "_high": question.high}
    text, low, high = (words or ours.get(f"rate_{question.id}{part}", "") for part, words in given.items())
    return text, low, high


def _pooled(rows: pd.DataFrame, kept: Frames) -> Section:
    once = rated_once(rows)
    content = {
        "people": int(kept.participants["participant"].nunique()),
        "sessions": len(kept.participants),
        "ratings": len(once),
        "explanations": len(once.drop_duplicates(["item", "condition"])),
        "pictures": int(once["item"].nunique()),
        "anchor_ratings": int(rows["is_anchor"].sum()),
    }
    return Section("pooled", "", content)


def _headline(pooled: Section) -> tuple[Headline, ...]:
    told = pooled.content
    return (Headline(f"{told['ratings']:,}", f"ratings of {told['explanations']:,} explanations"),)


def _opening(pooled: Section, look: figures.Look) -> str:
    told = pooled.content
    if not told["ratings"]:
        return ""
    of = f"{told['ratings']:,} ratings of {told['explanations']:,} explanations"
    return f"{look.counted(told['people'])} kept, {of}."


def _main(sections: Sequence[Section]) -> tuple[Main, ...]:
    by_key = {section.key: section for section in sections}
    tables = {table.key: table for section in sections for table in section.tables}
    told = by_key["ordinal"].paragraphs if "ordinal" in by_key else ()
    return (Main(tables["conditions"], (SAY,) if told else ()), Main(tables.get("alpha"), told))


def _sealed(rows: pd.DataFrame, facts: StudyFacts, sentence: str) -> Section:
    once = rated_once(rows)
    content = []
    for c in explained(facts):
        part = once[once["condition"] == c.name]
        rated = len(part.drop_duplicates(["item", "condition"]))
        content.append({"name": c.name, "label": c.label, "explanations": rated, "ratings": len(part)})
    lines = tuple((str(r["label"]), str(r["explanations"]), str(r["ratings"])) for r in content)
    table = Table("conditions", "Rated so far", ("Condition", "Explanations", "Ratings"), lines)
    return Section("conditions", "Results by condition", content, (sentence,), (table,))


def _conditions(
    made: Sequence[RatingSummary],
    rows: pd.DataFrame,
    kept: Frames,
    facts: StudyFacts,
    asked: Sequence[RatingQuestion],
    origin: str,
) -> Section:
    """Mean and mode of every condition and question; the wording; two figures."""
    of_conditions = [row for row in made if row.by == "condition"]
    heads = tuple(f"{_label(q)}, reversed" if q.reverse else _label(q) for q in asked)
    lines = []
    for c in explained(facts):
        mine = [row for row in of_conditions if row.name == c.name]
        n = max((row.explanations for row in mine), default=0)
        about = (c.predictor, c.dataset) if _several(facts) else ()
        lines.append((c.label, *about, str(n), *map(_cell, mine)))
    about = ("Model", "Dataset") if _several(facts) else ()
    said = _shared_sentence(kept.stimuli, rows, facts)
    told = "Mean point and, in brackets, the mode; high is good; n explanations."
    note = f"{told} {INTERVALS} They stand below. {SAY}"
    table = Table(
        "conditions",
        "Mean rating and mode",
        ("Condition", *about, "n", *heads),
        tuple(lines),
        " ".join((note, *facts.stimuli)),
        left=1 + len(about),
        short=("Condition", *("" for _ in about), "n", *(_label(q) for q in asked)),
    )
    look = figures.Look.of(facts, origin)
    names = [q.id for q in asked]
    drawn = (
        Figure(
            "means",
            f"Mean point per condition and question, high is good. {INTERVALS}",
            "Points with intervals per condition, a panel for each question.",
            partial(rating_figures.means, of_conditions, list(zip(names, heads, strict=True)), look),
        ),
        Figure(
            "points",
            "How often each point was chosen, as it was asked (nothing reversed).",
            "Stacked bars of the five points per condition, a panel for each question.",
            partial(rating_figures.points, of_conditions, [(q.id, _label(q)) for q in asked], look),
        ),
    )
    content = [row.as_json() for row in of_conditions]
    return Section(
        "conditions",
        "Results by condition",
        content,
        said,
        (table, _wording(asked, facts)),
        drawn if any(row.ratings for row in of_conditions) else (),
    )


def _several(facts: StudyFacts) -> bool:
    return len({(c.predictor, c.dataset) for c in explained(facts)}) > 1


def _cell(row: RatingSummary) -> str:
    if row.value is None or row.mode is None:
        return NONE
    return f"{number(row.value.estimate)} ({row.mode:.0f})"


def _wording(asked: Sequence[RatingQuestion], facts: StudyFacts) -> Table:
    pair_words = {"light": "a small change", "strong": "a large change"}
    lines = tuple(
        (_label(q), *_text(q, facts.language), pair_words.get(q.pair, ""), "yes" if q.reverse else "")
        for q in asked
    )
    columns = ("Question", "Wording", "1 means", "5 means", "Pair", "Reversed here")
    return Table("wording", "What was asked", columns, lines, left=6)


def _shared_sentence(stimuli: pd.DataFrame, rows: pd.DataFrame, facts: StudyFacts) -> tuple[str, ...]:
    """Which conditions show the same pictures, so that one rating stands for several."""
    labels = labels_of(facts)
    rated = set(zip(rows["item"], rows["condition"], strict=True))
    counts: dict[tuple[str, str], int] = {}
    for (item, condition), of in shared_with(stimuli).items():
        if (item, of) in rated:
            counts[condition, of] = counts.get((condition, of), 0) + 1
    return tuple(
        f"{labels.get(condition, condition)} shows the same picture as {labels.get(of, of)} for "
        f"{n} {'item' if n == 1 else 'items'}: rated once, and counted for both in means and comparisons."
        for (condition, of), n in counts.items()
    )


def _levels(made: Sequence[RatingSummary], asked: Sequence[RatingQuestion]) -> Section:
    """Every mean with its interval: as asked, and with high as good; by every factor of the study."""
    labels = {q.id: _label(q) for q in asked}
    content = [row.as_json() for row in made if row.by != "condition"]
    tables = []
    for by, word in FACTORS.items():
        lines = tuple(
            (
                row.label,
                labels[row.question],
                str(row.explanations),
                str(row.ratings),
                number(row.asked),
                number(row.value.estimate if row.value else None),
                interval(row.value.interval if row.value else None),
                NONE if row.mode_asked is None else f"{row.mode_asked:.0f}",
                percent(row.missing),
            )
            for row in made
            if row.by == by
        )
        if lines:
            columns = (word, "Question", "Explanations", "Ratings", "As asked", "High is good", "95 %",
                       "Mode as asked", "Not asked %")  # fmt: skip
            tables.append(Table(f"means_by_{by}", f"Means by {word.lower()}", columns, lines, _NOTE, left=2))
    return Section("levels", "Means, modes and missing pairs", content, (), tuple(tables))


_NOTE = (
    f"{INTERVALS} Not asked: the share of rated explanations for which the search left no light or strong "
    "copy to ask about. Means by model, dataset and form leave the control out. These are means of all that "
    "was rated; the comparisons below are of shared pictures."
)


def _forms(made: Sequence[Pair], labels: Labels) -> Section:
    names = {SALIENCY: FORMS[SALIENCY], CONCEPTS: FORMS[CONCEPTS]}
    title = f"{FORMS[SALIENCY]} against {FORMS[CONCEPTS].lower()}" if made else ""
    tables = (_pair_table("forms", title, made, names, labels),) if made else ()
    return Section("forms", title, [pair.as_json() for pair in made], (), tables)


def _comparisons(made: Sequence[Pair], facts: StudyFacts, labels: Labels) -> Section:
    """All pairs of conditions, or those with the smallest p if they are many."""
    names = labels_of(facts)
    content = [pair.as_json() for pair in made]
    shown = made
    if len(made) > PAIRS_SHOWN:
        tested = sorted((p for p in made if p.p_holm is not None), key=lambda pair: pair.p_holm or 0.0)
        shown = tested[:PAIRS_SHOWN]
    title = "Pairs of conditions"
    if len(shown) < len(made):
        title = f"{title}: the {len(shown)} with the smallest p of {len(made)}, all in report.json"
    said = () if made else ("No two conditions share a picture yet, so none are compared.",)
    tables = (_pair_table("comparisons", title, shown, names, labels),) if made else ()
    return Section("comparisons", "Comparisons on shared pictures", content, said, tables)


def _pair_table(key: str, title: str, made: Sequence[Pair], names: Labels, labels: Labels) -> Table:
    lines = tuple(
        (
            labels[pair.question],
            names[pair.first],
            names[pair.second],
            str(pair.pictures),
            str(pair.result.people) if pair.result else "0",
            number(pair.result.estimate if pair.result else None),
            interval(pair.result.interval if pair.result else None),
            p_value(pair.result.p if pair.result else None),
            p_value(pair.p_holm) + stars(pair.p_holm),
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
        "pairs of one question. No p: fewer than two people or pictures, or no spread."
    )
    return Table(key, title, columns, lines, note, left=3)


def _ordinal(made: Sequence[OrdinalTest], facts: StudyFacts, labels: Labels) -> Section:
    names = labels_of(facts)
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
    columns = ("Question", "Dataset", "Condition", "Modelled mean", *odds)
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
        return (
            f"{place}: \N{GREEK SMALL LETTER CHI}\N{SUPERSCRIPT TWO}({test.ratio.df}) = "
            f"{number(test.ratio.statistic)}, {p_sentence(test.ratio.p)}: {what}."
        )
    if test.p_people is not None:
        what = finding(test.p_people, "the rating on these pictures")
        return (
            f"{place}: no ordinal model ({test.problem}). The test of each person's means stands in, "
            f"{p_sentence(test.p_people)}: {what}."
        )
    return f"{place}: no ordinal model ({test.problem})."


def _metrics(content: list[dict[str, Any]], labels: Labels) -> Section:
    if not content:
        return Section("metrics", "", content)
    lines = tuple(
        (
            _metric_name(row, content),
            labels[row["question"]],
            *(
                f"{number(told['rho'])} {interval(told['interval'])}" if (told := row[column]) else NONE
                for column in ("method", "seen")
            ),
            str((row["method"] or row["seen"] or {"n": 0})["n"]),
        )
        for row in content
    )
    table = Table(
        "metrics",
        "Spearman's correlation over explanations",
        ("Metric", "Question", "The method", "What was seen", "Explanations"),
        lines,
        "Mean rating (high is good) against the metric of the same explanation; 95 % by drawing whole "
        "pictures. The method: of its own values. What was seen: of the field as it was drawn. Neither "
        "stands in for the other. Conditions are pooled, so that differences between methods are in it.",
        left=2,
    )
    return Section("metrics", "Ratings and automatic metrics", content, (), (table,))


def _metric_name(row: Mapping[str, Any], content: Sequence[Mapping[str, Any]]) -> str:
    """The metric, with the parameters in which it differs from others of its name."""
    others = [other["parameters"] for other in content if other["metric"] == row["metric"]]
    told = [f"{k} {v}" for k, v in row["parameters"].items() if any(o.get(k) != v for o in others)]
    return f"{row['metric']} ({', '.join(told)})" if told else str(row["metric"])
