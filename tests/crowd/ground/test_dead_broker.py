"""The broker is configured and dead: every page that asks a worker says so, and nothing is half done."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from crowd.celery import app
from crowd.models import AskedPayment, Identity, Message, Payout, Posting
from experiments.models import Study
from stimuli.models import Stimulus
from tests.analysis import stored
from tests.crowd import paid
from tests.crowd.dashboard.test_dashboard_recruitment import live
from tests.crowd.logins import login

pytestmark = pytest.mark.django_db
NOWHERE = "redis://127.0.0.1:1/0"
"""No server listens on port 1."""
ROOT = "/studies/wolf-or-husky/"
SILENT = "The broker of messages does not answer, so no worker was asked and nothing was done."


@pytest.fixture(autouse=True)
def dead_broker(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # Celery prefers it to all that is configured.
    monkeypatch.delenv("CELERY_BROKER_URL", raising=False)
    before = app.conf.broker_url, app.conf.task_always_eager
    settings.CELERY_BROKER_URL = app.conf.broker_url = NOWHERE
    app.conf.task_always_eager = False
    forget_connections()
    assert app.connection_for_write().port == 1, "another broker than the dead one"
    yield
    app.conf.broker_url, app.conf.task_always_eager = before
    forget_connections()


def forget_connections() -> None:
    app._pool = None
    app.amqp._producer_pool = None


@pytest.fixture
def study(store_folder: object) -> Study:
    return stored.opened()


@pytest.fixture
def desk(study: Study) -> Client:
    return login("grace", "view", "run", "pay", "unseal")


def posted(desk: Client, path: str, **data: str) -> str:
    reply = desk.post(ROOT + path, data, follow=True, headers={"Referer": f"http://testserver{ROOT}money/"})
    assert reply.status_code in (200, 400)
    return reply.content.decode()


def test_a_report_is_not_asked_for(study: Study, desk: Client) -> None:
    reply = desk.post(f"{ROOT}report/refresh/", headers={"Referer": f"http://testserver{ROOT}report/"})
    assert (reply.status_code, reply["Location"]) == (302, f"http://testserver{ROOT}report/")
    assert SILENT in desk.get(f"{ROOT}report/").content.decode()
    reply = desk.post(f"{ROOT}report/refresh/", headers={"Referer": "https://elsewhere.example/"})
    assert reply["Location"] == ROOT, "never to another site"
    assert not LogEntry.objects.exists()


def test_pictures_are_sent_by_the_sweep_once_there_is_a_broker(study: Study, desk: Client) -> None:
    Stimulus.objects.update(state="missing")
    assert SILENT in posted(desk, "build/")
    assert not LogEntry.objects.exists() and not Stimulus.objects.exclude(state="missing").exists()


def test_a_posting_is_not_paused(study: Study, desk: Client) -> None:
    posting = live(study)
    assert SILENT in posted(desk, f"recruitment/{posting.pk}/pause/")
    assert not LogEntry.objects.exists() and Posting.objects.get().state == "open"


def test_nothing_is_paid(store_folder: object) -> None:
    with paid.offered(paid.paying()) as stage:
        desk = login("grace", "view", "run", "pay")
        stage.person(matches=4)
        paid.settle(stage.study, yes=False)
        before = LogEntry.objects.count()
        assert SILENT in posted(desk, f"money/settle/{stage.posting.pk}/", total="1.60")
        assert set(Payout.objects.values_list("state", flat=True)) == {"due"}
        assert LogEntry.objects.count() == before


def test_a_large_sum_can_still_be_confirmed_afterwards(store_folder: object, settings: Any) -> None:
    settings.SECOND_PERSON_CENTS = 100
    with paid.offered(paid.paying()) as stage:
        ada, bo = login("ada", "pay"), login("bo", "pay")
        stage.person(matches=4)
        paid.settle(stage.study, yes=False)
        path = f"money/settle/{stage.posting.pk}/"
        assert "Nothing was sent yet" in posted(ada, path, total="1.60")
        before = LogEntry.objects.count()
        assert SILENT in posted(bo, path, total="1.60")
        assert AskedPayment.objects.get().user.get_username() == "ada"
        assert LogEntry.objects.count() == before


def test_a_study_is_not_closed(study: Study, desk: Client) -> None:
    live(study)
    page = posted(desk, "close/", reason="We have seen enough of it.")
    study.refresh_from_db()
    assert SILENT in page and study.state == "open" and not LogEntry.objects.exists()


def test_an_answer_is_stored_and_the_page_says_how_it_is_sent(study: Study, desk: Client) -> None:
    session = stored.sitting(study, "ada", condition="control")
    posting = live(study)
    identity = Identity.objects.create(
        study=study,
        platform=posting.platform,
        person_hash="a" * 64,
        participant=session.participant,
        external_id="5f0",
    )
    letter = Message.objects.create(posting=posting, identity=identity, state="received", body="Hello?")
    page = posted(desk, f"messages/{letter.pk}/answer/", body="It is on its way to you.")
    assert "The answer is stored, but no worker could be asked. To send it, run:" in page
    assert Message.objects.filter(answers=letter, state="sending").count() == 1
