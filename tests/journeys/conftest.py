"""The production server over the rows and files of one test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection

from tests import canned, databases, services
from tests.journeys.hands import tablet
from tests.journeys.visitor import Visitor
from tests.services import ROOT, WebServer

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, ViewportSize
    from pytest_django.fixtures import Settings

    from experiments.models import Study

DESKTOP: ViewportSize = {"width": 1280, "height": 800}


def world(env: dict[str, str], *words: str) -> dict[str, Any]:
    """What `tests.open_world` did with the world of `env`, and what is stored there now."""
    command = [sys.executable, "-m", "tests.open_world", *words]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **env}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    state: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return state


@pytest.fixture(scope="module")
def module_env(run_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """What processes need in order to share one world in all tests of a file."""
    folder = tmp_path_factory.mktemp("module")
    with databases.fresh(run_folder) as url:
        yield {
            "DATABASE_URL": url,
            "STORAGE_URL": str(folder / "store"),
            "LEGIBLE_VAR": str(folder / "var"),
            "CELERY_BROKER_URL": "",
        }


@pytest.fixture
def server_env(transactional_db: None, store_folder: Path, settings: Settings) -> dict[str, str]:
    """What other processes need to share the rows and the files of this test."""
    database = connection.settings_dict
    if connection.vendor == "postgresql":
        url = services.postgres_url(int(database["PORT"]), str(database["NAME"]))
    else:
        url = f"sqlite:///{database['NAME']}"
    return {"DATABASE_URL": url, "STORAGE_URL": settings.STORAGE_URL, "CELERY_BROKER_URL": ""}


@pytest.fixture
def server(server_env: dict[str, str], study: Study) -> Iterator[WebServer]:
    """Serves once the test's own study is open."""
    with services.web_server(server_env) as started:
        yield started


@pytest.fixture(scope="module")
def site(module_env: dict[str, str]) -> Iterator[WebServer]:
    """Serves the world of a file, for tests whose people meet the same study, each on their own."""
    with services.web_server(module_env) as started:
        yield started


@pytest.fixture
def visitor(opened: dict[str, Any], page: Page) -> Visitor:
    """A person at the keyboard, for a file with its `opened` study."""
    return Visitor(page, opened["practice"], opened["quiz"])


@pytest.fixture(
    params=["keyboard", *(pytest.param(name, marks=pytest.mark.long) for name in ("mouse", "touch"))]
)
def hand(request: pytest.FixtureRequest) -> str:
    """By what alone a person takes part."""
    return str(request.param)


@pytest.fixture
def place(hand: str, browser: Browser, page: Page) -> Iterator[Page]:
    """The page of a person who takes part by that hand."""
    if hand != "touch":
        yield page
        return
    with tablet(browser) as touched:
        yield touched


@pytest.fixture(autouse=True)
def canned_sessions() -> Iterator[None]:
    """What a test left open is closed, and was told and sent in the form of the wire."""
    yield
    canned.close_all()


@pytest.fixture(scope="session")
def kept_tab(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport=DESKTOP)
    yield context.new_page()
    context.close()


@pytest.fixture
def tab(kept_tab: Page) -> Iterator[Page]:
    """The one page that all canned sessions of this process are shown in: a fresh one costs a process of the
    browser. Each session has an address and a place in the browser's storage of its own."""
    kept_tab.set_viewport_size(DESKTOP)
    yield kept_tab
    kept_tab.unroute_all(behavior="ignoreErrors")
    kept_tab.goto("about:blank")
    kept_tab.emulate_media(media="null", color_scheme="null", reduced_motion="null", forced_colors="null")
