"""The profile for publication: each column has a decision, and a package holds nothing that it leaves out."""

from __future__ import annotations

import json
import re
import uuid
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest
from django.core.management import call_command

from analysis.columns import TABLES, Column, names
from analysis.exports import manifest
from analysis.exports.delimited import read
from analysis.exports.public import COARSE, DECISIONS, Public, decision_of
from analysis.exports.study_export import Request, export_study
from analysis.frames import Frames, frame
from experiments.definition.gate_page_tables import QuestionTable
from experiments.kinds import KINDS, get_kind
from experiments.models import Event, Gate, Response, Session, Study
from tests.analysis.stored import opened, sitting

MARK = "quokka"
"""Is in no text of the study."""
CLOCK = re.compile(rb"\d{4}-\d\d-\d\dT|\d\d:\d\d:\d\d|2026-02-02")
WARNING = {"what": "flat maps", "condition": "control", "kind": "flat", "remedy": "r", "refuses": False}
pure = pytest.mark.pure


def listed(table: str) -> list[str]:
    return [name for words in DECISIONS[table].values() for name in words.split()]


@pure
@pytest.mark.parametrize("table", TABLES)
def test_every_column_has_one_decision(table: str) -> None:
    of_kinds = {column.name for kind in KINDS for column in get_kind(kind).columns}
    further = of_kinds | {"revealed_ms", "server_ms", "rt_over_server"} if table == "trials" else set()
    assert len(listed(table)) == len(set(listed(table)))
    assert set(listed(table)) == set(names(table)) | further


@pure
def test_a_column_that_is_not_listed_is_left_empty() -> None:
    extra = (Column("diary", "text", "Free words of a kind from elsewhere."),)
    trials = frame("trials", [{"session": "a", "diary": MARK, "rt_ms": 5}], extra)
    published = Public(Frames(trials, frame("participants", []), frame("stimuli", []), extra)).frames()
    assert list(published.trials["diary"]) == [""] and list(published.trials["rt_ms"]) == [5]
    assert list(published.trials.columns) == list(names("trials", extra))


@pure
@pytest.mark.parametrize(
    ("column", "value", "coarse"),
    [
        ("width_px", 1366, 1200),
        ("width_px", 390, 0),
        ("height_px", 600, 600),
        ("image_px", 318.5, 320),
        ("pixel_ratio", 2.625, 3),
        ("pixel_ratio", 0.3, 1),
        ("image_deg", 8.2349, 8.2),
        ("refresh_ms", 16.6667, 17),
        ("refresh_hz", 59.94, 60),
        ("language", "de-AT", "de"),
    ],
)
def test_it_makes_a_device_coarse(column: str, value: float, coarse: object) -> None:
    assert COARSE[column](value) == coarse


@pure
def test_what_is_coarse_has_a_rule() -> None:
    coarse = {name for table in DECISIONS for name in DECISIONS[table].get("coarse", "").split()}
    assert coarse - {"answers", "answer"} == set(COARSE)


@pytest.fixture
def study(db: None) -> Study:
    """Ada's every free text holds the mark; so do the reasons of the staff."""
    study = opened()
    study.definition["questions"] += [
        {"id": "how", "kind": "text", "prompt": "How did you decide?", "when": "after", "max_length": 99}
    ]
    study.unsealed_by, study.unsealed_reason = f"{MARK} Grace", f"because {MARK}"
    study.unsealed_at = sitting(study, "ada", condition="control", comment=f"my {MARK}").started_at
    study.acknowledged = [{"by": MARK, "reason": MARK, "at": "2026-02-02T10:00:00", "warnings": [WARNING]}]
    study.quality = {"digest": "d", "warnings": [WARNING]}
    study.save()
    Session.objects.update(
        device={
            "width_px": 1366,
            "height_px": 768,
            "pixel_ratio": 1.25,
            "touch": False,
            "language": f"de-{MARK}",
        },
        excluded={"by": MARK, "reason": f"a {MARK}", "at": "2026-02-02T10:00:00"},
        reasons=[{"rule": "total_minutes", "timing": "after", "found": 1, "limit": 2, "evidence": MARK}],
    )
    ada = Session.objects.get()
    Gate.objects.create(session=ada, kind="questions_after", attempt=0, value={"how": f"by {MARK}"})
    Gate.objects.create(session=ada, kind="plates", attempt=0, value={"plate-1": MARK})
    Event.objects.create(session=ada, uuid=uuid.uuid4(), kind="resized", at_ms=5, detail={"to": MARK})
    return study


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_public_package_holds_no_free_text_and_no_clock_time(study: Study, tmp_path: Path) -> None:
    export_study(study, tmp_path / "whole", Request())
    export_study(study, tmp_path / "public", Request(public=True))
    holding = {name for name, content in files(tmp_path / "whole").items() if MARK.encode() in content}
    assert {"participants.csv", "questions.csv", "events.csv", "manifest.json"} <= holding
    for name, content in files(tmp_path / "public").items():
        assert MARK.encode() not in content, name
        assert not CLOCK.search(content), (name, CLOCK.search(content))
    # Reports, facts and the stored plan name people who worked on the study.
    assert files(tmp_path / "whole").keys() - files(tmp_path / "public").keys() == {
        *("study.json", "report-human.json", "table1-human.csv", "preregistration.json", "preregistration.md")
    }
    assert files(tmp_path / "public").keys() <= files(tmp_path / "whole").keys()
    assert manifest.check(tmp_path / "public").problems == ()


def test_what_is_left_out_is_empty_and_the_rest_is_as_it_was(study: Study, tmp_path: Path) -> None:
    export_study(study, tmp_path / "whole", Request())
    export_study(study, tmp_path / "public", Request(public=True))
    for table in TABLES:
        whole, public = (read(tmp_path / name / f"{table}.csv", table) for name in ("whole", "public"))
        assert list(whole.columns) == list(public.columns)
        for name in names(table):
            decision = decision_of(table, name)
            if decision == "drop":
                assert public[name].isin([""]).all() or public[name].isna().all(), (table, name)
            elif decision == "keep":
                pd.testing.assert_series_equal(public[name], whole[name])
    (person,) = read(tmp_path / "public" / "participants.csv", "participants").to_dict("records")
    assert (person["width_px"], person["height_px"], person["language"]) == (1200, 600, "de")
    assert json.loads(str(person["answers"])) == {"age": 41}


def test_its_answers_are_intact(study: Study, tmp_path: Path) -> None:
    export_study(study, tmp_path / "public", Request(public=True))
    trials = read(tmp_path / "public" / "trials.csv", "trials")
    stored = Response.objects.order_by("position")
    assert list(trials["rt_ms"]) == [response.rt_ms for response in stored]
    given = ["seen" if "seen" in response.value else response.value["choice"] for response in stored]
    assert list(trials["response"]) == given
    assert json.loads((tmp_path / "public" / "codebook.json").read_text())["public"]["gates"]["drop"] == "at"


def test_the_command_makes_it(study: Study, tmp_path: Path) -> None:
    call_command("export", study.slug, "--out", str(tmp_path / "out"), "--public", stdout=StringIO())
    content = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert content["public"] is True and content["seals"] == {"human": "open"}


SIGHT = "Do you have difficulty telling some colours apart?"
SPECIAL = {"id": "colours", "kind": "choice", "prompt": SIGHT, "choices": ["no", "yes"], "when": "before"}
ILL = {"id": "years", "kind": "number", "prompt": "For how long, in years?", "when": "before"}
PLAIN = {"id": "age", "kind": "number", "prompt": "How old are you?", "when": "before"}


def people_asked(**special: bool) -> Study:
    """One person who answered about age, colours and years, on the last of which nothing but `special` tells
    that it is about health."""
    study = opened(questions=[PLAIN, SPECIAL, {**ILL, **special}])
    session = sitting(study, "ada", condition="grad_cam")
    answers = {"age": 41, "colours": "yes", "years": 739_193}
    Gate.objects.filter(session=session, kind="questions_before").update(value=answers)
    Study.objects.update(state="closed")
    study.refresh_from_db()
    return study


@pytest.mark.django_db
@pytest.mark.parametrize("request_", [Request(public=True), Request(cleaned=True)])
def test_answers_on_health_are_in_no_release(request_: Request, tmp_path: Path) -> None:
    """Not a byte of a number that nothing else holds; of a choice neither row, key, codebook nor count."""
    study = people_asked(special=True)
    export_study(study, tmp_path / "out", request_)
    whole = {path.name: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert not [name for name, data in whole.items() if re.search(rb"739.?193", data)]
    questions = read(tmp_path / "out" / "questions.csv", "questions")
    assert list(questions["question"]) == ["age"]
    people = read(tmp_path / "out" / "participants.csv", "participants")
    assert [json.loads(cell) for cell in people["answers"]] == [{"age": 41}]
    told = [name for name, data in whole.items() if SIGHT.encode() in data]
    assert told == ["definition.json"], "the question itself is part of the study"
    export_study(study, tmp_path / "whole", Request())
    assert b"739193" in (tmp_path / "whole" / "questions.csv").read_bytes()
    assert SIGHT.encode() in (tmp_path / "whole" / "report-human.json").read_bytes()


@pytest.mark.django_db
def test_what_is_no_data_on_health_is_released(tmp_path: Path) -> None:
    """The words alone make the question on colours special, and the other one none."""
    export_study(people_asked(), tmp_path / "out", Request(public=True))
    assert list(read(tmp_path / "out" / "questions.csv", "questions")["question"]) == ["age", "years"]
    manifest_ = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert {"what": "answers on health: colours", "named_in": []} in manifest_["left_out"]


@pure
@pytest.mark.parametrize(
    ("id_", "prompt", "is_special"),
    [
        ("colour_vision", "Is it hard for you?", True),
        ("q1", "Are you color blind?", True),
        ("q2", "Haben Sie eine Farbfehlsichtigkeit?", True),
        ("q3", "Do you have a chronic illness?", True),
        ("age", "How old are you?", False),
        ("work", "How much have you worked with computer vision?", False),
        ("strategy", "Which colours of the map helped you to decide?", False),
    ],
)
def test_words_tell_a_question_on_health(id_: str, prompt: str, is_special: bool) -> None:
    question = QuestionTable(id=id_, kind="text", prompt=prompt)
    assert question.is_special == is_special
    for said in (True, False):
        assert question.model_copy(update={"special": said}).is_special == said
