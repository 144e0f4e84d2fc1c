"""Acceptance as a function of the time to decide, and the figures of a review."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pandas as pd

from analysis.any_table.formats import percent
from analysis.any_table.result_tables import Table
from analysis.facts import StudyFacts
from analysis.reports.base import Figure, Section
from analysis.reports.blind_review.acceptance_by_time import Curve, curves, shares_of
from analysis.reports.blind_review.acceptance_contrasts import INTERVALS, words_of
from analysis.reports.blind_review.figures import accepted_by_budget, hits_and_false
from analysis.reports.blind_review.rows import DeclaredDesign
from analysis.reports.drawing.figures import Look

POINTWISE = (
    "Bands: 95 %, pointwise, two-way clustered errors of leads and tasks, Student's t; a band is no band for "
    "the whole curve."
)


def budget_section(rows: pd.DataFrame, facts: StudyFacts, told: DeclaredDesign, look: Look) -> Section:
    """p(budget), whole, with a table at some budgets; the figures."""
    made = curves(rows, facts, told)
    if not made:
        return Section("budget", "Time to decide", None)
    content = {"primary_ms": told.budget_ms, "curves": [curve.as_json() for curve in made]}
    figure = Figure(
        "budget",
        f"Share of real solutions accepted within the time on the axis; a later decision counts as a "
        f"rejection. Dots: single {look.many} at the primary budget of {words_of(told.budget_ms)} (dashed). "
        f"{_count_sentence(made, look)} {POINTWISE}",
        "Rising curves of acceptance by time for each source, without and with explanations.",
        partial(accepted_by_budget, made, told.budget_ms, look),
    )
    columns = ("Solutions of", "Explanation", "Reviews", *map(words_of, told.budgets_ms), "Any time")
    lines = tuple(_line(curve) for curve in made)
    table = Table(
        "budget",
        "Accepted in time, %",
        columns,
        lines,
        "Accepted within the time; a decision without a response time above 0 is in none.",
        left=2,
    )
    return Section("budget", "Time to decide", content, (), (table,), (figure,))


def _line(curve: Curve) -> tuple[str, ...]:
    shown = "shown" if curve.explained else "not shown"
    at_any_time = percent(curve.curve.at_any_time)
    return curve.group.label, shown, str(curve.reviews), *map(percent, curve.in_time.values()), at_any_time


def _count_sentence(made: Sequence[Curve], look: Look) -> str:
    """How many answered, and how many reviews there are, by explanation."""
    told = []
    for explained, words in ((False, "without"), (True, "with")):
        part = [curve for curve in made if curve.explained == explained]
        if part:
            people = max(curve.people for curve in part)
            reviews = sum(curve.reviews for curve in part)
            told.append(f"{words} explanations n = {look.counted(people)}, {reviews} reviews")
    return f"{'; '.join(told).capitalize()}."


def signal_figure(rows: pd.DataFrame, facts: StudyFacts, look: Look) -> tuple[Figure, ...]:
    """Hits against false acceptances; none without right and wrong answers."""
    made = shares_of(rows, facts)
    if not made:
        return ()
    counts = "; ".join(
        f"{m.label} {'with' if m.explained else 'without'} explanations n = {look.counted(m.people)}, "
        f"{m.reviews} reviews"
        for m in made
    )
    caption = (
        f"Right answers accepted against wrong ones accepted, at any time; on the diagonal right and wrong "
        f"are not told apart. Faint dots: single {look.many}, moved apart a little. {counts}. {INTERVALS}"
    )
    alt = "Hits against false acceptances for each source, without and with explanations."
    return (Figure("signal", caption, alt, partial(hits_and_false, made, look)),)
