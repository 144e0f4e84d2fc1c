"""Cross-process locks of an installation: a killed process, even by kill -9, releases its lock."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError, Error, connection
from django.db.backends.base.base import BaseDatabaseWrapper

from experiments.errors import StudyError


class Busy(StudyError):
    """Another process or thread holds the lock."""


class LockLost(StudyError):
    """The database ended the connection that held the lock."""


@dataclass(frozen=True, slots=True)
class HeldLock:
    """A lock that is held. `check` is asked before anything that must not happen twice."""

    name: str
    session: BaseDatabaseWrapper | None = None

    def check(self) -> None:
        """Raises LockLost if the lock may be gone. The lock of a database ends with its connection."""
        if self.session is None:
            return
        try:
            with self.session.cursor() as cursor:
                cursor.execute("SELECT 1")
        except DatabaseError as error:
            raise LockLost(
                "The database closed the connection that guards the payments, so nothing more was sent. "
                "Run settle again."
            ) from error


@contextmanager
def exclusive(name: str, busy: str = "") -> Iterator[HeldLock]:
    """Holds the lock of that name until the block ends, or the process does. Never waits: raises Busy with
    the sentence `busy`."""
    refusal = Busy(busy or f"{name} is running already. Wait until it has ended.")
    if connection.vendor == "postgresql":
        with _in_database(name, refusal) as held:
            yield held
    else:
        with _in_file(name, refusal) as held:
            yield held


@contextmanager
def _in_database(name: str, refusal: Busy) -> Iterator[HeldLock]:
    # The lock has a connection of its own, so that no transaction or reconnect of the other code ends it.
    extra = connection.copy()
    number = int.from_bytes(hashlib.sha256(f"legible:{name}".encode()).digest()[:8], "big", signed=True)
    try:
        with extra.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_lock(%s)", [number])
            row = cursor.fetchone()
        if row is None or not row[0]:
            raise refusal
        try:
            yield HeldLock(name, extra)
        finally:
            # The server notices a closed connection a little later; the next process asks at once.
            with suppress(Error), extra.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [number])
    finally:
        extra.close()


@contextmanager
def _in_file(name: str, refusal: Busy) -> Iterator[HeldLock]:
    database = hashlib.sha256(str(connection.settings_dict["NAME"]).encode()).hexdigest()[:8]
    path = Path(settings.VAR_DIR) / "locks" / f"{name}-{database}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise refusal from None
        # Never removed: another process may be about to lock this very file.
        yield HeldLock(name)
    finally:
        os.close(file)
