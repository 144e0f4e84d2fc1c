"""People who press no key: by the mouse or by a finger, each alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.journeys.sessions.visitor import FRESH, NEXT, TASK, Visitor

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page, ViewportSize

TABLET: ViewportSize = {"width": 1024, "height": 768}
FINGER_PX = 44
NEXT_FRAME = "new Promise(done => requestAnimationFrame(done))"
REST = 8
"""Frames after which a finger flings the page no more; a tap that follows a fling at once is none."""
Place = tuple[float, float]


class Pointer(Visitor, ABC):
    """Points at things; a key that it pressed would be an error."""

    def arrive(self, url: str) -> None:
        self.page.keyboard.press = None  # type: ignore[method-assign, assignment]
        super().arrive(url)

    @abstractmethod
    def press(self, target: Locator) -> None: ...

    @abstractmethod
    def stroke(self, start: Place, end: Place) -> None:
        """One stroke from a place of the window to another, in CSS pixels."""

    def tap(self, selector: str) -> None:
        target = self.page.locator(selector).first
        box = target.bounding_box()
        assert box is not None and min(box["width"], box["height"]) >= FINGER_PX, (selector, box)
        self.press(target)

    def choose(self, question: str, value: str) -> None:
        self.tap(f'[data-question="{question}"] .option:has(input[value="{value}"])')

    def press_primary(self) -> None:
        selector = "[data-page]:not([data-done]) .button.primary:not(:disabled)"
        self.page.wait_for_selector(selector)
        handle = self.page.locator(selector).first
        self.page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
        handle.evaluate("button => button.dataset.next = '1'")
        self.leave("[data-page]")
        self.tap("[data-next]")

    def answer(self) -> None:
        if self.page.locator(TASK).count():
            return self.solve()
        values = [str(each.get_attribute("data-value")) for each in self.page.locator(FRESH).all()]
        value = self.pick(values)
        self.tap_answer(value)
        self.pressed.append(value)

    def solve(self) -> None:
        """Marks two places beside each other in one stroke, chooses an answer and sends it."""
        values = self.page.eval_on_selector_all(
            ".solving:not([data-done]) .choice input", "found => found.map(radio => radio.value)"
        )
        value = str(values[len(self.pressed) % (len(values) - 1)])
        self.tap("[aria-label=Small]")
        self.page.locator("[aria-label=Small][aria-pressed=true]").wait_for()
        self.stroke(self.cell(2, 2), self.cell(3, 2))
        self.tap(f'.solving:not([data-done]) .choice:has(input[value="{value}"])')
        self.leave(".solving")
        self.tap(".solving .sending .button")
        self.pressed.append(value)

    def cell(self, column: int, row: int, side: int = 4) -> Place:
        """The middle of a cell of a grid of so many columns."""
        box = self.page.locator(".solving:not([data-done]) .cells").bounding_box()
        assert box is not None
        return (
            box["x"] + (column + 0.5) / side * box["width"],
            box["y"] + (row + 0.5) / side * box["height"],
        )

    def practise(self) -> None:
        self.tap_answer(self.practice[self.practised])
        self.practised += 1
        if self.settle() == "trial" and self.page.locator(FRESH).count() == 1:
            self.tap_answer("seen")

    def read_reveal(self) -> None:
        self.told.append(self.page.locator(".board .label").inner_text())
        self.tap(NEXT)

    def tap_answer(self, value: str) -> None:
        self.page.locator(f'{FRESH}[data-value="{value}"]').evaluate("button => button.dataset.next = '1'")
        self.leave(".board")
        self.tap("[data-next]")


class Mouse(Pointer):
    """Clicks."""

    def press(self, target: Locator) -> None:
        target.click()

    def stroke(self, start: Place, end: Place) -> None:
        self.page.mouse.move(*start)
        self.page.mouse.down()
        self.page.mouse.move(*end, steps=4)
        self.page.mouse.up()


class Fingers(Pointer):
    """Taps."""

    def press(self, target: Locator) -> None:
        target.tap()

    def stroke(self, start: Place, end: Place) -> None:
        draw_by_finger(self.page, start, end)


def draw_by_finger(page: Page, *places: Place) -> None:
    """One stroke of a finger through places of the window, which comes to rest before it is lifted."""
    session = page.context.new_cdp_session(page)
    for number, (x, y) in enumerate((*places, *[places[-1]] * REST)):
        page.evaluate(NEXT_FRAME)
        kind = "touchStart" if number == 0 else "touchMove"
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y}]})
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    session.detach()


@contextmanager
def tablet(browser: Browser) -> Iterator[Page]:
    """A page that is touched."""
    context = browser.new_context(viewport=TABLET, has_touch=True, is_mobile=True)
    try:
        yield context.new_page()
    finally:
        context.close()
