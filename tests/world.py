"""A small world: one study on a closed-form model, and people whose answers and endings are known.

Ada finishes and passes. Bo misses the instructed checks and is screened. Cy leaves in the middle. Dee comes
twice.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from django.test import Client
from PIL import Image

from crowd.models import Posting
from experiments.drafting.draft import build_draft
from experiments.drafting.draft_rows import picture_keys
from experiments.models import Response, Session, Study, Trial
from experiments.opening.opening import open_study
from experiments.study_files.load import load_study, material_folder
from tests.rendered import build_once
from tests.snapshots import once

CLASSES = ("left", "right")
SIZE_PX = 32
WINDOW: dict[str, Any] = {
    **{"width_px": 1280, "height_px": 800, "pixel_ratio": 1.0},
    **{"touch": False, "webdriver": False, "language": "en"},
}


def silent(what: str, done: int, total: int) -> None:
    """No progress is shown."""


def draw_images(folder: Path, per_cell: int = 14) -> None:
    """Pictures whose brighter side of the upper half decides the quadrant model's answer; half of the answers
    are wrong."""
    for name, png in _drawn(per_cell):
        path = folder / "images" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png)


@cache
def _drawn(per_cell: int) -> list[tuple[str, bytes]]:
    """The name of each file and its content."""
    drawn = []
    rng = np.random.default_rng(7)
    for truth in CLASSES:
        for predicted in CLASSES:
            for number in range(per_cell):
                pixels = rng.integers(60, 120, size=(SIZE_PX, SIZE_PX, 3), dtype=np.uint8)
                half = SIZE_PX // 2
                columns = slice(0, half) if predicted == "left" else slice(half, SIZE_PX)
                pixels[:half, columns] += 90
                file = io.BytesIO()
                Image.fromarray(pixels).save(file, "PNG")
                drawn.append((f"{truth}/{predicted}-{number:02d}.png", file.getvalue()))
    return drawn


def write_study(folder: Path, slug: str = "small", slots: int = 3, **changes: str) -> Path:
    """A study.toml with its texts beside it; `changes` replaces whole lines by their first word."""
    draw_images(folder)
    for name in ("consent", "instructions", "debrief"):
        (folder / f"{name}.md").write_text(f"# {name}\n\nText of {{title}}.\n")
    (folder / "explained.md").write_text("# Coloured areas\n")
    (folder / "plain.md").write_text("# No coloured areas\n")
    (folder / "quiz.toml").write_text(
        '[[questions]]\nid = "task"\nprompt = "What?"\nchoices = ["truth", "machine"]\nanswer = "machine"\n'
    )
    lines = STUDY.format(slug=slug, slots=slots).splitlines()
    for first, line in changes.items():
        lines = [line if old.split(" ")[0] == first else old for old in lines]
    path = folder / "study.toml"
    path.write_text("\n".join(lines) + "\n")
    return path


STUDY = """
slug = "{slug}"
title = "Left or right"
paradigm = "meta_predictor"
seed = 11
[design]
blocks = 2
train_per_block = 4
test_per_block = 4
min_view_ms = 0
picture_px = 64
[stimuli]
dataset = {{ name = "folder", path = "images", people_share = 1.0 }}
predictor = {{ name = "toy", input_px = 32 }}
classes = ["left", "right"]
[[conditions]]
name = "baseline"
role = "baseline"
slots = {slots}
[[conditions]]
name = "control"
role = "control"
explainer = {{ name = "bottom_up_saliency" }}
slots = {slots}
[[conditions]]
name = "saliency"
role = "method"
explainer = {{ name = "saliency" }}
slots = {slots}
[texts]
consent = "consent.md"
instructions = "instructions.md"
instructions_explained = "explained.md"
instructions_baseline = "plain.md"
quiz = "quiz.toml"
debrief = "debrief.md"
[checks]
instructed = 2
repeat = 1
[screening]
instructed_share_min = 1.0
quiz_attempts_max = 2
practice_attempts_max = 3
total_minutes = [0, 600]
[ethics]
contact = "lab@example.org"
[reward]
amount_cents = 100
expected_minutes = 4
[[questions]]
id = "expertise"
when = "before"
kind = "choice"
prompt = "Expertise?"
choices = ["none", "some"]
[[questions]]
id = "strategy"
kind = "text"
prompt = "How did you decide?"
required = false
"""


def draft_study(path: Path) -> Study:
    study = build_draft(load_study(path), material_folder(path), silent)
    build_once(picture_keys(study))
    return study


def opened_study(path: Path) -> Study:
    """The study, open and offered on the local platform."""

    def make(path: Path) -> Study:
        study = open_study(draft_study(path), silent)
        Posting.objects.get_or_create(study=study, platform="local", state="open")
        return study

    return once(path, "opened", make)


def seen_plates(study: Study, vision: str) -> dict[str, str]:
    """What a person answers to a study's plates. Unclear: all is read, through a filter."""
    is_reduced = vision == "reduced"
    read = {r["id"]: "nothing" if is_reduced and not r["control"] else r["answer"] for r in study.plates}
    return {"filter": "on" if vision == "unclear" else "off", **read}


@dataclass
class Person:
    """A person with a browser who knows what the page knows. Trial rows only help to answer as planned."""

    name: str
    slug: str = "small"
    submission: str = ""
    simulated: str = ""
    vision: str = "ordinary"
    """What the colour check will say of this person; skipped: the tick of the consent stays empty."""
    client: Client = field(default_factory=Client)
    token: str = ""
    state: dict[str, Any] = field(default_factory=dict)

    def call(self, method: str, path: str, body: Any = None, token: str | None = None) -> Any:
        headers = {"Authorization": f"Bearer {self.token if token is None else token}"}
        if method == "GET":
            return self.client.get(path, headers=headers)
        data = body if isinstance(body, bytes | str) else json.dumps(body)
        return self.client.post(path, data, content_type="application/json", headers=headers)

    def join(self) -> Any:
        query = f"?person={self.name}&submission={self.submission or self.name}"
        query += f"&simulated={self.simulated}" if self.simulated else ""
        reply = self.call(
            "POST", "/api/sessions/", {"study": self.slug, "platform": "local", "query": query}, "none"
        )
        if reply.status_code in (200, 201):
            body = reply.json()
            self.token, self.state = body["token"], body["session"]
        return reply

    def gate(self, value: dict[str, Any], step: str = "", digest: str = "") -> Any:
        path = f"/api/session/{step or self.state['step']}/"
        reply = self.call("POST", path, {"digest": digest or self.state["page"]["digest"], "value": value})
        if reply.status_code == 200:
            self.state = reply.json()
        return reply

    def session(self) -> Session:
        from experiments.sessions.lifecycle import session_of

        return session_of(self.token)

    def arrive(self, until: str = "trials") -> None:
        """Joins and passes every gate up to the named step."""
        if not self.token:
            self.join()
        while self.state["step"] != until:
            reply = self.gate(self.good_value())
            assert reply.status_code == 200, reply.content

    def good_value(self) -> dict[str, Any]:
        step = self.state["step"]
        if step == "device":
            return dict(WINDOW)
        if step in {"practice", "training"}:
            practice = {row["id"]: row["answer"] for row in self.session().study.practice}
            asked = [q["id"] for q in self.state["page"]["questions"] if q["kind"] != "example"]
            return {name: practice[name] for name in asked}
        if step == "consent":
            ticks = {q["id"]: self.vision != "skipped" for q in self.state["page"]["questions"]}
            return {"agree": True, "device": dict(WINDOW), **ticks}
        if step == "plates":
            return seen_plates(self.session().study, self.vision)
        fixed: dict[str, dict[str, Any]] = {
            "instructions": {"read": True},
            "quiz": {"task": "machine"},
        }
        if step == "questions":
            met = {q["id"] for q in self.state["page"]["questions"]}
            return {k: v for k, v in {"expertise": "some", "strategy": "by eye"}.items() if k in met}
        return fixed[step]

    def trials(self) -> list[Trial]:
        slot = self.session().slot
        assert slot is not None
        return list(slot.trials.select_related("item").order_by("position"))

    def good_response(self, trial: Trial) -> dict[str, Any]:
        """What a person who has understood the machine answers."""
        if trial.kind == "learn":
            value: dict[str, Any] = {"seen": True}
        elif trial.expected:
            value = {"choice": trial.expected}
        else:
            assert trial.item is not None
            value = {"choice": trial.item.predicted}
        return {"trial": str(trial.pk), "value": value, "rt_ms": 1200 + 10 * trial.position, "shown_ms": 2000}

    def respond(self, *responses: dict[str, Any]) -> Any:
        return self.call("POST", "/api/session/responses/", {"responses": list(responses)})

    def answer(self, count: int | None = None, *, miss_checks: bool = False) -> None:
        """Answers the next trials, all by default."""
        done = Response.objects.filter(session=self.session()).count()
        trials = self.trials()[done:] if count is None else self.trials()[done : done + count]
        for trial in trials:
            response = self.good_response(trial)
            if miss_checks and trial.check_kind == "instructed":
                wrong = next(c["value"] for c in trial.choices if c["value"] != trial.expected)
                response["value"] = {"choice": wrong}
            reply = self.respond(response)
            assert reply.status_code == 200, reply.content
        self.refresh()

    def refresh(self) -> dict[str, Any]:
        self.state = self.call("GET", "/api/session/").json()
        return self.state

    def finish(self, comment: str | None = None) -> Any:
        if self.state["step"] == "questions":
            self.gate(self.good_value())
        return self.call("POST", "/api/session/finish/", {"comment": comment})

    def take_part(self, *, miss_checks: bool = False) -> Session:
        """The whole life, from arrival to the end."""
        self.arrive()
        self.answer(miss_checks=miss_checks)
        assert self.finish().status_code == 200
        return self.session()
