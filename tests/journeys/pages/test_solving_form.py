"""The page on which a task is solved, in every window: all of it is seen, and nothing of it moves; by mouse,
finger, pen and keyboard, and by what a screen reader is told, each alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from experiments.definition.study import DeviceTable
from experiments.wording.smallest_window import (
    LOW_MAX_PX,
    PHONE,
    STACKED_MAX_PX,
    MarkedPage,
    marked_of,
    windows_of,
)
from tests.experiments.definitions import definition
from tests.journeys.pages.geometry import axe_findings, faults_of
from tests.journeys.pages.test_contrast import COLOURS, contrast
from tests.journeys.pages.test_preferences import MOTION, SCHEMES, STILL, WISHES
from tests.journeys.pages.test_rating_form import hidden
from tests.journeys.sessions.hands import draw_by_finger
from tests.journeys.studies import staged

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

GRID = 28
Size = tuple[int, int]


@pytest.fixture
def page(tab: Page) -> Page:
    return tab


def study(answers: tuple[str, ...] = staged.DIGITS, **design: Any) -> Any:
    return definition(
        {"classes": list(answers)},
        paradigm="blind_review",
        design={"role": "solve", **design},
        conditions=[{"name": "people", "role": "source"}],
        device=DeviceTable(phones=True),
    )


TWO = ("husky", "wolf")
LONG = ("Flat-coated retriever", "German short-haired pointer", "Fox terrier", "Husky", "Collie")
TWENTY = tuple(f"Class {n}" for n in range(1, 21))
LETTERS = tuple("ABCDEFG")
STUDIES = {
    "ten digits": (study(), staged.DIGITS),
    "large pictures": (study(picture_px=640), staged.DIGITS),
    "small pictures": (study(picture_px=96), staged.DIGITS),
    "seven letters": (study(LETTERS), LETTERS),
    "two answers": (study(TWO), TWO),
    "long answers": (study(LONG), LONG),
    "twenty answers": (study(TWENTY), TWENTY),
}
USUAL = STUDIES["ten digits"]
COMMON: tuple[Size, ...] = (
    *((1366, 625), (1280, 800), (1920, 1080), (1024, 768)),
    *((700, 561), (640, 400), (390, 844), PHONE),
)
"""640 x 400 is 1280 x 800 at 200 %."""
PARTS = ".plate, .mark-tool, .choosing legend, .choice, .sending .button"
CUT = """() => [
    ...document.querySelectorAll(".choice, .mark-tool, .sending .button, .said, .hint"),
].filter(
    e => e.scrollWidth > e.clientWidth || e.scrollHeight > e.clientHeight
).map(e => `cut: ${e.textContent}`)"""
AT_THE_KEYBOARD = "at the keyboard"
NAME = "document.activeElement.getAttribute('aria-label') ?? document.activeElement.value"
SIZES = "all => all.map(e => [e.getBoundingClientRect().width, e.getBoundingClientRect().height])"
PLACES = """() => [
    ...document.querySelectorAll(".plate, .mark-tool, .choosing, .choice, .said, .sending, .line"),
].map(e => {
    const { left, top, right, bottom } = e.getBoundingClientRect();
    return [left, top, right, bottom];
})"""
HEIGHT = "document.documentElement.scrollHeight"
SLACK_PX = 90
"""What the reckoning may ask for too much: between the lower frame and the higher one no window is let in."""


def opened(page: Page, of: Any = USUAL, size: Size = (1280, 800), **facts: Any) -> staged.Stage:
    shown, answers = of
    page.set_viewport_size({"width": size[0], "height": size[1]})
    tasks = [staged.solve(answers, GRID), staged.solve(answers, GRID)]
    stage = staged.Stage(page, staged.state(staged.facts(shown, legend=None, **facts), tasks))
    stage.open()
    # Attached, not visible: a picture whose time is short may be gone before it is looked for.
    page.locator(".plate:not([aria-disabled])").wait_for(state="attached")
    return stage


def at(page: Page, column: float, row: float) -> tuple[float, float]:
    """The middle of a cell, in pixels of the window."""
    box = page.locator(".cells").bounding_box()
    assert box is not None
    return box["x"] + (column + 0.5) / GRID * box["width"], box["y"] + (row + 0.5) / GRID * box["height"]


def draw(page: Page, *places: tuple[float, float]) -> None:
    """One stroke of the mouse through the middles of these cells."""
    page.mouse.move(*at(page, *places[0]))
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*at(page, *place), steps=4)
    page.mouse.up()


def cell(column: int, row: int) -> int:
    return row * GRID + column


def counted(context: dict[str, Any]) -> tuple[int, int, str, str]:
    return context["strokes"], context["undos"], context["marked_with"], context["input"]


def send(page: Page, how: Any) -> None:
    """Sends, and waits for the next task."""
    page.locator(".solving").evaluate("e => e.dataset.done = '1'")
    how()
    page.wait_for_selector(".solving:not([data-done]) .plate:not([aria-disabled])")


def unseen(page: Page, state: str, size: Size) -> list[str]:
    """What of the task is not whole in the window, or cut in its place; at the keyboard its keys may stand in
    place of words."""
    complaint = "> .complaint:not(:empty)"
    said = f".said {complaint}, .said:not(:has({complaint})) > .state"
    words = ".hint" if state == AT_THE_KEYBOARD else said
    return hidden(page, f"{PARTS}, {words}", size) + list(page.evaluate(CUT))


def states(page: Page) -> Any:
    """Every state of the page, one after the other."""
    yield "at first"
    page.locator(".sending .button").click()
    yield "nothing chosen"
    draw(page, (4, 4), (20, 4), (12, 22))
    yield "marked"
    page.locator(".sending .button").click()
    yield "no answer"
    page.locator(".choice.none").click()
    yield "set aside"
    page.locator(".choice").first.click()
    yield "to be sent"
    page.keyboard.press("Tab")
    while not page.evaluate("document.activeElement.matches('.plate')"):
        page.keyboard.press("Shift+Tab")
    yield AT_THE_KEYBOARD


def sized(page: Page, size: Size) -> None:
    page.set_viewport_size({"width": size[0], "height": size[1]})


def looked(page: Page, size: Size, state: str) -> Any:
    """Nothing is wrong in a window of that size; where the parts are."""
    sized(page, size)
    assert unseen(page, state, size) == [], (state, size)
    assert faults_of(page, is_trial=False) == [], (state, size)
    assert page.evaluate(HEIGHT) <= size[1], (state, size)
    return page.evaluate(PLACES)


def test_a_whole_task_fits_common_windows_and_nothing_moves(page: Page) -> None:
    """Each state in each window. The places are those that a window of that size gives from the start."""
    assert all(any(window.holds(*size) for window in windows_of(USUAL[0])) for size in COMMON)
    opened(page, size=COMMON[0])
    first = {size: looked(page, size, "at first") for size in COMMON}
    sized(page, COMMON[1])
    for state in states(page):
        assert {size: looked(page, size, state) for size in COMMON} == first, state
        sized(page, COMMON[1])
    for size in (COMMON[0], PHONE):
        opened(page, size=size)
        assert looked(page, size, "at first") == first[size], "whatever window it was opened in"


@pytest.mark.parametrize("name", STUDIES)
def test_a_whole_task_fits_the_window_that_is_computed(page: Page, name: str) -> None:
    """In a lower one, something does not fit."""
    shown, answers = STUDIES[name]
    marked = marked_of(shown)
    assert isinstance(marked, MarkedPage)
    wide, upright = windows_of(shown)
    assert upright.width_px <= STACKED_MAX_PX < wide.width_px
    sizes = [(window.width_px, window.height_px) for window in (wide, upright)]
    opened(page, (shown, answers), sizes[0])
    for state in states(page):
        for size in sizes:
            looked(page, size, state)
        sized(page, sizes[0])
    for size in sizes:
        sized(page, size)
        [(width, height)] = page.eval_on_selector_all(".plate", SIZES)
        assert width == height >= marked.least_px, size
        for target in page.eval_on_selector_all(".mark-tool, .choice, .sending .button", SIZES):
            assert min(target) >= 44, (size, target)
        # A window with the lower frame may hold what a slightly higher one does not.
        least = LOW_MAX_PX + 1 if size[1] > LOW_MAX_PX else 0
        lower = (size[0], max(size[1] - SLACK_PX, least))
        sized(page, lower)
        assert page.evaluate(HEIGHT) > lower[1], (name, lower)


def test_by_the_mouse_alone(page: Page) -> None:
    stage = opened(page)
    page.get_by_role("button", name="Small").click()
    draw(page, (9, 5), (18, 5), (12, 14))
    page.get_by_role("button", name="Eraser").click()
    draw(page, (9, 5), (10, 5))
    page.get_by_role("button", name="Undo").click()
    page.get_by_role("button", name="Redo").click()
    page.locator(".choice", has_text="7").click()
    assert page.locator(".state").inner_text().startswith("Your answer: 7, with ")
    send(page, page.locator(".sending .button").click)
    [row] = stage.sent(1)
    region = row["value"]["region"]
    assert row["value"]["choice"] == "7" and region == sorted(set(region))
    assert {cell(column, 5) for column in range(11, 19)} <= set(region) and cell(12, 14) in region
    assert not {cell(9, 5), cell(10, 5)} & set(region)
    # Down the slope from (18, 5) to (12, 14) each row has the cells that the line passes.
    slope = {divmod(each, GRID)[0] for each in region}
    assert slope == set(range(5, 15))
    noted = row["context"]
    assert (noted["strokes"], noted["undos"], noted["marked_with"], noted["input"]) == (
        2,
        1,
        "mouse",
        "mouse",
    )
    assert 0 < noted["first_stroke_ms"] < row["rt_ms"] <= row["shown_ms"] and noted["image_px"] == 320


def test_by_the_keyboard_alone(page: Page) -> None:
    """The picture, the tools, the answers and the button are reached by Tab; nothing else is needed."""
    stage = opened(page)
    press = page.keyboard.press
    press("Tab")
    assert page.evaluate("document.activeElement.className") == "picture plate"
    assert page.locator(".frame.dark").evaluate("e => getComputedStyle(e).visibility") == "visible"
    press("-")
    press("ArrowUp")
    press("Space")
    assert page.locator("[aria-live]").inner_text() == "Row 14, column 15, marked; 1 cell marked"
    page.keyboard.down("Shift")
    for _ in range(3):
        press("ArrowRight")
    page.keyboard.up("Shift")
    press("Control+z")
    press("Control+y")
    press("7")
    reached = []
    for _ in range(10):
        press("Tab")
        reached.append(
            page.evaluate("document.activeElement.getAttribute('aria-label') ?? document.activeElement.value")
        )
    assert reached[:8] == ["Brush", "Eraser", "Small", "Medium", "Large", "Undo", "Redo", "Clear"]
    assert reached[8] == "7", "one stop for all answers, at the one that is chosen"
    press("Shift+Tab")
    press("ArrowRight")
    assert page.locator("input:checked").get_attribute("value") == "8"
    press("7")
    send(page, lambda: press("Enter"))
    [row] = stage.sent(1)
    assert row["value"] == {"choice": "7", "region": [cell(14, 13), cell(15, 13), cell(16, 13), cell(17, 13)]}
    noted = row["context"]
    assert (noted["strokes"], noted["undos"], noted["marked_with"], noted["input"]) == (
        2,
        1,
        "keyboard",
        "keyboard",
    )


def test_by_touch_alone(browser: Browser) -> None:
    """A finger that marks does not scroll the page, on a page that could be scrolled."""
    size = {"width": PHONE[0], "height": PHONE[1]}
    context = browser.new_context(viewport=size, has_touch=True, is_mobile=True, device_scale_factor=3)  # type: ignore[arg-type]
    page = context.new_page()
    stage = opened(page, size=PHONE)
    page.add_style_tag(content="body { padding-block-end: 400px }")
    draw_by_finger(page, at(page, 5, 4), at(page, 5, 12), at(page, 5, 20))
    assert page.evaluate("window.scrollY") == 0
    page.get_by_role("button", name="Small").tap()
    page.locator("[aria-label=Small][aria-pressed=true]").wait_for()
    draw_by_finger(page, at(page, 20, 9), at(page, 20, 9))
    page.locator(".choice", has_text="1").tap()
    page.locator("input:checked").wait_for()
    send(page, page.locator(".sending .button").tap)
    [row] = stage.sent(1)
    assert row["value"]["choice"] == "1"
    # The middle brush is three cells wide, from a cell above the first place to a cell below the last.
    line = {cell(column, row) for column in (4, 5, 6) for row in range(3, 22)}
    assert set(row["value"]["region"]) == line | {cell(20, 9)}
    assert (row["context"]["marked_with"], row["context"]["input"]) == ("touch", "touch")
    context.close()


def test_by_a_pen(page: Page) -> None:
    stage = opened(page)
    page.get_by_role("button", name="Small").click()
    session = page.context.new_cdp_session(page)
    pen = {"pointerType": "pen", "button": "left", "clickCount": 1}
    for kind, place in (("mousePressed", (3, 3)), ("mouseMoved", (6, 3)), ("mouseReleased", (6, 3))):
        x, y = at(page, *place)
        held = {"buttons": 0 if kind == "mouseReleased" else 1}
        session.send("Input.dispatchMouseEvent", {"type": kind, "x": x, "y": y, **pen, **held})
    page.keyboard.press("3")
    send(page, lambda: page.keyboard.press("Enter"))
    assert stage.sent(1)[0]["value"]["region"] == [cell(column, 3) for column in (3, 4, 5, 6)]
    assert stage.sent(1)[0]["context"]["marked_with"] == "pen"


def test_by_what_a_screen_reader_is_told_alone(page: Page) -> None:
    stage = opened(page)
    tree = page.locator("main").aria_snapshot()
    for said in (
        *('application "Picture, to be marked"', 'radiogroup "What do you see?"', 'radio "Cannot say"'),
        *('button "Brush" [pressed]', 'group "Size"', "Mark where you see it", "Space marks"),
    ):
        assert said in tree, said
    # The answer of the task is nowhere: neither in the picture's name nor beside it.
    assert page.get_by_role("img").get_attribute("alt") == "Picture"
    page.get_by_role("button", name="Send").click()
    assert page.get_by_role("alert").inner_text().startswith("Please mark where you see it")
    page.get_by_role("application").press("ArrowDown")
    voice = page.locator("[aria-live]")
    assert voice.inner_text() == "Row 16, column 15, not marked; 0 cells marked"
    page.get_by_role("application").press("Space")
    assert voice.inner_text() == "Row 16, column 15, marked; 9 cells marked"
    page.get_by_role("radio", name="Cannot say").check()
    assert voice.inner_text().startswith("9 marked cells are set aside, not sent.")
    page.get_by_role("radio", name="4", exact=True).check()
    assert voice.inner_text() == "Your answer: 4, with 9 cells marked. You can send it."
    send(page, page.get_by_role("button", name="Send").click)
    assert stage.sent(1)[0]["value"]["choice"] == "4" and len(stage.sent(1)[0]["value"]["region"]) == 9


def test_cannot_say_is_sent_without_the_marks(page: Page) -> None:
    stage = opened(page)
    draw(page, (9, 5), (18, 5))
    page.keyboard.press("x")
    assert page.locator(".marked-area").get_attribute("d") == ""
    send(page, lambda: page.keyboard.press("Enter"))
    assert stage.sent(1)[0]["value"] == {"choice": "cannot_say", "region": None}
    # The next task is fresh.
    assert (
        page.locator("input:checked").count() == 0 and page.locator(".marked-area").get_attribute("d") == ""
    )
    assert page.locator(".line").inner_text() == "Task 2 of 2"


def test_axe_finds_nothing_in_any_state_and_nothing_moves_by_itself(page: Page) -> None:
    opened(page)
    for state in states(page):
        assert axe_findings(page) == [], state
        for wish in WISHES:
            page.emulate_media(reduced_motion=wish)
            assert page.evaluate(MOTION) == STILL, (state, wish)


def test_a_theme_of_high_contrast_tells_what_is_chosen(page: Page) -> None:
    opened(page)
    draw(page, (4, 4), (20, 4))
    page.keyboard.press("2")
    for scheme in SCHEMES:
        page.emulate_media(forced_colors="active", color_scheme=scheme)
        tells_what_is_chosen(page, scheme)


def tells_what_is_chosen(page: Page, scheme: str) -> None:
    look = "e => { const s = getComputedStyle(e); return [s.backgroundColor, s.color].join() }"
    for chosen, other in (
        (".choice:nth-child(3)", ".choice:nth-child(4)"),
        ("[aria-pressed=true]", "[aria-pressed=false]"),
    ):
        assert page.locator(chosen).first.evaluate(look) != page.locator(other).first.evaluate(look)
    for control in page.locator(".choice, .mark-tool:not([aria-disabled]), .sending .button").all():
        for what, colour, behind in control.evaluate(COLOURS)["pairs"]:
            assert contrast(colour, behind) >= (4.5 if what == "text" else 3), (scheme, what)


def test_the_interface_is_whole_in_german(page: Page) -> None:
    german = USUAL[0].model_copy(update={"language": "de"})
    opened(page, (german, staged.DIGITS), language="de")
    assert page.locator(".line").inner_text() == "Aufgabe 1 von 2"
    for state in states(page):
        for size in ((1366, 625), (640, 400), (390, 844)):
            sized(page, size)
            assert faults_of(page, is_trial=False) == [], (state, size)
            assert unseen(page, state, size) == [], (state, size)
        sized(page, (1280, 800))


def test_marks_stay_when_the_time_of_the_picture_is_over(page: Page) -> None:
    shown = USUAL[0].model_copy(
        update={"presentation": USUAL[0].presentation.model_copy(update={"exposure_ms": 300})}
    )
    stage = opened(page, (shown, staged.DIGITS))
    page.locator('[data-sight="empty"]').wait_for(state="attached")
    draw(page, (9, 5), (18, 5))
    seen = "e => getComputedStyle(e).visibility"
    assert page.locator(".plate img").evaluate(seen) == "hidden"
    assert page.locator(".marked-area").evaluate(seen) == "visible"
    page.keyboard.press("7")
    send(page, lambda: page.keyboard.press("Enter"))
    [row] = stage.sent(1)
    assert len(row["value"]["region"]) > 10
    assert 250 <= row["shown_ms"] < row["rt_ms"]


def test_a_picture_that_is_no_square_is_marked_where_it_is(page: Page) -> None:
    """The grid lies over the picture, not over the square place that holds it."""
    task = staged.solve()
    task["content"]["image"] |= {"width_px": 640, "height_px": 320}
    stage = staged.Stage(page, staged.state(staged.facts(USUAL[0], legend=None), [task]))
    stage.open()
    page.locator(".plate:not([aria-disabled])").wait_for()
    plate, cells = (page.locator(place).bounding_box() for place in (".plate", ".cells"))
    assert plate is not None and cells is not None
    assert cells["width"] == pytest.approx(plate["width"]) == pytest.approx(2 * cells["height"])
    assert cells["y"] - plate["y"] == pytest.approx(plate["height"] / 4, abs=0.6)
