"""What a file of ratings in PASTA's record format says, of any study: counts, means and agreement."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from analysis.any_table.formats import interval, number, percent
from analysis.any_table.result_tables import Table
from analysis.pasta_records import QUESTIONS
from analysis.ratings import mode_of
from analysis.reports.parts.rater_agreement import agreement_on, beside_published

AS_ASKED = "Points as they were asked, 1 to 5: nothing is reversed, so a low Q5 is good."
NO_NAME = "not told by its name"


def sentences(answers: pd.DataFrame) -> list[str]:
    """How much there is, how many answered about each explanation, and what stands twice. `answers`: see
    `analysis.pasta_records.ratings_from`."""
    raters = answers.groupby("explanation")["rater"].nunique()
    counts = raters.value_counts().sort_index(ascending=False)
    with_raters = [_count_text(int(count), "raters") for count in counts.index]
    about = ", ".join(f"{n:,} with {k}" for k, n in zip(with_raters, counts, strict=True))
    shared = f"{with_raters[0]} each" if len(counts) == 1 else about
    explanations, ratings = _count_text(len(raters), "explanations"), int(answers["value"].count())
    told = [f"{explanations}, {_count_text(ratings, 'ratings')}: {shared}."]
    if len(counts) > 1:
        fewer = int((raters < raters.max()).sum())
        told.append(f"{_count_text(fewer, 'explanations')} with fewer than {with_raters[0]}.")
    once = answers.drop_duplicates("explanation")
    if again := int(once.duplicated("explication", keep=False).sum()):
        told.append(
            f"{again:,} records name an explanation that another record names too: each record counts as an "
            "explanation of its own, so put their annotations into one."
        )
    return told


def _count_text(count: int, what: str) -> str:
    """A number with its noun, which is given in the plural."""
    return f"{count:,} {what if count != 1 else what.removesuffix('s')}"


def tables(
    answers: pd.DataFrame, seed: int, progress: Callable[[str, int, int], None]
) -> tuple[tuple[Table, ...], list[str]]:
    """Means and agreement by question, beside the published table, and means by explainer; and why some
    agreement is not defined. `seed` draws raters and explanations."""
    rows = answers.assign(
        item=answers["explanation"].astype(str), condition="", question=answers["question"].str.lower(),
        asked=answers["value"].astype("float64"), is_anchor=False, is_shared=False,
    )  # fmt: skip
    given = rows[rows["asked"].notna()]
    content, lines, problems = {}, [], []
    for place, question in enumerate(QUESTIONS):
        mine = given[given["question"] == question.lower()]
        told = content[question.lower()] = agreement_on(mine, mine, question.lower(), seed)
        progress("questions", place + 1, len(QUESTIONS))
        problems += [f"{question}: {told['problem_kept']}"] if told["problem_kept"] else []
        alpha = told["alpha_kept"]
        lines.append(
            (
                question,
                f"{mine['explanation'].nunique():,}",
                f"{len(mine):,}",
                number(float(mine["asked"].mean()) if len(mine) else None),
                number(mode_of(mine["asked"].to_list()), 0),
                percent(1 - mine["explanation"].nunique() / rows["explanation"].nunique()),
                f"{number(alpha['alpha'])} {interval(alpha['interval'])}" if alpha else number(None),
            )
        )
    columns = ("Question", "Explanations", "Ratings", "Mean", "Mode", "Not asked %", "Alpha, ordinal")
    note = f"{AS_ASKED} Alpha: Krippendorff's, 95 % by drawing explanations anew."
    by_question = Table("questions", "By question", columns, tuple(lines), note)
    return (by_question, beside_published(content), _by_explainer(given)), problems


def _by_explainer(given: pd.DataFrame) -> Table:
    """Mean points by dataset and explainer, as far as the names of explanations tell them."""
    named = given.assign(
        dataset=given["dataset"].replace("", NO_NAME), explainer=given["explainer"].astype("Int64")
    )
    lines = []
    for (dataset, explainer), part in named.groupby(["dataset", "explainer"], sort=True, dropna=False):
        means = part.groupby("question")["asked"].mean()
        lines.append(
            (
                str(dataset),
                number(None) if pd.isna(explainer) else str(explainer),
                f"{part['explanation'].nunique():,}",
                *(number(means.get(question.lower())) for question in QUESTIONS),
            )
        )
    columns = ("Dataset", "Explainer id", "Explanations", *QUESTIONS)
    return Table("explainers", "Mean points by explainer", columns, tuple(lines), AS_ASKED, left=2)
