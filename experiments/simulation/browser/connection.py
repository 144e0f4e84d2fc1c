"""The connection of one simulated person to the server: JSON out and in, sent again when a connection
fails."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import httpx

from experiments.simulation.browser.api_messages import ExitWire

TRIES = 6
FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 5.0
TOO_MANY = 429
AGAIN = frozenset({TOO_MANY, 500, 502, 503, 504})
"""Replies after which the same request is sent once more; every request of the API may be sent twice."""
TIMEOUT_S = 60.0
PATIENCE_S = 300.0
"""How long one request waits in all if a server says when it may be sent again; such a wait is no try."""


class ServerRefusal(Exception):
    """The server said no: the HTTP status, the wire's code and message, and the way back if it gave one."""

    def __init__(self, status: int, code: str, message: str, exit: ExitWire | None = None) -> None:
        super().__init__(f"{status} {code}: {message}")
        self.status = status
        self.code = code
        self.exit = exit


def open_pool(base_url: str, concurrency: int) -> httpx.Client:
    """Connections for so many people at once, kept alive between requests."""
    return httpx.Client(
        base_url=base_url,
        timeout=TIMEOUT_S,
        limits=httpx.Limits(max_connections=concurrency, max_keepalive_connections=concurrency),
        transport=httpx.HTTPTransport(
            retries=3, limits=httpx.Limits(max_connections=concurrency, max_keepalive_connections=concurrency)
        ),
        # Simulated people come without the proxy that would end TLS and say so.
        headers={"User-Agent": "legible-simulation", "X-Forwarded-Proto": "https"},
    )


@dataclass(slots=True)
class Line:
    """Requests of one person over a shared pool. `token` is set after joining; `requests_count` counts every
    sending."""

    pool: httpx.Client
    token: str = ""
    requests_count: int = field(default=0, init=False)

    def get(self, path: str) -> Any:
        return self._send("GET", path, None).json()

    def post(self, path: str, body: dict[str, Any]) -> Any:
        return self._send("POST", path, body).json()

    def fetch(self, url: str) -> bytes:
        """A picture. Its address is all the permission it needs: the token stays out of it."""
        return self._send("GET", url, None, with_token=False).content

    def _send(
        self, method: str, url: str, body: dict[str, Any] | None, with_token: bool = True
    ) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.token}"} if self.token and with_token else {}
        pause_s, tries_left, patience_s = FIRST_PAUSE_S, TRIES, PATIENCE_S
        while True:
            self.requests_count += 1
            try:
                reply = self.pool.request(method, url, json=body, headers=headers)
            except httpx.TransportError:
                if tries_left == 1:
                    raise
            else:
                asked_s = _asked_pause_s(reply)
                if reply.status_code == TOO_MANY and 0 < asked_s <= patience_s:
                    patience_s -= asked_s
                    time.sleep(asked_s)
                    continue
                if reply.status_code not in AGAIN or tries_left == 1:
                    return _check_reply(reply)
                pause_s = max(pause_s, asked_s)
            time.sleep(min(pause_s, LONGEST_PAUSE_S))
            pause_s *= 2
            tries_left -= 1


def _asked_pause_s(reply: httpx.Response) -> float:
    try:
        return float(reply.headers.get("Retry-After", "0"))
    except ValueError:
        return 0.0


def _check_reply(reply: httpx.Response) -> httpx.Response:
    if reply.is_success:
        return reply
    try:
        body = reply.json()
        error, way_back = body["error"], body.get("exit")
        code, message = str(error["code"]), str(error["message"])
    except (ValueError, KeyError, TypeError, AttributeError):
        code, message, way_back = "unreadable", reply.text[:200], None
    raise ServerRefusal(reply.status_code, code, message, way_back)
