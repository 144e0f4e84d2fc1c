"""An answer that is accepted or rejected: all of it comes at once after a blank, one at a time, and nothing
moves between the parts with and without a region; in Chromium."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from experiments.definition.study import DeviceTable
from experiments.wording.smallest_window import PHONE, windows_of
from tests.experiments.definitions import definition
from tests.journeys.pages.geometry import axe_findings, faults_of
from tests.journeys.studies import staged

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

pytestmark = pytest.mark.browser

REVIEW = definition(
    {"classes": list(staged.DIGITS)},
    paradigm="blind_review",
    design={"role": "review", "solutions_from": "tasks"},
    conditions=[{"name": "people", "role": "source"}],
    device=DeviceTable(phones=True),
)
WIDE, UPRIGHT = windows_of(REVIEW)
SIZES = (
    *((1366, 625), (1280, 800), (1920, 1080), (640, 400), (390, 844), PHONE),
    (WIDE.width_px, WIDE.height_px),
    (UPRIGHT.width_px, UPRIGHT.height_px),
)
"""640 x 400 is 1280 x 800 at 200 %."""
SLACK_PX = 90
FRESH = ".board:not([data-done]) .answer:not([aria-disabled])"
PLACES = """() => [
    ".place:first-child .picture", ".place + .place", ".ask", ".answers", ".answer", ".line", ".tool",
].flatMap(place => [...document.querySelectorAll(place)].map(e => {
        const { left, top, right } = e.getBoundingClientRect();
        // An empty place is as wide and begins where a picture would, and is as high as it likes.
        return [place, left, top, right];
    }))"""
WATCH = """
window.seen = [];
const look = () => {
    const board = document.querySelector(".board"), main = document.querySelector("main");
    const pictures = [...(board?.querySelectorAll("img") ?? [])];
    const now = board
        ? [pictures.length, pictures.every(e => e.complete && e.naturalWidth > 0),
           board.querySelector(".ask").textContent, board.querySelectorAll(".answer").length].join()
        : document.querySelector("[data-page]") ? "page" : main?.textContent.trim() ?? "";
    if (seen.at(-1) !== now) seen.push(now);
    requestAnimationFrame(look);
};
requestAnimationFrame(look);
"""
"""Notes what each frame of the display shows, whenever that is something else than in the frame before."""


@pytest.fixture
def page(tab: Page) -> Page:
    return tab


@pytest.fixture
def watched(browser: Browser) -> Iterator[Page]:
    """A page that notes what each frame shows."""
    page = browser.new_page()
    page.add_init_script(WATCH)
    yield page
    page.close()


def opened(page: Page, *trials: Any, size: tuple[int, int] = (1280, 800), **facts: Any) -> staged.Stage:
    page.set_viewport_size({"width": size[0], "height": size[1]})
    shown = staged.state(staged.facts(REVIEW, legend=None, **facts), trials or [staged.review()])
    stage = staged.Stage(page, shown, one_by_one=True)
    stage.open()
    return stage


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_it_fits_every_window_that_is_let_in_and_a_region_moves_nothing(
    page: Page, size: tuple[int, int]
) -> None:
    assert any(window.holds(*size) for window in windows_of(REVIEW))
    stage = opened(
        page, staged.review(), staged.review(marked=False), staged.instructed("Press J."), size=size
    )
    places = []
    for key in "fj":
        page.locator(FRESH).first.wait_for()
        places.append(page.evaluate(PLACES))
        assert faults_of(page, is_trial=True) == []
        assert page.evaluate("document.documentElement.scrollHeight") <= size[1]
        stage.press(key)
    assert places[0][2:] == places[1][2:] and len(places[0]) == len(places[1])
    picture, empty = [place[0][1:] for place in places], [place[1][1:] for place in places]
    assert picture[0] == picture[1] and empty[0] == empty[1]
    # A check among them fits the same windows.
    page.locator(FRESH).first.wait_for()
    assert faults_of(page, is_trial=True) == []


@pytest.mark.parametrize("window", [WIDE, UPRIGHT], ids=["wide", "upright"])
def test_a_lower_window_does_not_hold_it(page: Page, window: Any) -> None:
    lower = (window.width_px, window.height_px - SLACK_PX)
    opened(page, size=lower)
    page.locator(FRESH).first.wait_for()
    assert page.evaluate("document.documentElement.scrollHeight") > lower[1]


def test_they_come_one_at_a_time_each_at_once_after_a_blank(watched: Page) -> None:
    """No page stands between two, and no frame shows a picture without its answer, or the other way round."""
    page = watched
    trials = [staged.review("7"), staged.review("3", marked=False), staged.review("9")]
    stage = opened(page, *trials, gap_ms=200)
    for key in "fjj":
        page.locator(FRESH).first.wait_for()
        stage.press(key)
    page.wait_for_selector("[data-page=comment]")
    seen: list[str] = page.evaluate("seen")
    first = seen.index("page")
    whole = ["2,true,Answer: 7,2", "1,true,Answer: 3,2", "2,true,Answer: 9,2"]
    assert seen[first : first + 6] == ["page", whole[0], "", whole[1], "", whole[2]]
    assert [row["value"]["accept"] for row in stage.sent(3)] == [True, False, False]
    assert all(row["context"]["onset_ms"] > 0 and row["context"]["frames"] >= 1 for row in stage.sent(3))
    assert all(0 < row["rt_ms"] <= row["shown_ms"] for row in stage.sent(3))


def test_the_page_before_a_part_says_how_many_follow_and_nothing_else(page: Page) -> None:
    trials = [staged.review(), staged.review(), staged.instructed("Press J.")]
    shown = staged.state(staged.facts(REVIEW, legend=None), trials)
    stage = staged.Stage(page, {**shown, "block": {**shown["block"], "count": 2}}, one_by_one=True)
    page.goto(stage.url)
    page.locator("[data-page=block] .button.primary:not(:disabled)").wait_for()
    assert page.locator("[data-page=block] h1").inner_text() == "Part 1 of 2"
    assert page.locator("[data-page=block] li").all_inner_texts() == [
        "2 tasks",
        "1 page that asks you to press a key",
    ]
    stage.go_on("block")
    assert page.locator(".line").inner_text() == "Part 1 of 2 · Task 1 of 3"


def test_a_slow_network_leaves_the_page_blank_and_then_says_so(watched: Page) -> None:
    page = watched
    stage = opened(page, staged.review("7"), staged.review("3"), gap_ms=100)
    held: list[Route] = []
    page.route("**/api/session/", lambda route: held.append(route))
    page.locator(FRESH).first.wait_for()
    stage.press("f")
    page.locator(".wait").wait_for()
    assert page.locator("main").inner_text() == "One moment…"
    page.unroute("**/api/session/")
    for route in held:
        route.fallback()
    page.locator(FRESH).first.wait_for()
    seen = page.evaluate("seen")
    assert seen[-4:] == ["", "One moment…", "", "2,true,Answer: 3,2"]


def test_a_reload_comes_back_to_the_same_one(page: Page) -> None:
    stage = opened(page, staged.review("7"), staged.review("3"))
    page.locator(FRESH).first.wait_for()
    stage.press("j")
    page.locator(FRESH).first.wait_for()
    page.reload()
    page.locator("[data-page=block] .button.primary:not(:disabled)").wait_for()
    assert page.locator("[data-page=block] h1").inner_text() == "Welcome back"
    assert "number 2 of 2" in page.locator("[data-page=block]").inner_text()
    stage.go_on("block")
    assert page.locator(".ask").text_content() == "Answer: 3"
    page.locator(FRESH).first.wait_for()
    stage.press("f")
    assert [row["value"]["accept"] for row in stage.sent(2)] == [False, True]
    assert [row["context"]["reloads"] for row in stage.sent(2)] == [0, 1]


def test_by_touch_alone(browser: Browser) -> None:
    size = {"width": PHONE[0], "height": PHONE[1]}
    context = browser.new_context(viewport=size, has_touch=True, is_mobile=True, device_scale_factor=3)  # type: ignore[arg-type]
    page = context.new_page()
    stage = opened(page, staged.review(), staged.review(marked=False), size=PHONE)
    for name in ("Accept", "Reject"):
        page.locator(FRESH).first.wait_for()
        board = page.locator(".board").element_handle()
        page.locator(".answer", has_text=name).tap()
        board.wait_for_element_state("hidden")
    assert [row["value"]["accept"] for row in stage.sent(2)] == [True, False]
    assert {row["context"]["input"] for row in stage.sent(2)} == {"touch"}
    context.close()


def test_by_the_keyboard_and_by_what_a_screen_reader_is_told(page: Page) -> None:
    stage = opened(page, staged.review("7"), staged.review("7", marked=False), staged.review())
    page.locator(FRESH).first.wait_for()
    assert page.locator("[aria-live]").inner_text() == "Answer: 7. You can answer now."
    tree = page.locator("main").aria_snapshot()
    for said in ('img "Picture"', 'img "Marked picture"', "Answer:", 'button "Accept"', 'button "Reject"'):
        assert said in tree, said
    page.locator(".board").evaluate("e => e.dataset.done = '1'")
    while not page.evaluate("document.activeElement.matches('[data-value=reject]')"):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.locator(FRESH).first.wait_for()
    assert page.get_by_role("img").count() == 1
    stage.press("f")
    assert [row["value"]["accept"] for row in stage.sent(2)] == [False, True]
    assert {row["context"]["input"] for row in stage.sent(2)} == {"keyboard"}


@pytest.mark.parametrize("marked", [True, False])
def test_axe_finds_nothing(page: Page, marked: bool) -> None:
    opened(page, staged.review(marked=marked))
    page.locator(FRESH).first.wait_for()
    assert axe_findings(page) == []


def test_it_is_whole_in_german(page: Page) -> None:
    german = REVIEW.model_copy(update={"language": "de"})
    shown = staged.state(staged.facts(german, legend=None), [staged.review()])
    staged.Stage(page, shown, one_by_one=True).open()
    assert page.locator(".ask").text_content() == "Antwort: 7"
    assert page.locator(".line").inner_text() == "Aufgabe 1 von 1"
    assert page.locator("figcaption").all_inner_texts() == ["Bild", "Markiert"]
