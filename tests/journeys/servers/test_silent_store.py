"""A store that accepts connections and never answers: pictures fail soon, and people's answers are stored."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

import pytest

from crowd import gunicorn
from experiments.models import Response, Study
from stimuli.store.media_access import READERS_MAX
from tests import services
from tests.over_http import browser_at
from tests.services import WebServer
from tests.world import Person, opened_study, write_study

pytestmark = pytest.mark.django_db(transaction=True)

PICTURES = 50
PATIENCE_S = 10.0
"""A client's; a picture that the store does not hand over is to fail within 7 s."""


@pytest.fixture
def study(server_env: dict[str, str], tmp_path: Path) -> Study:
    return opened_study(write_study(tmp_path / "study"))


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a server that accepts and never answers."""
    held: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0), backlog=PICTURES) as server:

        def accept() -> None:
            while True:
                try:
                    held.append(server.accept()[0])
                except OSError:
                    return

        Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
    for connection in held:
        connection.close()


@pytest.fixture
def server(server_env: dict[str, str], study: Study, silent: str) -> Iterator[WebServer]:
    """One process of four threads, whose pictures lie in the silent store."""
    amazon = {"AWS_ACCESS_KEY_ID": "someone", "AWS_SECRET_ACCESS_KEY": "something"}
    store = {"STORAGE_URL": f"s3://bucket/stimuli?endpoint={silent}"}
    with services.web_server({**server_env, **amazon, **store}) as started:
        yield started


def pictures_of(person: Person) -> list[str]:
    """Fifty requests for the pictures of a block, some of them more than once."""
    contents = [trial["content"] for trial in person.state["block"]["trials"]]
    addresses = [content["image"]["url"] for content in contents if content.get("image")]
    return [addresses[number % len(addresses)] for number in range(PICTURES)]


def ask(stack: ExitStack, server: WebServer, path: str) -> socket.socket:
    """A request that is sent and whose answer is not waited for."""
    address = urlsplit(server.url)
    connection = socket.create_connection((str(address.hostname), int(address.port or 80)), PATIENCE_S)
    stack.callback(connection.close)
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    return connection


def head_of_answer(connection: socket.socket) -> str:
    """The connection's own patience ends the waiting."""
    received = b""
    while b"\r\n\r\n" not in received and (part := connection.recv(4096)):
        received += part
    return received.decode()


def test_it_stores_answers_while_fifty_pictures_wait_for_a_silent_store(server: WebServer) -> None:
    ada = Person("ada", client=browser_at(server.url))
    ada.arrive()
    with ExitStack() as stack:
        asked = [ask(stack, server, path) for path in pictures_of(ada)]
        ada.answer(12)
        assert Response.objects.filter(session=ada.session()).count() == 12
        for connection in asked:
            head = head_of_answer(connection)
            assert head.startswith("HTTP/1.1 503 ") and "Retry-After: 2\r\n" in head, head


def test_it_leaves_half_of_the_threads_to_answers() -> None:
    assert gunicorn.threads // 2 == READERS_MAX
