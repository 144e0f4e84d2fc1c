"""The one module that sends something to a model: chat completions with pictures, in OpenAI's protocol.

The key is sent in one header and kept nowhere. Redirections are not followed: nothing goes to an address that
was not printed.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

import httpx

TRIES = 4
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0
TIMEOUT_S = 120.0
AGAIN = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
"""Replies after which the same request may be sent once more."""
HERE = frozenset({"localhost", "127.0.0.1", "::1"})

Part = str | bytes
"""A text, or a picture as PNG."""


class Unreachable(Exception):
    """The address did not answer, or refused: no question of the study is answered, and later it may be."""


class BadAddress(ValueError):
    """The address of a model cannot be used as it was given."""


@dataclass(frozen=True, slots=True)
class Message:
    """`role` is system, user or assistant."""

    role: str
    parts: tuple[Part, ...]

    def as_json(self) -> dict[str, Any]:
        if self.role != "user":
            return {"role": self.role, "content": "\n".join(str(part) for part in self.parts)}
        return {"role": self.role, "content": [_part(part) for part in self.parts]}


def _part(part: Part) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    url = f"data:image/png;base64,{base64.b64encode(part).decode()}"
    return {"type": "image_url", "image_url": {"url": url}}


@dataclass(slots=True)
class RequestTotals:
    """What left so far, every try counted: requests, pictures with their bytes as PNG, characters of text."""

    requests: int = 0
    pictures: int = 0
    picture_bytes: int = 0
    characters: int = 0

    def count(self, messages: Sequence[Message]) -> None:
        self.requests += 1
        for part in (part for message in messages for part in message.parts):
            if isinstance(part, bytes):
                self.pictures += 1
                self.picture_bytes += len(part)
            else:
                self.characters += len(part)

    def sentence(self) -> str:
        return (
            f"{self.requests:,} requests with {self.pictures:,} pictures ({self.picture_bytes:,} bytes as "
            f"PNG) and {self.characters:,} characters of text"
        )


def checked_address(address: str, *, has_key: bool) -> str:
    """The address without a slash at its end. Raises BadAddress in one sentence."""
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadAddress(f"{address!r} is no address: give one as https://host/v1.")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise BadAddress("The address holds more than a host and a path: a key belongs into MODEL_KEY alone.")
    if has_key and parts.scheme == "http" and parts.hostname not in HERE:
        raise BadAddress(f"The key would go to {parts.hostname} unencrypted: use https, or empty MODEL_KEY.")
    return address.rstrip("/")


def host_of(address: str) -> str:
    """Host and port of an address: what is stored of it."""
    return urlsplit(address).netloc


def is_here(address: str) -> bool:
    """Whether the address is this machine's own, so that nothing leaves it."""
    return urlsplit(address).hostname in HERE


@dataclass(slots=True)
class Chat:
    """One model at one address. `sleep` waits between tries."""

    address: str
    model: str
    key: str = field(default="", repr=False)
    timeout_s: float = TIMEOUT_S
    temperature: float | None = None
    sleep: Callable[[float], None] = time.sleep
    sent: RequestTotals = field(default_factory=RequestTotals, init=False)
    _counting: Lock = field(default_factory=Lock, init=False, repr=False)

    def say(self, messages: Sequence[Message]) -> str:
        """The text of the reply; empty if the model gave none. Raises Unreachable after TRIES."""
        body: dict[str, Any] = {"model": self.model, "messages": [m.as_json() for m in messages]}
        if self.temperature is not None:
            body["temperature"] = self.temperature
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        pause_s = FIRST_PAUSE_S
        for left in reversed(range(TRIES)):
            with self._counting:
                self.sent.count(messages)
            asked_s = 0.0
            try:
                url = f"{self.address}/chat/completions"
                reply = httpx.post(url, json=body, headers=headers, timeout=self.timeout_s)
            except httpx.HTTPError as error:
                why = f"it does not answer ({type(error).__name__})"
            else:
                if reply.is_success:
                    return _text_of(reply)
                why = f"it answers {reply.status_code}: {_refusal_text(reply)}"
                if reply.status_code not in AGAIN:
                    break
                asked_s = _asked_pause_s(reply)
            if left:
                self.sleep(min(max(pause_s, asked_s), LONGEST_PAUSE_S))
                pause_s *= 2
        raise Unreachable(f"{host_of(self.address)}: {why}")


def _text_of(reply: httpx.Response) -> str:
    """What the model says. Raises Unreachable for a body of another protocol, which no further try mends."""
    try:
        message = reply.json()["choices"][0]["message"]
        content = message.get("content") or message.get("refusal") or ""
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise Unreachable(
            f"{reply.url.host} does not answer as chat completions do: give the address that ends in /v1."
        ) from error
    if isinstance(content, list):
        content = "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content)


def _refusal_text(reply: httpx.Response) -> str:
    """What the address says of the refusal, shortened; it never holds our key, which is in no body."""
    try:
        error = reply.json()["error"]
        return str(error["message"] if isinstance(error, dict) else error)[:200]
    except (ValueError, LookupError, TypeError):
        return reply.text[:200] or "no reason"


def _asked_pause_s(reply: httpx.Response) -> float:
    try:
        return float(reply.headers.get("Retry-After", "0"))
    except ValueError:
        return 0.0
