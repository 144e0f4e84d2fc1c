"""`publish --rehearse` as a researcher runs it: twice, and then the study is as free as before."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import services

PEOPLE = 8


def run(env: dict[str, str], *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command],
        cwd=services.ROOT,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
    )


def rehearse(env: dict[str, str]) -> str:
    port = str(services.free_port())
    options = ("--platform", "prolific", "--rehearse", "--people", str(PEOPLE), "--port", port)
    done = run(env, "manage.py", "publish", "small", *options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long(
    stays="tests/journeys/studies/test_rehearsal.py::test_it_pays_everybody_once_with_each_fault_alone"
)
def test_it_can_be_rehearsed_again_and_leaves_nothing_to_pay(
    project_env: dict[str, str], tmp_path: Path
) -> None:
    opened = run(project_env, "-m", "tests.open_world", "open", str(tmp_path / "study"), "slots = 6")
    assert opened.returncode == 0, opened.stderr
    for _ in range(2):
        printed = rehearse(project_env)
        assert re.search(r"difference +0 +0\.00 USD", printed), printed
        finished = re.findall(r"finished +(\d+)", printed)
        assert sum(map(int, finished)) > PEOPLE // 3, printed
    after = run(project_env, "manage.py", "settle", "small")
    assert after.returncode == 1 and "only been rehearsed" in after.stderr
