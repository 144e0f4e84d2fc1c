"""The training of raters over the API: told one by one, judged as a whole, two tries, no item of a study."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from experiments.gates import get_gate
from experiments.models import Gate, Response, Study
from experiments.sessions.lifecycle import step_of
from stimuli.models import Stimulus
from tests.experiments.protocols import RATING, TWO_MODELS, opened, take_part, write
from tests.world import Person, opened_study

pytestmark = pytest.mark.django_db
ALL = RATING.replace('asked = ["q1", "q2"]', 'asked = ["q1", "q2", "q3", "q4", "q5", "q6"]')


@pytest.fixture
def rating(tmp_path: Path) -> Study:
    return opened(tmp_path / "r", "ratings", "rating", ALL, sources=TWO_MODELS, sittings=2)


@pytest.fixture
def ann(rating: Study) -> Person:
    person = Person("ann", slug="ratings")
    person.arrive("training")
    return person


def tell(person: Person, question: str, choice: Any) -> Any:
    body = {"digest": person.state["page"]["digest"], "question": question, "choice": choice}
    return person.call("POST", "/api/session/training/told/", body)


def fitting(study: Study) -> dict[str, str]:
    return {str(row["id"]): str(row["answer"]) for row in study.practice}


def missed(study: Study, count: int) -> dict[str, str]:
    """A try with so many answers outside their range."""
    return {
        name: answer if number >= count else str(6 - int(answer))
        for number, (name, answer) in enumerate(fitting(study).items())
    }


def test_it_asks_by_the_study_s_questions_and_scale(ann: Person, rating: Study) -> None:
    asked = ann.state["page"]["questions"]
    assert len(asked) == 9 and ann.state["attempts_left"] == 2
    for question in asked:
        assert question["kind"] == "rate" and question["required"]
        assert [choice["value"] for choice in question["choices"]] == ["1", "2", "3", "4", "5"]
        assert [choice["key"] for choice in question["choices"]] == ["1", "2", "3", "4", "5"]
        assert question["label"] in {"Circle", "Triangle"} and question["low"] and question["high"]
        assert question["image"]["url"] != question["explanation"]["url"]
        for media in (question["image"], question["explanation"]):
            reply = ann.client.get(media["url"])
            assert reply.status_code == 200 and reply["Content-Type"] == "image/png"
    assert "How easy is this explanation to understand?" in {q["prompt"] for q in asked}


def test_the_page_tells_no_range_and_no_reason_before_the_answer(ann: Person, rating: Study) -> None:
    shown = json.dumps(ann.state)
    for row in rating.practice:
        told = get_gate("training").tell(rating, row["id"], "3")
        assert told.label.startswith(" or ".join(row["accepted"])) and told.label not in shown
        assert row["case"] not in shown and "accepted" not in shown
    alts = {media["alt"] for q in ann.state["page"]["questions"] for media in (q["image"], q["explanation"])}
    assert alts == {"Picture", "Picture with an explanation"}, "no alternative text tells what is marked"


def test_the_page_says_what_the_colours_mean(rating: Study) -> None:
    ben = Person("ben", slug="ratings")
    legends = {}
    for step in ("instructions", "training"):
        ben.arrive(step)
        legends[step] = ben.state["study"]["legend"]
    assert legends["instructions"] is None, "nothing is marked on this page"
    assert legends["training"]["ends"] == "importance"


def test_none_of_its_pictures_is_a_stimulus_of_the_study(ann: Person, rating: Study) -> None:
    files = set(get_gate("training").files(rating).values())
    fields = ("image_file", "image_tile_file", "explanation_file", "explanation_tile_file")
    rendered = set(Stimulus.objects.values_list(*fields))
    assert files and not files & {file for row in rendered for file in row}


def test_it_tells_each_answer_with_the_range_and_the_reason(ann: Person, rating: Study) -> None:
    for row in rating.practice:
        low, high = row["accepted"]
        reply = tell(ann, row["id"], high).json()
        assert reply["correct"] and reply["label"].startswith(f"{low} or {high}, because ")
        assert row["shown"] in reply["label"] or row["case"] in {"empty", "noise"}
    row = Gate.objects.get(session=ann.session(), kind="training_told")
    assert row.value == {str(each["id"]): each["accepted"][1] for each in rating.practice}


def test_the_first_answer_stands_and_no_try_contradicts_it(ann: Person, rating: Study) -> None:
    right = fitting(rating)
    name, answer = next(iter(right.items()))
    wrong = str(6 - int(answer))
    first = tell(ann, name, wrong).json()
    assert first["correct"] is False and tell(ann, name, answer).json() == first
    refused = ann.gate(right)
    assert refused.status_code == 400
    assert set(refused.json()["error"]["fields"]) == {f"value.{name}"}
    assert ann.gate({**right, name: wrong}).status_code == 200 and ann.state["step"] == "trials"


@pytest.mark.parametrize(("misses", "passes"), [(0, True), (2, True), (3, False), (9, False)])
def test_seven_of_nine_pass(ann: Person, rating: Study, misses: int, passes: bool) -> None:
    """The share 0.7 of 9 answers is 6.3, so 7 have to fit."""
    assert ann.gate(missed(rating, misses)).status_code == 200
    assert (ann.state["step"] == "trials") is passes
    row = Gate.objects.get(session=ann.session(), kind="training")
    assert row.passed is passes and row.value == missed(rating, misses)


def test_who_fails_twice_ends_screened_before_the_trials(ann: Person, rating: Study) -> None:
    ann.gate(missed(rating, 9))
    assert (ann.state["step"], ann.state["attempts_left"]) == ("training", 1)
    ann.gate(missed(rating, 4))
    session = ann.session()
    assert ann.state["step"] == "finish" and ann.state["page"]["kind"] == "screened"
    assert (session.verdict, session.slot_id) == ("screened", None)
    assert session.reasons[0]["rule"] == "training_attempts_max" and session.reasons[0]["limit"] == 2
    assert not Response.objects.filter(session=session).exists()


def test_the_second_try_is_a_new_one(ann: Person, rating: Study) -> None:
    for name, answer in missed(rating, 9).items():
        tell(ann, name, answer)
    ann.gate(missed(rating, 9))
    for name, answer in fitting(rating).items():
        assert tell(ann, name, answer).json()["correct"] is True
    assert ann.gate(fitting(rating)).status_code == 200 and ann.state["step"] == "trials"


def test_a_reload_shows_the_same_page_and_keeps_what_was_told(ann: Person, rating: Study) -> None:
    name, answer = next(iter(fitting(rating).items()))
    tell(ann, name, answer)
    before = ann.state["page"]
    assert ann.refresh()["page"] == before and step_of(ann.session()).attempt == 0
    ann.join()
    assert ann.state["page"]["digest"] == before["digest"]
    assert tell(ann, name, str(6 - int(answer))).json()["choice"] == answer


@pytest.mark.parametrize(
    ("question", "choice", "field"),
    [
        ("nothing", "1", "question"),
        ("", "0", "choice"),
        ("", "6", "choice"),
        ("", 5, "choice"),
        ("", None, "choice"),
    ],
)
def test_it_refuses_what_is_not_asked_or_no_point_of_the_scale(
    ann: Person, rating: Study, question: str, choice: Any, field: str
) -> None:
    reply = tell(ann, question or "training-1", choice)
    assert reply.status_code == 400 and set(reply.json()["error"]["fields"]) == {field}
    assert not Gate.objects.filter(kind="training_told").exists()


def test_a_try_names_every_answer_that_is_missing_or_off_the_scale(ann: Person, rating: Study) -> None:
    value: dict[str, Any] = {**fitting(rating), "training-1": "6", "other": "1"}
    del value["training-2"]
    reply = ann.gate(value)
    assert reply.status_code == 400
    assert reply.json()["error"]["fields"] == {
        "value.training-1": "must be one of 1, 2, 3, 4, 5",
        "value.training-2": "is still to be answered",
        "value.other": "is not asked",
    }
    assert not Gate.objects.filter(kind="training").exists()


def test_a_session_goes_on_to_its_end_behind_it(rating: Study) -> None:
    take_part(Person("ben", slug="ratings"))
    assert Response.objects.exists()


def test_a_study_without_a_plain_question_has_no_training(tmp_path: Path) -> None:
    tables = RATING.replace('asked = ["q1", "q2"]', 'asked = ["q2"]')
    study = opened(tmp_path / "q", "trusting", "rating", tables, sources=TWO_MODELS)
    assert study.practice == []
    person = Person("cy", slug="trusting")
    person.arrive()
    assert person.state["step"] == "trials"


def test_it_is_said_in_the_study_s_language(tmp_path: Path) -> None:
    path = write(tmp_path / "d", "urteile", "rating", ALL, sources=TWO_MODELS)
    path.write_text('language = "de"\n' + path.read_text())
    study = opened_study(path)
    person = Person("dora", slug="urteile")
    person.arrive("training")
    assert "klare Fälle" in person.state["page"]["html"]
    told = tell(person, "training-1", "1").json()
    low, high = study.practice[0]["accepted"]
    assert told["label"].startswith(f"{low} oder {high}, denn ")
    assert {q["label"] for q in person.state["page"]["questions"]} == {"Kreis", "Dreieck"}
