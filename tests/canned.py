"""The participant's page as it is built, against a server of one canned session: no database, no network."""

from __future__ import annotations

import io
import json
import mimetypes
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
from PIL import Image

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


@dataclass
class Canned:
    """What the page is told and what it said. `state` is S of the wire."""

    state: dict[str, Any]
    url: str = ""
    responses: list[dict[str, Any]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    gates: list[dict[str, Any]] = field(default_factory=list)


def picture() -> bytes:
    """A photograph's worth of detail, all in magenta."""
    noise = np.random.default_rng(0).integers(0, 24, (SOURCE_PX, SOURCE_PX, 1))
    pixels = np.clip(np.array(MAGENTA) + np.where(np.array(MAGENTA) > 0, -noise, noise), 0, 255)
    written = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(written, "PNG")
    return written.getvalue()


def trials_state(count: int, **presentation: Any) -> dict[str, Any]:
    """A block of that many tests, each with a picture; keys of [presentation] as they are given."""
    choices = [{"value": v, "text": v.capitalize(), "key": k} for v, k in (("husky", "f"), ("wolf", "j"))]
    media = {"width_px": SOURCE_PX, "height_px": SOURCE_PX, "alt": "Picture", "is_said": False}
    trials = [
        {
            **{"id": f"{n + 1}", "position": n, "kind": "predict", "phase": "test"},
            "content": {
                **{"image": {"url": f"/m/{n}", **media}, "explanation": None, "text": None, "prompt": None},
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
    canned: Canned
    shown: bytes

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path.startswith(ASSETS):
            file = DIST / path.removeprefix(ASSETS)
            self._send(file.read_bytes(), mimetypes.guess_type(file.name)[0] or "text/plain")
        elif path.startswith("/m/"):
            self._send(self.shown, "image/png")
        elif path.startswith("/api/"):
            self._json(self.canned.state)
        else:
            told = json.dumps({"study": "canned", "platform": "local", "api": "/api/", "language": "en"})
            page = (DIST / "index.html").read_text()
            text = page.replace('name="study" content=""', f"name=\"study\" content='{told}'")
            self._send(text.encode(), "text/html")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}")
        kind = self.path.rstrip("/").rpartition("/")[2]
        if kind == "sessions":
            joined = {"token": "t", "session": self.canned.state, "query": None, "sitting": "canned"}
            self._json(joined)
        elif kind == "responses":
            self.canned.responses += body["responses"]
            self._json({"next": len(self.canned.responses), "step": "trials", "feedback": {}})
        elif kind == "events":
            self.canned.events += body["events"]
            self._json({})
        else:
            self.canned.gates.append({"kind": kind, **body})
            self._json(trials_state(1))

    def _json(self, value: Any) -> None:
        self._send(json.dumps(value).encode(), "application/json")

    def _send(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def served(state: dict[str, Any]) -> Iterator[Canned]:
    """The page at `url`, in that state of its session."""
    canned = Canned(state)
    handler = type("Handler", (_Handler,), {"canned": canned, "shown": picture()})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        canned.url = f"http://127.0.0.1:{server.server_port}/"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield canned
        finally:
            server.shutdown()
