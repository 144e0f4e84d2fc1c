"""The folder and the port of a demo: one demo at a time, and none is removed by another."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import sys
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from django.conf import settings
from django.db import Error as AnyDatabaseError

from analysis.models import Report
from experiments.errors import StudyError
from experiments.models import Study
from experiments.terminal import Terminal

ROWS = "legible.sqlite3"


class DemoFailed(StudyError):
    """The demo cannot go on; the message says why and what to do."""


def check_port(port: int) -> None:
    """Refuses a port that is taken before any work is done: another demo's server would answer in our
    place."""
    if not 1 <= port <= 65535:
        raise DemoFailed(f"--port {port}: give a number from 1 to 65535.")
    with socket.socket() as probe:
        # As the server binds: a port that was just released is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            why = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be used ({error.strerror})"
            raise DemoFailed(f"Port {port} {why}; try --port {port + 1}.") from None


def hold(folder: Path) -> None:
    """Keeps other demos of this checkout away for as long as this process lives, also after it has started
    itself again. Raises DemoFailed if another holds the folder."""
    path = folder.with_name(f"{folder.name}.lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        there = os.read(file, 20).decode(errors="replace")
        os.close(file)
        raise DemoFailed(
            f"A demo of this checkout runs already (process {there or 'unknown'}). Stop it with Ctrl-C first."
        ) from None
    os.ftruncate(file, 0)
    os.write(file, str(os.getpid()).encode())
    os.set_inheritable(file, True)


def put_aside(folder: Path) -> Path | None:
    """Moves what an earlier demo left to the first free neighbour; None if there is nothing."""
    if not folder.is_dir() or not any(folder.iterdir()):
        return None
    free = (folder.with_name(f"{folder.name}-{n}") for n in count(1))
    aside = next(path for path in free if not path.exists())
    folder.rename(aside)
    return aside


def wants_last(folder: Path) -> bool:
    """Asks a person at a terminal whether to look at the demo that is there; False if there is none, or no
    one to ask."""
    rows = folder / ROWS
    if not rows.exists() or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    made = datetime.fromtimestamp(rows.stat().st_mtime, UTC)
    print(f"There is a demo of {made:%Y-%m-%d %H:%M} UTC in {folder}.")
    try:
        typed = input("Enter: look at it again.  n, Enter: make a new one (this one is kept). ")
    except EOFError:  # Ctrl-D
        raise DemoFailed("No demo was chosen, so nothing was done.") from None
    return typed.strip() == ""


def last_study(terminal: Terminal) -> Study:
    """The study that the last demo ended with. Raises DemoFailed if it never came to a report."""
    try:
        report = Report.objects.filter(origin="simulated").select_related("study").order_by("-pk").first()
    except AnyDatabaseError as error:
        raise DemoFailed(f"{settings.VAR_DIR} holds no demo. Make one: make demo") from error
    if report is None:
        raise DemoFailed("The last demo ended before its report. Make a new one: make demo")
    terminal.line(report.opening)
    return report.study
