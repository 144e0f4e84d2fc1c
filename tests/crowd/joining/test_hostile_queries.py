"""No query string breaks a page or an address of the API: each is refused before a database sees it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote

import pytest
from django.core.cache import cache
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crowd.joining.entry_and_exit import preview_query
from crowd.joining.signed_entry import resume_query
from crowd.models import Posting
from experiments.models import Study
from tests.crowd.arrivals import posting, prolific
from tests.experiments.api.test_openapi import errors_of, schema

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases("what a text may hold")]

PLATFORMS = ("local", "link", "prolific", "mturk")
FIELDS = (
    *("via", "preview", "resume", "simulated", "person", "submission"),
    *("PROLIFIC_PID", "STUDY_ID", "SESSION_ID", "prolific_token"),
    *("assignmentId", "hitId", "workerId", "turkSubmitTo"),
    *("%00", "%ED%A0%80", "x" * 3000),
)
WILD = (
    *("%00", "a%00b", "%ED%A0%80", "%FF%FE", "%C3%28", "%0A%0D", "%7F", "%E2%80%AE", "%EF%BF%BF"),
    *("9" * 3000, "-1", "1e999", "NaN", "%D9%A3", "%5B" * 1000, "%7B%22a%22:" * 300, "%", "%zz", "%25s", "'"),
    *("x" * 201, "x" * 3900, "%2e%2e%2f", "a=b=c", "{{%25PROLIFIC_PID%25}}", "\ud800", "\x00", "ÿ"),
)
"""Values as they stand in an address: NUL, halves of pairs, broken UTF-8, huge numbers, depth, length."""

READ = (
    "page",
    "mode",
    "state",
    "kind",
    "origin",
    "status",
    "sort",
    "condition",
    "plan",
    "answer",
    "next",
    "q",
    "o",
    "p",
    "e",
)
"""Fields that a page of researchers or the admin's lists read."""


@pytest.fixture
def small(built: int, db: None) -> Study:
    return Study.objects.get(pk=built)


@pytest.fixture
def offered(small: Study) -> dict[str, Posting]:
    """The study on every platform."""
    made = {name: posting(small, name) for name in PLATFORMS if name != "local"}
    return {"local": Posting.objects.get(study=small, platform="local"), **made}


@pytest.fixture
def browser() -> Client:
    return Client(raise_request_exception=False)


def page(browser: Client, query: str) -> int:
    """The status of the participant's page; the server hands a query string on as Latin-1."""
    raw = query.encode("utf-8", "surrogatepass").decode("latin-1")
    reply = browser.get("/join/small/", QUERY_STRING=raw)
    assert reply.status_code < 500, query
    return reply.status_code


def call(browser: Client, path: str, token: str = "", **body: Any) -> int:
    """The status of a call, whose refusal has the form of the contract."""
    headers = {"Authorization": f"Bearer {token}"}
    reply = browser.post(path, body, content_type="application/json", headers=headers)
    assert reply.status_code < 500, body
    assert reply.status_code < 400 or errors_of("Error", reply.json()) == [], body
    return reply.status_code


def join(browser: Client, platform: str, query: str) -> int:
    return call(browser, "/api/sessions/", study="small", platform=platform, query=query)


@pytest.mark.parametrize("query", ["via=%00", "?via=%00", "via=a%00b", "via=x&preview=%00", "resume=%00"])
def test_it_refuses_nul_on_the_page_and_in_the_call(
    offered: dict[str, Posting], browser: Client, query: str
) -> None:
    assert page(browser, query) == 400
    assert [join(browser, name, query) for name in PLATFORMS] == [400] * 4


@pytest.mark.parametrize("query", ["via=" + "x" * 201, "&".join(f"a{i}=1" for i in range(21)), "resume=%0A"])
def test_it_refuses_what_no_platform_sends(offered: dict[str, Posting], browser: Client, query: str) -> None:
    assert page(browser, query) == 400
    assert join(browser, "prolific", query) == 400


def test_it_takes_the_addresses_that_it_made(offered: dict[str, Posting], browser: Client) -> None:
    ada = prolific("ada", offered["prolific"])
    ada.arrive()
    kept = resume_query(offered["prolific"], ada.session())
    assert page(browser, kept) == 200 and join(browser, "prolific", kept) == 200
    look = preview_query(offered["local"].study, 1, 3)
    assert page(browser, look) == 200 and join(browser, "local", look) == 201


def wild_queries(offered: dict[str, Posting]) -> Iterator[str]:
    """Each field with each value, alone and behind the key of each posting."""
    keys = ["", *(f"via={each.key}&" for each in offered.values())]
    for number, field in enumerate(FIELDS):
        for value in WILD:
            number += 1
            yield f"{keys[number % len(keys)]}{field}={value}"
    yield "&" * 3000
    yield "&".join(f"{field}=%00" for field in FIELDS[:14])


@pytest.mark.long(stays="test_it_never_breaks_at_the_entry")
def test_it_survives_every_wild_value_in_every_field(offered: dict[str, Posting], browser: Client) -> None:
    ada = prolific("ada", offered["prolific"])
    ada.arrive()
    for number, query in enumerate(wild_queries(offered)):
        cache.clear()  # of the calls within this minute
        page(browser, query)
        join(browser, PLATFORMS[number % 4], query)
        call(browser, "/api/session/finish/", ada.token, comment=None, query=query)
        leave = call(browser, "/api/session/withdraw/", ada.token, reason="", erase=False, query=query)
        assert leave in (400, 403), query
    assert ada.session().state == "running"


BODY_VALUES = (
    *('"\\u0000"', '"\\ud800"', "9223372036854775808", "-" + "9" * 400, "9" * 5000, "1e999", "NaN", "null"),
    *("[" * 19 + "]" * 19, "[" * 5000 + "]" * 5000, '"' + "x" * 9000 + '"', "[[]]", "{}", "true", "-1"),
    *('{"\\u0000": {"a": [1e308]}}', '"via=%00"', '"\\u202e"'),
    "{" + ",".join(f'"a{number}":1' for number in range(2000)) + "}",
)
"""Values as they stand in a body."""
GOOD: dict[str, Any] = {
    **{"study": "small", "platform": "prolific", "query": "via=x", "attempt": "a", "digest": "0"},
    **{"value": {}, "responses": [], "events": [], "comment": None, "reason": "", "erase": False},
    **{"question": "practice-1", "choice": "A", "agree": True},
}


def fields_of_calls() -> Iterator[tuple[str, list[str]]]:
    """Every address that takes a body, and the body's fields, by the published schema."""
    parts = schema()["components"]["schemas"]
    for path, calls in schema()["paths"].items():
        if "post" in calls:
            body = calls["post"]["requestBody"]["content"]["application/json"]["schema"]
            yield (
                path.replace("{step}", "consent"),
                list(parts[body["$ref"].rpartition("/")[2]]["properties"]),
            )


def test_it_survives_every_wild_value_in_every_field_of_a_body(
    offered: dict[str, Posting], browser: Client
) -> None:
    ada = prolific("ada", offered["prolific"])
    ada.arrive()
    calls = dict(fields_of_calls())
    assert {name for names in calls.values() for name in names} == set(GOOD)
    for path, names in calls.items():
        for name in names:
            cache.clear()  # of the calls within this minute
            for value in BODY_VALUES:
                body = json.dumps({key: GOOD[key] if key != name else "?" for key in names}).replace(
                    '"?"', value
                )
                headers = {"Authorization": f"Bearer {ada.token}"}
                reply = browser.post(path, body, content_type="application/json", headers=headers)
                assert reply.status_code < 500, (path, name, value[:40])
                assert reply.status_code < 400 or errors_of("Error", reply.json()) == []


TEXTS = st.text(st.characters(codec=None), max_size=12).map(lambda text: quote(text, errors="surrogatepass"))
VALUES = st.sampled_from(WILD) | TEXTS | st.text(st.characters(codec=None), max_size=12)
QUERIES = st.lists(st.tuples(st.sampled_from(FIELDS) | TEXTS, VALUES), max_size=6).map(
    lambda pairs: "&".join(f"{name}={value}" for name, value in pairs)
)


@settings(
    max_examples=80,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(query=QUERIES, platform=st.sampled_from(PLATFORMS))
def test_it_never_breaks_at_the_entry(
    offered: dict[str, Posting], browser: Client, query: str, platform: str
) -> None:
    page(browser, query)
    join(browser, platform, query)
    page(browser, f"via={offered[platform].key}&{query}")
    join(browser, platform, f"via={offered[platform].key}&{query}")


def addresses(urls: Iterable[URLPattern | URLResolver], prefix: str = "/") -> Iterator[str]:
    """Every address of the server, with this study's name and the number 1 in its places."""
    for entry in urls:
        text = prefix + str(entry.pattern).removeprefix("^")
        if isinstance(entry, URLResolver):
            yield from addresses(entry.url_patterns, text)
        else:
            known = re.sub(r"<int:\w+>", "1", text.replace("<slug:slug>", "small"))
            yield re.sub(r"<\w+:\w+>", "x", known)


def test_it_survives_wild_fields_on_every_page(small: Study, admin_client: Client) -> None:
    admin_client.raise_request_exception = False
    pages = [each for each in addresses(get_resolver().url_patterns) if is_page(admin_client, each)]
    assert {"/studies/small/money/", "/login/", "/admin/experiments/study/", "/join/small/"} <= set(pages)
    for address in pages:
        at_once = ["&".join(f"{name}={value}" for name in READ) for value in ("%ED%A0%80", "9" * 300, "-1")]
        for query in ("&".join(f"{name}=%00" for name in READ), *at_once):
            reply = admin_client.get(address, QUERY_STRING=query)
            assert reply.status_code < 500, (address, query)


def is_page(browser: Client, address: str) -> bool:
    return browser.get(address).status_code in (200, 302)
