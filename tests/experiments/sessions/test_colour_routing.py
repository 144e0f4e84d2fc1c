"""Who goes on after the colour check, how it ends for all others, and what the last page offers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from experiments.definition.colour_vision_verdict import Vision
from experiments.drafting.plates import remove_answers
from experiments.models import Gate, Session, Slot, Study
from experiments.paradigms import get_paradigm
from experiments.paradigms.base import Route
from experiments.wording.sentence_tables import table_of
from tests.experiments.checked import VISIONS, at_the_end, checked_study, person
from tests.experiments.protocols import answer

pytestmark = pytest.mark.django_db

BLIND_REVIEW = get_paradigm("blind_review")


@pytest.fixture
def study(store_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    return checked_study(tmp_path / "checked", monkeypatch)


@pytest.mark.pure
@pytest.mark.parametrize("vision", [None, *VISIONS])
@pytest.mark.parametrize(
    ("lane", "wanted"), [("expert", "ordinary"), ("expert/round-1", "ordinary"), ("lead", "reduced")]
)
def test_experts_have_ordinary_and_leads_reduced_colour_vision(
    lane: str, wanted: str, vision: Vision | None
) -> None:
    """Without a check (None) all people may; who has a lane keeps it."""
    free = {lane: 1}
    expected = lane if vision in (None, wanted) else None
    assert BLIND_REVIEW.lane(Route((), "", free, vision)) == expected
    assert BLIND_REVIEW.lane(Route((), lane, free, vision)) == lane
    assert BLIND_REVIEW.lane(Route((), "lead", {"expert": 1}, "ordinary")) is None


@pytest.mark.pure
def test_an_expert_takes_the_first_round_that_is_free() -> None:
    free = {"expert/round-1": 2, "expert/round-2": 2, "lead": 1}
    assert BLIND_REVIEW.lane(Route((), "", free, "ordinary")) == "expert/round-1"
    assert BLIND_REVIEW.lane(Route((), "", free, "reduced")) == "lead"
    assert BLIND_REVIEW.lane(Route((), "", {}, "ordinary")) is None


@pytest.mark.parametrize(("lane", "goes_on"), [("expert", "ordinary"), ("lead", "reduced")])
def test_who_is_not_needed_leaves_at_once_and_the_other_goes_on(
    study: Study, lane: str, goes_on: str
) -> None:
    Slot.objects.filter(study=study).update(lane=lane)
    for vision in VISIONS:
        each = person(vision, vision)
        at_the_end(each)
        session = each.session()
        if vision == goes_on:
            assert each.state["step"] == "trials" and session.lane == lane
        else:
            assert each.state["page"]["kind"] == "screened" and session.slot is None
            assert session.lane == "participant" and session.claimed_at is None
            last = session.gates.order_by("-id").values_list("kind", flat=True).first()
            assert last == "plates"


def endings(study: Study) -> dict[str, dict[str, Any]]:
    """What everybody who is not needed is told and given, without what names the session."""
    told = {}
    for vision in VISIONS:
        each = person(f"{study.slug}-{vision}", vision)
        closed = at_the_end(each)
        if closed is None:
            continue
        page = {k: v for k, v in each.state.items() if k != "study"}
        told[vision] = {"page": page, "closed": closed}
    return told


def test_all_who_leave_are_told_and_paid_the_same(study: Study) -> None:
    """So is an ordinary person for whom every slot is taken."""
    told = endings(study)
    assert set(told) == {"reduced", "unclear", "skipped"}
    assert told["reduced"] == told["unclear"] == told["skipped"]
    assert "1.00 USD" in " ".join(told["reduced"]["closed"]["pay"])
    reasons = Session.objects.filter(verdict="screened").values_list("reasons", flat=True)
    assert len({json.dumps(each) for each in reasons}) == 1
    Slot.objects.filter(study=study).update(lane="lead")
    late = at_the_end(person("late"))
    assert late == told["reduced"]["closed"]


def test_a_person_whose_slot_went_to_a_rival_is_told_the_same(study: Study) -> None:
    """The ending of those who wait in vain must not be told from that of the others."""
    told = endings(study)
    late = person("late")
    late.arrive("practice")
    Slot.objects.filter(study=study).update(kept=True)
    late.gate(late.good_value())
    assert late.state["step"] == "finish"
    assert {k: v for k, v in late.state.items() if k != "study"} == told["reduced"]["page"]
    assert late.finish().json() == told["reduced"]["closed"]
    assert late.session().state == "finished" and not Session.objects.filter(state="turned_away").exists()


def test_a_reload_after_the_end_shows_the_same(study: Study) -> None:
    ada = person("ada", "reduced")
    first = at_the_end(ada)
    before = dict(ada.state)
    ada.join()
    assert ada.state == before and ada.finish().json() == first


def test_a_preview_is_routed_nowhere(study: Study) -> None:
    from crowd.joining.entry_and_exit import preview_query

    look = person("look", "skipped")
    query = preview_query(study, 0)
    joined = look.call(
        "POST", "/api/sessions/", {"study": "tasks", "platform": "local", "query": query}, "none"
    )
    look.token, look.state = joined.json()["token"], joined.json()["session"]
    while look.state["step"] not in ("trials", "finish"):
        assert look.gate(look.good_value()).status_code == 200
    assert look.state["step"] == "trials"


def test_observers_take_the_check_over_http(study: Study, live_server: Any) -> None:
    """They agree to it and look at the plates that are served; without eyes for colours they leave."""
    from experiments.simulation import person_class
    from experiments.simulation.browser.connection import Line, open_pool
    from experiments.simulation.browser.participant_run import SimulatedSession
    from experiments.simulation.browser.picture_cache import Album

    with open_pool(live_server.url, 1) as pool:
        line = Line(pool)
        outcome = SimulatedSession(person_class("guesser").drawn(1, 1), line, Album(), quiz={}).take("tasks")
    assert outcome.status == "screened"
    session = Session.objects.get(origin="simulated")
    assert session.gates.get(kind="consent").value == {"agree": True, "plates": True}
    value = session.gates.get(kind="plates").value
    assert value["filter"] == "off" and len(value) == 13


# After the end


@pytest.mark.parametrize("vision", VISIONS)
def test_the_result_is_told_to_the_person_after_the_end_alone(study: Study, vision: str) -> None:
    ada = person("ada", vision)
    ada.join()
    while ada.state["step"] not in ("trials", "finish"):
        early = ada.call("GET", "/api/session/check/")
        assert early.status_code == 409
        ada.gate(ada.good_value())
    if ada.state["step"] == "trials":
        assert ada.call("GET", "/api/session/check/").status_code == 409
        answer(ada)
        assert ada.call("GET", "/api/session/check/").status_code == 409
    closed = ada.finish().json()
    assert closed["has_check"] and closed["invites"]
    told = ada.call("GET", "/api/session/check/").json()
    assert list(told) == ["html"]
    others = [v for v in VISIONS if v != vision]
    first = {v: table_of("en")["pages"][f"check_{v}"].strip().split(".")[0] for v in VISIONS}
    assert first[vision] in told["html"] and not [v for v in others if first[v] in told["html"]]
    assert "diagnosis" in told["html"]


def test_nobody_elses_token_tells_it(study: Study) -> None:
    ada, bea = person("ada", "reduced"), person("bea")
    at_the_end(ada)
    bea.arrive("plates")
    assert ada.call("GET", "/api/session/check/", token="none").status_code == 401
    assert bea.call("GET", "/api/session/check/").status_code == 409
    older = ada.token
    ada.join()
    assert ada.call("GET", "/api/session/check/", token=older).status_code == 401
    assert ada.call("GET", "/api/session/check/").status_code == 200


def test_removed_answers_tell_nothing_any_more(study: Study) -> None:
    ada = person("ada", "reduced")
    at_the_end(ada)
    assert remove_answers(Session.objects.filter(study=study)) == 1
    assert remove_answers(Session.objects.filter(study=study)) == 0
    assert "nothing to tell" in ada.call("GET", "/api/session/check/").json()["html"]


def test_an_invitation_is_asked_for_once_and_the_first_answer_stands(study: Study) -> None:
    ada = person("ada", "unclear")
    ada.arrive("plates")
    assert ada.call("POST", "/api/session/invitation/", {"agree": True}).status_code == 409
    assert at_the_end(ada)["invites"]
    for wrong in ({}, {"agree": "yes"}, {"agree": True, "more": 1}):
        assert ada.call("POST", "/api/session/invitation/", wrong).status_code == 400
    for sent in (True, False):
        reply = ada.call("POST", "/api/session/invitation/", {"agree": sent})
        assert (reply.status_code, reply.json()) == (200, {"agree": True})
    assert Gate.objects.get(kind="invitation").value == {"agree": True}
    again = ada.finish().json()
    assert not again["invites"] and again["has_check"]
