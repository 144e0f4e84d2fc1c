"""Slow and many connections at the shipped proxy: other people go on. The address of the attack is one."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

import httpx
import pytest

from experiments.models import Response, Study
from tests import services
from tests.over_http import browser_at
from tests.run.proxy import proxy_before
from tests.services import WebServer
from tests.world import Person, opened_study, write_study

pytestmark = pytest.mark.django_db(transaction=True)

STALLED = 100
CONNECTIONS_MAX = 300
"""`limit_conn` of the shipped file."""
HEAD = b"POST /api/sessions/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
OTHER = "127.0.0.2"
"""Another address of this machine."""


@pytest.fixture
def study(server_env: dict[str, str], tmp_path: Path) -> Study:
    return opened_study(write_study(tmp_path / "study"))


@pytest.fixture
def web(server_env: dict[str, str], study: Study) -> Iterator[WebServer]:
    """Two processes of four threads, as the documentation starts them."""
    with services.web_server(server_env, workers=2) as started:
        yield started


@pytest.fixture
def proxy(web: WebServer) -> Iterator[WebServer]:
    with proxy_before(web.url) as started:
        yield started


def held(stack: ExitStack, server: WebServer, sent: bytes) -> socket.socket:
    """A connection that sends so much and no more."""
    address = urlsplit(server.url)
    connection = socket.create_connection((str(address.hostname), int(address.port or 80)), timeout=5)
    stack.callback(connection.close)
    connection.sendall(sent)
    return connection


def stall(stack: ExitStack, server: WebServer) -> None:
    for _ in range(STALLED):
        held(stack, server, HEAD + b'Content-Length: 1000\r\n\r\n{"st')
        held(stack, server, HEAD)


@pytest.mark.parametrize("comes_from", ["127.0.0.1", OTHER])
def test_it_serves_people_beside_a_hundred_stalled_bodies_and_half_heads(
    proxy: WebServer, comes_from: str
) -> None:
    ada = Person("ada", client=browser_at(proxy.url, comes_from=comes_from))
    with ExitStack() as stack:
        stall(stack, proxy)
        assert ada.client.get("/healthz").status_code == 200
        ada.arrive()
        ada.answer(3)
    assert Response.objects.filter(session=ada.session()).count() == 3


def test_without_the_proxy_the_same_connections_stop_everything(web: WebServer) -> None:
    """What the proxy is for: each of the eight threads waits for a body."""
    with ExitStack() as stack:
        stall(stack, web)
        with pytest.raises(httpx.TimeoutException):
            browser_at(web.url, patience_s=2).get("/healthz")


def test_it_limits_the_requests_of_one_address_and_of_no_other(proxy: WebServer) -> None:
    asking = HEAD + b"Content-Length: 1000\r\nExpect: 100-continue\r\n\r\n"
    with ExitStack() as stack:
        opened = [held(stack, proxy, asking) for _ in range(CONNECTIONS_MAX)]
        assert {connection.recv(12) for connection in opened} == {b"HTTP/1.1 100"}
        refused = browser_at(proxy.url).get("/healthz")
        assert refused.status_code == 429 and refused.headers["Retry-After"] == "5"
        assert browser_at(proxy.url, comes_from=OTHER).get("/healthz").status_code == 200
        # A proxy that ends TLS on this machine tells whose request it is.
        told = {"X-Forwarded-For": "198.51.100.7, 203.0.113.9"}
        assert browser_at(proxy.url).get("/healthz", headers=told).status_code == 200


class Echo(BaseHTTPRequestHandler):
    """Answers with the request's headers, as the web processes would see them."""

    def do_GET(self) -> None:
        body = json.dumps(list(self.headers.items())).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is logged."""


@pytest.fixture(scope="module")
def echo() -> Iterator[WebServer]:
    """The proxy before a server that tells what reaches it."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        with proxy_before(f"http://127.0.0.1:{server.server_port}") as started:
            yield started
    finally:
        server.shutdown()
        server.server_close()


def passed_on(echo: WebServer, **headers: str) -> dict[str, str]:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    reply = browser_at(echo.url).get("/anything", headers={**sent, "SCRIPT_NAME": "/x"})
    return {name.lower(): value for name, value in reply.json()}


def test_it_sets_the_headers_that_the_web_processes_believe(echo: WebServer) -> None:
    plain = passed_on(echo)
    assert (plain["x-forwarded-for"], plain["x-forwarded-proto"]) == ("127.0.0.1", "http")
    told = passed_on(
        echo,
        X_Forwarded_For="198.51.100.7, 203.0.113.9",
        X_Forwarded_Proto="https",
        X_Forwarded_Host="evil.example",
        Forwarded="for=198.51.100.7",
    )
    assert (told["x-forwarded-for"], told["x-forwarded-proto"]) == ("203.0.113.9", "https")
    assert not {"x-forwarded-host", "forwarded", "script_name", "script-name"} & set(told)
    assert passed_on(echo, X_Forwarded_For="<b>", X_Forwarded_Proto="gopher") == plain


def test_it_passes_the_query_on_and_logs_neither_it_nor_a_login_link(echo: WebServer) -> None:
    browser = browser_at(echo.url)
    assert browser.get("/join/small/?PROLIFIC_PID=5f0c2").status_code == 200
    assert browser.get("/enter/a-secret-of-one-use/").status_code == 200
    echo.service.wait_until(lambda: '"GET /enter/" 200' in echo.service.log())
    log = echo.service.log()
    assert '"GET /join/small/" 200' in log and "5f0c2" not in log and "a-secret" not in log


def test_it_refuses_a_body_that_no_page_sends(echo: WebServer) -> None:
    with ExitStack() as stack:
        connection = held(stack, echo, HEAD + b"Content-Length: 1048577\r\n\r\n")
        assert connection.recv(12) == b"HTTP/1.1 413"
