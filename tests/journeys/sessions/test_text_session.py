"""Whole sessions of a study of texts in Chromium, by keyboard alone: guess, reveal, test; reload and lost
connection."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analysis.tables.response_reader import read_frames
from experiments.models import Event, Response, Session, Study, Trial
from experiments.selectors import definition_of
from tests.experiments.protocols import SENTENCES, TURING, write
from tests.journeys.conftest import Site
from tests.journeys.pages.geometry import axe_findings, faults_of
from tests.journeys.sessions.visitor import NEXT, Visitor
from tests.world import opened_study

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser
TRAIN, TEST, CHECKS = 4, 4, 1
DESIGN = TURING.replace("train_items = 3", f"train_items = {TRAIN}").replace(
    "test_items = 2", f"test_items = {TEST}"
)


@pytest.fixture
def study(page: Page, transactional_db: None, tmp_path: Path, store_folder: Path) -> Study:
    folder = tmp_path / "letters"
    folder.mkdir()
    path = write(folder, "letters", "reverse_turing", DESIGN, sources=SENTENCES)
    stimuli = 'items = 8\nbalance = "none"', 'items = 12\nbalance = "prediction"'
    path.write_text(path.read_text().replace(*stimuli))
    return opened_study(path)


@pytest.fixture
def visitor(page: Page, study: Study) -> Visitor:
    return Visitor(page, [row["answer"] for row in study.practice if not row["example"]], {})


def arrive(visitor: Visitor, server: Site, person: str) -> None:
    visitor.arrive(f"{server.url}/join/letters/?person={person}&submission=s-{person}")


def guesses(session: Session) -> list[Trial]:
    assert session.slot is not None
    return list(session.slot.trials.filter(kind="learn").select_related("item").order_by("position"))


def labels(study: Study, trials: list[Trial]) -> list[str]:
    """What the model says of each text, as people read it."""
    texts = dict(definition_of(study).choices)
    return [texts[trial.item.predicted] for trial in trials if trial.item is not None]


def test_a_session_by_keyboard_stores_guesses_and_reveals_what_the_model_says(
    visitor: Visitor, server: Site, study: Study
) -> None:
    """The first guess without a connection, the second with a reload before and after going on."""
    arrive(visitor, server, "ada")
    seen: set[str] = set()
    while (here := visitor.settle()) != "finish":
        is_guessing = here == "trial" and visitor.practised == len(visitor.practice)
        if here == "trial":
            count = visitor.page.locator(".board:not([data-done]) .answer").count()
            here = f"trial with {count} answers, {len(visitor.told)} told, {visitor.practised} practised"
        if here not in seen:
            assert axe_findings(visitor.page) == [], here
            assert faults_of(visitor.page, is_trial=visitor.page.locator(".board").count() > 0) == [], here
            seen.add(here)
        if here == "untold":
            assert (len(visitor.pressed), len(visitor.told)) == (TRAIN, TRAIN), "after the last reveal"
            said = visitor.page.locator("[data-page=untold]").inner_text()
            assert f"You have done {TRAIN} examples" in said and f"{TEST} texts" in said
        if is_guessing and not visitor.pressed:
            guesses_without_a_connection(visitor)
        elif here == "revealed" and len(visitor.pressed) == 2:
            loads_again_before_and_after_going_on(visitor)
        else:
            visitor.step()
    assert "untold" in seen
    session = Session.objects.select_related("slot").get()
    assert session.state == "finished" and session.verdict == "passed"
    answers = list(session.responses.order_by("position"))
    assert [row.value["choice"] for row in answers] == visitor.pressed
    assert len(answers) == TRAIN + TEST + CHECKS
    trials = guesses(session)
    assert visitor.told == labels(study, trials), "each guess is followed by what the model says of that text"
    # Onset and frames are known although there is no picture to wait for.
    assert all(row.context["frames"] >= 1 and row.context["onset_ms"] > 0 for row in answers)
    assert {row.context["input"] for row in answers} == {"keyboard"}
    assert all(row.shown_ms >= row.rt_ms > 0 for row in answers)
    # Their times begin anew with each page that is loaded.
    revealed = list(Event.objects.filter(session=session, kind="revealed"))
    assert len(revealed) == TRAIN and {event.trial_id for event in revealed} == {trial.pk for trial in trials}
    frame = read_frames(study).trials.sort_values("trial_index")
    told_ms = {event.trial_id: event.detail["shown_ms"] for event in revealed}
    learnt = frame.loc[frame["kind"] == "learn", "revealed_ms"].tolist()
    assert learnt == [told_ms[trial.pk] for trial in trials] and min(learnt) > 0
    assert frame.loc[frame["kind"] != "learn", "revealed_ms"].isna().all()


def guesses_without_a_connection(visitor: Visitor) -> None:
    """It waits calmly, and nothing is lost."""
    page = visitor.page
    page.context.set_offline(True)
    visitor.answer()
    page.locator(".strip").filter(has_text="1 answer is kept here").wait_for()
    page.locator(".ask").filter(has_text="on its way").wait_for()
    assert page.locator(".text p").count() == 1 and page.locator(NEXT).count() == 0
    assert axe_findings(page) == []
    assert Response.objects.count() == 0
    page.context.set_offline(False)
    assert visitor.settle() == "revealed"
    page.locator(".strip").wait_for(state="hidden")


def loads_again_before_and_after_going_on(visitor: Visitor) -> None:
    """Before, what was revealed is shown again; after, it is not."""
    page = visitor.page
    text = page.locator(".text p").inner_text()
    told = page.locator(".label").inner_text()
    page.reload()
    assert visitor.settle() == "block"
    visitor.press_primary()
    assert visitor.settle() == "revealed"
    assert page.locator(".text p").inner_text() == text and page.locator(".label").inner_text() == told
    assert page.locator(".answer.pressed").get_attribute("data-value") == visitor.pressed[-1]
    visitor.read_reveal()
    assert visitor.settle() == "trial"
    second = page.locator(".text p").inner_text()
    page.reload()
    visitor.press_primary()
    assert visitor.settle() == "trial"
    assert page.locator(".text p").inner_text() == second != text
    assert Response.objects.count() == 2


@pytest.mark.long(stays="test_a_session_by_keyboard_stores_guesses_and_reveals_what_the_model_says")
def test_between_learning_and_answering_a_page_comes_once_whatever_happens_there(
    visitor: Visitor, server: Site, study: Study
) -> None:
    page = visitor.page
    arrive(visitor, server, "dan")
    visitor.walk("finish", answers=TRAIN)
    assert visitor.settle() == "revealed"
    # The key that passes the last reveal is held: it does not press the button of the page as well.
    page.keyboard.down("Enter")
    assert visitor.settle() == "untold"
    page.locator("[data-page=untold] .button:focus").wait_for()
    page.keyboard.down("Enter")
    page.keyboard.up("Enter")
    assert visitor.settle() == "untold"
    said = page.locator("[data-page=untold]").inner_text()
    # A reload is no way around it, and no second page comes before it.
    page.reload()
    assert visitor.settle() == "untold"
    assert page.locator("[data-page=untold]").inner_text() == said
    page.context.set_offline(True)
    visitor.press_primary()
    assert visitor.settle() == "trial"
    visitor.answer()
    page.locator(".strip").filter(has_text="1 answer is kept here").wait_for()
    page.context.set_offline(False)
    page.locator(".strip").wait_for(state="hidden")
    assert visitor.settle() == "trial"
    page.reload()
    assert visitor.settle() == "block"
    assert "Welcome back" in page.locator("[data-page=block]").inner_text()
    visitor.press_primary()
    assert visitor.walk("finish") == "finish"
    session = Session.objects.get()
    answers = list(session.responses.order_by("position"))
    assert [row.value["choice"] for row in answers] == visitor.pressed
    assert len(answers) == TRAIN + TEST + CHECKS
    assert [row.context["reloads"] for row in answers][TRAIN : TRAIN + 2] == [1, 1]
