"""No page of a task or of its review says who or what gives answers: in the tab, the metadata, the page, the
dialogs, and in what is only heard; in both languages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.experiments.definitions import definition
from tests.journeys.pages.blind_words import FORBIDDEN, told
from tests.journeys.studies import staged

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

SOURCE = {"name": "people", "role": "source"}
DESIGNS = {"solve": {"role": "solve"}, "review": {"role": "review", "solutions_from": "tasks"}}
CHECK = {
    "en": "This is not a picture question. Please press the key J.",
    "de": "Bitte drücken Sie die Taste J.",
}


@pytest.fixture
def page(tab: Page) -> Page:
    return tab


def stage_of(page: Page, role: str, language: str) -> staged.Stage:
    study = definition(
        {"classes": list(staged.DIGITS)},
        paradigm="blind_review",
        design=DESIGNS[role],
        conditions=[SOURCE],
        title="Digits in dots",
        language=language,
    )
    asked = staged.solve() if role == "solve" else staged.review()
    trials = [
        asked,
        staged.instructed(CHECK[language]),
        staged.solve() if role == "solve" else staged.review(),
    ]
    shown = staged.state(staged.facts(study, legend=None, instructions=""), trials)
    return staged.Stage(page, shown, one_by_one=role == "review")


@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize("role", DESIGNS)
def test_no_page_of_the_trials_tells_it(page: Page, role: str, language: str) -> None:
    stage = stage_of(page, role, language)
    words_of: dict[str, list[str]] = {}

    def look(name: str) -> None:
        words_of[name] = told(page)

    page.goto(stage.url)
    page.locator("[data-page=block] .button.primary:not(:disabled)").wait_for()
    look("the page before")
    stage.go_on("block")
    if role == "solve":
        page.locator(".plate:not([aria-disabled])").click()
        for key in ("Enter", "x", "7"):
            page.keyboard.press(key)
            look(f"the task, after {key}")
        page.locator(".solving").evaluate("e => e.dataset.done = '1'")
        page.keyboard.press("Enter")
    else:
        look("the review")
        stage.press("f")
    page.locator(".board .answer:not([aria-disabled])").first.wait_for()
    look("the check")
    for number, name in enumerate(("help", "leaving")):
        page.locator(".tool").nth(number).click()
        page.wait_for_selector("dialog[open]")
        look(name)
        page.keyboard.press("Escape")
    stage.press("j")
    page.wait_for_selector(".board, .solving")
    page.reload()
    page.locator("[data-page=block]").wait_for()
    look("coming back")
    assert {name: words for name, words in words_of.items() if words} == {}
    assert len(words_of) == (8 if role == "solve" else 6)


def plant(script: str) -> Callable[[Page], Any]:
    return lambda page: page.evaluate(script)


PLANTED = {
    "the tab": plant("document.title = 'Legible'"),
    "metadata": plant("document.querySelector('meta[name=robots]').name = 'legible'"),
    "the page": plant("document.querySelector('.ask').textContent = 'What did the AI say?'"),
    "a picture's name": plant("document.querySelector('img').alt = 'Explanation'"),
    "what is only heard": plant("document.querySelector('[aria-live]').textContent = 'model'"),
    "a button's name": plant("document.querySelector('.answer').setAttribute('aria-label', 'Predicted')"),
}


@pytest.mark.parametrize("where", PLANTED)
def test_a_word_that_was_planted_is_found(page: Page, where: str) -> None:
    stage = stage_of(page, "review", "en")
    stage.open()
    assert told(page) == []
    PLANTED[where](page)
    assert told(page) != []


def test_it_knows_such_words_from_others() -> None:
    for word in ("AI", "KI", "the model's", "Maschine", "predict", "explained", "Erklärung", "Legible"):
        assert FORBIDDEN.search(word), word
    for word in ("said", "Kind", "aid", "plain", "erkannt", "main", "Aida"):
        assert FORBIDDEN.search(word) is None, word
