"""Proofs in R run wherever R can be had; else they are left out by name, or the run fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.run.guard import ServiceFailed
from tests.run.rlang import rscript

pytestmark = pytest.mark.pure


def test_without_r_a_proof_is_left_out_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("R_REQUIRED", raising=False)
    with pytest.raises(pytest.skip.Exception, match="A proof in R is left out.*apt install r-base-core"):
        rscript()


def test_where_r_is_required_its_absence_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("R_REQUIRED", "1")
    with pytest.raises(ServiceFailed, match="There is no Rscript: apt install"):
        rscript()


def test_it_takes_the_rscript_that_is_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "Rscript"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert rscript() == str(program)
