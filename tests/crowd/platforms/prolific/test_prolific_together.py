"""Door, signed entry and webhooks together with the simulated platform."""

from datetime import timedelta
from urllib.parse import parse_qsl, urlsplit

import pytest

from crowd.platforms.base import BadNotice, ForgedEntry, Site
from crowd.platforms.prolific.arrival_and_exit import ProlificEntry
from crowd.platforms.prolific.notices import read_notice
from crowd.platforms.prolific.signed_entry import ProlificSignature
from crowd.rehearsal.serving import Answer, IncomingRequest, serving
from tests.crowd.platforms.prolific.prolific_stage import finished, played, rows, service_at, wanted

pytestmark = pytest.mark.pure


def test_it_reads_the_address_that_participants_open() -> None:
    with played() as (sim, service):
        posted = service.publish(wanted(service))
        taken = sim.control.take()
        arrival = ProlificEntry({}).arrival(urlsplit(taken["url"]).query, Site("rehearsal", sim.url))
        assert (arrival.person, arrival.submission) == (taken["person"], taken["submission"])
        assert arrival.posting == posted.external_id
        (listed,) = rows(service, posted)
        assert (listed.person, listed.submission) == (arrival.person, arrival.submission)


def test_it_accepts_a_signed_address_for_two_minutes() -> None:
    with played() as (sim, service):
        service.publish(wanted(service, options={"signed_entry": True}))
        taken = sim.control.take()
        query = urlsplit(taken["url"]).query
        token = ProlificEntry({}).arrival(query, Site("rehearsal", sim.url)).signature
        fields = dict(parse_qsl(query))
        now = sim.clock.now()
        claims = ProlificSignature().check(token, service.keys(), "lab.example", fields, now)
        assert (claims.session, claims.issued_at) == (taken["submission"], now)
        for host, given, moment in (
            ("lab.example", fields, now + timedelta(minutes=3)),
            ("other.example", fields, now),
            ("lab.example", {**fields, "PROLIFIC_PID": "f" * 24}, now),
        ):
            with pytest.raises(ForgedEntry):
                ProlificSignature().check(token, service.keys(), host, given, moment)
        sim.signer.rotate()
        with pytest.raises(ForgedEntry):
            ProlificSignature().check(token, service.keys(), "lab.example", fields, now)


def test_it_reads_the_notifications_that_are_delivered() -> None:
    received: list[IncomingRequest] = []

    def endpoint(asked: IncomingRequest) -> Answer:
        received.append(asked)
        return Answer(204)

    with played() as (sim, service), serving(endpoint) as url:
        sim.control.webhook(url, "hook-secret")
        posted = service.publish(wanted(service))
        (payment,) = finished(sim, posted, 1)
        sim.control.deliver(duplicates=True)
        read = [read_notice(a.headers, a.body, "hook-secret", sim.clock.now()) for a in received]
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
                read_notice(asked.headers, asked.body, "hook-secret", sim.clock.now())


def test_it_gives_its_connection_back() -> None:
    with played() as (sim, _):
        service = service_at(sim)
        with service:
            assert service.keys()
        with pytest.raises(RuntimeError):
            service.keys()
