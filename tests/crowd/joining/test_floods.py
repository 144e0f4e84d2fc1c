"""Many arrivals from one address: refused, seen and undone, while the others come in."""

from __future__ import annotations

import json
import logging
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from threading import Barrier
from typing import Any

import pytest
from django.conf import settings
from django.core.cache import caches
from django.db import connection
from django.test import Client
from django.utils import timezone

from crowd import tasks
from crowd.ground.audit import study_log
from crowd.joining.floods import floods, release
from crowd.models import JoinCount, Posting, Submission
from crowd.money.run import look
from crowd.recruiting.publishing import publish_posting
from experiments.errors import StudyError
from experiments.models import Event, Hold, Session, Slot, Study
from experiments.sessions.pseudonyms import namer
from experiments.sessions.slot_assignment import places_left
from tests import world
from tests.analysis import stored
from tests.crowd.arrivals import Visitor, posting, refused
from tests.crowd.offered_studies import POLICY, arrive, changed, public, simulated, study_of

__all__ = ["public"]
pytestmark = pytest.mark.django_db
FLOOD, OTHER, MOST = "203.0.113.7", "198.51.100.{}", 8
NETWORK = "2001:db8:5:6"


def from_address(address: str) -> Client:
    """A browser behind our proxy, which says whose it is."""
    return Client(headers={"X-Forwarded-For": address})


def by_link(name: str, offered: Posting, address: str = FLOOD) -> Visitor:
    visitor = Visitor(name, offered.study.slug, via=offered.key, platform="link", fields={"person": name})
    visitor.client = from_address(address)
    return visitor


def invented(number: int, offered: Posting, client: Client) -> Visitor:
    fields = {"PROLIFIC_PID": f"n{number}", "STUDY_ID": offered.external_id, "SESSION_ID": f"s{number}"}
    visitor = Visitor(f"n{number}", offered.study.slug, via=offered.key, fields=fields)
    visitor.client = client
    return visitor


class Flooding:
    """A script that joins again and again from one IPv4 address and from addresses of one network of IPv6,
    and goes on to a slot with every session that it gets."""

    def __init__(self, offered: Posting) -> None:
        self.offered, self.rng, self.count = offered, Random(5), 0
        self.client = Client()
        self.statuses: Counter[int] = Counter()

    def address(self) -> str:
        tail = ":".join(f"{self.rng.randrange(1, 65536):x}" for _ in range(4))
        return FLOOD if self.count % 2 else f"{NETWORK}:{tail}"

    def join(self, times: int) -> None:
        for _ in range(times):
            self.count += 1
            # One client for all: a new one reads every file of the page.
            self.client.defaults["HTTP_X_FORWARDED_FOR"] = self.address()
            visitor = invented(self.count, self.offered, self.client)
            reply = visitor.join()
            self.statuses[reply.status_code] += 1
            if reply.status_code == 201:
                visitor.arrive()


def test_a_network_holds_few_times_as_many_places_as_one_of_its_parts(study: Study, settings: Any) -> None:
    settings.ADDRESS_PLACES_MAX, settings.JOINS_PER_MINUTE = 2, 1000
    offered = posting(study, "link")

    def let_in(address: str, count: int) -> int:
        rows = [by_link(f"{address}-{n}", offered, address.format(n)).join() for n in range(count)]
        return sum(reply.status_code == 201 for reply in rows)

    assert let_in("2001:db8:5:6::{}", 5) == 2
    # Of 256 networks of 64 bits in one of 56, then of 256 of these in one of 48.
    assert let_in("2001:db8:5:1{:02x}::1", 9) == 4 and let_in("2001:db8:5:{:x}00::1", 20) == 2
    assert let_in("2001:db8:6:{:x}00::1", 20) == 8
    assert let_in("198.51.100.{}", 5) == 5


@pytest.mark.full
def test_it_lets_people_in_through_a_flood(
    tmp_path: Path, store_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """50 people among 5,000 joins, which come before all of them and between any two steps of theirs."""
    count, wave = 50, 40
    joins = (25 + 2 * count) * wave
    monkeypatch.setattr(logging.getLogger("django.request"), "disabled", True)
    study = changed(world.opened_study(world.write_study(tmp_path / "large", slots=67)), policy=POLICY)
    with simulated("prolific") as sim:
        offered = publish_posting(study, "prolific", "rehearsal", site=sim.url, places=3 * count)
        flooding, people = Flooding(offered), []
        flooding.join(25 * wave)
        for number in range(count):
            person = arrive(offered, sim, f"p{number}")
            # Every fifth sits behind the very address that floods.
            person.client = from_address(FLOOD if number % 5 == 0 else OTHER.format(number))
            people.append(person)
        for number, person in enumerate(people):
            if person.join().status_code == 429:
                # Beat reads the platform's list every two minutes, and the page comes again by itself.
                assert number % 5 == 0 and tasks.sync_postings() == 1
                assert person.join().status_code == 201
            flooding.join(wave)
        for person in people:
            person.arrive()
            flooding.join(wave)
        for person in people:
            person.answer()
            assert offered.codes["complete"] in person.end().json()["exit"]["url"]
        assert flooding.count == joins and set(flooding.statuses) == {201, 429}
        assert flooding.statuses[201] <= 2 * MOST
        unverified = Session.objects.filter(arrival="unverified")
        assert Slot.objects.filter(holder__in=unverified).count() <= 2 * MOST
        assert Session.objects.filter(arrival="verified", verdict="passed").count() == count
        assert Slot.objects.filter(kept=True).count() == count
        shown = floods(study)
        assert len(shown) == 2 and sum(flood.refused for flood in shown) >= joins - 2 * MOST


@pytest.mark.both_databases("constraints")
@pytest.mark.django_db(transaction=True)
def test_it_holds_no_more_places_however_many_join_together() -> None:
    """Two processes count one number: each thread has a connection of its own."""
    offered = posting(stored.opened(slots=20), "link")
    together = Barrier(4, timeout=60)

    def join(part: int) -> list[int]:
        try:
            together.wait()
            return [by_link(f"n{part}-{number}", offered).join().status_code for number in range(10)]
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        statuses = Counter(status for part in pool.map(join, range(4)) for status in part)
    assert statuses == {201: MOST, 429: 40 - MOST}
    assert set(Hold.objects.values_list("number", flat=True)) == set(range(MOST))
    assert sum(JoinCount.objects.values_list("joins", flat=True)) == 40
    assert Session.objects.count() == MOST
    assert by_link("honest", offered, OTHER.format(1)).join().status_code == 201


@pytest.fixture
def still(monkeypatch: pytest.MonkeyPatch) -> list[datetime]:
    """A clock that stands still, ten seconds before the next minute."""
    now = [datetime(2026, 5, 1, 12, 0, 50, tzinfo=UTC)]
    monkeypatch.setattr(timezone, "now", lambda: now[0])
    return now


def knock(address: str, slug: str = "nowhere") -> Any:
    body = json.dumps({"study": slug, "platform": "local", "query": "?person=ada"})
    return Client(REMOTE_ADDR=address).post("/api/sessions/", body, content_type="application/json")


def test_it_slows_one_address_down_and_says_for_how_long(still: list[datetime], settings: Any) -> None:
    settings.JOINS_PER_MINUTE = 3
    assert [knock(FLOOD).status_code for _ in range(3)] == [404] * 3
    reply = knock(FLOOD)
    assert reply.status_code == 429 and reply["Retry-After"] == "10"
    error = reply.json()["error"]
    assert error["code"] == "too_many" and "10 s" in error["message"] and "nothing is lost" in error["remedy"]
    assert set(reply.json()) == {"error", "next", "exit"}
    assert knock(OTHER.format(1)).status_code == 404
    assert [knock(f"{NETWORK}::{n}").status_code for n in range(5)] == [404] * 3 + [429] * 2
    still[0] += timedelta(seconds=10)
    assert knock(FLOOD).status_code == 404


def test_it_counts_no_simulated_people_of_this_machine(settings: Any) -> None:
    settings.JOINS_PER_MINUTE = 3
    assert {knock("127.0.0.1").status_code for _ in range(8)} == {404}
    assert not JoinCount.objects.exists()


def test_it_counts_in_the_shared_cache_and_without_it_if_it_fails(
    still: list[datetime], settings: Any, redis_url: str
) -> None:
    settings.JOINS_PER_MINUTE = 25
    from crowd.settings import caches_from

    settings.CACHES = caches_from(redis_url)
    caches["shared"].clear()
    assert [knock(FLOOD).status_code for _ in range(30)] == [404] * 25 + [429] * 5
    assert sum(JoinCount.objects.values_list("joins", flat=True)) == 21, "written every twentieth time"
    settings.CACHES = caches_from("redis://127.0.0.1:1")
    assert knock(OTHER.format(1)).status_code == 404
    assert JoinCount.objects.filter(joins=1).count() == 1


def test_it_takes_as_many_from_one_address_as_the_study_says(study: Study) -> None:
    offered = posting(study, "link", options={"same_address": 3})
    assert [by_link(f"p{n}", offered).join().status_code for n in range(4)] == [201] * 3 + [429]
    assert refused(by_link("p9", offered).join(), 429, "too_many")["error"]["message"].startswith("3 people")


def test_it_lets_a_place_lapse_without_a_sign_of_life_and_gives_it_again(small: Study, settings: Any) -> None:
    settings.ADDRESS_PLACES_MAX = 1
    offered = posting(small, "link")
    reads, comes = by_link("reads", offered), by_link("comes", offered)
    reads.arrive(until="instructions")
    assert comes.join().status_code == 429
    Hold.objects.update(ends_at=timezone.now() - timedelta(seconds=1))
    assert comes.join().status_code == 201
    # The one who read for long is not lost: the page waits, and goes on once there is room.
    assert reads.gate(reads.good_value()).status_code == 429
    comes.leave()
    assert not Hold.objects.filter(session=comes.session()).exists(), "nothing of the address is kept"
    reads.arrive()
    hold = Hold.objects.get()
    assert reads.session().state == "running" and hold.ends_at == reads.session().lease_ends_at


def test_it_forgets_addresses_with_the_lease(small: Study, still: list[datetime]) -> None:
    offered = posting(small, "link")
    runs, waits = by_link("runs", offered), by_link("waits", offered)
    runs.arrive()
    waits.join()
    hashes = set(Hold.objects.values_list("sender", flat=True))
    assert len(hashes) == 1 and FLOOD not in str(hashes)
    still[0] += timedelta(hours=20, minutes=1)
    tasks.forget_due()
    assert set(Hold.objects.values_list("session__state", flat=True)) == {"gates"}
    assert not JoinCount.objects.exists()
    still[0] += timedelta(hours=5)
    tasks.forget_due()
    assert Hold.objects.get().sender == ""
    # The next day: the page is loaded again, and the address is another name.
    assert refused(waits.gate(waits.good_value()), 429, "too_many")
    assert waits.join().status_code == 200
    assert waits.gate(waits.good_value()).status_code == 200
    assert Hold.objects.get().sender not in {"", *hashes}


def test_it_shows_a_flood_and_releases_it(small: Study, desk: Client) -> None:
    offered = posting(small, "link")
    flood = [by_link(f"n{number}", offered) for number in range(10)]
    for visitor in flood[:8]:
        visitor.arrive(until="quiz" if visitor is flood[7] else "trials")
    assert [visitor.join().status_code for visitor in flood[8:]] == [429, 429]
    assert places_left(small) == 1
    address = f"/studies/{small.slug}/recruitment/"
    page = desk.get(address).content.decode()
    assert "Many arrivals from one address" in page and FLOOD not in page
    (shown,) = floods(small)
    assert (shown.joins, shown.refused, shown.places) == (10, 2, 8)
    reply = desk.post(f"{address}release/", {"sender": shown.sender}, follow=True)
    assert "8 places are free again" in reply.content.decode()
    assert places_left(small) == 9 and not Slot.objects.filter(holder__isnull=False).exists()
    assert any("Takes back 8 places" in entry.change_message for entry in study_log(small))
    assert flood[7].gate(flood[7].good_value()).status_code == 429, "no slot, and none in exchange"
    # They get no new place in exchange, and may go on as surplus; a person from elsewhere comes in.
    assert flood[8].join().status_code == 429
    flood[0].answer()
    assert flood[0].end().status_code == 200
    assert [reason["rule"] for reason in flood[0].session().reasons] == ["surplus"]
    assert by_link("honest", offered, OTHER.format(1)).join().status_code == 201
    with pytest.raises(StudyError, match="not known any more"):
        release(small, "0" * 32, "grace")


def test_it_gives_the_released_no_slot_although_there_are_places(small: Study) -> None:
    offered = posting(small, "link")
    ada = by_link("ada", offered)
    ada.arrive(until="quiz")
    assert places_left(small) == 8
    assert release(small, Hold.objects.get().sender, "grace") == 1
    assert places_left(small) == 9
    assert ada.gate(ada.good_value()).status_code == 429
    assert ada.join().status_code == 200 and ada.gate(ada.good_value()).status_code == 429


def test_it_keeps_that_a_session_was_continued_from_elsewhere(small: Study) -> None:
    """Whose ids are known can be taken over; that is seen afterwards."""
    offered = posting(small, "link")
    ada = by_link("ada", offered)
    ada.arrive(until="quiz")
    assert by_link("ada", offered).join().status_code == 200
    thief = by_link("ada", offered, OTHER.format(1))
    assert thief.join().status_code == 200
    kinds = list(Event.objects.order_by("id").values_list("kind", flat=True))
    assert kinds == ["opened_again", "opened_elsewhere"]
    (line,) = (entry for entry in study_log(small) if "another address" in entry.change_message)
    assert namer(small)(thief.session().participant.pseudonym) in line.change_message


def test_it_releases_no_one_whom_the_platform_confirms(small: Study) -> None:
    with simulated("prolific") as sim:
        offered = publish_posting(changed(small, policy=POLICY), "prolific", "rehearsal", site=sim.url)
        ada = arrive(offered, sim)
        ada.client = from_address(FLOOD)
        sim.faults.down = True
        ada.arrive()
        assert Hold.objects.count() == 1
        sim.faults.down = False
        look(offered)
        assert not Hold.objects.exists(), "a person who is known needs no count by address"
        JoinCount.objects.update(refused=1)
        (shown,) = floods(small)
        assert shown.places == 0 and release(small, shown.sender, "grace") == 0
        assert Slot.objects.filter(holder=ada.session()).exists()


@pytest.mark.long(
    stays="tests/crowd/joining/test_arrivals.py::test_a_flood_of_arrivals_keeps_nobody_from_leaving"
)
def test_it_asks_a_platform_no_more_often_than_it_may() -> None:
    """Invented ids do not become a flood of calls to the platform."""
    with simulated("prolific") as sim:
        offered = publish_posting(study_of(slots=70), "prolific", "rehearsal", site=sim.url)
        before, client = sim.calls_count, Client()
        for number in range(200):
            client.defaults["HTTP_X_FORWARDED_FOR"] = f"198.51.{number}.1"
            invented(number, offered, client).join()
        assert sim.calls_count - before <= 2 * 120
        assert Submission.objects.filter(seen_at__isnull=False).count() == 0
        assert settings.ADDRESS_PLACES_MAX == MOST
