"""Whole sessions without mouse and keyboard: by touch alone, and by what a screen reader is told alone."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from tests import open_world
from tests.journeys.conftest import Site
from tests.journeys.sessions.hands import Fingers, tablet

if TYPE_CHECKING:
    from playwright.sync_api import Browser, CDPSession, Locator, Page

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def opened(rows: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("study") / "small"
    return open_world.opened(folder, "blocks = 1", "min_view_ms = 0", "gap_ms = 0")


def test_it_takes_a_session_by_touch_alone(browser: Browser, opened: dict[str, Any], site: Site) -> None:
    with tablet(browser) as page:
        visitor = Fingers(page, opened["practice"], opened["quiz"])
        visitor.arrive(f"{site.url}/join/small/?person=tom&submission=t1")
        while not (visitor.settle() == "trial" and page.locator(".reservoir-toggle").count()):
            visitor.step()
        visitor.tap(".reservoir-toggle")
        visitor.tap(".tile")
        assert page.locator(".tile.enlarged").count() == 1
        visitor.walk("comment")
        visitor.press_primary()
        assert visitor.settle() == "finish"
    told = open_world.tell()
    assert told["sessions"][-1]["state"] == "finished"
    mine = told["responses"][-len(visitor.pressed) :]
    assert len(mine) == told["sessions"][-1]["trials"]
    assert {row["context"]["input"] for row in mine} == {"touch"}


CONTROLS = {"button", "link", "radio", "checkbox", "textbox", "spinbutton"}
ONWARD = re.compile("^(I agree and take part|Continue|Submit answers|Start practising|Start|Go on|Finish)$")
SAID_OF_PICTURES = {"Picture", "Explanation", "Picture with an explanation"}


SAYS = """() => {
    window.said = [];
    new MutationObserver((changes) => {
        for (const { target } of changes) {
            const region = (target.closest ? target : target.parentElement)?.closest("[aria-live]");
            if (region?.textContent) window.said.push(region.textContent);
        }
    }).observe(document, { childList: true, characterData: true, subtree: true });
}"""
"""Keeps what a screen reader would read out by itself."""


@dataclass
class Listener:
    """Knows the page by its accessibility tree alone: roles, names, states, and what is announced."""

    page: Page
    tree: CDPSession
    quiz: dict[str, str]
    practice: list[str]
    pictures: set[str] = field(default_factory=set)
    announced: list[str] = field(default_factory=list)
    answered: int = 0
    is_told_next: bool = False

    def nodes(self) -> list[dict[str, Any]]:
        nodes: list[dict[str, Any]] = self.tree.send("Accessibility.getFullAXTree")["nodes"]
        return [node for node in nodes if not node.get("ignored")]

    def named(self, *roles: str) -> list[str]:
        """The names of all nodes of these roles, in order."""
        return [
            str(node.get("name", {}).get("value", ""))
            for node in self.nodes()
            if node.get("role", {}).get("value") in roles
        ]

    def answers(self) -> Locator:
        return self.page.get_by_role("group", name="Answers").get_by_role("button", disabled=False)

    def onward(self) -> Locator:
        return self.page.get_by_role("main").get_by_role("button", name=ONWARD, disabled=False)

    def wait(self) -> str:
        """Waits until there is something to do, and says what: "trial", "page" or "end"."""
        end = self.page.get_by_role("heading", level=1, name="Thank you")
        self.answers().or_(self.onward()).or_(end).first.wait_for()
        if end.count():
            return "end"
        return "trial" if self.answers().count() else "page"

    def check(self) -> None:
        """One main heading; no control without a name."""
        assert len(self.page.get_by_role("heading", level=1).all()) == 1
        assert "" not in self.named(*CONTROLS), self.named(*CONTROLS)
        self.pictures |= set(self.named("image", "img"))

    def do_page(self) -> None:
        for radios in self.page.get_by_role("group").all():
            options = radios.get_by_role("radio").all()
            right = [each for each in options if each.get_attribute("value") in self.quiz.values()]
            if options:
                (right or options)[0].check()
        self.press(self.onward().first)

    def do_trial(self) -> None:
        """Hears the question, and presses the button that it names, or the first one."""
        voice = " ".join(self.heard())
        if self.is_told_next:
            # What is said of a practice answer, with one button to go on.
            self.is_told_next = False
            return self.press(self.answers().first)
        self.announced.append(voice)
        wanted = re.search(r"press the key (\w)", voice)
        buttons = self.answers()
        assert buttons.count() == len([name for name in self.named("button") if name]) - self.other_buttons()
        if wanted:
            self.press(buttons.filter(has_text=wanted[1]).first)
        elif self.answered < len(self.practice):
            self.press(buttons.filter(has_text=self.practice[self.answered]).first)
            self.is_told_next = True
        else:
            self.press(buttons.first)
        self.answered += 1

    def other_buttons(self) -> int:
        everything = self.page.get_by_role("button").count()
        return everything - self.page.get_by_role("group", name="Answers").get_by_role("button").count()

    def heard(self) -> list[str]:
        """What the live regions have said since this was asked last."""
        said: list[str] = self.page.evaluate("() => window.said.splice(0)")
        return said

    def press(self, button: Locator) -> None:
        handle = button.element_handle()
        assert handle is not None
        handle.click()
        handle.wait_for_element_state("hidden")


def test_it_takes_a_session_by_the_accessibility_tree_alone(
    page: Page, opened: dict[str, Any], site: Site
) -> None:
    tree = page.context.new_cdp_session(page)
    tree.send("Accessibility.enable")
    listener = Listener(page, tree, opened["quiz"], opened["practice"])
    page.add_init_script(f"({SAYS})()")
    page.goto(f"{site.url}/join/small/?person=lea&submission=l1")
    while (here := listener.wait()) != "end":
        listener.check()
        if here == "trial":
            listener.do_trial()
        else:
            listener.do_page()
    listener.check()
    last = open_world.tell()["sessions"][-1]
    assert last["state"] == "finished" and listener.answered == last["trials"] + len(opened["practice"])
    # Each trial says what it asks, and when it may be answered.
    for voice in listener.announced:
        assert re.search("What did the machine answer|The machine's answer|press the key", voice), voice
        assert "now" in voice, voice
    # A name tells what a picture is, and neither its condition nor an answer.
    assert listener.pictures <= SAID_OF_PICTURES, listener.pictures
