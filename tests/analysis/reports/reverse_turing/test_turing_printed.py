"""The paper's own unit beside ours, and how firm marks are: by hand and against scipy."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from scipy.stats import mannwhitneyu, t

from analysis.reports.reverse_turing.paper_unit_of_analysis import as_printed, marks
from analysis.reports.reverse_turing.report import report
from tests.analysis.reports.reverse_turing.test_reverse_turing_report import NAMES, between, turing_facts

pytestmark = pytest.mark.pure


def test_it_tests_single_answers_and_says_that_they_are_not_independent() -> None:
    frames = between(dict(zip(NAMES, (0.4, 0.9, 0.5), strict=True)), 8, 3)
    section = as_printed(frames, turing_facts())
    (lime,) = [r for r in section.content if r["condition"] == "lime" and r["measure"] == "matches_model"]
    tests = frames.trials[frames.trials["phase"] == "test"]
    first, second = (
        tests.loc[tests["condition"] == n, "matches_model"].to_numpy(float) for n in NAMES[1::-1]
    )
    witness = mannwhitneyu(first, second, method="asymptotic", use_continuity=True)
    assert lime["p"] == pytest.approx(witness.pvalue) and lime["n"] == [120, 120]
    (table,) = section.tables
    assert "units not independent" in table.title
    # Equal times say nothing, so no line stands for them.
    assert {row["measure"] for row in section.content} == {"matches_model"}


def test_it_says_how_often_marked_words_return() -> None:
    frames = between(dict.fromkeys(NAMES, 0.6), 2, 4)
    values = np.linspace(0.2, 0.8, len(frames.stimuli))
    told = [json.dumps({"checks": {"stability": v, "stability_by_chance": 0.25}}) for v in values]
    stimuli = frames.stimuli.assign(condition="lime", provenance=told)
    section = marks(dataclasses.replace(frames, stimuli=stimuli), turing_facts())
    row = section.content["lime"]
    assert row["stability"] == pytest.approx(values.mean())
    assert row["gain"] == pytest.approx(values.mean() - 0.25)
    spread = values.std(ddof=1) / np.sqrt(len(values))
    low, high = row["interval"]
    assert high - low == pytest.approx(2 * t.ppf(0.975, len(values) - 1) * spread)
    (line,) = section.tables[0].rows
    assert line[:2] == ("LIME", str(len(values)))


def test_they_stand_in_the_report_and_say_nothing_without_data() -> None:
    frames = between(dict.fromkeys(NAMES, 0.6), 3, 5)
    keys = [section.key for section in report(frames, turing_facts()).sections]
    assert keys.index("as_printed") > keys.index("tests")
    assert marks(frames, turing_facts()).tables == ()
