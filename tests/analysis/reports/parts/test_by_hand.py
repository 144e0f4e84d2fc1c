"""People who are excluded by hand: the main result leaves them out, a second result includes them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from analysis.exports.study_export import Request, export_study
from analysis.frames import Frames
from analysis.reports import get_reporter
from analysis.reports.output.html import page
from analysis.reports.report import Report
from analysis.stored_reports.refresh import refresh_report
from analysis.tables.response_reader import read_frames
from experiments.models import Session
from tests.analysis import stored
from tests.analysis.worlds import facts, frames_of

NAMES = ("baseline", "control", "grad_cam")
DECIDED = {"by": "grace", "reason": "Wrote that a colleague answered.", "at": "2026-02-03T10:00:00+00:00"}
pure = pytest.mark.pure
words_alone = pytest.mark.usefixtures("undrawn", "few_draws")


def answers() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    return {name: rng.binomial(7, p, (12, 3)) for name, p in zip(NAMES, (0.5, 0.55, 0.8), strict=True)}


def leaving_out(frames: Frames, *sessions: str) -> Frames:
    people = frames.participants.copy()
    chosen = people["session"].isin(sessions)
    people["excluded_by_hand"] = chosen.astype("boolean")
    people.loc[chosen, "excluded_reason"] = "Told us that the sound was off."
    return Frames(frames.trials, people, frames.stimuli)


def report_of(frames: Frames, **changes: object) -> Report:
    study = facts(NAMES, 12)
    return get_reporter("meta_predictor")(frames, replace(study, **changes))  # type: ignore[arg-type]


def mean_accuracy(counts: np.ndarray) -> float:
    return float((counts / 7).mean())


@pure
@words_alone
def test_it_gives_the_main_result_without_them_and_the_same_with_them() -> None:
    correct = answers()
    data = report_of(leaving_out(frames_of(correct), "grad_cam-0", "grad_cam-5", "baseline-3")).json()
    without = {
        "baseline": np.delete(correct["baseline"], 3, axis=0),
        "control": correct["control"],
        "grad_cam": np.delete(correct["grad_cam"], [0, 5], axis=0),
    }
    for part, people in ((data["conditions"], without), (data["by_hand"]["conditions"], correct)):
        for row in part:
            members = people[row["name"]]
            assert row["n"] == len(members)
            assert row["accuracy_mean"] == pytest.approx(mean_accuracy(members))
        utility = mean_accuracy(people["grad_cam"]) / mean_accuracy(people["baseline"])
        assert part[2]["utility"] == pytest.approx(utility)
    for anova, people in ((data["anova"], without), (data["by_hand"]["anova"], correct)):
        oracle = stats.f_oneway(*((people[name] / 7).mean(axis=1) for name in NAMES))
        assert (anova["F"], anova["p"]) == (pytest.approx(oracle.statistic), pytest.approx(oracle.pvalue))
    assert data["by_hand"]["n"] == 3 and data["pooled"]["n"] == 33
    assigned = {row["name"]: row["n"] for row in data["as_assigned"]["conditions"]}
    assert assigned == dict.fromkeys(NAMES, 12)


@pure
@words_alone
def test_it_counts_them_in_the_flow_and_tests_where_they_were() -> None:
    out = [f"grad_cam-{number}" for number in range(8)]
    report = report_of(leaving_out(frames_of(answers()), *out))
    flow = report.json()["flow"]
    assert (flow["passed"], flow["analysed"], flow["excluded_by_hand"]) == (36, 28, 8)
    assert [step["step"] for step in flow["steps"]][-2:] == ["passed", "analysed"]
    (rule,) = flow["exclusions"]
    assert (rule["rule"], rule["timing"], rule["count"]) == ("excluded_by_hand", "after", 8)
    assert rule["by_condition"] == {"baseline": 0, "control": 0, "grad_cam": 8}
    assert rule["test"]["p"] < 0.01
    text = page(report)
    assert "With the people excluded by hand" in text and "8 people were left out by hand" in text
    assert text.count("Told us that the sound was off.") == 8


@pure
@words_alone
def test_it_says_nothing_if_no_person_was_left_out() -> None:
    report = report_of(frames_of(answers()))
    data = report.json()
    assert data["by_hand"] == {"n": 0, "conditions": None, "anova": None, "tukey": None}
    assert data["flow"]["excluded_by_hand"] == 0 and "analysed" not in data["flow"]
    assert "excluded by hand" not in page(report)


@pure
@words_alone
def test_it_tells_no_person_s_condition_or_score_while_results_are_sealed() -> None:
    slots = facts(NAMES, 30, kept=12).slots
    before = report_of(frames_of(answers()), state="open", slots=slots)
    after = report_of(leaving_out(frames_of(answers()), "grad_cam-0"), state="open", slots=slots)
    assert after.seal.sealed and after.json()["by_hand"] is None
    # The decision changes only the count of excluded people.
    assert after.json()["pooled"] == before.json()["pooled"]
    assert after.json()["conditions"] == before.json()["conditions"]
    (rule,) = after.json()["flow"]["exclusions"]
    assert rule["count"] == 1 and rule["test"] is None
    assert set(rule["by_condition"].values()) == set(rule["rate_by_condition"].values()) == {None}
    assert after.json()["flow"]["by_condition"] == before.json()["flow"]["by_condition"]
    assert "Told us" not in page(after)


@pure
@words_alone
def test_it_keeps_the_main_result_to_those_that_screening_kept() -> None:
    frames = leaving_out(frames_of(answers()), "control-1")
    people = frames.participants.copy()
    people.loc[people["session"] == "control-1", "status"] = "screened"
    data = report_of(Frames(frames.trials, people, frames.stimuli)).json()
    assert data["by_hand"]["n"] == 0, "screened anyway"
    assert data["flow"]["excluded_by_hand"] == 0


@pytest.mark.django_db
@pytest.mark.usefixtures("undrawn", "few_draws")
def test_it_exports_the_decision_and_leaves_them_out_of_the_clean_table(tmp_path: Path) -> None:
    study = stored.opened()
    stored.full(study)
    out = Session.objects.filter(study=study, slot__condition__name="control").order_by("pk").first()
    assert out is not None
    Session.objects.filter(pk=out.pk).update(excluded=DECIDED)
    people = read_frames(study).participants
    decided = people[people["excluded_by_hand"]]
    assert list(decided["excluded_reason"]) == [DECIDED["reason"]] and list(decided["status"]) == ["passed"]
    assert set(people.loc[~people["excluded_by_hand"], "excluded_reason"]) == {""}
    for cleaned, rows in ((False, 12), (True, 11)):
        manifest = export_study(study, tmp_path / str(cleaned), Request(cleaned=cleaned))
        rows_of = {entry["name"]: entry["rows"] for entry in manifest["files"]}
        assert rows_of["participants.csv"] == rows


@pytest.mark.long(stays="test_it_gives_the_main_result_without_them_and_the_same_with_them")
@pytest.mark.django_db
@pytest.mark.usefixtures("undrawn", "few_draws")
def test_it_makes_a_report_anew_after_a_decision_and_after_its_withdrawal() -> None:
    study = stored.opened()
    stored.full(study)
    first = refresh_report(study, "human")
    out = Session.objects.filter(study=study).order_by("pk")[:1]
    Session.objects.filter(pk__in=[session.pk for session in out]).update(excluded=DECIDED)
    second = refresh_report(study, "human")
    assert second.created_at > first.created_at and second.json["by_hand"]["n"] == 1
    assert refresh_report(study, "human").created_at == second.created_at
    Session.objects.update(excluded={})
    assert refresh_report(study, "human").json["by_hand"]["n"] == 0
