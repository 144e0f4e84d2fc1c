"""A whole session in Chromium against the production server: reload, offline, keyboard only, axe."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.journeys.visitor import FRESH, Visitor, violations
from tests.services import WebServer

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

ROOT = Path(__file__).resolve().parents[2]
AXE = ROOT / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
BLOCK_TRIALS = 8


def world(env: dict[str, str], *arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.open_world", *arguments]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **env}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    state: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return state


@pytest.fixture
def visitor(served: WebServer, project_env: dict[str, str], tmp_path: Path, page: "Page") -> Visitor:
    opened = world(project_env, "open", str(tmp_path / "small"), "blocks = 3", "min_view_ms = 50")
    return Visitor(page, opened["practice"], opened["quiz"])


def test_it_takes_a_session_through_a_reload_and_a_lost_connection(
    visitor: Visitor, served: WebServer, project_env: dict[str, str]
) -> None:
    page = visitor.page
    visitor.arrive(f"{served.url}/join/small/?person=ada&submission=s1")
    total_before_reload = BLOCK_TRIALS + 4
    visitor.walk("finish", answers=total_before_reload)
    page.reload()
    visitor.settle()
    while visitor.settle() != "trial":
        visitor.press_primary()
    visitor.walk("finish", answers=2 * BLOCK_TRIALS + 4)
    assert visitor.settle() == "trial"

    page.context.set_offline(True)
    for _ in range(3):
        visitor.settle()
        visitor.answer()
    strip = page.locator(".strip")
    strip.filter(has_text="3").wait_for()
    assert "offline" in strip.inner_text().lower()
    page.context.set_offline(False)
    strip.wait_for(state="hidden")

    visitor.walk("comment")
    page.locator("textarea").fill("<b>fine</b> =1+1")
    visitor.press_primary()
    assert visitor.settle() == "finish"

    state = world(project_env, "tell")
    [session] = state["sessions"]
    assert session["state"] == "finished" and session["comment"] == "<b>fine</b> =1+1"
    assert len(state["responses"]) == session["trials"] == len(visitor.pressed)
    assert [row["position"] for row in state["responses"]] == list(range(session["trials"]))
    stored = [row["value"].get("choice", "seen") for row in state["responses"]]
    answers = {"left", "right", "d", "f", "j", "k"}
    pressed = [value if value in answers else "seen" for value in visitor.pressed]
    assert stored == pressed
    assert {row["context"]["input"] for row in state["responses"]} == {"keyboard"}
    assert {"reload", "offline", "online"} <= set(state["events"])


def test_it_passes_axe_on_every_page(visitor: Visitor, served: WebServer) -> None:
    axe = AXE.read_text()
    visitor.arrive(f"{served.url}/join/small/?person=bea&submission=s2")
    seen: set[str] = set()
    while (here := visitor.settle()) != "finish":
        if here == "trial":
            here = "practice trial" if visitor.practised < len(visitor.practice) else "trial"
            here += f" with {visitor.page.locator(FRESH).count()} answers"
        if here not in seen:
            assert violations(visitor.page, axe) == [], here
            seen.add(here)
        visitor.step()
    assert violations(visitor.page, axe) == []
    assert {"consent", "questions", "instructions", "quiz", "practice", "block", "comment"} <= seen


def test_it_gives_nothing_to_anybody_else(visitor: Visitor, served: WebServer) -> None:
    """No cookie, no request to another host, no referrer."""
    hosts: set[str] = set()
    visitor.page.on("request", lambda request: hosts.add(request.url.split("/")[2]))
    visitor.arrive(f"{served.url}/join/small/?person=cy&submission=s3")
    visitor.walk("finish", answers=2)
    assert hosts == {served.url.split("/")[2]}
    assert visitor.page.context.cookies() == []


def test_it_tells_an_older_tab_that_another_one_goes_on(visitor: Visitor, served: WebServer) -> None:
    address = f"{served.url}/join/small/?person=dee&submission=s4"
    visitor.arrive(address)
    visitor.walk("finish", answers=1)
    other = visitor.page.context.new_page()
    other.goto(address)
    other.wait_for_selector("[data-page]")
    visitor.settle()
    visitor.answer()
    visitor.page.wait_for_selector('[data-page="trouble"][data-code="no_session"]')


def test_it_stops_at_a_small_window_before_consent(visitor: Visitor, served: WebServer) -> None:
    visitor.page.set_viewport_size({"width": 390, "height": 844})
    visitor.arrive(f"{served.url}/join/small/?person=eve&submission=s5")
    assert visitor.settle() == "device"
    visitor.press_primary()
    visitor.page.wait_for_selector("[data-page=device]:not([data-done])")
    visitor.page.set_viewport_size({"width": 1280, "height": 800})
    visitor.press_primary()
    visitor.page.wait_for_selector("[data-page=consent]")
