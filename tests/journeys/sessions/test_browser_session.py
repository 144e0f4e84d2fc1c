"""A whole session in Chromium against the production server: reload, offline, keyboard only."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import open_world
from tests.journeys.sessions.visitor import Visitor
from tests.services import WebServer

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

BLOCK_TRIALS = 8


@pytest.fixture
def visitor(rows: None, tmp_path: Path, page: "Page") -> Visitor:
    opened = open_world.opened(tmp_path / "small", "blocks = 3", "min_view_ms = 50", "gap_ms = 0")
    return Visitor(page, opened["practice"], opened["quiz"])


def test_it_takes_a_session_through_a_reload_and_a_lost_connection(
    visitor: Visitor, deployed: WebServer
) -> None:
    page = visitor.page
    visitor.arrive(f"{deployed.url}/join/small/?person=ada&submission=s1")
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

    state = open_world.tell()
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
