"""The ways in which the proof `timing` runs the page, each with its own record of what was on the screen."""

from __future__ import annotations

import base64
import io
import math
import shutil
import statistics
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from tests.canned import MAGENTA, Canned, served, trials_state
from tests.proofs.cdp import Cdp, piped
from tests.run.chromium import chromium

COURSE = {"fixation_ms": 200, "exposure_ms": 100, "mask_ms": 100}
SIZE = {"width": 240, "height": 320}
"""Small, so that the pixels of a frame are read within the shortest one."""
POLLED_MS = 300
"""Between two questions to the page, each of which may cost a frame."""
SHELLS = ("chromium-headless-shell", "chrome-headless-shell", "headless_shell")
SWITCHES = ("--enable-begin-frame-control", "--run-all-compositor-stages-before-draw")
CATEGORIES = ["cc", "benchmark", "blink.user_timing", "disabled-by-default-devtools.timeline.frame"]
PATIENCE_S = 60.0
MARKS = """
let last = "";
new MutationObserver(() => {
  const now = document.querySelector(".board .staged")?.dataset.sight ?? "";
  if (now !== last && now !== "") performance.mark(now);
  last = now;
}).observe(document, { subtree: true, childList: true, attributes: true, attributeFilter: ["data-sight"] });
"""
"""Marks, on the page's clock and in the browser's trace, when the page puts picture and mask there."""
IS_READY = "document.querySelector('[data-page=block] .button:not([disabled])') !== null"
IS_ASKED = "document.querySelector('.board .answer:not([aria-disabled]):not(.pressed)') !== null"
INSERTED = "performance.getEntriesByName('stimulus').map(mark => mark.startTime)"


class CannotMake(Exception):
    """This way of running cannot have that rate; the message says why."""


class Span(NamedTuple):
    """From when to when something was there, in milliseconds."""

    on_ms: float
    off_ms: float


@dataclass(frozen=True, slots=True)
class Trial:
    """One trial on the page's clock: what the page stored (`stamp`, `frames`, `rt_ms`, `dropped`), what the
    browser's record says (`record`, and `drawn`: in how many frames the picture was drawn; None: not
    counted), when the page put the picture there, and when the key was sent. `refresh_ms`: length of a frame.
    """

    inserted_ms: float
    stamp: Span
    record: Span
    frames: int
    drawn: int | None
    dropped: int
    rt_ms: float
    pressed_ms: float
    refresh_ms: float


class Recorded(NamedTuple):
    """What the record says of one trial, on the monotonic clock."""

    span: Span
    drawn: int | None
    pressed_ms: float


def now_ms() -> float:
    """The clock of Chromium's `TimeTicks` on Linux."""
    return time.monotonic() * 1000


def joined(
    canned: Canned, records: Sequence[Recorded], inserted_ms: Sequence[float], offset_ms: float
) -> list[Trial]:
    """What the page stored beside what was recorded; `offset_ms`: the page's zero on the monotonic clock."""
    trials = []
    for stored, record, inserted in zip(canned.responses, records, inserted_ms, strict=True):
        context = stored["context"]
        onset_ms = float(context["onset_ms"])
        trials.append(
            Trial(
                inserted_ms=inserted,
                stamp=Span(onset_ms, onset_ms + stored["shown_ms"]),
                record=Span(record.span.on_ms - offset_ms, record.span.off_ms - offset_ms),
                frames=context["frames"],
                drawn=record.drawn,
                dropped=context["dropped_frames"],
                rt_ms=float(stored["rt_ms"]),
                pressed_ms=record.pressed_ms - offset_ms,
                refresh_ms=float(context["refresh_ms"]),
            )
        )
    return trials


def press(cdp: Cdp, session: str, key: str = "f", code: int = 70) -> float:
    """Presses a key and does not wait; when it was sent, in milliseconds."""
    named = {"key": key, "windowsVirtualKeyCode": code}
    sent_ms = now_ms()
    text = {"text": "\r"} if key == "Enter" else {}
    cdp.post("Input.dispatchKeyEvent", session, type="keyDown" if text else "rawKeyDown", **named, **text)
    cdp.post("Input.dispatchKeyEvent", session, type="keyUp", **named)
    return sent_ms


def opened(cdp: Cdp, target: str, url: str) -> str:
    """Opens the page with our marks in it; the name of its session."""
    session = str(cdp.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"])
    cdp.send("Page.enable", session)
    cdp.send("Page.addScriptToEvaluateOnNewDocument", session, source=MARKS)
    cdp.post("Page.navigate", session, url=url)
    return session


# Each frame begun by this program -------------------------------------------------------------------------


class Beats:
    """Begins frames at a rate, in step with the monotonic clock; as a display does, it leaves out those whose
    time has passed."""

    def __init__(self, cdp: Cdp, session: str, rate: float) -> None:
        self.cdp, self.session, self.length_ms = cdp, session, 1000 / rate
        self.due_ms = now_ms() + 100

    def next(self, *, look: bool = False) -> tuple[float, bool | None]:
        """The time of the frame, and whether the picture is in its pixels; None if that was not looked at."""
        if (late_ms := now_ms() - self.due_ms) > 0:
            self.due_ms += math.ceil(late_ms / self.length_ms) * self.length_ms
        time.sleep(max(0.0, (self.due_ms - now_ms()) / 1000))
        begun: dict[str, Any] = {"frameTimeTicks": self.due_ms, "interval": self.length_ms}
        if look:
            begun["screenshot"] = {"format": "jpeg", "quality": 20, "optimizeForSpeed": True}
        reply = self.cdp.send("HeadlessExperimental.beginFrame", self.session, **begun)
        at_ms, self.due_ms = self.due_ms, self.due_ms + self.length_ms
        data = reply.get("screenshotData")
        return at_ms, has_picture(base64.b64decode(data)) if data else None

    def until(self, expression: str) -> None:
        """Lets frames go by until the page says so."""
        end_ms = now_ms() + 1000 * PATIENCE_S
        while not self.cdp.evaluate(self.session, expression):
            if now_ms() > end_ms:
                raise TimeoutError(f"still not: {expression}")
            for _ in range(round(POLLED_MS / self.length_ms)):
                self.next()

    def offset_ms(self) -> float:
        """The page's zero on the monotonic clock: a frame's time less what the page is told of it."""
        self.cdp.evaluate(self.session, "requestAnimationFrame((at) => (window.beat = at))")
        at_ms, _ = self.next()
        return at_ms - float(self.cdp.evaluate(self.session, "window.beat"))


def has_picture(jpeg: bytes) -> bool:
    image = Image.open(io.BytesIO(jpeg))
    image.draft("RGB", (image.width // 4, image.height // 4))
    pixels = np.asarray(image.convert("RGB"), dtype=np.int16)
    return bool((np.abs(pixels - np.array(MAGENTA)).max(axis=2) < 70).mean() > 0.02)


def headless_shell() -> str:
    """The Chromium whose frames can be begun from outside."""
    path = next((path for name in SHELLS if (path := shutil.which(name))), None)
    if path is None:
        raise CannotMake("no chromium-headless-shell is installed, and no other lets its frames be begun")
    return path


def controlled(rate: float, count: int, seed: int) -> list[Trial]:
    """Headless, each frame begun from here. The record is the pixels of every frame around the picture: one
    that is drawn in a frame is on a panel from the next refresh."""
    rng = np.random.default_rng(seed)
    with (
        served(trials_state(count, **COURSE)) as canned,
        piped(headless_shell(), "--headless", *SWITCHES) as cdp,
    ):
        asked: dict[str, Any] = {"url": "about:blank", "enableBeginFrameControl": True, **SIZE}
        session = opened(cdp, cdp.send("Target.createTarget", **asked)["targetId"], canned.url)
        beats = Beats(cdp, session, rate)
        beats.until(IS_READY)
        press(cdp, session, "Enter", 13)
        records = [_watched(beats, rng) for _ in range(count)]
        end_ms = now_ms() + 1000 * PATIENCE_S
        while len(canned.responses) < count and now_ms() < end_ms:
            beats.next()
        return joined(canned, records, cdp.evaluate(session, INSERTED), beats.offset_ms())


def _watched(beats: Beats, rng: np.random.Generator) -> Recorded:
    """One trial: looks at every frame until the picture has come and gone, and presses some time later."""
    drawn: list[float] = []
    while True:
        at_ms, is_there = beats.next(look=True)
        if is_there:
            drawn.append(at_ms)
        elif drawn and is_there is False:
            break
    until_ms = now_ms() + rng.uniform(150, 400)
    while now_ms() < until_ms:
        beats.next()
    shown = Span(drawn[0] + beats.length_ms, at_ms + beats.length_ms)
    return Recorded(shown, len(drawn), press(beats.cdp, beats.session))


# Running freely -------------------------------------------------------------------------------------------


@contextmanager
def screen() -> Iterator[dict[str, str]]:
    """A display without a panel, by Xvfb; the environment that names it."""
    program = shutil.which("Xvfb")
    if program is None:
        raise CannotMake("no Xvfb is installed, which would be the display")
    asked = [program, "-displayfd", "1", "-screen", "0", "1024x768x24", "-nolisten", "tcp"]
    with subprocess.Popen(asked, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as running:
        assert running.stdout is not None
        number = running.stdout.readline().strip()
        try:
            yield {"DISPLAY": f":{number}"}
        finally:
            running.terminate()


def headless(count: int, seed: int) -> list[Trial]:
    """Headless, at its own pace. The record is the browser's trace: when each frame was presented."""
    return _free(count, seed, ("--headless",), {})


def headed(count: int, seed: int) -> list[Trial]:
    """In a window under Xvfb, at its own pace; the record as above."""
    with screen() as env:
        return _free(count, seed, ("--window-size=700,650",), env)


def _free(count: int, seed: int, words: Sequence[str], env: dict[str, str]) -> list[Trial]:
    rng = np.random.default_rng(seed)
    with (
        served(trials_state(count, **COURSE)) as canned,
        piped(chromium(), *words, env=env) as cdp,
    ):
        target = first_page(cdp)
        asked = {"includedCategories": CATEGORIES}
        cdp.send("Tracing.start", transferMode="ReportEvents", traceConfig=asked)
        session = opened(cdp, target, canned.url)
        _until(cdp, session, IS_READY)
        press(cdp, session, "Enter", 13)
        pressed = [_answered(cdp, session, canned, rng) for _ in range(count)]
        inserted = cdp.evaluate(session, INSERTED)
        cdp.send("Tracing.end")
        cdp.wait_for("Tracing.tracingComplete")
        spans, offset_ms = presented(cdp.traced())
        records = [Recorded(span, None, at_ms) for span, at_ms in zip(spans, pressed, strict=True)]
        return joined(canned, records, inserted, offset_ms)


def first_page(cdp: Cdp) -> str:
    """The page that Chromium opens by itself: it lies in front."""
    end_ms = now_ms() + 1000 * PATIENCE_S
    while now_ms() < end_ms:
        targets = cdp.send("Target.getTargets")["targetInfos"]
        if pages := [target["targetId"] for target in targets if target["type"] == "page"]:
            return str(pages[0])
        time.sleep(0.05)
    raise TimeoutError("Chromium opened no page")


def _answered(cdp: Cdp, session: str, canned: Canned, rng: np.random.Generator) -> float:
    before = len(canned.responses)
    _until(cdp, session, IS_ASKED)
    time.sleep(rng.uniform(0.3, 0.6))
    pressed_ms = press(cdp, session)
    end_ms = now_ms() + 1000 * PATIENCE_S
    while len(canned.responses) == before and now_ms() < end_ms:
        time.sleep(0.005)
    return pressed_ms


def _until(cdp: Cdp, session: str, expression: str) -> None:
    end_ms = now_ms() + 1000 * PATIENCE_S
    while not cdp.evaluate(session, expression):
        if now_ms() > end_ms:
            raise TimeoutError(f"still not: {expression}")
        time.sleep(0.01)


def presented(trace: Sequence[dict[str, Any]]) -> tuple[list[Span], float]:
    """When picture and mask of each trial were presented, on the monotonic clock, and the page's zero on it.

    A frame's `PipelineReporter` ends with its presentation. What the page changed is in the first frame that
    was committed after the mark and presented; a frame that was dropped presents nothing.
    """
    events = sorted(trace, key=lambda event: event.get("ts", 0))
    frames: list[tuple[float, float]] = []
    running: dict[tuple[int, str], dict[str, Any]] = {}
    for event in events:
        if event.get("ph") not in ("b", "e") or "id2" not in event:
            continue
        key, at_ms = (event["pid"], str(event["id2"].get("local"))), event["ts"] / 1000
        if event["name"] == "PipelineReporter" and event["ph"] == "b":
            running[key] = dict(event["args"].get("frame_reporter", {}))
        elif event["name"] == "SendBeginMainFrameToCommit" and event["ph"] == "e" and key in running:
            running[key]["committed_ms"] = at_ms
        elif event["name"] == "PipelineReporter" and key in running:
            frame = running.pop(key)
            if str(frame.get("state")).startswith("STATE_PRESENTED") and "committed_ms" in frame:
                frames.append((frame["committed_ms"], at_ms))
    marks = [event for event in events if event["name"] in ("stimulus", "mask") and event.get("ph") == "I"]
    zero_ms = statistics.median(e["ts"] / 1000 - e["args"]["data"]["startTime"] for e in marks)
    at = [min(end for committed, end in frames if committed > mark["ts"] / 1000) for mark in marks]
    return [Span(on, off) for on, off in zip(at[::2], at[1::2], strict=True)], zero_ms
