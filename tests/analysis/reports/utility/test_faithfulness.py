"""Faithfulness of maps and of what was seen: means by hand, and one sentence where orders differ."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from io import StringIO
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from analysis.frames import Frames, frame
from analysis.reports.meta_predictor.report import report as report_report
from analysis.reports.output.html import page
from analysis.reports.output.terminal import print_report
from analysis.reports.utility import faithfulness
from analysis.reports.utility.scenarios import Scenario, as_json, rankings, tables
from tests.analysis.worlds import facts, frames_of

pytestmark = [pytest.mark.pure, pytest.mark.usefixtures("undrawn", "few_draws")]
NAMES = ("baseline", "control", "saliency", "grad_cam")
Numbers = Mapping[str, Mapping[str, Iterable[float]]]
"""Metric -> condition -> a value for each item."""
DELETION: Numbers = {
    "deletion": {"control": (0.9, 0.9), "saliency": (0.2, 0.4), "grad_cam": (0.5, 0.7)},
    "deletion_drawn": {"control": (0.8, 0.8), "saliency": (0.6, 0.6), "grad_cam": (0.4, 0.2)},
}
"""Lower is better: saliency before Grad-CAM by their own maps (.3, .6), after it as drawn (.6, .3)."""


def stored(numbers: Numbers, tied: Mapping[str, float] | None = None, **more: Any) -> list[dict[str, Any]]:
    """Rows of the table of stimuli."""
    cells: dict[tuple[str, str], list[dict[str, Any]]] = {("baseline", "i0"): []}
    for metric, by_condition in numbers.items():
        for condition, values in by_condition.items():
            for item, value in enumerate(values):
                measure = {"metric": metric, "parameters": {"steps": 10}, "version": 2, "value": value}
                measure |= {"unit": "mean score", "scores": "method"} | more
                measure |= {"tied": tied[metric]} if tied else {}
                cells.setdefault((condition, f"i{item}"), []).append(measure)
    return [
        {"study": "s", "item": item, "condition": condition, "metrics": json.dumps(some) if some else ""}
        for (condition, item), some in cells.items()
    ]


def with_stimuli(rows: list[dict[str, Any]]) -> Frames:
    plain = frames_of({name: np.full((3, 2), 4, np.int64) for name in NAMES})
    return Frames(plain.trials, plain.participants, frame("stimuli", rows))


def content_of(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    (section,) = faithfulness.sections(with_stimuli(rows), facts(NAMES))
    return list(section.content)


def test_it_prints_both_columns_and_says_where_their_orders_differ() -> None:
    rows = stored(DELETION, {"deletion": 0.25, "deletion_drawn": 0.5})
    report = report_report(with_stimuli(rows), facts(NAMES))
    (measure,) = report.json()["faithfulness"]
    means = {row["condition"]: (row["method"], row["seen"]) for row in measure["conditions"]}
    assert {name: pytest.approx(pair) for name, pair in means.items()} == {
        "control": (0.9, 0.8),
        "saliency": (0.3, 0.6),
        "grad_cam": (0.6, 0.3),
    }
    assert {(row["tied_method"], row["tied_seen"]) for row in measure["conditions"]} == {(0.25, 0.5)}
    assert measure["differs"] and measure["better"] == "lower"
    said = (
        "By deletion, the methods stand in another order by what was seen (Grad-CAM, Saliency) than by their "
        "own maps (Saliency, Grad-CAM); tied are 50.0 % and 25.0 % of the pixels."
    )
    out = StringIO()
    print_report(report, Console(file=out, width=80, no_color=True))
    for text in (page(report), " ".join(out.getvalue().split())):
        assert said in text
    (table,) = [table for table in report.tables().values() if table.key.startswith("faithfulness")]
    assert table.columns[2:] == ("The method", "What was seen", "Tied, the method", "Tied, what was seen")
    assert ("Saliency", "2", "0.300", "0.600", "0.25", "0.50") in table.rows


def test_it_is_never_sealed() -> None:
    rows = stored(DELETION)
    collecting = facts(NAMES, wanted=30, kept=1, state="open")
    report = report_report(with_stimuli(rows), collecting)
    assert report.seal.sealed and report.json()["faithfulness"]


@pytest.mark.parametrize(
    ("metric", "by_map", "seen", "differs"),
    [
        ("deletion", (0.1, 0.2), (0.3, 0.4), False),
        ("deletion", (0.1, 0.2), (0.4, 0.3), True),
        ("deletion", (0.1, 0.2), (0.3, 0.3), False),
        ("insertion", (0.1, 0.2), (0.3, 0.4), False),
        ("road", (-0.1, 0.2), (0.3, 0.0), True),
    ],
)
def test_only_methods_that_change_places_differ(
    metric: str, by_map: tuple[float, float], seen: tuple[float, float], differs: bool
) -> None:
    numbers = {
        name: {"control": (9.0,), "saliency": (pair[0],), "grad_cam": (pair[1],)}
        for name, pair in ((metric, by_map), (f"{metric}_drawn", seen))
    }
    (measure,) = content_of(stored(numbers))
    (sentence,) = faithfulness.sentences([measure])
    assert measure["differs"] == differs and ("in one order" in sentence) != differs
    assert bool(faithfulness.differing([measure])) == differs and "tied" not in sentence
    better = min if metric == "deletion" else max
    first = ("Saliency", "Grad-CAM")[by_map.index(better(by_map))]
    assert measure["order"]["method"][0] == first


def test_means_are_over_the_items_that_both_have() -> None:
    rows = stored({"road": {"saliency": (1.0, 3.0)}, "road_drawn": {"saliency": (5.0,)}})
    (measure,) = content_of(rows)
    assert [(row["n"], row["method"], row["seen"]) for row in measure["conditions"]] == [(1, 1.0, 5.0)]
    assert measure["differs"] is None, "one method has no order"


def test_a_column_that_was_not_measured_is_named() -> None:
    rows = stored({"insertion": {"saliency": (0.5,), "grad_cam": (0.6,)}})
    (section,) = faithfulness.sections(with_stimuli(rows), facts(NAMES))
    assert "Not measured: insertion_drawn" in section.tables[0].note and not section.paragraphs
    assert {row[3] for row in section.tables[0].rows} == {"\N{EN DASH}"}
    assert faithfulness.sections(with_stimuli(stored({"entropy": {"saliency": (1.0,)}})), facts(NAMES)) == []


def test_settings_are_kept_apart_and_the_newest_version_counts() -> None:
    rows = stored(DELETION)
    other = stored(DELETION, parameters={"steps": 20})
    older = stored({"deletion": {"saliency": (7.0, 7.0)}}, version=1)
    cells: dict[tuple[str, str], list[Any]] = {}
    for row in (*older, *rows, *other, *older):
        cells.setdefault((row["condition"], row["item"]), []).extend(json.loads(row["metrics"] or "[]"))
    joined = [
        {"study": "s", "item": item, "condition": condition, "metrics": json.dumps(some) if some else ""}
        for (condition, item), some in cells.items()
    ]
    content = content_of(joined)
    assert [measure["parameters"] for measure in content] == [{"steps": 10}, {"steps": 20}]
    first, second = faithfulness.sentences(content)
    assert "By deletion (steps 10)," in first and "By deletion (steps 20)," in second
    assert content[0]["conditions"][1]["method"] == pytest.approx(0.3)


def test_scenarios_have_the_same_columns() -> None:
    (section,) = faithfulness.sections(with_stimuli(stored(DELETION)), facts(NAMES))
    told = [Scenario(slug, [], {}, {}, (), section.content) for slug in ("bias", "failure")]
    table = next(table for table in tables(told) if table.key == "scenario_faithfulness")
    assert ("bias", "deletion", "Saliency", "0.300", "0.600", "\N{EN DASH}", "\N{EN DASH}") in table.rows
    assert len(table.rows) == 6
    assert [said.split(":")[0] for said in rankings(told)] == ["bias", "failure"]
    assert as_json(told)["rankings"] == list(rankings(told))
    assert "scenario_faithfulness" not in {table.key for table in tables([Scenario("none", [], {}, {})])}
