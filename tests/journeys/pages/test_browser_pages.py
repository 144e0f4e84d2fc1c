"""Pages in Chromium against a server: keyboard only, axe, small windows, second tabs, no others.

The people of this file meet one study, each on their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests import open_world, services
from tests.experiments.definitions import definition
from tests.journeys.conftest import DESKTOP, Site
from tests.journeys.pages.test_smallest_window import faults
from tests.journeys.sessions.visitor import FRESH, Visitor, violations
from tests.journeys.studies import staged

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Request, ViewportSize

pytestmark = pytest.mark.browser
ZOOMED: ViewportSize = {"width": 640, "height": 400}
GATES = {"consent", "questions", "instructions", "quiz", "practice"}
AXE = services.ROOT / "frontend" / "node_modules" / "axe-core" / "axe.min.js"


@pytest.fixture(scope="module")
def opened(rows: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("study") / "small"
    return open_world.opened(folder, "blocks = 1", "min_view_ms = 0", "gap_ms = 0")


@pytest.fixture
def fine(browser: Browser, opened: dict[str, Any]) -> Iterator[Visitor]:
    """A person whose display is 1280 x 800 at 200 %."""
    context = browser.new_context(viewport=ZOOMED, device_scale_factor=2)
    yield Visitor(context.new_page(), opened["practice"], opened["quiz"])
    context.close()


def test_a_whole_session_passes_axe_fits_twice_its_size_and_tells_nobody_else(
    fine: Visitor, site: Site
) -> None:
    """No page scrolls sideways, and no trial at all; no cookie, no request to another host, no referrer."""
    axe, page = AXE.read_text(), fine.page
    hosts: set[str] = set()
    referrers: set[str] = set()

    def note(request: Request) -> None:
        hosts.add(request.url.split("/")[2])
        referrers.add(request.headers.get("referer", ""))

    page.on("request", note)
    fine.arrive(f"{site.url}/join/small/?person=bea&submission=s2")
    seen: set[str] = set()
    while True:
        here = fine.settle()
        assert page.evaluate("document.documentElement.scrollWidth") <= ZOOMED["width"], here
        if here == "trial":
            assert faults(page, (ZOOMED["width"], ZOOMED["height"])) == []
            here = "practice trial" if fine.practised < len(fine.practice) else "trial"
            here += f" with {page.locator(FRESH).count()} answers"
        if here not in seen:
            page.set_viewport_size(DESKTOP)
            assert violations(page, axe) == [], here
            page.set_viewport_size(ZOOMED)
            seen.add(here)
            if here == "trial with 1 answers":
                reads_the_help(fine)
        if here == "finish":
            break
        fine.step()
    assert GATES | {"block", "trial with 1 answers", "trial with 2 answers", "comment"} <= seen
    assert hosts == {site.url.split("/")[2]} and referrers == {""}
    assert page.context.cookies() == []
    rows = [row["context"] for row in open_world.tell()["responses"] if row["context"]["pixel_ratio"] == 2]
    assert {row["image_px"] for row in rows if "image_px" in row} == {182}


def reads_the_help(visitor: Visitor) -> None:
    """It holds the texts of the person's own condition, and after it the space bar goes on: it used to open
    the help again, for ever."""
    page = visitor.page
    visitor.tab_to(".tool:first-child")
    page.keyboard.press("Enter")
    assert page.locator("dialog h1").count() >= 2
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog", state="detached")
    visitor.leave(".board")
    page.keyboard.press("Space")
    visitor.pressed.append("seen")
    visitor.settle()
    assert page.locator("dialog").count() == 0


def test_it_tells_an_older_tab_that_another_one_goes_on(visitor: Visitor, site: Site) -> None:
    address = f"{site.url}/join/small/?person=dee&submission=s4"
    visitor.arrive(address)
    visitor.walk("finish", answers=1)
    other = visitor.page.context.new_page()
    other.goto(address)
    other.wait_for_selector("[data-page]")
    visitor.settle()
    visitor.answer()
    visitor.page.wait_for_selector('[data-page="trouble"][data-code="no_session"]')


def test_it_stops_at_a_small_window_before_consent(visitor: Visitor, site: Site) -> None:
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


def test_it_shows_a_whole_trial_beside_its_examples_in_every_window(tab: Page) -> None:
    """Nothing below the fold or over something else; opening or enlarging an example moves nothing."""
    page = tab
    shown = definition({"classes": ["left", "right"]})
    staged.Stage(page, staged.state(staged.facts(shown), [staged.predict(["Left", "Right"])])).open()
    toggle = page.locator(".reservoir-toggle")
    toggle.wait_for()
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
