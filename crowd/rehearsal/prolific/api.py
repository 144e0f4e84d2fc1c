"""From request to reply: token, schema, handler, and the three shapes of the platform's errors."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from crowd.rehearsal.prolific import schema
from crowd.rehearsal.prolific.records import ProlificRefusal
from crowd.rehearsal.prolific.world import REHEARSAL, ProlificWorld
from crowd.rehearsal.serving import Answer, IncomingRequest, as_json

PAGE_SIZE = 20
LIMIT = 20


@dataclass(frozen=True, slots=True)
class Request:
    """A request that satisfies the schema. `base` is our own address, for links."""

    path: str
    base: str
    names: Mapping[str, str]
    query: Mapping[str, str]
    body: Any


@dataclass(frozen=True, slots=True)
class ProlificReply:
    """What a handler says. None as `data` is an empty body; a `text` is sent as it is."""

    data: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    text: str = ""


Handler = Callable[[ProlificWorld, Request], ProlificReply]


def answer(
    world: ProlificWorld, http: IncomingRequest, handlers: Mapping[str, Handler]
) -> tuple[str, Answer]:
    """The operation's name and the answer. Holds the world's lock while anything may change."""
    operation, names, exists = schema.find(http.method, http.path)
    name = operation.name if operation else f"{http.method} {http.path}"
    with world.lock:
        try:
            if http.headers.get("authorization") != f"Token {REHEARSAL}":
                raise ProlificRefusal(401, "Invalid token.", "Authentication failed")
            if operation is None:
                if exists:
                    raise ProlificRefusal(
                        405, f"Method {http.method} is not allowed here.", "Method not allowed"
                    )
                raise ProlificRefusal(404, "Not found. Paths end in a slash.", "Not found")
            request = _read(world, operation, http, names)
            reply = handlers[name](world, request)
        except ProlificRefusal as no:
            return name, refusal(world, no)
    if reply.text:
        return name, Answer(reply.status, reply.text.encode(), reply.headers)
    return name, as_json(reply.data, reply.status, reply.headers)


def _read(
    world: ProlificWorld, operation: schema.Operation, http: IncomingRequest, names: Mapping[str, str]
) -> Request:
    try:
        body = json.loads(http.body) if http.body else {}
    except ValueError as error:
        world.violations.append(f"{operation.name}: the body is no JSON")
        raise ProlificRefusal(400, "The body is no JSON.", "Malformed request") from error
    broken = schema.violations(operation, http.query, body)
    if broken:
        world.violations += [f"{operation.name}: {where}: {said}" for where, said in broken.items()]
        raise ProlificRefusal(400, broken, "Validation error")
    query = {name: values[-1] for name, values in http.query.items()}
    return Request(http.path, f"http://{http.headers.get('host', 'localhost')}", names, query, body)


def refusal(world: ProlificWorld, no: ProlificRefusal, headers: Mapping[str, str] | None = None) -> Answer:
    """One of the three shapes that were seen, drawn anew each time."""
    shape = int(world.draw("error-shapes").integers(3))
    full = {
        "status": no.status,
        "error_code": 100_000 + no.status,
        "title": no.title,
        "detail": no.detail,
        "additional_information": "/errors",
        "traceback": None,
        "interactive": False,
    }
    said = ({"error": full}, full, {"message": no.title, "detail": no.detail})[shape]
    return as_json(said, no.status, headers)


def outage(world: ProlificWorld, status: int) -> Answer:
    """A failure of the platform itself: now JSON, now the page of a proxy in front of it."""
    if world.draw("outages").random() < 0.5:
        page = b"<html><head><title>Bad gateway</title></head><body>upstream failed</body></html>"
        return Answer(status, page, {"Content-Type": "text/html"})
    return refusal(world, ProlificRefusal(status, "Something went wrong.", "Server error"))


def page_reply(request: Request, rows: list[Any]) -> ProlificReply:
    """The page/page_size style. A page past the end does not exist; the first one always does."""
    page = int(request.query.get("page", 1))
    size = int(request.query.get("page_size", PAGE_SIZE))
    last = max(1, math.ceil(len(rows) / size))
    if page > last:
        raise ProlificRefusal(404, "Invalid page.", "Not found")

    def link(number: int) -> str:
        other = {name: value for name, value in request.query.items() if name != "page"}
        return f"{request.base}{request.path}?{urlencode({**other, 'page': number})}"

    links = {
        "self": {"href": link(page), "title": "Current"},
        "next": {"href": link(page + 1) if page < last else None, "title": "Next"},
        "previous": {"href": link(page - 1) if page > 1 else None, "title": "Previous"},
        "last": {"href": link(last), "title": "Last"},
    }
    return ProlificReply(
        {"results": rows[(page - 1) * size : page * size], "_links": links, "meta": meta(rows)}
    )


def slice_reply(request: Request, rows: list[Any]) -> ProlificReply:
    """The limit/offset style."""
    offset, limit = int(request.query.get("offset", 0)), int(request.query.get("limit", LIMIT))

    def link(start: int) -> str | None:
        if not 0 <= start < max(1, len(rows)) or start == offset:
            return None
        query = {**request.query, "limit": limit, "offset": start}
        return f"{request.base}{request.path}?{urlencode(query)}"

    links = {
        "self": {"href": f"{request.base}{request.path}", "title": "Current"},
        "next": {"href": link(offset + limit), "title": "Next"},
        "previous": {"href": link(max(0, offset - limit)) if offset else None, "title": "Previous"},
    }
    return ProlificReply({"results": rows[offset : offset + limit], "_links": links, "meta": meta(rows)})


def meta(rows: list[Any]) -> dict[str, int]:
    return {"count": len(rows)}
