"""Door, signed entry and webhooks together with the simulated platform."""

from datetime import timedelta
from urllib.parse import parse_qsl, urlsplit

import pytest

from crowd.platforms.base import BadNotice, Site
from crowd.platforms.prolific.door import ProlificDoor
from crowd.platforms.prolific.signed_entry import ForgedEntry, check_signed_entry
from crowd.simulators.serving import Answer, Asked, serving
from tests.crowd.platforms.prolific_stage import finished, market_at, played, wanted

pytestmark = pytest.mark.pure


def test_it_reads_the_address_that_participants_open() -> None:
    with played() as (sim, market):
        posted = market.publish(wanted(market))
        taken = sim.control.take()
        arrival = ProlificDoor().arrival(urlsplit(taken["url"]).query, Site("rehearsal", sim.url))
        assert (arrival.person, arrival.submission) == (taken["person"], taken["submission"])
        assert arrival.posting == posted.external_id
        (work,) = market.submissions(posted)
        assert (work.person, work.submission) == (arrival.person, arrival.submission)


def test_it_accepts_a_signed_address_for_two_minutes() -> None:
    with played() as (sim, market):
        market.publish(wanted(market, options={"signed_entry": True}))
        taken = sim.control.take()
        query = urlsplit(taken["url"]).query
        token = ProlificDoor().arrival(query, Site("rehearsal", sim.url)).signature
        fields = dict(parse_qsl(query))
        now = sim.clock.now()
        claims = check_signed_entry(token, market.keys(), "lab.example", fields, now)
        assert (claims.session, claims.issued_at) == (taken["submission"], now)
        for host, given, moment in (
            ("lab.example", fields, now + timedelta(minutes=3)),
            ("other.example", fields, now),
            ("lab.example", {**fields, "PROLIFIC_PID": "f" * 24}, now),
        ):
            with pytest.raises(ForgedEntry):
                check_signed_entry(token, market.keys(), host, given, moment)
        sim.signer.rotate()
        with pytest.raises(ForgedEntry):
            check_signed_entry(token, market.keys(), "lab.example", fields, now)


def test_it_reads_the_notifications_that_are_delivered() -> None:
    received: list[Asked] = []

    def endpoint(asked: Asked) -> Answer:
        received.append(asked)
        return Answer(204)

    with played() as (sim, market), serving(endpoint) as url:
        sim.control.webhook(url, "hook-secret")
        posted = market.publish(wanted(market))
        (payment,) = finished(sim, posted, 1)
        sim.control.deliver(duplicates=True)
        read = [market.notified(a.headers, a.body, "hook-secret", sim.clock.now()) for a in received]
        distinct = {notified for notices in read for notified in notices}
        assert len(distinct) == len(received) / 2
        assert {payment.submission} == {n.submission for n in distinct if n.submission}
        assert {posted.external_id} == {n.posting for n in distinct if n.posting}
        assert all(n.event_id for n in distinct)
        received.clear()
        sim.control.take()
        sim.control.deliver(forged=True)
        assert received
        for asked in received:
            with pytest.raises(BadNotice):
                market.notified(asked.headers, asked.body, "hook-secret", sim.clock.now())


def test_it_gives_its_connection_back() -> None:
    with played() as (sim, _):
        market = market_at(sim)
        with market:
            assert market.keys()
        with pytest.raises(RuntimeError):
            market.keys()
