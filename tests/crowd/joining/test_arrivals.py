"""Who came is verified, unverified or unconfirmable: what each means for the slot, the code and the data."""

from __future__ import annotations

import base64
import json
import socket
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from threading import Event
from typing import Any

import pytest
from django.conf import settings
from django.utils import timezone
from redis import Redis

from analysis.exports.study_export import Request, choose_sessions
from analysis.reports.parts.flow import flow_section
from analysis.tables.response_reader import read_frames, study_facts
from crowd import tasks
from crowd.ground.platform_accounts import posted_of, service_of
from crowd.joining import platform_arrival_lookup
from crowd.joining.platform_arrival_lookup import ASKED_PER_MINUTE, encrypt_id
from crowd.joining.rate_limits import may_ask
from crowd.models import Identity, JoinCount, Posting, Submission
from crowd.money.run import look
from crowd.platforms.base import ListedSubmission, PlatformError
from crowd.recruiting.places import top_up
from crowd.recruiting.publishing import publish_posting
from experiments.models import Session, Slot, Study
from tests import world
from tests.crowd.arrivals import Visitor, posting, prolific
from tests.crowd.offered_studies import (
    PLATFORMS,
    POLICY,
    arrive,
    changed,
    hand_in,
    known_there,
    public,
    simulated,
    study_of,
)

__all__ = ["public"]
pytestmark = pytest.mark.django_db


@pytest.fixture
def study(small: Study) -> Study:
    return changed(small, policy=POLICY)


def rehearsed(study: Study, platform: str, sim: Any) -> Posting:
    # Fewer places than slots: also people whom the platform does not list find one.
    return publish_posting(study, platform, "rehearsal", site=sim.url, places=4)


def invented(posting: Posting, name: str = "nobody") -> Visitor:
    """A visitor whose ids the platform never gave out."""
    fields = {"PROLIFIC_PID": name, "STUDY_ID": posting.external_id, "SESSION_ID": f"s-{name}"}
    return Visitor(name, posting.study.slug, via=posting.key, fields=fields)


def finished(visitor: Visitor) -> dict[str, Any]:
    """The whole session; the body of its last answer."""
    visitor.arrive()
    visitor.answer()
    reply = visitor.end()
    assert reply.status_code == 200, reply.content
    body: dict[str, Any] = reply.json()
    return body


def minutes_of(session: Session) -> float:
    assert session.lease_ends_at is not None and session.claimed_at is not None
    return (session.lease_ends_at - session.claimed_at).total_seconds() / 60


def held_for_s(session: Session) -> float:
    """How long from now the session holds its slot."""
    ends_at = Slot.objects.get(holder=session).lease_ends_at
    assert ends_at is not None
    return (ends_at - timezone.now()).total_seconds()


def cleaned(study: Study, origin: str = "simulated") -> int:
    reader, _ = choose_sessions(study, Request(cleaned=True, origin=origin))
    return len(reader.frames().participants)


def test_it_verifies_at_once_whom_the_platform_lists(study: Study) -> None:
    with simulated("prolific") as sim:
        offered = rehearsed(study, "prolific", sim)
        ada = arrive(offered, sim)
        ada.arrive()
        session = ada.session()
        assert session.arrival == "verified" and minutes_of(session) == 1200
        row = Submission.objects.get()
        assert row.seen_at is not None and row.external_id == ""
        assert offered.codes["complete"] in finished(ada)["exit"]["url"]
        assert Slot.objects.get(holder=ada.session()).kept


def test_it_gives_no_code_to_ids_that_were_made_up(study: Study) -> None:
    with simulated("prolific") as sim:
        offered = rehearsed(study, "prolific", sim)
        nobody = invented(offered)
        nobody.arrive()
        assert minutes_of(nobody.session()) == settings.UNVERIFIED_LEASE_S / 60 == 10
        body = finished(nobody)
        assert body["exit"] == {"method": "none", "url": "", "fields": {}}
        assert "does not list your submission" in body["debrief"] and "lab@example.org" in body["debrief"]
        assert not any(code in str(body) for code in offered.codes.values())
        session = nobody.session()
        assert (session.verdict, session.arrival) == ("passed", "unverified")
        assert not Slot.objects.get(holder=session).kept and held_for_s(session) < 601
        # A page that leaves out where it came from learns no code either.
        assert nobody.finish().json()["exit"]["method"] == "none"
        ada = arrive(offered, sim)
        finished(ada)
        assert cleaned(study) == 1
        people = read_frames(study).participants
        assert sorted(people["arrival"]) == ["unverified", "verified"]


def test_it_gives_no_code_of_any_kind_before_the_end(study: Study) -> None:
    with simulated("prolific") as sim:
        offered = rehearsed(study, "prolific", sim)
        for name, leave in (("leaves", True), ("declines", False)):
            visitor = invented(offered, name)
            visitor.arrive(until="consent")
            if leave:
                body = visitor.leave().json()
            else:
                visitor.gate({"agree": False, "device": dict(world.WINDOW)})
                body = visitor.end().json()
            assert body["exit"]["method"] == "none", name


def test_it_does_not_take_another_persons_submission_for_proof(study: Study) -> None:
    with simulated("prolific") as sim:
        offered = rehearsed(study, "prolific", sim)
        ada = arrive(offered, sim)
        thief = invented(offered, "thief")
        thief.fields = {**(thief.fields or {}), "SESSION_ID": ada.submission}
        assert thief.join().status_code == 403
        # While the platform is down, an arrival cannot be told from a theft; afterwards it is.
        sim.faults.down = True
        bo = arrive(offered, sim, "bo")
        thief.fields = {**thief.fields, "SESSION_ID": bo.submission}
        assert thief.join().status_code == 201
        sim.faults.down = False
        assert not look(offered).error
        assert thief.session().arrival == "unverified"
        assert finished(thief)["exit"]["method"] == "none"


def test_it_lets_everybody_finish_while_the_platform_is_down(study: Study) -> None:
    count = Slot.objects.filter(study=study, pilot=False).count()
    with simulated("prolific", options={"currency": "USD"}) as sim:
        offered = publish_posting(study, "prolific", "rehearsal", site=sim.url, places=count)
        people = [arrive(offered, sim, f"p{number}") for number in range(count)]
        sim.faults.down = True
        for person in people:
            assert person.join().status_code == 201
        assert set(Session.objects.values_list("arrival", flat=True)) == {"unverified"}
        for person in people:
            assert offered.codes["complete"] in finished(person)["exit"]["url"]
        assert cleaned(study) == 0 and not Slot.objects.filter(kept=True).exists()
        sim.faults.down = False
        for person in people:
            hand_in(sim, person, offered.codes["complete"])
        assert not look(offered).error
        assert set(Session.objects.values_list("arrival", flat=True)) == {"verified"}
        assert cleaned(study) == count and Slot.objects.filter(kept=True).count() == count
        assert not any(
            "surplus" in str(reasons) for reasons in Session.objects.values_list("reasons", flat=True)
        )


def test_it_asks_again_before_the_way_back(study: Study) -> None:
    with simulated("prolific") as sim:
        offered = rehearsed(study, "prolific", sim)
        ada = arrive(offered, sim)
        sim.faults.down = True
        ada.arrive()
        ada.answer()
        assert ada.session().arrival == "unverified"
        sim.faults.down = False
        assert offered.codes["complete"] in ada.end().json()["exit"]["url"]
        assert ada.session().arrival == "verified" and Slot.objects.get(holder=ada.session()).kept


@contextmanager
def answered_unconfirmed(study: Study) -> Iterator[tuple[Posting, Visitor]]:
    """A person who answered all while the platform was down; it is back, and has not been asked again."""
    with simulated("prolific") as sim:
        offered = rehearsed(study, "prolific", sim)
        ada = arrive(offered, sim)
        sim.faults.down = True
        ada.arrive()
        ada.answer()
        sim.faults.down = False
        yield offered, ada


def test_a_flood_of_arrivals_keeps_nobody_from_leaving(study: Study) -> None:
    with answered_unconfirmed(study) as (offered, ada):
        while may_ask(offered, "joins", ASKED_PER_MINUTE):
            pass
        assert offered.codes["complete"] in ada.end().json()["exit"]["url"]


def test_who_leaves_in_a_crowd_is_told_when_to_try_again_and_loses_nothing(study: Study) -> None:
    with answered_unconfirmed(study) as (offered, ada):
        while may_ask(offered, "leaves", ASKED_PER_MINUTE):
            pass
        reply = ada.end()
        assert (reply.status_code, reply["Retry-After"]) == (429, "30")
        JoinCount.objects.all().delete()
        assert offered.codes["complete"] in ada.end().json()["exit"]["url"]


@pytest.mark.both_databases("claims and leases")
def test_it_returns_the_ordinary_lease_to_a_person_who_is_confirmed_late(study: Study) -> None:
    with simulated("prolific") as sim:
        offered = rehearsed(study, "prolific", sim)
        ada = arrive(offered, sim)
        sim.faults.down = True
        ada.arrive()
        assert minutes_of(ada.session()) == 10
        sim.faults.down = False
        assert "an arrival is confirmed: 1." in look(offered).changes
        session = ada.session()
        assert minutes_of(session) == 1200
        assert Slot.objects.get(holder=session).lease_ends_at == session.lease_ends_at


@pytest.mark.both_databases("claims and leases")
def test_it_calls_a_person_surplus_whose_slot_went_on_meanwhile(study: Study) -> None:
    with simulated("prolific") as sim:
        offered = rehearsed(study, "prolific", sim)
        ada = arrive(offered, sim)
        sim.faults.down = True
        finished(ada)
        slot = Slot.objects.filter(holder=ada.session())
        slot.update(lease_ends_at=timezone.now() - timedelta(seconds=1))
        bo = world.Person("bo")
        bo.arrive()
        assert bo.session().slot == ada.session().slot
        sim.faults.down = False
        look(offered)
        session = ada.session()
        assert session.arrival == "verified" and [r["rule"] for r in session.reasons] == ["surplus"]
        assert session.slot is not None and session.slot.holder == bo.session()


@contextmanager
def silent() -> Iterator[socket.socket]:
    """A platform that takes every call and answers none."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def calls(server: socket.socket) -> int:
    """How many have called since it was asked last."""
    server.settimeout(0)
    count = 0
    with suppress(BlockingIOError):
        while True:
            server.accept()[0].close()
            count += 1
    return count


def test_it_waits_for_a_silent_platform_two_seconds_and_for_one_person_only(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []

    def result(future: Future[Any], timeout: float) -> Any:
        waited.append(timeout)
        return wait(future, timeout)

    wait = Future.result
    monkeypatch.setattr(Future, "result", result)
    with silent() as server:
        offered = posting(
            study, "prolific", mode="rehearsal", site=f"http://127.0.0.1:{server.getsockname()[1]}"
        )
        for name, asked in (("ada", 1), ("bo", 0), ("cy", 0)):
            assert prolific(name, offered).join().status_code == 201
            assert calls(server) == asked, "the next people are let in without a call"
    assert waited == [2.0]


def test_it_confirms_by_a_message_that_names_nobody(study: Study) -> None:
    with simulated("prolific") as sim:
        offered = rehearsed(study, "prolific", sim)
        ada = arrive(offered, sim)
        sim.faults.down = True
        ada.join()
        message = encrypt_id(ada.submission)
        assert ada.submission not in message
        tasks.confirm_arrival(offered.pk, message)
        assert ada.session().arrival == "unverified"
        sim.faults.down = False
        tasks.confirm_arrival(offered.pk, message)
        assert ada.session().arrival == "verified"
        assert Identity.objects.get().external_id == ""


def test_a_person_comes_in_while_a_message_to_a_worker_is_still_on_its_way(
    study: Study, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_in, was_sent_before = Event(), list[bool]()
    monkeypatch.setattr(
        platform_arrival_lookup, "_send", lambda *_: was_sent_before.append(not let_in.wait(60))
    )
    settings.CELERY_BROKER_URL = "redis://127.0.0.1:1"
    with simulated("prolific") as sim:
        ada = arrive(rehearsed(study, "prolific", sim), sim)
        assert ada.join().status_code == 201
    let_in.set()
    platform_arrival_lookup._senders.submit(int).result()
    assert was_sent_before == [False], "the page waited for the message"


def test_it_sends_a_worker_the_message_and_lets_people_in_with_a_dead_broker(
    study: Study, settings: Any, redis_url: str
) -> None:
    with simulated("prolific") as sim:
        offered = rehearsed(study, "prolific", sim)
        before = sim.calls_count
        ada, bo = arrive(offered, sim), arrive(offered, sim, "bo")
        settings.CELERY_BROKER_URL = "redis://127.0.0.1:1"
        assert ada.join().status_code == 201
        settings.CELERY_BROKER_URL = redis_url
        assert bo.join().status_code == 201 and bo.session().arrival == "unverified"
        assert sim.calls_count == before, "the server itself asks nothing"
        sent = Redis.from_url(redis_url).blpop(["celery"], timeout=20)
        assert sent is not None
        message = json.loads(sent[1])
        assert message["headers"]["task"] == tasks.confirm_arrival.name
        assert bo.submission not in str(message)
        tasks.confirm_arrival(*json.loads(base64.b64decode(message["body"]))[0])
        assert bo.session().arrival == "verified" and ada.session().arrival == "unverified"


@pytest.mark.parametrize("platform", PLATFORMS)
def test_it_hears_of_one_submission(study: Study, platform: str) -> None:
    with simulated(platform) as sim:
        offered = rehearsed(study, platform, sim)
        service = service_of(offered)
        taken = sim.control("take")
        name = str(taken["submission"])
        early = service.submission(posted_of(offered), name)
        # Mechanical Turk shows what is submitted, and nothing before.
        assert (early is None) == (platform == "mturk")
        sim.control("complete", submission=name, code=offered.codes["complete"])
        sim.control("advance", seconds=60)
        told = service.submission(posted_of(offered), name)
        assert isinstance(told, ListedSubmission)
        assert told == next(iter(service.submissions(posted_of(offered)))) and told.person == taken["person"]
        other = {"prolific": "64b7c0ffee0000000000dead", "mturk": "3OTHER:A1OTHER"}[platform]
        assert service.submission(posted_of(offered), other) is None
        foreign = replace(posted_of(offered), external_id="elsewhere", facts={"hits": [], "base_cents": 1})
        assert service.submission(foreign, name) is None
        sim.faults.down = True
        with pytest.raises(PlatformError):
            service.submission(posted_of(offered), name)


def test_it_keeps_the_slot_of_a_turk_worker_for_the_whole_time(study: Study) -> None:
    """The time allowed there is longer than the study's own lease, and the listing comes after it."""
    study = changed(study, recruitment={"maximum_minutes": 1380})
    with simulated("mturk") as sim:
        offered = rehearsed(study, "mturk", sim)
        ada = arrive(offered, sim)
        ada.arrive()
        session = ada.session()
        assert session.arrival == "unverified" and minutes_of(session) == 1380
        pass_time(session, minutes=1379)
        ada.answer()
        code = ada.end().json()["exit"]["fields"]["completion"]
        assert code == offered.codes["complete"]
        # The lease would be over before the platform is read again; the slot waits for that.
        assert held_for_s(session) > 23 * 3600
        hand_in(sim, ada, code)
        look(offered)
        assert ada.session().arrival == "verified" and Slot.objects.get(holder=session).kept
        assert ada.session().reasons == [] and cleaned(study) == 1


def pass_time(session: Session, minutes: float) -> None:
    """Moves what the session has behind it into the past."""
    moved = timedelta(minutes=minutes)
    assert session.claimed_at is not None and session.lease_ends_at is not None
    ends = session.lease_ends_at - moved
    Session.objects.filter(pk=session.pk).update(claimed_at=session.claimed_at - moved, lease_ends_at=ends)
    Slot.objects.filter(holder=session).update(lease_ends_at=ends)


def test_it_keeps_all_who_passed_where_no_platform_confirms(study: Study) -> None:
    by_link = posting(study, "link")
    for name in ("ada", "bo"):
        finished(Visitor(name, study.slug, via=by_link.key, platform="link", fields={"person": name}))
    assert set(Session.objects.values_list("arrival", "origin")) == {("unconfirmable", "human")}
    assert cleaned(study, "human") == 2 and Slot.objects.filter(kept=True).count() == 2
    section = flow_section(read_frames(study).participants, study_facts(study))
    assert section.content["unconfirmable"] == {"arrived": 2, "passed": 2}
    assert section.content["unverified"] == 0 and section.content["passed"] == 2
    assert "2 came by an address that no platform confirms" in section.paragraphs[1]


def test_it_reports_unverified_people_apart(study: Study) -> None:
    with simulated("prolific") as sim:
        offered = rehearsed(study, "prolific", sim)
        finished(invented(offered))
        finished(arrive(offered, sim))
    section = flow_section(read_frames(study).participants, study_facts(study, "simulated"))
    assert (section.content["arrived"], section.content["passed"], section.content["unverified"]) == (1, 1, 1)
    assert "1 more came whom their platform could have confirmed" in section.paragraphs[1]


def test_it_opens_no_place_for_a_code_that_was_passed_on() -> None:
    """M6: the person handed in and never came here."""
    with simulated("prolific") as sim:
        offered = publish_posting(
            study_of(), "prolific", "rehearsal", site=sim.url, places=4, cap_cents=100_000
        )
        taken = sim.control("take")
        sim.control("complete", submission=taken["submission"], code=offered.codes["complete"])
        sim.control("advance", seconds=60)
        for _ in range(2):
            assert not look(offered).error
        offered.refresh_from_db()
        row = Submission.objects.get()
        assert (row.session, row.state, offered.places) == (None, "awaiting", 4)
        assert top_up(offered) == 0 and known_there(row, sim)["reward_paid_cents"] == 0


@pytest.mark.parametrize("is_split", [False, True])
def test_it_lets_people_of_an_unknown_part_in_only_if_the_study_has_parts(
    study: Study, public: None, is_split: bool
) -> None:
    """The ids of a weighted study's parts are known only from their first submissions."""
    weights = {"weightings": {"0": 1, "1": 1}} if is_split else {}
    options = {"filters": [{"filter_id": "sex", "selected_values": ["0", "1"], **weights}]}
    row = posting(study, "prolific", options=options)
    reply = prolific("ada", row, extra={"STUDY_ID": "64f0000000000000000000a1"}).join()
    assert reply.status_code == (201 if is_split else 400), reply.content
    if is_split:
        assert Session.objects.get().arrival == "unverified"
