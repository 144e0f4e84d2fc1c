"""Known against masked: numbers by hand, planted and absent differences, and what people wrote."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from analysis.facts import QuestionFacts, StudyFacts
from analysis.frames import Frames
from analysis.reports.output.html import page
from analysis.reports.reverse_turing.person_scores import person_rows
from analysis.reports.reverse_turing.report import published_times, report
from analysis.reports.reverse_turing.task_masking_effect import DESCRIBED, masking_contrasts, masking_test
from analysis.stats.intervals_and_checks import StatsError
from analysis.stats.ranks.two_groups import mann_whitney
from tests.analysis.reports.reverse_turing.test_reverse_turing_report import (
    NAMES,
    turing_facts,
    turing_frames,
)

pytestmark = pytest.mark.pure
SIDES = ("known", "masked")


def crossed(accuracy: dict[str, float], people: int, seed: int, tests: int = 10) -> Frames:
    """So many people per condition and side, by the side's accuracy."""
    rng = np.random.default_rng(seed)
    sittings = [
        (f"{name}-{side}-{j}", [(name, [bool(x) for x in rng.random(tests) < accuracy[side]])])
        for name in NAMES
        for side in SIDES
        for j in range(people)
    ]
    frames = turing_frames(sittings)
    arms = frames.participants["session"].str.split("-").str[1] + "/subset-0"
    return dataclasses.replace(frames, participants=frames.participants.assign(arm=arms))


def test_sides_are_compared_over_all_conditions_and_within_each() -> None:
    frames = crossed({"known": 0.8, "masked": 0.5}, 6, 1)
    rows = person_rows(frames)
    made = masking_contrasts(rows, turing_facts())
    assert [c.condition for c in made] == ["all", *NAMES] and not any(c.within for c in made)
    assert [c.n for c in made] == [(18, 18), (6, 6), (6, 6), (6, 6)]
    of = {side: rows.loc[rows["arm"].str.startswith(side), "accuracy"].to_numpy(float) for side in SIDES}
    whole = mann_whitney(of["known"], of["masked"])
    assert (made[0].p, made[0].effect, made[0].p_holm) == (whole.p, whole.rank_biserial, None)
    least = min(c.p for c in made[1:] if c.p is not None)
    assert min(c.p_holm for c in made[1:] if c.p_holm is not None) == min(1.0, 3 * least)


def test_the_report_holds_both_sides_beside_each_other() -> None:
    frames = crossed({"known": 0.8, "masked": 0.5}, 6, 1)
    content = report(frames, turing_facts()).json()["masking"]
    rows = {row["condition"]: row for row in content["rows"]}
    persons = person_rows(frames)
    for side in SIDES:
        part = persons[persons["arm"].str.startswith(side)]
        assert rows["all"]["accuracy"][side] == pytest.approx(part["accuracy"].mean())
        of_lime = part[part["condition"] == "lime"]["accuracy"]
        assert rows["lime"]["accuracy"][side] == pytest.approx(of_lime.mean())
        # Ten answers of two seconds each.
        assert rows["lime"]["test_s"][side] == pytest.approx(20.0)


def test_a_planted_difference_is_told_by_both_tests() -> None:
    content = report(crossed({"known": 0.85, "masked": 0.5}, 8, 2), turing_facts()).json()["masking"]
    assert content["rows"][0]["p"] < 0.001 and content["rows"][0]["effect"] > 0.3
    single = content["single_answers"]
    assert single["df"] == 1 and single["p"] < 0.001 and single["f"] == single["likelihood_ratio"]
    assert single["shares"]["known"] - single["shares"]["masked"] == pytest.approx(0.35, abs=0.12)


def test_an_absent_difference_is_told_about_as_often_as_alpha_allows() -> None:
    """500 studies of scores at the size of 6 people per condition and side; the test of the whole alone."""
    rng = np.random.default_rng(3)
    hits = 0
    for _ in range(500):
        known, masked = (rng.binomial(10, np.clip(rng.normal(0.6, 0.1, 18), 0.05, 0.95)) / 10 for _ in SIDES)
        hits += mann_whitney(known, masked).p < 0.05
    assert 0.02 <= hits / 500 <= 0.07
    content = report(crossed({"known": 0.6, "masked": 0.6}, 8, 4), turing_facts()).json()["masking"]
    assert content["rows"][0]["p"] > 0.05 and content["single_answers"]["p"] > 0.05


def test_few_people_get_a_sentence_instead_of_a_model() -> None:
    frames = crossed({"known": 0.8, "masked": 0.5}, 1, 5)
    with pytest.raises(StatsError, match="at least 6 people on each side"):
        masking_test(frames, turing_facts())
    section = next(s for s in report(frames, turing_facts()).sections if s.key == "masking")
    assert section.content["single_answers"] is None and "at least 6 people" in section.paragraphs[0]


def test_a_study_that_told_all_the_same_is_only_described() -> None:
    frames = turing_frames([("p1", [("none", [True, False])]), ("p2", [("lime", [True, True])])])
    section = next(s for s in report(frames, turing_facts()).sections if s.key == "masking")
    assert section.content is None and section.paragraphs == (DESCRIBED,) and not section.tables


def test_the_published_times_are_those_of_figure_3() -> None:
    times = {name: [round(value, 1) for value in means] for name, means in published_times().items()}
    # 124.5 and 442.2 are the means of both, the latter from unrounded ones.
    assert times == {"LIME": [90.0, 438.7], "None": [159.0, 445.7], "Both": [124.5, 442.2]}


def asked(facts: StudyFacts) -> StudyFacts:
    return dataclasses.replace(
        facts,
        questions=(
            QuestionFacts("strategy", "after", "text", "How did you decide?"),
            QuestionFacts("english", "before", "choice", "How well do you read English?"),
        ),
    )


def test_what_people_wrote_stands_by_condition_and_escaped() -> None:
    frames = turing_frames(
        [("p1", [("lime", [True])]), ("p2", [("none", [True])]), ("p3", [("none", [True])])]
    )
    answers = [
        {"strategy": "I looked at <b>the grey</b>.", "english": "Well"},
        {"strategy": " By feeling. "},
        {"strategy": ""},
    ]
    people = frames.participants.assign(answers=[json.dumps(given) for given in answers], comment="")
    frames = dataclasses.replace(frames, participants=people)
    made = report(frames, asked(turing_facts()))
    assert made.json()["told"] == {
        "strategy": [
            {"condition": "none", "text": "By feeling."},
            {"condition": "lime", "text": "I looked at <b>the grey</b>."},
        ]
    }
    assert made.tables()["told_strategy"].rows[0] == ("NONE", "By feeling.")
    html = page(made)
    assert "&lt;b&gt;the grey&lt;/b&gt;" in html and "<b>the grey</b>" not in html


def test_what_people_wrote_is_sealed_while_the_study_collects() -> None:
    frames = turing_frames([("p1", [("lime", [True])])])
    people = frames.participants.assign(answers=json.dumps({"strategy": "By the grey."}))
    sealed = report(dataclasses.replace(frames, participants=people), asked(turing_facts("open", kept=1)))
    assert "By the grey" not in json.dumps(sealed.json()) and "By the grey" not in page(sealed)
