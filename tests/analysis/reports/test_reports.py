"""The reporter over frames: sealing, origins, as assigned, exclusions, and a page that stands alone."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from analysis.facts import StudyFacts
from analysis.frames import Frames, MixedOrigins
from analysis.reports import get_reporter
from analysis.reports.drawing.figure_files import as_pdf
from analysis.reports.output.html import page
from analysis.reports.output.terminal import print_report
from analysis.reports.report import Report
from stimuli.errors import UnknownName
from tests.analysis.worlds import facts, frames_of

pytestmark = [pytest.mark.pure, pytest.mark.usefixtures("few_draws")]
NAMES = ("baseline", "control", "grad_cam")


def answers(seed: int = 1, people: int = 12) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {name: rng.binomial(7, p, (people, 3)) for name, p in zip(NAMES, (0.55, 0.55, 0.85), strict=True)}


def report_of(frames: Frames, study: StudyFacts | None = None) -> Report:
    return get_reporter("meta_predictor")(frames, study or facts(NAMES, 12))


@cache
def usual() -> Report:
    """The report of the usual answers, made once."""
    return report_of(frames_of(answers()))


def with_status(frames: Frames, session: str, status: str, reasons: list[dict[str, object]]) -> Frames:
    people = frames.participants.copy()
    people.loc[people["session"] == session, ["status", "reasons_detail"]] = [status, json.dumps(reasons)]
    return Frames(frames.trials, people, frames.stimuli)


def test_it_finds_a_planted_effect() -> None:
    data = usual().json()
    rows = {row["name"]: row for row in data["conditions"]}
    assert rows["grad_cam"]["utility"] > 1.2
    assert rows["grad_cam"]["intervals"]["utility_simultaneous"][0] > 1
    assert rows["grad_cam"]["tukey_p"] < 0.001 < 0.05 < rows["control"]["tukey_p"]
    assert data["anova"]["p"] < 0.001
    assert data["blocked"]["p"] < 0.001
    assert [step["count"] for step in data["flow"]["steps"]] == [36] * 6


def test_it_has_the_promised_keys_and_is_json() -> None:
    data = usual().json()
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert {"flow", "conditions", "anova", "tukey", "as_assigned", "blocked", "arrival"} <= set(data)
    assert {"n", "accuracy", "utility_k", "utility", "intervals"} <= set(data["conditions"][0])
    assert {"F", "df_between", "df_within", "p", "eta_squared"} <= set(data["anova"])
    assert {"first", "second", "difference", "p", "ci"} <= set(data["tukey"]["pairs"][0])


def test_it_seals_results_by_condition_until_the_stopping_rule_is_met() -> None:
    report = report_of(frames_of(answers()), facts(NAMES, 30, kept=12, state="open"))
    data = report.json()
    assert data["sealed"] and "36 of 90" in data["seal"]["sentence"]
    assert data["anova"] is data["tukey"] is data["as_assigned"] is data["blocked"] is None
    assert all(row["accuracy"] is row["utility"] is None for row in data["conditions"])
    assert data["pooled"]["n"] == 36 and 0.5 < data["pooled"]["accuracy_mean"] < 0.8
    assert [figure.key for part in report.sections for figure in part.figures] == ["flow"]
    assert "Utility" not in page(report)


def test_it_prints_who_broke_the_seal() -> None:
    study = replace(
        facts(NAMES, 30, kept=12, state="open"),
        unsealed_at="2026-03-01",
        unsealed_by="Grace Hopper",
        unsealed_reason="a pilot for the grant",
    )
    report = report_of(frames_of(answers()), study)
    assert report.json()["anova"] is not None
    assert "Unsealed by Grace Hopper on 2026-03-01: a pilot for the grant" in page(report)


def test_it_refuses_mixed_origins() -> None:
    people, observers = frames_of(answers()), frames_of(answers(), origin="simulated")
    both = Frames(
        pd.concat([people.trials, observers.trials]),
        pd.concat([people.participants, observers.participants]),
        people.stimuli,
    )
    with pytest.raises(MixedOrigins, match="human, simulated"):
        report_of(both)


def test_it_says_that_observers_are_no_people() -> None:
    report = report_of(frames_of(answers(), origin="simulated"), facts(NAMES, 30, kept=0, state="open"))
    assert not report.seal.sealed
    assert report.json()["heading"] == "Computational observers, not people."
    assert page(report).count("Computational observers, not people.") == 1
    drawn = [figure.draw() for part in report.sections for figure in part.figures]
    assert len(drawn) == 7
    assert all(figure.get_suptitle() == "computational observers" for figure in drawn)


def test_it_gives_results_with_and_without_rules_after_assignment() -> None:
    slow = {"rule": "total_minutes", "timing": "after", "found": 50, "limit": 30, "evidence": "50 minutes"}
    frames = with_status(frames_of(answers()), "grad_cam-0", "screened", [slow])
    data = report_of(frames).json()
    n = {row["name"]: row["n"] for row in data["conditions"]}
    assigned = {row["name"]: row["n"] for row in data["as_assigned"]["conditions"]}
    assert (n["grad_cam"], assigned["grad_cam"]) == (11, 12)
    (rule,) = data["flow"]["exclusions"]
    assert (rule["rule"], rule["timing"], rule["count"]) == ("total_minutes", "after", 1)
    assert rule["by_condition"] == {"baseline": 0, "control": 0, "grad_cam": 1}
    assert rule["test"]["method"] == "permutation" and rule["test"]["p"] == pytest.approx(1.0)


def test_it_tests_for_differential_exclusion() -> None:
    frames = frames_of(answers())
    rule = [{"rule": "repeat_share_min", "timing": "after", "found": 0, "limit": 1, "evidence": ""}]
    for number in range(8):
        frames = with_status(frames, f"grad_cam-{number}", "screened", rule)
    flow = report_of(frames).json()["flow"]
    assert flow["exclusions"][0]["test"]["p"] < 0.01
    assert flow["differential_loss"]["p"] < 0.01


def test_it_waits_for_conditions_with_too_few_people() -> None:
    counts = answers()
    counts["control"] = counts["control"][:1]
    report = report_of(frames_of(counts))
    data = report.json()
    assert data["conditions"][1]["n"] == 1 and data["conditions"][1]["utility"] is None
    assert data["anova"]["df_between"] == 1
    assert "Control has 1 finished so far" in page(report)


def test_it_reports_a_study_without_answers() -> None:
    frames = frames_of(answers())
    empty = Frames(frames.trials.iloc[:0], frames.participants.iloc[:0], frames.stimuli)
    data = report_of(empty).json()
    assert data["anova"] is None and data["pooled"]["n"] == 0
    assert page(report_of(empty))


class Page(HTMLParser):
    """What a browser would fetch, and whether tags close."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.headings: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.headings += [tag] if re.fullmatch(r"h\d", tag) else []
        for name, value in attrs:
            if name in {"src", "href", "xlink:href", "action"} and not (value or "").startswith(
                ("#", "data:,", "data:image/png;base64,")
            ):
                self.fetched.append(f"{tag} {value}")
        assert tag != "script"


def test_it_makes_a_page_that_loads_nothing() -> None:
    text = page(usual())
    parsed = Page(text)
    assert parsed.fetched == []
    assert not re.search(r"url\((?!#)|@import", text)
    assert parsed.headings[0] == "h1" and parsed.headings.count("h1") == 1
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    assert text.count("<table") == text.count("<caption>") == text.count("</table>")


def test_it_escapes_what_people_wrote() -> None:
    evil = '<img src=x onerror="alert(1)">'
    study = replace(facts(NAMES, 12), title=evil, unsealed_by=evil, unsealed_at="x", unsealed_reason=evil)
    study = replace(study, conditions=tuple(replace(c, label=f"{evil} $x$") for c in study.conditions))
    text = page(report_of(frames_of(answers()), study))
    assert "<img" not in text and "&lt;img" in text


def test_it_is_the_same_in_every_run() -> None:
    assert page(report_of(frames_of(answers()))) == page(usual())


def test_it_draws_pdf_figures() -> None:
    for part in usual().sections:
        for figure in part.figures:
            assert as_pdf(figure.draw()).startswith(b"%PDF")


def test_it_prints_to_a_terminal_of_80_columns() -> None:
    out = StringIO()
    print_report(usual(), Console(file=out, width=80, no_color=True))
    text = out.getvalue()
    assert "Grad-CAM" in text and "F(2, 33)" in text and "36 arrived" in text
    assert "\N{HORIZONTAL ELLIPSIS}" not in text
    assert max(len(line) for line in text.splitlines()) <= 80


def test_it_has_no_reporter_for_an_unknown_paradigm() -> None:
    with pytest.raises(UnknownName, match="there is no reporter 'tea_leaves': known are meta_predictor"):
        get_reporter("tea_leaves")
