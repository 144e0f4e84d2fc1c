"""Exports and reports of the migrated database say what they said at f38355e, in every old column and key."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests import services
from tests.before.compare import differences
from tests.before.names import paths
from tests.before.restored import Place, unpack

pytestmark = pytest.mark.pure  # a SQLite of its own

RENAMED: dict[tuple[str, str], str] = {}
"""(table, old column) -> new column."""
TOLD = (("before", "simulated"), ("closed", "human"))
"""Reports of origins that were open then and are open now. The people of the first study were sealed then."""
TABLES = ("participants", "stimuli", "trials")
AGAIN = """
import django, pathlib, sys
django.setup()
from django.core.management import call_command
from analysis.reports.drawing import figure_files
# What is compared is report.json; figures as files would take most of the time.
figure_files._figure_bytes = lambda *given: b"<svg></svg>"
out = pathlib.Path(sys.argv[1])
call_command("migrate", verbosity=0)
for slug, origin in (("before", "human"), ("before", "simulated"), ("closed", "human")):
    call_command("report", slug, origin=origin, out=out / "reports" / f"{slug}-{origin}")
for slug in ("before", "closed"):
    call_command("export", slug, out=out / "exports" / slug)
"""


@dataclass(frozen=True, slots=True)
class Told:
    """The folders of then and of now."""

    before: Path
    after: Path


@pytest.fixture(scope="module")
def told(place_as_it_was: Place, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    _, env = place_as_it_was
    folder = tmp_path_factory.mktemp("told")
    done = subprocess.run(
        [sys.executable, "-c", AGAIN, str(folder / "after")],
        cwd=services.ROOT,
        env={**os.environ, **env, "PYTHONPATH": str(services.ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    yield Told(unpack("told", folder / "before"), folder / "after")


def table(folder: Path, slug: str, name: str) -> list[dict[str, str]]:
    with (folder / "exports" / slug / f"{name}.csv").open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


def report(folder: Path, slug: str, origin: str) -> dict[str, Any]:
    path = folder / "reports" / f"{slug}-{origin}" / "report.json"
    report: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return report


def columns(folder: Path) -> dict[tuple[str, str], tuple[str, str]]:
    """(table, column) -> (dtype, unit), by the codebook."""
    book = json.loads((folder / "exports" / "before" / "codebook.json").read_text(encoding="utf-8"))
    return {(row["table"], row["column"]): (row["dtype"], row["unit"]) for row in book["columns"]}


def test_every_column_is_still_there_with_its_type_and_unit(told: Told) -> None:
    before, after = columns(told.before), columns(told.after)
    renamed = {(name, RENAMED.get((name, column), column)): said for (name, column), said in before.items()}
    assert renamed.items() <= after.items()
    assert len(before) > 80


@pytest.mark.parametrize("slug", ["before", "closed"])
@pytest.mark.parametrize("name", TABLES)
def test_every_row_says_what_it_said(told: Told, slug: str, name: str) -> None:
    before, after = table(told.before, slug, name), table(told.after, slug, name)
    assert len(before) == len(after) > 0
    for old, new in zip(before, after, strict=True):
        known = {RENAMED.get((name, column), column): value for column, value in old.items()}
        if name == "stimuli" and old["role"] == "baseline":
            # It named a map that was never made; the baseline has none, and says so now.
            assert known.pop("attribution_key") and not new["attribution_key"]
        if known.get("response") == '{"seen":true}':
            known["response"] = "seen"
        if known.get("metrics"):
            # A number says now what it scores; the numbers of then scored the method.
            known["metrics"] = known["metrics"].replace(',"unit"', ',"scores":"method","unit"')
        assert known.items() <= new.items()


@pytest.mark.parametrize(("slug", "origin"), TOLD)
def test_every_report_says_what_it_said(told: Told, slug: str, origin: str) -> None:
    before, after = report(told.before, slug, origin), report(told.after, slug, origin)
    assert list(differences(before, after)) == []


def test_every_key_of_a_report_is_still_there(told: Told) -> None:
    """The keys of a report with an analysis are in test_order.py."""
    every = (*TOLD, ("before", "human"))
    now = {key for slug, origin in every for key in paths(report(told.after, slug, origin))}
    then = {key for slug, origin in every for key in paths(report(told.before, slug, origin))}
    assert len(then) > 150 and then - now == set()
