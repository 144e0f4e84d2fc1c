"""People of commit f38355e, for people.py; only for that commit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def answer_of(trial: Any) -> dict[str, Any]:
    if trial.kind == "learn":
        return {"seen": True}
    if trial.expected:
        return {"choice": trial.expected}
    return {"choice": trial.item.predicted}


def matches_of(session: Any) -> int:
    """Scored trials of the whole plan: who always answers as the machine matches in all of them."""
    if session.slot is None:
        return 8
    return int(session.slot.trials.filter(kind="predict", check_kind="").count())


def keeping() -> type:
    from dataclasses import dataclass

    from django.test import Client

    from tests.world import Person

    @dataclass
    class Kept(Person):
        platform: str = "local"
        fixed: str = ""
        outside: str = ""

        def __post_init__(self) -> None:
            self.client = Client(SERVER_NAME="study.example.org", headers={"X-Forwarded-Proto": "https"})

        def query(self) -> str:
            if self.fixed:
                return self.fixed
            more = f"&simulated={self.simulated}" if self.simulated else ""
            return f"person={self.name}&submission={self.submission or self.name}{more}"

        def join(self) -> Any:
            body = {"study": self.slug, "platform": self.platform, "query": self.query(), "attempt": "a" * 32}
            reply = self.call("POST", "/api/sessions/", body, "none")
            assert reply.status_code in (200, 201), reply.content
            self.token, self.state = reply.json()["token"], reply.json()["session"]
            return reply

        def call(self, method: str, path: str, body: Any = None, token: str | None = None) -> Any:
            headers = {
                "Authorization": f"Bearer {self.token if token is None else token}",
                "X-Forwarded-Proto": "https",
            }
            if method == "GET":
                return self.client.get(path, headers=headers)
            return self.client.post(path, json.dumps(body), content_type="application/json", headers=headers)

    return Kept


def Keeping(*arguments: Any, **more: Any) -> Any:
    return keeping()(*arguments, **more)


def draw_images(folder: Path, per_cell: int = 6) -> None:
    """As the small world's, of four coloured squares instead of noise: a small archive."""
    import numpy as np
    from PIL import Image

    rng = np.random.default_rng(7)
    for truth in ("left", "right"):
        for predicted in ("left", "right"):
            for number in range(per_cell):
                squares = rng.integers(60, 120, size=(2, 2, 3), dtype=np.uint8)
                pixels = squares.repeat(16, axis=0).repeat(16, axis=1)
                pixels[:16, slice(0, 16) if predicted == "left" else slice(16, 32)] += 90
                path = folder / "images" / truth / f"{predicted}-{number:02d}.png"
                path.parent.mkdir(parents=True, exist_ok=True)
                Image.fromarray(pixels).save(path)
