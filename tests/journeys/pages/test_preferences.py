"""What a person set in the system is respected: no motion at all, colours of high contrast, names for a
screen reader that tell what the page tells and no more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import pytest

from tests.experiments.definitions import definition
from tests.journeys.pages.test_contrast import COLOURS, contrast
from tests.journeys.studies import staged

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

TEXTS = ["Husky", "Wolf"]
MOTION = """() => ({
    running: document.getAnimations().length,
    declared: [...document.querySelectorAll('*')].filter(e => {
        const s = getComputedStyle(e);
        const lasts = `${s.transitionDuration},${s.animationDuration}`.split(',');
        return lasts.some(time => parseFloat(time) > 0) || s.scrollBehavior === 'smooth';
    }).map(e => e.className),
})"""
LOOK = "e => { const s = getComputedStyle(e); return [s.color, s.backgroundColor, s.borderColor].join() }"
STILL = {"running": 0, "declared": []}
WISHES: tuple[Literal["reduce", "no-preference"], ...] = ("reduce", "no-preference")
SCHEMES: tuple[Literal["dark", "light"], ...] = ("dark", "light")


@pytest.fixture
def page(tab: Page) -> Page:
    return tab


def trial(page: Page, **changes: Any) -> staged.Stage:
    facts = staged.facts(definition(), **changes)
    stage = staged.Stage(page, staged.state(facts, [staged.learn("Husky"), staged.predict(TEXTS)]))
    stage.open()
    return stage


def stands_still(page: Page) -> None:
    for wish in WISHES:
        page.emulate_media(reduced_motion=wish)
        assert page.evaluate("w => matchMedia(`(prefers-reduced-motion: ${w})`).matches", wish)
        assert page.evaluate(MOTION) == STILL, wish


def test_nothing_moves_whatever_is_wished_and_what_moves_is_seen(page: Page) -> None:
    stage = trial(page)
    stands_still(page)
    stage.press("Space")
    page.locator(".reservoir-toggle").click()
    page.locator(".tile").last.click()
    stands_still(page)
    page.locator(".tool").first.click()
    stands_still(page)
    page.add_style_tag(content=".answer { transition: background 0.2s }")
    assert page.evaluate(MOTION)["declared"] != []


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_theme_of_high_contrast_tells_every_state_of_an_answer(page: Page, scheme: Any) -> None:
    page.emulate_media(forced_colors="active", color_scheme=scheme)
    trial(page, min_view_ms=3_600_000)
    looks = []
    for change in ("", "removeAttribute('aria-disabled')", "classList.add('pressed')"):
        if change:
            page.eval_on_selector(".answer", f"e => e.{change}")
        looks.append(page.eval_on_selector(".answer", LOOK))
        pairs = page.eval_on_selector(".answer", COLOURS)["pairs"]
        assert all(contrast(a, b) >= 4.5 for what, a, b in pairs if what == "text"), (change, pairs)
    assert len(set(looks)) == len(looks)
    legend = page.eval_on_selector(".legend-bar", "e => getComputedStyle(e).backgroundImage")
    assert "253, 231, 37" in legend


def test_a_screen_reader_hears_what_the_page_shows(page: Page) -> None:
    """Pictures by their alternative texts, a text as a text, the scale of colours in words, answers by their
    texts; the same names with an explanation as without, but for the explanation's own."""
    shown = staged.state(staged.facts(definition()), [staged.learn("Husky"), staged.predict(TEXTS)])
    shown["block"]["examples"][0]["explanation"] = staged.media("x", "Bars: fur .4")
    stage = staged.Stage(page, shown)
    stage.open()
    tree = page.locator("main").aria_snapshot()
    assert tree.count('img "Picture"') == 2 and "less important" in tree and "Husky" in tree
    stage.press("Space")
    tree = page.locator("main").aria_snapshot()
    assert 'group "Answers"' in tree and 'button "Husky"' in tree and 'button "Wolf"' in tree
    page.locator(".reservoir-toggle").click()
    tree = page.locator("main").aria_snapshot()
    assert 'region "Examples you have seen (3)"' in tree and tree.count("Example 1: the machine") == 1
    assert (
        page.get_by_role("button", name="Example 1: the machine's answer was Husky. Bars: fur .4").count()
        == 1
    )
    facts = staged.facts(definition())
    read = staged.predict(TEXTS, text=staged.words(40))
    staged.Stage(page, staged.state(facts, [read])).open()
    tree = page.locator("main").aria_snapshot()
    assert 'figure "Text"' in tree and "word word word" in tree and "img" not in tree
