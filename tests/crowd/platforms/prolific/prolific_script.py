"""A Prolific that answers from a script: for answers that a correct simulator never gives."""

import json
import socket
from collections.abc import Callable
from typing import Any

from crowd.platforms.prolific.wire import ProlificWire
from crowd.rehearsal.serving import Answer, IncomingRequest

TOKEN = "token-that-must-not-be-seen"
Line = Answer | None | Callable[[IncomingRequest], Answer | None]


class Script:
    """The lines in order, then the last one again. None closes the connection without an answer."""

    def __init__(self, *lines: Line) -> None:
        self.lines = lines
        self.asked: list[IncomingRequest] = []

    def __call__(self, asked: IncomingRequest) -> Answer | None:
        self.asked.append(asked)
        line = self.lines[min(len(self.asked), len(self.lines)) - 1]
        return line(asked) if callable(line) else line

    @property
    def calls(self) -> list[str]:
        return [f"{asked.method} {asked.path}" for asked in self.asked]


def said(data: Any, status: int = 200, **headers: str) -> Answer:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, json.dumps(data).encode(), {"Content-Type": "application/json", **names})


def wired(url: str, waits: list[float] | None = None, clock: Callable[[], float] = float) -> ProlificWire:
    """A connection that never waits, but notes for how long it would; its clock stands still."""
    noted = [] if waits is None else waits
    return ProlificWire(url, TOKEN, noted.append, clock, trust_env=False)


def closed_address() -> str:
    """An address at which no server listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"
