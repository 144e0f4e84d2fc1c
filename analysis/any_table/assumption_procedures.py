"""What stands beside the tests of a design and decides nothing: assumptions, influence, trimmed means."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from analysis.any_table.result_tables import Results
from analysis.any_table.table import TidyTable
from analysis.stats.intervals_and_checks import Row
from analysis.stats.means.assumptions import influence, normality, variance_tests
from analysis.stats.means.one_sample import one_sample
from analysis.stats.means.trimmed import yuen
from analysis.stats.means.tukey_and_corrections import holm
from analysis.stats.means.welch import bonferroni_pairs

BESIDE = "Printed beside; decides nothing: which test stands was chosen before the data."
Groups = Mapping[str, NDArray[np.float64]]


def of_assumptions(results: Results, table: TidyTable, labels: NDArray[np.str_]) -> None:
    """Variances, normality and influence of people (n,) in the cells that `labels` names; with covariates, of
    what one slope for all cells leaves, without influence."""
    values = _residuals(table, labels)
    names = dict.fromkeys(labels.tolist())
    residuals = {name: values[labels == name] for name in names}
    left = " after the covariates" if table.roles.covariates else ""
    title = f"Equal variances{left}, Brown-Forsythe and Levene"
    results.attempt("variances", title, lambda: variance_tests(residuals).table(), BESIDE)
    title = f"Normal residuals{left}, Shapiro-Wilk"
    results.attempt("normality", title, lambda: normality(values).table(), BESIDE)
    if not table.roles.covariates:
        cells = {name: table.cells[labels == name, 0] for name in names}
        people = {name: table.people.index[labels == name].tolist() for name in names}
        title = "Influence: the person without whom a statistic moves most"
        note = f"{BESIDE} F is of all cells as one factor."
        results.attempt("influence", title, lambda: influence(cells, people).table(), note)


def _residuals(table: TidyTable, labels: NDArray[np.str_]) -> NDArray[np.float64]:
    """Values less the mean of their cell, and less the covariates' share within cells."""
    columns = [
        table.cells[:, 0],
        *(table.people[name].to_numpy(np.float64) for name in table.roles.covariates),
    ]
    centred = np.column_stack(columns)
    for name in set(labels.tolist()):
        centred[labels == name] -= centred[labels == name].mean(axis=0)
    y, x = centred[:, 0], centred[:, 1:]
    return np.asarray(y - x @ np.linalg.lstsq(x, y, rcond=None)[0]) if x.size else y


def of_pairs_beside(results: Results, groups: Groups) -> None:
    """Yuen's trimmed means and Bonferroni's t tests of all pairs."""
    note = f"{BESIDE} p by Holm over all pairs; each interval is of its pair alone."
    results.attempt("trimmed", "Trimmed means, 20 %, Yuen", lambda: yuen(groups).table(), note)
    note = f"{BESIDE} p and intervals by Bonferroni over all pairs; separate variances."
    title = "t tests of all pairs, Bonferroni"
    results.attempt("bonferroni", title, lambda: bonferroni_pairs(groups).table(), note)


def of_chance(results: Results, groups: Groups, chance: float) -> None:
    """Each group's mean against the declared chance, p by Holm over the groups."""

    def made() -> list[Row]:
        tests = [one_sample(values, chance) for values in groups.values()]
        corrected = holm([test.p for test in tests])
        return [
            {"level": name, **test.table()[0], "p": p}
            for name, test, p in zip(groups, tests, corrected, strict=True)
        ]

    note = "low and high are the ends of the mean, each by itself; g is (mean - chance) / SD."
    note += " p by Holm over the rows." if len(groups) > 1 else ""
    results.attempt("chance", f"Means against chance, {chance:g}, one-sample t", made, note)
