"""A refusal that needs no database comes before anything heavy is imported."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from crowd.management.early_refusals import READERS, refuse_early
from crowd.rehearsal import chromium
from experiments.study_files.load import STUDIES_DIR
from tests.services import ROOT

pytestmark = pytest.mark.pure

HEAVY = (
    *("torch", "pandas", "matplotlib", "scipy.ndimage", "scipy.optimize", "markdown"),
    *("celery", "kombu", "rest_framework", "redis", "django.db.models", "django.urls"),
)
PROGRAM = f"""
import runpy, sys
sys.modules |= dict.fromkeys({HEAVY!r})  # None: importing it fails
runpy.run_path("manage.py", run_name="__main__")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of studies, of which one, `mine`, has two typing errors."""
    shutil.copytree(STUDIES_DIR / "wolf-or-husky", tmp_path / "mine")
    path = tmp_path / "mine" / "study.toml"
    text = path.read_text()
    path.write_text(text.replace("\nseed = ", "\nsead = ").replace("bottom_up_saliency", "bottom_up"))
    return tmp_path


def run(*words: str, dirs: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PROGRAM, *words]
    environment = {**os.environ, "STUDY_DIRS": dirs}
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment)


@pytest.mark.parametrize("command", sorted(READERS))
def test_it_tells_all_mistakes_of_a_file_without_what_is_heavy(folder: Path, command: str) -> None:
    done = run(command, str(folder / "mine"))
    assert done.returncode == 1 and not done.stdout
    assert done.stderr.startswith("CommandError: ") and "Traceback" not in done.stderr
    for word in ("did you mean 'seed'", "did you mean 'bottom_up_saliency'", "seed: is missing"):
        assert word in done.stderr


def test_it_finds_the_study_among_options_and_by_its_slug(folder: Path) -> None:
    done = run("study_check", "--pictures", "0", "mine", dirs=str(folder))
    assert done.returncode == 1 and "did you mean 'seed'" in done.stderr


def test_it_tells_a_slug_and_a_path_that_are_none() -> None:
    assert "Did you mean 'wolf-or-husky'?" in run("study_check", "wolf-or-huski").stderr
    assert "there is no such file" in run("study_open", "nowhere/study.toml").stderr


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("study_check",),
        ("study_check", "wolf-or-husky"),
        ("study_check", "--pictures", "3", "--quality", "nothing"),
        ("study_check", "nothing", "--help"),
        ("report", "nothing"),
    ],
)
def test_it_leaves_to_the_command_what_it_cannot_tell(words: tuple[str, ...]) -> None:
    refuse_early(words)


@pytest.mark.parametrize(
    ("lacking", "remedy"), [("find_spec", "run make setup"), ("find_chromium", "apt install chromium")]
)
def test_pictures_need_a_browser_before_anything_is_built(
    monkeypatch: pytest.MonkeyPatch, lacking: str, remedy: str
) -> None:
    monkeypatch.setattr(chromium, lacking, lambda *given: None)
    with pytest.raises(SystemExit, match=f"CommandError: Pictures of pages need .*{remedy}"):
        refuse_early(["screenshots", "wolf-or-husky"])
