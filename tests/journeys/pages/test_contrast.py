"""Contrast in every state of every control: at rest, under the pointer, focused, pressed, and disabled too.

WCAG 2.2: text 4.5 (1.4.3), borders and rings of focus 3 (1.4.11). The states are forced in the browser, and
the colours are those that it computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.experiments.definitions import definition
from tests.journeys.studies import staged

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

TEXT, EDGE = 4.5, 3.0
STATES = (
    (),
    ("hover",),
    ("focus", "focus-visible"),
    ("hover", "focus", "focus-visible"),
    ("hover", "active"),
)
LABELS = ("option", "point", "choice")
CONTROLS = ", ".join(
    [
        "a[href], button, input, textarea, select, summary, [tabindex='0']",
        *(f"label.{name}" for name in LABELS),
    ]
)

COLOURS = """element => {
    const rgb = text => {
        const [r, g, b, a = 1] = (text.match(/[\\d.]+/g) ?? [0, 0, 0, 0]).map(Number);
        return [r, g, b, a];
    };
    const over = (top, under) => [0, 1, 2].map(i => top[i] * top[3] + under[i] * (1 - top[3])).concat(1);
    // What is painted behind an element, itself included.
    const ground = node => {
        if (node === null) return [255, 255, 255, 1];
        const own = rgb(getComputedStyle(node).backgroundColor);
        return own[3] === 1 ? own : over(own, ground(node.parentElement));
    };
    const opacity = node => node === element.parentElement ? 1
        : Number(getComputedStyle(node).opacity) * opacity(node.parentElement);
    const pairs = [];
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        const holder = node.parentElement;
        if (!node.data.trim() || holder.closest('.sr-only')) continue;
        const colour = rgb(getComputedStyle(holder).color);
        const behind = ground(holder);
        colour[3] *= opacity(holder);
        pairs.push(['text', over(colour, behind), behind]);
    }
    const style = getComputedStyle(element), outside = ground(element.parentElement);
    if (style.borderTopStyle !== 'none' && parseFloat(style.borderTopWidth) > 0)
        pairs.push(['border', over(rgb(style.borderTopColor), outside), outside]);
    const hasRing = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2;
    if (hasRing) pairs.push(['ring', over(rgb(style.outlineColor), outside), outside]);
    return {pairs, hasRing, name: element.className || element.tagName};
}"""


UNLIKE = """all => {
    const known = new Set();
    const states = [":checked", ":disabled", "[aria-disabled]", "[aria-pressed=true]", ":first-child",
                    ":last-child"];
    const look = e => e && [e.tagName, e.className, e.type, ...states.map(what => e.matches(what))];
    const isSeen = e => e.checkVisibility({ visibilityProperty: true })
        && e.getBoundingClientRect().width > 0;
    all.forEach((e, i) => e.setAttribute('data-control', i));
    return all.filter(e => {
        if (!isSeen(e)) return false;
        const line = [e, e.parentElement, e.parentElement.parentElement].map(look);
        const key = JSON.stringify([line, window.colours(e), [...e.children].map(look)]);
        return !known.has(key) && known.add(key);
    }).map(e => e.dataset.control);
}"""
"""Names each control, and gives the names of those that are seen: of several that are the same, have the same
colours and stand in the same sort of place, one."""


def luminance(colour: list[float]) -> float:
    parts = [part / 255 for part in colour[:3]]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(text: list[float], behind: list[float]) -> float:
    light, dark = sorted((luminance(text), luminance(behind)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_it_measures_contrast_as_the_standard_does() -> None:
    """Black on white is 21; #767676 on white is the well-known grey just above 4.5."""
    assert contrast([0, 0, 0], [255, 255, 255]) == pytest.approx(21)
    assert contrast([0x76] * 3, [255, 255, 255]) == pytest.approx(4.54, abs=0.005)
    assert contrast([0x77] * 3, [255, 255, 255]) < 4.5


def faults(page: Page) -> list[tuple[Any, ...]]:
    """(control, state, what, contrast) of all that is too faint, and controls without a ring of focus; of
    controls that are alike, the first."""
    return list(each_fault(page))


def each_fault(page: Page) -> Iterator[tuple[Any, ...]]:
    page.evaluate(f"() => {{ window.colours = {COLOURS} }}")
    shown = page.eval_on_selector_all(CONTROLS, UNLIKE)
    session = page.context.new_cdp_session(page)
    session.send("DOM.enable")
    session.send("CSS.enable")
    root = session.send("DOM.getDocument")["root"]["nodeId"]
    assert shown
    for number in shown:
        selector = f"[data-control='{number}']"
        node = session.send("DOM.querySelector", {"nodeId": root, "selector": selector})["nodeId"]
        for state in STATES:
            session.send("CSS.forcePseudoState", {"nodeId": node, "forcedPseudoClasses": list(state)})
            seen = page.eval_on_selector(selector, "e => window.colours(e)")
            for what, colour, behind in seen["pairs"]:
                ratio = contrast(colour, behind)
                if ratio < (TEXT if what == "text" else EDGE):
                    yield seen["name"], state, what, round(ratio, 2)
            is_label = seen["name"].split(" ")[0] in LABELS
            if "focus-visible" in state and not seen["hasRing"] and not is_label:
                yield seen["name"], state, "no ring", 0
        session.send("CSS.forcePseudoState", {"nodeId": node, "forcedPseudoClasses": []})
    session.detach()


def gate(page: Page, kind: str, questions: list[dict[str, Any]] | None = None) -> staged.Stage:
    shown = {"kind": kind, "digest": "d", "html": "<h2>Title</h2><p>Text.</p>", "questions": questions or []}
    state = staged.state(staged.facts(definition()), step=kind, page=shown, block=None)
    stage = staged.Stage(page, state)
    stage.open()
    page.locator(f"[data-page={kind}]").wait_for()
    return stage


def question(kind: str) -> dict[str, Any]:
    choices = staged.choices(["Yes", "No"]) if kind == "choice" else None
    names = ("label", "image", "text", "low", "high", "min", "max", "max_length")
    asked = {"id": kind, "kind": kind, "prompt": "What?", "required": True, "choices": choices}
    return {**asked, **dict.fromkeys(names)}


@pytest.fixture
def page(tab: Page) -> Page:
    return tab


def trial(page: Page, **changes: Any) -> staged.Stage:
    facts = staged.facts(definition(), **changes)
    stage = staged.Stage(page, staged.state(facts, [staged.predict(["Husky", "Wolf"])]))
    stage.open()
    return stage


def consent(page: Page) -> None:
    gate(page, "consent")


def instructions(page: Page) -> None:
    gate(page, "instructions")
    page.locator(".keys summary").click()


def asked(page: Page) -> None:
    """With one mistake shown."""
    gate(page, "questions", [question("choice"), question("number"), question("text")])
    page.locator(".button.primary").click()


def loading(page: Page) -> None:
    """The start of a block before its pictures are there: the button is disabled."""
    facts = staged.facts(definition())
    stage = staged.Stage(page, staged.state(facts, [staged.predict(["Husky", "Wolf"])]))
    page.route("**/m/**", lambda route: None)
    page.goto(stage.url)
    page.locator("[data-page=block] .button:disabled").wait_for()
    assert stage.sent(0) == []


def waiting(page: Page) -> None:
    trial(page, min_view_ms=3_600_000)
    assert page.locator(".answer[aria-disabled]").count() == 2


def answering(page: Page) -> None:
    trial(page)
    page.locator(".answer:not([aria-disabled])").first.wait_for()
    page.locator(".reservoir-toggle").click()
    page.eval_on_selector(".answer:last-child", "answer => answer.classList.add('pressed')")


def guessing(page: Page) -> None:
    """A guess whose answer is revealed, with marks on two of three buttons."""
    text = staged.sentence("A ", ("slow", 1.0), " film.")
    three = [staged.guess(["One", "Two", "Three"], text)]
    stage = staged.Stage(page, staged.state(staged.facts(definition()), three))
    stage.open()
    stage.guess("1")


def rating(page: Page) -> None:
    """One question answered, the others said to be open."""
    study = definition(paradigm="rating")
    stage = staged.Stage(page, staged.state(staged.facts(study), [staged.rate()]))
    stage.open()
    page.keyboard.press("2")
    page.locator(".rating .button").click()


def rated(page: Page) -> None:
    """All answered, and the button pressed."""
    rating(page)
    for _ in range(5):
        page.keyboard.press("4")
    page.locator(".rating .button.primary").evaluate("button => button.classList.add('pressed')")


def solving(page: Page) -> None:
    """Marked, without an answer, and told that it lacks."""
    study = definition(
        {"classes": list(staged.DIGITS)},
        paradigm="blind_review",
        design={"role": "solve"},
        conditions=[{"name": "people", "role": "source"}],
    )
    staged.Stage(page, staged.state(staged.facts(study), [staged.solve()])).open()
    page.locator(".plate:not([aria-disabled])").click()
    page.locator(".sending .button").click()


def solved(page: Page) -> None:
    """To be sent: an answer is chosen, a stroke was taken back, the eraser taken up."""
    solving(page)
    page.locator(".plate").click(position={"x": 20, "y": 20})
    page.keyboard.press("Control+z")
    for key in "7e":
        page.keyboard.press(key)
    page.locator(".sending .button.primary").wait_for()


def helped(page: Page) -> None:
    trial(page)
    page.locator(".tool").first.click()
    page.locator(".keys summary").click()


def leaving(page: Page) -> None:
    trial(page)
    page.locator(".tool").last.click()


SCENES: tuple[Callable[[Page], None], ...] = (
    consent, instructions, asked, loading, waiting, answering, guessing, rating, rated, solving, solved,
    helped, leaving,
)  # fmt: skip


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_every_control_can_be_read_in_every_state(page: Page, scene: Callable[[Page], None]) -> None:
    scene(page)
    assert faults(page) == []


PLANTED: dict[str, tuple[Callable[[Page], None], str]] = {
    "a rule for hovering that outranks the disabled button": (
        loading,
        ".button.primary:hover { background: #3a3a3a; color: #5e5e5e }",
    ),
    "a faint border": (consent, ".button.plain { border-color: #bbbbbb !important }"),
    "no ring": (consent, ":focus-visible { outline: none !important }"),
    "a faint ring": (consent, ":focus-visible { outline-color: #c0c0ff !important }"),
    "a faint way on": (guessing, ".next { color: #777 !important }"),
    "a faint answer": (solved, ".choice:has(:checked) { color: #777 !important }"),
    "a faint tool": (solving, ".mark-tool { border-color: #bbb !important }"),
    "a faint key": (answering, ".answer kbd { opacity: .4 }"),
}


@pytest.fixture(params=PLANTED)
def planted(page: Page, request: pytest.FixtureRequest) -> Iterator[Page]:
    scene, rule = PLANTED[request.param]
    scene(page)
    page.add_style_tag(content=rule)
    yield page


def test_it_finds_a_fault_that_was_planted(planted: Page) -> None:
    assert next(each_fault(planted), None) is not None
