"""Pages in Chromium against the production server: keyboard only, axe, small windows, second tabs, no others.

The people of this file meet one study, each on their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests import services
from tests.journeys.conftest import world
from tests.journeys.visitor import FRESH, Visitor, violations
from tests.services import WebServer

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser
AXE = services.ROOT / "frontend" / "node_modules" / "axe-core" / "axe.min.js"


@pytest.fixture(scope="module")
def site(module_env: dict[str, str]) -> Iterator[WebServer]:
    with services.web_server(module_env) as server:
        yield server


@pytest.fixture(scope="module")
def opened(module_env: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("study") / "small"
    return world(module_env, "open", str(folder), "blocks = 3", "min_view_ms = 50")


@pytest.fixture
def visitor(opened: dict[str, Any], page: Page) -> Visitor:
    return Visitor(page, opened["practice"], opened["quiz"])


def test_it_passes_axe_on_every_page(visitor: Visitor, site: WebServer) -> None:
    axe = AXE.read_text()
    visitor.arrive(f"{site.url}/join/small/?person=bea&submission=s2")
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


def test_it_gives_nothing_to_anybody_else(visitor: Visitor, site: WebServer) -> None:
    """No cookie, no request to another host, no referrer."""
    hosts: set[str] = set()
    visitor.page.on("request", lambda request: hosts.add(request.url.split("/")[2]))
    visitor.arrive(f"{site.url}/join/small/?person=cy&submission=s3")
    visitor.walk("finish", answers=2)
    assert hosts == {site.url.split("/")[2]}
    assert visitor.page.context.cookies() == []


def test_it_tells_an_older_tab_that_another_one_goes_on(visitor: Visitor, site: WebServer) -> None:
    address = f"{site.url}/join/small/?person=dee&submission=s4"
    visitor.arrive(address)
    visitor.walk("finish", answers=1)
    other = visitor.page.context.new_page()
    other.goto(address)
    other.wait_for_selector("[data-page]")
    visitor.settle()
    visitor.answer()
    visitor.page.wait_for_selector('[data-page="trouble"][data-code="no_session"]')


def test_it_stops_at_a_small_window_before_consent(visitor: Visitor, site: WebServer) -> None:
    visitor.page.set_viewport_size({"width": 390, "height": 844})
    visitor.arrive(f"{site.url}/join/small/?person=eve&submission=s5")
    assert visitor.settle() == "device"
    visitor.press_primary()
    visitor.page.wait_for_selector("[data-page=device]:not([data-done])")
    visitor.page.set_viewport_size({"width": 1280, "height": 800})
    visitor.press_primary()
    visitor.page.wait_for_selector("[data-page=consent]")
