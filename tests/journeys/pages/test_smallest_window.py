"""A whole trial fits the smallest window that a study lets in: the server's reckoning against the page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from experiments.definition.study import DeviceTable
from experiments.kinds import get_kind
from experiments.wording.smallest_window import (
    NAMED_LINE_PX,
    PHONE,
    STACKED_MAX_PX,
    TEXT_CHARACTERS,
    board_of,
    windows_of,
)
from tests.experiments.definitions import definition
from tests.journeys.studies import staged
from tests.toy.tables import registered

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

PLACES = (".stimuli, .pictures, .text, .pair", ".picture", ".text p",
          ".ask:not(.told), .ask.told > *", ".answer", ".reservoir",
          ".tool", ".line")  # fmt: skip
BOXES = """places => places.flatMap(place => [...document.querySelectorAll(place)].map(e => {
    const box = e.getBoundingClientRect();
    return [place, box.left, box.top, box.right, box.bottom];
})).filter(box => box[3] > box[1])"""
INSIDE = """() => [...document.querySelectorAll(".ask, .answer")].filter(
    e => e.scrollWidth > e.clientWidth || e.scrollHeight > e.clientHeight).map(e => e.textContent)"""
SIZES = "all => all.map(e => e.getBoundingClientRect().width)"
SLACK_PX = 90
"""What the reckoning may ask for too much: between the lower frame and the higher one no window is let in."""
MOST_OF_A_TILE_PX = 100
GERMAN = "Dies ist keine Bildfrage. Bitte drücken Sie die Taste J."
Box = tuple[str, float, float, float, float]
Size = tuple[int, int]
COMMON: tuple[Size, ...] = ((1366, 625), (1280, 800), (640, 400), (1920, 1080))
"""1280 x 800 at 200 % is 640 x 400."""
ROOMY: tuple[Size, ...] = ((1280, 800), (1920, 1080), (1024, 768))
NARROW: tuple[Size, ...] = ((572, 378), (640, 400), (1366, 625), (390, 664))


@pytest.fixture
def page(tab: Page) -> Page:
    return tab


def study(design: dict[str, Any], classes: tuple[str, ...] = ("husky", "wolf"), **tables: Any) -> Any:
    return definition({"classes": list(classes)}, design=design, **tables)


LONG = ("Flat-coated retriever", "German short-haired pointer")
BINS = tuple(
    f"{first}–{last} words"
    for first, last in zip((5, 9, 13, 17, 21, 26), (8, 12, 16, 20, 25, 28), strict=True)
)
FOUR = ("husky", "wolf", "golden retriever", "fox terrier")


def decided(classes: tuple[str, ...]) -> Any:
    conditions = [{"name": "alone", "role": "baseline"}, {"name": "told", "role": "advice"}]
    design = {"advice_accuracy": 0.5}
    return study(design, classes, paradigm="assisted_decision", conditions=conditions)


STUDIES = {
    "two answers": study({}),
    "no examples": study({"reservoir": "off"}),
    "long answers": study({}, LONG),
    "four answers": study({}, FOUR),
    "seven answers": study({}, (*FOUR, "beagle", "collie", "pug")),
    "overlay": study({"display": "overlay"}),
    "overlay, always": study({"display": "overlay", "reservoir": "always"}),
    "large pictures": study({"picture_px": 512}),
    "small pictures": study({"picture_px": 96}),
    "tests explained": study({"test_explanations": True, "reservoir": "always"}),
    "decided twice": decided(("husky", "wolf")),
    "decided twice, long answers": decided(LONG),
    "decided twice, four answers": decided(FOUR),
    "texts": study({}, paradigm="reverse_turing"),
    "texts, six answers": study({}, BINS, paradigm="reverse_turing"),
    "texts, twenty answers": study({}, tuple(f"Class {n}" for n in range(1, 21)), paradigm="reverse_turing"),
}


def trials(shown: Any) -> list[dict[str, Any]]:
    texts = [text for _, text in shown.choices]
    if shown.paradigm == "assisted_decision":
        twice = [staged.decide(texts), staged.decide(texts, max(texts, key=len), is_second=True)]
        return [staged.guess(texts), *twice, staged.instructed(GERMAN)]
    is_explained = bool(shown.design.get("test_explanations"))
    read = staged.words(TEXT_CHARACTERS) if board_of(shown).has_texts else None
    if read is not None:
        return [staged.guess(texts, read), staged.predict(texts, text=read), staged.instructed(GERMAN)]
    return [
        staged.learn(max(texts, key=len)),
        staged.predict(texts, explained=is_explained),
        staged.instructed(GERMAN),
    ]


def boards(page: Page, shown: Any, size: Size) -> Iterator[str]:
    """Every kind of trial of a study, one after the other, from a window of that size, which is kept."""
    sized(page, size)
    rows = trials(shown)
    is_alone = any(get_kind(row["kind"]).is_alone for row in rows)
    stage = staged.Stage(page, staged.state(staged.facts(shown), rows), one_by_one=is_alone)
    stage.open()
    for row in rows:
        # Between two trials the page is blank, and nothing is wrong with it.
        page.wait_for_selector(".board :is(.answer, .next)")
        yield row["kind"]
        sized(page, size)
        key = page.locator(".answer").first.get_attribute("aria-keyshortcuts") or ""
        is_guess = row["content"].get("label", "") is None
        if is_guess:
            stage.guess(key)
            yield "revealed"
            sized(page, size)
        if row is not rows[-1]:
            stage.press("Space" if is_guess else key)
        if is_guess and not is_alone:
            stage.go_on("untold")


def sized(page: Page, size: Size) -> None:
    page.set_viewport_size({"width": size[0], "height": size[1]})


def faults_in(page: Page, size: Size) -> list[object]:
    """What is wrong in a window of that size."""
    sized(page, size)
    return faults(page, size)


def faults(page: Page, size: Size) -> list[object]:
    """What lies outside the window, what overlaps, what is cut, and whether the page scrolls."""
    width, height = size
    boxes: list[Box] = page.evaluate(BOXES, list(PLACES[1:]))
    out: list[object] = [
        box for box in boxes if box[1] < 0 or box[2] < 0 or box[3] > width + 0.5 or box[4] > height + 0.5
    ]
    out += [
        (a, b)
        for i, a in enumerate(boxes)
        for b in boxes[i + 1 :]
        if a[1] < b[3] - 0.5 and b[1] < a[3] - 0.5 and a[2] < b[4] - 0.5 and b[2] < a[4] - 0.5
    ]
    out += page.evaluate(INSIDE)
    scrolled = page.evaluate(
        "() => [document.documentElement.scrollWidth, document.documentElement.scrollHeight]"
    )
    if scrolled[0] > width or scrolled[1] > height:
        out.append(("scrolls", scrolled))
    return out


@pytest.mark.parametrize("name", STUDIES)
def test_a_whole_trial_fits_the_window_that_is_computed(page: Page, name: str) -> None:
    """Upright like a phone, too, with the examples below the answers. In a lower one, something does not."""
    shown = STUDIES[name].model_copy(update={"device": DeviceTable(phones=True)})
    wide, upright = windows_of(shown)
    windows = (wide, *([upright] if upright.width_px <= STACKED_MAX_PX else []))
    # Answers that are named are reckoned in wide letters, which may take a line more for each of them.
    slack = SLACK_PX + board_of(shown).says * NAMED_LINE_PX
    too_low = {(window.width_px, window.height_px - slack) for window in windows}
    for board in boards(page, shown, (wide.width_px, wide.height_px)):
        for window in windows:
            size = (window.width_px, window.height_px)
            assert faults_in(page, size) == [], (name, board, size)
            drawn = page.eval_on_selector_all(".picture img", SIZES)
            assert all(px >= board_of(shown).least_px for px in drawn), (board, drawn)
        too_low -= {lower for lower in too_low if faults_in(page, lower)}
    assert too_low == set(), "in none of these is anything wrong"


def test_a_whole_trial_fits_common_windows_and_asks_where_every_trial_asks(page: Page) -> None:
    """Two answers more need no other place, if the window has room for them; and the middle stays also in a
    window that is narrower than the board with the examples on both sides."""
    shown = STUDIES["two answers"]
    assert all(windows_of(shown)[0].holds(*size) for size in COMMON)
    places: dict[Size, dict[str, tuple[float, float]]] = {}
    for board in boards(page, shown, COMMON[0]):
        for size in COMMON:
            assert faults_in(page, size) == [], (board, size)
        for size in {*ROOMY, *NARROW}:
            sized(page, size)
            places.setdefault(size, {})[board] = place_of_question(page)
    assert all(set(of) == {"learn", "predict", "instructed"} for of in places.values())
    for size in ROOMY:
        assert len({top for _, top in places[size].values()}) == 1, (size, places[size])
    for size in NARROW:
        middles = [middle for middle, _ in places[size].values()]
        assert max(middles) - min(middles) < 1, (size, middles)


@pytest.mark.parametrize("name", ["two answers", "overlay"])
def test_a_whole_trial_fits_a_phone_if_the_study_lets_it_in(page: Page, name: str) -> None:
    shown = STUDIES[name]
    assert not any(window.holds(*PHONE) for window in windows_of(shown))
    allowed = shown.model_copy(update={"device": DeviceTable(phones=True)})
    assert any(window.holds(*PHONE) for window in windows_of(allowed))
    for board in boards(page, shown, PHONE):
        assert faults(page, PHONE) == [], board
        if page.locator(".reservoir-toggle").count():
            before = page.evaluate(BOXES, list(PLACES))
            page.locator(".reservoir-toggle").click()
            assert page.evaluate(BOXES, list(PLACES)) == before
            assert page.locator(".tile").first.bounding_box()["y"] < PHONE[1] - MOST_OF_A_TILE_PX  # type: ignore[index]


def test_a_pair_below_a_text_fits_the_window_that_is_computed(page: Page, toy_page: Path) -> None:
    content = {
        **{"text": staged.words(TEXT_CHARACTERS), "pair": [staged.media("i"), staged.media("i")]},
        "choices": staged.choices(["One", "Several", "Unsure"]),
    }
    trial = {"kind": "sort", "phase": "test", "content": content}
    with registered():
        shown = study({}, ("one", "several", "unsure"), paradigm="toy")
        [window] = windows_of(shown)
        facts = staged.facts(shown)
        size = (window.width_px, window.height_px)
        sized(page, size)
        stage = staged.Stage(page, staged.state(facts, [trial]), toy_page)
        stage.open()
        stage.close()
    assert page.locator(".pair img").count() == 2
    assert faults(page, size) == []
    assert min(page.eval_on_selector_all(".picture img", SIZES)) >= facts["picture_px"] / 2
    lower = (size[0], size[1] - SLACK_PX)
    assert faults_in(page, lower) != []


def place_of_question(page: Page) -> tuple[float, float]:
    """The middle of the question, and its upper edge."""
    box = page.locator(".ask").bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"]


def test_a_phone_answers_by_touch(browser: Browser) -> None:
    shown = STUDIES["two answers"]
    size = {"width": PHONE[0], "height": PHONE[1]}
    context = browser.new_context(viewport=size, has_touch=True, is_mobile=True, device_scale_factor=3)  # type: ignore[arg-type]
    page = context.new_page()
    stage = staged.Stage(page, staged.state(staged.facts(shown), trials(shown)))
    stage.open()
    for answer in (".answer", ".answer >> nth=1", ".answer >> text=J >> nth=0"):
        page.locator(".answer:not([aria-disabled])").first.wait_for()
        board = page.locator(".board").element_handle()
        page.locator(answer).first.tap()
        board.wait_for_element_state("hidden")
    rows = stage.sent(3)
    assert [row["value"].get("choice") for row in rows] == [None, "wolf", "j"]
    assert {row["context"]["input"] for row in rows} == {"touch"}
    assert {row["context"]["pixel_ratio"] for row in rows} == {3}
    context.close()
