"""Pages in Chromium against the production server: keyboard only, axe, small windows, second tabs, no others.

The people of this file meet one study, each on their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests import services
from tests.journeys.conftest import world
from tests.journeys.test_smallest_window import faults
from tests.journeys.visitor import FRESH, Visitor, violations
from tests.services import WebServer

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser
AXE = services.ROOT / "frontend" / "node_modules" / "axe-core" / "axe.min.js"


@pytest.fixture(scope="module")
def opened(module_env: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("study") / "small"
    return world(module_env, "open", str(folder), "blocks = 3", "min_view_ms = 50")


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


WINDOWS = ((1366, 625), (1280, 800), (1920, 1080), (700, 500), (640, 400))
"""A laptop's window, common ones, a small one, and 1280 x 800 at 200 %."""
PLACES = """() => Object.fromEntries(
    [".middle .picture", ".ask", ".answers", ".reservoir-panel", ".tools", ".line"].map((place) => {
        const box = document.querySelector(place).getBoundingClientRect();
        return [place, [box.left, box.top, box.right, box.bottom]];
    }))"""
Box = tuple[float, float, float, float]


def overlap(left: Box, right: Box) -> bool:
    return left[0] < right[2] and right[0] < left[2] and left[1] < right[3] and right[1] < left[3]


def test_it_shows_a_whole_trial_beside_its_examples_in_every_window(
    visitor: Visitor, site: WebServer
) -> None:
    """Nothing below the fold or over something else; opening or enlarging an example moves nothing."""
    visitor.arrive(f"{site.url}/join/small/?person=fay&submission=s6")
    page = visitor.page
    toggle = page.locator(".reservoir-toggle")
    while not (visitor.settle() == "trial" and toggle.count()):
        visitor.step()
    for width, height in WINDOWS:
        page.set_viewport_size({"width": width, "height": height})
        closed = page.evaluate(PLACES)
        toggle.click()
        opened = page.evaluate(PLACES)
        for tile in page.locator(".tile img").all():
            box = tile.bounding_box()
            assert box is not None and box["width"] == pytest.approx(box["height"], abs=1), (width, box)
        page.locator(".tile").last.click()
        assert page.locator(".tile.enlarged").count() == 1
        enlarged = page.evaluate(PLACES)
        panel = ".reservoir-panel"
        for place, box in opened.items():
            assert 0 <= box[0] < box[2] <= width and 0 <= box[1] < box[3] <= height, (width, place, box)
            assert place == panel or closed[place] == box == enlarged[place], (width, place)
        pairs = [(a, b) for a in opened for b in opened if a < b]
        assert not [pair for pair in pairs if overlap(enlarged[pair[0]], enlarged[pair[1]])], width
        left, _, right, _ = opened[".middle .picture"]
        answers = opened[".answers"]
        assert (left + right) / 2 == pytest.approx((answers[0] + answers[2]) / 2, abs=1)
        # In the middle of the window, as far as the examples leave room for it.
        assert width < 1000 or (left + right) / 2 == pytest.approx(width / 2, abs=1)
        toggle.click()


def test_after_the_help_the_space_bar_goes_on(visitor: Visitor, site: WebServer) -> None:
    """It used to open the help again, for ever. The help holds the texts of the person's own condition."""
    visitor.arrive(f"{site.url}/join/small/?person=gil&submission=s7")
    page = visitor.page
    while not (visitor.settle() == "trial" and page.locator(FRESH).count() == 1):
        visitor.step()
    visitor.tab_to(".tool:first-child")
    page.keyboard.press("Enter")
    assert page.locator("dialog h1").count() >= 2
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog", state="detached")
    visitor.leave(".board")
    page.keyboard.press("Space")
    visitor.settle()
    assert page.locator("dialog").count() == 0


def test_a_whole_session_passes_at_twice_its_size(
    opened: dict[str, Any], browser: Browser, site: WebServer, module_env: dict[str, str]
) -> None:
    """1280 x 800 at 200 % zoom: no page scrolls sideways, and no trial at all."""
    size = (640, 400)
    context = browser.new_context(viewport={"width": size[0], "height": size[1]}, device_scale_factor=2)
    visitor = Visitor(context.new_page(), opened["practice"], opened["quiz"])
    visitor.arrive(f"{site.url}/join/small/?person=hal&submission=s8")
    seen = set()
    while (here := visitor.settle()) != "finish":
        seen.add(here)
        assert visitor.page.evaluate("document.documentElement.scrollWidth") <= size[0], here
        assert here != "trial" or faults(visitor.page, size) == []
        visitor.step()
    assert {"consent", "quiz", "trial", "comment"} <= seen
    context.close()
    mine = [row["context"] for row in world(module_env, "tell")["responses"] if "image_px" in row["context"]]
    assert {(row["pixel_ratio"], row["image_px"]) for row in mine if row["pixel_ratio"] == 2} == {(2, 182)}
