"""What is stored here, and how it becomes a database and a store again. Secrets in it are of tests only."""

from __future__ import annotations

import json
import lzma
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import psycopg2

from tests import services

STORED = Path(__file__).parent / "stored"
Rows = dict[str, dict[str, Any]]
"""Primary key -> column -> value, of one table."""


def text_of(name: str) -> str:
    return lzma.decompress((STORED / f"{name}.xz").read_bytes()).decode()


def json_of(name: str) -> Any:
    return json.loads(text_of(f"{name}.json"))


def unpack(name: str, folder: Path) -> Path:
    with ZipFile(STORED / f"{name}.zip") as archive:
        archive.extractall(folder)
    return folder


@dataclass(frozen=True, slots=True)
class Database:
    """A separate database, read without Django, column by column."""

    url: str

    @property
    def kind(self) -> str:
        return "sqlite" if self.url.startswith("sqlite") else "postgresql"

    @contextmanager
    def connected(self) -> Iterator[Any]:
        if self.kind == "sqlite":
            with closing(sqlite3.connect(self.url.removeprefix("sqlite:///"))) as connection:
                yield connection
                connection.commit()
            return
        with closing(psycopg2.connect(self.url)) as connection:
            yield connection
            connection.commit()

    def load(self) -> None:
        """The dump of f38355e, into an empty database."""
        with self.connected() as connection:
            if self.kind == "sqlite":
                connection.executescript(text_of("people-sqlite.sql"))
            else:
                connection.cursor().execute(text_of("people-postgresql.sql"))

    def ask(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        with self.connected() as connection:
            cursor = connection.cursor()
            cursor.execute(statement, values)
            return list(cursor.fetchall()) if cursor.description else []

    def key(self, uuid: str) -> str:
        """A session's id as this database writes it."""
        return uuid.replace("-", "") if self.kind == "sqlite" else uuid

    def tables(self) -> list[str]:
        which = (
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
            if self.kind == "sqlite"
            else "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
        )
        return sorted(str(name) for (name,) in self.ask(which))

    def rows(self, table: str) -> Rows:
        """Everything in a table; times and JSON as text, so that two readings can be compared."""
        with self.connected() as connection:
            cursor = connection.cursor()
            cursor.execute("SET search_path TO public") if self.kind == "postgresql" else None
            cursor.execute(f'SELECT * FROM "{table}"')
            names = [column[0] for column in cursor.description]
            key = names.index(KEYS.get(table, "id"))
            return {str(row[key]): dict(zip(names, row, strict=True)) for row in cursor.fetchall()}

    def shift(self) -> None:
        """Shifts every time as if the dump had been made a minute ago, so that leases are still valid."""
        newest = datetime.fromisoformat(
            str(self.ask("SELECT max(received_at) FROM experiments_response")[0][0])
        ).replace(tzinfo=UTC)
        seconds = int((datetime.now(UTC) - newest).total_seconds()) - 60
        for table, column in self._times():
            change = (
                f"strftime('%Y-%m-%d %H:%M:%f', \"{column}\", '{seconds:+d} seconds')"
                if self.kind == "sqlite"
                else f"\"{column}\" + interval '{seconds} seconds'"
            )
            self.ask(f'UPDATE "{table}" SET "{column}" = {change} WHERE "{column}" IS NOT NULL')

    def _times(self) -> list[tuple[str, str]]:
        if self.kind == "postgresql":
            return self.ask(
                "SELECT table_name, column_name FROM information_schema.columns "
                "WHERE table_schema = 'public' AND data_type LIKE 'timestamp%%'"
            )
        return [
            (table, str(column[1]))
            for table in self.tables()
            for column in self.ask(f'PRAGMA table_info("{table}")')
            if column[2] == "datetime"
        ]


Place = tuple[Database, dict[str, str]]
"""A database, and the environment of processes that share it."""
KEYS = {"django_session": "session_key"}


def manage(*arguments: str, env: dict[str, str]) -> str:
    """A command of the project in a process of its own, as on the day of an upgrade."""
    done = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=services.ROOT,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"{arguments}: {done.stderr[-3000:]}"
    return done.stdout
