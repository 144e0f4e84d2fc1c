"""A session in a language of the study's own that is written from right to left: nothing is said in English,
the frame is mirrored, and the sides of answers and pictures are not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from experiments.models import Response, Study
from experiments.wording.sentence_tables import page_table_of, sentences_in
from tests.experiments.wording.test_language_file import whole_file
from tests.journeys.conftest import Site
from tests.journeys.sessions.visitor import Visitor
from tests.world import opened_study, write_study

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser
FRESH = ".board:not([data-done])"
LETTER = "\N{ARABIC LETTER DAD}"
LISTEN = """
window.said = new Set();
new MutationObserver(() => {
    const walk = document.createTreeWalker(document.documentElement, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) window.said.add(walk.currentNode.data);
    for (const e of document.querySelectorAll("[aria-label]")) window.said.add(e.ariaLabel);
}).observe(document, { childList: true, characterData: true, attributes: true, subtree: true });
"""
"""Keeps every text that the page shows at any moment."""


@pytest.fixture
def study(page: Page, transactional_db: None, tmp_path: Path, store_folder: Path) -> Study:
    path = write_study(tmp_path / "small", picture_px="picture_px = 320", blocks="blocks = 1")
    path.write_text(path.read_text() + '[interface]\nwords = "ar.toml"\n')
    (path.parent / "ar.toml").write_text(whole_file("ar-EG", LETTER))
    return opened_study(path)


def left_edges(page: Page, selector: str) -> list[float]:
    return [box["x"] for each in page.locator(selector).all() if (box := each.bounding_box()) is not None]


def test_a_session_from_right_to_left(page: Page, study: Study, server: Site) -> None:
    page.add_init_script(LISTEN)
    quiz = {question["id"]: question["answer"] for question in study.definition["quiz"]}
    visitor = Visitor(page, [row["answer"] for row in study.practice if not row["example"]], quiz)
    visitor.arrive(f"{server.url}/join/small/?person=ada&submission=s-ada")
    root = page.locator("html")
    assert (root.get_attribute("lang"), root.get_attribute("dir")) == ("ar-EG", "rtl")
    visitor.walk("consent")
    assert page.locator(".button.primary").inner_text() == f"{LETTER} consent.agree"
    agree, decline = left_edges(page, ".actions .button")
    assert agree > decline, "the first button is at the side where reading begins"
    while page.locator(f"{FRESH} .answer").count() < 2 or visitor.practised < len(visitor.practice):
        if (pictures := page.locator(f"{FRESH} .pictures")).count():
            # Some people see one, and others the explanation at its right.
            assert pictures.evaluate("row => getComputedStyle(row).direction") == "ltr"
        visitor.step()
        visitor.settle()
    answers = page.locator(f"{FRESH} .answer")
    first, second = left_edges(page, f"{FRESH} .answer")
    assert [each.get_attribute("aria-keyshortcuts") for each in answers.all()] == ["f", "j"]
    assert first < second
    page.keyboard.press("f")
    visitor.leave(".board")
    visitor.settle()
    page.locator(".tool").last.click()
    page.locator("dialog .button.danger").click()
    page.wait_for_selector("[data-page=finish]")
    assert page.locator("h1").inner_text() == f"{LETTER} finish.left_title"
    pressed = Response.objects.order_by("received_at").last()
    assert pressed is not None and pressed.context["side"] == "left"
    said = {text.strip() for text in page.evaluate("[...window.said]")}
    assert {f"{LETTER} {key}" for key in ("connecting", "skip", "leave.title", "finish.left_title")} <= said
    english = {text for _, text in sentences_in(page_table_of("en")) if len(text) > 3 and "{" not in text}
    assert said & english == set()
