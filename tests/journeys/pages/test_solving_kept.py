"""What is begun of a task survives a reload, a lost connection and both, also in the middle of a stroke; in
Chromium, against a server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.canned import Canned, served, with_trials
from tests.journeys.pages.test_solving_form import at, cell, counted, draw
from tests.journeys.studies import staged

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

READY = ".solving:not([data-done]) .plate:not([aria-disabled])"
STROKES = {cell(column, row) for column in range(4, 9) for row in (4, 20)}
KEPT = """([sitting, words]) => new Promise((done) => {
    const opening = indexedDB.open("legible", 1);
    const look = () => {
        const asked = opening.result.transaction("notes").objectStore("notes").get([sitting, "draft"]);
        asked.onsuccess = () => (asked.result?.includes(words) ? done() : setTimeout(look, 5));
    };
    opening.onsuccess = look;
})"""
"""Resolves once the browser's disk has these words of what is begun."""


@pytest.fixture
def canned() -> Iterator[Canned]:
    with served(with_trials("solve", [staged.solve()["content"], staged.solve()["content"]])) as opened:
        yield opened


@pytest.fixture
def page(tab: Page) -> Page:
    return tab


def begin(page: Page, canned: Canned) -> None:
    """To the task, with the smallest brush."""
    page.goto(canned.url)
    go_on(page)
    page.get_by_role("button", name="Small").click()


def go_on(page: Page) -> None:
    page.locator("[data-page=block] .button.primary:not(:disabled)").click()
    page.wait_for_selector(READY)


def marked(page: Page) -> int:
    """How many cells the page shows as marked."""
    path = str(page.locator(".marked-area").get_attribute("d"))
    return sum(int(part.split("v")[0]) for part in path.split("h")[1:] if "v1" in part)


def solved(page: Page, canned: Canned, nth: int = 1) -> None:
    """Sends, and waits until the server has it."""
    page.locator(".solving").evaluate("e => e.dataset.done = '1'")
    with page.expect_response("**/session/responses/"):
        page.keyboard.press("Enter")
    assert len(canned.responses) == nth


def test_marks_and_answer_survive_a_reload(page: Page, canned: Canned) -> None:
    begin(page, canned)
    draw(page, (4, 4), (8, 4))
    draw(page, (4, 20), (8, 20))
    page.keyboard.press("7")
    page.evaluate(KEPT, [canned.name, '"choice\\":\\"7'])
    page.reload()
    words = page.locator("[data-page=block]").inner_text()
    assert "Welcome back" not in words, "it is the first trial of the part"
    go_on(page)
    assert page.locator("input:checked").get_attribute("value") == "7" and marked(page) == len(STROKES)
    page.keyboard.press("Control+z")
    page.keyboard.press("Control+y")
    solved(page, canned)
    [row] = canned.responses
    assert row["value"] == {"choice": "7", "region": sorted(STROKES)}
    assert counted(row["context"]) == (2, 1, "mouse", "keyboard")
    assert row["context"]["reloads"] == 1
    page.wait_for_selector(READY)
    assert marked(page) == 0, "the next task is fresh"


def test_a_stroke_survives_a_reload_in_its_middle(page: Page, canned: Canned) -> None:
    begin(page, canned)
    page.mouse.move(*at(page, 4, 4))
    page.mouse.down()
    page.mouse.move(*at(page, 8, 4), steps=4)
    page.evaluate(KEPT, [canned.name, "116"])
    page.reload()
    page.mouse.up()
    go_on(page)
    assert marked(page) == 5
    page.get_by_role("button", name="Undo").click()
    assert marked(page) == 0


def test_marking_goes_on_without_a_network_and_nothing_is_lost(page: Page, canned: Canned) -> None:
    begin(page, canned)
    draw(page, (4, 4), (8, 4))
    page.context.set_offline(True)
    page.locator(".strip:not([hidden])").wait_for()
    draw(page, (4, 20), (8, 20))
    page.keyboard.press("7")
    page.locator(".solving").evaluate("e => e.dataset.done = '1'")
    page.keyboard.press("Enter")
    page.wait_for_selector(READY)
    assert "1 answer is kept here" in page.locator(".strip").inner_text()
    assert canned.responses == []
    draw(page, (4, 4), (8, 4))
    with page.expect_response("**/session/responses/"):
        page.context.set_offline(False)
    page.locator(".strip[hidden]").wait_for(state="attached")
    assert [row["value"] for row in canned.responses] == [{"choice": "7", "region": sorted(STROKES)}]
    assert marked(page) == 5


def test_what_was_marked_without_a_network_survives_a_reload(page: Page, canned: Canned) -> None:
    """No page can be loaded without a network: the connection comes back, and then it is loaded anew."""
    begin(page, canned)
    page.context.set_offline(True)
    draw(page, (4, 4), (8, 4))
    draw(page, (4, 20), (8, 20))
    page.keyboard.press("7")
    page.evaluate(KEPT, [canned.name, '"choice\\":\\"7'])
    page.context.set_offline(False)
    page.reload()
    go_on(page)
    solved(page, canned)
    assert canned.responses[0]["value"] == {"choice": "7", "region": sorted(STROKES)}


def test_coming_back_to_a_begun_task_says_that_it_is_kept(page: Page, canned: Canned) -> None:
    begin(page, canned)
    draw(page, (4, 4), (8, 4))
    page.keyboard.press("3")
    solved(page, canned)
    page.wait_for_selector(READY)
    draw(page, (4, 4), (8, 4))
    page.evaluate(KEPT, [canned.name, '"trial":"2"'])
    canned.told["next"] = 1
    page.reload()
    words = page.locator("[data-page=block]").inner_text()
    assert "Welcome back" in words and "What you had begun there is kept too." in words
    go_on(page)
    assert marked(page) == 5
