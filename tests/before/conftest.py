"""The database of f38355e in today's code: one copy as it was, one that people go on in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import services
from tests.before.restored import Database, Place, json_of, unpack
from tests.conftest import empty_database


@pytest.fixture(scope="module")
def migrated(run_folder: Path) -> Iterator[tuple[Database, Database]]:
    """(as it was, after migrate)"""
    with (
        empty_database(run_folder, f"as_it_was_{services.free_port()}") as before,
        empty_database(run_folder, f"migrated_{services.free_port()}") as after,
    ):
        for url in (before, after):
            Database(url).load()
        services.migrate({"DATABASE_URL": after})
        yield Database(before), Database(after)


@pytest.fixture(scope="module")
def going_on(run_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A database and a store that the people of one file go on in."""
    with upgraded(run_folder, tmp_path_factory.mktemp("going-on")) as place:
        yield place


@pytest.fixture
def own_place(run_folder: Path, tmp_path: Path) -> Iterator[Place]:
    """The same for one test alone."""
    with upgraded(run_folder, tmp_path) as place:
        yield place


@pytest.fixture(scope="module")
def place_as_it_was(run_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """The same at the very time of the dump."""
    with upgraded(run_folder, tmp_path_factory.mktemp("as-it-was"), shifted=False) as place:
        yield place


@contextmanager
def upgraded(run_folder: Path, folder: Path, *, shifted: bool = True) -> Iterator[Place]:
    """The database of a minute before the upgrade, migrated, and what processes need that serve it."""
    with empty_database(run_folder, f"upgraded_{services.free_port()}") as url:
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
        yield database, env
