"""Whether the service can serve, asked of real parts that are there, gone or dead."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client

from crowd.celery import app
from stimuli.models import Stimulus
from stimuli.store.media import current_store
from tests.analysis import stored
from tests.crowd.logins import login

pytestmark = pytest.mark.django_db
NOWHERE = "redis://127.0.0.1:1/0"
"""No server listens on port 1."""


def asked() -> tuple[int, list[str]]:
    reply = Client().get("/readyz")
    return reply.status_code, reply.json()["missing"]


def test_it_is_ready_with_rows_and_pictures(store_folder: Path) -> None:
    assert asked() == (200, []), "an installation without pictures yet"
    stored.opened()
    assert asked() == (200, [])


def test_a_store_that_is_not_mounted_is_named(store_folder: Path) -> None:
    stored.opened()
    newest = Stimulus.objects.order_by("-pk")[0].image_file
    assert current_store().has(newest)
    for folder in store_folder.iterdir():
        shutil.rmtree(folder)
    assert asked() == (503, ["store"])
    page = login("vera").get("/service/").content.decode()
    assert (
        "Not everything works:</strong> Pictures." in page and "Mount or start what STORAGE_URL names" in page
    )


def test_a_migration_that_was_not_applied_is_named(store_folder: Path) -> None:
    MigrationRecorder(connection).record_unapplied("crowd", "0010_arrivals")
    assert asked() == (503, ["database"])
    assert "Run manage.py migrate." in login("vera").get("/service/").content.decode()


def test_a_dead_broker_is_named_and_keeps_no_one_waiting(store_folder: Path, settings: Any) -> None:
    settings.CELERY_BROKER_URL, before = NOWHERE, app.conf.broker_url
    app.conf.broker_url = NOWHERE
    try:
        assert asked() == (503, ["broker"])
        page = login("vera").get("/service/").content.decode()
    finally:
        app.conf.broker_url = before
    assert "Messages to workers, Workers" in page and "Start what CELERY_BROKER_URL names" in page


def test_the_page_is_for_logins_and_says_what_works(store_folder: Path) -> None:
    assert Client().get("/service/").status_code == 302
    page = login("vera").get("/service/").content.decode()
    assert "Everything that this installation needs answers." in page
