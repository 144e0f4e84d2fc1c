"""Every page that a participant can meet, measured in every window; and that each measure can fail."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from crowd.rehearsal.screens.album import WINDOWS, Window, in_window
from crowd.rehearsal.screens.catalog import Screen
from crowd.rehearsal.screens.study_copy import Stage
from crowd.rehearsal.screens.walk import walk
from experiments.models import Study
from experiments.selectors import definition_of
from experiments.stages.solution_freeze import freeze
from experiments.wording.smallest_window import windows_of
from tests.experiments.protocols import (
    ASSISTED,
    REVIEW,
    SENTENCES,
    SOLVE,
    TURING,
    USES,
    as_in_studies,
    solved,
    write,
)
from tests.journeys.conftest import Site
from tests.journeys.pages.geometry import axe_findings, faults_of
from tests.world import opened_study, silent, write_study

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser


def pictures(folder: Path) -> Path:
    """As large as in studies; one condition without and one with explanations."""
    path = write_study(folder, picture_px="picture_px = 320")
    text = path.read_text()
    start = text.index('[[conditions]]\nname = "control"')
    path.write_text(text[:start] + text[text.index('[[conditions]]\nname = "saliency"') :])
    return path


def texts(folder: Path) -> Path:
    """Guesses whose answers are revealed, then a test without."""
    folder.mkdir()
    return write(folder, "letters", "reverse_turing", TURING, sources=SENTENCES)


def advised(folder: Path) -> Path:
    """Decisions alone and again, without advice, with it, and with its explanation."""
    folder.mkdir()
    path = write(folder, "advised", "assisted_decision", as_in_studies(ASSISTED))
    text = path.read_text()
    path.write_text(text[: text.index('[[conditions]]\nname = "unrelated"')])
    return path


def tasks(folder: Path) -> Path:
    """Pictures that experts mark."""
    return write(folder, "tasks", "blind_review", as_in_studies(SOLVE), uses=USES)


def judged(folder: Path) -> Path:
    """Answers that leads accept or reject, one at a time."""
    freeze(solved(folder / "solved"))
    return write(folder / "judged", "judged", "blind_review", as_in_studies(REVIEW), uses=USES)


KINDS = (pictures, tasks, judged, texts, advised)
SHORT = KINDS[:3]
"""Texts and advice, which have journeys of their own, are looked at in every window by `make prove`."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "study" in metafunc.fixturenames:
        kinds = KINDS if metafunc.config.getoption("full") else SHORT
        metafunc.parametrize("study", kinds, indirect=True, ids=[kind.__name__ for kind in kinds])


@pytest.fixture
def study(
    request: pytest.FixtureRequest,
    browser: Browser,
    transactional_db: None,
    tmp_path: Path,
    store_folder: Path,
) -> Study:
    return opened_study(request.param(tmp_path / "small"))


def is_let_in(study: Study, window: Window) -> bool:
    """Whether the trials are shown in such a window."""
    return any(w.holds(window.width_px, window.height_px) for w in windows_of(definition_of(study)))


@pytest.mark.full
@pytest.mark.apart
def test_every_page_fits_every_window(study: Study, server: Site, browser: Browser) -> None:
    faults: list[str] = []
    looked: Counter[str] = Counter()

    def look(page: Page, screen: Screen) -> None:
        is_board = page.locator(".board").count() > 0
        is_trial = is_board or page.locator(".solving").count() > 0
        for window in WINDOWS:
            if is_trial and not is_let_in(study, window):
                continue
            with in_window(page, window):
                seen = faults_of(page, is_trial=is_board)
            faults.extend(f"{screen.name}, {window.name}: {each}" for each in seen)
            looked[window.name] += 1
        faults.extend(f"{screen.name}: axe: {each}" for each in axe_findings(page))

    lost, said = walk(browser, server.url, Stage(study, "en"), look, silent)
    assert not lost, (lost, said)
    assert len(looked) == len(WINDOWS) and min(looked.values()) > 20
    assert not faults, "\n".join(faults)


PLANTED = {
    "sideways": "<p style='inline-size: 2000px'>long</p>",
    "cut by the window": "<p style='position: absolute; left: -20px'>cut at the left</p>",
    "cut by its place": "<p style='width: 40px; overflow: hidden; white-space: nowrap'>a long text</p>",
    "cut in height": "<div style='block-size: 8px; overflow: hidden'><p style='margin: 0'>too high</p></div>",
    "overlap": "<p>one</p><button style='position: absolute; inset-block-start: 10px'>two</button>",
    "outside the window": "<div class='board'><p class='ask' style='margin-top: 900px'>?</p></div>",
    "begins in the middle": "<dialog style='block-size: 90px; overflow: auto'>"
    "<p style='block-size: 600px'>long</p>"
    "<button>close</button></dialog><script>document.querySelector('dialog').showModal()</script>",
    "cannot be reached": "<button class='button primary'>go</button>"
    "<div style='position: fixed; inset: 0; background: #fff'></div>",
}


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_seen(page: Page, fault: str) -> None:
    page.set_content(f"<!doctype html><title>x</title>{PLANTED[fault]}")
    seen = faults_of(page, is_trial=fault == "outside the window")
    assert any(each.startswith(fault) for each in seen), seen


def test_a_page_without_a_fault_has_none(page: Page) -> None:
    page.set_content(
        "<!doctype html><html lang=en><title>x</title><main><h1>One</h1><p>two</p>"
        "<button class='button primary' style='min-block-size: 44px'>go</button></main>"
    )
    assert faults_of(page, is_trial=False) == [] and axe_findings(page) == []


def test_axe_sees_pale_letters(page: Page) -> None:
    page.set_content(
        "<!doctype html><html lang=en><title>x</title><main><h1>One</h1>"
        "<p style='color: #999; background: #fff'>two</p></main>"
    )
    assert any(each.startswith("color-contrast") for each in axe_findings(page))
