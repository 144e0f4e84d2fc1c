"""A person with a mouse, who goes where the walk says and looks at every new page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from crowd.models import Posting
from crowd.rehearsal.screens.catalog import UNTOLD, Screen
from crowd.rehearsal.screens.study_copy import Stage
from experiments.definition.colour_vision_verdict import FILTER
from experiments.definition.colour_vision_verdict import GATE as PLATES
from experiments.drafting.plates import wanted_answers
from experiments.models import Session
from experiments.selectors import definition_of
from experiments.sessions.lifecycle import step_of

if TYPE_CHECKING:
    from playwright.sync_api import ElementHandle, Page, ViewportSize

Look = Callable[["Page", Screen], None]
"""Called with each page that is reached, once for each screen."""

WINDOW: ViewportSize = {"width": 1280, "height": 800}
SMALL: ViewportSize = {"width": 300, "height": 300}
"""No study lets in such a window."""
PATIENCE_MS = 20_000
FRESH = ".board:not([data-done]) .answer:not([aria-disabled])"
NEXT = ".board .next:not(.pressed)"
FORM = ".rating:not([data-done])"
"""A page of questions with scales, in the trials or at a gate."""
TASK = ".solving:not([data-done]) .plate:not([aria-disabled])"
"""A picture that is to be marked."""
SETTLED = f"{FRESH}, {NEXT}, {FORM}, {TASK}, [data-page]:not([data-done]):not(:has(.button.primary:disabled))"
WAITING = ".strip:not([hidden]) ~ main .wait"
"""What comes next cannot be asked for now."""
CELLS = ".solving:not([data-done]) .cells"
STROKE = ((0.3, 0.3), (0.7, 0.3), (0.45, 0.8))
"""The corners of a stroke, as shares of the picture's sides."""
TRIAL, REVEALED = "trial", "revealed"
RATED = """point => {
    for (const scale of document.querySelectorAll(".rating:not([data-done]) .scale"))
        scale.querySelector(`input[value="${point}"]`).click();
}"""
PLATE = Screen("gate/plates/plate", "A plate of the colour check", "after the question about the screen")
PRACTICE_TRIAL = Screen("gate/practice/trial", "A practice trial", "before the trials, in all conditions")
PRACTICE_TOLD = Screen("gate/practice/told", "What is said of a practice answer", "after each practice trial")
"""Parts of one page, which no table names."""
FILL = """([answers, isWrong]) => {
    for (const place of document.querySelectorAll("[data-page] [data-question]")) {
        const radios = [...place.querySelectorAll("input[type=radio]")];
        const wanted = answers[place.dataset.question];
        const right = radios.find((radio) => radio.value === wanted) ?? radios.at(-1);
        const wrong = radios.find((radio) => radio !== right);
        (isWrong ? wrong ?? right : right)?.click();
        const numbers = place.querySelectorAll("input[type=number]");
        for (const input of numbers) input.value = input.min || 1;
        for (const text of place.querySelectorAll("textarea, input[type=text]")) text.value = "Nothing";
    }
    for (const input of document.querySelectorAll("[data-page] input[type=range]")) {
        input.stepUp();
        input.dispatchEvent(new Event("input"));
    }
    const boxes = document.querySelectorAll(
        "[data-page] input[type=checkbox][required], [data-page] .tick input");
    for (const box of boxes) box.checked = true;
}"""


class Walker:
    """Goes through sessions in one browser page. `looked` holds the screens that were reached."""

    def __init__(
        self, page: Page, site: str, stage: Stage, screens: Mapping[tuple[str, str], Screen], look: Look
    ) -> None:
        self.page, self.site, self.stage = page, site, stage
        self.screens, self.look_at = screens, look
        self.looked: set[Screen] = set()
        self.arm = ""
        study = stage.study
        self.practice = [str(row["answer"]) for row in study.practice if not row["example"]]
        self.answers = {question.id: question.answer for question in definition_of(study).quiz}
        self.answers |= {str(row["id"]): str(row["answer"]) for row in study.practice if not row["example"]}
        self.plates = wanted_answers(study)
        self.answers |= self.plates
        page.set_default_timeout(PATIENCE_MS)

    def look(self, key: str, arm: str = "") -> None:
        """Looks at the page as the screen of that key, if the study has it."""
        screen = self.screens.get((key, arm))
        if screen is not None:
            self.see(screen)

    def see(self, screen: Screen) -> None:
        """Looks at the page as this screen, unless that is done."""
        if screen not in self.looked:
            self.look_at(self.page, screen)
            self.looked.add(screen)

    def arrive(
        self,
        posting: Posting | None = None,
        *,
        person: str = "",
        submission: str = "",
        window: ViewportSize = WINDOW,
    ) -> str:
        """A new person comes, by the plain address or another posting's; returns the address."""
        key = (posting or self.stage.local).key
        name = person or f"visitor-{next(self.stage.people)}"
        asked = f"via={key}&person={name}&submission={submission or name}"
        address = f"{self.site}/join/{self.stage.study.slug}/?{asked}"
        self.page.set_viewport_size(window)
        self.page.goto(address)
        return address

    def session(self) -> Session:
        return self.stage.newest()

    def settle(self) -> str:
        """Waits for the next page or trial; the kind of the page, "trial", or "revealed" after a guess."""
        self.page.wait_for_selector(SETTLED)
        shown = self.page.locator("[data-page]:not([data-done])")
        if shown.count():
            return str(shown.first.get_attribute("data-page"))
        return REVEALED if self.page.locator(NEXT).count() else TRIAL

    def rest(self) -> None:
        """Waits for what comes next, or until the page says that it has to wait for it."""
        self.page.wait_for_selector(f"{SETTLED}, {WAITING}")

    def _click(self, button: ElementHandle | None, leaves: str = "") -> None:
        """Not by the mouse: whether something lies over it is measured elsewhere. What `leaves` names is then
        left."""
        assert button is not None
        if leaves:
            self.page.eval_on_selector_all(leaves, "those => those.forEach(e => e.dataset.done = '1')")
        button.evaluate("button => button.click()")

    def press(self, *, last: bool = False) -> None:
        """Presses the main button of the page, or its last one, by which people say no; the page then counts
        as left."""
        buttons = self.page.locator(f"[data-page]:not([data-done]) .button{'' if last else '.primary'}")
        self._click((buttons.last if last else buttons.first).element_handle(), "[data-page]")

    def answer(self, value: str | None = None) -> None:
        """Answers a trial, by the first button if no value is named; on a form, the middle of each scale;
        with a stroke across a picture that is to be marked."""
        if self.page.locator(FORM).count():
            return self.rate(3)
        if self.page.locator(TASK).count():
            return self.solve()
        named = f'{FRESH}[data-value="{value}"]' if value is not None else FRESH
        self._click(self.page.locator(named).first.element_handle(), ".board")

    def mark(self) -> None:
        """Draws a stroke across the picture and chooses the first answer."""
        box = self.page.locator(CELLS).bounding_box()
        assert box is not None
        places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in STROKE]
        self.page.mouse.move(*places[0])
        self.page.mouse.down()
        for place in places[1:]:
            self.page.mouse.move(*place, steps=8)
        self.page.mouse.up()
        self.choose(first=True)

    def choose(self, *, first: bool) -> None:
        """Chooses the first answer of a task, or its last one, that nothing can be said."""
        radios = self.page.locator(".solving:not([data-done]) .choice input")
        (radios.first if first else radios.last).evaluate("radio => radio.click()")

    def solve(self) -> None:
        """Marks the picture, answers and sends."""
        self.mark()
        ready = self.page.wait_for_selector(".solving:not([data-done]) .sending .button.primary")
        self._click(ready, ".solving")

    def pass_reveal(self) -> None:
        """Goes on from the answer that was revealed after a guess."""
        self.page.locator(NEXT).evaluate("button => button.click()")

    def rate(self, point: int) -> None:
        """Takes that point of each scale and goes on."""
        self.page.evaluate(RATED, point)
        self._click(self.page.wait_for_selector(f"{FORM} .button.primary"), ".rating")

    def gates(self, *, until: str = "", fails: str = "") -> str:
        """Passes every gate up to the trials, or up to the gate `until`; fails each try of the gate `fails`.

        Returns what it stopped at: a kind of page, or "block".
        """
        tries: dict[str, int] = {}
        while True:
            here = self.settle()
            stop = step_of(self.session()).stop
            if here in {"block", "finish", "trouble", "comment", TRIAL} or stop is None:
                return here
            again = tries.get(stop.kind, 0)
            tries[stop.kind] = again + 1
            arm = self.arm if stop.place in {"arm", "block"} else ""
            self.look(f"gate/{stop.kind}" + ("/again" if again else ""), arm)
            if stop.kind == until:
                return here
            self.page.evaluate(FILL, [self.answers, stop.kind == fails])
            self.press()
            if stop.gate == PLATES:
                self.read_plates()
            self.practise(stop.kind == fails)

    def read_plates(self) -> None:
        """Answers the plates of the colour check, as a person for whom the study has places."""
        plates = (answer for name, answer in self.plates.items() if name != FILTER)
        while self.settle() == TRIAL and step_of(self.session()).name == PLATES:
            self.see(PLATE)
            self.answer(next(plates))

    def practise(self, is_wrong: bool) -> None:
        """Answers the trials of a gate and reads what is said of each answer, up to the next page."""
        rights = iter(self.practice)
        while self.practice and self.settle() == TRIAL and step_of(self.session()).name != "trials":
            if self.page.locator(FORM).count():
                self.train(int(next(rights)), is_wrong)
                continue
            if self.page.locator(FRESH).count() == 1:
                self.see(PRACTICE_TOLD)
                self.answer()
                continue
            self.see(PRACTICE_TRIAL)
            right = next(rights)
            values = [button.get_attribute("data-value") for button in self.page.locator(FRESH).all()]
            self.answer(next(value for value in values if (value == right) is not is_wrong))

    def train(self, right: int, is_wrong: bool) -> None:
        """Rates a clear case of a gate, reads which ratings fit, and goes on."""
        self.see(PRACTICE_TRIAL)
        self.rate(right if not is_wrong else 1 if right > 3 else 5)
        told = self.page.wait_for_selector(".rating .told")
        assert told is not None
        self.see(PRACTICE_TOLD)
        self.page.locator(".rating .button.primary").evaluate("button => button.click()")

    def to_trial(self, position: int, *, passes: bool = True) -> None:
        """Goes to a trial of the running session, with all before it answered."""
        self.stage.answer_until(self.session(), position, passes=passes)
        self.page.reload()
        while (here := self.settle()) != TRIAL:
            self.refuse_trouble(here)
            if here == REVEALED:
                # Of the trial before: the page was opened anew, and no press went on from it.
                self.pass_reveal()
                continue
            if here == "block":
                is_back = self.page.locator("[data-page=block] li").count() == 0
                self.look("block/back" if is_back else "block/start")
            elif here == "untold":
                self.look(UNTOLD)
            else:
                stop = step_of(self.session()).stop
                if stop is not None:
                    self.look(f"gate/{stop.kind}", self.arm)
            self.press()

    def refuse_trouble(self, here: str) -> None:
        """Stops a way that meets a page of trouble unasked."""
        if here == "trouble":
            shown = self.page.locator("[data-page=trouble]").first
            raise AssertionError(
                f"the page stops with {shown.get_attribute('data-code')}: {shown.inner_text()!r}"
            )

    def to_the_end(self, *, passes: bool = True) -> None:
        """Answers the rest and what is asked last; stops at the last page."""
        session = self.session()
        assert session.slot is not None
        self.stage.answer_until(session, session.slot.trials.count(), passes=passes)
        self.page.reload()
        while (here := self.settle()) != "finish":
            self.refuse_trouble(here)
            stop = step_of(self.session()).stop
            self.look(f"gate/{stop.kind}" if stop is not None else f"page/{here}")
            self.page.evaluate(FILL, [self.answers, False])
            self.press()
