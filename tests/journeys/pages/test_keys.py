"""Keys of one's choice: printed on the buttons at once, kept over a reload, followed by checks, recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.experiments.definitions import definition
from tests.journeys.studies import staged

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

ENGLISH = "This is not a picture question. Please press the key F."


@pytest.fixture
def page(tab: Page) -> Page:
    return tab


def printed(page: Page) -> list[str]:
    return page.locator(".answer kbd").all_inner_texts()


def change(page: Page, *mine: str) -> None:
    """Opens the help over the trial, and chooses keys there by the keyboard."""
    page.locator(".tool").first.click()
    page.locator(".keys summary").click()
    for row, key in enumerate(mine):
        page.locator(".key-row input").nth(row).focus()
        page.keyboard.press(key)
    page.locator(".keys .button").first.click()


def close(page: Page) -> None:
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog", state="detached")


def test_chosen_keys_are_printed_at_once_and_answer(page: Page) -> None:
    texts = ["Husky", "Wolf"]
    trials = [staged.predict(texts), staged.instructed(ENGLISH), staged.predict(texts), staged.predict(texts)]
    stage = staged.Stage(page, staged.state(staged.facts(definition()), trials))
    stage.open()
    assert printed(page) == ["F", "J"]

    change(page, "a", "a")
    assert page.locator(".mistake").inner_text() == "Each answer needs a key of its own."
    close(page)
    assert printed(page) == ["F", "J"]
    change(page, "a", "/")
    assert "letter or digit" in page.locator(".mistake").inner_text()
    close(page)
    change(page, "a", "d")
    assert printed(page) == ["A", "D"]
    close(page)
    page.keyboard.press("f")  # is no answer any more
    stage.press("d")

    # D answers for J, so the check has J in its place; F is pressed as A, and the sentence says so.
    assert printed(page) == ["J", "A", "D", "K"]
    assert page.locator(".answer-text").all_inner_texts() == printed(page)
    assert page.locator(".ask").inner_text() == ENGLISH.replace("key F", "key A")
    stage.press("a")
    rows = stage.sent(2)
    assert [(row["trial"], row["value"]["choice"]) for row in rows] == [("t0", "wolf"), ("t1", "f")]
    assert [row["context"]["keys"] for row in rows] == ["ad", "jadk"]
    assert [row["context"]["key"] for row in rows] == ["d", "a"]

    stage.open()
    assert printed(page) == ["A", "D"]
    stage.press("a")
    change(page, "f", "j")
    assert printed(page) == ["F", "J"]
    close(page)
    stage.press("j")
    rows = stage.sent(4)
    assert [row["value"]["choice"] for row in rows[2:]] == ["husky", "wolf"]
    assert "keys" not in rows[-1]["context"]


def test_keys_are_chosen_on_the_instructions_too_and_only_if_there_are_any(page: Page) -> None:
    shown = {"kind": "instructions", "digest": "d", "html": "<h2>Look</h2>", "questions": []}
    facts = staged.facts(definition())
    staged.Stage(page, staged.state(facts, step="instructions", page=shown, block=None)).open()
    page.locator("[data-page=instructions] .keys summary").wait_for()
    none = {**facts, "keys": []}
    staged.Stage(page, staged.state(none, step="instructions", page=shown, block=None)).open()
    page.locator("[data-page=instructions] .button.primary").wait_for()
    assert page.locator(".keys").count() == 0
