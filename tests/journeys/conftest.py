"""Servers over the rows and files of one test or of one file, and the browser's pages."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler
from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler
from django.db import connection

from tests import canned, services
from tests.journeys.sessions.hands import tablet
from tests.journeys.sessions.visitor import Visitor
from tests.run import databases
from tests.services import WebServer

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, ViewportSize
    from pytest_django import DjangoDbBlocker

    from experiments.models import Study

DESKTOP: ViewportSize = {"width": 1280, "height": 800}


@dataclass(frozen=True, slots=True)
class Site:
    """Where the server is; `url` has no slash at its end."""

    url: str


class Quiet(WSGIRequestHandler):
    """Writes no line for each request."""

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def serving() -> Iterator[Site]:
    """Serves this process's own rows and files by threads: all that is Django's part of a deployment. To
    start the production server costs more than most walks; some journeys do (`deployed`)."""
    server = ThreadedWSGIServer(("127.0.0.1", 0), Quiet)
    server.set_app(WSGIHandler())
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield Site(f"http://127.0.0.1:{server.server_port}")
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="module")
def rows(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Rows and files that all tests of a file share."""
    with pytest.MonkeyPatch.context() as patch, django_db_blocker.unblock():
        patch.setattr(settings, "STORAGE_URL", str(tmp_path_factory.mktemp("module") / "store"))
        try:
            yield
        finally:
            databases.empty(connection)


def environment() -> dict[str, str]:
    """What other processes need to share the rows and the files of this one."""
    database = connection.settings_dict
    if connection.vendor == "postgresql":
        url = services.postgres_url(int(database["PORT"]), str(database["NAME"]))
    else:
        url = f"sqlite:///{database['NAME']}"
    return {"DATABASE_URL": url, "STORAGE_URL": settings.STORAGE_URL, "CELERY_BROKER_URL": ""}


@pytest.fixture
def server_env(transactional_db: None, store_folder: Path) -> dict[str, str]:
    """What other processes need to share the rows and the files of this test."""
    return environment()


@pytest.fixture
def server(transactional_db: None, store_folder: Path, study: Study) -> Iterator[Site]:
    """Serves once the test's own study is open."""
    with serving() as started:
        yield started


@pytest.fixture(scope="module")
def site(rows: None) -> Iterator[Site]:
    """Serves the rows of a file, for tests whose people meet the same study, each on their own."""
    with serving() as started:
        yield started


@pytest.fixture(scope="module")
def deployed(rows: None) -> Iterator[WebServer]:
    """The production server, with the rows of a file."""
    with services.web_server(environment()) as started:
        yield started


@pytest.fixture(scope="session")
def toy_page(run_folder: Path) -> Path:
    """The page with a lab's own kind (tests/toy), built once in a run."""
    built = run_folder / "toy-page"
    with databases.only_one(run_folder / "toy-page.lock"):
        if not built.is_dir():
            subprocess.run(
                [shutil.which("npx") or "npx", "vite", "build", "--outDir", f"{built}.new", "--emptyOutDir"],
                cwd=services.ROOT / "frontend",
                env={**os.environ, "LEGIBLE_PLUGINS": str(services.ROOT / "tests" / "toy" / "frontend")},
                check=True,
                capture_output=True,
            )
            Path(f"{built}.new").rename(built)
    return built


@pytest.fixture
def visitor(opened: dict[str, Any], tab: Page) -> Visitor:
    """A person at the keyboard, for a file with its `opened` study."""
    return Visitor(tab, opened["practice"], opened["quiz"])


OTHER_HANDS = pytest.mark.long(
    stays="tests/journeys/sessions/test_assisted_session.py::test_a_picture_is_decided_alone_and_again_in_the_same_place"
)
"""A session by mouse or by touch is long; the same by keyboard stays."""


@pytest.fixture(params=["keyboard", *(pytest.param(name, marks=OTHER_HANDS) for name in ("mouse", "touch"))])
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
    """The one page that tests of this process share: a fresh one costs a process of the browser. Each session
    has an address and a place in the browser's storage of its own."""
    kept_tab.set_viewport_size(DESKTOP)
    yield kept_tab
    for other in kept_tab.context.pages:
        if other is not kept_tab:
            other.close()
    kept_tab.context.set_offline(False)
    kept_tab.unroute_all(behavior="ignoreErrors")
    kept_tab.goto("about:blank")
    kept_tab.emulate_media(media="null", color_scheme="null", reduced_motion="null", forced_colors="null")
