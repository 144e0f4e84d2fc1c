"""Runs proofs that are too long for `make test`. Each writes a table to docs/evidence/. Exits 1 if one fails.

    .venv/bin/python setup/prove.py [--seed S] [PROOF ...]

A proof is a list of units (proofs.toml). A unit that has passed at this commit with this seed is not run
again, so an interrupted proof continues with its next unit. `make test` runs a short form of each proof but
`measured` (docs/running.md, "Tests and proofs").
"""

import argparse
import json
import os
import platform
import shlex
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent.parent)]

from setup.suite import ROOT, WORKERS, environment  # noqa: E402

EVIDENCE = ROOT / "docs" / "evidence"
STATE = ROOT / "var" / "proofs"
LIMIT_S = 3 * 3600.0
"""A proof that takes longer than this on two cores must be split into two."""
SAID_LINES = 40


@dataclass(frozen=True, slots=True)
class Unit:
    """One command of a proof; `{seed}` in it becomes the seed."""

    name: str
    command: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Proof:
    """A claim and the units that prove it: the claim holds if every unit passes."""

    name: str
    claim: str
    units: tuple[Unit, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one unit; `said` is the end of its output."""

    unit: str
    is_passed: bool
    seconds: float
    said: str


@dataclass(frozen=True, slots=True)
class Circumstances:
    """The commit, seed and machine of a proof. `commit` is empty if the checkout has uncommitted changes."""

    commit: str
    seed: int
    machine: str


def unit_of(name: str, line: str) -> Unit:
    """The unit of one line of proofs.toml."""
    module, *words = shlex.split(line.replace("{root}", str(ROOT)).replace("{workers}", str(WORKERS)))
    if module == "pytest":
        # The folder, if no file is named: else pytest takes an option's value for it (setup/suite.py).
        folder = [] if any(word.startswith("tests/") for word in words) else ["tests"]
        words = [*folder, "-q", "--database", "postgresql", "--seed", "{seed}", "--processes", "0", *words]
    return Unit(name, (sys.executable, "-m", module, *words))


PROOFS = tuple(
    Proof(
        read["name"], " ".join(read["claim"].split()), tuple(unit_of(*pair) for pair in read["units"].items())
    )
    for read in tomllib.loads((ROOT / "setup" / "proofs.toml").read_text())["proofs"]
)


def git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def circumstances(seed: int) -> Circumstances:
    # The tables are left out: a table that was just written does not change the code that is proved.
    is_changed = bool(git("status", "--porcelain", "--", ".", ":!docs/evidence"))
    return Circumstances("" if is_changed else git("rev-parse", "--short=12", "HEAD"), seed, machine())


def machine() -> str:
    """Processor, cores, memory, and the versions of libraries that the numbers may depend on."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "torch", "Django"))
    return (
        f"{models[0] if models else platform.machine()}, {os.cpu_count()} cores, {memory_gib:.0f} GiB, "
        f"{platform.system()}, Python {platform.python_version()}, {libraries}"
    )


def memory_of(proof: Proof, place: Circumstances) -> Path:
    return STATE / f"{proof.name}-{place.commit}-{place.seed}.jsonl"


def remembered(proof: Proof, place: Circumstances) -> dict[str, Result]:
    """The units that have passed at this commit with this seed; none if the code is not committed."""
    path = memory_of(proof, place)
    if not place.commit or not path.exists():
        return {}
    results = [Result(**json.loads(line)) for line in path.read_text().splitlines()]
    return {result.unit: result for result in results if result.is_passed}


def run(unit: Unit, seed: int, within_s: float) -> Result:
    """Runs one unit and prints its output as it comes."""
    started = time.monotonic()
    lines: list[str] = []
    with subprocess.Popen(
        [word.replace("{seed}", str(seed)) for word in unit.command],
        cwd=ROOT, env=environment(), text=True, errors="replace",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as running:  # fmt: skip
        assert running.stdout is not None
        alarm = threading.Timer(within_s, running.kill)
        alarm.start()
        for line in running.stdout:
            print(line, end="", flush=True)
            lines = [*lines[1 - SAID_LINES :], line]
        alarm.cancel()
    seconds = time.monotonic() - started
    if seconds > within_s:
        lines.append(f"Stopped: with the units before it, it takes longer than {LIMIT_S / 3600:.0f} hours.\n")
    return Result(unit.name, running.returncode == 0, seconds, "".join(lines))


def prove(proof: Proof, place: Circumstances) -> list[Result]:
    """Runs the units that have not passed yet, and stores the result of each as soon as it ends."""
    passed = remembered(proof, place)
    results: list[Result] = []
    for unit in proof.units:
        print(f"\n=== {proof.name}: {unit.name} ===", flush=True)
        if unit.name in passed:
            print("passed before")
            results.append(passed[unit.name])
            continue
        result = run(unit, place.seed, LIMIT_S - sum(each.seconds for each in results))
        results.append(result)
        if place.commit:
            STATE.mkdir(parents=True, exist_ok=True)
            with memory_of(proof, place).open("a") as file:
                file.write(json.dumps(asdict(result)) + "\n")
    return results


def page(proof: Proof, place: Circumstances, results: Sequence[Result], day: str) -> str:
    """The page of evidence: the claim, the table, and the end of each unit's output."""
    rows = [
        f"| {result.unit} | {'passed' if result.is_passed else 'FAILED'} | {result.seconds / 60:.1f} |"
        for result in results
    ]
    said = [f"## {result.unit}\n\n```\n{result.said.strip()}\n```\n" for result in results]
    minutes = sum(result.seconds for result in results) / 60
    return "\n".join(
        [
            *(f"# Proof: {proof.name}", "", proof.claim, ""),
            *("| commit | seed | day | minutes | machine |", "| --- | --- | --- | --- | --- |"),
            f"| {place.commit} | {place.seed} | {day} | {minutes:.1f} | {place.machine} |",
            *("", "| unit | result | minutes |", "| --- | --- | --- |", *rows, "", *said),
        ]
    )


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Run long proofs and write what came of them.")
    parser.add_argument("proofs", nargs="*", metavar="PROOF", help=", ".join(proof.name for proof in PROOFS))
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(words)
    known = {proof.name: proof for proof in PROOFS}
    unknown = [name for name in asked.proofs if name not in known]
    if unknown:
        print(f"no proof is called {', '.join(unknown)}; there are {', '.join(known)}.", file=sys.stderr)
        return 2
    place = circumstances(asked.seed)
    is_passed = True
    for proof in [known[name] for name in asked.proofs] or PROOFS:
        results = prove(proof, place)
        is_passed = is_passed and all(result.is_passed for result in results)
        text = page(proof, place, results, datetime.now(UTC).date().isoformat())
        if place.commit:
            EVIDENCE.mkdir(parents=True, exist_ok=True)
            (EVIDENCE / f"{proof.name}.md").write_text(text)
        else:
            print(f"\n{text}\nNot written to docs/evidence/: commit your changes first.")
    return 0 if is_passed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
