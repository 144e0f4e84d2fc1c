"""The report of the stage in which people solve: numbers by hand, the seal, thin data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from statsmodels.stats.proportion import proportion_confint

from analysis.frames import Frames
from analysis.reports.blind_review.report import report
from analysis.reports.output.html import page
from analysis.stats.ratings.clustered_means import clustered_mean
from tests.analysis.reviewed import PEOPLE, SLUG, review_facts, review_frames

pytestmark = pytest.mark.pure
TRUTHS = {"i0": "3", "i1": "3", "i2": "8", "k0": "5"}


def solved(
    solver: str,
    item: str,
    choice: str,
    region: Sequence[int] | None = None,
    *,
    use: str = "task",
    **more: Any,
) -> dict[str, object]:
    """One row of `trials`."""
    return {
        "study": SLUG,
        "participant": solver,
        "session": f"{solver}-0",
        "origin": "human",
        "condition": PEOPLE,
        "role": "baseline",
        "block": 0,
        "phase": "test",
        "kind": "solve",
        "check": "",
        "item": item,
        "explained": False,
        "response": choice,
        "use": use,
        "region": json.dumps(list(region)) if region else None,
        "region_cells": len(region) if region else None,
        "rt_ms": 4000,
        **more,
    }


def frames_of(rows: Sequence[dict[str, object]]) -> Frames:
    stimuli = [{"study": SLUG, "item": item, "condition": PEOPLE, "truth": t} for item, t in TRUTHS.items()]
    return review_frames(rows, stimuli=stimuli)


ROWS = [
    solved("p0", "i0", "3", [0, 1, 2, 3], rt_ms=2000),
    solved("p1", "i0", "3", [2, 3, 4, 5], rt_ms=6000),
    solved("p2", "i0", "8", [2, 3]),
    solved("p0", "i1", "cannot_say"),
    solved("p1", "i2", "8", [9]),
    solved("p2", "i2", "8", [9]),
    solved("p0", "k0", "5", [1], use="known"),
    solved("p1", "k0", "6", [1], use="known"),
]


def test_accuracy_areas_and_abstentions_are_counted_by_hand() -> None:
    made = report(frames_of(ROWS), review_facts(role="solve", grid=4))
    told = {row["truth"]: row for row in made.json()["answers"]}
    everything = told[""]
    assert (everything["solutions"], everything["accuracy"], everything["cannot_say"]) == (6, 4 / 6, 1 / 6)
    assert (told["3"]["accuracy"], told["8"]["accuracy"]) == (2 / 4, 1.0)
    assert told["3"]["area_median"] == 4 / 16 and told["8"]["area_median"] == 1 / 16
    ends = clustered_mean(
        [1, 1, 0, 0, 1, 1], ["p0", "p1", "p2", "p0", "p1", "p2"], ["i0", "i0", "i0", "i1", "i2", "i2"]
    ).interval
    assert ends is not None and everything["interval"] == [max(0, ends.low), min(1, ends.high)]
    assert made.tables()["answers"].rows[1] == (
        "3", "4", "50.0", made.tables()["answers"].rows[1][3], "25.0", "25.0", "4.0"
    )  # fmt: skip
    assert made.json()["pooled"]["share"] == 4 / 6 and made.json()["pooled"]["answers"] == 6
    assert "66.7" in page(made)


def test_solvers_are_compared_on_the_answer_and_then_on_the_region() -> None:
    """Task i0: p0 and p1 say 3 with 2 cells of 6 in both; p2 says 8. Task i2: both say 8, the same cell."""
    made = report(frames_of(ROWS), review_facts(role="solve", grid=4))
    told = made.json()["agreement"]
    assert (told["pairs"], told["same_answer"]) == (4, 0.5)
    assert told["overlap"]["mean"] == pytest.approx((2 / 6 + 1) / 2)
    assert (told["overlap"]["items"], told["overlap"]["pairs"], told["overlap"]["apart"]) == (2, 2, 0)
    assert made.tables()["overlap"].rows[0][:3] == ("2", "2", "0.67")


def test_known_tasks_audit_solvers_and_are_in_no_other_number() -> None:
    made = report(frames_of(ROWS), review_facts(role="solve", grid=4))
    told = made.json()["audits"]
    assert (told["tasks"], told["right"]) == (2, 1)
    assert told["interval"] == pytest.approx(proportion_confint(1, 2, method="wilson"))
    assert made.tables()["audits"].rows == (("p1", "1", "0"),)
    assert "1 of 2 solvers solved all of theirs" in page(made)


def test_an_answer_that_is_stored_with_its_region_is_read_too() -> None:
    """Exports of today keep {"choice", "region"} in `response`."""
    whole = [
        {**row, "response": json.dumps({"choice": row["response"], "region": [0]})}
        if row["response"] != "cannot_say"
        else row
        for row in ROWS
    ]
    facts = review_facts(role="solve", grid=4)
    assert (
        report(frames_of(whole), facts).json()["answers"] == report(frames_of(ROWS), facts).json()["answers"]
    )


def test_nothing_by_digit_is_told_while_sealed() -> None:
    made = report(frames_of(ROWS), review_facts(role="solve", grid=4, state="open", kept=3))
    assert made.seal.sealed and "answers" not in made.json() and "agreement" not in made.json()
    assert made.json()["pooled"]["share"] == 4 / 6


@pytest.mark.parametrize("rows", [[], ROWS[:1], [ROWS[3]], ROWS[6:]])
def test_thin_data_are_a_report_with_sentences(rows: list[dict[str, object]]) -> None:
    made = report(frames_of(rows), review_facts(role="solve", grid=4))
    assert "NaN" not in json.dumps(made.json())
    assert "No task was solved by two people, so none are compared." in page(made)
