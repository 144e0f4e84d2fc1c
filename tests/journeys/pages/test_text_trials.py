"""Texts and guesses in a browser: nothing moves, every shade can be read, marks change only the grey."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.experiments.definitions import definition
from tests.journeys.pages.geometry import axe_findings, faults_of
from tests.journeys.pages.test_contrast import COLOURS as BUTTON
from tests.journeys.pages.test_contrast import contrast
from tests.journeys.studies import staged

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, ViewportSize

pytestmark = pytest.mark.browser

TWO = ("negative", "positive")
BINS = ("5–8 words", "9–12 words", "13–16 words", "17–20 words", "21–25 words", "26–28 words")
SHADES = [n / 10 for n in range(1, 11)]
FILM = (
    "A ", ("touching", 1.0), " , if  somewhat predictable, film about ", ("two", 0.35),
    " friends who never ", ("quite", 0.7), " grow up; it is funnier than it sounds and sadder than it looks.",
)  # fmt: skip
PLAIN = "".join(piece if isinstance(piece, str) else piece[0] for piece in FILM)
SCRIPTS: dict[str, tuple[str | tuple[str, float], ...]] = {
    "Chinese": ("早上好，请", ("退还", 1.0), "台灯的", ("钱", 0.4), "，我昨天还没有收到。"),
    "Arabic": ("صباح الخير، أعيدوا إليّ ", ("ثمن", 1.0), " المصباح، ف", ("لم", 0.4), "أستلمه أمس."),
    "Thai": ("สวัสดีครับ กรุณา", ("คืน", 1.0), ("เงิน", 0.4), "ค่าโคมไฟ ผมยังไม่ได้รับของ"),
}
"""Words as `units = "words"` cuts them; one of the Arabic is marked in part, as if by tokens of a model."""
WINDOWS = ((390, 844, 1), (700, 500, 1), (1366, 625, 1), (1280, 800, 1), (640, 400, 2))
"""A phone, a small window, a laptop's, a desktop's, and 1280 x 800 at 200 %."""
PLACES = """() => [".text p", ".ask", ".answers", ".answer"]
    .flatMap(place => [...document.querySelectorAll(place)].map(e => {
        const { left, top, right, bottom } = e.getBoundingClientRect();
        return [place, left, top, right, bottom];
    }))"""
LETTERS = """() => {
    const p = document.querySelector(".text p"), out = [];
    const walker = document.createTreeWalker(p, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode())
        for (let at = 0; at < node.length; at += 1) {
            const range = document.createRange();
            range.setStart(node, at); range.setEnd(node, at + 1);
            const { left, top } = range.getBoundingClientRect();
            out.push([node.data[at], left, top]);
        }
    return out;
}"""
COLOURS = """() => [...document.querySelectorAll(".shaded")].map(word => {
    const rgb = text => text.match(/[\\d.]+/g).map(Number);
    const style = getComputedStyle(word), paper = getComputedStyle(word.closest("p"));
    return { text: rgb(style.color), behind: rgb(style.backgroundColor), paper: rgb(paper.backgroundColor),
             frame: style.outlineStyle === "none" ? 0 : parseFloat(style.outlineWidth) };
})"""


@contextmanager
def trial(
    tab: Page, answers: tuple[str, ...], text: dict[str, Any], window: tuple[int, int, int]
) -> Iterator[staged.Stage]:
    """A guess and then a test of the same text."""
    width, height, zoom = window
    browser = tab.context.browser
    assert browser is not None
    shown = definition({"classes": list(answers)}, paradigm="reverse_turing")
    state = staged.state(
        staged.facts(shown, legend=None), [staged.guess(answers, text), staged.predict(answers, text=text)]
    )
    size: ViewportSize = {"width": width, "height": height}
    page = tab if zoom == 1 else browser.new_page(viewport=size, device_scale_factor=zoom)
    page.set_viewport_size(size)
    stage = staged.Stage(page, state)
    stage.open()
    yield stage
    if page is not tab:
        page.close()


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("answers", [TWO, BINS], ids=len)
def test_nothing_moves_when_the_answer_is_revealed_and_all_is_in_sight(
    tab: Page, answers: tuple[str, ...], window: tuple[int, int, int]
) -> None:
    with trial(tab, answers, staged.sentence(*FILM), window) as stage:
        page = stage.page
        page.locator(".answer:not([aria-disabled])").first.wait_for()
        before = page.evaluate(PLACES)
        assert faults_of(page, is_trial=True) == []
        stage.guess(str(page.locator(".answer").first.get_attribute("aria-keyshortcuts")))
        assert page.evaluate(PLACES) == before
        assert faults_of(page, is_trial=True) == [] and axe_findings(page) == []
        assert page.evaluate("document.documentElement.scrollHeight") <= window[1]
        width = page.locator(".text p").bounding_box()
        assert width is not None and width["width"] <= 640
        button = page.locator(".next").bounding_box()
        assert button is not None and button["height"] >= 44 and button["width"] >= 44
        stage.press("Space")
        page.locator("[data-page=untold]").wait_for()
        assert faults_of(page, is_trial=False) == [] and axe_findings(page) == []
        stage.go_on("untold")
        # The test that follows has its text and its buttons at the same places.
        page.locator(".answer:not([aria-disabled])").first.wait_for()
        assert page.evaluate(PLACES) == before


@pytest.mark.parametrize("name", ["English", *SCRIPTS])
def test_marks_move_no_letter(tab: Page, name: str) -> None:
    """Also not within words that are written joined, such as Arabic ones."""
    places = []
    pieces = {"English": FILM, **SCRIPTS}[name]
    plain = "".join(piece if isinstance(piece, str) else piece[0] for piece in pieces)
    for text in (staged.sentence(*pieces), staged.sentence(plain)):
        with trial(tab, TWO, text, (700, 500, 1)) as stage:
            assert stage.page.locator(".text p").evaluate("p => p.textContent") == plain
            places.append(stage.page.evaluate(LETTERS))
    assert "".join(letter for letter, *_ in places[0]) == plain
    for marked, other in zip(*places, strict=True):
        assert marked[1:] == pytest.approx(other[1:], abs=0.51), marked


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_trial_in_another_script_reads_in_its_direction_and_goes_by_keys(tab: Page, name: str) -> None:
    with trial(tab, TWO, staged.sentence(*SCRIPTS[name]), (1280, 800, 1)) as stage:
        page = stage.page
        assert page.evaluate("document.documentElement.dir") == "ltr", "the page's own words are English"
        first, second = (left for _, left, _ in page.evaluate(LETTERS)[:2])
        assert (first > second) == (name == "Arabic")
        assert len(page.evaluate(COLOURS)) == sum(isinstance(piece, tuple) for piece in SCRIPTS[name])
        assert "Marked, the darkest first: " in page.locator("main").aria_snapshot()
        assert faults_of(page, is_trial=True) == []
        stage.guess("j")
        assert faults_of(page, is_trial=True) == []
        stage.press("Space")
        stage.go_on("untold")
        stage.press("f")
        assert [row["value"]["choice"] for row in stage.sent(2)] == ["positive", "negative"]


def test_letters_can_be_read_on_every_shade(tab: Page) -> None:
    text = staged.sentence("plain ", *((f"word{n} ", shade) for n, shade in enumerate(SHADES)))
    with trial(tab, TWO, text, (1280, 800, 1)) as stage:
        seen = [word for word in stage.page.evaluate(COLOURS) if word["behind"]]
        greys = {word["behind"][0]: contrast(word["text"], word["behind"]) for word in seen}
        assert len(greys) == len(SHADES) and min(greys.values()) >= 4.5
        assert {word["frame"] for word in seen} == {0}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_theme_of_high_contrast_shows_frames_in_place_of_greys(tab: Page, scheme: Any) -> None:
    text = staged.sentence("plain ", *((f"word{n} ", shade) for n, shade in enumerate(SHADES)))
    with trial(tab, TWO, text, (1280, 800, 1)) as stage:
        stage.page.emulate_media(forced_colors="active", color_scheme=scheme)
        words = stage.page.evaluate(COLOURS)[::2]
        assert all(contrast(word["text"], word["paper"]) >= 4.5 for word in words)
        frames = [word["frame"] for word in words]
        assert frames == sorted(frames) and frames[0] >= 1 and frames[-1] > frames[0]
        stage.guess("f")
        marks = [mark.inner_text() for mark in stage.page.locator(".verdict").all()]
        assert marks == ["✗", "✓"]
        for control in stage.page.locator(".answer, .next").all():
            pairs = control.evaluate(BUTTON)["pairs"]
            assert pairs and all(contrast(a, b) >= 4.5 for what, a, b in pairs if what == "text"), pairs


def test_a_screen_reader_meets_text_and_marks_and_no_answer(tab: Page) -> None:
    with trial(tab, TWO, staged.sentence(*FILM), (1280, 800, 1)) as stage:
        tree = stage.page.locator("main").aria_snapshot()
        assert "Marked, the darkest first: touching, quite, two." in tree
        assert "answer: positive" not in tree
        stage.guess("f")
        tree = stage.page.locator("main").aria_snapshot()
        assert "positive" in tree and "negative (your answer)" in tree and "positive (right answer)" in tree


def test_a_finger_goes_through_guess_and_reveal(browser: Browser) -> None:
    shown = definition({"classes": list(TWO)}, paradigm="reverse_turing")
    state = staged.state(staged.facts(shown), [staged.guess(TWO, staged.sentence(PLAIN))] * 2)
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True)
    stage = staged.Stage(context.new_page(), state)
    stage.open()
    stage.page.locator(".answer:not([aria-disabled])").first.tap()
    first = stage.page.locator(".next")
    first.wait_for()
    stage.page.locator(".board").evaluate("board => board.dataset.done = '1'")
    first.tap()
    stage.page.wait_for_selector(".board:not([data-done]) .answer:not([aria-disabled])")
    [row] = stage.sent(1)
    assert row["value"] == {"choice": "negative"} and row["context"]["input"] == "touch"
    context.close()
