"""A deterministic stand-in for a model: an HTTP server on this machine that speaks chat completions. It knows
what its messages hold and nothing else; what it answers is a test's, never a result on people."""

from __future__ import annotations

import base64
import json
import re
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from experiments.kinds.base import Choice
from experiments.simulation.reading import asked_choice

Given = str | tuple[int, Mapping[str, str]]
"""The text of a reply, or a status with headers."""
LISTED = re.compile(r'^"([^"]+)"(?:: (.*))?$', re.MULTILINE)
KEY = re.compile(r"^(.*?)(?: \(key (.)\))?$")


@dataclass(frozen=True)
class Asked:
    """One request as it arrived: its messages, the pictures of the last question, what it asks."""

    body: Mapping[str, Any]
    headers: Mapping[str, str]

    @property
    def parts(self) -> list[Mapping[str, Any]]:
        return list(next(m["content"] for m in self.body["messages"] if m["role"] == "user"))

    @property
    def text(self) -> str:
        return "\n".join(part["text"] for part in self.parts if part["type"] == "text")

    @property
    def pictures(self) -> list[bytes]:
        urls = [part["image_url"]["url"] for part in self.parts if part["type"] == "image_url"]
        return [base64.b64decode(url.removeprefix("data:image/png;base64,")) for url in urls]

    @property
    def answers(self) -> list[tuple[str, str]]:
        return [(value, text) for value, text in LISTED.findall(self.text.split("Answers:\n")[-1])]


def usual(asked: Asked) -> str:
    """Does what a page asks for; else an answer by the bytes of the pictures, in any order that is listed."""
    question = asked.text.split("Answers:\n")[0]
    buttons = [(value, *KEY.fullmatch(text).groups()) for value, text in asked.answers]  # type: ignore[union-attr]
    ordered = asked_choice(question, [Choice(v, t, k) for v, t, k in buttons if k])
    if ordered is not None:
        return saying(ordered.value)
    values = sorted(value for value, _ in asked.answers)
    return saying(values[zlib.crc32(b"".join(asked.pictures)) % len(values)])


def saying(value: object) -> str:
    return f"Here it is:\n```json\n{json.dumps({'answer': value})}\n```"


@dataclass
class StandIn:
    """Everything that came is in `asked`, in its order."""

    url: str = ""
    answer: Callable[[Asked], Given] = usual
    asked: list[Asked] = field(default_factory=list)


@contextmanager
def stand_in() -> Iterator[StandIn]:
    made = StandIn()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked = Asked(body, dict(self.headers))
            made.asked.append(asked)
            assert self.path == "/v1/chat/completions"
            given = made.answer(asked)
            status, headers = (200, {}) if isinstance(given, str) else given
            reply = {"choices": [{"message": {"role": "assistant", "content": given}}]}
            wrong = {"error": {"message": "slow down"}}
            content = json.dumps(reply if status == 200 else wrong).encode()
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """A test prints nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    made.url = f"http://127.0.0.1:{server.server_port}/v1"
    try:
        yield made
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
