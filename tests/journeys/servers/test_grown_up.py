"""The processes of docker-compose.yml, started by the same commands against the run's own servers."""

import os
import re
import signal
import socket
import sys
import urllib.request
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from urllib.parse import urlsplit

import pytest
from celery import Celery
from django.contrib.auth.models import User
from django.db import connection

from tests import services
from tests.run.guard import Plan, Service
from tests.services import WebServer


@pytest.mark.both_databases("which it is")
@pytest.mark.django_db
def test_it_uses_the_database_that_was_asked_for(pytestconfig: pytest.Config) -> None:
    assert connection.vendor == pytestconfig.getoption("--database")
    assert User.objects.create_user("ada").pk


@pytest.mark.both_databases("which it is")
@pytest.mark.django_db(transaction=True)
def test_it_keeps_rows_as_a_deployment_does_but_for_the_syncing() -> None:
    """SQLite in a file with a write-ahead log, where threads meet real locks; PostgreSQL without fsync."""
    question, answer = {
        "sqlite": ("PRAGMA journal_mode", "wal"),
        "postgresql": ("SHOW fsync", "off"),
    }[connection.vendor]
    with connection.cursor() as cursor:
        cursor.execute(question)
        assert cursor.fetchone() == (answer,)


def test_it_serves_by_the_production_server(served: WebServer) -> None:
    with urllib.request.urlopen(f"{served.url}/api/schema/?secret=person", timeout=60) as answer:
        assert answer.status == 200
    served.service.wait_until(lambda: '"GET /api/schema/" 200' in served.service.log())
    assert "secret" not in served.service.log()


def test_it_loses_a_worker_at_once(
    celery_worker: Callable[[], AbstractContextManager[Service]], redis_url: str
) -> None:
    control = Celery(broker=redis_url, set_as_current=False).control
    with celery_worker() as worker:
        assert len(control.ping(timeout=10.0, limit=1)) == 1
        worker.kill()
        assert not worker.is_running()


def test_it_starts_the_clock(project_env: dict[str, str], redis_url: str) -> None:
    with services.celery_beat({**project_env, "CELERY_BROKER_URL": redis_url}) as beat:
        assert beat.is_running()


def test_it_leaves_no_process_behind_a_server_that_was_killed(project_env: dict[str, str]) -> None:
    """A shell outlives the server, so that the end of the run's own guard does not come first."""
    command = [
        "sh",
        "-c",
        '"$@"; sleep 600',
        "sh",
        sys.executable,
        "-m",
        *services.WEB,
        "--bind",
        "127.0.0.1:0",
    ]
    env = {**os.environ, **project_env}
    shell = Service(Plan(folder=services.new_folder("web"), command=command, env=env, cwd=str(services.ROOT)))
    try:
        shell.wait_until(lambda: services.listening_url(shell) is not None)
        address = urlsplit(str(services.listening_url(shell)))
        shell.wait_until(lambda: services.is_answering(f"{address.geturl()}/healthz", shell))
        first = re.search(r"\[(\d+)\] \[INFO\] Listening at", shell.log())
        assert first is not None
        with socket.create_connection((str(address.hostname), int(address.port or 80)), timeout=5) as held:
            held.sendall(b"POST /api/sessions/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n"
                         b"Content-Type: application/json\r\nExpect: 100-continue\r\n\r\n")  # fmt: skip
            assert held.recv(100).startswith(b"HTTP/1.1 100")
            os.kill(int(first[1]), signal.SIGKILL)
            with suppress(ConnectionResetError):
                assert held.recv(1) == b""
    finally:
        shell.stop()
