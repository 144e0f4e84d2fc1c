"""What precedes and follows a stimulus, in Chromium: nothing moves, and the mark stands in its middle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests import services
from tests.canned import gate_state, served, trials_state
from tests.journeys.sessions.visitor import FRESH, violations

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser
AXE = services.ROOT / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
WINDOWS = ((1366, 625), (1920, 1080), (700, 500), (640, 400))
COURSE = {"fixation_ms": 200, "exposure_ms": 300, "mask_ms": 200}
SIGHTS = ("fixation", "stimulus", "mask", "empty")
START = "[data-page=block] .button:not([disabled])"
IS_OVER = "document.querySelector('.board') === null"
WATCH = """
window.seen = [];
let frame = 0;
window.begun_ms = [];
const count = (now_ms) => { frame += 1; begun_ms[frame] = now_ms; requestAnimationFrame(count); };
requestAnimationFrame(count);
const box = (place) => {
  const found = document.querySelector(place)?.getBoundingClientRect();
  return found ? [found.left, found.top, found.right, found.bottom] : null;
};
new MutationObserver(([{ target }]) => {
  const boxes = [".picture", ".ask", ".answers", ".tools", ".line", ".fixation", ".mask"].map(box);
  const visible = [".fixation", ".picture img", ".mask"].filter(
    (place) => getComputedStyle(document.querySelector(place)).visibility === "visible",
  );
  seen.push({ sight: target.dataset.sight, frame, at_ms: performance.now(), boxes, visible });
}).observe(document, { subtree: true, attributeFilter: ["data-sight"] });
"""
"""Notes at each change, in the frame that makes it: what is where, what is visible, which frame it is, when;
and the time at which each frame began."""
Box = list[float]


def watched(page: Page) -> list[dict[str, Any]]:
    """What was seen in the one trial, which is answered when it is over."""
    page.add_init_script(WATCH)
    with served(trials_state(1, **COURSE)) as canned:
        page.goto(canned.url)
        page.click(START)
        page.wait_for_function("seen.length === 4")
        page.wait_for_selector(FRESH)
        with page.expect_response("**/session/responses/"):
            page.keyboard.press("f")
        page.wait_for_function(IS_OVER)
        seen: list[dict[str, Any]] = page.evaluate("seen")
    [response] = canned.responses
    assert response["value"] == {"choice": "husky"} and response["rt_ms"] > response["shown_ms"]
    assert [each["sight"] for each in seen] == list(SIGHTS)
    up, gone = seen[1:3]
    # On a busy machine the next frame may have begun before the change: it does not show the stimulus.
    between = gone["frame"] - up["frame"]
    assert response["context"]["frames"] in (between - 1, between)
    return seen


def middle(box: Box) -> tuple[float, float]:
    return (box[0] + box[2]) / 2, (box[1] + box[3]) / 2


@pytest.mark.parametrize(("width", "height"), WINDOWS)
def test_mark_stimulus_and_mask_follow_each_other_in_the_same_boxes(
    page: Page, width: int, height: int
) -> None:
    page.set_viewport_size({"width": width, "height": height})
    seen = watched(page)
    assert all(each["boxes"] == seen[0]["boxes"] for each in seen)
    *places, mark, mask = seen[0]["boxes"]
    for left, top, right, bottom in places:
        assert 0 <= left < right <= width and 0 <= top < bottom <= height
    assert middle(mark) == pytest.approx(middle(places[0]), abs=0.5)
    assert mask == places[0]
    alone = [[".fixation"], [".picture img"], [".mask"], []]
    assert [each["visible"] for each in seen] == alone


def test_a_press_during_the_mark_is_no_answer(page: Page) -> None:
    with served(trials_state(1, fixation_ms=1500)) as canned:
        page.goto(canned.url)
        page.click(START)
        page.wait_for_selector("[data-sight=fixation]", state="attached")
        page.keyboard.press("j")
        page.wait_for_selector("[data-sight=stimulus]", state="attached")
        page.wait_for_selector(FRESH)
        with page.expect_response("**/session/responses/"):
            page.keyboard.press("f")
        page.wait_for_function(IS_OVER)
    assert [response["value"] for response in canned.responses] == [{"choice": "husky"}]


def test_the_screen_is_filled_by_a_press_and_given_back(page: Page) -> None:
    is_full = "document.fullscreenElement !== null"
    with served(trials_state(1, fullscreen=True)) as canned:
        page.goto(canned.url)
        page.wait_for_selector("[data-page=fullscreen]")
        assert violations(page, AXE.read_text()) == []
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.wait_for_selector(START)
        assert page.evaluate(is_full)
        page.evaluate("document.exitFullscreen()")
        page.get_by_role("button", name="Full screen").click()
        page.wait_for_function(is_full)
        page.click(START)
        page.wait_for_selector(FRESH)
        with page.expect_response("**/session/responses/"):
            page.keyboard.press("f")
        page.wait_for_function(f"!({is_full})")
        assert page.get_by_role("button", name="Full screen").count() == 0
    assert len(canned.responses) == 1


def test_the_card_is_measured_by_keyboard_alone(page: Page) -> None:
    text = "<h2>The size of your screen</h2><p>Hold a card to the screen.</p>"
    with served(gate_state("screen", text, distance="blind_spot")) as canned:
        page.goto(canned.url)
        page.wait_for_selector(".card")
        assert violations(page, AXE.read_text()) == []
        page.focus("input[type=range]")
        for _ in range(74):
            page.keyboard.press("ArrowRight")
        # 324 CSS px for 85.60 mm: the frame is as large as it says.
        size = page.locator(".card").bounding_box()
        assert size is not None
        assert (size["width"], size["height"]) == pytest.approx((324, 324 * 53.98 / 85.6), abs=0.5)
        for _ in range(2):
            page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.wait_for_selector(".spot-track")
        assert violations(page, AXE.read_text()) == []
        page.get_by_role("button", name="I cannot do this").press("Enter")
        page.wait_for_selector(START)
    [gate] = canned.gates
    assert gate["value"] == {"px_per_mm": 3.785, "distance_mm": None, "tries": []}
