"""The database of f38355e in today's code: one unchanged copy, and one in which people continue."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import services
from tests.before.restored import Database, Place, json_of, unpack
from tests.run import databases

UPGRADED = "before_upgraded"


@contextmanager
def empty_database(folder: Path) -> Iterator[str]:
    """The URL of a database of the run's kind without any table; removed after."""
    base, name = os.environ["DATABASE_URL"], f"before_{uuid.uuid4().hex[:12]}"
    try:
        yield databases.create_empty(base, folder, name)
    finally:
        databases.drop(base, folder, name)


@pytest.fixture(scope="module")
def migrated(run_folder: Path) -> Iterator[tuple[Database, Database]]:
    """(as it was, after migrate)"""
    with (
        empty_database(run_folder) as before,
        empty_database(run_folder) as after,
    ):
        for url in (before, after):
            Database(url).load()
        services.migrate({"DATABASE_URL": after})
        yield Database(before), Database(after)


@pytest.fixture(scope="module")
def going_on(run_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A database and a store in which the people of one file continue."""
    with upgraded(run_folder, tmp_path_factory.mktemp("going-on")) as place:
        yield place


@pytest.fixture
def own_place(run_folder: Path, tmp_path: Path) -> Iterator[Place]:
    """The same for one test alone."""
    with upgraded(run_folder, tmp_path) as place:
        yield place


@pytest.fixture(scope="module")
def place_as_it_was(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """The dump at its very time, which is still to be migrated; always SQLite, from which the stored tables
    were made."""
    folder = tmp_path_factory.mktemp("as-it-was")
    return loaded(f"sqlite:///{folder / 'legible.sqlite3'}", folder)


@contextmanager
def upgraded(run_folder: Path, folder: Path) -> Iterator[Place]:
    """The dump, migrated as if the upgrade came a minute after it: once in a run, of which this is a copy."""
    base, name = os.environ["DATABASE_URL"], f"before_{uuid.uuid4().hex[:12]}"
    with databases.only_one(run_folder / f"{UPGRADED}.lock"):
        is_done = run_folder / f"{UPGRADED}.done"
        if not is_done.exists():
            databases.drop(base, run_folder, UPGRADED)
            database, env = loaded(databases.create_empty(base, run_folder, UPGRADED), folder / "first")
            database.shift()
            services.migrate(env)
            is_done.touch()
        url = copied(base, run_folder, name)
    try:
        database, env = place_of(url, folder)
        database.shift()
        yield database, env
    finally:
        databases.drop(base, run_folder, name)


def copied(base: str, folder: Path, name: str) -> str:
    if not base.startswith("sqlite"):
        return services.create_database(databases.port_of(base), name, template=UPGRADED)
    shutil.copyfile(databases.sqlite_file(folder, UPGRADED), databases.sqlite_file(folder, name))
    return f"sqlite:///{databases.sqlite_file(folder, name)}"


def loaded(url: str, folder: Path) -> Place:
    """The dump in the empty database of `url`, and what processes need that serve it."""
    Database(url).load()
    return place_of(url, folder)


def place_of(url: str, folder: Path) -> Place:
    database = Database(url)
    env = {
        "DATABASE_URL": url,
        "STORAGE_URL": str(unpack("pictures", folder / "store")),
        "LEGIBLE_VAR": str(folder / "var"),
        "CELERY_BROKER_URL": "",
        "SECRET_KEY": json_of(f"people-{database.kind}")["secret"],
        "PAYOUT_GRACE_S": "0",
    }
    return database, env
