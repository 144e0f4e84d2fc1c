"""The drawn flow: every box equals the sum of those that it leads to, and its numbers are printed."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.frames import frame
from analysis.reports.base import Section
from analysis.reports.parts.flow import flow_section
from tests.analysis.reports.parts.test_flow import NAMES, at_gates, person, with_place
from tests.analysis.worlds import facts

pytestmark = pytest.mark.pure


def flow_of(people: list[dict[str, object]], *, sealed: bool = False) -> Section:
    return flow_section(frame("participants", people), facts(NAMES, 10), sealed=sealed)


def total(reasons: list[dict[str, Any]]) -> int:
    return sum(each["n"] for each in reasons)


@settings(max_examples=40)
@given(st.lists(st.one_of(at_gates, with_place), max_size=30))
def test_it_conserves_every_person(people: list[dict[str, object]]) -> None:
    boxes = flow_of(people).content["consort"]
    assert boxes["arrived"] == len(people)
    assert boxes["arrived"] == boxes["not_assigned"]["n"] + boxes["assigned"]
    assert boxes["not_assigned"]["n"] == total(boxes["not_assigned"]["reasons"])
    assert boxes["assigned"] == sum(group["assigned"] for group in boxes["groups"])
    for group in boxes["groups"]:
        assert group["assigned"] == group["lost"] + group["analysed"]
        assert group["lost"] == total(group["reasons"])
    assert boxes["assigned"] == boxes["lost"] + boxes["analysed"]


PEOPLE = [
    person("declined"),
    person("gates", rules=("quiz_attempts_max",)),
    person("gates"),
    person("passed", "control"),
    person("passed", "control"),
    person("screened", "control", ("total_minutes", "repeat_share_min")),
    person("withdrawn", "grad_cam", ("total_minutes",)),
    person("running", "grad_cam"),
    person("passed", "grad_cam") | {"excluded_by_hand": True},
]


def test_it_counts_a_person_once_under_the_first_reason() -> None:
    boxes = flow_of(PEOPLE).content["consort"]
    assert {each["reason"]: each["n"] for each in boxes["not_assigned"]["reasons"]} == {
        "did not consent": 1,
        "failed the quiz": 1,
        "still at the gates, or gone": 1,
    }
    by = {group["group"]: group for group in boxes["groups"]}
    assert by["control"]["reasons"] == [{"reason": "too fast or too slow", "n": 1}]
    assert {each["reason"] for each in by["grad_cam"]["reasons"]} == {
        "withdrew",
        "not finished or not judged yet",
        "left out by hand",
    }
    assert (by["baseline"]["assigned"], by["control"]["analysed"], by["grad_cam"]["analysed"]) == (0, 2, 0)


def test_it_prints_the_numbers_of_the_boxes() -> None:
    section = flow_of(PEOPLE)
    (figure,) = section.figures
    (axes,) = figure.draw().axes
    printed = "\n".join(text.get_text() for text in axes.texts)
    counts = [int(n) for n in re.findall(r"n = (\d+)", printed)]
    assert figure.data is not None
    boxes = [float(row[3] or 0) for row in figure.data.rows if row[2] == ""]
    assert sorted(counts) == sorted([*boxes, 4]), "and the sum of those who were lost"
    for _, _, reason, n in figure.data.rows:
        if reason:
            assert f"{reason} {n}" in " ".join(printed.split())


def test_it_draws_nothing_that_would_tell_who_was_left_out_while_sealed() -> None:
    section = flow_of(PEOPLE, sealed=True)
    assert section.figures == () and section.content["consort"] is None
    assert flow_of(PEOPLE[:-1], sealed=True).content["consort"]["analysed"] == 2


def test_it_draws_a_study_that_nobody_came_to() -> None:
    (figure,) = flow_of([]).figures
    assert figure.draw().axes and figure.data is not None
    assert [row[3] for row in figure.data.rows] == [0] * len(figure.data.rows)
