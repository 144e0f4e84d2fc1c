"""The connection of a simulated person: what is tried again, how long it waits, and what a refusal says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import httpx
import pytest

from experiments.simulation.browser.connection import (
    AGAIN,
    LONGEST_PAUSE_S,
    PATIENCE_S,
    TRIES,
    Line,
    ServerRefusal,
)

pytestmark = pytest.mark.pure

EXIT = {"method": "GET", "url": "https://back.example", "fields": {}}


class Wire:
    """Replies in their order, and the requests and pauses between them."""

    def __init__(self, *replies: httpx.Response | httpx.TransportError) -> None:
        self.replies: Iterator[httpx.Response | httpx.TransportError] = iter(replies)
        self.requests: list[httpx.Request] = []
        self.pauses: list[float] = []
        transport = httpx.MockTransport(self._handle)
        self.line = Line(httpx.Client(transport=transport, base_url="http://lab.example"))

    def _handle(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        reply = next(self.replies)
        if isinstance(reply, httpx.TransportError):
            raise reply
        return reply


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Wire]:
    def make(*replies: httpx.Response | httpx.TransportError) -> Wire:
        made = Wire(*replies)
        monkeypatch.setattr("experiments.simulation.browser.connection.time.sleep", made.pauses.append)
        return made

    return make


def ok() -> httpx.Response:
    return httpx.Response(200, json={"a": 1})


@pytest.mark.parametrize("status", sorted(AGAIN))
def test_a_passing_trouble_is_tried_again_with_the_same_body(wire: Callable[..., Wire], status: int) -> None:
    made = wire(httpx.Response(status), httpx.ConnectError("down"), ok())
    assert made.line.post("/x", {"b": 2}) == {"a": 1}
    assert len({request.content for request in made.requests}) == 1
    assert made.line.requests_count == len(made.requests) == 3


def test_pauses_double_up_to_a_limit(wire: Callable[..., Wire]) -> None:
    made = wire(*(httpx.Response(503) for _ in range(TRIES - 1)), ok())
    made.line.get("/x")
    assert len(made.pauses) == TRIES - 1 and max(made.pauses) <= LONGEST_PAUSE_S
    assert all(later == pytest.approx(2 * earlier) for earlier, later in pairwise(made.pauses))


@pytest.mark.parametrize(
    ("asked", "paused"), [("2", 2.0), ("30", 30.0), ("3600", LONGEST_PAUSE_S), ("soon", 0.1)]
)
def test_it_waits_as_long_as_it_is_asked_to_within_reason(
    wire: Callable[..., Wire], asked: str, paused: float
) -> None:
    made = wire(httpx.Response(429, headers={"Retry-After": asked}), ok())
    made.line.get("/x")
    assert made.pauses == [paused]


def test_a_busy_server_is_waited_out_but_not_for_ever(wire: Callable[..., Wire]) -> None:
    waits = int(PATIENCE_S / 30)
    assert waits > TRIES
    busy = [httpx.Response(429, headers={"Retry-After": "30"}) for _ in range(waits + TRIES)]
    patient = wire(*busy[:waits], ok())
    assert patient.line.get("/x") == {"a": 1} and patient.pauses == [30.0] * waits
    given_up = wire(*busy)
    with pytest.raises(ServerRefusal, match="429"):
        given_up.line.get("/x")
    assert len(given_up.requests) == waits + TRIES
    assert given_up.pauses == [30.0] * waits + [LONGEST_PAUSE_S] * (TRIES - 1)


def test_a_trouble_that_lasts_ends_in_what_it_was(wire: Callable[..., Wire]) -> None:
    made = wire(*(httpx.Response(503, json={"error": {"code": "c", "message": "m"}}) for _ in range(TRIES)))
    with pytest.raises(ServerRefusal, match="503 c: m"):
        made.line.get("/x")
    gone = wire(*(httpx.ConnectError("down") for _ in range(TRIES)))
    with pytest.raises(httpx.ConnectError):
        gone.line.get("/x")
    assert len(made.requests) == len(gone.requests) == TRIES


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"null", b'{"error": "text"}', b'{"error": {}}'])
def test_a_refusal_that_is_no_answer_of_the_api_is_quoted(wire: Callable[..., Wire], body: bytes) -> None:
    made = wire(httpx.Response(404, content=body))
    with pytest.raises(ServerRefusal) as caught:
        made.line.get("/x")
    assert (caught.value.status, caught.value.code) == (404, "unreadable")
    assert body.decode() in str(caught.value) and made.pauses == []


def test_a_refusal_brings_the_way_back(wire: Callable[..., Wire]) -> None:
    body = {"error": {"code": "full", "message": "All places are taken."}, "exit": EXIT}
    with pytest.raises(ServerRefusal, match="410 full: All places") as caught:
        wire(httpx.Response(410, json=body)).line.get("/x")
    assert caught.value.exit == EXIT


def test_a_picture_is_fetched_without_the_token(wire: Callable[..., Wire]) -> None:
    made = wire(ok(), httpx.Response(200, content=b"png"))
    made.line.token = "secret"
    made.line.get("/api/session/")
    assert made.line.fetch("/m/abc") == b"png"
    told = [request.headers.get("Authorization") for request in made.requests]
    assert told == ["Bearer secret", None]
