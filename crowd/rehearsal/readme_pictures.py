"""Three pictures of a demo for README and documentation: what a participant sees, what a researcher sees, and
the report. Everybody in them is simulated, and the pages say so."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from django.contrib.auth.models import User
from django.urls import reverse

from crowd.dashboard.login_links import make_login_path
from crowd.rehearsal.demo.folder_and_port import DemoFailed
from experiments.models import Study

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

WIDTH, HEIGHT = 1280, 860
BOARD, GO_ON = ".board img", "main button"
LOADED = "() => [...document.images].every(image => image.complete && image.naturalWidth > 0)"


@dataclass(frozen=True, slots=True)
class Exhibit:
    """What the pictures need of the rows, read before the browser is open: Django refuses rows beside it.
    `entry` logs in once; `conditions` in the order of the study."""

    slug: str
    entry: str
    conditions: tuple[str, ...]

    @classmethod
    def of(cls, study: Study) -> Exhibit:
        """Raises DemoFailed if the demo has no login."""
        user = User.objects.filter(is_superuser=True).order_by("pk").first()
        if user is None:
            raise DemoFailed("There is no login: the last demo did not come to its end. Make one: make demo")
        names = study.conditions.order_by("ordinal").values_list("name", flat=True)
        return cls(study.slug, make_login_path(user), tuple(names))


def show(exhibit: Exhibit, url: str, browser: Browser, to: Path) -> list[Path]:
    """Writes trial.png, quality.png and report.png into `to`. Raises DemoFailed if no trial of the study
    asks about a picture."""
    to.mkdir(parents=True, exist_ok=True)
    context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
    try:
        page = context.new_page()
        page.goto(f"{url}{exhibit.entry}")
        page.get_by_role("button", name="Log in").click()
        pages = {
            "trial": f"{url}{_asked_trial(exhibit, url, page)}",
            "quality": f"{url}{reverse('dashboard:quality', args=[exhibit.slug])}?origin=simulated",
            "report": f"{url}{reverse('dashboard:report_page', args=[exhibit.slug, 'simulated'])}",
        }
        for name, address in pages.items():
            page.goto(address)
            if name == "trial":
                _reach_board(page)
            elif name == "report":
                page.locator("h2").first.evaluate("heading => heading.scrollIntoView()")
            page.wait_for_function(LOADED)
            page.screenshot(path=to / f"{name}.png")
    finally:
        context.close()
    return [to / f"{name}.png" for name in pages]


def _reach_board(page: Page) -> None:
    """Past the pages that say what comes next, to a trial with the examples that were explained."""
    for _ in range(3):
        page.wait_for_selector(f"{BOARD}, {GO_ON}")
        if page.locator(BOARD).count():
            break
        page.locator(GO_ON).first.click()
    page.wait_for_selector(BOARD)
    examples = page.get_by_role("button", name="examples")
    if examples.count():
        examples.first.click()


def _asked_trial(exhibit: Exhibit, url: str, page: Page) -> str:
    """The address of a preview of the last method's first trial that asks and is not the first of its part:
    before that, a page says what comes."""
    for name in reversed(exhibit.conditions):
        page.goto(f"{url}{reverse('dashboard:preview', args=[exhibit.slug])}?condition={name}")
        rows = page.locator("table.plan tr", has=page.get_by_role("cell", name="Test", exact=True))
        rows = rows.filter(has=page.locator(".shows img"))
        if rows.count() > 1:
            return str(rows.nth(1).locator("td a").first.get_attribute("href"))
    raise DemoFailed(f"No trial of {exhibit.slug} asks about a picture, so there is nothing to show.")
