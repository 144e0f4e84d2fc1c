"""Signed entry: keys over real HTTP from the simulator, tokens that are good, forged, old or used before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs

import jwt
import pytest

from crowd.joining import signed_entry
from crowd.joining.signed_entry import KeyRing
from crowd.models import Posting, Submission
from crowd.platforms.base import PlatformError
from crowd.platforms.prolific.signed_entry import ProlificSignature
from crowd.rehearsal import prolific as platform
from crowd.rehearsal.prolific.entry import Signer, claims_for
from experiments.models import Session, Study
from tests.crowd.arrivals import Visitor, posting

pytestmark = pytest.mark.django_db
TEMPLATE = (
    "http://127.0.0.1:8000/join/{slug}/?via={via}&PROLIFIC_PID={{{{%PROLIFIC_PID%}}}}"
    "&STUDY_ID={{{{%STUDY_ID%}}}}&SESSION_ID={{{{%SESSION_ID%}}}}"
)


@dataclass
class Desk:
    """A platform that signs, and the posting that asks for it."""

    sim: Any
    spec: Posting

    def address(
        self, name: str = "ada", *, signer: Signer | None = None, age_s: float = 0, **changes: Any
    ) -> str:
        """The query string of a person whom the platform sends."""
        fields = {"PROLIFIC_PID": name, "STUDY_ID": self.spec.external_id, "SESSION_ID": f"s-{name}"}
        template = TEMPLATE.format(slug=self.spec.study.slug, via=self.spec.key)
        signed_at = datetime.now(UTC) - timedelta(seconds=age_s)
        claims = {**claims_for(template, fields, fields["SESSION_ID"], signed_at), **changes}
        token = (signer or self.sim.signer).token(claims)
        query = "&".join(f"{name}={value}" for name, value in fields.items())
        return f"via={self.spec.key}&{query}&prolific_token={token}"

    def send(self, query: str, attempt: str = "load-1") -> Visitor:
        return Visitor("ada", self.spec.study.slug, query=query, attempt=attempt)


@pytest.fixture
def desk(study: Study) -> Iterator[Desk]:
    signed_entry._rings.clear()
    with platform.simulator(seed=1) as sim:
        spec = posting(study, "prolific", mode="rehearsal", site=sim.url, options={"signed_entry": True})
        yield Desk(sim, spec)


def refused(reply: Any, status: int = 403, code: str = "not_admitted") -> str:
    assert (reply.status_code, reply.json()["error"]["code"]) == (status, code), reply.content
    assert reply.json()["exit"] is None
    return str(reply.json()["error"]["message"])


def test_it_admits_people_with_a_valid_signature(desk: Desk) -> None:
    reply = desk.send(desk.address()).join()
    assert reply.status_code == 201, reply.content
    row = Submission.objects.get()
    assert len(row.entry_digest) == 64 and "load-1" not in row.entry_digest


def test_it_refuses_an_unsigned_entry(desk: Desk) -> None:
    unsigned = desk.address().split("&prolific_token=")[0]
    assert "lacks the platform's signature" in refused(desk.send(unsigned).join())
    assert Session.objects.count() == 0


def test_it_refuses_forgeries(desk: Desk) -> None:
    same, unknown = Signer(), Signer()
    unknown.rotate()
    unknown.rotate()
    assert same.kid == desk.sim.signer.kid != unknown.kid
    good = desk.address()
    head, _, mark = good.split("prolific_token=")[1].split(".")
    other_body = desk.address("bo").split("prolific_token=")[1].split(".")[1]
    none = jwt.encode({"sub": "s-ada"}, "", algorithm="none")
    hmac = jwt.encode({"sub": "s-ada"}, "x" * 32, algorithm="HS256", headers={"kid": desk.sim.signer.kid})
    token = good.index("prolific_token=") + len("prolific_token=")
    forged = {
        "another's key under the same name": desk.address(signer=same),
        "an unknown key": desk.address(signer=unknown),
        "another body": f"{good[:token]}{head}.{other_body}.{mark}",
        "no algorithm": good[:token] + none,
        "a shared secret": good[:token] + hmac,
        "no token": good[:token] + "abc",
        "another person": good.replace("PROLIFIC_PID=ada", "PROLIFIC_PID=bo"),
        "another session": good.replace("SESSION_ID=s-ada", "SESSION_ID=s-bo"),
        "a field more": good + "&simulated2=1",
        "another host": desk.address(aud="https://evil.example/join/small/"),
        "another issuer": desk.address(iss="https://www.prolific.com.evil.example"),
        "too old": desk.address(age_s=180),
        "of tomorrow": desk.address(age_s=-3600),
        "no end": desk.address(exp=int(datetime.now(UTC).timestamp()) + 10**6),
        "vouches for nobody": desk.address(prolific={}),
    }
    for kind, query in forged.items():
        assert "signature" in refused(desk.send(query).join()), kind
    assert Session.objects.count() == 0


@pytest.mark.both_databases("constraints")
def test_it_opens_one_link_in_one_browser(desk: Desk) -> None:
    query = desk.address(age_s=20)
    assert desk.send(query).join().status_code == 201
    assert "another browser" in refused(desk.send(query, attempt="load-2").join())
    assert desk.send(query).join().status_code == 200
    # The platform sends the same person anew: the new link is theirs, and the older one is over.
    assert desk.send(desk.address(), attempt="load-3").join().status_code == 200
    refused(desk.send(query).join())
    assert Session.objects.count() == 1


def test_it_asks_for_a_name_of_the_page_load(desk: Desk) -> None:
    refused(desk.send(desk.address(), attempt="").join(), 400, "invalid")
    refused(desk.send(desk.address(), attempt="x" * 65).join(), 400, "invalid")


def test_it_finds_the_session_again_when_the_signature_is_long_over(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = desk.send(desk.address())
    query = ada.join().json()["query"]
    assert set(parse_qs(query)) == {"via", "resume"}
    reload = desk.send(query, attempt="load-2")
    reply = reload.join()
    assert reply.status_code == 200 and reload.session() == ada_session(ada)
    assert reply.json()["sitting"] and set(parse_qs(reply.json()["query"])) == {"via", "resume"}
    # The end is reported by this address as well.
    reload.arrive("consent")
    reload.gate({"agree": False})
    assert desk.spec.codes["declined"] in reload.end().json()["exit"]["url"]
    for wrong in (query[:-4], query.replace("resume=", "resume=x"), f"via={desk.spec.key}&resume="):
        assert "no longer valid" in refused(desk.send(wrong + "zzzz").join())
    monkeypatch.setattr(signed_entry, "RESUME_MAX_AGE_S", -1)
    assert "no longer valid" in refused(desk.send(query).join())


def ada_session(ada: Visitor) -> Session:
    """Ada's session; her first page has lost it to the reload."""
    assert ada.call("GET", "/api/session/").status_code == 401
    return Session.objects.get(submission__isnull=False)


def test_it_refuses_to_resume_on_another_posting(desk: Desk) -> None:
    query = desk.send(desk.address()).join().json()["query"]
    other = posting(desk.spec.study, "prolific", pilot=True, external_id="f" * 24)
    refused(desk.send(query.replace(desk.spec.key, other.key)).join())


def test_it_gives_no_other_address_where_nothing_was_signed(study: Study) -> None:
    spec = posting(study, "prolific")
    fields = {"PROLIFIC_PID": "ada", "STUDY_ID": spec.external_id, "SESSION_ID": "s1"}
    reply = Visitor("ada", study.slug, via=spec.key, fields=fields).join().json()
    assert reply["query"] is None and len(reply["sitting"]) == 22


def test_it_asks_to_wait_while_the_keys_cannot_be_had(desk: Desk) -> None:
    desk.sim.faults.down = True
    reply = desk.send(desk.address()).join()
    assert reply.status_code == 503 and reply.json()["error"]["code"] == "unavailable"
    desk.sim.faults.down = False
    assert desk.send(desk.address()).join().status_code == 503  # asked a moment ago
    signed_entry._rings.clear()
    assert desk.send(desk.address()).join().status_code == 201


def test_it_keeps_keys_and_asks_again_seldom() -> None:
    """Daily, and for an unknown key at most once a minute; older keys serve on when the platform is down."""
    asked: list[float] = []
    now, signer, failing = [0.0], Signer(), [False]

    def fetch() -> Mapping[str, Any]:
        asked.append(now[0])
        if failing[0]:
            raise PlatformError("down")
        return signer.keys()

    ring = KeyRing(fetch, ProlificSignature(), clock=lambda: now[0])
    first = signer.token({"sub": "s"})
    for now[0] in (0.0, 10.0, 86_000.0):
        assert ring.for_token(first) == signer.keys()
    assert asked == [0.0]
    old = signer.keys()
    signer.rotate()
    newer = signer.token({"sub": "s"})
    assert ring.for_token(newer) == signer.keys() != old and asked == [0.0, 86_000.0]
    for now[0] in (86_001.0, 86_059.0):
        ring.for_token(first)
    assert len(asked) == 2
    now[0], failing[0] = 86_000.0 + 86_401.0, True
    assert ring.for_token(newer) == signer.keys() and len(asked) == 3
