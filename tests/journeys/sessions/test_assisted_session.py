"""A session of decisions with advice in Chromium against the production server, by keyboard, mouse and touch,
each alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analysis.tables.response_reader import read_frames
from experiments.models import Response, Session, Slot, Study
from experiments.selectors import definition_of
from tests.experiments.protocols import ASSISTED, as_in_studies, opened
from tests.journeys.pages.geometry import axe_findings, faults_of
from tests.journeys.sessions.hands import Fingers, Mouse
from tests.journeys.sessions.visitor import Visitor

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.journeys.conftest import Site

pytestmark = pytest.mark.browser

PLACES = """() => [".picture img", ".ask", ".answer", ".answer + .answer"].map(selector => {
    const box = document.querySelector(`.board:not([data-done]) ${selector}`).getBoundingClientRect();
    return [box.left, box.top, box.width, box.height].map(Math.round);
})"""
SAID = ".board:not([data-done]) .stated-now .stated-line"


@pytest.fixture
def study(transactional_db: None, store_folder: Path, tmp_path: Path) -> Study:
    made = opened(tmp_path / "a", "advised", "assisted_decision", as_in_studies(ASSISTED))
    # Every person gets a place where advice is explained.
    Slot.objects.filter(study=made).exclude(condition__name="marked").delete()
    return made


class Decider(Visitor):
    """Notes of every decision what was said, its place, and which pictures were there."""

    def __init__(self, *given: object) -> None:
        super().__init__(*given)  # type: ignore[arg-type]
        self.met: list[tuple[list[str], list[list[int]], int]] = []

    def answer(self) -> None:
        if self.page.locator(SAID).count():
            self.note()
        super().answer()

    def note(self) -> None:
        said = self.page.locator(SAID).all_inner_texts()
        pictures = self.page.locator(".board:not([data-done]) .picture img").count()
        assert axe_findings(self.page) == [] and faults_of(self.page, is_trial=True) == []
        self.met.append((said, self.page.evaluate(PLACES), pictures))


class DeciderByMouse(Decider, Mouse):
    """The same by the mouse."""


class DeciderByTouch(Decider, Fingers):
    """The same by touch."""


HANDS: dict[str, type[Decider]] = {"keyboard": Decider, "mouse": DeciderByMouse, "touch": DeciderByTouch}


def test_a_picture_is_decided_alone_and_again_in_the_same_place(
    study: Study, server: Site, place: Page, hand: str
) -> None:
    practice = [row["answer"] for row in study.practice if not row["example"]]
    decider = HANDS[hand](place, practice, {})
    decider.arrive(f"{server.url}/join/advised/?person=ada&submission=s1")
    while not decider.met:
        decider.step()
    # Once the same picture comes again, the first decision is kept; then the page is lost.
    assert decider.settle() == "trial"
    place.reload()
    assert decider.settle() == "block"
    decider.walk("finish")
    texts = dict(definition_of(study).choices)
    trials = read_frames(study).trials
    rows = trials[trials["kind"] == "decide"].sort_values("trial_index").to_dict("records")
    assert Session.objects.get().state == "finished" and len(decider.met) == len(rows) == 8
    assert [row["response"] for row in rows] == [value for value in decider.pressed if value in texts][-8:]
    for first, second in zip(rows[::2], rows[1::2], strict=True):
        assert (first["step"], second["step"], first["item"]) == ("first", "second", second["item"])
    for nth in range(0, 8, 2):
        (alone, before, pictures), (again, after, both) = decider.met[nth : nth + 2]
        earlier, advice = (texts[rows[nth + at][name]] for at, name in ((0, "response"), (1, "advice")))
        assert alone == ["Which is it?"] and pictures == 1 and both == 2
        assert again == [f"Your first answer: {earlier}", f"The machine's answer: {advice}", "Which is it?"]
        assert before == after, "nothing moves between the two"
    times = Response.objects.filter(trial__kind="decide").values_list("context", flat=True)
    assert all(context["onset_ms"] > 0 and context["input"] == hand for context in times)
    assert sum(context["reloads"] for context in times) == 1
