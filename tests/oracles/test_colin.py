"""The published study through the whole reporter: a reconstruction from published summaries, not the
authors' data.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from statsmodels.stats.multicomp import pairwise_tukeyhsd

from analysis.reports import get_reporter
from analysis.reports.output.html import page
from analysis.reports.report import Report
from analysis.reports.utility.scenarios import Scenario, correlations
from analysis.stats.utility import utility_mean_of_ratios, utility_trapezoid
from tests.analysis.worlds import facts, frames_of
from tests.oracles import colin

pytestmark = pytest.mark.pure
DATASETS = ("husky_wolf", "leaves", "imagenet")


@cache
def published(dataset: str) -> Report:
    study = replace(facts(colin.CONDITIONS), note=colin.LABEL)
    return get_reporter("meta_predictor")(frames_of(colin.people(dataset)), study)


def rows(dataset: str) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in published(dataset).json()["conditions"]}


@pytest.mark.parametrize("dataset", DATASETS)
def test_it_prints_every_accuracy_of_table_1(dataset: str) -> None:
    for name, n, printed in zip(
        colin.CONDITIONS, colin.SIZES[dataset], colin.ACCURACIES[dataset], strict=True
    ):
        row = rows(dataset)[name]
        assert row["n"] == n
        assert tuple(round(100 * a, 1) for a in row["accuracy"]) == printed


def test_it_prints_18_of_21_utilities_and_names_the_other_three() -> None:
    near, exceptions = 0, {}
    for dataset in DATASETS:
        for name, printed in zip(colin.CONDITIONS[1:], colin.UTILITIES[dataset], strict=True):
            utility = rows(dataset)[name]["utility"]
            if (dataset, name) in colin.EXCEPTIONS:
                exceptions[dataset, name] = round(utility, 3)
            else:
                assert utility == pytest.approx(printed, abs=0.005), (dataset, name)
                near += 1
    assert near == 18
    assert exceptions == pytest.approx(dict(colin.EXCEPTIONS), abs=0.001)


def test_the_ratio_of_means_is_the_published_form_of_utility() -> None:
    """How many of the 21 printed Utilities each form returns from the printed accuracies, to two decimals:
    counted once with another program (the trapezoid divides two areas)."""
    forms = {"means": 0, "ratios": 0, "trapezoid": 0}
    for dataset in DATASETS:
        base, *methods = (np.array(row) / 100 for row in colin.ACCURACIES[dataset])
        for accuracy, printed in zip(methods, colin.UTILITIES[dataset], strict=True):
            told = {
                "means": accuracy.mean() / base.mean(),
                "ratios": utility_mean_of_ratios(accuracy, base),
                "trapezoid": utility_trapezoid(accuracy, base),
            }
            for form, value in told.items():
                forms[form] += round(value, 2) == printed
    assert forms == {"means": 19, "ratios": 18, "trapezoid": 7}


@pytest.mark.parametrize(("metric", "dataset"), list(colin.CORRELATIONS))
def test_it_returns_the_published_correlations_with_utility(metric: str, dataset: str) -> None:
    scenarios = [
        Scenario(name, list(rows(name).values()), measured(metric, name), {})
        for name in (DATASETS if dataset == "all" else [dataset])
    ]
    (told,) = (each for each in correlations(scenarios) if each.metric == metric)
    points = sum(len(scenario.metrics) for scenario in scenarios)
    assert told.n == points == (18 if dataset == "all" else 6)
    assert told.r == pytest.approx(colin.CORRELATIONS[metric, dataset], abs=0.0075)


def measured(metric: str, dataset: str) -> dict[str, dict[str, float]]:
    """What the figure shows, as the metric is stored: of deletion one minus it is drawn."""
    axis = colin.AXES[metric][dataset]
    return {name: {metric: 1 - x if metric == "deletion" else x} for name, x in axis.items()}


@pytest.mark.parametrize("dataset", DATASETS)
def test_it_returns_the_published_f(dataset: str) -> None:
    f, df_between, df_within = colin.F_VALUES[dataset]
    anova = published(dataset).json()["anova"]
    assert anova["F"] == pytest.approx(f, abs=0.005)
    assert (anova["df_between"], anova["df_within"]) == (df_between, df_within)
    assert (anova["p"] < 0.001) == (dataset != "imagenet")


@pytest.mark.parametrize("dataset", DATASETS)
def test_it_returns_every_published_tukey_p(dataset: str) -> None:
    table = rows(dataset)
    for name, p in colin.TUKEY_P[dataset].items():
        assert table[name]["tukey_p"] == pytest.approx(p, abs=0.003), name
    significant = {name for name, row in table.items() if (row["tukey_p"] or 1.0) < 0.05}
    assert significant == colin.SIGNIFICANT[dataset]
    if dataset == "husky_wolf":
        assert table["grad_cam"]["tukey_p"] < 0.001


@pytest.mark.parametrize("dataset", DATASETS)
def test_it_agrees_with_statsmodels_on_the_same_people(dataset: str) -> None:
    accuracy = [(name, total / 21) for name, x in colin.people(dataset).items() for total in x.sum(axis=1)]
    table = pd.DataFrame(accuracy, columns=["condition", "accuracy"])
    witness = pairwise_tukeyhsd(table["accuracy"], table["condition"]).summary().data[1:]
    theirs = {frozenset(row[:2]): row[3] for row in witness}
    for pair in published(dataset).json()["tukey"]["pairs"]:
        assert pair["p"] == pytest.approx(theirs[frozenset((pair["first"], pair["second"]))], abs=6e-4)


def test_it_says_that_it_is_a_reconstruction() -> None:
    report = published("husky_wolf")
    assert report.json()["note"] == colin.LABEL
    assert "Reconstruction from published summaries, not the authors" in page(report)
