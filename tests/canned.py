"""The participant's page as it is built, against a server of canned sessions: no database, no network.

What a page is told, and what it sends, is checked against the published schema of the same run: nothing may
be missing, too much or of another type. What does not fit is an error of the test (`faults`).
"""

from __future__ import annotations

import io
import json
import mimetypes
import os
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
from PIL import Image

from experiments.kinds import KINDS
from tests.journeys.pages.plates import plate
from tests.services import ROOT

DIST = ROOT / "frontend" / "dist"
ASSETS = "/static/participant/"
PICTURE_PX = 320
SOURCE_PX = 160
"""Small, so that a machine without a graphics processor draws it within a frame of 144 Hz."""
MAGENTA = (255, 0, 255)
"""A colour that the page has nowhere else."""
COURSE: Mapping[str, Any] = {
    **{"fullscreen": False, "fixation_ms": 0, "exposure_ms": None, "mask_ms": 0},
    **{"phases": "test", "distance": "off"},
}
NUMBERS = count()
PAY: Mapping[str, Any] = {"pay": ["You are paid 1.00 USD, the full amount."]}
REGION = tuple(row * 28 + column for row in range(5, 22) for column in range(9, 20 - row // 3))


# The form of the wire ---------------------------------------------------------------------------------------


def errors_of(component: str, value: Any) -> list[str]:
    """What of a value has another form than this component of the published schema."""
    errors = [best_match(iter([error])) for error in _validator(component).iter_errors(value)]
    return [f"{error.json_path}: {error.message}" for error in errors]


def errors_of_call(call: str, path: str, sent: Any, reply: Any) -> list[str]:
    """What the page sent, or is told, in another form than the schema says of this call."""
    paths = _schema(KINDS.names)["paths"]
    fits = [path] if path in paths else [each for each in paths if _fits(each, path)]
    operation = paths[fits[0]].get(call.lower()) if fits else None
    if operation is None:
        return [f"{call} {path} is no call of the server"]
    parts = ((operation.get("requestBody", {}), sent), (operation["responses"]["200"], reply))
    return [
        f"{call} {path}: {error}"
        for part, value in parts
        for content in part.get("content", {}).values()
        for error in errors_of(content["schema"]["$ref"].rpartition("/")[2], value)
    ]


def _fits(pattern: str, path: str) -> bool:
    return re.fullmatch(re.sub(r"{\w+}", r"\\w+", pattern), path) is not None


@lru_cache(maxsize=2)
def _schema(kinds: tuple[str, ...]) -> dict[str, Any]:
    """As the server publishes it; anew for a test that has added `kinds`."""
    from drf_spectacular.generators import SchemaGenerator

    from experiments.api.trial_serializers import TrialsField, _every_kind

    # It keeps the kinds that there were when it was first asked.
    TrialsField._spectacular_annotation["field"].child.serializers = _every_kind  # type: ignore[attr-defined]
    document: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    return document


def _validator(component: str) -> Draft202012Validator:
    return _validator_of(component, KINDS.names)


@lru_cache(maxsize=64)
def _validator_of(component: str, kinds: tuple[str, ...]) -> Draft202012Validator:
    parts = _schema(kinds)["components"]["schemas"]
    components = {name: closed(part) for name, part in parts.items()}
    return Draft202012Validator(
        {"$ref": f"#/components/schemas/{component}", "components": {"schemas": components}}
    )


def closed(part: Any) -> Any:
    """A part of the schema as JSON Schema: `nullable` is another type, and a field too many is a mistake."""
    if isinstance(part, list):
        return [closed(inner) for inner in part]
    if not isinstance(part, dict):
        return part
    part = {name: closed(inner) for name, inner in part.items()}
    if "properties" in part:
        part["additionalProperties"] = False
    if part.pop("nullable", False):
        return {"anyOf": [part, {"type": "null"}]}
    return part


# What pages are told ----------------------------------------------------------------------------------------


class Sitting(ABC):
    """One session: what its page is told, at the address `url`, and all that was sent and does not fit."""

    def __init__(self, built: Path = DIST) -> None:
        self.built = built
        self.name = f"staged-{next(NUMBERS)}"
        self.url = f"{_site().url}/join/{self.name}/"
        self.faults: list[str] = []
        _site().sittings[self.name] = self

    def prepare(self) -> None:
        """Reads the schema and draws the pictures before a page waits for them: its patience is measured."""
        told = self.state()
        self.faults += errors_of("SessionState", told)
        for name in set(re.findall(r'"/m/[^"]*/([^"/]+)"', json.dumps(told))):
            drawn(name)

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """S of the wire, as it is now."""

    @abstractmethod
    def take(self, kind: str, body: dict[str, Any]) -> dict[str, Any]:
        """The answer to what was sent: `kind` is responses, events, or a gate's name."""

    def answer(self, call: str, path: str, body: Any) -> Any:
        """The reply to a call, checked against the schema as the call is."""
        if path == "/api/sessions/":
            sitting = {"query": None, "sitting": self.name}
            reply: dict[str, Any] = {"token": "t", "session": self.state(), **sitting}
        else:
            kind = path.rstrip("/").rpartition("/")[2]
            asked = {"pay": dict(PAY), "session": self.state()}
            reply = asked.get(kind, {}) if call == "GET" else self.take(kind, body)
        self.faults += errors_of_call(call, path, body, json.loads(json.dumps(reply)))
        return reply

    def close(self) -> None:
        """Nothing is told any more, and nothing may have had a wrong form."""
        _site().sittings.pop(self.name, None)
        assert not self.faults, "\n".join(self.faults)


def close_all() -> None:
    """Closes what tests left open."""
    if _site_of.cache_info().currsize:
        sittings = _site().sittings
        faults = [fault for sitting in list(sittings.values()) for fault in sitting.faults]
        sittings.clear()
        assert not faults, "\n".join(faults)


class Canned(Sitting):
    """A session that stays as it is told, and keeps what the page said. `told` is S of the wire."""

    def __init__(self, told: dict[str, Any]) -> None:
        super().__init__()
        self.told = told
        self.responses: list[dict[str, Any]] = []
        self.events: list[dict[str, Any]] = []
        self.gates: list[dict[str, Any]] = []

    def state(self) -> dict[str, Any]:
        return self.told

    def take(self, kind: str, body: dict[str, Any]) -> dict[str, Any]:
        if kind == "responses":
            self.responses += body["responses"]
            return {"next": len(self.responses), "step": "trials", "feedback": {}}
        if kind == "events":
            self.events += body["events"]
            return {}
        self.gates.append({"kind": kind, **body})
        return trials_state(1)


@contextmanager
def served(told: dict[str, Any]) -> Iterator[Canned]:
    """The page at `url`, in that state of its session."""
    canned = Canned(told)
    try:
        yield canned
    finally:
        canned.close()


@lru_cache(maxsize=1)
def picture() -> bytes:
    """A photograph's worth of detail, all in magenta."""
    noise = np.random.default_rng(0).integers(0, 24, (SOURCE_PX, SOURCE_PX, 1))
    pixels = np.clip(np.array(MAGENTA) + np.where(np.array(MAGENTA) > 0, -noise, noise), 0, 255)
    return _png(Image.fromarray(pixels.astype(np.uint8)))


@lru_cache(maxsize=64)
def drawn(name: str) -> bytes:
    """A picture by the end of its address: magenta, a plate, one with a region, or one colour."""
    if name == "magenta":
        return picture()
    kind, _, digit = name.partition("-")
    if digit:
        return plate(digit, outlined=REGION if kind == "region" else ())
    return _png(Image.new("RGB", (640, 640), (120, 150, 90) if name == "i" else (60, 60, 140)))


def _png(image: Image.Image) -> bytes:
    written = io.BytesIO()
    image.save(written, "PNG")
    return written.getvalue()


def trials_state(count: int, **presentation: Any) -> dict[str, Any]:
    """A block of that many tests, each with a picture; keys of [presentation] as they are given."""
    choices = [{"value": v, "text": v.capitalize(), "key": k} for v, k in (("husky", "f"), ("wolf", "j"))]
    media = {"width_px": SOURCE_PX, "height_px": SOURCE_PX, "alt": "Picture", "is_said": False}
    trials = [
        {
            **{"id": f"{n + 1}", "position": n, "kind": "predict", "phase": "test"},
            "content": {
                **{
                    "image": {"url": f"/m/{n}/magenta", **media},
                    "explanation": None,
                    "text": None,
                    "prompt": None,
                },
                **{"choices": choices, "reservoir": []},
            },
        }
        for n in range(count)
    ]
    study = {
        **{
            "title": "A study",
            "language": "en",
            "contact": "lab@example.org",
            "instructions": "<p>Look.</p>",
        },
        **{"picture_px": PICTURE_PX, "tile_px": 112, "min_view_ms": 0, "gap_ms": 200, "reservoir": "off"},
        **{"display": "beside", "words": {}, "legend": None, "origin": "human", "sight": ""},
        **{"keys": ["f", "j"], "answers_px": 60},
        "presentation": {**COURSE, **presentation},
    }
    block = {"index": 0, "count": 1, "first": 0, "trials": trials, "later": [], "examples": []}
    return {
        **{"step": "trials", "page": None, "attempts_left": None, "block": block, "next": 0, "total": count},
        **{"feedback": None, "progress": None, "study": study, "exit": None},
    }


def with_trials(kind: str, contents: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A block of tests of that kind, each with its content."""
    state = trials_state(len(contents))
    trials = [
        {"id": f"{n + 1}", "position": n, "kind": kind, "phase": "test", "content": content}
        for n, content in enumerate(contents)
    ]
    return {**state, "block": {**state["block"], "trials": trials}}


def gate_state(kind: str, html: str, **presentation: Any) -> dict[str, Any]:
    """A session that stands before that gate."""
    page = {"kind": kind, "digest": "d", "html": html, "questions": []}
    return {**trials_state(1, **presentation), "step": kind, "page": page, "block": None, "total": None}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    sittings: dict[str, Sitting]

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path.startswith(ASSETS):
            self._asset(path.removeprefix(ASSETS))
        elif path.startswith("/m/"):
            self._send(drawn(path.rpartition("/")[2]), "image/png")
        elif path.startswith("/join/"):
            self._page(path.removeprefix("/join/").partition("/")[0])
        else:
            self._api("GET", path, None)

    def do_POST(self) -> None:
        sent = self.rfile.read(int(self.headers["Content-Length"]))
        self._api("POST", self.path.partition("?")[0], json.loads(sent or b"{}"))

    def _asset(self, name: str) -> None:
        places = {sitting.built for sitting in list(self.sittings.values())} | {DIST}
        file = next((place / name for place in places if (place / name).is_file()), None)
        if file is None:
            return self.send_error(404)
        # As in a deployment: the name has the digest of what is in the file.
        self._send(file.read_bytes(), mimetypes.guess_type(file.name)[0] or "text/plain", "max-age=86400")

    def _page(self, name: str) -> None:
        sitting = self.sittings.get(name)
        if sitting is None:
            return self.send_error(404)
        fields = {"study": name, "platform": "local", "api": f"/{name}/api/", "language": "en"}
        told = json.dumps(fields).replace('"', "&quot;")
        page = (sitting.built / "index.html").read_text()
        self._send(
            page.replace('name="study" content=""', f'name="study" content="{told}"').encode(), "text/html"
        )

    def _api(self, call: str, path: str, body: Any) -> None:
        _, name, rest = path.split("/", 2)
        sitting = self.sittings.get(name)
        if sitting is None:
            return self.send_error(404)
        reply = sitting.answer(call, f"/{rest}", body)
        self._send(json.dumps(reply).encode(), "application/json")

    def _send(self, body: bytes, kind: str, kept: str = "no-store") -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", kept)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


class _Site:
    """Serves all sittings of this process."""

    def __init__(self) -> None:
        self.sittings: dict[str, Sitting] = {}
        handler = type("Handler", (_Handler,), {"sittings": self.sittings})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def _site() -> _Site:
    return _site_of(os.getpid())


@lru_cache(maxsize=1)
def _site_of(process: int) -> _Site:
    """No process uses the threads of another one that it was forked from."""
    return _Site()
