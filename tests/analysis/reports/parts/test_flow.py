"""No person is lost between two tables: the flow adds up, and its sentences say what its tests found."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2_contingency

from analysis.any_table.result_tables import Table
from analysis.facts import StudyFacts
from analysis.frames import frame
from analysis.reports.base import Section
from analysis.reports.parts.flow import SETTLED, flow_section
from tests.analysis.worlds import START, facts, frames_of

pytestmark = pytest.mark.pure
NAMES = ("baseline", "control", "grad_cam")
GATES = ("declined", "gates", "turned_away")
STARTED = (*SETTLED, "running", "finished")
RULES = ("total_minutes", "instructed_share_min", "Réponse, trop lente \N{SNOWMAN}")


def person(status: str, condition: str = "", rules: tuple[str, ...] = ()) -> dict[str, object]:
    reasons = [{"rule": rule, "timing": "after" if condition else "before"} for rule in rules]
    return {
        "session": "s",
        "origin": "human",
        "lane": "participant",
        "condition": condition,
        "status": status,
        "consented": status not in ("declined", "gates"),
        "admitted": bool(condition),
        "claimed_at": START if condition else None,
        "started_at": START,
        "reasons_detail": json.dumps(reasons),
        "surplus": False,
    }


def flow_of(people: list[dict[str, object]], study: StudyFacts | None = None) -> Section:
    return flow_section(frame("participants", people), study or facts(NAMES, 10))


at_gates = st.builds(person, st.sampled_from(GATES))
with_place = st.builds(
    person,
    st.sampled_from(STARTED),
    st.sampled_from(NAMES),
    st.lists(st.sampled_from(RULES), unique=True).map(tuple),
)


@settings(max_examples=40)
@given(st.lists(st.one_of(at_gates, with_place), max_size=30))
def test_it_loses_no_person(people: list[dict[str, object]]) -> None:
    flow = flow_of(people).content
    assert flow["arrived"] == len(people) == sum(flow["status"].values())
    assert flow["status"] == Counter(p["status"] for p in people)
    assert [step["count"] for step in flow["steps"]] == [
        flow[key] for key in ("arrived", "consented", "admitted", "claimed", "finished", "passed")
    ]
    by_group = flow["by_condition"]
    for key in ("claimed", "passed"):
        assert sum(row[key] for row in by_group) == flow[key]
    for row in by_group:
        assert row["settled"] == row["passed"] + row["screened"] + row["left"]
        assert row["lost"] == row["screened"] + row["left"] <= row["settled"] <= row["claimed"]


@settings(max_examples=40)
@given(st.lists(st.one_of(at_gates, with_place), max_size=30))
def test_it_counts_each_broken_rule_once_per_person(people: list[dict[str, object]]) -> None:
    wanted = Counter(
        (reason["rule"], reason["timing"])
        for p in people
        if p["status"] != "passed"
        for reason in json.loads(str(p["reasons_detail"]))
    )
    entries = flow_of(people).content["exclusions"]
    assert {(e["rule"], e["timing"]): e["count"] for e in entries} == wanted
    for entry in entries:
        # All of these people had a place, so every one of them is in a condition.
        assert sum(entry["by_condition"].values()) == entry["count"]
        assert all(rate is None or rate >= 0 for rate in entry["rate_by_condition"].values())


def test_it_shows_a_step_as_lost_and_as_a_share() -> None:
    people = [person("declined"), *[person("passed", "control") for _ in range(3)]]
    table = flow_of(people).tables[0]
    assert table.rows[0] == ("Arrived", "4", "", "100.0")
    assert table.rows[1] == ("Consented", "3", "1", "75.0")
    assert table.rows[-1] == ("Kept by screening", "3", "", "75.0")


def test_it_has_no_shares_without_people() -> None:
    flow = flow_of([])
    assert flow.content["arrived"] == 0 and flow.content["differential_loss"]["p"] is None
    assert {row[3] for row in flow.tables[0].rows} == {"\N{EN DASH}"}
    assert {row[-1] for row in flow.tables[1].rows} == {"\N{EN DASH}"}


def losses(lost: tuple[int, ...], settled: int) -> Section:
    people = [
        person("screened" if number < count else "passed", name)
        for name, count in zip(NAMES, lost, strict=True)
        for number in range(settled)
    ]
    return flow_of(people)


def note_of(flow: Section) -> str:
    return flow.tables[1].note


def test_it_says_that_loss_differs_only_if_the_test_found_it() -> None:
    flow = losses((5, 10, 40), 60)
    p = flow.content["differential_loss"]["p"]
    assert p == pytest.approx(chi2_contingency([[5, 10, 40], [55, 50, 20]], correction=False).pvalue)
    assert p < 0.05
    assert "Loss differs between conditions (p < .001, chi-square)." in note_of(flow)


def test_it_says_that_no_difference_in_loss_was_detected() -> None:
    flow = losses((20, 21, 22), 60)
    p = flow.content["differential_loss"]["p"]
    assert p == pytest.approx(chi2_contingency([[20, 21, 22], [40, 39, 38]], correction=False).pvalue)
    assert p > 0.05
    assert f"No difference in loss between conditions was detected (p = {p:.3f}".replace(
        "0.", "."
    ) in note_of(flow)
    assert "differs" not in note_of(flow)


@pytest.mark.parametrize(
    ("lost", "settled", "words"),
    [
        ((0, 0, 0), 4, "nobody was lost."),
        ((4, 4, 4), 4, "everybody was lost."),
        ((0, 0, 0), 0, "fewer than two of them have people whose sitting is settled."),
    ],
)
def test_it_says_why_loss_was_not_compared(lost: tuple[int, ...], settled: int, words: str) -> None:
    flow = losses(lost, settled)
    assert flow.content["differential_loss"]["p"] is None
    assert note_of(flow).endswith(f"Loss was not compared between conditions: {words}")


def test_it_compares_two_conditions_even_if_the_third_is_empty() -> None:
    people = [person("passed", "control"), person("screened", "grad_cam")]
    flow = flow_of(people)
    assert flow.content["differential_loss"]["method"] == "permutation"
    assert flow.content["differential_loss"]["p"] == pytest.approx(1.0)
    assert "No difference in loss" in note_of(flow)


def test_it_names_rules_as_people_read_them() -> None:
    flow = flow_of([person("screened", "control", RULES), person("declined", "", ("no_consent",))])
    names = {row[0] for row in flow.tables[2].rows}
    assert names == {"No consent", "Too fast or too slow", "Missed instructed checks", RULES[2]}
    rule = next(e for e in flow.content["exclusions"] if e["rule"] == "no_consent")
    assert rule["test"] is None, "nobody had a condition yet"


def test_it_counts_one_person_who_broke_two_rules_under_both() -> None:
    flow = flow_of([person("screened", "control", RULES[:2])])
    assert [e["count"] for e in flow.content["exclusions"]] == [1, 1]
    assert flow.content["by_condition"][1]["screened"] == 1


def test_it_does_not_count_the_reasons_of_those_who_passed() -> None:
    flow = flow_of([person("passed", "control", ("surplus",))])
    assert flow.content["exclusions"] == []


def test_it_tells_loss_by_condition_as_the_table_of_participants_does() -> None:
    rng = np.random.default_rng(0)
    frames = frames_of({name: rng.binomial(7, 0.6, (6, 3)) for name in NAMES})
    people = frames.participants.copy()
    people.loc[[0, 7, 8, 14], "status"] = ["screened", "incomplete", "withdrawn", "screened"]
    flow = flow_section(people, facts(NAMES, 10))
    wanted = pd.crosstab(people["condition"], people["status"] != "passed")[True]
    assert {row["condition"]: row["lost"] for row in flow.content["by_condition"]} == wanted.to_dict()


def test_it_prints_the_reporter_s_own_word_on_exclusion() -> None:
    people = frame("participants", [person("passed", "control")])
    plain = flow_section(people, facts(NAMES, 10))
    said = flow_section(people, facts(NAMES, 10), note="Both results are given.")
    assert said.paragraphs == (f"{plain.paragraphs[0]} Both results are given.",)
    assert "as assigned" not in plain.paragraphs[0]


def test_it_has_one_row_and_column_per_condition() -> None:
    study = facts(NAMES, 10)
    study = replace(study, conditions=study.conditions[:1], slots=study.slots[:1])
    tables: tuple[Table, ...] = flow_of([person("screened", "baseline", RULES)], study).tables
    assert len(tables[1].rows) == 1
    assert tables[2].columns == ("Rule", "Acts", "n", "Baseline", "p")
