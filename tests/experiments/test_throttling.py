"""Too many requests are slowed down, and the reply says for how long."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client, RequestFactory

from experiments.api import throttling
from experiments.api.throttling import CallsPerToken, JoinsPerAddress, client_address
from experiments.models import Session

pytestmark = pytest.mark.django_db
OUTSIDE = "203.0.113.7"


@pytest.fixture(autouse=True)
def still(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """A clock that stands still, small limits, and an empty cache."""
    now = [1_000_010.0]
    monkeypatch.setattr(throttling.PerMinute, "clock", staticmethod(lambda: now[0]))
    monkeypatch.setattr(JoinsPerAddress, "limit", 3)
    monkeypatch.setattr(CallsPerToken, "limit", 5)
    cache.clear()
    yield now
    cache.clear()


def join(address: str = OUTSIDE, **headers: str) -> Any:
    body = json.dumps({"study": "nowhere", "platform": "local", "query": "?person=ada"})
    return Client(REMOTE_ADDR=address).post(
        "/api/sessions/", body, content_type="application/json", headers=headers
    )


def test_it_slows_one_address_down_and_says_for_how_long(still: list[float]) -> None:
    assert [join().status_code for _ in range(3)] == [404] * 3
    reply = join()
    assert reply.status_code == 429 and reply["Retry-After"] == "10"
    error = reply.json()["error"]
    assert error["code"] == "too_many" and "10 s" in error["message"] and "nothing is lost" in error["remedy"]
    assert set(reply.json()) == {"error", "next", "exit"}
    assert join("203.0.113.8").status_code == 404
    still[0] += 10
    assert join().status_code == 404


def test_it_counts_no_simulated_people_of_this_machine() -> None:
    for address in ("127.0.0.1", "::1"):
        assert {join(address).status_code for _ in range(8)} == {404}


def test_it_sees_people_behind_its_own_proxy_and_believes_no_other() -> None:
    seen = [join("10.0.0.1", **{"X-Forwarded-For": f"8.8.8.8, 203.0.113.{n}"}).status_code for n in range(6)]
    assert seen == [404] * 6
    forged = [join(OUTSIDE, **{"X-Forwarded-For": f"198.51.100.{n}"}).status_code for n in range(6)]
    assert forged == [404] * 3 + [429] * 3


@pytest.mark.parametrize(
    ("near", "forwarded", "counted"),
    [
        (OUTSIDE, "", OUTSIDE),
        (OUTSIDE, "198.51.100.1", OUTSIDE),
        ("10.0.0.1", "", "10.0.0.1"),
        ("10.0.0.1", "198.51.100.1", "198.51.100.1"),
        ("127.0.0.1", "evil, 198.51.100.1", "198.51.100.1"),
        ("127.0.0.1", "", ""),
        ("", "198.51.100.1", "198.51.100.1"),
    ],
)
def test_it_knows_whom_to_count(near: str, forwarded: str, counted: str) -> None:
    request: Any = RequestFactory().get("/", REMOTE_ADDR=near, headers={"X-Forwarded-For": forwarded})
    assert client_address(request) == counted


def test_it_slows_one_session_down_and_no_other(still: list[float]) -> None:
    def ask(token: str) -> Any:
        return Client().get("/api/session/", headers={"Authorization": f"Bearer {token}"})

    assert [ask("a").status_code for _ in range(6)] == [401] * 5 + [429]
    assert ask("b").status_code == 401
    still[0] += 60
    assert ask("a").status_code == 401
    assert Session.objects.count() == 0


def test_it_answers_a_page_without_an_origin() -> None:
    """A platform's sandboxed frame asks from abroad, first whether it may."""
    asked = {"Origin": "null", "Access-Control-Request-Method": "POST"}
    for path in (
        "/api/sessions/",
        "/api/session/finish/",
        "/api/session/responses/",
        "/api/session/consent/",
    ):
        replies = [Client().options(path, headers=asked) for _ in range(8)]
        assert {reply.status_code for reply in replies} == {204}
        assert replies[0]["Access-Control-Allow-Origin"] == "*"
        assert "POST" in replies[0]["Access-Control-Allow-Methods"]
        assert replies[0]["Access-Control-Allow-Headers"] == "Authorization, Content-Type"
        assert "Access-Control-Allow-Credentials" not in replies[0]
    refusal = join()
    assert refusal["Access-Control-Allow-Origin"] == "*" and not refusal.cookies
