"""Dump, destroy, restore, go on: a person in the middle of a study continues on the restored installation."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import psycopg2
import pytest
from django.db import connection

from crowd.models import LastTime
from experiments.models import Response, Study
from tests import services
from tests.crowd.logins import login
from tests.services import ROOT, WebServer, postgres_folders
from tests.world import Person, opened_study, write_study

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases("the copy of the rows")]


@pytest.fixture
def study(server_env: dict[str, str], tmp_path: Path) -> Study:
    return opened_study(write_study(tmp_path / "study"))


class Elsewhere:
    """Django's test client, but over HTTP to another server."""

    def __init__(self, server: WebServer) -> None:
        self.http = httpx.Client(base_url=server.url, timeout=60)

    def get(self, path: str, headers: dict[str, str]) -> httpx.Response:
        return self.http.get(path, headers=headers)

    def post(self, path: str, data: Any, content_type: str, headers: dict[str, str]) -> httpx.Response:
        return self.http.post(path, content=data, headers={**headers, "Content-Type": content_type})


def run(env: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([*map(str, postgres_folders()), os.environ["PATH"]])
    merged = {**os.environ, **env, "PATH": path}
    command = [sys.executable, "manage.py", *words]
    return subprocess.run(command, cwd=ROOT, env=merged, capture_output=True, text=True)


def empty_database(tmp_path: Path) -> str:
    if connection.vendor != "postgresql":
        return f"sqlite:///{tmp_path / 'restored.sqlite3'}"
    port, name = int(connection.settings_dict["PORT"]), f"restored_{os.getpid()}"
    services.drop_database(port, name)
    return services.create_database(port, name, template="template0")


def test_an_installation_is_restored_and_people_go_on(
    server_env: dict[str, str], study: Study, store_folder: Path, tmp_path: Path
) -> None:
    ada = Person("ada")
    ada.arrive()
    ada.answer(5)
    folder = tmp_path / "backup"
    done = run(server_env, "backup", str(folder))
    assert done.returncode == 0, done.stderr
    note = json.loads((folder / "backup.json").read_text())
    assert (note["studies"], note["sessions"], note["responses"]) == (1, 1, 5)
    assert LastTime.objects.filter(name="backup").exists()
    state, total = ada.refresh(), len(ada.trials())

    restored = {**server_env, "DATABASE_URL": empty_database(tmp_path), "STORAGE_URL": str(tmp_path / "new")}
    shutil.rmtree(store_folder)
    told = run(restored, "restore", str(folder))
    assert told.returncode == 0 and "5 answers" in told.stdout, told.stderr
    again = run(restored, "restore", str(folder))
    assert again.returncode == 1 and "Give an empty one." in again.stderr
    with services.web_server(restored) as server:
        ada.client = Elsewhere(server)  # type: ignore[assignment]
        assert ada.refresh()["next"] == state["next"] == 5
        picture = next(t["content"]["image"]["url"] for t in ada.state["block"]["trials"] if t["content"])
        assert httpx.get(f"{server.url}{picture}").headers["Content-Type"] == "image/png"
        for trial in ada.trials()[5:]:
            assert ada.respond(ada.good_response(trial)).status_code == 200
        ada.refresh()
        assert ada.finish().status_code == 200
    assert Response.objects.count() == 5, "the old rows were not touched"
    assert _answers(restored["DATABASE_URL"]) == total


def _answers(url: str) -> int:
    if url.startswith("sqlite"):
        import sqlite3

        rows: Any = sqlite3.connect(url.removeprefix("sqlite:///"))
    else:
        rows = psycopg2.connect(url)
    cursor = rows.cursor()
    cursor.execute("SELECT count(*) FROM experiments_response")
    (count,) = cursor.fetchone()
    rows.close()
    return int(count)


@pytest.mark.long(stays="test_an_installation_is_restored_and_people_go_on")
def test_half_a_backup_is_none(
    server_env: dict[str, str], study: Study, store_folder: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "backup"
    assert run(server_env, "backup", str(folder)).returncode == 0
    before = (folder / "backup.json").read_text()
    assert json.loads(before)["files"] == sum(path.is_file() for path in (folder / "store").rglob("*"))
    (folder / "backup.json").unlink()
    refused = run({**server_env, "DATABASE_URL": empty_database(tmp_path)}, "restore", str(folder))
    assert refused.returncode == 1 and "holds no whole backup" in refused.stderr
    (folder / "backup.json").write_text(before.replace(connection.vendor, "oracle"))
    refused = run({**server_env, "DATABASE_URL": empty_database(tmp_path)}, "restore", str(folder))
    assert "The backup is of oracle, and DATABASE_URL names" in refused.stderr


def test_the_service_page_tells_the_age_of_the_backup(study: Study) -> None:
    desk = login("vera")
    assert "No backup was made" in desk.get("/service/").content.decode()
    LastTime.objects.create(name="backup", at=study.created_at)
    assert "ago" in desk.get("/service/").content.decode()
