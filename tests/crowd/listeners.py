"""A webhook's other end: what was posted to it, over real HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Listener:
    """`status` is what it answers; only what it answered with 200 counts as heard."""

    url: str = ""
    status: int = 200
    heard: list[dict[str, Any]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    signatures: list[str | None] = field(default_factory=list)

    def said(self, word: str) -> list[dict[str, Any]]:
        return [letter for letter in self.heard if word in letter["said"]]


@contextmanager
def listening() -> Iterator[Listener]:
    listener = Listener()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if listener.status == 200:
                listener.bodies.append(body)
                listener.signatures.append(self.headers["X-Legible-Signature"])
                listener.heard.append(json.loads(body))
            self.send_response(listener.status)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        listener.url = f"http://127.0.0.1:{server.server_port}/a-key-in-the-path"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield listener
        finally:
            server.shutdown()
