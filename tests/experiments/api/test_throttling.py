"""Too many requests of one session are slowed down; pages of a frame without an origin are answered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client

from experiments.api.throttling import CallsPerToken
from experiments.models import Session

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def still(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """A clock that stands still, a small limit, and an empty cache."""
    now = [1_000_010.0]
    monkeypatch.setattr(CallsPerToken, "clock", staticmethod(lambda: now[0]))
    monkeypatch.setattr(CallsPerToken, "limit", 5)
    cache.clear()
    yield now
    cache.clear()


def test_it_slows_one_session_down_and_no_other(still: list[float]) -> None:
    def ask(token: str) -> Any:
        return Client().get("/api/session/", headers={"Authorization": f"Bearer {token}"})

    assert [ask("a").status_code for _ in range(6)] == [401] * 5 + [429]
    assert ask("a")["Retry-After"] == "10"
    assert ask("b").status_code == 401
    still[0] += 60
    assert ask("a").status_code == 401
    assert Session.objects.count() == 0


def test_one_session_is_counted_under_one_key_however_its_header_is_spelled() -> None:
    spellings = ("Bearer a", "bearer a", "BEARER a", "Bearer  a", "bEaReR a ", "Bearer a")
    replies = [Client().get("/api/session/", headers={"Authorization": each}) for each in spellings]
    assert [reply.status_code for reply in replies] == [401] * 5 + [429]


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
    refusal = Client().post("/api/sessions/", b"{}", content_type="application/json")
    assert refusal["Access-Control-Allow-Origin"] == "*" and not refusal.cookies
