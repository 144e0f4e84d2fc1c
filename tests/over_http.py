"""A person's browser over real HTTP, for the people of tests/world.py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx


@dataclass(frozen=True, slots=True)
class Browser:
    """Speaks as Django's test client does. `patience_s` is how long it waits for an answer."""

    http: httpx.Client

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.http.get(path, **more)

    def post(
        self, path: str, data: str | bytes, *, content_type: str, headers: dict[str, str]
    ) -> httpx.Response:
        return self.http.post(path, content=data, headers={**headers, "Content-Type": content_type})


def browser_at(url: str, *, comes_from: str = "127.0.0.1", patience_s: float = 5.0) -> Any:
    """A browser at the server with this address, on one of this machine's own addresses."""
    transport = httpx.HTTPTransport(local_address=comes_from)
    return Browser(httpx.Client(base_url=url, transport=transport, timeout=patience_s))
