"""What the server stores of answers and events: once, in order, all or nothing, and never altered."""

import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from experiments.models import Event, Response, Study
from tests import world
from tests.world import Person

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases("an INSERT of its own, constraints")]
Counter = Callable[[int], Any]


@pytest.fixture
def ada(small: Study) -> Person:
    """A person whose first trial is next."""
    person = Person("ada")
    person.arrive()
    return person


def answers(person: Person, count: int) -> list[dict[str, Any]]:
    return [person.good_response(trial) for trial in person.trials()[:count]]


def rows() -> list[dict[str, Any]]:
    return [dict(row) for row in Response.objects.order_by("id").values()]


def code(reply: Any) -> tuple[int, str]:
    return reply.status_code, reply.json()["error"]["code"]


def fields(reply: Any) -> dict[str, str]:
    assert code(reply) == (400, "invalid")
    named: dict[str, str] = reply.json()["error"]["fields"]
    return named


def test_it_stores_an_ordinary_answer_with_one_statement(
    ada: Person, django_assert_num_queries: Counter
) -> None:
    for answer in answers(ada, 6):
        with django_assert_num_queries(1):
            reply = ada.respond(answer)
        assert reply.status_code == 200


def test_it_stores_what_was_sent(ada: Person) -> None:
    trial = ada.trials()[0]
    context = {
        "onset_ms": 12.5,
        "input": "keyboard",
        "key": "f",
        "side": "left",
        "image_px": 320,
        "reloads": 0,
    }
    context |= {"pixel_ratio": 1.25, "dropped_frames": 1, "refresh_ms": 16.67}
    context |= {"reservoir_ms": 0, "focus_losses": 2}
    context["questions"] = [{"id": "q" * 24, "ms": 86_400_000, "changes": 10_000}] * 12
    reply = ada.respond({**ada.good_response(trial), "context": context})
    assert reply.json() == {"next": 1, "step": "trials", "feedback": {}}
    [row] = rows()
    assert (row["trial_id"], row["position"], row["value"], row["context"]) == (
        trial.pk,
        0,
        {"seen": True},
        context,
    )
    assert (row["rt_ms"], row["shown_ms"], row["late"]) == (1200, 2000, False)
    assert row["remaining"] == len(ada.trials()) - 1


def test_it_says_when_the_trials_are_over(ada: Person) -> None:
    everything = answers(ada, 99)
    assert ada.respond(*everything[:-1]).json() == {
        "next": len(everything) - 1,
        "step": "trials",
        "feedback": {},
    }
    # A question is still asked at the end of this study.
    over = {"next": len(everything), "step": "questions", "feedback": {}}
    assert ada.respond(everything[-1]).json() == over == ada.respond(everything[-1]).json()


def test_it_takes_answers_in_order_only(ada: Person) -> None:
    first, second, third = answers(ada, 3)
    for early in (second, third):
        reply = ada.respond(early)
        assert code(reply) == (409, "out_of_turn") and reply.json()["next"] == 0
    assert ada.respond(first).status_code == 200
    reply = ada.respond(third)
    assert code(reply) == (409, "out_of_turn") and reply.json()["next"] == 1
    assert len(rows()) == 1


def test_it_takes_no_answer_before_the_trials_begin(small: Study) -> None:
    bo = Person("bo")
    bo.arrive("practice")
    reply = bo.respond({"trial": "1", "value": {"seen": True}, "rt_ms": 1, "shown_ms": 1})
    assert code(reply) == (409, "out_of_turn") and reply.json()["next"] == 0
    bo.gate(bo.good_value())
    assert bo.state["step"] == "instructions"  # the slot is claimed, its own text is not read yet
    reply = bo.respond(answers(bo, 1)[0])
    assert code(reply) == (409, "out_of_turn") and not rows()


def test_it_gives_a_repeat_the_same_reply_and_stores_nothing(ada: Person) -> None:
    first, second = answers(ada, 2)
    replies = [ada.respond(first), ada.respond(first)]
    stored = rows()
    # What is measured differs when it is sent again; the answer does not.
    replies.append(ada.respond({**first, "rt_ms": 77, "shown_ms": 78, "context": {"reloads": 1}}))
    assert {reply.status_code for reply in replies} == {200}
    assert replies[0].json() == replies[1].json() == replies[2].json()
    assert rows() == stored
    ada.respond(second)
    assert ada.respond(first).json() == replies[0].json()


def test_it_lets_the_stored_answer_stand_against_another(ada: Person) -> None:
    ada.answer(4)
    trial = ada.trials()[4]
    assert trial.kind == "predict"
    first, other = (choice["value"] for choice in trial.choices[:2])
    given = {**ada.good_response(trial), "value": {"choice": first}}
    assert ada.respond(given).status_code == 200
    stored = rows()
    reply = ada.respond({**given, "value": {"choice": other}})
    assert code(reply) == (409, "contradiction") and reply.json()["next"] == 5
    assert rows() == stored


def test_it_stores_a_batch_whole_or_not_at_all(ada: Person) -> None:
    batch = answers(ada, 6)
    assert code(ada.respond(*batch[:2], batch[3])) == (409, "out_of_turn")
    assert code(ada.respond(batch[1], batch[0])) == (409, "out_of_turn")
    spoiled = {**batch[3], "value": {"seen": "yes"}}
    assert fields(ada.respond(*batch[:3], spoiled)).keys() == {"responses.3.value"}
    assert not rows()
    assert ada.respond(*batch[:4]).json()["next"] == 4
    # A batch that overlaps with what is stored adds what is new.
    assert ada.respond(*batch).json()["next"] == 6
    assert [row["position"] for row in rows()] == [0, 1, 2, 3, 4, 5]


def test_it_takes_one_to_fifty_answers_at_once(ada: Person) -> None:
    [first] = answers(ada, 1)
    for count in (0, 51):
        assert fields(ada.respond(*[first] * count)).keys() == {"responses"}
    assert not rows()
    assert ada.respond(*[first] * 50).status_code == 200
    assert len(rows()) == 1


def test_it_takes_nothing_new_after_the_end_but_repeats(ada: Person) -> None:
    everything = answers(ada, 99)
    ada.answer()
    ada.finish()
    stored = rows()
    assert ada.respond(everything[0]).status_code == 200
    other = {**everything[-1], "value": {"choice": next(
        c["value"] for c in ada.trials()[-1].choices if c["value"] != everything[-1]["value"]["choice"]
    )}}  # fmt: skip
    assert code(ada.respond(other)) == (409, "contradiction")
    assert rows() == stored


@pytest.mark.parametrize("erase", [True, False])
def test_it_takes_nothing_after_a_withdrawal(ada: Person, erase: bool) -> None:
    ada.answer(2)
    ada.call("POST", "/api/session/withdraw/", {"reason": "", "erase": erase})
    stored = rows()
    assert code(ada.respond(answers(ada, 3)[2])) == (409, "finished")
    assert rows() == stored and len(stored) == (0 if erase else 2)


def test_it_wants_the_token_of_the_newest_tab(ada: Person) -> None:
    [first] = answers(ada, 1)
    older = ada.token
    for token in ("", "wrong", "ä" * 40, ada.token[:-1], ada.token + "x", ada.session().token_hash):
        reply = ada.call("POST", "/api/session/responses/", {"responses": [first]}, token)
        assert code(reply) == (401, "no_session")
    ada.join()
    assert code(ada.call("POST", "/api/session/responses/", {"responses": [first]}, older)) == (
        401,
        "no_session",
    )
    assert not rows()
    assert ada.respond(first).status_code == 200


UNKNOWN = ["0", "-1", "999999999", "9" * 18, "9" * 19, "9223372036854775808", "9" * 40]
UNKNOWN += ["٣", "²", "1.0", "1e3", " 1", "1 ", "+1", "0x1", "abc", "1'; --", "%", "\u200b1"]


NO_TEXT = [1, None, "", "1" * 41, ["1"], {"id": "1"}, True]
OWN_UNDER_OTHER_NAMES = ["0{}", " {}", "{}.0", "{}\n", "+{}"]


def test_it_refuses_trials_that_it_does_not_know(ada: Person) -> None:
    [first] = answers(ada, 1)
    for trial in [*UNKNOWN, *NO_TEXT, *(name.format(first["trial"]) for name in OWN_UNDER_OTHER_NAMES)]:
        assert fields(ada.respond({**first, "trial": trial})).keys() == {"responses.0.trial"}, trial
    assert not rows()


def test_it_refuses_the_trials_of_another_session(ada: Person) -> None:
    bea = Person("bea")
    bea.arrive()
    assert fields(ada.respond(answers(bea, 1)[0])).keys() == {"responses.0.trial"}
    assert not rows()


NO_OBJECT: list[Any] = [None, [], "left", 1, True]
TIMES: list[Any] = [-1, 86_400_001, 1.5, 1e3, "100", True, None, 2**63 - 1]
LEARN: list[Any] = [
    {},
    {"seen": False},
    {"seen": 1},
    {"seen": "true"},
    {"seen": None},
    {"seen": True, "x": 1},
]
LEARN += [{"choice": "left"}, {"Seen": True}, {"seen": [True]}]


def test_it_refuses_what_is_no_sight_of_a_picture(ada: Person) -> None:
    [first] = answers(ada, 1)
    for value in LEARN + NO_OBJECT:
        assert fields(ada.respond({**first, "value": value})).keys() == {"responses.0.value"}, value
    assert not rows()


PREDICT: list[Any] = [
    {},
    {"choice": ""},
    {"choice": "Left"},
    {"choice": "left "},
    {"choice": 0},
    {"choice": True},
]
PREDICT += [{"choice": None}, {"choice": ["left"]}, {"choice": {"value": "left"}}, {"choice": "left", "x": 1}]
PREDICT += [{"choice": 'left"}\n\n{"choice":"right'}, {"seen": True}, {"choice": "\n"}, {"choice": "%"}]


def test_it_refuses_what_is_no_choice_of_the_trial(ada: Person) -> None:
    ada.answer(4)
    trial = ada.trials()[4]
    assert trial.kind == "predict"
    for value in PREDICT + NO_OBJECT:
        reply = ada.respond({**ada.good_response(trial), "value": value})
        assert fields(reply).keys() == {"responses.0.value"}, value
    assert len(rows()) == 4


def test_it_refuses_impossible_times(ada: Person) -> None:
    [first] = answers(ada, 1)
    for name, ms in product(("rt_ms", "shown_ms"), TIMES):
        assert fields(ada.respond({**first, name: ms})).keys() == {f"responses.0.{name}"}, ms
    assert not rows()


def test_it_takes_times_at_their_bounds(ada: Person) -> None:
    for answer, ms in zip(answers(ada, 2), (0, 86_400_000), strict=True):
        assert ada.respond({**answer, "rt_ms": ms, "shown_ms": ms}).status_code == 200
    assert [(row["rt_ms"], row["shown_ms"]) for row in rows()] == [(0, 0), (86_400_000, 86_400_000)]


ROW = {"id": "q1", "ms": 1200, "changes": 0}
CONTEXTS: list[tuple[Any, str]] = [
    (None, ""),
    ([], ""),
    ("x", ""),
    ({"condition": "saliency"}, ".condition"),
    ({"onset_ms": "1"}, ".onset_ms"),
    ({"input": "x" * 21}, ".input"),
    ({"input": 1}, ".input"),
    ({"reloads": 1.5}, ".reloads"),
    ({"reloads": True}, ".reloads"),
    ({"key": None}, ".key"),
    ({"side": ["left"]}, ".side"),
    ({"questions": {}}, ".questions"),
    ({"questions": [ROW] * 13}, ".questions"),
    ({"questions": [ROW, "q2"]}, ".questions.1"),
    ({"questions": [{**ROW, "answer": 3}]}, ".questions.0.answer"),
    ({"questions": [{"id": "q1", "ms": 1}]}, ".questions.0.changes"),
    ({"questions": [{**ROW, "changes": True}]}, ".questions.0.changes"),
    ({"questions": [{**ROW, "changes": 10_001}]}, ".questions.0.changes"),
    ({"questions": [{**ROW, "id": "q" * 25}]}, ".questions.0.id"),
    ({"questions": [{**ROW, "id": ""}]}, ".questions.0.id"),
    ({"questions": [{**ROW, "ms": -1}]}, ".questions.0.ms"),
    ({"questions": [{**ROW, "ms": 86_400_001}]}, ".questions.0.ms"),
]


def test_it_refuses_a_context_that_does_not_fit(ada: Person) -> None:
    [first] = answers(ada, 1)
    for context, name in CONTEXTS:
        reply = ada.respond({**first, "context": context})
        assert fields(reply).keys() == {f"responses.0.context{name}"}, context
    assert not rows()


def test_it_names_fields_that_it_does_not_know(ada: Person) -> None:
    [first] = answers(ada, 1)
    assert fields(ada.respond({**first, "correct": True})).keys() == {"responses.0.correct"}
    reply = ada.call("POST", "/api/session/responses/", {"responses": [first], "session": "x"})
    assert fields(reply).keys() == {"session"}


def test_it_takes_the_answers_of_a_preview(small: Study) -> None:
    """A preview holds no slot and has no lease that could be over."""
    from crowd.joining.entry_and_exit import preview_query

    look = Person("look")
    reply = look.call(
        "POST",
        "/api/sessions/",
        {"study": "small", "platform": "local", "query": preview_query(small, 0)},
        "none",
    )
    look.token, look.state = reply.json()["token"], reply.json()["session"]
    while look.state["step"] != "trials":
        look.gate(look.good_value())
    look.answer()
    assert {row["late"] for row in rows()} == {False} and len(rows()) == len(look.trials())


# Events


def event(**changes: Any) -> dict[str, Any]:
    return {"id": str(uuid.uuid4()), "kind": "focus_lost", "trial": None, "at_ms": 5, "data": {}} | changes


def notice(person: Person, *events: Any) -> Any:
    return person.call("POST", "/api/session/events/", {"events": list(events)})


def test_it_stores_an_event_once_however_often_it_comes(ada: Person) -> None:
    first, second = event(trial=str(ada.trials()[0].pk), data={"ms": 9}), event(kind="reload")
    for batch in ([first], [first], [first, second], [second, second, first]):
        reply = notice(ada, *batch)
        assert reply.status_code == 200 and reply.json() == {}
    stored = {str(row.uuid): (row.kind, row.trial_id, row.at_ms, row.detail) for row in Event.objects.all()}
    assert Event.objects.count() == 2
    assert stored[first["id"]] == ("focus_lost", ada.trials()[0].pk, 5, {"ms": 9})


def test_it_keeps_the_events_of_two_sessions_apart(ada: Person) -> None:
    bea = Person("bea")
    bea.join()
    same = event()
    assert [notice(person, same).status_code for person in (ada, bea)] == [200, 200]
    assert Event.objects.count() == 2


BAD_EVENTS: list[tuple[dict[str, Any], str]] = [
    ({"id": "x"}, "id"),
    ({"id": 1}, "id"),
    ({"kind": "exploded"}, "kind"),
    ({"kind": ""}, "kind"),
    ({"trial": "0"}, "trial"),
    ({"trial": "9" * 30}, "trial"),
    ({"trial": "٣"}, "trial"),
    ({"at_ms": -1}, "at_ms"),
    ({"at_ms": 1.5}, "at_ms"),
    ({"data": []}, "data"),
    ({"data": {"x": "y" * 2000}}, "data"),
    ({"extra": 1}, "extra"),
]


def test_it_refuses_a_whole_batch_for_one_event_that_does_not_fit(ada: Person) -> None:
    for changes, name in BAD_EVENTS:
        assert fields(notice(ada, event(), event(**changes))).keys() == {f"events.1.{name}"}, changes
    assert not Event.objects.exists()


def test_it_takes_one_to_fifty_events_at_once(ada: Person) -> None:
    for count in (0, 51):
        assert fields(notice(ada, *(event() for _ in range(count)))).keys() == {"events"}
    assert notice(ada, *(event() for _ in range(50))).status_code == 200


# Many at once


def at_once(count: int, call: Callable[[int], Any]) -> list[Any]:
    """The results of `call(0) ... call(count - 1)`, each in a thread with its own connection."""

    def in_thread(index: int) -> Any:
        try:
            return call(index)
        finally:
            connection.close()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(in_thread, range(count)))


@pytest.mark.django_db(transaction=True)
def test_it_stores_an_answer_once_that_comes_eight_times_at_once(tmp_path: Path) -> None:
    world.opened_study(world.write_study(tmp_path / "small"))
    ada = Person("ada")
    ada.arrive()
    batch = answers(ada, 3)
    headers = {"Authorization": f"Bearer {ada.token}"}

    def send(index: int) -> Any:
        body = {"responses": batch[:1] if index % 2 else batch}
        return Client().post(
            "/api/session/responses/", body, content_type="application/json", headers=headers
        )

    replies = at_once(8, send)
    assert [reply.status_code for reply in replies] == [200] * 8
    assert {reply.json()["next"] for reply in replies} == {1, 3}
    assert [row["position"] for row in rows()] == [0, 1, 2]


@pytest.mark.django_db(transaction=True)
def test_it_lets_one_of_two_contradicting_answers_win(tmp_path: Path) -> None:
    world.opened_study(world.write_study(tmp_path / "small"))
    ada = Person("ada")
    ada.arrive()
    ada.answer(4)
    trial = ada.trials()[4]
    values = [choice["value"] for choice in trial.choices[:2]]
    headers = {"Authorization": f"Bearer {ada.token}"}

    def send(index: int) -> int:
        body = {"responses": [{**ada.good_response(trial), "value": {"choice": values[index % 2]}}]}
        reply = Client().post(
            "/api/session/responses/", body, content_type="application/json", headers=headers
        )
        return reply.status_code

    codes = at_once(8, send)
    assert sorted(codes) == [200] * 4 + [409] * 4
    stored = Response.objects.get(trial=trial).value["choice"]
    assert {values[i % 2] for i, code in enumerate(codes) if code == 200} == {stored}


@pytest.mark.django_db(transaction=True)
def test_it_lets_no_answer_survive_an_erasing_withdrawal(tmp_path: Path) -> None:
    world.opened_study(world.write_study(tmp_path / "small"))
    ada = Person("ada")
    ada.arrive()
    batch = answers(ada, 8)
    headers = {"Authorization": f"Bearer {ada.token}"}

    def send(index: int) -> int:
        path, body = "/api/session/responses/", {"responses": batch[: index + 1]}
        if index == 4:
            path, body = "/api/session/withdraw/", {"reason": "", "erase": True}  # type: ignore[dict-item]
        return Client().post(path, body, content_type="application/json", headers=headers).status_code

    assert set(at_once(8, send)) <= {200, 409}
    assert rows() == []


def test_it_drops_events_that_come_after_a_withdrawal(ada: Person) -> None:
    assert notice(ada, event()).status_code == 200 and Event.objects.count() == 1
    ada.call("POST", "/api/session/withdraw/", {"reason": "", "erase": True})
    assert notice(ada, event()).status_code == 200 and not Event.objects.exists()
