"""How matrices are multiplied: set before the library reads it, and reported as the library reports it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from stimuli.planner.arithmetic import mkl_mode

ROOT = Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.pure
# Not on an Arm processor.
HAS_MKL = torch.backends.mkl.is_available()  # type: ignore[no-untyped-call]
SETTINGS = "import crowd.settings"
PRODUCT = "import torch; torch.ones(8, 8) @ torch.ones(8, 8)"
TOLD = "from stimuli.planner.arithmetic import arithmetic; print(arithmetic()['mkl_cbwr'])"


def told_by(*lines: str, **changes: str) -> tuple[str, str]:
    """What a fresh process says of its mode, and what it logs."""
    env = {name: value for name, value in os.environ.items() if name != "MKL_CBWR"} | changes
    ran = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout.strip(), ran.stderr


def test_it_is_strict_in_every_process_that_reads_the_settings() -> None:
    strict = "AUTO,STRICT" if HAS_MKL else "none"
    assert mkl_mode() == strict
    assert told_by(SETTINGS, TOLD) == (strict, "")


def test_it_tells_when_the_settings_come_too_late() -> None:
    mode, log = told_by(PRODUCT, SETTINGS, TOLD)
    assert mode == ("OFF" if HAS_MKL else "none")
    assert ("MKL runs in mode OFF" in log and "Set MKL_CBWR=AUTO,STRICT" in log) == HAS_MKL


@pytest.mark.long(stays="test_it_is_strict_in_every_process_that_reads_the_settings")
def test_the_library_is_strict_without_settings() -> None:
    notebook = "from stimuli.planner.arithmetic import make_repeatable; make_repeatable()"
    assert told_by(notebook, TOLD) == ("AUTO,STRICT" if HAS_MKL else "none", "")
    assert told_by(PRODUCT, notebook, TOLD) == told_by(PRODUCT, SETTINGS, TOLD)
    assert told_by(notebook, TOLD, MKL_CBWR="COMPATIBLE") == told_by(SETTINGS, TOLD, MKL_CBWR="COMPATIBLE")


def test_it_leaves_a_mode_that_was_chosen() -> None:
    mode, log = told_by(SETTINGS, TOLD, MKL_CBWR="COMPATIBLE")
    assert mode == ("COMPATIBLE" if HAS_MKL else "none")
    assert ("MKL runs in mode COMPATIBLE" in log) == HAS_MKL
