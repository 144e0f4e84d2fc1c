"""A protocol that no shared code knows works from its file over HTTP and Chromium to report and export.

The toy's lines are put into the tables of this process; in a process of their own, the settings do it
(tests/toy/settings.py).
"""

import csv
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from django.contrib.staticfiles.finders import get_finder
from django.core.management import call_command

from tests.journeys.conftest import Site, serving
from tests.journeys.sessions.visitor import Visitor, violations
from tests.toy.tables import registered
from tests.world import draw_images, opened_study

if TYPE_CHECKING:
    from playwright.sync_api import Page
    from pytest_django.fixtures import Settings

ROOT = Path(__file__).resolve().parents[3]
AXE = ROOT / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
SLUG, PEOPLE, TRIALS = "three-piles", 6, 6


def run(env: dict[str, str], *words: str) -> str:
    """A command of the project."""
    command = [sys.executable, "manage.py", *words]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **env}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def written(folder: Path) -> Path:
    """The toy's study file, in a folder with all that it names."""
    shutil.copytree(ROOT / "tests" / "toy" / "study", folder)
    draw_images(folder)
    return folder / "study.toml"


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_it_goes_from_a_file_to_report_and_export(
    toy_site: Site, server_env: dict[str, str], tmp_path: Path
) -> None:
    study = str(tmp_path / "study" / "study.toml")
    printed = run({**server_env, "DJANGO_SETTINGS_MODULE": "tests.toy.settings"}, "study_check", study)
    assert "no plans that differ in the condition alone" in printed
    # One after the other: a person who is screened leaves the place to people who are still to come. If all
    # come at once, the speed of the machine decides who is turned away before a place is left.
    crowd = ("-n", str(PEOPLE), "--mix", "guesser=1", "--concurrency", "1")
    call_command("simulate", study, "--url", toy_site.url, *crowd)
    call_command("report", SLUG, "--origin", "simulated", "--out", str(tmp_path / "report"))
    call_command("export", SLUG, "--out", str(tmp_path / "export"))

    trials, people = (rows_of(tmp_path / "export" / f"{name}.csv") for name in ("trials", "participants"))
    left = {row["slot"] for row in people if row["status"] == "screened"}
    people = [row for row in people if row["status"] == "passed"]
    assert left and left <= {row["slot"] for row in people}, "every place that was left was taken again"
    trials = [row for row in trials if row["session"] in {person["session"] for person in people}]
    assert len(people) == PEOPLE and len(trials) == PEOPLE * TRIALS
    assert Counter(row["lane"] for row in people) == {"left-desk": 3, "right-desk": 3}
    assert Counter(row["kind"] for row in trials) == {"sort": PEOPLE * 4, "instructed": PEOPLE * 2}
    sorted_ = [row for row in trials if row["kind"] == "sort"]
    assert all((row["is_unsure"] == "1") == (row["response"] == "unsure") for row in sorted_)
    assert {row["is_unsure"] for row in trials if row["kind"] == "instructed"} == {""}

    page = (tmp_path / "report" / "report.html").read_text()
    report = json.loads((tmp_path / "report" / "report.json").read_text())
    passed = {row["session"] for row in people if row["status"] == "passed"}
    counted = Counter(row["response"] for row in sorted_ if row["session"] in passed)
    reported = Counter(
        {pile: sum(row[pile] for row in report["piles"]) for pile in ("single", "several", "unsure")}
    )
    assert +reported == counted and "Texts on each pile" in page


@pytest.fixture
def toy_site(
    transactional_db: None, store_folder: Path, settings: "Settings", toy_page: Path, tmp_path: Path
) -> Iterator[Site]:
    """The toy's study, open in this process, and its own page."""
    settings.PARTICIPANT_PAGE_DIR = toy_page
    settings.STATICFILES_DIRS = [("participant", toy_page)]
    get_finder.cache_clear()  # type: ignore[attr-defined]
    with registered():
        opened_study(written(tmp_path / "study"))
        with serving() as site:
            yield site
    get_finder.cache_clear()  # type: ignore[attr-defined]


@pytest.mark.browser
def test_it_is_sorted_in_a_browser(toy_site: Site, tmp_path: Path, tab: "Page") -> None:
    page = tab
    visitor = Visitor(page, [], {})
    visitor.arrive(f"{toy_site.url}/join/{SLUG}/?person=ada&submission=s1")
    visitor.walk("promise")
    page.locator("input[name=promise]").check()
    while visitor.settle() != "trial":
        visitor.step()
    assert page.locator(".board img").count() == 2
    assert violations(page, AXE.read_text()) == []
    visitor.walk("comment")
    assert len(visitor.pressed) == TRIALS
    visitor.press_primary()
    assert visitor.settle() == "finish"
    call_command("report", SLUG, "--out", str(tmp_path / "report"))
    report = json.loads((tmp_path / "report" / "report.json").read_text())
    assert report["flow"]["finished"] == 1
