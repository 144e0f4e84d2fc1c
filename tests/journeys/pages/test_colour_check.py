"""The colour check in Chromium against a server: by keyboard, touch and mouse, loaded again in
its middle, without a connection, in small windows, with axe, contrast and the words on its pages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from crowd.rehearsal.screens.study_copy import Stage
from crowd.rehearsal.screens.walker import PLATE, Walker
from experiments.models import Gate, Session, Study
from experiments.wording.smallest_window import PHONE, PlatePage, Window
from tests.experiments.checked import checked_study
from tests.experiments.gates.test_colour_check import FORBIDDEN
from tests.journeys.conftest import Site, serving
from tests.journeys.pages.test_browser_pages import AXE, overlap
from tests.journeys.pages.test_contrast import faults
from tests.journeys.sessions.visitor import FRESH, Visitor, violations
from tests.world import seen_plates

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser


@pytest.fixture
def study(
    transactional_db: None, store_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Study:
    return checked_study(tmp_path / "checked", monkeypatch, picture_px=320)


@pytest.fixture
def page(tab: Page) -> Page:
    return tab


class Reader(Visitor):
    """Looks at plates: `sees` holds what is answered to each question of the check."""

    sees: dict[str, str]

    def do_page(self, kind: str) -> None:
        if kind == "consent":
            self.tab_to(".tick input")
            self.page.keyboard.press("Space")
        if kind == "plates":
            self.choose("filter", self.sees["filter"])
        super().do_page(kind)

    def number(self) -> int:
        """Of the plate that is shown."""
        shown = re.search(r"\d+", self.page.locator(".line").inner_text())
        assert shown is not None
        return int(shown[0])

    def read(self, count: int = 12) -> None:
        """The next plates, by their keys."""
        for _ in range(count):
            self.page.wait_for_selector(FRESH)
            value = self.sees[f"plate-{self.number()}"]
            self.leave(".board")
            self.page.keyboard.press("n" if value == "nothing" else value)


def at(page: Page, number: int) -> None:
    """Waits for the plate of that number."""
    page.locator(".line").filter(has_text=re.compile(rf"\w {number} ")).wait_for()


def told(page: Page) -> str:
    """The page's words, with plain spaces."""
    return page.locator("main").inner_text().replace("\u00a0", " ")


@pytest.fixture
def reader(study: Study, page: Page) -> Reader:
    reader = Reader(page, [], {})
    reader.sees = seen_plates(study, "reduced")
    return reader


def address(server: Site, person: str) -> str:
    return f"{server.url}/join/tasks/?person={person}&submission={person}"


def to_plates(reader: Reader, server: Site, person: str = "ada") -> None:
    reader.arrive(address(server, person))
    reader.walk("plates")
    reader.step()
    reader.page.wait_for_selector(FRESH)


def test_what_is_pressed_is_what_is_stored_and_the_end_tells_it_on_request(
    study: Study, server: Site, reader: Reader
) -> None:
    """By the keyboard alone, to the last button."""
    to_plates(reader, server)
    reader.read()
    assert reader.walk("finish") == "finish"
    stored = Gate.objects.get(kind="plates")
    assert stored.value == reader.sees
    kept = Gate.objects.get(kind="plates_kept")
    assert kept.value == reader.sees and kept.created_at < stored.created_at
    page = reader.page
    assert "not a diagnosis" not in page.locator("main").inner_text()
    reader.tab_to(".check .button")
    page.keyboard.press("Enter")
    page.wait_for_selector(".check .prose")
    assert "fewer of the digits" in page.locator(".check").inner_text()
    reader.tab_to(".invite .button")
    page.keyboard.press("Enter")
    page.wait_for_selector(".invite .button", state="detached")
    assert Gate.objects.get(kind="invitation").value == {"agree": True}
    page.reload()
    page.wait_for_selector(".check .button")
    assert page.locator(".invite").count() == 0


def test_a_reload_in_the_middle_goes_on_with_the_next_plate(
    study: Study, server: Site, reader: Reader
) -> None:
    to_plates(reader, server)
    reader.read(4)
    at(reader.page, 5)
    # What is still on its way to the server is asked again.
    with reader.page.expect_response(lambda reply: "plate-5" in (reply.request.post_data or "")):
        reader.read(1)
    reader.page.reload()
    at(reader.page, 6)
    assert reader.page.locator("[data-page]").count() == 0
    reader.read(7)
    reader.walk("finish")
    assert Gate.objects.get(kind="plates").value == reader.sees


def test_without_a_connection_plates_go_on_and_are_stored_when_it_is_back(
    study: Study, server: Site, reader: Reader
) -> None:
    to_plates(reader, server)
    reader.page.context.set_offline(True)
    reader.read()
    reader.page.wait_for_selector(".strip:not([hidden])")
    assert not Gate.objects.filter(kind="plates").exists()
    reader.page.context.set_offline(False)
    reader.page.wait_for_selector("[data-page=finish]")
    assert Gate.objects.get(kind="plates").value == reader.sees


@pytest.fixture
def phone(browser: Browser) -> Iterator[Page]:
    width, height = PHONE
    context = browser.new_context(viewport={"width": width, "height": height}, has_touch=True)
    try:
        yield context.new_page()
    finally:
        context.close()


@pytest.mark.parametrize(
    "by",
    [
        "tap",
        pytest.param("click", marks=pytest.mark.long(stays="test_it_is_done_by_touch_or_by_the_mouse_alone")),
    ],
)
def test_it_is_done_by_touch_or_by_the_mouse_alone(study: Study, server: Site, phone: Page, by: str) -> None:
    """On a screen as large as the study asks for, and then on one as small as a phone's."""

    def press(selector: str) -> None:
        getattr(phone.locator(selector).first, by)()

    phone.set_viewport_size({"width": 1000, "height": 700})
    phone.goto(address(server, "tilda"))
    press("[data-page=consent] .tick")
    assert phone.locator(".tick input").is_checked()
    press(".button.primary")
    press("[data-page=plates] .option")
    press(".button.primary")
    phone.wait_for_selector(FRESH)
    width, height = PHONE
    phone.set_viewport_size({"width": width, "height": height})
    for name, value in list(seen_plates(study, "ordinary").items())[1:]:
        number = name.removeprefix("plate-")
        at(phone, int(number))
        for button in phone.locator(".answer").all():
            box = button.bounding_box()
            assert box is not None and box["width"] >= 44 and box["height"] >= 56
        press(f'{FRESH}[data-value="{value}"]')
    phone.wait_for_selector("[data-page=instructions]")
    assert Gate.objects.get(kind="plates").value == seen_plates(study, "ordinary")


def test_leaving_the_check_out_ends_politely_and_paid(study: Study, server: Site, reader: Reader) -> None:
    to_plates(reader, server)
    reader.read(3)
    page = reader.page
    at(page, 4)
    reader.tab_to(".tool:first-child")
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog[open]")
    page.keyboard.press("7")
    assert reader.number() == 4, "answer keys rest while it is asked"
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog", state="detached")
    reader.read(1)
    at(page, 5)
    reader.tab_to(".tool:first-child")
    page.keyboard.press("Enter")
    reader.tab_to("dialog .danger")
    page.keyboard.press("Enter")
    page.wait_for_selector("[data-page=finish]")
    said = told(page)
    assert "You are paid 1.00 USD, the full amount." in said and "no judgement" in said
    values = Gate.objects.filter(kind__startswith="plates").values_list("value", flat=True)
    assert list(values) == [{}, {}]
    assert page.locator(".tool").count() == 0


def test_no_tick_leaves_by_the_same_page(study: Study, server: Site, page: Page) -> None:
    page.goto(address(server, "una"))
    page.locator("[data-page=consent] .button.primary").click()
    page.wait_for_selector("[data-page=finish]")
    said = told(page)
    assert "You are paid 1.00 USD, the full amount." in said and "no judgement" in said
    assert Session.objects.get().verdict == "screened"
    page.locator(".check .button").click()
    page.wait_for_selector(".check .prose")
    assert "There is nothing to tell" in page.locator(".check").inner_text()


WINDOWS = ((1280, 800), (1920, 1080), (1366, 625), (700, 500), (640, 400), PHONE)
PLACES = """() => [".picture", ".ask", ".answers", ".line", ".tools"].map((place) => {
    const box = document.querySelector(place).getBoundingClientRect();
    return [box.left, box.top, box.right, box.bottom];
})"""


def test_a_plate_fits_every_window_that_is_let_in(study: Study, server: Site, reader: Reader) -> None:
    """Nothing below the fold or over something else; square, and at least half of its size."""
    to_plates(reader, server)
    page = reader.page
    plates = PlatePage(picture_px=320)
    least = (plates.needed(), plates.needed_upright())
    assert least == (Window(640, 400), Window(336, 476))
    assert any(window.holds(*PHONE) for window in least)
    for width, height in (*WINDOWS, *((w.width_px, w.height_px) for w in least)):
        page.set_viewport_size({"width": width, "height": height})
        boxes: list[Any] = page.evaluate(PLACES)
        for box in boxes:
            assert 0 <= box[0] < box[2] <= width and 0 <= box[1] < box[3] <= height, (width, height, box)
        pairs = [(a, b) for place, a in enumerate(boxes) for b in boxes[place + 1 :]]
        assert not [pair for pair in pairs if overlap(*pair)], (width, height)
        left, top, right, bottom = boxes[0]
        assert right - left == pytest.approx(bottom - top) and right - left >= 160
        assert page.evaluate("document.documentElement.scrollHeight") <= height


def test_axe_and_contrast_find_nothing(study: Study, server: Site, reader: Reader) -> None:
    axe, page = AXE.read_text(), reader.page

    def check(what: str) -> None:
        assert violations(page, axe) == [], what
        assert faults(page) == [], what

    reader.arrive(address(server, "axe"))
    reader.walk("consent")
    check("consent")
    reader.walk("plates")
    check("introduction")
    reader.step()
    page.wait_for_selector(FRESH)
    check("plate")
    page.locator(".tool").first.click()
    check("leaving it out")
    page.keyboard.press("Escape")
    reader.read()
    page.wait_for_selector("[data-page=finish]")
    check("end")
    page.locator(".check .button").click()
    page.wait_for_selector(".check .prose")
    check("result")


@pytest.mark.parametrize(
    "language",
    [pytest.param("en", marks=pytest.mark.long(stays="test_no_page_says_what_the_study_is_about")), "de"],
)
def test_no_page_says_what_the_study_is_about(
    language: str,
    transactional_db: None,
    store_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    page: Page,
) -> None:
    """What is seen, what a screen reader hears, and the title of the tab."""
    study = checked_study(tmp_path / "checked", monkeypatch, language=language, picture_px=320)
    said: list[str] = []

    def listen() -> None:
        said.append(page.locator("body").inner_text() + page.title())
        alts = "all => all.map(e => (e.alt ?? '') + ' ' + (e.ariaLabel ?? ''))"
        said.extend(page.eval_on_selector_all("img, [aria-label]", alts))
        said.append(page.locator("[aria-live]").all_inner_texts().__repr__())

    with serving() as server:
        page.goto(address(server, "lea"))
        page.wait_for_selector("[data-page=consent]")
        listen()
        page.locator(".tick input").check()
        page.locator(".button.primary").click()
        page.locator("input[value=off]").check()
        listen()
        page.locator(".button.primary").click()
        for number, (name, value) in enumerate(seen_plates(study, "reduced").items()):
            if name == "filter":
                continue
            at(page, number)
            page.wait_for_selector(FRESH)
            listen()
            page.keyboard.press("n" if value == "nothing" else value)
        page.wait_for_selector("[data-page=finish]")
        listen()
        page.locator(".check .button").click()
        page.wait_for_selector(".check .prose")
        page.locator(".invite .button").first.click()
        page.wait_for_selector(".invite .button", state="detached")
        listen()
    text = "\n".join(said)
    assert len(said) > 16 and "1" in text
    assert re.findall(rf"\b({FORBIDDEN[language]})\b", text, re.IGNORECASE) == []


def test_the_picture_walk_reads_the_plates(study: Study, server: Site, page: Page) -> None:
    """Up to the trials, whose pages another part of the page shows."""
    stage = Stage(study, "en")
    looked: list[str] = []
    walker = Walker(page, server.url, stage, {}, lambda shown, screen: looked.append(screen.key))
    walker.arrive()
    walker.gates(until="instructions")
    assert looked == [PLATE.key]
    assert Gate.objects.get(kind="plates").value == seen_plates(study, "ordinary")
