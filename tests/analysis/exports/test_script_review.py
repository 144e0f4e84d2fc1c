"""The scripts of a blind review give the report's numbers, in Python and in R; intervals that are drawn at
random agree within the error of drawing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.reports.blind_review.report import report as report_of
from tests.analysis.exports.scripted import LANGUAGES, Key, Numbers, agrees, ends, package, run
from tests.analysis.reviewed import MODEL, PEOPLE, Planted, planted, review, review_facts, review_frames

pytestmark = [pytest.mark.pure, pytest.mark.parametrize("language", LANGUAGES)]
DRAWING_ERROR = 0.2
"""In standard errors of the estimate. An end of a 95 % interval is the estimate less the 2.5 % quantile of
10,000 t values times the standard error; that quantile has the error sqrt(.025 * .975 / 10,000) / .054 = .03,
the difference of two such .04, and .2 is nearly five times that."""


def expected(report: dict[str, Any]) -> Iterator[tuple[Key, float | None]]:
    acceptance = report["acceptance"]
    for row in acceptance["rows"]:
        told = {what: row[what] for what in ("reviews", "cannot_say", "cannot_say_accepted", "right")}
        told |= {what: row["accepted"].get(what) for what in ("people", "items")}
        told |= {"accepted": row["accepted"]["estimate"], "in_time": row["within_budget"]["estimate"]}
        told |= ends("naive_", row["accepted_naive"])
        yield from ((("acceptance", row["name"], what), value) for what, value in told.items())
    for row in acceptance["differences"]:
        told = {what: row["difference"].get(what) for what in ("estimate", "se", "people", "items")}
        told |= {"acc_L": row["acc"]["estimate"], **ends("naive_", row["newcombe_naive"])}
        yield from ((("difference", row["name"], what), value) for what, value in told.items())
    for row in report["signal"]:
        key = f"{row['name']}, {'with' if row['explained'] else 'without'} explanations, {limit_of(row)}"
        for what in ("hits", "false", "errors", "lures", "d_prime", "criterion"):
            yield ("signal", key, what), row[what]["estimate"]
    useful = report["usefulness"] or {"rows": (), "primary_budget_ms": None}
    for row in useful["rows"]:
        if row["budget_ms"] in (None, useful["primary_budget_ms"]):
            for what in ("gain_hits", "gain_false", "usefulness", "paper_difference"):
                yield ("usefulness", f"{row['name']}, {limit_of(row)}", what), row[what]["estimate"]


def limit_of(row: dict[str, Any]) -> str:
    return "any time" if row["budget_ms"] is None else "in budget"


def apart(report: dict[str, Any], numbers: Numbers, low: str, high: str) -> float:
    """The largest distance of an end from the report's 95 % interval, in standard errors."""
    gaps = [
        abs(numbers["difference", row["name"], name] - end) / row["difference"]["se"]
        for row in report["acceptance"]["differences"]
        for name, end in zip((low, high), row["difference"]["interval"], strict=True)
    ]
    return float(max(gaps))


def test_acceptance_and_usefulness_are_those_of_the_report(language: str, tmp_path: Path) -> None:
    plan = Planted(right_gain=0.5, wrong_gain=-0.5, solved={PEOPLE: 0.95, MODEL: 0.3, "grad_cam": 0.7})
    frames = planted(plan, leads=16, tasks=60, seed=4)
    people = frames.participants
    people.loc[people["session"] == "p003-0", "status"] = "screened"
    people.loc[people["session"] == "p004-0", "excluded_by_hand"] = True
    facts = review_facts((MODEL, "grad_cam"), budget_ms=2000, margin=0.05)
    report = package(tmp_path / "p", frames, facts)
    numbers, printed = run(language, tmp_path / "p")
    assert agrees(expected(report), numbers) == 4 * 10 + 3 * 7 + 16 * 6 + 8 * 4
    assert apart(report, numbers, "low", "high") < DRAWING_ERROR
    assert apart(report, numbers, "naive_low", "naive_high") > DRAWING_ERROR, "independence is another model"
    for row in report["acceptance"]["differences"]:
        narrow = [numbers["difference", row["name"], f"narrow_{end}"] for end in ("low", "high")]
        gap = np.abs(np.subtract(narrow, row["interval_90"])).max()
        assert gap < DRAWING_ERROR * row["difference"]["se"]
        assert f": {row['verdict']['decision']}; acc_L" in printed
    assert numbers["acceptance", PEOPLE, "people"] == 14
    assert "margin 5:" in printed and "in 2 s %" in printed and "Not re-run here" in printed


def test_one_lead_and_silent_solutions_give_no_interval(language: str, tmp_path: Path) -> None:
    """A lead who rejects, a solution without an answer, an item without truth, an unknown time."""
    rows = [
        review("p", "i1", PEOPLE, accepted=False),
        review("p", "i2", PEOPLE, accepted=False, answer="cannot_say", right=False),
        review("p", "i3", MODEL, accepted=True, right=None, rt_ms=None),
        review("p", "i4", MODEL, accepted=True, use="", rt_ms=4000),
        review("p", "i5", MODEL, accepted=True, right=False, use="known"),
    ]
    facts = review_facts(runs=1)
    report = package(tmp_path / "p", review_frames(rows), facts)
    numbers, printed = run(language, tmp_path / "p")
    agrees(expected(report), numbers)
    assert ("difference", MODEL, "low") not in numbers and ("difference", MODEL, "acc_L") not in numbers
    assert "no verdict, which needs 12 leads, 30 tasks and an interval" in printed
    assert report_of(review_frames(rows), facts).json()["acceptance"]["differences"][0]["verdict"] is None


def test_the_stage_of_solving_is_refused_in_a_sentence(language: str, tmp_path: Path) -> None:
    frames = review_frames([review("p", "i1", PEOPLE, accepted=True)])
    package(tmp_path / "p", frames, review_facts(role="solve"))
    with pytest.raises(AssertionError, match="of the stage in which people solve, which has no planned test"):
        run(language, tmp_path / "p")


def test_a_package_of_one_source_is_refused_in_a_sentence(language: str, tmp_path: Path) -> None:
    frames = review_frames([review("p", "i1", PEOPLE, accepted=True)])
    package(tmp_path / "p", frames, review_facts(()))
    with pytest.raises(AssertionError, match="one source of people with at least one other"):
        run(language, tmp_path / "p")
