"""Requests to Prolific and its answers: what may be repeated is repeated, the rest is sent once."""

from __future__ import annotations

import json
import logging
import re
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urljoin, urlsplit

import httpx

from crowd.platforms.base import PlatformError
from crowd.platforms.untrusted_text import printable

ORIGIN = "https://api.prolific.com"
PAUSES_S = (1.0, 2.0, 4.0, 8.0)
PATIENCE_S = 60.0
"""A longer Retry-After is not waited for; the call fails and may be made again later."""
PAGE_SIZE = 100
PAGES_MAX = 1000
CALL_S, LIST_S = 60.0, 600.0
"""The longest time for one call with its repetitions, pauses aside, and for all pages of a list."""
BODY_MAX = 32 * 1024 * 1024
"""The largest answer that is read, in bytes."""
WORDS_MAX = 400
TIMEOUT = httpx.Timeout(30.0, connect=10.0, pool=10.0)
OF_ACCOUNT = (401, 403)
"""Refusals of the token or of its rights."""
IDS = re.compile(r"\b[0-9a-f]{20,}\b")

Wait = Callable[[float], object]
Clock = Callable[[], float]


class ProlificError(PlatformError):
    """A call that failed. `status` is 0 if there was no answer; `more` is that of PlatformError."""

    def __init__(
        self, message: str, *, status: int = 0, retry_after_s: float | None = None, **more: Any
    ) -> None:
        super().__init__(message, of_account=status in OF_ACCOUNT, is_busy=status == 429, **more)
        self.status, self.retry_after_s = status, retry_after_s


@dataclass(frozen=True, slots=True)
class WireReply:
    """An answer in the 200s. `data` is its JSON, numbers exact; None if it is not JSON. `content` is what
    came."""

    status: int
    data: Any
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes = b""


def hide_ids(text: str) -> str:
    """The text without outside ids: it may be printed, stored and logged."""
    return IDS.sub("[id]", text)


class _HideIds(logging.Filter):
    """httpx logs the address of every request, and addresses hold ids."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(hide_ids(str(a)) if isinstance(a, httpx.URL) else a for a in record.args)
        return True


logging.getLogger("httpx").addFilter(_HideIds())


def segment(outside_id: str) -> str:
    """An outside id, quoted as one part of a path."""
    return quote(outside_id, safe="")


class ProlificWire:
    """One account's connection. `wait(seconds)` passes the time between two tries; `clock()` gives seconds of
    a clock that only runs forward, by which a call and a list come to an end: the body of an answer is read
    within `CALL_S`. Its head, at most 100 KiB, ends after a silence of the connection's time-out alone."""

    def __init__(
        self,
        origin: str,
        token: str,
        wait: Wait,
        clock: Clock,
        *,
        timeout: httpx.Timeout = TIMEOUT,
        trust_env: bool = True,
    ) -> None:
        self.origin = (origin or ORIGIN).rstrip("/")
        self.wait, self.clock = wait, clock
        self._client = httpx.Client(
            headers={
                "Authorization": f"Token {token}",
                "Referer": "Legible",
                "User-Agent": "Legible",
                "Accept": "application/json",
                # Read piece by piece, within limits of size and time.
                "Accept-Encoding": "identity",
            },
            timeout=timeout,
            follow_redirects=False,
            trust_env=trust_env,
        )
        weakref.finalize(self, self._client.close)

    def disconnect(self) -> None:
        self._client.close()

    def get(self, path: str, params: Mapping[str, str | int] | None = None) -> Any:
        """The JSON of an answer; repeated if that may help."""
        return self.send("GET", path, params=params, reads=True).data

    def rows(
        self, path: str, params: Mapping[str, str | int] | None = None, *, sized: bool = True
    ) -> Iterator[dict[str, Any]]:
        """Every row of a list, over all pages. `sized` lists take a page number and size. A row that is no
        object is given as an empty one. A list that does not end is a PlatformError."""
        query: dict[str, str | int] | None = dict(params or {})
        if sized:
            query = {**(params or {}), "page": 1, "page_size": PAGE_SIZE}
        first = f"{urlsplit(self._address(path)).path}?{urlencode(query or {})}"
        started, seen = self.clock(), {_page(first)}
        for page in range(1, PAGES_MAX + 1):
            if self.clock() - started > LIST_S:
                raise ProlificError(f"A list of Prolific took over {LIST_S:.0f} seconds. Try again later.")
            try:
                data = self.get(path, query)
            except ProlificError as refused:
                if refused.status == 404 and page > 1:
                    return
                raise
            rows = _results(data)
            yield from rows
            links = data.get("_links") if isinstance(data, Mapping) else None
            if isinstance(links, Mapping):
                href = (links.get("next") or {}).get("href")
                if not href:
                    return
                path, query = self._next_path(path, str(href)), None
                if _page(path) in seen:
                    raise ProlificError("A list of Prolific names a page twice. Try again later.")
                seen.add(_page(path))
            elif sized and len(rows) == PAGE_SIZE:
                query = {**(params or {}), "page": page + 1, "page_size": PAGE_SIZE}
            else:
                return
        raise ProlificError(f"A list of Prolific has more than {PAGES_MAX} pages.", permanent=True)

    def send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        params: Mapping[str, str | int] | None = None,
        safe: bool = False,
        reads: bool = False,
    ) -> WireReply:
        """One call; after a failure that may pass it is repeated only if `safe`, or if it only `reads` and so
        can have no effect. Raises Refused."""
        uncertain, spent_s = False, 0.0
        pauses = [*PAUSES_S] if safe or reads else []
        while True:
            started = self.clock()
            try:
                return self._once(method, path, body, params)
            except ProlificError as refused:
                # An earlier try may have taken effect, also if the last one failed.
                uncertain = uncertain or (refused.uncertain and not reads)
                spent_s += self.clock() - started
                pause = pauses.pop(0) if pauses and spent_s <= CALL_S else None
                asked_s = refused.retry_after_s or 0.0
                if pause is None or refused.permanent or asked_s > PATIENCE_S:
                    refused.uncertain = uncertain
                    raise
                self.wait(max(pause, asked_s))

    def _once(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        params: Mapping[str, str | int] | None,
    ) -> WireReply:
        what, started = hide_ids(f"{method} {urlsplit(path).path}"), self.clock()
        try:
            with self._client.stream(method, self._address(path), params=params, json=body) as response:
                content = self._content(what, method, response, started)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError) as error:
            raise ProlificError(
                f"Prolific could not be reached ({type(error).__name__}); nothing was sent. Try again later."
            ) from error
        except httpx.RequestError as error:
            effect = "Try again later." if method == "GET" else "It may have taken effect."
            raise ProlificError(
                f"Prolific gave no answer to {what} ({type(error).__name__}). {effect}", uncertain=True
            ) from error
        if not response.is_success:
            raise _refusal(what, response, content)
        data = _json(content)
        if data is None and method == "GET":
            raise ProlificError(
                f"Prolific's answer to {what} is not JSON: {_excerpt(content)}", status=response.status_code
            )
        return WireReply(response.status_code, data, response.headers, content)

    def _content(self, what: str, method: str, response: httpx.Response, started: float) -> bytes:
        """The body, read within a time and a size: a time-out of the connection begins anew with every byte
        that comes."""
        content = bytearray()
        effect = "" if method == "GET" else " It may have taken effect."
        for piece in response.iter_bytes():
            content += piece
            if self.clock() - started > CALL_S:
                raise ProlificError(
                    f"Prolific's answer to {what} did not end within {CALL_S:.0f} seconds.{effect}",
                    uncertain=True,
                )
            if len(content) > BODY_MAX:
                raise ProlificError(
                    f"Prolific's answer to {what} is larger than {BODY_MAX:,} bytes.{effect}",
                    permanent=True,
                    uncertain=True,
                )
        return bytes(content)

    def _address(self, path: str) -> str:
        return f"{self.origin}{path}" if path.startswith("/") else f"{self.origin}/api/v1/{path}"

    def _next_path(self, path: str, href: str) -> str:
        """The path of the next page; the token never goes to another host."""
        target = urlsplit(urljoin(self._address(path), href))
        if target.hostname != urlsplit(self.origin).hostname:
            raise ProlificError(
                "Prolific's list goes on at a foreign address; it is not followed.", permanent=True
            )
        return f"{target.path}?{target.query}"


def _page(path: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The address of a page, however its query is ordered."""
    parts = urlsplit(path)
    return parts.path, tuple(sorted(parse_qsl(parts.query)))


def _results(data: Any) -> list[dict[str, Any]]:
    results = data.get("results") if isinstance(data, Mapping) else data
    if not isinstance(results, list) or (results and not any(isinstance(row, dict) for row in results)):
        raise ProlificError("Prolific's answer holds no list of results.", permanent=True)
    return [row if isinstance(row, dict) else {} for row in results]


def _json(content: bytes) -> Any:
    try:
        return json.loads(content, parse_float=Decimal)
    except (ValueError, RecursionError):
        return None


def _excerpt(content: bytes) -> str:
    """The first characters of an answer that is not JSON: a proxy's page, mostly."""
    return hide_ids(printable(" ".join(content[:1000].decode(errors="replace").split())))[:100] or "empty"


def _refusal(what: str, response: httpx.Response, content: bytes) -> ProlificError:
    """What an answer outside the 200s means."""
    status = response.status_code
    words = printable(_words(_json(content))) or _excerpt(content)
    remedy = {
        401: " Check PROLIFIC_TOKEN.",
        403: " The account has no right to it.",
        429: " Prolific asks for patience.",
    }.get(status, "")
    return ProlificError(
        f"Prolific answered {status} to {what}: {words}.{remedy}".replace("..", "."),
        status=status,
        retry_after_s=_seconds(response.headers),
        permanent=status < 500 and status not in (408, 429),
        # A redirect or a late time-out says nothing about the effect.
        uncertain=status < 400 or status == 408 or status >= 500,
        about=IDS.findall(content.decode(errors="replace")),
    )


def _seconds(headers: Mapping[str, str]) -> float | None:
    """The pause that Retry-After asks for, in either of its two forms: seconds, or a date, which is compared
    with the answer's own."""
    said = headers.get("Retry-After", "").strip()
    if re.fullmatch(r"\d{1,6}", said):
        return float(said)
    try:
        until, now = (parsedate_to_datetime(text) for text in (said, headers.get("Date", "")))
        return max(0.0, (until - now).total_seconds())
    except (ValueError, TypeError, OverflowError):
        return None


def _words(data: Any) -> str:
    """The sentence of an error, whichever of the documented shapes it has."""
    if isinstance(data, str):
        return hide_ids(data)[:WORDS_MAX]
    if not isinstance(data, Mapping):
        return ""
    error = data.get("error", data)
    if not isinstance(error, Mapping):
        return hide_ids(str(error))[:WORDS_MAX]
    known = [error.get(key) for key in ("title", "message", "detail", "additional_information")]
    # The address of a help page tells a reader nothing here.
    parts = [_flat(part) for part in known if part and not str(part).startswith("/")] or [_flat(error)]
    return hide_ids("; ".join(part.rstrip(".") for part in dict.fromkeys(parts) if part))[:WORDS_MAX]


def _flat(detail: Any) -> str:
    if isinstance(detail, Mapping):
        return "; ".join(f"{key}: {_flat(value)}" for key, value in detail.items())
    if isinstance(detail, list):
        return ", ".join(_flat(part) for part in detail)
    return str(detail)
