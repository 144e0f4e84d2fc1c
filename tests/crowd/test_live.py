"""What the overview updates by itself: the header says the same as the table below it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from crowd.models import Posting
from experiments.models import Study
from tests.analysis import stored
from tests.crowd.logins import login

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

pytestmark = [pytest.mark.django_db, pytest.mark.browser]
SCRIPT = Path(__file__).parents[2] / "crowd" / "dashboard" / "static" / "dashboard" / "dashboard.js"
DESK = "http://desk.test"


def free(page: Page) -> tuple[int, int]:
    """How many places are free, by the header and by the table."""
    note = re.match(r"(\d+) places are free", page.locator("header .step p").first.inner_text())
    cells = page.locator("#places tbody tr td:nth-of-type(4)").all_inner_texts()
    assert note is not None and cells
    return int(note.group(1)), sum(map(int, cells))


def test_header_and_table_agree_after_people_came(study: Study, page: Page) -> None:
    Posting.objects.create(study=study, platform="local", mode="live")
    desk = login("bo", "view")
    root = f"{DESK}/studies/{study.slug}/"
    parts: dict[str, bytes] = {}

    def serve(route: Route) -> None:
        path = route.request.url.removeprefix(DESK)
        if path in parts:
            route.fulfill(body=parts[path], content_type="text/html; charset=utf-8")
        else:
            route.abort()

    parts[f"/studies/{study.slug}/"] = desk.get(f"/studies/{study.slug}/").content
    page.route("**/*", serve)
    page.clock.install()
    page.goto(root)
    page.add_script_tag(content=SCRIPT.read_text())
    before = free(page)
    assert before[0] == before[1]
    for number in range(3):
        stored.sitting(study, f"person-{number}", condition="control")
    parts[f"/studies/{study.slug}/live/"] = desk.get(f"/studies/{study.slug}/live/").content
    with page.expect_response("**/live/"):
        page.clock.run_for(6_000)
    page.wait_for_function("document.querySelectorAll('[data-replaces]').length === 0")
    page.get_by_text(f"{before[0] - 3} places are free").wait_for()
    assert free(page) == (before[0] - 3, before[0] - 3)
    assert page.locator("header .step").count() == 1
