"""Migrated databases: a run migrates one and copies it for every process that needs its own; how a database
is emptied after a test that commits.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlparse

from django.db.transaction import atomic

from tests import services

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

FOLDER_VARIABLE = "LEGIBLE_TEST_FOLDER"
"""Names the folder of the run. All of its processes share it, and it is removed at the end."""
TEMPLATE = "migrated"
FROM_MIGRATING = frozenset({"django_content_type", "auth_permission"})
"""Tables whose rows are written by migrations; nothing in the project writes there later."""


@contextmanager
def only_one(lock: Path) -> Iterator[None]:
    """One process of the run at a time; a killed process releases the lock."""
    with lock.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def new_database(base: str, folder: Path, name: str) -> str:
    """The URL of a new migrated, otherwise empty database of the kind that `base` names.

    The first process migrates the template in the run's `folder`; every process copies it.
    """
    kind = urlparse(base).scheme
    with only_one(folder / f"{TEMPLATE}-{kind}.lock"):
        is_done = folder / f"{TEMPLATE}-{kind}.done"
        if not is_done.exists():
            drop(base, folder, TEMPLATE)
            services.migrate({"DATABASE_URL": create_empty(base, folder, TEMPLATE)})
            is_done.touch()
        if base.startswith("sqlite"):
            shutil.copyfile(sqlite_file(folder, TEMPLATE), sqlite_file(folder, name))
            return f"sqlite:///{sqlite_file(folder, name)}"
        return services.create_database(port_of(base), name, template=TEMPLATE)


@contextmanager
def fresh(folder: Path, base: str = "") -> Iterator[str]:
    """The URL of a migrated database of the kind that `base` names, by default the run's, for processes other
    than this one; removed after."""
    base, name = base or os.environ["DATABASE_URL"], f"served_{uuid.uuid4().hex[:12]}"
    try:
        yield new_database(base, folder, name)
    finally:
        drop(base, folder, name)


def create_empty(base: str, folder: Path, name: str) -> str:
    if base.startswith("sqlite"):
        return f"sqlite:///{sqlite_file(folder, name)}"
    return services.create_database(port_of(base), name)


def drop(base: str, folder: Path, name: str) -> None:
    """Remove the database, if there is one, and its side files."""
    if not base.startswith("sqlite"):
        services.drop_database(port_of(base), name)
        return
    for file in folder.glob(f"{name}.sqlite3*"):
        file.unlink()


def sqlite_file(folder: Path, name: str) -> Path:
    return folder / f"{name}.sqlite3"


def port_of(url: str) -> int:
    port = urlparse(url).port
    assert port is not None
    return port


def use(url: str) -> None:
    """From now on Django's default connection uses this database."""
    from django.conf import settings
    from django.db import connection

    connection.close()
    name = urlparse(url).path.removeprefix("/")
    settings.DATABASES["default"]["NAME"] = connection.settings_dict["NAME"] = name


def empty(connection: BaseDatabaseWrapper) -> None:
    """Delete every row that was written after migrating.

    Django's flush truncates all tables, full or empty, and writes permissions and content types again; here
    only tables that have rows are touched. Foreign keys are deferred, so the order of the tables is free.
    """
    names = connection.introspection.django_table_names(only_existing=True, include_views=False)
    tables = {name: connection.ops.quote_name(name) for name in names if name not in FROM_MIGRATING}
    asked = [f"SELECT '{name}' WHERE EXISTS (SELECT 1 FROM {quoted})" for name, quoted in tables.items()]
    with atomic(), connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(asked))
        for (name,) in cursor.fetchall():
            cursor.execute(f"DELETE FROM {tables[name]}")
