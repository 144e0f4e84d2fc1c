"""A server that answers from a script, over real HTTP: for failures that no simulator shows on demand."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from crowd.platforms.base import Account, Site
from crowd.platforms.mturk.wire import TurkWire
from crowd.rehearsal.serving import Answer, IncomingRequest, serving

Play = Callable[[dict[str, Any]], Answer | None] | Answer | None
JSON = {"Content-Type": "application/x-amz-json-1.1"}


def reply(**members: Any) -> Answer:
    return Answer(200, json.dumps(members).encode(), JSON)


def refusal(code: str, message: str = "No.", status: int = 400) -> Answer:
    body = {"__type": "RequestError", "Message": message, "TurkErrorCode": f"AWS.MechanicalTurk.{code}"}
    return Answer(status, json.dumps(body).encode(), JSON)


def bare(kind: str, message: str = "No.", status: int = 400) -> Answer:
    """An error that the service model does not describe."""
    return Answer(status, json.dumps({"__type": kind, "message": message}).encode(), JSON)


FAULT = Answer(500, json.dumps({"__type": "ServiceFault", "Message": "Oh."}).encode(), JSON)
LOST = None


@dataclass
class Script:
    """The answers to come, and the requests that came. The last answer is repeated for ever."""

    plays: list[Play]
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    waited_s: list[float] = field(default_factory=list)
    url: str = ""

    def __call__(self, asked: IncomingRequest) -> Answer | None:
        members = json.loads(asked.body or b"{}")
        self.asked.append((asked.headers["x-amz-target"].partition(".")[2], members))
        play = self.plays.pop(0) if len(self.plays) > 1 else self.plays[0]
        return play(members) if callable(play) else play

    @property
    def wire(self) -> TurkWire:
        return TurkWire(account(self.url), self.waited_s.append, float)


def account(url: str, queue_url: str = "") -> Account:
    return Account(Site("rehearsal", url), key_id="rehearsal", secret="rehearsal", queue_url=queue_url)


@contextmanager
def script(*plays: Play) -> Iterator[Script]:
    server = Script(list(plays))
    with serving(server) as url:
        server.url = url
        yield server
