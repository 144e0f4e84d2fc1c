"""Processes that render beside a command: they make the same files, they end with it, and their work is not
lost if they die."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.drafting.draft_rows import picture_keys
from experiments.models import Study
from stimuli import build as building
from stimuli.build import HELPER, build, run_helpers
from stimuli.models import Stimulus
from tests import world
from tests.journeys.servers.test_worker_killed import files
from tests.services import ROOT

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def keys(
    tmp_path: Path, server_env: dict[str, str], store_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """Of a study that is drawn, and a shell whose processes see its rows."""
    for name, value in server_env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(building, "BATCHES_MIN", 0)
    world.draft_study(world.write_study(tmp_path / "small", slots=1))
    return picture_keys(Study.objects.get())


def undone(store: Path) -> dict[str, bytes]:
    """What was drawn for this study; its rows and files are taken back."""
    columns = ("image_file", "image_tile_file", "explanation_file", "explanation_tile_file")
    listed = {name for row in Stimulus.objects.values_list(*columns) for name in row if name}
    made = {name: content for name, content in files(store).items() if name in listed}
    for name in made:
        if not name.startswith("views/"):
            (store / name).unlink()
    Stimulus.objects.update(state="missing", image_file="", explanation_file="", claimed_by="")
    return made


def drawn(store: Path, before: dict[str, bytes]) -> dict[str, bytes]:
    return {name: content for name, content in files(store).items() if name in before}


def test_a_helper_makes_the_same_files(keys: list[str], store_folder: Path) -> None:
    before = undone(store_folder)
    with run_helpers(keys, 1):
        pass
    assert set(Stimulus.objects.values_list("state", flat=True)) == {"done"}
    assert drawn(store_folder, before) == before and any("pictures/" in name for name in before)


@pytest.mark.long(stays="test_a_helper_makes_the_same_files")
def test_two_processes_make_the_same_files(keys: list[str], store_folder: Path) -> None:
    before = undone(store_folder)
    assert build(keys, processes=2) == len(keys)
    assert drawn(store_folder, before) == before


def test_a_command_finishes_what_a_dead_helper_held(
    keys: list[str], store_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    undone(store_folder)
    monkeypatch.setattr("stimuli.build.sys.executable", "/bin/false")
    Stimulus.objects.filter(key__in=keys[:2]).update(state="claimed", claimed_by="a dead helper")
    assert build(keys, processes=3) == len(keys) and not Stimulus.objects.exclude(state="done").exists()


def test_a_helper_ends_with_the_process_that_asked(keys: list[str], store_folder: Path) -> None:
    undone(store_folder)
    helper = subprocess.Popen([sys.executable, *HELPER], stdin=subprocess.PIPE, cwd=ROOT)
    assert helper.stdin is not None
    helper.stdin.write(b"[]\n")
    helper.stdin.close()
    assert helper.wait(60) in (0, 1) and os.path.exists(store_folder)
