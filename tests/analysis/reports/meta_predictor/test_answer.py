"""A report opens with its answer; planned and exploratory parts are told apart; K counts examples."""

from __future__ import annotations

import re
from dataclasses import replace
from io import StringIO
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from scipy import stats

from analysis.any_table.result_tables import Table
from analysis.facts import AnswerFacts, StudyFacts
from analysis.reports import get_reporter
from analysis.reports.meta_predictor.conclusion import contrasts
from analysis.reports.meta_predictor.utility_tables import block_names, chance_of
from analysis.reports.output.html import page
from analysis.reports.output.terminal import print_report, print_table
from analysis.reports.report import Report
from analysis.reports.utility.accuracy_anova import analyse, person_scores
from tests.analysis.worlds import facts, frames_of

pytestmark = [pytest.mark.pure, pytest.mark.usefixtures("undrawn", "few_draws")]
NAMES = ("baseline", "control", "grad_cam")


def correct(*chances: float, n: int = 20, seed: int = 5) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {name: rng.binomial(7, p, (n, 3)) for name, p in zip(NAMES, chances, strict=True)}


def report_of(people: dict[str, np.ndarray], study: StudyFacts | None = None) -> Report:
    return get_reporter("meta_predictor")(frames_of(people), study or facts(NAMES, 20))


def section(report: Report, key: str) -> Any:
    return next(part for part in report.sections if part.key == key)


def test_it_stands_in_the_order_of_a_paper() -> None:
    report = report_of(correct(0.5, 0.5, 0.9))
    keys = [part.key for part in report.sections if part.title]
    assert keys[:5] == ["answer", "flow", "planned", "secondary", "conditions"]
    assert [figure.key for figure in report.sections[0].figures] == ["utility"]
    marks = [part.mark for part in report.sections if part.title and part.mark]
    order = ["planned", "paper", "exploratory"]
    assert marks == sorted(marks, key=order.index)
    assert section(report, "flow").mark == ""


def test_it_shows_the_marks_in_every_form() -> None:
    report = report_of(correct(0.5, 0.5, 0.9))
    told = report.json()["section_marks"]
    assert told["planned"] == told["conditions"] == told["answer"] == "planned"
    assert told["tukey"] == told["anova"] == "paper"
    assert told["as_assigned"] == told["blocked"] == "exploratory" and "flow" not in told
    text, out = page(report), StringIO()
    assert '<h2>Results as assigned<span class="mark exploratory">Exploratory</span></h2>' in text
    contents = re.search("<nav.*?</nav>", text, re.S)
    assert contents and re.findall(r'class="mark (\w+)"', contents[0]) == [
        "planned",
        "planned",
        "paper",
        "exploratory",
    ]
    print_report(report, Console(file=out, width=80, no_color=True))
    assert "Accuracy (%) and Utility [planned]" in out.getvalue()


def test_it_takes_tukey_for_the_plan_that_declares_it() -> None:
    people = correct(0.5, 0.6, 0.9)
    report = report_of(
        people, replace(facts(NAMES, 20), preregistration={"document": {"contrasts": "tukey"}})
    )
    told = report.json()["section_marks"]
    assert (told["tukey"], told["planned"], told["anova"]) == ("planned", "exploratory", "paper")
    keys = [part.key for part in report.sections if part.title]
    assert keys.index("tukey") < keys.index("conditions") < keys.index("planned")
    oracle = stats.tukey_hsd(*(people[name].mean(axis=1) for name in NAMES)).pvalue[0]
    column = {row[0]: row[-1] for row in report.tables()["conditions"].rows}
    assert column["Grad-CAM"] == "< .001" and oracle[2] < 0.001
    assert column["Control"] == f"{oracle[1]:.3f}".removeprefix("0")
    assert "Tukey-Kramer" in report.json()["answer"]["sentence"]


@pytest.mark.parametrize("chances", [(0.5, 0.5, 0.9), (0.6, 0.6, 0.6), (0.9, 0.5, 0.9), (0.7, 0.4, 0.95)])
def test_it_says_of_each_condition_what_its_p_says(chances: tuple[float, ...]) -> None:
    people = correct(*chances)
    report = report_of(people)
    content = report.json()["answer"]
    groups = [people[name].mean(axis=1) for name in NAMES]
    witness = stats.dunnett(*groups[1:], control=groups[0], rng=np.random.default_rng(1)).pvalue
    differ = [name for name, p in zip(NAMES[1:], witness, strict=True) if p < 0.05]
    assert content["differ"] == differ
    assert content["not_detected"] == [name for name in NAMES[1:] if name not in differ]
    said = content["sentence"]
    assert ("No condition was detected" in said) == (not differ)
    for name, group in zip(NAMES[1:], groups[1:], strict=True):
        label = {"control": "Control", "grad_cam": "Grad-CAM"}[name]
        assert (f"{label} (accuracy " in said) == (name in differ)
        if name in differ:
            points = 100 * (group.mean() - groups[0].mean()) / 7
            told = f"(accuracy {points:+.1f} points".replace("-", "\N{MINUS SIGN}")
            assert f"{label} {told}" in said
    assert re.search(r"p (=|<) ", said)


def test_it_has_no_answer_without_a_comparison() -> None:
    report = report_of({"control": correct(0.5, 0.5, 0.5)["control"]})
    said = report.json()["answer"]["sentence"]
    assert said.startswith(
        "No answer yet: no condition can be compared with Baseline. Baseline has 0 finished"
    )
    assert section(report, "answer").figures == ()
    people, blocks = person_scores(frames_of(correct(0.5, 0.5, 0.5, n=3)))
    assert contrasts(analyse(people, blocks, facts(NAMES)), facts(NAMES)) == ()


def test_it_never_gives_f_without_df_p_and_effect_size() -> None:
    report = report_of(correct(0.5, 0.5, 0.9))
    sentences = [s for part in report.sections for s in part.paragraphs if "F(" in s]
    assert sentences
    for said in sentences:
        assert re.search(r"F\(\d+, \d+\) = [\d.]+, p (= \.\d+|< \.001|= 1\.000), (ω²|partial η²) = ", said), (
            said
        )
    label = report.headline[-1].label
    assert re.fullmatch(r"F\(2, 57\) over conditions, p < \.001, ω² = \d\.\d{3}", label)


def test_it_names_blocks_by_the_examples_seen_so_far() -> None:
    study = replace(facts(NAMES, 20), design={"train_per_block": 5})
    assert block_names((0, 1, 2), study) == ("K = 5", "K = 10", "K = 15")
    assert block_names((0, 2), study) == ("K = 5", "K = 15"), "a block without answers keeps its place"
    assert block_names((0, 1), facts(NAMES)) == ("Block 1", "Block 2")
    report = report_of(correct(0.5, 0.5, 0.9), study)
    assert report.tables()["utility_k"].columns == ("Condition", "K = 5", "K = 10", "K = 15")
    figure = next(f for f in section(report, "conditions").figures if f.key == "utility_k").draw()
    assert [text.get_text() for text in figure.axes[0].get_xticklabels()] == ["5", "10", "15"]


def test_it_takes_chance_from_the_number_of_answers() -> None:
    study = facts(NAMES)
    four = tuple(AnswerFacts(value, value) for value in "abcd")
    assert (chance_of(replace(study, answers=four)), chance_of(study)) == (0.25, None)


def test_it_cuts_no_p_at_ten_thousand_people() -> None:
    out = StringIO()
    head = ("Condition", "n", "B1", "B2", "B3", "Mean", "Utility", "95 %", "p")
    cells = ("Integrated Gradients", "10000", *["100.0"] * 3, "100.0*", "1.05", "[0.93, 1.18]", "< .001")
    print_table(Table("t", "T", head, (cells,)), Console(file=out, width=80, no_color=True))
    assert "< .001" in out.getvalue() and "10000" in out.getvalue()
    assert "\N{HORIZONTAL ELLIPSIS}" not in out.getvalue()


def test_it_reports_people_who_all_answered_alike() -> None:
    same = {name: np.full((6, 3), 4) for name in NAMES}
    report = report_of(same)
    assert report.json()["anova"] is None
    assert "No answer yet" in report.json()["answer"]["sentence"]
    assert page(report) and "No group has any variance" in " ".join(section(report, "anova").paragraphs)


def test_it_reports_unequal_blocks_and_missing_answers() -> None:
    frames = frames_of(correct(0.5, 0.6, 0.8))
    trials = frames.trials
    gone = (trials["block"] == 2) & (trials["trial_index"] % 7 > 1) & (trials["condition"] == "control")
    trials = trials[~gone].reset_index(drop=True)
    trials.loc[::11, "matches_model"] = np.nan
    report = get_reporter("meta_predictor")(replace(frames, trials=trials), facts(NAMES, 20))
    means = trials.groupby("session")["matches_model"].mean().groupby(lambda s: s.rsplit("-", 1)[0]).mean()
    for row in report.json()["conditions"]:
        assert row["accuracy_mean"] == pytest.approx(means[row["name"]])
    assert page(report)
