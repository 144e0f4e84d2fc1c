"""What a browser loads of the participant's page, how it is served, and what if a part does not come."""

from __future__ import annotations

import gzip
import re
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest

from tests import open_world
from tests.journeys.sessions.visitor import Visitor
from tests.services import ROOT, WebServer

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

pytestmark = pytest.mark.browser

FIRST_LOAD_BYTES = 80_500
"""Of which 12,000 are kinds of trial that one study or another has, and 500 what fills sentences in any
language."""
ASSETS = ROOT / "frontend" / "dist" / "assets"
PATTERN = "**/assets/timeline-*.js"


@pytest.fixture(scope="module")
def opened(rows: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("study") / "small"
    return open_world.opened(folder, "blocks = 1", "min_view_ms = 0", "gap_ms = 0")


@pytest.fixture(scope="module")
def site(deployed: WebServer) -> WebServer:
    """The server that compresses and dates what it sends as in a deployment."""
    return deployed


def fetched(url: str, encoding: str = "") -> tuple[dict[str, str], bytes]:
    request = urllib.request.Request(url, headers={"Accept-Encoding": encoding} if encoding else {})
    with urllib.request.urlopen(request) as reply:
        return {name.lower(): value for name, value in reply.headers.items()}, reply.read()


def built(suffix: str) -> list[str]:
    return sorted(path.name for path in ASSETS.glob(f"*{suffix}"))


def test_it_serves_every_hashed_file_compressed_and_for_ever(site: WebServer) -> None:
    names = [*built(".js"), *built(".css")]
    assert len(names) > 2
    for name in names:
        address, plain = f"{site.url}/static/participant/assets/{name}", (ASSETS / name).read_bytes()
        for encoding in ("br", "gzip"):
            headers, body = fetched(address, encoding)
            assert headers["content-encoding"] == encoding and headers["vary"] == "Accept-Encoding"
            assert headers["cache-control"] == "max-age=315360000, public, immutable"
            assert len(body) < len(plain)
        assert gzip.decompress(body) == plain
        assert fetched(address)[1] == plain


def test_it_does_not_keep_for_ever_what_may_change(site: WebServer, opened: dict[str, Any]) -> None:
    page, style = "/static/participant/index.html", "/static/dashboard/dashboard.css"
    for path in (page, style, "/join/small/?person=x"):
        assert "immutable" not in fetched(f"{site.url}{path}")[0]["cache-control"], path


def sizes(page: Page, url: str) -> dict[str, int]:
    """Bytes over the wire by path, headers included, of everything that a first page and its rest bring."""
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    paths: dict[str, str] = {}
    received: dict[str, int] = {}

    def ended(event: dict[str, Any]) -> None:
        if event["requestId"] in paths:
            received[paths[event["requestId"]]] = event["encodedDataLength"]

    def began(event: dict[str, Any]) -> None:
        paths[event["requestId"]] = event["request"]["url"].split("/", 3)[3].split("?")[0]

    session.on("Network.requestWillBeSent", began)
    session.on("Network.loadingFinished", ended)
    page.goto(url)
    page.wait_for_selector("[data-page]")
    page.wait_for_load_state("networkidle")
    session.detach()
    return {path: size for path, size in received.items() if path}


def test_a_first_load_is_small(visitor: Visitor, site: WebServer) -> None:
    """All that comes while the consent is read, trials included: they wait for nothing later."""
    loaded = sizes(visitor.page, f"{site.url}/join/small/?person=ada&submission=s1")
    code = {path: size for path, size in loaded.items() if path.startswith(("join/", "static/"))}
    assert sum(code.values()) <= FIRST_LOAD_BYTES, code
    # A measure that misses a file would pass too: every file that was built is among them, but those of
    # gates which this study does not have.
    expected = {
        name
        for name in (*built(".js"), *built(".css"))
        if not name.startswith(("plates-", "screen-", "training-"))
    }
    assert {path.rpartition("/")[2] for path in code} == expected | {""}
    later: list[str] = []
    visitor.page.on("request", lambda request: later.append(request.url))
    visitor.walk("finish", answers=1)
    assert not [url for url in later if "/static/" in url]


def test_the_first_page_does_not_wait_for_the_trials(visitor: Visitor, site: WebServer) -> None:
    page = visitor.page
    page.route(PATTERN, lambda route: None)  # never answered
    visitor.arrive(f"{site.url}/join/small/?person=bea&submission=s2")
    visitor.walk("practice")


def test_it_asks_again_for_a_lost_part(visitor: Visitor, site: WebServer) -> None:
    failed: list[str] = []

    def fail_twice(route: Route) -> None:
        if len(failed) < 2:
            failed.append(route.request.url)
            route.abort()
        else:
            route.continue_()

    visitor.page.route(PATTERN, fail_twice)
    visitor.arrive(f"{site.url}/join/small/?person=cy&submission=s3")
    visitor.walk("finish", answers=1)
    assert len(failed) == 2


def test_a_part_that_never_comes_ends_calmly_and_loses_nothing(visitor: Visitor, site: WebServer) -> None:
    page = visitor.page
    page.route(PATTERN, lambda route: route.abort())
    visitor.arrive(f"{site.url}/join/small/?person=dee&submission=s4")
    visitor.walk("trouble")
    trouble = page.locator('[data-page="trouble"]')
    assert trouble.get_attribute("data-code") == "cannot_load"
    assert re.search("could not be loaded.*Nothing is lost", trouble.inner_text(), re.DOTALL)
    page.unroute(PATTERN)
    trouble.get_by_role("button", name="Load the page again").click()
    # The gates are not asked again: the trials come next.
    page.wait_for_selector("[data-page]:not([data-page=trouble])")
    assert visitor.settle() == "block"
    visitor.walk("finish", answers=2)
    last = open_world.tell()["sessions"][-1]
    assert last["state"] == "running"
