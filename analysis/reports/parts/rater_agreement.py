"""How far raters agree: with each other, with the usual answer, and with themselves in a later session."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from analysis.any_table.formats import NONE, interval, number, percent
from analysis.any_table.result_tables import Table
from analysis.ratings import EXPLANATION, SCALE, as_units, rated_once, repeated_anchors
from analysis.reports.base import Section
from analysis.reports.parts.published_ratings import PUBLISHED as PUBLISHED_TABLE
from analysis.reports.parts.published_ratings import ROWS
from analysis.stats.intervals_and_checks import Floats, StatsError, json_of
from analysis.stats.ratings.agreement import human_row, krippendorff_alpha, spearman, weighted_kappa

DRAWS = 200
RATERS_SHOWN = 100
METRICS = {"mse": "MSE", "kappa": "QWK", "spearman": "SCC"}
PUBLISHED = "Published, not recomputed (PASTA, AAAI 2026, Table 1; the names of its rows follow its text)"
TABLE_1 = tuple(
    (metric, name, *(cell.partition("\N{PLUS-MINUS SIGN}")[0] for cell in rows[name].split()))
    for metric, rows in PUBLISHED_TABLE.items()
    for name in ROWS
)
"""Metric, scorer or human, and the means for Q1 to Q6, rows CLIP to BLIP being trained scorers."""
OURS = {"as_published": "Human, here", "own_left_out": "Human, here, own vote left out"}


def value_or_problem(call: Callable[[], Any]) -> tuple[Any, str]:
    """What the call returns, or None with the sentence of its StatsError."""
    try:
        return call(), ""
    except StatsError as error:
        return None, str(error)


def agreement(
    kept: pd.DataFrame, everybody: pd.DataFrame, questions: Sequence[str], seed: int
) -> dict[str, dict[str, Any]]:
    """By question: Krippendorff's alpha of the raters that were kept and of all, and one rater against the
    mode, with the own vote in it (as published) and without it."""
    return {question: agreement_on(kept, everybody, question, seed) for question in questions}


def agreement_on(kept: pd.DataFrame, everybody: pd.DataFrame, question: str, seed: int) -> dict[str, Any]:
    """The same of one question."""
    content: dict[str, Any] = {}
    units = {}
    for name, rows in (("kept", kept), ("all", everybody)):
        once = rated_once(rows)
        units[name] = as_units(once[once["question"] == question])
        told, problem = value_or_problem(
            partial(krippendorff_alpha, units[name], SCALE, draws=DRAWS, seed=seed)
        )
        content[f"alpha_{name}"] = told and json_of(told, "alpha", "interval", "units", "ratings")
        content[f"problem_{name}"] = problem
    for name, leaves_out in (("as_published", False), ("own_left_out", True)):
        row, problem = value_or_problem(
            partial(human_row, units["kept"], SCALE, leave_one_out=leaves_out, draws=DRAWS, seed=seed)
        )
        content[name] = row and row.table()[0]
        content[f"problem_{name}"] = problem
    return content


def agreement_section(content: Mapping[str, Mapping[str, Any]], labels: Mapping[str, str]) -> Section:
    rows = []
    for question, told in content.items():
        alphas = [told["alpha_kept"], told["alpha_all"]]
        cells = [f"{number(a['alpha'])} {interval(a['interval'])}" if a else NONE for a in alphas]
        rows.append((labels[question], str(alphas[0]["units"]) if alphas[0] else "0", *cells))
    table = Table(
        "alpha",
        "Agreement of raters",
        ("Question", "Explanations", "Alpha, kept raters", "Alpha, all raters"),
        tuple(rows),
        "Krippendorff's alpha, ordinal; 95 % by drawing explanations anew. All: with raters whom screening "
        "left out. Anchors are not in it. Agreement is no ground for exclusion or pay.",
    )
    said = dict.fromkeys(
        f"{labels[question]}: {told[key]}"
        for question, told in content.items()
        for key in ("problem_kept", "problem_as_published")
        if told[key]
    )
    return Section("agreement", "Agreement", content, tuple(said), (table, beside_published(content)))


def beside_published(content: Mapping[str, Mapping[str, Any]]) -> Table:
    """PASTA's table, with the human rows of these ratings under each metric."""
    rows = []
    for key, metric in METRICS.items():
        rows += [
            (metric, f"{row[1]}, published", *(number(float(cell), 3) for cell in row[2:]))
            for row in TABLE_1
            if row[0] == metric
        ]
        for name, label in OURS.items():
            cells = [
                number((content.get(f"q{at}") or {}).get(name) and content[f"q{at}"][name][key], 3)
                for at in range(1, 7)
            ]
            rows.append((metric, label, *cells))
    return Table(
        "human",
        "One rater against the usual answer",
        ("Metric", "Row", *(f"Q{at}" for at in range(1, 7))),
        tuple(rows),
        f"{PUBLISHED}, but for the rows that say here. Human: a rater drawn at random for each explanation "
        f"against the mode of all raters, the own vote among them, mean of {DRAWS} draws; that is too kind, "
        "so the row without the own vote stands beside it. MSE in points of the scale.",
        left=2,
    )


def with_oneself(rows: pd.DataFrame, questions: Sequence[str], labels: Mapping[str, str]) -> Section:
    """Anchors that one person rated in two sessions."""
    again = repeated_anchors(rows)
    content = {question: _again(again[again["question"] == question]) for question in questions}
    if again.empty:
        return Section("with_oneself", "", content)
    table = Table(
        "with_oneself",
        "The same explanation in a later session",
        ("Question", "Pairs", "People", "Same %", "Within 1 %", "QWK", "SCC"),
        tuple(
            (
                labels[question],
                *(str(told[key]) for key in ("pairs", "people")),
                *(percent(told[key]) for key in ("same", "within_1")),
                *(number(told[key]) for key in ("kappa", "spearman")),
            )
            for question, told in content.items()
        ),
        "Anchors stand in every list and are outside the wanted number of raters. A person's first and last "
        "rating of each, from different sessions.",
    )
    return Section("with_oneself", "Agreement with oneself", content, (), (table,))


def _again(pairs: pd.DataFrame) -> dict[str, Any]:
    first, later = pairs["first"].to_numpy(float), pairs["later"].to_numpy(float)
    distance = np.abs(first - later)
    return {
        "pairs": len(pairs),
        "people": int(pairs["participant"].nunique()),
        "same": float((distance == 0).mean()) if len(pairs) else None,
        "within_1": float((distance <= 1).mean()) if len(pairs) else None,
        **_agreement_of(first, later),
    }


def _agreement_of(first: Floats, second: Floats) -> dict[str, float | None]:
    return {
        "kappa": value_or_problem(lambda: weighted_kappa(first, second, SCALE))[0],
        "spearman": value_or_problem(lambda: spearman(first, second))[0],
    }


def with_the_others(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Each rater against the mode of the other raters of the same explanation and question."""
    once = rated_once(rows)
    once = once[once.groupby([*EXPLANATION, "question"])["asked"].transform("size") > 1]
    if once.empty:
        return []
    unit = once.groupby([*EXPLANATION, "question"]).ngroup().to_numpy()
    points = once["asked"].to_numpy(int) - SCALE[0]
    counts = np.zeros((unit.max() + 1, len(SCALE)))
    np.add.at(counts, (unit, points), 1)
    others = counts[unit]
    others[np.arange(len(points)), points] -= 1
    told = once.assign(others=others.argmax(axis=1) + SCALE[0])
    return [_rater(str(name), part) for name, part in told.groupby("participant", sort=True)]


def _rater(name: str, given: pd.DataFrame) -> dict[str, Any]:
    mine, others = given["asked"].to_numpy(float), given["others"].to_numpy(float)
    return {
        "participant": name,
        "n": len(given),
        "mse": float(((mine - others) ** 2).mean()),
        **_agreement_of(mine, others),
    }


def raters_section(rows: pd.DataFrame) -> Section:
    content = with_the_others(rows)
    if not content:
        return Section("raters", "", content)
    shown = content[:RATERS_SHOWN]
    first = f" The first {RATERS_SHOWN} of {len(content)}; all in report.json."
    more = first if len(content) > len(shown) else ""
    table = Table(
        "raters",
        "Each rater against the usual answer of the others",
        ("Rater", "Ratings", "MSE", "QWK", "SCC"),
        tuple(
            (r["participant"], str(r["n"]), number(r["mse"]), number(r["kappa"]), number(r["spearman"]))
            for r in shown
        ),
        "All questions together. It describes; who differs from the others is not wrong, and is neither left "
        f"out nor paid less for it.{more}",
    )
    return Section("raters", "Raters", content, (), (table,))
