"""What a report says beside the result, counted by hand from the same rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from analysis.facts import QuestionFacts, SlotFacts, StudyFacts
from analysis.frames import Frames, frame
from analysis.reports.base import Section
from analysis.reports.parts.participants import open_sections, sections
from experiments.simulation.versions import version_of, versions
from tests.analysis.worlds import START, facts

pytestmark = pytest.mark.pure
NAMES = ("baseline", "grad_cam")
DASH = "\N{EN DASH}"
LEVELS = ("Never", "Now and then", "Daily")
QUESTIONS = (
    QuestionFacts(
        "expertise",
        "before",
        "choice",
        "How often do you work with such models?",
        LEVELS,
    ),
    QuestionFacts("age", "before", "number", "How old are you?"),
    QuestionFacts("strategy", "after", "text", "How did you decide?"),
)


def person(name: str, condition: str, **changes: Any) -> dict[str, Any]:
    return {
        "session": name,
        "origin": "human",
        "lane": "participant",
        "condition": condition,
        "status": "passed",
        "claimed_at": START,
        "answers": "",
        "simulated_digest": "",
        **changes,
    }


def trial(session: str, condition: str, **changes: Any) -> dict[str, Any]:
    return {
        "session": session,
        "condition": condition,
        "phase": "test",
        "scored_index": 0,
        "rt_ms": 1000,
        "shown_ms": 1000,
        "matches_truth": 1.0,
        **changes,
    }


def frames_of(people: list[dict[str, Any]], trials: Sequence[dict[str, Any]] = ()) -> Frames:
    return Frames(frame("trials", trials), frame("participants", people), frame("stimuli", []))


def study() -> StudyFacts:
    return replace(facts(NAMES), questions=QUESTIONS)


def section(key: str, frames: Frames, study_facts: StudyFacts | None = None) -> Section:
    made = study_facts or study()
    return next(s for s in (*sections(frames, made), *open_sections(frames, made)) if s.key == key)


def behaviour(trials: list[dict[str, Any]], **person_changes: Any) -> dict[str, Any]:
    people = [person("a", "baseline", **person_changes)]
    rows: list[dict[str, Any]] = section("behaviour", frames_of(people, trials)).content
    return rows[0]


def test_it_takes_medians_of_test_answers_and_of_training() -> None:
    trials = [trial("a", "baseline", rt_ms=ms) for ms in (500, 700, 9000)]
    trials += [trial("a", "baseline", phase="train", scored_index=None, shown_ms=ms) for ms in (2000, 3000)]
    row = behaviour(trials)
    assert (row["test_median_ms"], row["train_median_ms"]) == (700, 2500)


def test_it_counts_openings_of_the_reservoir_per_scored_trial() -> None:
    trials = [trial("a", "baseline", reservoir_ms=ms) for ms in (0, None, 400, 1)]
    trials.append(
        trial("a", "baseline", scored_index=None, check="repeat", check_passed=True, reservoir_ms=9)
    )
    assert behaviour(trials)["reservoir_share"] == 0.5


def test_it_keeps_the_kinds_of_check_apart() -> None:
    trials = [
        trial("a", "baseline", scored_index=None, check="instructed", check_passed=passed)
        for passed in (1, 1, 0, 1)
    ]
    trials += [trial("a", "baseline", scored_index=None, check="repeat", check_passed=0)]
    row = behaviour(trials)
    assert (row["instructed_share"], row["repeat_share"]) == (0.75, 0.0)


def test_it_says_how_often_people_answered_for_the_world() -> None:
    trials = [trial("a", "baseline", matches_truth=value) for value in (1.0, 0.0, 0.0, 1.0, 1.0)]
    assert behaviour(trials)["truth_share"] == pytest.approx(0.6)


def test_it_leaves_out_those_who_were_left_out() -> None:
    trials = [trial("a", "baseline")]
    assert behaviour(trials)["test_median_ms"] == 1000
    assert behaviour(trials, status="screened")["test_median_ms"] is None
    assert behaviour(trials, excluded_by_hand=True)["test_median_ms"] is None


def test_it_writes_a_dash_for_a_condition_without_trials() -> None:
    table = section("behaviour", frames_of([person("a", "baseline")])).tables[0]
    assert [row[1:] for row in table.rows] == [(DASH,) * 6] * 2


def answered(*given: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    people = [
        person(f"p{i}", condition, answers=json.dumps(answers))
        for i, (condition, answers) in enumerate(given)
    ]
    content: dict[str, Any] = section("questions", frames_of(people)).content
    return content


def test_it_prints_choices_in_their_order_with_those_never_chosen() -> None:
    people = [
        person("a", "baseline", answers=json.dumps({"expertise": "Daily"})),
        person("b", "baseline", answers=json.dumps({"expertise": "Something else"})),
    ]
    made = next(s for s in sections(frames_of(people), study()) if s.key == "questions")
    table = next(t for t in made.tables if t.key == "question_expertise")
    assert [row[:2] for row in table.rows] == [
        ("Never", "0"),
        ("Now and then", "0"),
        ("Daily", "1"),
        ("Something else", "1"),
    ]
    assert list(made.content["expertise"]["answers"])[:3] == list(LEVELS)


def test_it_counts_choices_by_condition() -> None:
    content = answered(
        ("baseline", {"expertise": "Never"}),
        ("baseline", {"expertise": "Daily"}),
        ("grad_cam", {"expertise": "Never"}),
        ("grad_cam", {"age": 30}),
    )
    assert content["expertise"]["answers"] == {
        "Daily": {"baseline": 1, "grad_cam": 0},
        "Now and then": {"baseline": 0, "grad_cam": 0},
        "Never": {"baseline": 1, "grad_cam": 1},
    }
    assert content["expertise"]["prompt"] == QUESTIONS[0].prompt


def test_it_takes_the_mean_of_numbers_and_counts_texts() -> None:
    content = answered(
        ("baseline", {"age": 20, "strategy": "The snow."}),
        ("baseline", {"age": 30, "strategy": ""}),
        ("grad_cam", {}),
    )
    assert content["age"]["answers"] == {"mean": {"baseline": 25.0, "grad_cam": None}}
    assert content["strategy"]["answers"] == {"answered": {"baseline": 1, "grad_cam": 0}}


def test_it_prints_no_free_text() -> None:
    people = [person("a", "baseline", answers=json.dumps({"strategy": "I am Grace Hopper"}))]
    made = section("questions", frames_of(people))
    assert "Grace" not in str(made)


def test_it_has_no_section_for_a_study_without_questions() -> None:
    made = sections(frames_of([person("a", "baseline")]), facts(NAMES))
    assert [s.key for s in made] == ["behaviour"]


def test_it_tells_when_places_were_claimed() -> None:
    at = [START + timedelta(minutes=minutes) for minutes in (0, 30, 120)]
    people = [person(f"p{i}", "baseline", claimed_at=when) for i, when in enumerate(at)]
    people.append(person("gate", "", claimed_at=None))
    rows = section("arrival", frames_of(people)).content
    assert rows[0] == {
        "condition": "baseline",
        "label": "Baseline",
        "n": 3,
        "first": "2026-01-05 09:00",
        "median": "2026-01-05 09:30",
        "last": "2026-01-05 11:00",
    }
    assert rows[1]["n"] == 0 and rows[1]["first"] is None


def test_it_tells_arrival_and_answers_by_lane_without_conditions() -> None:
    lanes = tuple(SlotFacts(lane, lane.capitalize(), 1, 1, by="lane") for lane in ("expert", "lead"))
    by_lane = replace(study(), conditions=(), slots=lanes)
    people = [
        person("a", "", lane="expert", answers=json.dumps({"age": 40})),
        person("b", "", lane="lead", answers=json.dumps({"age": 50})),
    ]
    arrival = section("arrival", frames_of(people), by_lane)
    assert arrival.title == "Arrival by lane" and [row["lane"] for row in arrival.content] == [
        "expert",
        "lead",
    ]
    assert [row["n"] for row in arrival.content] == [1, 1]
    asked = section("questions", frames_of(people), by_lane)
    assert asked.content["age"]["answers"] == {"mean": {"lane expert": 40.0, "lane lead": 50.0}}
    assert asked.tables[0].columns == ("Answer", "Expert", "Lead")


def test_it_names_the_mix_of_simulated_observers() -> None:
    """By what answered then, not by what stands here now: an older version, and one that was never frozen."""
    oldest, newest = versions()[0], version_of("learner")
    assert newest is not None and oldest.kinds == newest.kinds == ("learner",) and oldest != newest
    people = [
        person("a", "baseline", simulated_kind="learner", simulated_digest=oldest.digest),
        person("b", "baseline", simulated_kind="learner", simulated_digest=oldest.digest, status="screened"),
        person("c", "grad_cam", simulated_kind="guesser"),
        person("d", "baseline", simulated_kind="learner", simulated_digest="0" * 64),
    ]
    made = section("population", frames_of(people))
    answered = [
        {"digest": "0" * 64, "version": None, "sittings": 1},
        {"digest": oldest.digest, "version": oldest.number, "sittings": 2},
    ]
    assert made.content == {
        "guesser": {"sittings": 1, "kept": 1},
        "learner": {"sittings": 3, "kept": 2, "answered": answered},
    }
    assert [row[1:4] for row in made.tables[0].rows] == [
        ("1", "1", "–"),
        ("1", "1", "–"),
        ("2", "1", str(oldest.number)),
    ]
    assert oldest.digest[:12] in str(made.tables[0].rows)
    (paragraph,) = made.paragraphs
    assert oldest.seen[0] in paragraph
    assert [s.key for s in open_sections(frames_of([person("a", "baseline")]), study())] == ["arrival"]


def test_it_sets_observers_side_by_side_and_names_a_differing_ranking() -> None:
    people, trials = [], []
    right = {"exemplar": {"grad_cam": (1, 1), "baseline": (0, 1)}, "prototype": {"grad_cam": (1, 0)}}
    for kind, conditions in right.items():
        for condition, answers in conditions.items():
            name = f"{kind} {condition}"
            people.append(person(name, condition, simulated_kind=kind))
            trials += [trial(name, condition, matches_model=bool(answer)) for answer in answers]
    made = section("observers", frames_of(people, trials))
    rows = {row["condition"]: row["observers"] for row in made.content}
    assert rows["grad_cam"] == {
        "exemplar": {"n": 1, "accuracy": 1.0},
        "prototype": {"n": 1, "accuracy": 0.5},
    }
    assert rows["baseline"]["prototype"] == {"n": 0, "accuracy": None}
    assert len(made.paragraphs) == 1
    one_kind = frames_of([p for p in people if p["simulated_kind"] == "exemplar"], trials)
    assert all(s.key != "observers" for s in sections(one_kind, study()))


def test_the_timing_of_scored_trials_is_counted_by_flag() -> None:
    flags = ["ok", "ok", "ok", "dropped", "short", "hidden", "unknown"]
    rows = [{"session": "a", "scored_index": at, "timing": flag} for at, flag in enumerate(flags)]
    rows.append({"session": "a", "scored_index": None, "timing": "dropped"})  # training counts nothing
    people = [person("a", "baseline", refresh_hz=60.0), person("b", "grad_cam", refresh_hz=144.0)]
    made = Frames(frame("trials", rows), frame("participants", people), frame("stimuli", []))
    content = next(s for s in open_sections(made, facts(NAMES)) if s.key == "display").content
    assert content["timing"] == {"ok": 3, "dropped": 1, "short": 1, "hidden": 1, "unknown": 1}
    assert content["refresh_hz"] == [60, 102, 144]
    unknown = Frames(
        frame("trials", [row | {"timing": "unknown"} for row in rows]), made.participants, made.stimuli
    )
    assert "display" not in {s.key for s in open_sections(unknown, facts(NAMES))}


def test_a_study_without_training_and_truth_has_no_columns_for_them() -> None:
    trials = [trial("a", "baseline", matches_truth=None, reservoir_ms=None)]
    (table,) = section("behaviour", frames_of([person("a", "baseline")], trials)).tables
    assert table.columns == ("Condition", "Test answer, median s") and "truth" not in table.note
    trials = [trial("a", "baseline", matches_truth=1.0, reservoir_ms=0)]
    (table,) = section("behaviour", frames_of([person("a", "baseline")], trials)).tables
    assert table.columns[2:] == ("Reservoir opened %", "Agrees with truth %") and "truth" in table.note
