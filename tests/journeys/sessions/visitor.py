"""A person at a keyboard in a real browser: reads the page, presses keys, never touches the mouse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Page

FRESH = ".board:not([data-done]) .answer:not([aria-disabled])"
NEXT = ".board .next:not(.pressed)"
"""What goes on from the answer that was revealed after a guess."""
FORM = ".rating:not([data-done])"
TASK = ".solving:not([data-done]) .plate:not([aria-disabled])"
"""A picture that is to be marked."""
SETTLED = f"{FRESH}, {NEXT}, {FORM}, {TASK}, [data-page]:not([data-done])"


@dataclass
class Visitor:
    """Walks through a session. `pressed` keeps the value of every trial that was answered, in order; `told`
    what was revealed after each guess."""

    page: Page
    practice: list[str]
    quiz: Mapping[str, str]
    pressed: list[str] = field(default_factory=list)
    practised: int = 0
    told: list[str] = field(default_factory=list)

    def arrive(self, url: str) -> None:
        self.page.goto(url)
        self.settle()

    def settle(self) -> str:
        """Waits for what comes next and names it: a page's kind, "trial", or "revealed" after a guess."""
        self.page.wait_for_selector(SETTLED)
        shown = self.page.locator("[data-page]:not([data-done])")
        if shown.count():
            return str(shown.first.get_attribute("data-page"))
        return "revealed" if self.page.locator(NEXT).count() else "trial"

    def leave(self, selector: str) -> None:
        """Marks the page as handled, so that `settle` waits for a new one."""
        self.page.eval_on_selector_all(selector, "found => found.forEach(e => e.dataset.done = '1')")

    def tab_to(self, selector: str) -> None:
        # On a busy machine a page may stand before its buttons can be pressed.
        self.page.wait_for_selector(f"{selector}:not(:disabled)")
        for _ in range(60):
            if self.page.evaluate("s => document.activeElement?.matches(s) ?? false", selector):
                return
            self.page.keyboard.press("Tab")
        raise AssertionError(f"{selector} cannot be reached by the keyboard")

    def choose(self, question: str, value: str) -> None:
        """Picks a radio button by the arrow keys."""
        radios = f'[data-question="{question}"] input[type=radio]'
        self.tab_to(radios)
        self.page.keyboard.press("Space")
        for _ in range(20):
            if self.page.eval_on_selector_all(radios, "found => found.find(e => e.checked)?.value") == value:
                return
            self.page.keyboard.press("ArrowDown")
        raise AssertionError(f"{value!r} is not among the choices of {question!r}")

    def press_primary(self) -> None:
        self.tab_to("[data-page]:not([data-done]) .button.primary")
        # Marked before it is pressed: the same kind of page may come back (another try).
        self.leave("[data-page]")
        self.page.keyboard.press("Enter")

    def do_page(self, kind: str) -> None:
        if kind == "quiz":
            for question, answer in self.quiz.items():
                self.choose(question, answer)
        elif kind == "questions":
            for fieldset in self.page.locator("fieldset[data-question]").all():
                question = str(fieldset.get_attribute("data-question"))
                self.choose(question, str(fieldset.locator("input").last.get_attribute("value")))
        self.press_primary()

    def answer(self) -> None:
        """One trial: looks at what is asked and presses a key."""
        if self.page.locator(TASK).count():
            return self.solve()
        buttons = self.page.locator(FRESH)
        names = ("data-value", "aria-keyshortcuts")
        keys = dict([str(button.get_attribute(name)) for name in names] for button in buttons.all())
        value = self.pick(list(keys))
        self.leave(".board")
        self.page.keyboard.press(keys[value])
        self.pressed.append(value)

    def solve(self) -> None:
        """Marks two places beside each other, chooses an answer by its key and sends it."""
        radios = self.page.locator(".solving:not([data-done]) .choice input")
        names = ("value", "aria-keyshortcuts")
        keys = dict([str(radio.get_attribute(name)) for name in names] for radio in radios.all())
        value = list(keys)[len(self.pressed) % (len(keys) - 1)]
        self.tab_to(".plate")
        for key in ("-", "-", "Space", "ArrowRight", "Space", keys[value]):
            self.page.keyboard.press(key)
        self.leave(".solving")
        self.page.keyboard.press("Enter")
        self.pressed.append(value)

    def pick(self, values: list[str]) -> str:
        asked = self.page.locator(".board:not([data-done]) .ask").inner_text()
        for value in values:
            if len(values) > 2 and asked.rstrip(".").endswith(f" {value.upper()}"):
                return value
        return values[len(self.pressed) % len(values)]

    def practise(self) -> None:
        """One practice picture; the right answers are an argument, because no page names them."""
        if self.page.locator(FORM).count():
            return self.train()
        button = self.page.locator(f'{FRESH}[data-value="{self.practice[self.practised]}"]')
        key = button.get_attribute("aria-keyshortcuts")
        self.practised += 1
        self.leave(".board")
        self.page.keyboard.press(str(key))
        self.read_feedback()

    def train(self) -> None:
        """One clear case of raters, and which ratings fit."""
        for key in (self.practice[self.practised], "Enter"):
            self.page.keyboard.press(key)
        self.practised += 1
        self.page.wait_for_selector(".rating .told")
        self.leave(".rating")
        self.page.keyboard.press("Enter")

    def read_feedback(self) -> None:
        """Whether the answer was right, and one button to go on; pages of earlier versions say nothing."""
        if self.settle() == "trial" and self.page.locator(FRESH).count() == 1:
            self.leave(".board")
            self.page.keyboard.press("Space")

    def read_reveal(self) -> None:
        """What the server said to the guess; then on, by the key that is not printed every second time."""
        self.told.append(self.page.locator(".board .label").inner_text())
        self.page.keyboard.press("Space" if len(self.told) % 2 else "Enter")

    def walk(self, until: str, answers: int | None = None) -> str:
        """Continues until a page of that kind, or for `answers` answers."""
        while True:
            here = self.settle()
            if here == until or (answers is not None and len(self.pressed) >= answers):
                return here
            self.step()

    def step(self) -> None:
        """Handles the page or trial that is shown."""
        here = self.settle()
        if here == "revealed":
            self.read_reveal()
        elif here != "trial":
            self.do_page(here)
        elif self.practised < len(self.practice):
            self.practise()
        else:
            self.answer()


def violations(page: Page, axe: str) -> list[dict[str, Any]]:
    """What axe finds on the page as it is, of serious or critical impact."""
    page.evaluate(axe)
    broken: list[dict[str, Any]] = page.evaluate("async () => (await axe.run(document)).violations")
    return [rule for rule in broken if rule["impact"] in {"serious", "critical"}]
