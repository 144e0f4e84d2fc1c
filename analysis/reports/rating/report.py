"""The report of ratings: what people say of each method's explanations, how far they agree, and who rated."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pandas as pd

from analysis.any_table.formats import NONE, interval, number, percent
from analysis.any_table.result_tables import Table
from analysis.facts import StudyFacts
from analysis.frames import Frames
from analysis.ratings import question_label, rated_once, rating_rows, shared_with, with_shared
from analysis.reports.base import Figure, Headline, Main, Section
from analysis.reports.drawing import figures
from analysis.reports.parts import participants
from analysis.reports.parts.basis import ReportBasis
from analysis.reports.parts.rater_agreement import agreement, agreement_section, raters_section, with_oneself
from analysis.reports.rating.figures import means, points
from analysis.reports.rating.method_means import (
    FACTORS,
    Coverage,
    RatingSummary,
    associations,
    coverage,
    explained_conditions,
    ordinal_tests,
    pairs,
    saliency_and_concepts,
    summaries,
)
from analysis.reports.rating.test_sections import comparisons, forms, metrics, ordinal
from analysis.reports.report import Report
from analysis.reports.utility import faithfulness
from experiments.paradigms.rating import RatingDesign, RatingQuestion
from experiments.wording.sentence_tables import table_of

SAY = (
    "Ratings say what people say that they understand; only a study in which they predict the model tells "
    "whether they do."
)
_NOT_ASKED = (
    "Not asked: the share of rated explanations without the changed copy that the question compares with, "
    "for the search left none."
)
INTERVALS = (
    "Intervals: 95 %, people and pictures both drawn at random (two-way clustered errors, Student's t); "
    "they speak of people and pictures like these, and may pass the ends of the scale."
)


def report(frames: Frames, definition: StudyFacts, *, made_at: str = "") -> Report:
    """Flow, means and modes, comparisons on shared pictures, the ordinal model, agreement, metrics; sealed
    while the study collects."""
    basis = ReportBasis.of(frames, definition)
    kept, design = basis.kept, RatingDesign(**definition.design)
    turned = {row.id for row in design.rows if row.reverse}
    rows = rating_rows(kept, turned)
    pooled = _pooled_section(rows, kept)
    if basis.seal.sealed:
        results = [_sealed_section(rows, definition, basis.seal.sentence)]
    else:
        everybody = rating_rows(basis.confirmed, turned)
        results = _results(kept, rows, everybody, definition, design.rows, basis.look)
    sections = (
        pooled,
        *results,
        _raters_of_each(coverage(rows, design.raters_per_explanation)),
        *faithfulness.sections(frames, definition),
        *basis.open_sections(),
        basis.flow,
    )
    return basis.report(sections, made_at, _headline(pooled), _main(sections), _opening(pooled, basis.look))


def _results(
    kept: Frames,
    rows: pd.DataFrame,
    everybody: pd.DataFrame,
    facts: StudyFacts,
    asked: Sequence[RatingQuestion],
    look: figures.Look,
) -> list[Section]:
    """The sections that are open once the study has ended."""
    names = [row.id for row in asked]
    labels = {row.id: question_label(row) for row in asked}
    standing = with_shared(rows, kept.stimuli)
    made = summaries(standing, facts, names)
    compared = pairs(standing, facts, names)
    missing = {(row.name, row.question): row.missing for row in made if row.by == "condition"}
    return [
        _conditions(made, rows, kept, facts, asked, look),
        _levels(made, asked),
        forms(saliency_and_concepts(standing, facts, names), labels),
        comparisons(compared, facts, labels),
        ordinal(ordinal_tests(rows, facts, names), facts, labels, missing),
        agreement_section(agreement(rows, everybody, names, facts.seed), labels),
        with_oneself(rows, names, labels),
        raters_section(rows),
        metrics(associations(rows, kept.stimuli, names), labels),
        *participants.sections(kept, facts),
    ]


def _text(question: RatingQuestion, facts: StudyFacts) -> tuple[str, str, str]:
    """The wording with the two ends of the scale: the study's own, its language file's, or ours."""
    table = table_of(facts.language)
    ours = {**table["pages"], **table["paradigms"].get("rating", {}), **facts.wording}
    given = {"": question.text, "_low": question.low, "_high": question.high}
    text, low, high = (words or ours.get(f"rate_{question.id}{part}", "") for part, words in given.items())
    return text, low, high


def _pooled_section(rows: pd.DataFrame, kept: Frames) -> Section:
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


def _raters_of_each(told: Coverage) -> Section:
    """How many people answered each question about each explanation, against the number that was wanted."""
    if not told.raters:
        return Section("coverage", "", told.as_json())
    table = Table(
        "coverage",
        "Raters of each explanation and question",
        ("Raters", "Explanations \N{MULTIPLICATION SIGN} questions"),
        tuple((f"{count}", f"{cells:,}") for count, cells in told.raters),
        f"Wanted: {told.wanted}. Fewer: lists that nobody has finished, or whose rater was left out "
        "afterwards. More: a rater was late and finished beside the one who got the list anew. Anchors are "
        "not in it, nor what nobody rated.",
        left=0,
    )
    return Section("coverage", "Raters per explanation", told.as_json(), told.sentences(), (table,))


def _main(sections: Sequence[Section]) -> tuple[Main, ...]:
    by_key = {section.key: section for section in sections}
    tables = {table.key: table for section in sections for table in section.tables}
    if "ordinal" not in by_key:
        return (Main(tables["conditions"]), Main())
    planned = (*by_key["coverage"].paragraphs, *by_key["comparisons"].paragraphs)
    return (
        Main(tables["conditions"], (*planned, SAY)),
        Main(tables.get("alpha"), by_key["ordinal"].paragraphs),
    )


def _sealed_section(rows: pd.DataFrame, facts: StudyFacts, sentence: str) -> Section:
    once = rated_once(rows)
    content = []
    for c in explained_conditions(facts):
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
    look: figures.Look,
) -> Section:
    """Mean and mode of every condition and question, and beside each of those with a pair the share that it
    could not be asked of; the wording; two figures."""
    of_conditions = [row for row in made if row.by == "condition"]
    heads = [f"{question_label(q)}, reversed" if q.reverse else question_label(q) for q in asked]
    with_pair = {q.id for q in asked if q.pair}
    lines = []
    for c in explained_conditions(facts):
        mine = [row for row in of_conditions if row.name == c.name]
        n = max((row.explanations for row in mine), default=0)
        about = (c.predictor, c.dataset) if _several(facts) else ()
        cells = [cell for row in mine for cell in _cells(row, row.question in with_pair)]
        lines.append((c.label, *about, str(n), *cells))
    about = ("Model", "Dataset") if _several(facts) else ()
    said = _shared_sentence(kept.stimuli, rows, facts)
    told = "Mean point and, in brackets, the mode; high is good; n explanations."
    if with_pair:
        told = f"{told} {_NOT_ASKED}"
    note = f"{told} {INTERVALS} They stand below. {SAY}"
    table = Table(
        "conditions",
        "Mean rating and mode",
        ("Condition", *about, "n", *_beside(asked, heads)),
        tuple(lines),
        " ".join((note, *facts.stimuli)),
        left=1 + len(about),
        short=("Condition", *("" for _ in about), "n", *_beside(asked, [question_label(q) for q in asked])),
    )
    drawn = (
        Figure(
            "means",
            f"Mean point per condition and question, high is good. {INTERVALS}",
            "Points with intervals per condition, a panel for each question.",
            partial(
                means,
                of_conditions,
                [(q.id, _with_gap(head, of_conditions, q)) for q, head in zip(asked, heads, strict=True)],
                look,
            ),
        ),
        Figure(
            "points",
            "How often each point was chosen, as it was asked (nothing reversed).",
            "Stacked bars of the five points per condition, a panel for each question.",
            partial(points, of_conditions, [(q.id, question_label(q)) for q in asked], look),
        ),
    )
    content = [row.as_json() for row in of_conditions]
    tables, has_ratings = (table, _wording(asked, facts)), any(row.ratings for row in of_conditions)
    return Section("conditions", "Results by condition", content, said, tables, drawn if has_ratings else ())


def _several(facts: StudyFacts) -> bool:
    return len({(c.predictor, c.dataset) for c in explained_conditions(facts)}) > 1


def _cells(row: RatingSummary, has_pair: bool) -> tuple[str, ...]:
    """Mean and mode; and the share that a question with a pair was not asked of."""
    told = NONE if row.value is None else f"{number(row.value.estimate)} ({number(row.mode, 0)})"
    return (told, percent(row.missing)) if has_pair else (told,)


def _beside(asked: Sequence[RatingQuestion], heads: Sequence[str]) -> tuple[str, ...]:
    """The headings, each with a pair followed by that of its share."""
    pairs = zip(asked, heads, strict=True)
    return tuple(word for q, head in pairs for word in ((head, "not asked %") if q.pair else (head,)))


def _with_gap(head: str, made: Sequence[RatingSummary], question: RatingQuestion) -> str:
    """The heading of a panel, with the shares that the question was not asked of, if there are any."""
    shares = [100 * row.missing for row in made if row.question == question.id and row.missing is not None]
    if not any(shares):
        return head
    low, high = f"{min(shares):.0f}", f"{max(shares):.0f}"
    return f"{head}; {low if low == high else f'{low} to {high}'} % not asked"


def _wording(asked: Sequence[RatingQuestion], facts: StudyFacts) -> Table:
    pair_words = {"light": "a small change", "strong": "a large change"}
    lines = tuple(
        (question_label(q), *_text(q, facts), pair_words.get(q.pair, ""), "yes" if q.reverse else "")
        for q in asked
    )
    columns = ("Question", "Wording", "1 means", "5 means", "Pair", "Reversed here")
    return Table("wording", "What was asked", columns, lines, left=6)


def _shared_sentence(stimuli: pd.DataFrame, rows: pd.DataFrame, facts: StudyFacts) -> tuple[str, ...]:
    """Which conditions show the same pictures, so that one rating stands for several."""
    labels = facts.labels
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
    labels = {q.id: question_label(q) for q in asked}
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
    f"{INTERVALS} {_NOT_ASKED} Means by model, dataset and form leave the control out. These are means of "
    "all that was rated; the comparisons below are of shared pictures."
)
