"""Who may log in, how, and the headers of every page."""

import uuid
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from unittest import mock

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLPattern, URLResolver

from crowd.dashboard.login_links import LoginTokens, make_login_path, spend
from crowd.dashboard.urls import urlpatterns
from experiments.models import Study

OPEN_TO_ALL = {"login", "logout", "enter"}
POSTED = {
    "unseal",
    "refresh",
    "export",
    "build",
    "posting_act",
    "settle",
    "answer",
    "answered",
    "quality_try",
    "person_note",
    "save_filter",
    "remove_filter",
    "new_key",
    "key_end",
}
POSTED |= {"release_places", "acknowledge"}
VALUES = {"stimulus": "0", "kind": "image", "origin": "human", "session": str(uuid.UUID(int=1))}
VALUES |= {
    "posting": "1",
    "act": "pause",
    "payout": "1",
    "letter": "1",
    "submission": "1",
    "key": "1",
    "number": "1",
}
OF_ONE = {
    "picture",
    "posting_add",
    "participant",
    "report_page",
    "report_json",
    "exclude",
    "posting_close",
    "withhold",
    "statement",
    "work",
    "posting_cap",
    "posting_reward",
}


def address(route: str, slug: str = "wolf-or-husky") -> str:
    path = "/" + route
    for name, value in {**VALUES, "slug": slug, "token": "x"}.items():
        for kind in ("slug", "int", "uuid", "str"):
            path = path.replace(f"<{kind}:{name}>", value)
    return path


def routes(patterns: Sequence[URLPattern | URLResolver], before: str = "") -> Iterator[tuple[str, str]]:
    """Every view's name, and its whole route."""
    for each in patterns:
        route = f"{before}{each.pattern}"
        if isinstance(each, URLResolver):
            yield from routes(each.url_patterns, route)
        else:
            yield str(each.name), route


ROUTES = dict(routes(urlpatterns))
PAGES = {name: route for name, route in ROUTES.items() if name not in OPEN_TO_ALL}


@pytest.mark.parametrize("name", PAGES)
def test_it_leads_strangers_to_the_login_page(study: Study, name: str) -> None:
    path = address(PAGES[name])
    for reply in (Client().get(path), Client().post(path)):
        assert reply.status_code == 302
        assert reply["Location"].startswith("/login/?next=")


def test_it_lets_no_inactive_person_in(study: Study, researcher: User, desk: Client) -> None:
    User.objects.filter(pk=researcher.pk).update(is_active=False)
    assert desk.get("/").status_code == 302


def test_it_shows_every_page_to_a_researcher(study: Study, desk: Client) -> None:
    for name, route in PAGES.items():
        wanted = 405 if name in POSTED else 200
        wanted = 404 if name in OF_ONE else wanted
        assert desk.get(address(route)).status_code == wanted, name


def test_it_says_not_found_for_a_study_that_is_not_there(desk: Client) -> None:
    for name, route in PAGES.items():
        if "<slug:slug>" in route:
            assert desk.get(address(route, "no-such-study")).status_code == 404, name


def test_it_keeps_pages_out_of_caches_frames_and_scripts(study: Study, desk: Client) -> None:
    for path in ("/", "/login/", "/studies/wolf-or-husky/", "/studies/wolf-or-husky/live/"):
        reply = desk.get(path, follow=True)
        assert reply["Cache-Control"] == "private, no-store"
        assert reply["X-Frame-Options"] == "DENY"
        assert "script-src 'self'" in reply["Content-Security-Policy"]
        assert "unsafe" not in reply["Content-Security-Policy"]
        assert b"<script>" not in reply.content and b" style=" not in reply.content


FORMS = [
    *("close", "unseal", "refresh", "export", "build", "logout"),
    *("posting_act", "posting_add", "posting_close", "settle", "withhold", "proposals"),
    *("answer", "answered", "exclude", "work", "posting_cap", "roles", "release_places", "acknowledge"),
    "posting_reward",
]


@pytest.mark.parametrize("name", FORMS)
def test_it_refuses_a_form_from_elsewhere(study: Study, researcher: User, name: str) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(researcher)
    path = address(ROUTES[name])
    assert client.post(path, {"name": "x", "reason": "because of reasons"}).status_code == 403
    assert Study.objects.get().state == "open" and Study.objects.get().unsealed_at is None


def test_it_logs_in_by_password_and_out(researcher: User) -> None:
    client = Client()
    wrong = client.post("/login/", {"username": "grace", "password": "guess"})
    assert b"do not fit" in wrong.content
    right = client.post("/login/", {"username": "grace", "password": "a-long-enough-password"})
    assert right["Location"] == "/" and client.get("/").status_code == 200
    client.post("/logout/")
    assert client.get("/").status_code == 302


def test_it_logs_in_once_by_a_link_that_looking_does_not_spend(researcher: User) -> None:
    path = make_login_path(researcher)
    for _ in range(2):  # a robot that makes link previews
        assert Client().get(path).status_code == 200
        assert Client().head(path).status_code == 200
    first, second = Client(), Client()
    assert first.post(path)["Location"] == "/"
    assert first.get("/").status_code == 200
    assert second.post(path).status_code == 410
    assert second.get(path).status_code == 410
    assert second.get("/").status_code == 302


def test_it_spends_all_links_of_a_person_with_the_first(researcher: User) -> None:
    first, other = make_login_path(researcher), make_login_path(researcher)
    Client().post(first)
    researcher.refresh_from_db()
    assert Client().post(other).status_code == 410
    assert Client().get(make_login_path(researcher)).status_code == 200


def test_it_gives_one_of_two_simultaneous_clicks_the_login(researcher: User) -> None:
    token = make_login_path(researcher).split("/")[2]
    with mock.patch("crowd.dashboard.login_links.person_of", return_value=researcher):
        assert spend(token) is not None
        researcher.last_login = None  # as the other request had read it
        assert spend(token) is None


@pytest.mark.parametrize(
    "spoil", [lambda t: t[:-1] + ("A" if t[-1] != "A" else "B"), lambda t: "x", lambda t: ""]
)
def test_it_takes_no_forged_link(researcher: User, spoil: Callable[[str], str]) -> None:
    token = make_login_path(researcher).split("/")[2]
    assert Client().post(f"/enter/{spoil(token) or 'a'}/").status_code == 410


def test_it_takes_no_old_link_and_none_of_another_password(researcher: User) -> None:
    path = make_login_path(researcher)
    assert len(path) < 55, "with an address it fits in a line of a terminal"
    later = datetime.now() + timedelta(hours=1, seconds=5)
    with mock.patch.object(LoginTokens, "_now", return_value=later):
        assert Client().post(path).status_code == 410
    researcher.set_password("another-long-password")
    researcher.save()
    assert Client().post(path).status_code == 410
