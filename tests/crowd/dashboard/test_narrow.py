"""Every page of a study on a phone by night and on a desk by day: nothing runs off it; axe finds nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from django.test import Client
from django.urls import reverse

from analysis.stored_reports.refresh import refresh_report
from crowd.dashboard.layout import TABS
from crowd.models import Posting
from experiments.models import Study
from tests.analysis import stored
from tests.crowd.logins import login, served
from tests.journeys.pages.geometry import axe_findings

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.django_db, pytest.mark.browser]
MORE = ("close", "compare", "roles", "raters", "agreement", "hand", "service", "studies")
PICTURES = os.environ.get("LEGIBLE_PICTURES", "")
"""A folder for pictures of the pages, to look at."""


def filled(study: Study) -> tuple[Client, dict[str, str]]:
    """A login that may do all, and the pages by name, of a study that people take part in."""
    people = stored.cast(study)
    Posting.objects.create(study=study, platform="prolific", mode="live", state="open", places=20, taken=5)
    refresh_report(study, "human")
    desk = login("grace", "view", "run", "pay", "unseal", study=study)
    desk.post(
        reverse("dashboard:new_key", args=[study.slug]), {"name": "the nightly backup of the laboratory"}
    )
    pages = {name: reverse(f"dashboard:{name}", args=[study.slug]) for name, _ in TABS}
    person = people["bo"]
    pages["exclude"] = reverse("dashboard:exclude", args=[study.slug, person.pk])
    pages["participant"] = reverse("dashboard:participant", args=[study.slug, person.pk])
    for name in MORE:
        of_study = name not in ("service", "studies")
        pages[name] = reverse(f"dashboard:{name}", args=[study.slug] if of_study else [])
    return desk, pages


SIZES = ((390, "dark"), (1280, "light"))


def test_no_page_runs_off_and_axe_finds_nothing(study: Study, page: Page) -> None:
    """Each page is opened on a telephone in the dark, and then shown wide and light."""
    desk, pages = filled(study)
    served(page, desk, *pages.values())
    faults = []
    for name, path in pages.items():
        page.set_viewport_size({"width": SIZES[0][0], "height": 844})
        page.goto(f"http://desk.test{path}")
        assert page.locator("h1").count() == 1, name
        for width_px, scheme in SIZES:
            page.set_viewport_size({"width": width_px, "height": 844})
            page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
            if PICTURES:
                page.screenshot(path=Path(PICTURES) / f"{name}-{width_px}.png", full_page=True)
            wide = page.evaluate("document.documentElement.scrollWidth")
            faults += [f"{name}: {wide} px wide"] if wide > width_px else []
            faults += [f"{name}, {scheme}: {finding}" for finding in axe_findings(page)]
    assert faults == []
