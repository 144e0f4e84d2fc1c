"""Data for a program: a key opens what its login may look at, as long as it may, and while results are sealed
nothing."""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client

from analysis.exports import manifest
from crowd.models import DataKey, StudyRole
from experiments.models import Study
from tests.analysis import stored
from tests.crowd.dashboard.test_dashboard_data import body_of
from tests.crowd.logins import login

pytestmark = pytest.mark.django_db
PAGE = "/studies/wolf-or-husky/downloads/"
DATA = "/data/wolf-or-husky.zip"


@pytest.fixture
def ada(study: Study) -> Client:
    return login("ada", "view")


def made(client: Client, name: str = "nightly") -> str:
    reply = client.post(f"{PAGE}keys/", {"name": name})
    shown = re.search(r"<p><code>([\w-]{43})</code></p>", reply.content.decode())
    assert reply.status_code == 200 and shown and reply["Cache-Control"] == "private, no-store"
    return shown[1]


def fetched(key: str, **wanted: str) -> Any:
    return Client().get(DATA, wanted, headers={"Authorization": f"Bearer {key}"})


def test_a_key_downloads_what_the_page_does(study: Study, ada: Client, tmp_path: Path) -> None:
    stored.full(study)
    key = made(ada)
    assert key not in ada.get(PAGE).content.decode() and key not in str(DataKey.objects.values())
    reply = fetched(key, cleaned="cleaned")
    assert reply.status_code == 200 and "wolf-or-husky-human-cleaned.zip" in reply["Content-Disposition"]
    by_key = zipfile.ZipFile(io.BytesIO(body_of(reply)))
    by_key.extractall(tmp_path)
    assert manifest.check(tmp_path / "wolf-or-husky-human-cleaned").problems == ()
    by_hand = ada.post(f"{PAGE}export/", {"origin": "human", "cleaned": "cleaned"})
    same = zipfile.ZipFile(io.BytesIO(body_of(by_hand)))
    rows = [
        list(csv.reader(io.StringIO(each.read("wolf-or-husky-human-cleaned/trials.csv").decode())))
        for each in (by_key, same)
    ]
    assert rows[0] == rows[1] and len(rows[0]) > 2
    page, log = ada.get(PAGE).content.decode(), ada.get("/studies/wolf-or-husky/log/").content.decode()
    assert "nightly" in page and "never" not in page
    assert "Made a key for the data: nightly." in log and "(those who passed) by a key, export" in log


def test_a_sealed_study_tells_a_program_nothing(study: Study, ada: Client) -> None:
    stored.cast(study)
    reply = fetched(made(ada))
    assert reply.status_code == 409 and reply["Content-Type"].startswith("text/plain")
    assert b"Sealed until the stopping rule is met" in reply.content and study.releases.count() == 0


def ended(ada: Client) -> None:
    assert ada.post(f"{PAGE}keys/{DataKey.objects.get().pk}/end/").status_code == 302


LOSSES: dict[str, Callable[[Client], object]] = {
    "ended": ended,
    "role": lambda ada: StudyRole.objects.all().delete(),
    "inactive": lambda ada: User.objects.filter(username="ada").update(is_active=False),
    "other study": lambda ada: Study.objects.update(slug="renamed"),
}
"""After which a key opens nothing."""


def test_nothing_else_opens_it(study: Study, ada: Client) -> None:
    stored.full(study)
    key = made(ada)
    header = {"Authorization": f"Bearer {key}"}
    for loss, lose in LOSSES.items():
        with transaction.atomic():
            lose(ada)
            refused(study, header, loss)
            transaction.set_rollback(True)
    for wrong in ({"Authorization": f"Bearer {key[:-1]}"}, {}, {"Authorization": f"Basic {key}"}):
        refused(study, wrong, str(wrong))
    assert ada.get(DATA).status_code == 401, "a cookie is no key"
    assert fetched(key).status_code == 200, "as long as nothing is lost"


def refused(study: Study, headers: dict[str, str], why: str) -> None:
    before = study.releases.count()
    reply = Client().get(DATA, headers=headers)
    assert reply.status_code == 401 and reply["WWW-Authenticate"].startswith("Bearer"), why
    assert b"page Downloads" in reply.content and study.releases.count() == before, why


def test_it_says_what_to_ask_for(study: Study, ada: Client) -> None:
    stored.full(study)
    key = made(ada)
    assert b"Ask for ?origin= one of" in fetched(key, origin="preview").content
    assert fetched(key, cleaned="half").status_code == 400
    assert fetched(key, origin="simulated").status_code == 409


def test_a_key_is_ended_by_its_login_or_an_administrator(study: Study, ada: Client) -> None:
    made(ada)
    end = f"{PAGE}keys/{DataKey.objects.get().pk}/end/"
    refused = login("bo", "view", "run").post(end)
    assert refused.status_code == 403 and b"ada or an administrator ends it" in refused.content
    assert DataKey.objects.count() == 1
    assert login("root", is_superuser=True).post(end).status_code == 302
    assert DataKey.objects.count() == 0


@pytest.mark.parametrize("name", ["", "  ", "x" * 61])
def test_a_key_has_a_name(study: Study, ada: Client, name: str) -> None:
    reply = ada.post(f"{PAGE}keys/", {"name": name})
    assert reply.status_code == 400 and b"in 1 to 60 characters" in reply.content
    assert DataKey.objects.count() == 0
