"""Utility beside automatic metrics: means by hand, correlations against scipy, p over every order by hand."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr

from analysis.frames import Frames, frame
from analysis.reports.drawing.figure_files import as_pdf
from analysis.reports.meta_predictor.report import report as report_report
from analysis.reports.output.html import page
from analysis.reports.report import Report
from tests.analysis.reports.test_figures import points
from tests.analysis.reports.utility.test_faithfulness import DELETION, stored
from tests.analysis.worlds import facts, frames_of

pytestmark = [pytest.mark.pure, pytest.mark.usefixtures("undrawn", "few_draws")]
METHODS = ("saliency", "grad_cam", "occlusion", "smooth_grad", "rise")
RIGHT = {
    "baseline": 4,
    "control": 4,
    "saliency": 5,
    "grad_cam": 6,
    "occlusion": 7,
    "smooth_grad": 3,
    "rise": 5,
}
"""Of 14 answers of each person, less the person's own 0, 1 or 2; so equal Utility of saliency and RISE."""
DASH = "\N{EN DASH}"


def made(numbers: Any, methods: Sequence[str] = METHODS, **more: Any) -> Report:
    names = ("baseline", "control", *methods)
    counts = {name: np.array([[RIGHT[name] - i % 3, RIGHT[name]] for i in range(6)]) for name in names}
    plain = frames_of(counts)
    frames = Frames(plain.trials, plain.participants, frame("stimuli", stored(numbers)))
    return report_report(frames, facts(names, **more))


def utility(name: str) -> float:
    """Mean accuracy divided by the baseline's, by hand: people lose 1 of 14 answers on average, twice."""
    return (2 * RIGHT[name] - 1) / (2 * RIGHT["baseline"] - 1)


def values(*means: float) -> dict[str, tuple[float, float]]:
    """Of METHODS, with these means over two items; the control's is far off."""
    return {"control": (99.0, 99.0), **{n: (m - 1, m + 1) for n, m in zip(METHODS, means, strict=False)}}


def by_every_order(x: Sequence[float], y: Sequence[float]) -> float:
    """Twice the smaller tail of the correlation over all orders of y."""
    seen = [float(np.corrcoef(x, list(order))[0, 1]) for order in permutations(y)]
    r = float(np.corrcoef(x, y)[0, 1])
    more, fewer = (sum(sign * each >= sign * r - 1e-9 for each in seen) for sign in (1, -1))
    return min(1.0, 2 * min(more, fewer) / len(seen))


def test_it_correlates_utility_with_each_metric_over_methods() -> None:
    means = (1.0, 4.0, 3.5, 2.0, 2.5)
    report = made({"entropy": values(*means)})
    told = report.json()["metrics"]
    (measure,) = told["metrics"]
    right = [utility(name) for name in METHODS]
    assert {row["condition"]: row["value"] for row in measure["conditions"]} == pytest.approx(
        {"control": 99.0, **dict(zip(METHODS, means, strict=True))}
    )
    assert [row["utility"] for row in measure["conditions"][1:]] == pytest.approx(right)
    assert (told["methods"], measure["n"]) == (5, 5)
    assert measure["pearson"] == pytest.approx(pearsonr(means, right).statistic)
    assert measure["spearman"] == pytest.approx(spearmanr(means, right).statistic)
    assert measure["p_pearson"] == pytest.approx(by_every_order(means, right))
    # Mean ranks; saliency and RISE have equal Utility.
    assert measure["p_spearman"] == pytest.approx(by_every_order([1, 5, 4, 2, 3], [2.5, 4, 5, 1, 2.5]))
    (section,) = (section for section in report.sections if section.key == "metrics")
    assert section.mark == "exploratory"
    assert "over 5 methods of one study says little" in page(report)


def test_the_figure_shows_the_methods_and_the_table_the_control_too() -> None:
    report = made({"entropy": values(1, 2, 3, 4, 5), "sparsity": values(1, 1, 2, 2, 3)})
    (section,) = (section for section in report.sections if section.key == "metrics")
    (figure,) = section.figures
    expected = [(float(x), utility(name)) for x, name in enumerate(METHODS, 1)]
    drawing = figure.draw()
    drawn = [points_of for points_of in points(drawing) if not np.isnan(points_of).any()]
    assert {(round(x, 9), round(y, 9)) for x, y in expected} <= {(round(x, 9), round(y, 9)) for x, y in drawn}
    assert len(drawn) == 10 and max(x for x, _ in drawn) < 99
    assert figure.data is not None and len(figure.data.rows) == 10
    metric, label, value, ratio, low, high = figure.data.rows[5]
    assert (metric, label, value) == ("entropy", "Saliency", 1.0)
    assert ratio == pytest.approx(utility("saliency"))
    assert isinstance(low, float) and isinstance(high, float) and low < utility("saliency") < high
    assert as_pdf(drawing).startswith(b"%PDF")
    table = section.tables[0]
    assert table.columns[3:] == ("sparsity", "entropy")
    assert [row[0] for row in table.rows][:2] == ["Control", "Saliency"] and len(table.rows) == 6
    assert table.rows[1][1] == f"{utility('saliency'):.2f}" and table.rows[1][3:] == ("1.000", "1.000")


def test_faithfulness_has_both_columns_and_says_where_they_differ() -> None:
    report = made(DELETION, ("saliency", "grad_cam"))
    told = report.json()["metrics"]["metrics"]
    assert [(measure["metric"], measure["column"]) for measure in told] == [
        ("deletion", "method"),
        ("deletion", "seen"),
    ]
    by = [{row["condition"]: row["value"] for row in measure["conditions"]} for measure in told]
    assert by[0] == pytest.approx({"control": 0.1, "saliency": 0.7, "grad_cam": 0.4}), "one less deletion"
    assert by[1] == pytest.approx({"control": 0.2, "saliency": 0.4, "grad_cam": 0.7})
    (section,) = (section for section in report.sections if section.key == "metrics")
    assert "stand in another order by what was seen" in section.paragraphs[1]
    minus = "1 \N{MINUS SIGN} deletion"
    assert section.tables[0].columns[3:] == (f"{minus}, the method", f"{minus}, what was seen")


def test_a_twin_that_was_not_measured_is_named() -> None:
    report = made({"insertion": values(1, 2, 3, 4, 5)})
    (section,) = (section for section in report.sections if section.key == "metrics")
    assert {row[4] for row in section.tables[0].rows} == {DASH}
    assert "Not measured: insertion_drawn;" in section.tables[0].note
    assert section.tables[1].rows[1] == ("insertion, what was seen", "0", DASH, DASH, DASH, DASH)


@pytest.mark.parametrize(("methods", "correlated"), [(1, False), (2, False), (3, True), (4, True)])
def test_few_methods_have_no_p_and_fewer_no_correlation(methods: int, correlated: bool) -> None:
    report = made({"entropy": values(1, 3, 2, 4)}, METHODS[:methods])
    (measure,) = report.json()["metrics"]["metrics"]
    assert measure["n"] == methods
    for kind in ("pearson", "spearman"):
        assert (measure[kind] is not None) == correlated
        assert measure[f"p_{kind}"] is None
    assert ("says little" in page(report)) == correlated


def test_values_that_are_equal_have_no_correlation() -> None:
    (measure,) = made({"entropy": values(2, 2, 2, 2, 2)}).json()["metrics"]["metrics"]
    assert measure["n"] == 5
    assert {measure[key] for key in ("pearson", "spearman", "p_pearson", "p_spearman")} == {None}


def test_it_is_there_only_if_something_was_measured_and_the_study_is_open() -> None:
    assert "metrics" not in made({}).json()
    assert "metrics" not in made({"completeness": values(1, 2, 3, 4, 5)}).json()
    numbers = {"entropy": values(1, 2, 3, 4, 5)}
    sealed = made(numbers, wanted=30, kept=1, state="open")
    assert sealed.seal.sealed and "metrics" not in sealed.json()
    assert "metrics" in made(numbers).json()
