"""What the overview updates by itself: the header says the same as the table below it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from crowd.models import Posting
from experiments.models import Study
from tests.analysis import stored
from tests.crowd.logins import login, served

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.django_db, pytest.mark.browser]


def free(page: Page) -> tuple[int, int]:
    """How many places are free, by the header and by the table."""
    note = re.match(r"(\d+) places are free", page.locator("header .step p").first.inner_text())
    cells = page.locator("#places tbody tr td:nth-of-type(4)").all_inner_texts()
    assert note is not None and cells
    return int(note.group(1)), sum(map(int, cells))


def test_header_and_table_agree_after_people_came(study: Study, page: Page) -> None:
    Posting.objects.create(study=study, platform="local", mode="live")
    desk, root = login("bo", "view"), f"/studies/{study.slug}/"
    served(page, desk, root)
    page.clock.install()
    page.goto(f"http://desk.test{root}")
    before = free(page)
    assert before[0] == before[1]
    for number in range(3):
        stored.sitting(study, f"person-{number}", condition="control")
    served(page, desk, f"{root}live/")
    with page.expect_response("**/live/"):
        page.clock.run_for(6_000)
    page.wait_for_function("document.querySelectorAll('[data-replaces]').length === 0")
    page.get_by_text(f"{before[0] - 3} places are free").wait_for()
    assert free(page) == (before[0] - 3, before[0] - 3)
    assert page.locator("header .step").count() == 1
