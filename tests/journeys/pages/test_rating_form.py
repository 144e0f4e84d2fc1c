"""The page of ratings in every window: what is rated stays in view, each question is seen whole with what it
compares; by keyboard, by touch, and by what a screen reader is told, each alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from experiments.definition.study import DeviceTable
from experiments.wording.smallest_window import PHONE, Form, windows_of
from tests.experiments.definitions import definition
from tests.journeys.pages.geometry import axe_findings, faults_of
from tests.journeys.pages.test_contrast import COLOURS, contrast
from tests.journeys.pages.test_preferences import MOTION, SCHEMES, STILL, WISHES
from tests.journeys.studies import staged

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

RATING = definition(paradigm="rating")
LARGE = definition(paradigm="rating", design={"picture_px": 480})
WITH_PHONES = RATING.model_copy(update={"device": DeviceTable(phones=True)})
[NEEDED] = windows_of(RATING)
[NEEDED_LARGE] = windows_of(LARGE)
UPRIGHT = windows_of(WITH_PHONES)[1]
WINDOWS = {
    **{f"{width} x {height}": (RATING, (width, height)) for width, height in
       ((1366, 625), (1280, 800), (1920, 1080), (1024, 768), (700, 500), (640, 400))},
    "the smallest": (RATING, (NEEDED.width_px, NEEDED.height_px)),
    "the smallest with large pictures": (LARGE, (NEEDED_LARGE.width_px, NEEDED_LARGE.height_px)),
    "a tall phone": (WITH_PHONES, (390, 844)),
    "a phone": (WITH_PHONES, PHONE),
    "the smallest upright": (WITH_PHONES, (UPRIGHT.width_px, UPRIGHT.height_px)),
}  # fmt: skip
"""1280 x 800 at 200 % is 640 x 400."""
BELOW_PX = 24
"""In a window that is lower or narrower by so much, something is no longer seen whole."""
IN_VIEW = """([selector, width, height]) => [...document.querySelectorAll(selector)].filter((e) => {
    const box = e.getBoundingClientRect();
    const isIn =
        box.left >= -0.5 && box.top >= -0.5 && box.right <= width + 0.5 && box.bottom <= height + 0.5;
    const [x, y] = [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
    // What lies over it hides it.
    const isSeen = [box.top + 2, y, box.bottom - 2].every((at) => {
        const top = document.elementFromPoint(x, at);
        return e === top || e.contains(top) || (top?.contains(e) ?? false);
    });
    return !isIn || !isSeen;
}).map((e) => `${e.tagName} ${e.className} ${e.textContent}`.slice(0, 60))"""
SCROLLED = """() => [...document.querySelectorAll(".rating, .rating *")].filter(
    (e) => e.scrollHeight > e.clientHeight + 1 && ["auto", "scroll"].includes(getComputedStyle(e).overflowY)
).length"""
FOCUS = "e => e.contains(document.activeElement) || e.querySelector('input').focus()"
SIDES = "all => all.map(e => [e.getBoundingClientRect().width, e.getBoundingClientRect().height])"

EDGES = """all => all.map((e) => {
    const box = e.getBoundingClientRect();
    return [box.left, box.top, box.right, box.bottom];
})"""


@pytest.fixture
def page(tab: Page) -> Page:
    return tab


def opened(page: Page, shown: Any, size: tuple[int, int], *trials: Any, **facts: Any) -> staged.Stage:
    page.set_viewport_size({"width": size[0], "height": size[1]})
    asked = trials or (staged.rate(),)
    stage = staged.Stage(page, staged.state(staged.facts(shown, **facts), asked))
    stage.open()
    return stage


def hidden(page: Page, selector: str, size: tuple[int, int]) -> list[str]:
    """What of a selector is not whole in the window, or under something else."""
    return list(page.evaluate(IN_VIEW, [selector, *size]))


def unseen(page: Page, size: tuple[int, int]) -> list[tuple[str, list[str]]]:
    """Goes through the questions by their digits: what of each is not seen while it is answered."""
    out = [("at first", hidden(page, ".rated .picture", size))]
    for name in page.eval_on_selector_all(".scale", "all => all.map(e => e.dataset.question)"):
        scale = f'[data-question="{name}"]'
        page.eval_on_selector(scale, FOCUS)
        compares = page.locator(f"{scale} .pair").count() > 0
        parts = f"{scale} .point, {scale} .pair .picture"
        # Upright, a question that compares passes over what is rated: it shows the same, beside its copy.
        rated = "" if compares else ", .rated .picture"
        legend = "" if compares else f", {scale} legend"
        out.append((name, hidden(page, parts + rated + legend, size)))
        page.keyboard.press("3")
    return [(name, what) for name, what in out if what]


@pytest.mark.parametrize("name", WINDOWS)
def test_each_question_is_seen_with_what_it_asks_about(page: Page, name: str) -> None:
    shown, size = WINDOWS[name]
    assert any(window.holds(*size) for window in windows_of(shown))
    opened(page, shown, size)
    assert unseen(page, size) == []
    px = shown.design.get("picture_px", 320)
    rated = page.eval_on_selector_all(".rated .picture", SIDES)
    compared = page.eval_on_selector_all(".pair .picture", SIDES)
    assert len(rated) == 2 and len(compared) == 8
    assert all(width == height and px / 2 <= width <= px for width, height in rated), rated
    assert all(width == height and px * 3 / 8 <= width <= px for width, height in compared), compared
    assert len({width for width, _ in rated}) == len({width for width, _ in compared}) == 1
    assert page.evaluate(SCROLLED) == 0, "the page scrolls as a whole"
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
    assert faults_of(page, is_trial=False) == []


@pytest.mark.parametrize("shown", [RATING, LARGE], ids=["usual", "large"])
def test_in_a_smaller_window_something_is_not_seen_whole(page: Page, shown: Any) -> None:
    window = Form(shown.design.get("picture_px", 320), has_pairs=True).needed()
    whole = windows_of(shown)[0]
    assert window.holds(whole.width_px, whole.height_px)
    lower = (window.width_px, window.height_px - BELOW_PX)
    opened(page, shown, lower)
    assert unseen(page, lower)
    narrower = (window.width_px - BELOW_PX, window.height_px)
    opened(page, shown, narrower)
    targets = page.eval_on_selector_all(".point", SIDES)
    pictures = page.eval_on_selector_all(".pair .picture", SIDES)
    px = shown.design.get("picture_px", 320)
    assert min(width for width, _ in targets) < 44 or min(width for width, _ in pictures) < px * 3 / 8


def test_the_pair_is_as_large_as_a_laptop_can_show_it(page: Page) -> None:
    """At 1366 x 625 two pictures above each other and their scale fill it; at 1920 x 1080 they are whole."""
    opened(page, RATING, (1366, 625))
    [small] = {width for width, _ in page.eval_on_selector_all(".pair .picture", SIDES)}
    page.set_viewport_size({"width": 1920, "height": 1080})
    [large] = {width for width, _ in page.eval_on_selector_all(".pair .picture", SIDES)}
    assert small > 200 and large == 320


def test_nothing_moves_from_one_explanation_to_the_next(page: Page) -> None:
    stage = opened(page, RATING, (1280, 800), staged.rate(), staged.rate())
    first = page.eval_on_selector_all(".rating *", EDGES)
    for _ in range(6):
        page.keyboard.press("2")
    page.locator(".rating").evaluate("e => e.dataset.done = '1'")
    page.locator(".rating .button.primary").click()
    page.locator(".rating:not([data-done])").wait_for()
    assert page.locator(".line").inner_text() == "Explanation 2 of 2"
    assert page.evaluate("window.scrollY") == 0
    assert page.eval_on_selector_all(".rating *", EDGES) == first
    assert len(stage.sent(1)) == 1


def test_one_question_of_a_split_study_has_the_same_page(page: Page) -> None:
    stage = opened(page, RATING, (1280, 800), staged.rate(["q5"]))
    assert page.locator("legend").inner_text().startswith("B is A")
    assert unseen(page, (1280, 800)) == []
    page.keyboard.press("Enter")
    assert [row["value"] for row in stage.sent(1)] == [{"q5": 3}]


def test_by_the_keyboard_alone(page: Page) -> None:
    """Tab goes from question to question and to the button, arrow keys within one; digits move on."""
    stage = opened(page, RATING, (1280, 800))
    press = page.keyboard.press
    press("Tab")
    assert page.evaluate("document.activeElement.name") == "scale-q1"
    press("Space")
    press("ArrowRight")
    press("ArrowRight")
    press("Tab")
    assert page.evaluate("document.activeElement.name") == "scale-q2"
    press("5")
    assert page.evaluate("document.activeElement.name") == "scale-q3"
    press("Enter")
    assert page.locator(".rating").count() == 1, "Enter goes on only when all is answered"
    for key in "1245":
        press(key)
    assert page.evaluate("document.activeElement.className").startswith("button")
    press("Shift+Tab")
    press("ArrowLeft")
    press("Enter")
    page.wait_for_selector(".rating", state="detached")
    [row] = stage.sent(1)
    assert row["value"] == {"q1": 3, "q2": 5, "q3": 1, "q4": 2, "q5": 4, "q6": 4}
    noted = row["context"]["questions"]
    assert [each["id"] for each in noted] == ["q1", "q2", "q3", "q4", "q5", "q6"]
    assert [each["changes"] for each in noted] == [2, 0, 0, 0, 0, 1]
    assert max(noted, key=lambda each: each["ms"])["id"] == "q6"
    assert all(0 < each["ms"] <= row["rt_ms"] <= row["shown_ms"] for each in noted)
    assert row["context"]["input"] == "keyboard" and row["context"]["image_px"] == 320


def test_by_touch_alone(browser: Browser) -> None:
    size = {"width": PHONE[0], "height": PHONE[1]}
    context = browser.new_context(viewport=size, has_touch=True, is_mobile=True, device_scale_factor=3)  # type: ignore[arg-type]
    page = context.new_page()
    stage = staged.Stage(page, staged.state(staged.facts(WITH_PHONES), [staged.rate()]))
    stage.open()
    for name, point in zip(("q1", "q2", "q3", "q4", "q5", "q6"), (5, 4, 3, 2, 1, 1), strict=True):
        target = page.locator(f'[data-question="{name}"] .point').nth(point - 1)
        box = target.bounding_box()
        assert box is not None and box["width"] >= 44 and box["height"] >= 44, (name, box)
        target.tap()
    page.locator(".rating .button.primary").tap()
    page.wait_for_selector(".rating", state="detached")
    [row] = stage.sent(1)
    assert list(row["value"].values()) == [5, 4, 3, 2, 1, 1]
    assert row["context"]["input"] == "touch"
    context.close()


def test_by_what_a_screen_reader_is_told_alone(page: Page) -> None:
    """Each group by its question, each end of a scale by its words; both sides of a pair by their letters."""
    stage = opened(page, RATING, (1280, 800))
    name = "2. How far would you trust the machine because of this explanation?"
    trust = page.get_by_role("radiogroup", name=name)
    assert trust.get_by_role("radio").count() == 5
    for end in ("1, not at all", "5, completely"):
        assert trust.get_by_role("radio", name=end, exact=True).count() == 1, end
    differ = page.get_by_role("radiogroup", name="5. B is A with a small change")
    sides = [differ.get_by_role("group", name=side, exact=True) for side in "AB"]
    assert [side.get_by_role("img").count() for side in sides] == [2, 2]
    assert page.get_by_role("radio", checked=True).count() == 0
    onward = page.get_by_role("button", name="Next", exact=True)
    onward.click()
    said = page.get_by_role("alert").inner_text()
    assert said == "Questions 1, 2, 3, 4, 5, and 6 are still to be answered."
    for group in page.get_by_role("radiogroup").all():
        # Its own box lies inside the place that fingers and pointers meet.
        group.get_by_role("radio", name="4", exact=True).check()
    assert page.locator("[aria-live]").inner_text() == "You can go on now."
    onward.click()
    page.wait_for_selector(".rating", state="detached")
    [row] = stage.sent(1)
    assert set(row["value"].values()) == {4}


def test_axe_finds_nothing_in_any_state_and_nothing_moves_by_itself(page: Page) -> None:
    opened(page, RATING, (1280, 800))
    assert axe_findings(page) == []
    page.locator(".rating .button").click()
    assert axe_findings(page) == []
    for _ in range(6):
        page.keyboard.press("1")
    page.locator(".rating .button.primary").wait_for()
    assert axe_findings(page) == []
    for wish in WISHES:
        page.emulate_media(reduced_motion=wish)
        assert page.evaluate(MOTION) == STILL, wish


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_theme_of_high_contrast_tells_which_point_was_taken(page: Page, scheme: Any) -> None:
    page.emulate_media(forced_colors="active", color_scheme=scheme)
    opened(page, RATING, (1280, 800))
    page.keyboard.press("2")
    taken, other = page.locator(".point").nth(1), page.locator(".point").nth(2)
    outlines = [each.evaluate("e => getComputedStyle(e).outlineStyle") for each in (taken, other)]
    assert outlines == ["solid", "none"]
    for point in (taken, other):
        for what, colour, behind in point.evaluate(COLOURS)["pairs"]:
            assert contrast(colour, behind) >= (4.5 if what == "text" else 3), (scheme, what)


def test_the_interface_is_whole_in_german(page: Page) -> None:
    german = RATING.model_copy(update={"language": "de"})
    opened(page, german, (1366, 625), staged.rate(language="de"), language="de")
    page.locator(".rating .button").click()
    said = page.get_by_role("alert").inner_text()
    assert said == "Die Fragen 1, 2, 3, 4, 5 und 6 sind noch offen."
    assert page.locator(".line").inner_text() == "Erklärung 1 von 1"
    assert faults_of(page, is_trial=False) == []
