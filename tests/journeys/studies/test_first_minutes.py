"""The first ten minutes of a newcomer, replayed with a clock: a demo, a look around, a session in a browser,
and docs/first-study.md, by the commands, addresses and buttons that are printed."""

from __future__ import annotations

import csv
import json
import re
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import services
from tests.journeys.sessions.visitor import Visitor
from tests.journeys.studies.test_demo_kept import demo, plain
from tests.services import ROOT
from tests.world import write_study

if TYPE_CHECKING:
    from playwright.sync_api import Page


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Prints how long it took; pytest shows it with -rP."""
    began = time.monotonic()
    yield
    print(f"{time.monotonic() - began:7.1f} s  {what}")


def printed(log: str, name: str) -> str:
    line = re.search(rf"^{re.escape(name)} +(\S+)", log, re.MULTILINE)
    assert line, log
    return line[1]


def practice_of(database: Path) -> list[str]:
    """The right answers of the practice pictures, which no page names."""
    with closing(sqlite3.connect(database)) as rows:
        (stored,) = rows.execute("SELECT practice FROM experiments_study").fetchone()
    return [str(row["answer"]) for row in json.loads(stored)]


def look_at_a_missed_check(page: Page, log: str) -> None:
    """From the printed login to the trial that excluded a person: what was asked and pressed, and when."""
    page.goto(printed(log, "Log in (once)"))
    page.get_by_role("button", name="Log in").click()
    page.locator("table").get_by_role("link").first.click()
    page.get_by_role("link", name="Quality", exact=True).click()
    page.locator("#checks tbody tr").first.wait_for()
    page.get_by_role("link", name="Exclusions", exact=True).click()
    page.locator("tbody tr", has_text="instructed").get_by_role("link").first.click()
    missed = page.locator("tr.checked", has=page.locator(".tick-no")).first
    assert re.search(r"asked for \S", missed.locator('[data-part="asked"]').inner_text())
    assert missed.locator("kbd").inner_text() and missed.get_attribute("data-rt-ms")


def take_part(page: Page, log: str, database: Path) -> None:
    visitor = Visitor(page, practice_of(database), {"task": "machine"})
    visitor.arrive(printed(log, "Take part"))
    assert visitor.walk("finish") == "finish"
    with closing(sqlite3.connect(database)) as rows:
        newest = "SELECT state FROM experiments_session ORDER BY started_at DESC LIMIT 1"
        assert rows.execute(newest).fetchone() == ("finished",)


def first_study(data: Path, study: Path, port: int) -> None:
    """The lines of docs/first-study.md in a shell, in a folder of their own, on the small study."""
    folder = data / "newcomer"
    folder.mkdir()
    (folder / "experiments" / "studies").mkdir(parents=True)
    shutil.copytree(study.parent, folder / "experiments" / "studies" / "wolf-or-husky")
    page = (ROOT / "docs" / "first-study.md").read_text()
    first, *blocks = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    assert first == "make demo\n"
    env = {**plain(data), "PYTHONPATH": str(ROOT), "LEGIBLE_VAR": str(data / "demo")}
    said = ""
    for block in blocks:
        # Each block is typed in the same shell; its folder is all that a later one needs of an earlier one.
        lines = block.replace("var/demo", str(data / "demo"))
        lines = lines.replace(".venv/bin/legible", f"{sys.executable} -m crowd.legible")
        lines = lines.replace("-n 8", f"-n 8 --url http://127.0.0.1:{port}")
        with timed(lines.strip().splitlines()[-1].split("crowd.legible")[-1]):
            done = subprocess.run(
                ["sh", "-e", "-c", lines], cwd=folder, env=env, capture_output=True, text=True
            )
        assert done.returncode == 0, done.stderr[-1500:]
        said += done.stdout
    assert "0 rendered now" in said, "the pictures of the demo are used"
    assert (folder / "my-report" / "report.html").exists()
    assert "instructed_share_min = 0.5" in (folder / "my-first-study" / "study.toml").read_text()
    read_along(folder, page)


def read_along(folder: Path, page: str) -> None:
    """The page's Python, and its R if this machine has it, beside the rates counted from the file by hand."""
    with (folder / "my-data" / "trials.csv").open(newline="") as file:
        trials = [row for row in csv.DictReader(file) if row["phase"] == "test" and row["matches_model"]]
    by_hand: dict[str, list[bool]] = {}
    for row in trials:
        by_hand.setdefault(row["condition"], []).append(row["matches_model"] in {"True", "true", "1"})
    rates = {name: sum(right) / len(right) for name, right in by_hand.items()}
    assert "baseline" in rates
    programs = {"python": [sys.executable]}
    if rscript := shutil.which("Rscript"):
        programs["r"] = [rscript]
    for language, program in programs.items():
        (code,) = re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)
        (folder / f"read.{language}").write_text(code)
        with timed(f"open in {language}"):
            done = subprocess.run([*program, f"read.{language}"], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        told = dict(re.findall(r"(?:^\d+ )? *([a-z_]+) +([01]\.\d+)$", done.stdout, re.MULTILINE))
        assert {name: float(rate) for name, rate in told.items()} == pytest.approx(rates, abs=1e-4)


@pytest.mark.long(stays="tests/journeys/studies/test_demo.py::test_it_shows_the_whole_life_of_a_study")
@pytest.mark.sqlite_only("the demo keeps its rows there")
def test_the_first_ten_minutes_work_as_they_are_printed(tmp_path: Path, page: Page) -> None:
    data, port = tmp_path / "var", services.free_port()
    study = write_study(tmp_path / "study", slots=6)
    words = ("--study", str(study), "--participants", "16", "--port", str(port))
    began = time.monotonic()
    with demo(data, *words) as (_, log):
        print(f"{time.monotonic() - began:7.1f} s  make demo, without installation")
        with timed("log in, Quality, Exclusions, the record of a person who missed a check"):
            look_at_a_missed_check(page, log)
        with timed("take part, to the last page"):
            take_part(page, log, data / "demo" / "legible.sqlite3")
        first_study(data, study, port)
