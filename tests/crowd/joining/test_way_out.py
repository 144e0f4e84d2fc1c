"""How people get back to the platform, and with which code."""

from __future__ import annotations

from typing import Any

import pytest

from crowd.models import Payout, Posting
from crowd.money.ledger import decide_due, withhold
from experiments.models import Gate, Session, Slot, Study
from experiments.sessions.lifecycle import mark_left
from tests.crowd.arrivals import OUTCOMES, Visitor, posting, prolific, refused, turker
from tests.world import Person

pytestmark = pytest.mark.django_db


@pytest.fixture
def small(built: int, db: None) -> Study:
    return Study.objects.get(pk=built)


@pytest.fixture
def offered(small: Study) -> Posting:
    """The small study, live on Prolific."""
    return posting(small, "prolific")


@pytest.fixture
def hits(small: Study) -> Posting:
    """The small study, live on Mechanical Turk."""
    return posting(small, "mturk")


def fate(outcome: str, visitor: Visitor) -> Any:
    """Takes part up to the last call, whose reply holds the exit."""
    if outcome in ("complete", "failed_checks"):
        visitor.arrive()
        visitor.answer(miss_checks=outcome == "failed_checks")
        return visitor.end()
    if outcome == "screened":
        visitor.arrive("quiz")
        visitor.gate({"task": "truth"})
        visitor.gate({"task": "truth"})
        return visitor.end()
    if outcome == "declined":
        visitor.arrive("consent")
        visitor.gate({"agree": False})
        return visitor.end()
    if outcome == "turned_away":
        visitor.arrive("practice")
        Slot.objects.update(kept=True)
        visitor.gate(visitor.good_value())
        return visitor.end()
    visitor.join()
    if outcome == "device":
        visitor.gate({**visitor.good_value(), "width_px": 390})
        return visitor.leave("no suitable device")
    visitor.arrive("trials" if outcome == "withdrawn" else "quiz")
    if outcome == "withdrawn":
        visitor.answer(3)
    return visitor.leave("technical failure" if outcome == "failure" else "time")


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_it_tells_the_end_to_the_platform_and_not_before(
    offered: Posting, outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No reply before the end holds a code; the last one holds the one code of this outcome."""
    ada, heard = prolific("ada", offered), []
    plain = Person.call

    def listening(self: Person, *arguments: Any) -> Any:
        reply = plain(self, *arguments)
        heard.append(reply.content.decode())
        return reply

    monkeypatch.setattr(Person, "call", listening)
    reply = fate(outcome, ada).json()
    assert (
        reply["exit"]["url"] == f"https://app.prolific.com/submissions/complete?cc={offered.codes[outcome]}"
    )
    early = [code for code in offered.codes.values() if any(code in reply for reply in heard[:-1])]
    assert early == [] and len(heard) > 1
    assert [code for code in offered.codes.values() if code in heard[-1]] == [offered.codes[outcome]]
    assert ada.end().json()["exit"] == reply["exit"]


@pytest.mark.parametrize("outcome", ["complete", "failed_checks", "screened", "turned_away", "withdrawn"])
def test_it_builds_the_form_of_the_platform_from_the_page_s_own_query(hits: Posting, outcome: str) -> None:
    ada = turker("A1ADA", hits)
    reply = fate(outcome, ada).json()
    assert reply["exit"] == {
        "method": "POST",
        "url": "https://www.mturk.com/mturk/externalSubmit",
        "fields": {"assignmentId": "3AA1ADA", "completion": hits.codes[outcome]},
    }


@pytest.mark.parametrize("outcome", ["declined", "device"])
def test_it_asks_to_give_work_back_where_nothing_was_done(hits: Posting, outcome: str) -> None:
    assert fate(outcome, turker("A1ADA", hits)).json()["exit"]["method"] == "none"


LEAVERS: dict[str, dict[str, bool]] = {
    "pro_rata": {"device": False, "consent": False, "quiz": False, "trials": False, "answered": True},
    "full": {"device": False, "consent": False, "quiz": True, "trials": True, "answered": True},
    "none": {"device": False, "consent": False, "quiz": False, "trials": False, "answered": False},
}
"""By the study's policy for withdrawing: how far the person is, and whether leaving there earns anything."""


@pytest.mark.parametrize("reason", ["time", "technical failure"])
@pytest.mark.parametrize("policy", list(LEAVERS))
def test_it_hands_in_work_only_for_leavers_who_earned_something(
    hits: Posting, policy: str, reason: str
) -> None:
    """Amazon pays every submission, reviewed or not; so a page that was only opened is not submitted."""
    definition = {**hits.study.definition, "policy": {"withdrawn": policy}}
    Study.objects.filter(id=hits.study_id).update(definition=definition, digest=f"{policy}-leaver")
    outcome = "failure" if "failure" in reason else "withdrawn"
    for number, (place, earns) in enumerate(LEAVERS[policy].items()):
        ada = turker(f"A{number}ADA", hits)
        ada.join()
        ada.arrive("trials" if place == "answered" else place)
        if place == "answered":
            ada.answer(2)
        way = ada.leave(reason).json()["exit"]
        assert way["method"] == ("POST" if earns else "none"), place
        assert way["fields"].get("completion") == (hits.codes[outcome] if earns else None), place
        assert ada.end().json()["exit"] == way, "a repeat says the same"


def test_it_submits_the_part_of_a_leaver_who_has_the_answers_removed(hits: Posting) -> None:
    ada = turker("A1ADA", hits)
    ada.arrive()
    ada.answer(2)
    reply = ada.leave("time", erase=True).json()
    assert reply["exit"]["fields"]["completion"] == hits.codes["withdrawn"]


def test_a_page_that_is_loaded_again_leads_out_whatever_was_decided_about_the_money(hits: Posting) -> None:
    ada = turker("A1ADA", hits)
    ada.arrive()
    ada.answer(2)
    way = ada.leave("time", erase=True).json()["exit"]
    assert way["method"] == "POST"
    decide_due(hits)
    assert withhold([row.pk for row in Payout.objects.all()], "grace", "The address was forged.") > 0
    assert ada.end().json()["exit"] == way


def test_it_keeps_the_completion_code_of_a_person_who_withdraws_after_finishing(
    hits: Posting, offered: Posting
) -> None:
    bo, ada = prolific("bo", offered), turker("A1ADA", hits)
    for visitor in (bo, ada):
        visitor.arrive()
        visitor.answer()
        done = visitor.end().json()["exit"]
        assert visitor.leave("changed my mind", erase=True).json()["exit"] == done
    assert done["fields"]["completion"] == hits.codes["complete"]


def test_it_gives_no_code_of_completion_for_an_end_that_is_not_due(offered: Posting, hits: Posting) -> None:
    """Asking too early, with another person's query or after leaving: in no case is the work complete."""
    bo = prolific("bo", offered)
    bo.arrive()
    bo.answer()
    for step in ("device", "consent", "quiz", "practice", "trials"):
        ada = prolific(f"ada-{step}", offered)
        ada.join()
        ada.arrive(step)
        for query in (ada.address(), bo.address(), ""):
            reply = ada.call("POST", "/api/session/finish/", {"comment": None, "query": query})
            assert reply.status_code in (400, 409) and offered.codes["complete"] not in reply.content.decode()
        left = ada.leave("time").content.decode()
        assert offered.codes["withdrawn"] in left and offered.codes["complete"] not in left
        reply = ada.call("POST", "/api/session/finish/", {"comment": None, "query": bo.address()})
        assert reply.status_code == 400
        again = prolific(f"ada-{step}", offered)
        again.join()
        assert offered.codes["withdrawn"] in again.end().content.decode()


def test_it_does_without_the_query_where_the_way_back_needs_none(offered: Posting) -> None:
    ada = prolific("ada", offered)
    ada.arrive()
    ada.answer()
    Session.objects.update(arrival="verified")
    assert ada.finish().json()["exit"]["url"].endswith(offered.codes["complete"])


def test_it_refuses_a_query_of_another_person(hits: Posting, offered: Posting) -> None:
    ada, bo = turker("A1ADA", hits), turker("A1BO", hits)
    bo.join()
    ada.arrive()
    ada.answer()
    mine, bo_s = dict(ada.fields or {}), dict(bo.fields or {})
    wrong: list[Any] = [{**mine, "workerId": "A1BO"}, {**mine, "assignmentId": "3OTHER"}, bo_s, {}]
    for fields in wrong:
        ada.fields = fields
        refused(ada.end(), 400, "invalid")
    ada.query = "x" * 5000
    refused(ada.end(), 400, "invalid")
    refused(ada.call("POST", "/api/session/finish/", {"comment": None, "query": 7}), 400, "invalid")
    ada.query = ""
    assert ada.session().state == "running"
    ada.fields = mine
    assert ada.end().json()["exit"]["fields"]["completion"] == hits.codes["complete"]


def test_it_never_gives_the_completion_code_to_a_leaver(offered: Posting) -> None:
    """The platform said that they are gone: their session is over, but not everything was answered."""
    ada = prolific("ada", offered)
    ada.arrive()
    ada.answer(5)
    mark_left(ada.session())
    assert ada.end().json()["exit"]["url"].endswith(offered.codes["withdrawn"])


def test_it_gives_no_completion_code_to_a_leaver_who_has_the_answers_removed(
    offered: Posting,
) -> None:
    ada = prolific("ada", offered)
    ada.arrive()
    ada.answer(5)
    mark_left(ada.session())
    reply = ada.leave("use nothing of mine", erase=True).json()
    assert reply["exit"]["url"].endswith(offered.codes["withdrawn"]) and not reply["asks_again"]
    session = ada.session()
    assert session.erased["responses"] == 5 and (session.state, session.verdict) == ("finished", "incomplete")
    assert ada.end().json()["exit"] == reply["exit"]


def test_it_pays_no_attention_to_the_device_once_one_has_fitted(offered: Posting) -> None:
    ada = prolific("ada", offered)
    ada.join()
    ada.gate({**ada.good_value(), "width_px": 390})
    ada.gate(ada.good_value())
    assert Gate.objects.filter(kind="device", passed=True).exists()
    reply = ada.leave("time").json()
    assert reply["exit"]["url"].endswith(offered.codes["withdrawn"]) and reply["debrief"] is None


def test_it_shows_the_debrief_to_people_who_agreed_and_left(offered: Posting) -> None:
    ada = prolific("ada", offered)
    ada.arrive()
    assert "debrief" in ada.leave("time").json()["debrief"]
