"""All that an installation holds, in one folder: its rows and its files. Rows are taken first: files are
written once and never changed, so that every file that a row names is there when the files are copied."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.db import connection
from psycopg2.extensions import make_dsn

from crowd.models import LastTime
from experiments.errors import StudyError
from experiments.models import Response, Session, Study
from stimuli.store import LocalStore, open_store

BACKUP = "backup"
NOTE = "backup.json"
Told = Callable[[str, int, int], None]


def back_up(folder: Path, progress: Told) -> dict[str, Any]:
    """Writes rows and files into `folder`; files that are there from an earlier backup are not copied again.
    Returns what was backed up. Raises StudyError if a program is missing or fails; the note of an earlier
    backup is gone then, so that half a backup is not taken for one."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / NOTE).unlink(missing_ok=True)
    counted = counts()
    if connection.vendor == "postgresql":
        _run("pg_dump", "--format=custom", f"--file={folder / 'rows.dump'}")
    else:
        _copy_sqlite(folder / "rows.sqlite3")
    store, kept = open_store(settings.STORAGE_URL), LocalStore(folder / "store")
    keys = sorted(store.keys(""))
    for done, key in enumerate(keys, 1):
        if not kept.has(key):
            kept.put(key, store.get(key))
        progress("copying files", done, len(keys))
    now = datetime.now(UTC)
    note = {"at": now.isoformat(timespec="seconds"), "version": version("legible"), **counted}
    note |= {"database": connection.vendor, "files": len(keys)}
    (folder / NOTE).write_text(json.dumps(note, indent=2) + "\n")
    LastTime.objects.update_or_create(name=BACKUP, defaults={"at": now})
    return note


def restore(folder: Path, progress: Told) -> dict[str, Any]:
    """Rows and files of a backup into an empty database and the store, then the migrations of this version.
    Raises StudyError if the folder is no whole backup of this kind of database, or if the database is not
    empty: nothing is ever replaced."""
    try:
        note: dict[str, Any] = json.loads((folder / NOTE).read_text())
    except (OSError, ValueError) as error:
        raise StudyError(f"{folder} holds no whole backup: {NOTE} is missing or cannot be read.") from error
    if note["database"] != connection.vendor:
        raise StudyError(f"The backup is of {note['database']}, and DATABASE_URL names {connection.vendor}.")
    if tables := connection.introspection.table_names():
        raise StudyError(
            f"The database has {len(tables)} tables already, so nothing was restored. Give an empty one."
        )
    if connection.vendor == "postgresql":
        _run("pg_restore", "--no-owner", "--exit-on-error", str(folder / "rows.dump"))
    else:
        connection.close()
        shutil.copyfile(folder / "rows.sqlite3", str(connection.settings_dict["NAME"]))
    store, kept = open_store(settings.STORAGE_URL), LocalStore(folder / "store")
    keys = sorted(kept.keys(""))
    for done, key in enumerate(keys, 1):
        if not store.has(key):
            store.put(key, kept.get(key))
        progress("restoring files", done, len(keys))
    call_command("migrate", verbosity=0)
    if (now := counts()) != {name: note[name] for name in now}:
        raise StudyError(f"The rows are not those of the backup: {now} instead of {note}.")
    return note


def counts() -> dict[str, int]:
    return {
        "studies": Study.objects.count(),
        "sessions": Session.objects.count(),
        "responses": Response.objects.count(),
    }


def _copy_sqlite(target: Path) -> None:
    """SQLite's own copy, which is whole although people write at the same time."""
    target.unlink(missing_ok=True)
    source = f"file:{connection.settings_dict['NAME']}?mode=ro"
    with closing(sqlite3.connect(source, uri=True)) as rows, closing(sqlite3.connect(target)) as copy:
        rows.backup(copy)


def _run(program: str, *words: str) -> None:
    """One of PostgreSQL's programs on our database; the password goes by a file that is gone afterwards."""
    wanted = connection.settings_dict
    with tempfile.NamedTemporaryFile("w", prefix="legible-", suffix=".pgpass") as secret:
        escaped = str(wanted["PASSWORD"] or "").replace("\\", "\\\\").replace(":", "\\:")
        secret.write(f"*:*:*:*:{escaped}\n")
        secret.flush()
        given = {"host": wanted["HOST"], "port": wanted["PORT"], "user": wanted["USER"]}
        target = make_dsn(
            dbname=wanted["NAME"], passfile=secret.name, **{k: v for k, v in given.items() if v}
        )
        try:
            done = subprocess.run([program, f"--dbname={target}", *words], capture_output=True, text=True)
        except FileNotFoundError as error:
            needed = "Install PostgreSQL's client programs, of the server's version or newer."
            raise StudyError(f"{program} is not on the PATH. {needed}") from error
    if done.returncode:
        raise StudyError(f"{program} failed: {done.stderr.strip().splitlines()[-1][:300]}")
