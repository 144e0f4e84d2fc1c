"""Proofs: what is written of them, how an interrupted one goes on, and what ends one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from setup import prove
from tests.house.test_setup import ROOT, says

pytestmark = pytest.mark.pure


@pytest.fixture
def proof(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """Makes one proof of these commands the only one; evidence and memory lie in a folder of the test."""
    monkeypatch.setattr(prove, "EVIDENCE", tmp_path / "evidence")
    monkeypatch.setattr(prove, "STATE", tmp_path / "state")

    def make(*commands: tuple[str, ...], commit: str = "abc123") -> None:
        units = tuple(prove.Unit(f"unit {number}", command) for number, command in enumerate(commands))
        monkeypatch.setattr(prove, "PROOFS", (prove.Proof("toy", "It holds.", units),))
        monkeypatch.setattr(
            prove, "circumstances", lambda seed: prove.Circumstances(commit, seed, "a machine of 2 cores")
        )

    return make


def test_it_writes_what_was_proved(proof: Callable[..., None], tmp_path: Path) -> None:
    proof(says("seed {seed}"), says("all paid"))
    assert prove.main(["--seed", "7"]) == 0
    page = (tmp_path / "evidence" / "toy.md").read_text()
    for part in ("It holds.", "| abc123 | 7 |", "a machine of 2 cores", "| unit 1 | passed |", "seed 7"):
        assert part in page
    assert prove.main(["nothing"]) == 2


def test_it_goes_on_with_the_unit_that_failed(proof: Callable[..., None], tmp_path: Path) -> None:
    once = tmp_path / "once"
    proof(
        (sys.executable, "-c", f"open({str(once)!r}, 'x')"),
        (sys.executable, "-c", f"raise SystemExit(open({str(once)!r}).read() != 'mended')"),
    )
    assert prove.main([]) == 1
    assert "| unit 1 | FAILED |" in (tmp_path / "evidence" / "toy.md").read_text()
    once.write_text("mended")  # the first unit would fail if it ran again
    assert prove.main([]) == 0
    assert prove.main(["--seed", "8"]) == 1


def test_it_leaves_no_evidence_of_code_that_was_not_committed(
    proof: Callable[..., None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    proof(says("all paid"), commit="")
    assert prove.main([]) == 0
    assert not (tmp_path / "evidence").exists() and not (tmp_path / "state").exists()
    assert "commit your changes first" in capsys.readouterr().out


def test_it_stops_a_proof_that_takes_too_long(
    proof: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prove, "LIMIT_S", 0.0)
    proof((sys.executable, "-c", "import time; time.sleep(600)"))
    assert prove.main([]) == 1
    assert "Stopped: " in (tmp_path / "evidence" / "toy.md").read_text()


def test_it_proves_by_tests_that_there_are() -> None:
    words = {word for proof in prove.PROOFS for unit in proof.units for word in unit.command}
    files = {word.partition("::")[0] for word in words if word.startswith("tests/")}
    assert files and all((ROOT / file).exists() for file in files)
