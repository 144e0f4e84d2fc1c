"""What strangers can do to the server: guess passwords, send events without end, look for addresses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings as now
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client

from crowd.dashboard.login_attempts import OF_ADDRESS, OF_NAME, WIDE
from crowd.dashboard.login_links import make_login_path
from crowd.settings import caches_from
from experiments.api import views
from experiments.models import Event, Session
from experiments.sessions.responses import EVENTS_MAX, SubmittedEvent, record_events
from experiments.tokens import hash_token, keyed_hash
from experiments.wording.markdown import html_of
from tests.analysis import stored
from tests.crowd.logins import login

pytestmark = pytest.mark.django_db
RIGHT = "correct horse battery staple"


@pytest.fixture(autouse=True)
def uncounted() -> Iterator[None]:
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def ada(db: None) -> User:
    return User.objects.create_user("ada", password=RIGHT)


def tried(name: str, password: str, address: str = "203.0.113.7") -> str:
    reply = Client(REMOTE_ADDR=address).post("/login/", {"username": name, "password": password})
    return "in" if reply.status_code == 302 else reply.content.decode()


def test_a_name_waits_after_some_wrong_passwords(ada: User) -> None:
    for _ in range(OF_NAME - 1):
        assert "Name and password do not fit" in tried("ada", "guess")
    assert tried("ADA", "guess") != "in", "another spelling is the same name"
    assert "Too many wrong passwords. Wait 15 minutes" in tried("ada", RIGHT)
    User.objects.create_user("bo", password=RIGHT)
    assert tried("bo", RIGHT) == "in", "others of the address do not wait"
    assert Client().post(make_login_path(ada)).status_code == 302, "a link of the server's own opens"
    assert tried("ada", RIGHT, "198.51.100.1") == "in", "strangers keep nobody out"


def test_a_network_waits_whose_addresses_take_turns(ada: User) -> None:
    for number in range(WIDE * OF_NAME):
        assert "do not fit" in tried("ada", "guess", f"2001:db8:5:{number:x}::1")
    assert "Too many wrong passwords" in tried("ada", RIGHT, "2001:db8:5:ffff::1")
    assert tried("ada", RIGHT, "2001:db8:6::1") == "in"


def test_an_address_waits_that_tries_many_names(ada: User) -> None:
    for number in range(OF_ADDRESS):
        tried(f"name-{number}", "guess")
    assert "Too many wrong passwords" in tried("ada", RIGHT)
    assert tried("ada", RIGHT, "198.51.100.1") == "in"


def test_a_shared_cache_that_is_away_keeps_no_one_out(ada: User, settings: Any) -> None:
    settings.CACHES = caches_from("redis://127.0.0.1:1/1")
    for _ in range(OF_NAME):
        assert "Name and password do not fit" in tried("ada", "guess")
    assert "Too many wrong passwords" in tried("ada", RIGHT), "this process counts by itself"
    User.objects.create_user("bo", password=RIGHT)
    assert tried("bo", RIGHT) == "in"


def test_a_right_password_is_not_counted(ada: User) -> None:
    for _ in range(OF_NAME + 1):
        assert tried("ada", RIGHT) == "in"


def test_a_session_has_so_many_events_and_no_more(store_folder: object) -> None:
    session = stored.sitting(stored.opened(), "ada", condition="control", answers=3, verdict="")
    rows = [Event(session=session, uuid=uuid4(), kind="resized", at_ms=1) for _ in range(EVENTS_MAX - 2)]
    Event.objects.bulk_create(rows)
    record_events(
        session,
        [SubmittedEvent(uuid=uuid4(), kind="resized", trial=None, at_ms=n, detail={}) for n in range(5)],
    )
    assert Event.objects.filter(session=session).count() == EVENTS_MAX
    record_events(session, [SubmittedEvent(uuid=uuid4(), kind="resized", trial=None, at_ms=9, detail={})])
    assert Event.objects.filter(session=session).count() == EVENTS_MAX


@pytest.mark.parametrize(
    ("link", "stays"),
    [("https://lab.example", True), ("mailto:lab@example.org", True), ("//host.example/x", False),
     ("/admin/", False), ("javascript:alert(1)", False), ("http://lab.example", False)],
)  # fmt: skip
def test_a_text_leads_only_to_https_and_mail(link: str, stays: bool) -> None:
    assert ("href" in html_of(f"[a]({link})")) == stays


def test_every_answer_under_api_is_json(store_folder: object, monkeypatch: pytest.MonkeyPatch) -> None:
    session = stored.sitting(stored.opened(), "ada", condition="control", answers=3, verdict="")
    Session.objects.filter(pk=session.pk).update(token_hash=hash_token("t0ken"))
    client = Client(raise_request_exception=False)
    for path in ("/api/", "/api/nowhere/", "/api/session/gates/no-such-step/", "/api/session/x/y/"):
        reply = client.post(path, "{}", content_type="application/json")
        assert reply.status_code in (401, 404) and reply.json()["error"]["code"], path

    def broken(session: Session) -> object:
        raise RuntimeError("secret")

    monkeypatch.setattr(views, "session_state", broken)
    reply = client.get("/api/session/", headers={"Authorization": "Bearer t0ken"})
    assert (
        reply.status_code == 500
        and reply.json()["error"]["remedy"]
        and "secret" not in reply.content.decode()
    )


def test_a_page_that_is_not_there_shows_the_way_back(db: None) -> None:
    page = login("vera").get("/studies/nowhere/")
    assert page.status_code == 404 and 'href="/"' in page.content.decode()
    assert Client().get("/no/such/page").status_code == 404


def test_the_key_of_logins_is_replaced_while_people_stay_who_they_are(ada: User, settings: Any) -> None:
    old = settings.SECRET_KEY
    person, client, other = keyed_hash("person", "prolific", "5f0"), Client(), Client()
    client.force_login(ada)
    other.force_login(ada)
    assert client.get("/").status_code == 200 and old == now.IDENTITY_KEY
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "n" * 48, [old]
    assert keyed_hash("person", "prolific", "5f0") == person
    assert client.get("/").status_code == 200, "a login of before goes on"
    settings.SECRET_KEY_FALLBACKS = []
    assert client.get("/").status_code == 200, "it was signed anew when it was used"
    assert other.get("/").status_code == 302
    assert keyed_hash("person", "prolific", "5f0") == person
