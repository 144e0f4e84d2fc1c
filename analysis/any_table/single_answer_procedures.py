"""Procedures on the single answers of anybody's table: items, reliability, mixed model, response times."""

from __future__ import annotations

import math

import numpy as np

from analysis.any_table.formats import ratio_sentence
from analysis.any_table.result_tables import Results, ResultTable
from analysis.any_table.table import BadTable, TidyTable
from analysis.stats.intervals_and_checks import Row, StatsError
from analysis.stats.ratings.ordinal_model import fit_crossed, likelihood_ratio, profile_interval
from analysis.stats.ratings.reliability import intraclass, item_statistics, split_half
from analysis.stats.response_times import ex_gaussian, log_summary, speed_accuracy

HALVES = 1000
LEVELS_MAX = 20
"""Of ordered answers in the mixed model: each has a threshold of its own."""


def of_items(results: Results, table: TidyTable, seed: int) -> None:
    """Item statistics of answers 0 and 1, split halves, and ICC of other answers."""
    roles = table.roles
    person = roles.subject or ""
    means = table.rows.groupby([person, roles.item], sort=False)[roles.dv].mean()
    wide = means.unstack(roles.item)
    values = wide.to_numpy(dtype=np.float64)
    items = [str(name) for name in wide.columns]
    is_single = len(means) == len(table.rows)
    if table.is_binary and is_single:
        note = "low and high are the ends of the difficulty (Wilson)."
        results.attempt("items", "Items", lambda: item_statistics(values, items).table(), note)
    elif table.is_binary:
        results.refuse("Item statistics", "they need one answer per person and item; there are several.")
    if np.isnan(values).any():
        results.refuse(
            "Split halves and ICC",
            "they need every person to have answered every item; "
            f"{int(np.isnan(values).sum())} of {values.size} answers are not there.",
        )
        return
    title = f"Split-half reliability, Spearman-Brown, {HALVES} halves"
    results.attempt("split_half", title, lambda: split_half(values, draws=HALVES, seed=seed).table())
    if not table.is_binary:
        title = "Intraclass correlations: items rated by people"
        results.attempt("icc", title, lambda: intraclass(values.T).table())


def mixed_model(results: Results, table: TidyTable, control: str) -> None:
    """The crossed logistic model of answers 0 and 1 by one factor, or cumulative logit of ordered answers.

    People, items and items by condition are random. Raises BadTable without people, items and one factor.
    """
    roles = table.roles
    factors = (*roles.between, *roles.within)
    if len(factors) != 1 or not (roles.subject and roles.item):
        raise BadTable("The mixed model needs --subject, --item and one factor, between or within people.")
    (factor,) = factors
    levels = table.levels[factor]
    reference = control or levels[0]
    codes = table.rows[factor].to_numpy()
    answers = table.rows[roles.dv].to_numpy(dtype=np.float64)
    fixed = {name: (codes == name).astype(np.float64) for name in levels if name != reference}
    person = table.rows[roles.subject].tolist()
    item = table.rows[roles.item].tolist()
    random = {"person": person, "item": item}
    random["item by condition"] = [f"{i} / {c}" for i, c in zip(item, codes, strict=True)]

    def made() -> list[Row]:
        if (steps := np.unique(answers).size) > LEVELS_MAX:
            raise StatsError(
                f"the answers have {steps} values; the model is of at most {LEVELS_MAX} ordered levels, "
                "so group them, or rely on the tests of people."
            )
        whole = fit_crossed(answers, fixed, random)
        test = likelihood_ratio(whole, fit_crossed(answers, {}, random))
        results.notes.append(f"Mixed model, all levels of {factor} alike: {ratio_sentence(test)}.")
        spread = ", ".join(f"{name} {sd:.2f}" for name, sd in whole.sds.items())
        results.notes.append(f"Mixed model, standard deviations in log odds: {spread}.")
        at_reference = whole.probabilities({})
        rows: list[Row] = []
        for name in fixed:
            ends = profile_interval(whole, name)
            row: Row = {"first": name, "second": reference, "odds_ratio": math.exp(whole.effects[name])}
            row |= {"low": _exp(ends.low), "high": _exp(ends.high)}
            if table.is_binary:
                row["points"] = 100 * (whole.probabilities({name: 1.0})[-1] - at_reference[-1])
            rows.append(row)
        return rows

    title = f"Mixed model: {factor} against {reference}, people, items and items by condition random"
    note = (
        "Odds ratios with profile likelihood intervals, not corrected for several comparisons; points: "
        "difference in percentage points over all people and items."
    )
    results.attempt("mixed_model", title, made, note)


def _exp(end: float) -> float | None:
    return math.exp(end) if math.isfinite(end) else None


def of_times(results: Results, table: TidyTable) -> None:
    """Response times by level of the first factor, or of everybody: logarithms, ex-Gaussian, speed-accuracy.

    Trials of several people are pooled for the ex-Gaussian, which the note says.
    """
    roles = table.roles
    person = roles.subject or ""
    summaries: list[Row] = []
    shapes: list[Row] = []
    for name, part in table.parts():
        try:
            if (part[roles.times] <= 0).any():
                raise StatsError("one is not above 0; drop such rows.")
            # One value per person, so that a person counts once.
            each = np.exp(np.log(part[roles.times]).groupby(part[person], sort=False).mean())
            summaries.append({"level": name, **log_summary(each).table()[0]})
            shapes.append({"level": name, **ex_gaussian(part[roles.times]).table()[0]})
        except StatsError as error:
            results.refuse(f"Response times of {name}", str(error))
    note = "Of people's geometric means; low and high are the ends of the geometric mean."
    if summaries:
        results.add(ResultTable("times", f"{roles.times} on the log scale", summaries, note))
    if shapes:
        note = "Fitted to the trials of all people together: their differences widen it."
        results.add(ResultTable("ex_gaussian", f"{roles.times}: ex-Gaussian", shapes, note))
    if table.is_binary:
        rows = table.rows
        note = (
            "Quarters of each person's own times, the fastest first; low and high are the ends of accuracy."
        )
        results.attempt(
            "speed_accuracy",
            "Accuracy by speed",
            lambda: speed_accuracy(rows[roles.dv], rows[roles.times], rows[person].tolist()).table(),
            note,
        )
