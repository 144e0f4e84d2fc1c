"""One small threaded HTTP server for all simulators: a simulator is a function from request to reply."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

BODY_MAX = 2_097_152
PIECES_MAX = 500
"""A slow body leaves in at most so many pieces."""
POLL_S = 0.02
"""How often a server checks whether its block has ended."""


@dataclass(frozen=True, slots=True)
class IncomingRequest:
    """One request. `path` without the query; header names in lower case."""

    method: str
    path: str
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """One reply; None in its place closes the connection without an answer. With a `pause` the body leaves in
    pieces, and `pause(pieces)` is called before each of them."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    pause: Callable[[int], object] | None = None


App = Callable[[IncomingRequest], Answer | None]


@dataclass(frozen=True, slots=True)
class Call:
    """One call in the simulator's log: the request, its fault, and whether it changed anything."""

    operation: str
    method: str
    path: str
    status: int
    fault: str = ""
    effect: bool = False


class CallLog:
    """What all simulators have: a log of API calls. `before_reply` hooks run after the effect of a call and
    before its answer leaves."""

    def __init__(self) -> None:
        self.log: list[Call] = []
        self.before_reply: list[Callable[[Call], None]] = []

    @property
    def calls_count(self) -> int:
        return len(self.log)


def as_json(data: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """None as `data` is an empty body."""
    body = b"" if data is None else json.dumps(data, default=number).encode()
    return Answer(status, body, {"Content-Type": "application/json", **(headers or {})})


def number(amount: Decimal) -> int | float:
    """An amount as it travels."""
    return int(amount) if amount == int(amount) else float(amount)


def with_query(url: str, **added: str) -> str:
    """The address with more parameters in its query."""
    parts = urlsplit(url)
    query = "&".join(part for part in (parts.query, urlencode(added)) if part)
    return parts._replace(query=query).geturl()


def _handler(app: App) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Head and body leave together: else each answer waits for the other side's delayed acknowledgement.
        disable_nagle_algorithm = True
        wbufsize = -1

        def _serve(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            parts = urlsplit(self.path)
            request = IncomingRequest(
                method=self.command,
                path=parts.path,
                query=parse_qs(parts.query, keep_blank_values=True),
                headers={name.lower(): value for name, value in self.headers.items()},
                body=self.rfile.read(min(length, BODY_MAX)),
            )
            answer = app(request)
            if answer is None:
                self.close_connection = True
                return
            # The standard server adds its own date, unless only the status is sent.
            (self.send_response_only if "Date" in answer.headers else self.send_response)(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            if self.command != "HEAD":
                self._write(answer)

        def _write(self, answer: Answer) -> None:
            if answer.pause is None:
                self.wfile.write(answer.body)
                return
            self.wfile.flush()
            size = -(-len(answer.body) // PIECES_MAX)
            starts = range(0, len(answer.body), size or 1)
            for start in starts:
                answer.pause(len(starts))
                self.wfile.write(answer.body[start : start + size])
                self.wfile.flush()

        do_GET = do_POST = do_PATCH = do_DELETE = do_PUT = do_HEAD = _serve

        def log_message(self, format: str, *args: object) -> None:
            """Silent: the caller that starts a simulator prints what matters."""

    return Handler


class _Server(ThreadingHTTPServer):
    """Takes a burst of arrivals without turning any away."""

    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that was killed during a call is not reported; every other error is."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def serving(app: App, port: int = 0, host: str = "127.0.0.1") -> Iterator[str]:
    """Serves until the block ends; yields the address, http://127.0.0.1:PORT. Port 0 takes a free one."""
    server = _Server((host, port), _handler(app))
    thread = threading.Thread(target=server.serve_forever, args=(POLL_S,), name="simulator", daemon=True)
    thread.start()
    try:
        yield f"http://{host}:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
