"""A third platform is a folder and a line: a rehearsal runs on it, with a tenth of its calls failing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests import services
from tests.journeys.studies.test_rehearsal_command import run

PEOPLE = 12


@pytest.mark.long(stays="test_it_refuses_the_platform_without_its_line")
def test_it_rehearses_a_study_on_a_platform_that_no_shared_file_names(
    project_env: dict[str, str], tmp_path: Path
) -> None:
    project_env["DJANGO_SETTINGS_MODULE"] = "tests.toy_platform.settings"
    opened = run(project_env, "-m", "tests.open_world", "open", str(tmp_path / "study"), "slots = 6")
    assert opened.returncode == 0, opened.stderr
    port = str(services.free_port())
    options = ("--rehearse", "--people", str(PEOPLE), "--faults", "0.1", "--port", port)
    done = run(project_env, "manage.py", "publish", "small", "--platform", "toy", *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"difference +0 +0\.00 USD", done.stdout), done.stdout
    people, paid = re.search(r"platform: paid +(\d+) +([\d.]+) USD", done.stdout).groups()  # type: ignore[union-attr]
    assert int(people) > PEOPLE // 3 and float(paid) >= int(people) * 0.5


def test_it_refuses_the_platform_without_its_line(project_env: dict[str, str]) -> None:
    done = run(project_env, "manage.py", "publish", "small", "--platform", "toy", "--rehearse")
    assert done.returncode != 0 and "invalid choice: 'toy'" in done.stderr
