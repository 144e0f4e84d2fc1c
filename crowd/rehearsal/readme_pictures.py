"""Pictures of a demo for README and documentation: what a participant sees, what a researcher sees, and the
report. Everybody in them is simulated, and the pages say so."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from django.urls import reverse

from crowd.rehearsal.demo.folder_and_port import DemoFailed
from crowd.rehearsal.demo.server import login_path
from experiments.models import Session, Study

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

WIDTH, HEIGHT = 1280, 860
# What README shows in half a page's width: left, top, width and height.
CROPS = {"learning": (200, 0, 1080, 720), "excluded": (270, 255, 1010, 605)}
BOARD, GO_ON = ".board img", "main button"
LOADED = "() => [...document.images].every(i => i.loading === 'lazy' || (i.complete && i.naturalWidth > 0))"


@dataclass(frozen=True, slots=True)
class Exhibit:
    """What the pictures need of the rows, read before the browser is open: Django refuses rows beside it.
    `entry` logs in once; `conditions` in the order of the study; `excluded` is the session that
    broke most rules, if one did."""

    slug: str
    entry: str
    conditions: tuple[str, ...]
    excluded: str | None

    @classmethod
    def of(cls, study: Study) -> Exhibit:
        names = study.conditions.order_by("ordinal").values_list("name", flat=True)
        screened = Session.objects.filter(study=study, origin="simulated", verdict="screened")
        excluded = max(screened.order_by("pk"), key=lambda session: len(session.reasons), default=None)
        return cls(study.slug, login_path(), tuple(names), str(excluded.pk) if excluded else None)


def show(exhibit: Exhibit, url: str, browser: Browser, to: Path) -> list[Path]:
    """Writes learning.png, trial.png, excluded.png, quality.png, planted.png and report.png into `to`, as
    far as the demo has them. Raises DemoFailed if no trial of the study shows or asks about a picture."""
    to.mkdir(parents=True, exist_ok=True)
    drawn: list[Path] = []
    context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
    try:
        page = context.new_page()
        page.goto(f"{url}{exhibit.entry}")
        page.get_by_role("button", name="Log in").click()
        slug, report = exhibit.slug, reverse("dashboard:report_page", args=[exhibit.slug, "simulated"])
        pages = {
            "learning": _trial(exhibit, url, page, "Training", pictures=2),
            "trial": _trial(exhibit, url, page, "Test", pictures=1),
            **(
                {"excluded": reverse("dashboard:participant", args=[slug, exhibit.excluded])}
                if exhibit.excluded
                else {}
            ),
            "quality": f"{reverse('dashboard:quality', args=[slug])}?origin=simulated",
            "planted": report,
            "report": report,
        }
        for name, address in pages.items():
            page.goto(f"{url}{address}")
            shown: Page | Locator = page
            if name in {"learning", "trial"}:
                _reach_board(page)
            elif name == "planted":
                shown = page.locator("#planted_cases figure")
                if not shown.count():
                    continue  # The demo of another study has none.
            elif name == "report":
                page.locator("h2").first.evaluate("heading => heading.scrollIntoView()")
            page.wait_for_function(LOADED)
            drawn.append(to / f"{name}.png")
            if name in CROPS:
                x, y, width, height = CROPS[name]
                page.screenshot(path=drawn[-1], clip={"x": x, "y": y, "width": width, "height": height})
            else:
                shown.screenshot(path=drawn[-1])
    finally:
        context.close()
    return drawn


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


def _trial(exhibit: Exhibit, url: str, page: Page, part: str, pictures: int) -> str:
    """The address of a preview of the last method's second trial of a part that shows so many pictures:
    before the first, a page says what comes."""
    for name in reversed(exhibit.conditions):
        page.goto(f"{url}{reverse('dashboard:preview', args=[exhibit.slug])}?condition={name}")
        rows = page.locator("table.plan tr", has=page.get_by_role("cell", name=part, exact=True))
        rows = rows.filter(has=page.locator(f".shows a:nth-of-type({pictures}) img"))
        if rows.count() > 1:
            return str(rows.nth(1).locator("td a").first.get_attribute("href"))
    raise DemoFailed(
        f"No trial of {exhibit.slug} shows {pictures} pictures in {part}: there is nothing to show."
    )
