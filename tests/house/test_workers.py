"""A run in several processes: what it gives out, what comes back, and what a process leaves that dies."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.run import workers
from tests.services import ROOT

pytestmark = pytest.mark.pure


def listed(*names: str, apart: str = "") -> Any:
    """Tests as pytest collects them; those of `apart` are marked so."""
    mark = SimpleNamespace()
    return [
        SimpleNamespace(
            nodeid=name, get_closest_marker=lambda kind, name=name: mark if name == apart else None
        )
        for name in names
    ]


def test_files_stay_together_and_the_longest_begins() -> None:
    items = listed("a.py::one", "b.py::one", "c.py::one", "a.py::two", "b.py::two")
    assert workers.groups_of(items, {"a.py": 1.0, "b.py": 5.0, "c.py": 3.0}) == [(1, 4), (2,), (0, 3)]


def test_what_was_never_measured_begins_first() -> None:
    items = listed("a.py::one", "b.py::one")
    assert workers.groups_of(items, {"a.py": 100.0}) == [(1,), (0,)]


def test_what_is_marked_apart_leaves_its_file() -> None:
    items = listed("a.py::one", "a.py::two", "a.py::three", apart="a.py::two")
    assert sorted(workers.groups_of(items, {"a.py": 1.0})) == [(0, 2), (1,)]


def run(folder: Path, text: str, *more: str, processes: int = 2) -> subprocess.CompletedProcess[str]:
    """pytest over files whose texts follow a line `# NAME`."""
    for part in re.split(r"^# (?=\w+$)", text, flags=re.MULTILINE)[1:]:
        name, _, body = part.partition("\n")
        (folder / f"test_{name}.py").write_text(body)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", "-p", "no:cacheprovider"]
    options = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(folder), "--processes", str(processes)]
    return subprocess.run([*command, *options, *more, str(folder)], cwd=ROOT, capture_output=True, text=True)


WHOLE = """
# first
import os, pathlib, pytest
HERE = pathlib.Path(__file__).parent
@pytest.fixture(scope="module")
def shared():
    (HERE / f"made-{os.getpid()}").touch()
    yield os.getpid()
    (HERE / "removed").touch()
def test_it_waits_for_the_other_process(shared):
    (HERE / "one").touch()
    while not (HERE / "two").exists(): pass
def test_it_stays_in_its_process(shared):
    assert shared == os.getpid()
def test_it_fails():
    print("said before it failed")
    assert 1 == 2
def test_it_warns():
    import warnings
    warnings.warn("a warning of this test")
# second
import os, pathlib
HERE = pathlib.Path(__file__).parent
def test_it_waits_for_the_other_process():
    (HERE / "two").touch()
    while not (HERE / "one").exists(): pass
"""


def test_it_runs_files_at_the_same_time_and_reports_all(tmp_path: Path) -> None:
    done = run(tmp_path, WHOLE, "--seconds", str(tmp_path / "seconds.txt"))
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout + done.stderr
    assert re.search(r"^1 failed, 4 passed, 1 warning in ", done.stdout, re.MULTILINE), done.stdout
    assert "assert 1 == 2" in done.stdout and "said before it failed" in done.stdout
    assert "a warning of this test" in done.stdout
    assert len(list(tmp_path.glob("made-*"))) == 1 and (tmp_path / "removed").exists()


DYING = """
# first
import os, signal
def test_it_passes(): pass
def test_it_ends_its_process():
    os.kill(os.getpid(), signal.SIGKILL)
def test_it_passes_after_it(): pass
# second
def test_it_passes(): pass
"""


def test_a_process_that_dies_fails_its_test_alone(tmp_path: Path) -> None:
    done = run(tmp_path, DYING)
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert re.search(r"^1 failed, 3 passed in ", done.stdout, re.MULTILINE), done.stdout
    assert re.search(r"process w\d ended at this test, with -9", done.stdout)


def test_it_stops_at_the_first_failure_if_asked(tmp_path: Path) -> None:
    text = "\n# first\ndef test_it(): assert False\n# second\nimport signal\ndef test_it(): signal.pause()\n"
    done = run(tmp_path, text, "--exitfirst")
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert re.search(r"^1 failed in ", done.stdout, re.MULTILINE), done.stdout


@pytest.mark.parametrize("processes", [0, 2])
def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path, processes: int) -> None:
    done = run(tmp_path, "\n# first\nimport nothing_of_that_name\n", processes=processes)
    assert done.returncode == pytest.ExitCode.INTERRUPTED
    assert "nothing_of_that_name" in done.stdout
