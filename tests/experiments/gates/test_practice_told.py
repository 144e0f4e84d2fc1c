"""Practice tells each answer right or wrong, once it is stored; no right answer leaves the server earlier."""

from __future__ import annotations

import json
from typing import Any

import pytest

from experiments.models import Gate, Study
from tests.world import Person

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada(small: Study) -> Person:
    person = Person("ada")
    person.arrive("practice")
    return person


def tell(person: Person, question: str, choice: Any, step: str = "practice", digest: str = "") -> Any:
    body = {"digest": digest or person.state["page"]["digest"], "question": question, "choice": choice}
    return person.call("POST", f"/api/session/{step}/told/", body)


def right_of(small: Study) -> dict[str, str]:
    return {str(row["id"]): str(row["answer"]) for row in small.practice if not row["example"]}


def other(choice: str) -> str:
    return "B" if choice == "A" else "A"


def test_no_right_answer_is_on_the_page_before_it_was_answered(ada: Person, small: Study) -> None:
    asked = [row for row in ada.state["page"]["questions"] if row["kind"] == "sort"]
    assert {row["id"] for row in asked} == set(right_of(small))
    assert all(row["label"] is None for row in asked)


def test_it_says_whether_each_answer_is_right_and_stores_it_first(ada: Person, small: Study) -> None:
    stored = {}
    for number, (question, right) in enumerate(right_of(small).items()):
        choice = right if number % 2 else other(right)
        reply = tell(ada, question, choice)
        assert (reply.status_code, reply.json()) == (
            200,
            {"choice": choice, "label": right, "correct": choice == right},
        )
        stored[question] = choice
    row = Gate.objects.get(session=ada.session(), kind="practice_told")
    assert (row.value, row.attempt, row.passed) == (stored, 0, None)


def test_the_first_answer_stands_whatever_is_sent_afterwards(ada: Person, small: Study) -> None:
    """Else a script could hear every right answer first and pass by giving them."""
    right = right_of(small)
    for question, answer in right.items():
        first = tell(ada, question, other(answer)).json()
        assert tell(ada, question, answer).json() == first
    refused = ada.gate(right)
    assert refused.status_code == 400
    assert set(refused.json()["error"]["fields"]) == {f"value.{question}" for question in right}
    given = {question: other(answer) for question, answer in right.items()}
    assert ada.gate(given).status_code == 200
    assert (ada.state["step"], ada.state["attempts_left"]) == ("practice", 2)


def test_a_new_try_has_answers_of_its_own(ada: Person, small: Study) -> None:
    right = right_of(small)
    for question, answer in right.items():
        tell(ada, question, other(answer))
    ada.gate({question: other(answer) for question, answer in right.items()})
    for question, answer in right.items():
        assert tell(ada, question, answer).json()["correct"] is True
    assert ada.gate(right).status_code == 200 and ada.state["step"] != "practice"
    assert Gate.objects.filter(session=ada.session(), kind="practice_told").count() == 2


def test_it_judges_a_try_of_which_nothing_was_told_as_before(ada: Person, small: Study) -> None:
    assert ada.gate(right_of(small)).status_code == 200 and ada.state["step"] != "practice"


@pytest.mark.parametrize(
    ("question", "choice", "field"),
    [("nothing", "A", "question"), ("", "C", "choice"), ("", 7, "choice"), ("", None, "choice")],
)
def test_it_refuses_what_is_not_asked_or_no_answer(
    ada: Person, small: Study, question: str, choice: Any, field: str
) -> None:
    reply = tell(ada, question or next(iter(right_of(small))), choice)
    assert reply.status_code == 400 and set(reply.json()["error"]["fields"]) == {field}
    assert not Gate.objects.filter(kind="practice_told").exists()


def test_it_tells_nothing_of_another_page_or_step(ada: Person, small: Study) -> None:
    question = next(iter(right_of(small)))
    assert tell(ada, question, "A", digest="f" * 64).json()["error"]["code"] == "text_changed"
    assert tell(ada, question, "A", step="quiz").json()["error"]["code"] == "out_of_turn"
    assert tell(ada, question, "A", step="nonsense").status_code == 404
    ada.gate(right_of(small))
    assert tell(ada, question, "A", digest="f" * 64).json()["error"]["code"] == "out_of_turn"


def test_a_gate_that_is_judged_as_a_whole_tells_nothing(small: Study) -> None:
    bo = Person("bo")
    bo.arrive("quiz")
    reply = tell(bo, "task", "machine", step="quiz")
    assert reply.status_code == 400 and "machine" not in json.dumps(reply.json())


def test_who_has_left_is_told_nothing(ada: Person, small: Study) -> None:
    ada.call("POST", "/api/session/withdraw/", {"reason": "", "erase": True})
    reply = tell(ada, next(iter(right_of(small))), "A")
    assert reply.json()["error"]["code"] == "finished"
    assert not Gate.objects.filter(session=ada.session(), kind="practice_told").exists()
