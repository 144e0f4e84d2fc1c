"""The meta-predictor report on thin data: few people, a block without answers, conditions alone."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from scipy import stats

from analysis.frames import Frames
from analysis.reports import get_reporter
from analysis.reports.output.files import write_report
from analysis.reports.output.html import page
from analysis.reports.output.terminal import print_report
from analysis.reports.report import Report
from analysis.reports.utility.accuracy_anova import PEOPLE_MIN, analyse, person_scores, utility_note
from tests.analysis.worlds import facts, frames_of

pytestmark = [pytest.mark.pure, pytest.mark.usefixtures("few_draws")]
NAMES = ("baseline", "control", "grad_cam")
WHY = "with fewer than 5 people in the condition or in the baseline they would not hold their level."
UTILITY_INTERVALS = ("utility", "utility_k", "utility_simultaneous", "utility_fieller", "utility_bootstrap")
DASH = "\N{EN DASH}"


def correct(sizes: tuple[int, ...], seed: int = 1) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    chances = (0.5, 0.55, 0.75)
    return {name: rng.binomial(7, p, (n, 3)) for name, p, n in zip(NAMES, chances, sizes, strict=True)}


def report_of(frames: Frames) -> Report:
    return get_reporter("meta_predictor")(frames, facts(NAMES, 12))


def thin(*sizes: int) -> Report:
    return report_of(frames_of(correct(sizes)))


def rows_of(report: Report) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in report.json()["conditions"]}


def printed(report: Report) -> str:
    out = StringIO()
    print_report(report, Console(file=out, width=200, no_color=True))
    return out.getvalue()


@pytest.mark.long(stays="test_it_keeps_the_other_intervals_of_few_people")
@pytest.mark.parametrize(
    ("sizes", "without"),
    [
        ((4, 12, 12), {"control", "grad_cam"}),
        ((12, 4, 12), {"control"}),
        ((5, 5, 5), set()),
    ],
)
def test_it_gives_no_interval_of_utility_for_few_people(sizes: tuple[int, ...], without: set[str]) -> None:
    assert PEOPLE_MIN == 5
    report = thin(*sizes)
    rows = rows_of(report)
    for name in ("control", "grad_cam"):
        given = [rows[name]["intervals"][key] for key in UTILITY_INTERVALS]
        assert rows[name]["utility"] is not None
        assert all(ends is None for ends in given) == (name in without), name
        assert all(ends is not None for ends in given) == (name not in without), name
        assert (rows[name]["dunnett"] is None) == (name in without), name
    assert (WHY in page(report)) == (WHY in printed(report)) == bool(without)


def test_it_says_why_under_every_table_that_has_a_dash() -> None:
    report = thin(12, 4, 12)
    tables = report.tables()
    sentence = f"No interval of Utility and no p for Control: {WHY}"
    for key in ("conditions", "utility_k", "utility_forms", "planned", "as_assigned"):
        assert tables[key].note.endswith(sentence), key
    figure = next(f for section in report.sections for f in section.figures if f.key == "utility")
    assert figure.caption.endswith(sentence)
    (row,) = (row for row in tables["conditions"].rows if row[0] == "Control")
    assert row[-2:] == (DASH, DASH)
    (block_row,) = (row for row in tables["utility_k"].rows if row[0] == "Control")
    assert all("[" not in cell and float(cell) > 0 for cell in block_row[1:])


def test_it_keeps_the_other_intervals_of_few_people() -> None:
    report = thin(4, 4, 4)
    for row in rows_of(report).values():
        ends = row["intervals"]["accuracy_mean"]
        assert ends is None or ends[0] <= row["accuracy_mean"] <= ends[1]
    assert report.json()["anova"]["df_within"] == 9


def test_it_draws_a_point_without_a_bar() -> None:
    report = thin(12, 4, 12)
    figure = next(f for s in report.sections for f in s.figures if f.key == "utility").draw()
    (axes,) = figure.axes
    points = [line for line in axes.lines if line.get_marker() == "o"]
    bars = [line for line in axes.lines if line.get_linewidth() in (3.6, 8.0) and line.get_marker() != "o"]
    assert (len(points), len(bars)) == (2, 2)


def without_block(name: str, block: int, sizes: tuple[int, ...] = (12, 12, 12)) -> Frames:
    frames = frames_of(correct(sizes))
    trials = frames.trials
    gone = (trials["condition"] == name) & (trials["block"] == block)
    return Frames(trials[~gone].reset_index(drop=True), frames.participants, frames.stimuli)


def test_it_reports_a_condition_without_answers_in_one_block(tmp_path: Path) -> None:
    frames = without_block("control", 2)
    report = report_of(frames)
    row = rows_of(report)["control"]
    trials = frames.trials[frames.trials["condition"] == "control"]
    means = trials.groupby("block")["matches_model"].mean()
    assert row["accuracy"] == [pytest.approx(means[0]), pytest.approx(means[1]), None]
    assert row["intervals"]["accuracy"][2] is None
    assert row["utility"] is None and row["utility_k"] is None
    text = page(report)
    assert "Nobody in Control answered block 3: there is no accuracy to give there, and no Utility of" in text
    assert json.loads(json.dumps(report.json(), allow_nan=False)) == report.json()
    assert "figures/blocks.pdf" in write_report(report, tmp_path)


def test_it_shows_a_dash_and_no_point_for_a_block_without_answers() -> None:
    report = report_of(without_block("control", 1))
    (cells,) = (row for row in report.tables()["conditions"].rows if row[0] == "Control")
    assert cells[3] == DASH and DASH not in (cells[2], cells[4])
    assert cells[-3] == DASH, "no Utility"
    figure = next(f for s in report.sections for f in s.figures if f.key == "blocks").draw()
    panel = next(a for a in figure.axes if a.get_title(loc="left") == "Control")
    drawn = [np.asarray(line.get_ydata(), dtype=float) for line in panel.lines if len(line.get_ydata()) == 3]
    assert [np.isnan(ys).tolist() for ys in drawn] == [[False] * 3, [False, True, False]]


def test_it_gives_the_other_conditions_the_utility_that_they_had() -> None:
    whole, cut = report_of(frames_of(correct((12, 12, 12)))), report_of(without_block("control", 2))
    key = "grad_cam"
    assert rows_of(cut)[key]["utility"] == rows_of(whole)[key]["utility"]
    assert rows_of(cut)[key]["intervals"]["utility"] == rows_of(whole)[key]["intervals"]["utility"]


def test_it_has_no_utility_at_all_without_a_block_of_the_baseline() -> None:
    report = report_of(without_block("baseline", 0))
    assert all(row["utility"] is None for row in rows_of(report).values())
    text = page(report)
    assert "Nobody in Baseline answered block 1" in text and "no Utility of any condition." in text
    assert "is not among" not in text
    assert report.json()["anova"] is not None, "people still have an accuracy"


def test_it_reports_a_block_without_any_answers() -> None:
    frames = frames_of(correct((6, 6, 6)))
    trials = frames.trials[frames.trials["block"] != 1].reset_index(drop=True)
    report = report_of(Frames(trials, frames.participants, frames.stimuli))
    assert [len(row["accuracy"]) for row in rows_of(report).values()] == [2, 2, 2]
    assert page(report)


def test_it_takes_the_accuracy_of_the_answers_that_are_there() -> None:
    frames = without_block("control", 2)
    means = frames.trials.groupby(["condition", "session"])["matches_model"].mean()
    oracle = stats.f_oneway(*(means[name] for name in NAMES))
    anova = report_of(frames).json()["anova"]
    assert (anova["F"], anova["p"]) == (pytest.approx(oracle.statistic), pytest.approx(oracle.pvalue))


@pytest.mark.parametrize(
    ("seed", "chances", "words"),
    [
        (1, (0.5, 0.5, 0.9), ": accuracy differs between conditions."),
        (2, (0.6, 0.6, 0.6), ": no difference in accuracy between conditions was detected."),
    ],
)
def test_it_says_what_the_analysis_of_variance_found(
    seed: int, chances: tuple[float, ...], words: str
) -> None:
    rng = np.random.default_rng(seed)
    people = {name: rng.binomial(7, p, (20, 3)) for name, p in zip(NAMES, chances, strict=True)}
    report = report_of(frames_of(people))
    p = stats.f_oneway(*(x.mean(axis=1) for x in people.values())).pvalue
    assert (p < 0.05) == ("differs" in words)
    sentences = [s for section in report.sections for s in section.paragraphs if "F(" in s]
    assert len(sentences) == 3, "main, as assigned, blocked"
    assert all(sentence.endswith(words) for sentence in sentences)
    assert " ".join(words.split()) in " ".join(printed(report).split())


def test_it_waits_with_everything_for_one_person() -> None:
    frames = frames_of({"control": correct((1, 1, 1))["control"]})
    report = report_of(frames)
    data = report.json()
    assert data["anova"] is data["tukey"] is None
    assert [row["n"] for row in data["conditions"]] == [0, 1, 0]
    text = " ".join(printed(report).split())
    for said in (
        "Baseline has 0 finished so far and is left out of the tests, so no condition has a Utility.",
        "Control has 1 finished so far and is left out of the tests.",
    ):
        assert said in page(report) and text.count(said) == 1
    assert "is not among" not in text and "One-way ANOVA of" not in text
    assert "utility" not in [f.key for s in report.sections for f in s.figures]
    assert report.opening.startswith("1 person kept; mean accuracy")


def test_it_reports_a_study_whose_people_were_all_screened() -> None:
    frames = frames_of(correct((6, 6, 6)))
    people = frames.participants.assign(status="screened")
    report = report_of(Frames(frames.trials, people, frames.stimuli))
    data = report.json()
    assert data["pooled"]["n"] == 0 and data["flow"]["passed"] == 0
    assert data["as_assigned"]["anova"]["df_within"] == 15, "as assigned they count"
    assert report.opening == "" and page(report) and "18 arrived" in printed(report)


def test_it_has_nothing_to_excuse_without_utility() -> None:
    frames = frames_of(correct((1, 1, 1)))
    people, blocks = person_scores(frames)
    study = facts(NAMES, 12)
    assert utility_note(analyse(people, blocks, study), study) == ""
