"""Whether the service can serve, asked of real parts that are there, gone or dead."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client

from crowd.celery import app
from stimuli.models import Stimulus
from stimuli.store.media_access import current_store
from tests.analysis import stored
from tests.crowd.logins import login
from tests.services import ROOT

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


def test_a_full_disk_is_not_ready(store_folder: Path, settings: Any) -> None:
    settings.DISK_FREE_MIN_MB = shutil.disk_usage(settings.VAR_DIR).total // 2**20 + 1
    status, missing = asked()
    assert status == 503 and missing and all(name.startswith("disk of ") for name in missing)


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
    newest = max(name for app, name in MigrationLoader(connection).disk_migrations if app == "crowd")
    MigrationRecorder(connection).record_unapplied("crowd", newest)
    assert asked() == (503, ["database"])
    assert "Run manage.py migrate." in login("vera").get("/service/").content.decode()


def test_a_dead_broker_is_named_and_keeps_no_one_waiting(
    store_folder: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Celery prefers it to all that is configured.
    monkeypatch.delenv("CELERY_BROKER_URL", raising=False)
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


@pytest.mark.long(stays="test_a_dead_broker_is_named_and_keeps_no_one_waiting")
@pytest.mark.parametrize(
    "url", ["sqlite:////no/such/folder/rows.sqlite3", "postgresql://x:y@127.0.0.1:1/rows"]
)
def test_a_database_that_is_gone_is_named(url: str, tmp_path: Path) -> None:
    """In a process of its own, whose database no one can open."""
    ask = """if True:
        import django
        django.setup()
        from django.test import Client
        reply = Client(SERVER_NAME="localhost").get("/readyz")
        print(reply.status_code, reply.json()["missing"])
    """
    env = {**os.environ, "DATABASE_URL": url, "LEGIBLE_VAR": str(tmp_path), "CELERY_BROKER_URL": ""}
    env["DJANGO_SETTINGS_MODULE"] = "crowd.settings"
    done = subprocess.run([sys.executable, "-c", ask], cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.stdout.split("\n")[0] == "503 ['database']", done.stderr[-1500:]
