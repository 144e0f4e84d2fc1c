"""The page of f38355e in Chromium: opened while its own server was there, answered on while none was,
finished on today's. What its server had said to this page is stored, word by word.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from zipfile import ZipFile

import pytest

from tests import services
from tests.before.restored import STORED, Database, Place, json_of
from tests.journeys.sessions.visitor import Visitor
from tests.services import WebServer

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

pytestmark = pytest.mark.browser

WAITING = 3
"""Answers that are given while no server is there."""
KEPT = """() => new Promise((resolve, reject) => {
  const opened = indexedDB.open("legible");
  opened.onerror = () => reject(opened.error);
  opened.onsuccess = () => {
    const rows = opened.result.transaction("responses").objectStore("responses").getAll();
    rows.onsuccess = () => { opened.result.close(); resolve(rows.result.length); };
  };
})"""
TYPES = {".js": "text/javascript", ".css": "text/css", ".html": "text/html"}


@dataclass
class OldPage:
    """Stands between the browser and today's server. `mode`: "old" (the old server's own words), "gone"
    (no server answers), "new" (today's server answers the old page), "reload" (today's page, too).
    """

    server: WebServer
    told: dict[str, Any]
    files: dict[str, bytes]
    mode: str = "old"
    asked: list[str] = field(default_factory=list)

    def answer(self, route: Route) -> None:
        path = urlsplit(route.request.url).path
        self.asked.append(f"{self.mode} {path}")
        asset = self.files.get(path.removeprefix("/static/participant/"))
        if self.mode != "reload" and asset is not None:
            route.fulfill(body=asset, content_type=TYPES[Path(path).suffix])
        elif self.mode in ("new", "reload"):
            route.continue_()
        elif self.mode == "gone":
            route.abort()
        elif path.startswith("/join/"):
            route.fulfill(body=self.told["page"], content_type="text/html; charset=utf-8")
        elif path == "/api/sessions/":
            route.fulfill(json=self.told["joined"])
        elif path.startswith("/m/"):
            route.continue_()  # the same pictures under the same addresses
        else:
            route.abort()


@dataclass
class Scene:
    """Oda, whose page is open in the middle of a block."""

    old: OldPage
    visitor: Visitor
    database: Database

    def rows(self) -> list[tuple[int, str]]:
        session = json_of(f"people-{self.database.kind}")["halfway"]["oda"]["session"]
        return self.database.ask(
            "SELECT position, CAST(value AS text) FROM experiments_response "
            f"WHERE session_id = '{self.database.key(session)}' ORDER BY position"
        )

    def state(self) -> tuple[str, str]:
        [row] = self.database.ask(
            "SELECT state, verdict FROM experiments_session WHERE comment = 'Oda went on.'"
        )
        return row

    def finish(self) -> None:
        self.visitor.walk("comment")
        self.visitor.page.locator("textarea").fill("Oda went on.")
        self.visitor.press_primary()
        assert self.visitor.settle() == "finish"


@pytest.fixture
def scene(own_place: Place, page: Page) -> Iterator[Scene]:
    database, env = own_place
    told = json_of(f"people-{database.kind}")
    with ZipFile(STORED / "page.zip") as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    with services.web_server(env) as server:
        old = OldPage(server, told["browser"], files)
        page.route("**/*", old.answer)
        visitor = Visitor(page, [], {"task": "machine"})
        # The study is offered in several ways, so an address that is loaded again must name its posting.
        [[key]] = database.ask(
            "SELECT key FROM crowd_posting JOIN experiments_study s ON s.id = study_id "
            "WHERE s.slug = 'before' AND platform = 'local' AND NOT pilot"
        )
        visitor.arrive(f"{server.url}/join/before/?via={key}&{told['browser']['query']}")
        yield Scene(old, visitor, database)


def answers_wait(scene: Scene) -> None:
    """Three answers by the old script, kept by the browser alone."""
    before = len(scene.rows())
    while scene.visitor.settle() != "trial":
        scene.visitor.press_primary()
    scene.old.mode = "gone"
    scene.visitor.walk("finish", answers=WAITING)
    assert scene.visitor.page.evaluate(KEPT) == WAITING
    assert len(scene.rows()) == before == 5
    assert any("assets/index-" in path for path in scene.old.asked)


def arrived(scene: Scene) -> None:
    """The whole session is stored, the answers that waited in their places among them."""
    rows = scene.rows()
    assert [position for position, _ in rows] == list(range(19))
    for (_, value), pressed in zip(rows[5 : 5 + WAITING], scene.visitor.pressed, strict=False):
        assert pressed in value or "seen" in value
    assert scene.state() == ("finished", "passed")
    assert scene.visitor.page.evaluate(KEPT) == 0


def test_the_old_page_goes_on_with_todays_server(scene: Scene) -> None:
    answers_wait(scene)
    scene.old.mode = "new"
    scene.visitor.page.evaluate("window.dispatchEvent(new Event('online'))")
    scene.finish()
    assert any(path == "new /api/session/responses/" for path in scene.old.asked)
    arrived(scene)


def test_todays_page_finds_what_the_old_one_kept(scene: Scene) -> None:
    """The page is loaded again after the upgrade: its script is today's, its outbox the old one's."""
    answers_wait(scene)
    scene.old.mode = "reload"
    scene.visitor.page.reload()
    scene.finish()
    assert len(scene.visitor.pressed) == 19 - 5
    arrived(scene)
