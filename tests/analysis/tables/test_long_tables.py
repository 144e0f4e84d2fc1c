"""Answers to questions, tries at gates, events and openings of the reservoir are tables of their own."""

from __future__ import annotations

import csv
import uuid
from pathlib import Path

import pandas as pd
import pytest

from analysis.exports.delimited import read
from analysis.exports.study_export import Request, export_study
from experiments.models import Event, Gate, Session, Study
from tests.analysis.stored import cast, opened, sitting

pytestmark = pytest.mark.django_db
LEVELS = ["Not at all", "A little", "Regularly", "It is my profession"]


@pytest.fixture
def study() -> Study:
    study = opened()
    study.definition["questions"] += [
        {"id": "ml", "kind": "choice", "prompt": "Do you work with it?", "when": "after", "choices": LEVELS}
    ]
    study.definition["quiz"] = [
        {"id": "task", "prompt": "What do you do?", "choices": ["Guess", "Predict"], "answer": "Predict"}
    ]
    study.save()
    return study


def exported(study: Study, folder: Path, **options: object) -> dict[str, pd.DataFrame]:
    export_study(study, folder, Request(**options))  # type: ignore[arg-type]
    return {name: read(folder / f"{name}.csv", name) for name in ("questions", "gates", "events", "openings")}


def event(session: Session, kind: str, at_ms: int, position: int | None = None, **detail: object) -> None:
    trial = None if position is None or session.slot is None else session.slot.trials.get(position=position)
    Event.objects.create(
        session=session, uuid=uuid.uuid4(), kind=kind, at_ms=at_ms, trial=trial, detail=detail
    )


def test_it_has_one_row_per_answer_with_its_place_in_the_declared_order(study: Study, tmp_path: Path) -> None:
    ada = sitting(study, "ada", condition="control")
    Gate.objects.create(session=ada, kind="quiz", attempt=0, value={"task": "Guess"}, passed=False)
    Gate.objects.create(session=ada, kind="quiz", attempt=1, value={"task": "Predict"}, passed=True)
    Gate.objects.create(session=ada, kind="questions_after", attempt=0, value={"ml": "Regularly"})
    rows = exported(study, tmp_path / "out")["questions"]
    cells = rows[["when", "attempt", "question", "kind", "prompt", "answer"]].to_numpy().tolist()
    assert cells == [
        ["before", 2, "age", "number", "How old are you?", "41"],
        ["quiz", 0, "task", "choice", "What do you do?", "Guess"],
        ["quiz", 1, "task", "choice", "What do you do?", "Predict"],
        ["after", 0, "ml", "choice", "Do you work with it?", "Regularly"],
    ]
    assert [None if pd.isna(x) else int(x) for x in rows["level"]] == [None, 0, 1, 2]
    with (tmp_path / "out" / "codebook.csv").open(newline="", encoding="utf-8") as handle:
        book = {row["question"]: row for row in csv.DictReader(handle) if row["question"]}
    assert book["ml"]["levels"] == "; ".join(LEVELS) and book["ml"]["column"] == "answer"
    assert (book["age"]["dtype"], book["task"]["meaning"]) == ("integer", "quiz: What do you do?")


def test_it_has_every_try_at_a_gate_and_none_of_the_colour_check(study: Study, tmp_path: Path) -> None:
    ada = sitting(study, "ada", condition="control")
    for kind in ("plates", "plates_kept", "invitation"):
        Gate.objects.create(session=ada, kind=kind, attempt=0, value={"plate-1": "quokka"})
    stored = Gate.objects.filter(session=ada).exclude(kind__in=("plates", "plates_kept", "invitation"))
    rows = exported(study, tmp_path / "out")["gates"]
    assert list(rows["gate"]) == [gate.kind for gate in stored.order_by("pk")]
    assert [bool(x) for x in rows["passed"]] == [gate.passed for gate in stored.order_by("pk")]
    waits = [(gate.created_at - ada.started_at).total_seconds() for gate in stored.order_by("pk")]
    assert list(rows["after_s"]) == pytest.approx(waits, abs=1e-3)
    assert "quokka" not in "".join(path.read_text() for path in (tmp_path / "out").iterdir())


def test_it_has_every_event_with_its_trial(study: Study, tmp_path: Path) -> None:
    ada = sitting(study, "ada", condition="control")
    event(ada, "resized", 400, 3, width_px=900)
    rows = exported(study, tmp_path / "out")["events"]
    assert rows[["kind", "at_ms", "detail"]].to_numpy().tolist() == [
        ["reservoir_opened", 10, ""],
        ["resized", 400, '{"width_px":900}'],
    ]
    assert pd.isna(rows["trial_index"][0]) and rows["trial_index"][1] == 3


def test_it_measures_how_long_the_reservoir_was_open(study: Study, tmp_path: Path) -> None:
    ada, bo = (sitting(study, name, condition="control", minutes=m) for name, m in (("ada", 0), ("bo", 5)))
    Event.objects.all().delete()
    event(ada, "reservoir_opened", 1000, 4)
    event(bo, "reservoir_opened", 50, 2)
    event(ada, "reservoir_closed", 1750, 4)
    event(ada, "reservoir_opened", 9000, 5)
    event(ada, "reservoir_closed", 20, 5)  # the page was loaded again
    event(ada, "reservoir_opened", 300, 6)
    event(ada, "reservoir_opened", 400, 6)  # and again
    event(ada, "reservoir_closed", 900, 6)
    rows = exported(study, tmp_path / "out")["openings"].sort_values(["session", "trial_index", "at_ms"])
    took = {
        (int(row["trial_index"]), int(row["at_ms"])): (row["duration_ms"], row["missing"])
        for row in rows.to_dict("records")
    }
    unknown = {(5, 9000), (6, 300), (2, 50)}
    assert len(took) == 5
    for place, (duration_ms, missing) in took.items():
        assert pd.isna(duration_ms) == (missing == "duration_ms=not_recorded") == (place in unknown)
    assert took[4, 1000][0] == 750 and took[6, 400][0] == 500


def test_it_keeps_the_same_people_in_every_table(study: Study, tmp_path: Path) -> None:
    cast(study)
    tables = exported(study, tmp_path / "clean", cleaned=True)
    (person,) = read(tmp_path / "clean" / "participants.csv", "participants")["session"]
    assert all(set(frame["session"]) == {person} for frame in (tables["gates"], tables["questions"]))
    assert set(tables["events"]["session"]) == {person}
