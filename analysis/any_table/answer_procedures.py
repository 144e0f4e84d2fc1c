"""Procedures on answers beyond means of anybody's table: signal detection, correlation, Utility,
agreement."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.any_table.result_tables import Results
from analysis.any_table.table import TidyTable
from analysis.stats.bayes_utility import bayes_utility
from analysis.stats.cluster_correlation import CLUSTERS_MIN, Kind, correlation
from analysis.stats.intervals_and_checks import Row, StatsError, ends_of, mean_interval
from analysis.stats.ratings.agreement import Metric, krippendorff_alpha, weighted_kappa
from analysis.stats.shares.signal_detection import Signal, signal_detection
from analysis.stats.utility import utilities

DRAWS = 2000
RATERS_MAX = 10
"""Kappa is of pairs of people; those of more are too many to read."""
RATING_LEVELS_MAX = 20
"""Answers with more levels are measurements: alpha and kappa are not defined by places of levels."""


def of_signal(results: Results, table: TidyTable) -> None:
    """d' and criterion of answers 0 and 1 by level of the first factor: of all answers, and of each
    person."""
    roles = table.roles

    def made() -> list[Row]:
        if not table.is_binary:
            raise StatsError("signal detection needs answers 0 and 1, 1 for yes; recode them.")
        rows: list[Row] = []
        for name, part in table.parts():
            each = [_signal(answers, table) for _, answers in part.groupby(roles.subject, sort=False)]
            both = np.array([pair for pair in each if pair is not None])
            row: Row = {"level": name, **_counts(part, table).table()[0], "people": len(both)}
            if len(both):
                row |= {"d_prime_of_people": float(both[:, 0].mean()), **ends_of(mean_interval(both[:, 0]))}
                row |= {"criterion_of_people": float(both[:, 1].mean())}
            rows.append(row)
        return rows

    note = (
        "Log-linear correction: half an answer is added to each count and one to each total (Hautus "
        "1995). low and high are the ends of the mean d' of the people who met both kinds."
    )
    results.attempt("signal", f"Signal detection: {roles.dv} given {roles.signal}", made, note)


def _counts(part: pd.DataFrame, table: TidyTable) -> Signal:
    yes, signal = part[table.roles.dv] == 1, part[table.roles.signal] == 1
    return signal_detection(
        int((yes & signal).sum()), int(signal.sum()), int((yes & ~signal).sum()), int((~signal).sum())
    )


def _signal(part: pd.DataFrame, table: TidyTable) -> tuple[float, float] | None:
    """d' and criterion of one person; None if one kind never came."""
    if part[table.roles.signal].nunique() < 2:
        return None
    told = _counts(part, table)
    return told.d_prime, told.criterion


def of_correlation(results: Results, table: TidyTable, seed: int) -> None:
    """Correlation of the answers with another column, people and items drawn whole."""
    roles, rows = table.roles, table.rows
    clusters = [("people", roles.subject), *([("items", roles.item)] if roles.item else [])]

    def made() -> list[Row]:
        told: list[Row] = []
        kinds: tuple[Kind, ...] = ("pearson", "spearman")
        for kind in kinds:
            for name, column in clusters:
                test = correlation(
                    rows[roles.dv].to_numpy(),
                    rows[roles.correlate].to_numpy(),
                    rows[column].tolist(),
                    kind=kind,
                    draws=DRAWS,
                    seed=seed,
                )
                told.append({"drawn": name, **test.table()[0]})
        return told

    note = (
        f"low and high: percentiles of {DRAWS:,} draws of whole people or items, seed {seed}; none with "
        f"fewer than {CLUSTERS_MIN}. Fisher's z, and p by Student's t, only if each row "
        "is a person or item of its own."
    )
    results.attempt("correlation", f"Correlation of {roles.dv} with {roles.correlate}", made, note)


def of_utility(results: Results, groups: dict[str, NDArray[np.float64]], control: str, seed: int) -> None:
    """Ratios of mean accuracies to the control's, and, secondary, the Bayesian estimate."""

    def ratios() -> list[Row]:
        made = utilities({name: x[:, None] for name, x in groups.items()}, control, seed=seed)
        rows: list[Row] = []
        for each in made:
            if each.condition == control:
                continue
            together, drawn = ends_of(each.simultaneous), ends_of(each.bootstrap)
            row: Row = {
                "level": each.condition,
                "n": each.n,
                "utility": each.utility,
                **ends_of(each.interval),
            }
            row |= {"together_low": together["low"], "together_high": together["high"]}
            row |= {"bootstrap_low": drawn["low"], "bootstrap_high": drawn["high"]}
            rows.append(row)
        return rows

    def posterior() -> list[Row]:
        base = groups[control]
        return [
            {"level": name, **bayes_utility(x, base).table()[0]}
            for name, x in groups.items()
            if name != control
        ]

    note = (
        "Ratio of means. low and high: Fieller, separate variances, each by itself; together: all rows "
        "at once; bootstrap of people as their witness."
    )
    results.attempt("utility", f"Utility: means over that of {control}", ratios, note)
    note = "Secondary, decides nothing: fixed prior, median and equal tails of the posterior, no p."
    results.attempt("utility_bayes", "Utility, Bayesian estimate (secondary)", posterior, note)


def of_agreement(results: Results, table: TidyTable, seed: int) -> None:
    """Krippendorff's alpha of ordered answers, and weighted kappa of each pair of a few people. What is rated
    is an item, by condition if there are factors."""
    roles = table.roles
    unit = [roles.item, *roles.between, *roles.within]
    wide = table.rows.pivot_table(index=unit, columns=roles.subject, values=roles.dv, sort=False)
    values = wide.to_numpy(dtype=np.float64)
    levels = np.unique(table.rows[roles.dv]).tolist()
    if len(levels) > RATING_LEVELS_MAX:
        results.refuse(
            "Alpha and kappa",
            f"they are of ordered answers; {roles.dv} has {len(levels)} values, more than "
            f"{RATING_LEVELS_MAX}, and counts as a measurement: see the intraclass correlations.",
        )
        return
    if len(levels) == 1:
        why = f"everybody gave one and the same answer ({levels[0]:g}), so agreement is not defined."
        results.refuse("Alpha and kappa", why)
        return
    metrics: tuple[Metric, ...] = ("ordinal", "nominal", "interval")

    def alphas() -> list[Row]:
        return [
            {
                "metric": metric,
                **krippendorff_alpha(values, levels, metric, draws=DRAWS, seed=seed).table()[0],
            }
            for metric in metrics
        ]

    note = (
        f"low and high: bootstrap of {' by '.join(unit)}, {DRAWS:,} draws. The levels that came count as all."
    )
    results.attempt("alpha", f"Agreement on {roles.dv}, Krippendorff's alpha", alphas, note)
    if 2 <= len(wide.columns) <= RATERS_MAX:
        title = f"Agreement on {roles.dv}, weighted kappa of two people"
        results.attempt("kappa", title, lambda: _kappas(wide, levels), "Of what both rated.")


def _kappas(wide: pd.DataFrame, levels: list[float]) -> list[Row]:
    rows: list[Row] = []
    for first, second in combinations(wide.columns, 2):
        both = wide[[first, second]].dropna().to_numpy(dtype=np.float64)
        rows.append(
            {
                "first": str(first),
                "second": str(second),
                "rated": len(both),
                "linear": weighted_kappa(both[:, 0], both[:, 1], levels, "linear"),
                "quadratic": weighted_kappa(both[:, 0], both[:, 1], levels, "quadratic"),
            }
        )
    return rows
