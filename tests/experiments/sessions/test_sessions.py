"""The states of a session through the participant's API."""

from pathlib import Path

import pytest

from experiments.models import Gate, Response, Session, Slot, Study
from tests import world
from tests.world import Person

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases("locks, time")]


def slot_of(session: Session) -> Slot:
    assert session.slot is not None
    return Slot.objects.get(id=session.slot.pk)


def test_it_takes_ada_from_arrival_to_a_kept_slot(small: Study) -> None:
    ada = Person("ada")
    assert ada.join().status_code == 201
    session = ada.take_part()
    assert (session.state, session.verdict, session.reasons) == ("finished", "passed", [])
    assert Slot.objects.filter(kept=True, holder=session).count() == 1
    assert Response.objects.filter(session=session).count() == len(ada.trials()) == 16 + 3


def test_it_screens_bo_and_serves_the_slot_again_first(small: Study) -> None:
    bo = Person("bo").take_part(miss_checks=True)
    assert bo.verdict == "screened"
    assert [reason["rule"] for reason in bo.reasons] == ["instructed_share_min"]
    next_one = Person("ed")
    next_one.arrive()
    assert next_one.session().slot_id == bo.slot_id


def test_it_frees_the_slot_of_cy_who_withdraws(small: Study) -> None:
    cy = Person("cy")
    cy.arrive()
    cy.answer(5)
    reply = cy.call("POST", "/api/session/withdraw/", {"reason": "tired", "erase": True})
    assert reply.status_code == 200 and reply.json()["exit"]["method"] == "none"
    session = cy.session()
    assert (session.state, session.verdict) == ("withdrawn", "withdrawn")
    assert session.erased["responses"] == 5 and not session.responses.exists()
    assert slot_of(session).holder_id is None
    again = cy.call("POST", "/api/session/withdraw/", {"reason": "tired", "erase": True})
    assert again.status_code == 200 and cy.session().erased == session.erased


def test_it_lets_dee_take_part_once(small: Study) -> None:
    Person("dee").take_part()
    reply = Person("dee", submission="another").join()
    assert reply.status_code == 409 and reply.json()["error"]["code"] == "taken_part"


def test_it_ends_the_older_tab_when_the_same_submission_joins_again(small: Study) -> None:
    first = Person("ada")
    first.arrive()
    first.answer(3)
    second = Person("ada")
    assert second.join().status_code == 200
    assert second.state["step"] == "trials" and second.state["next"] == 3
    reply = first.call("GET", "/api/session/")
    assert reply.status_code == 401 and reply.json()["error"]["code"] == "no_session"


def test_it_asks_again_after_a_small_window(small: Study) -> None:
    ada = Person("ada")
    ada.join()
    small_window = {**ada.good_value(), "width_px": 390}
    assert ada.gate(small_window).json()["step"] == "device"
    assert ada.gate(ada.good_value()).json()["step"] == "consent"


def test_it_keeps_nothing_about_the_device_before_consent(small: Study) -> None:
    ada = Person("ada")
    ada.arrive("consent")
    assert ada.session().device == {} and Gate.objects.get(kind="device").value == {"fits": True}
    ada.gate(ada.good_value())
    assert ada.session().device["width_px"] == 1280 and Gate.objects.get(kind="consent").value == {
        "agree": True
    }


def test_it_closes_when_consent_is_refused(small: Study) -> None:
    ada = Person("ada")
    ada.arrive("consent")
    state = ada.gate({"agree": False}).json()
    assert state["step"] == "finish" and state["page"]["kind"] == "declined"
    assert ada.session().verdict == "declined" and ada.finish().status_code == 200


def test_it_screens_after_the_last_quiz_attempt_without_touching_a_slot(small: Study) -> None:
    ada = Person("ada")
    ada.arrive("quiz")
    assert ada.state["attempts_left"] == 2
    assert ada.gate({"task": "truth"}).json()["attempts_left"] == 1
    assert ada.gate({"task": "truth"}).json()["page"]["kind"] == "screened"
    session = ada.session()
    assert session.verdict == "screened" and session.slot_id is None
    assert [reason["timing"] for reason in session.reasons] == ["before"]
    assert Slot.objects.filter(claimed_count__gt=0).count() == 0


def test_it_does_not_count_a_repeated_quiz_request_twice(small: Study) -> None:
    ada = Person("ada")
    ada.arrive("quiz")
    digest = ada.state["page"]["digest"]
    ada.gate({"task": "truth"}, "quiz", digest)
    assert ada.gate({"task": "truth"}, "quiz", digest).status_code == 200
    assert Gate.objects.filter(kind="quiz").count() == 1
    assert ada.gate({"task": "machine"}, "quiz", digest).json()["error"]["code"] == "text_changed"


def test_it_stores_the_digest_of_the_consent_that_was_read(small: Study) -> None:
    ada = Person("ada")
    ada.arrive("consent")
    digest = ada.state["page"]["digest"]
    ada.gate({"agree": True})
    assert Gate.objects.get(kind="consent").text_digest == digest


def test_it_turns_the_tenth_person_away_from_nine_slots(small: Study) -> None:
    for number in range(9):
        Person(f"p{number}").arrive()
    late = Person("late")
    reply = late.join()
    assert reply.status_code == 410 and reply.json()["error"]["code"] == "full"


def test_it_refuses_to_finish_early(small: Study) -> None:
    ada = Person("ada")
    ada.arrive()
    ada.answer(2)
    reply = ada.call("POST", "/api/session/finish/", {"comment": None})
    assert (
        reply.status_code == 409
        and reply.json()["error"]["code"] == "incomplete"
        and reply.json()["next"] == 2
    )


def test_it_finishes_twice_with_the_same_answer(small: Study) -> None:
    ada = Person("ada")
    ada.arrive()
    ada.answer()
    first = ada.finish("fine <b>study</b>")
    session = ada.session()
    second = ada.finish("something else")
    assert first.json() == second.json() and "debrief" in first.json()["debrief"]
    assert ada.session().comment == session.comment == "fine <b>study</b>"


def test_it_removes_the_answers_of_a_person_who_was_told_more_at_the_end(tmp_path: Path) -> None:
    contact = 'contact = "lab@example.org"\ndeception = "One group saw areas that say nothing."'
    world.opened_study(world.write_study(tmp_path / "small", contact=contact))
    ada = Person("ada")
    ada.arrive()
    ada.answer()
    assert ada.finish("fine").json()["asks_again"] is True
    assert ada.refresh()["next"] == 19
    for _ in range(2):
        reply = ada.call("POST", "/api/session/withdraw/", {"reason": "debrief", "erase": True})
        assert reply.status_code == 200 and reply.json()["asks_again"] is False
    session = ada.session()
    assert (session.state, session.verdict, session.comment) == ("finished", "withdrawn", "")
    assert session.erased["responses"] == 19 and not Response.objects.exists()
    assert slot_of(session).holder_id is None and not slot_of(session).kept


def test_it_asks_again_only_where_something_was_withheld(small: Study) -> None:
    ada = Person("ada")
    ada.arrive()
    ada.answer()
    assert ada.finish().json()["asks_again"] is False


def test_it_keeps_a_late_answer_and_calls_the_session_surplus(small: Study) -> None:
    ada = Person("ada")
    ada.arrive()
    ada.answer(4)
    long_ago = ada.session().claimed_at
    Session.objects.filter(id=ada.session().pk).update(lease_ends_at=long_ago)
    Slot.objects.filter(holder=ada.session()).update(lease_ends_at=long_ago)
    bea = Person("bea")
    bea.arrive()
    assert bea.session().slot_id == ada.session().slot_id
    ada.answer()
    ada.finish()
    session = ada.session()
    assert session.verdict == "passed" and [r["rule"] for r in session.reasons] == ["surplus"]
    late = Response.objects.filter(session=session).order_by("position").values_list("late", flat=True)
    assert list(late) == [False] * 4 + [True] * 15
    assert slot_of(session).holder_id == bea.session().pk
