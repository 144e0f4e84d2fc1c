"""Runs the scripts of a package, in Python and in R, and compares their numbers with those of a report."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from analysis.exports import companion_files, delimited
from analysis.facts import StudyFacts
from analysis.frames import Frames
from analysis.reports import get_reporter
from tests.run.rlang import rscript

Key = tuple[str, str, str]
Told = tuple[Path, dict[str, Any]]
"""The folder of a package and the report of the same people; both languages read one package."""
Numbers = dict[Key, float]
Wanted = Iterable[tuple[Key, float | None]]
"""Numbers of a report under the names that the scripts give them; None: there is no such number."""


def by_python(folder: Path, out: Path, origin: str) -> list[str]:
    # -I: neither this project's folder nor its settings are there for the script.
    return [sys.executable, "-I", str(folder / "analysis.py"), "--origin", origin, "--out", str(out)]


def by_r(folder: Path, out: Path, origin: str) -> list[str]:
    return [rscript(), "--vanilla", str(folder / "analysis.R"), str(folder), origin, str(out)]


LANGUAGES = {"python": by_python, "r": by_r}


def run(language: str, folder: Path, origin: str = "human") -> tuple[Numbers, str]:
    """The numbers of the script of one language on a package, and what it printed."""
    out = folder.parent / f"{language}.csv"
    words = LANGUAGES[language](folder, out, origin)
    done = subprocess.run(words, capture_output=True, text=True, cwd=folder.parent)
    assert done.returncode == 0, done.stderr
    with out.open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    return {(r["analysis"], r["name"], r["measure"]): float(r["value"]) for r in rows}, done.stdout


def agrees(wanted: Wanted, numbers: Numbers) -> int:
    """How many numbers agree to 1e-6 (relative above 1); every one that is wanted must."""
    told = dict(wanted)
    for key, value in told.items():
        if value is None:
            assert key not in numbers, (key, numbers[key])
        else:
            assert key in numbers, (key, value)
            assert abs(numbers[key] - value) < 1e-6 * max(1.0, abs(value)), (key, value, numbers[key])
    return len(told)


def package(folder: Path, frames: Frames, facts: StudyFacts) -> dict[str, Any]:
    """Writes what a script reads of these people into a new folder, by the exporter's own writers; returns
    the report of them."""
    folder.mkdir()
    delimited.write(frames, folder)
    companion_files.write_conditions(folder, facts)
    companion_files.write_scripts(folder, facts.paradigm, facts.level)
    (folder / "definition.json").write_text(
        json.dumps({"design": dict(facts.design)}, indent=1, sort_keys=True) + "\n"
    )
    report: dict[str, Any] = json.loads(json.dumps(get_reporter(facts.paradigm)(frames, facts).json()))
    return report


def ends(name: str, interval: list[float] | None) -> dict[str, float | None]:
    """Both ends of an interval under the names of the scripts."""
    low, high = interval or (None, None)
    return {f"{name}low": low, f"{name}high": high}
