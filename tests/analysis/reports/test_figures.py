"""Figures show the values of the rows, in the same colours and bytes every time."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from analysis.facts import ConditionFacts
from analysis.reports.drawing import figures
from analysis.reports.drawing.figure_files import as_pdf, as_svg_file, inline
from analysis.reports.drawing.figures import BASELINE, CONTROL, OKABE_ITO, Look
from tests.analysis.worlds import facts

pytestmark = pytest.mark.pure
NAMES = ("baseline", "control", "grad_cam")


def row(name: str, **changes: Any) -> dict[str, Any]:
    role = {"baseline": "baseline", "control": "control"}.get(name, "method")
    intervals = {
        "accuracy": [[0.4, 0.6], [0.5, 0.7], None],
        "accuracy_mean": [0.45, 0.65],
        "utility": [1.0, 1.4],
        "utility_simultaneous": [0.9, 1.5],
    }
    values = {"accuracy": [0.5, 0.6, 0.55], "accuracy_mean": 0.55, "utility": 1.2, "intervals": intervals}
    return {"name": name, "label": name.capitalize(), "role": role, **values, **changes}


def look(origin: str = "human") -> Look:
    return Look.of(facts(NAMES), origin)


def points(figure: Any) -> list[tuple[float, float]]:
    """The marks of all panels, as (x, y)."""
    return [
        (float(x), float(y))
        for axes in figure.axes
        for line in axes.lines
        if line.get_marker() == "o"
        for x, y in zip(np.atleast_1d(line.get_xdata()), np.atleast_1d(line.get_ydata()), strict=True)
    ]


def test_it_gives_every_condition_one_colour() -> None:
    names = (*NAMES, *(f"method-{i}" for i in range(len(OKABE_ITO) + 1)))
    colours = Look.of(facts(names), "human").colours
    assert set(colours) == set(names)
    assert (colours["baseline"], colours["control"]) == (BASELINE, CONTROL)
    methods = [colours[name] for name in names[2:]]
    assert methods[: len(OKABE_ITO)] == list(OKABE_ITO)
    assert methods[len(OKABE_ITO)] == OKABE_ITO[0], "after the last colour the first comes again"


def test_it_takes_a_role_that_it_does_not_know_for_a_method() -> None:
    study = facts(NAMES)
    study = replace(study, conditions=(ConditionFacts("expert", "Expert", "human_expert", 1, 1),))
    assert Look.of(study, "human").colours == {"expert": OKABE_ITO[0]}
    assert Look.of(replace(study, conditions=()), "human").colours == {}


@pytest.mark.parametrize(
    ("origin", "stamp", "many"),
    [
        ("human", "", "people"),
        ("simulated", "computational observers", "observers"),
        ("pilot", "pilot", "people"),
    ],
)
def test_it_stamps_what_is_not_a_person_s_result(origin: str, stamp: str, many: str) -> None:
    chosen = look(origin)
    assert (chosen.stamp, chosen.many) == (stamp, many)
    drawn = figures.forest([row("grad_cam")], chosen)
    assert drawn.get_suptitle() == stamp


def test_it_draws_a_forest_of_methods_and_control() -> None:
    rows = [row("baseline", utility=None), row("control", utility=0.9), row("grad_cam", utility=1.3)]
    assert points(figures.forest(rows, look())) == [(1.3, 0.0), (0.9, 1.0)]


def test_it_draws_no_bar_for_an_interval_without_end() -> None:
    open_ended = {"utility": [0.9, None], "utility_simultaneous": None}
    (axes,) = figures.forest([row("grad_cam", intervals=open_ended)], look()).axes
    assert [line for line in axes.lines if len(line.get_xdata()) == 2 and line.get_linewidth() > 1.1] == []


def test_it_draws_each_person_and_the_mean() -> None:
    scores = pd.DataFrame({"condition": ["control"] * 3 + ["grad_cam"], "accuracy": [0.2, 0.4, 0.6, 1.0]})
    rows = [row("control", accuracy_mean=0.4), row("grad_cam", accuracy_mean=1.0)]
    (axes,) = figures.people(rows, scores, look()).axes
    dots = [x for line in axes.lines if line.get_marker() == "." for x in line.get_xdata()]
    assert sorted(dots) == pytest.approx([20, 40, 60, 100])
    assert points(axes.figure) == [(40.0, 1.0), (100.0, 0.0)]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["Grad_cam", "Control"]


def test_it_leaves_out_a_condition_without_people() -> None:
    scores = pd.DataFrame({"condition": ["control"], "accuracy": [0.5]})
    rows = [row("control", accuracy_mean=0.5), row("grad_cam", accuracy_mean=None)]
    assert points(figures.people(rows, scores, look())) == [(50.0, 1.0)]
    drawn = figures.blocks([row("grad_cam", accuracy=None)], look())
    assert all(not axes.get_visible() for axes in drawn.axes)


def test_it_draws_a_gap_for_a_block_without_answers() -> None:
    drawn = figures.blocks([row("grad_cam", accuracy=[0.5, None, 0.7])], look())
    ys = [y for _, y in points(drawn)]
    assert ys[0] == 50.0 and np.isnan(ys[1]) and ys[2] == pytest.approx(70.0)


def test_it_has_a_panel_for_every_method_and_hides_the_others() -> None:
    names = tuple(f"m{i}" for i in range(5))
    chosen = Look.of(facts(("baseline", *names)), "human")
    drawn = figures.blocks([row("baseline"), *(row(name) for name in names)], chosen)
    assert [axes.get_visible() for axes in drawn.axes] == [True] * 5 + [False] * 3
    assert [axes.get_title(loc="left") for axes in drawn.axes[:5]] == [n.capitalize() for n in names]


@pytest.mark.parametrize(
    ("label", "lines"),
    [
        ("Grad-CAM", "Grad-CAM"),
        ("Integrated Gradients", "Integrated\nGradients"),
        ("Bottom up saliency map", "Bottom up\nsaliency map"),
        ("Donaudampfschifffahrt", "Donaudampfschifffahrt"),
    ],
)
def test_it_folds_long_labels_at_a_space(label: str, lines: str) -> None:
    assert figures.fold_label(label) == lines


@pytest.mark.parametrize(("chance", "drawn"), [(0.5, [50.0]), (0.25, [25.0]), (None, [])])
def test_it_draws_chance_by_the_number_of_answers(chance: float | None, drawn: list[float]) -> None:
    scores = pd.DataFrame({"condition": ["control"], "accuracy": [0.5]})
    (axes,) = figures.people([row("control")], scores, look(), chance=chance).axes
    dashed = [line for line in axes.lines if line.get_linestyle() == "--"]
    assert [float(line.get_xdata()[0]) for line in dashed] == drawn


def drawing() -> Figure:
    drawn: Figure = figures.forest([row("grad_cam")], look())
    return drawn


def test_it_writes_the_same_bytes_every_time() -> None:
    assert as_svg_file(drawing(), "a") == as_svg_file(drawing(), "a")
    assert as_pdf(drawing()) == as_pdf(drawing())


def test_it_keeps_the_ids_of_two_figures_on_one_page_apart() -> None:
    first, second = (inline(as_svg_file(drawing(), key), key) for key in "ab")
    ids = [set(re.findall(r'\bid="([^"]+)"', svg)) for svg in (first, second)]
    assert ids[0] and ids[0].isdisjoint(ids[1])
    for svg, known in zip((first, second), ids, strict=True):
        used = set(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', svg))
        assert {a or b for a, b in used} <= known


def test_it_draws_a_label_as_it_is_written() -> None:
    label = "$x^2$ <b>&amp;</b> \N{SNOWMAN}"
    (axes,) = figures.forest([row("grad_cam", label=label)], look()).axes
    assert axes.get_yticklabels()[0].get_text() == label
    assert b"<b>" not in as_svg_file(axes.figure, "k")
