"""The database of f38355e in today's code: one unchanged copy, and one in which people continue."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import databases, services
from tests.before.restored import Database, Place, json_of, unpack


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
    with empty_database(run_folder) as url:
        yield upgraded(url, tmp_path_factory.mktemp("going-on"), shifted=True)


@pytest.fixture
def own_place(run_folder: Path, tmp_path: Path) -> Iterator[Place]:
    """The same for one test alone."""
    with empty_database(run_folder) as url:
        yield upgraded(url, tmp_path, shifted=True)


@pytest.fixture(scope="module")
def place_as_it_was(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """The same at the very time of the dump; always SQLite, from which the stored tables were made."""
    folder = tmp_path_factory.mktemp("as-it-was")
    return upgraded(f"sqlite:///{folder / 'legible.sqlite3'}", folder, shifted=False)


def upgraded(url: str, folder: Path, *, shifted: bool) -> Place:
    """The dump in the empty database of `url`, migrated, and what processes need that serve it. `shifted`: as
    if the upgrade came a minute after the dump.
    """
    database = Database(url)
    database.load()
    if shifted:
        database.shift()
    env = {
        "DATABASE_URL": url,
        "STORAGE_URL": str(unpack("pictures", folder / "store")),
        "LEGIBLE_VAR": str(folder / "var"),
        "CELERY_BROKER_URL": "",
        "SECRET_KEY": json_of(f"people-{database.kind}")["secret"],
        "PAYOUT_GRACE_S": "0",
    }
    services.migrate(env)
    return database, env
