"""Filters that a login keeps: its own, of one study, under a name."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from crowd.models import SavedFilter
from experiments.models import Study
from tests.analysis import stored
from tests.crowd.logins import login
from tests.crowd.people.test_roles import other_study

pytestmark = pytest.mark.django_db
PAGE = "/studies/wolf-or-husky/participants/"


def kept(client: Client, name: str, query: str) -> str:
    """The page that follows."""
    return client.post(f"{PAGE}filters/", {"name": name, "query": query}, follow=True).content.decode()


def listed(page: str) -> list[str]:
    return re.findall(r"<code>([^<]+)</code></a></th>", page)


def test_a_kept_filter_shows_the_same_people_again(study: Study) -> None:
    stored.cast(study)
    ada = login("ada", "view")
    by_hand = ada.get(f"{PAGE}?status=screened&sort=started").content.decode()
    assert listed(by_hand) and len(listed(by_hand)) < len(listed(ada.get(PAGE).content.decode()))
    after = kept(ada, "Missed checks", "status=screened&sort=started&page=2&csrf=x")
    assert listed(after) == listed(by_hand)
    page = ada.get(PAGE).content.decode()
    link = re.search(r'<a href="(\?[^"]+)"[^>]*>Missed checks</a>', page)
    assert link and link[1] == "?status=screened&amp;sort=started"
    assert listed(ada.get(PAGE + link[1].replace("&amp;", "&")).content.decode()) == listed(by_hand)
    assert "Missed checks" not in login("bo", "view").get(PAGE).content.decode()


def test_a_name_keeps_one_filter_and_is_removed_by_its_login(study: Study) -> None:
    ada, bo = login("ada", "view"), login("bo", "view")
    kept(ada, "Mine", "status=screened")
    kept(ada, "Mine", "status=left")
    row = SavedFilter.objects.get()
    assert row.query == "status=left"
    bo.post(f"{PAGE}filters/{row.pk}/")
    login("eve", "view", study=other_study()).post(f"{PAGE}filters/{row.pk}/")
    assert SavedFilter.objects.count() == 1
    ada.post(f"{PAGE}filters/{row.pk}/")
    assert SavedFilter.objects.count() == 0


@pytest.mark.parametrize(
    ("name", "query", "said"),
    [
        ("", "status=left", "in 1 to 40 characters"),
        ("x" * 41, "status=left", "in 1 to 40 characters"),
        ("All", "", "Choose an origin"),
        ("All", "page=3", "Choose an origin"),
        ("Long", f"q={'x' * 301}", "Choose an origin"),
    ],
)
def test_what_cannot_be_kept_is_said(study: Study, name: str, query: str, said: str) -> None:
    assert said in kept(login("ada", "view"), name, query)
    assert SavedFilter.objects.count() == 0
