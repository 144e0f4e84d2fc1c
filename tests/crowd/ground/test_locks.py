"""One settle at a time: over connections, processes, and kill -9."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from django.db import connection

from crowd.ground.process_locks import Busy, LockLost, exclusive

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases("locks")]
ROOT = Path(__file__).resolve().parents[3]
HOLDS = """
import django, sys, time
django.setup()
from crowd.ground.process_locks import exclusive
with exclusive(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.readline()
"""


def test_it_refuses_a_second_holder_with_its_sentence() -> None:
    with exclusive("here"):
        with pytest.raises(Busy, match="Another settle"), exclusive("here", "Another settle is running."):
            pass
        with exclusive("elsewhere"):
            pass
    with exclusive("here"):
        pass


def test_it_lets_go_when_the_work_fails() -> None:
    with pytest.raises(ZeroDivisionError), exclusive("here"):
        raise ZeroDivisionError
    with exclusive("here") as held:
        held.check()


def test_it_holds_against_another_thread() -> None:
    refused = threading.Event()

    def rival() -> None:
        try:
            with exclusive("here"):
                pass
        except Busy:
            refused.set()
        finally:
            connection.close()

    with exclusive("here"):
        thread = threading.Thread(target=rival)
        thread.start()
        thread.join(20)
    assert refused.is_set()


def test_it_is_free_again_once_its_process_was_killed() -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDS, "killed"],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": database_url()},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    try:
        assert holder.stdout.readline().strip() == "held"
        with pytest.raises(Busy), exclusive("killed"):
            pass
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        holder.stdout.close()
        assert holder.stdin is not None
        holder.stdin.close()
    assert comes_free("killed")


def comes_free(name: str) -> bool:
    """A database notices a dead connection at once, but in a process of its own."""
    gone = threading.Event()
    for _ in range(200):
        try:
            with exclusive(name):
                return True
        except Busy:
            gone.wait(0.05)
    return False


def database_url() -> str:
    """The database of this test, for another process."""
    database = connection.settings_dict
    if connection.vendor == "postgresql":
        place = f"{database['HOST']}:{database['PORT']}/{database['NAME']}"
        return f"postgresql://{database['USER']}:{database['PASSWORD']}@{place}"
    return f"sqlite:///{database['NAME']}"


def test_it_notices_that_the_database_has_let_go() -> None:
    with exclusive("here") as held:
        if held.session is None:
            held.check()  # a file's lock is never lost
            return
        with held.session.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            process = cursor.fetchone()[0]
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s)", [process])
        with pytest.raises(LockLost):
            held.check()
