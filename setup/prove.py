"""The parts of `make test`, one after another; a table of them at the end; exits 1 when any failed.

    .venv/bin/python setup/prove.py [PART ...]

The tests marked `pure` run once, those with a database on SQLite and on PostgreSQL, the browser's once.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORKERS = str(min(8, max(2, os.cpu_count() or 2)))


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that is proved: commands that must all succeed."""

    name: str
    commands: tuple[tuple[str, ...], ...]
    folder: str = "."


@dataclass(frozen=True, slots=True)
class Outcome:
    name: str
    is_passed: bool
    seconds: float
    summary: str


def pytest_command(marks: str, database: str, *, workers: str = WORKERS) -> tuple[str, ...]:
    options = ("--database", database, "-n", workers, "--dist", "worksteal", "--durations", "12")
    return (sys.executable, "-m", "pytest", "-q", "-m", marks, *options)


PARTS = (
    Part("lint", ((sys.executable, "-m", "ruff", "check", "."),)),
    Part("types", ((sys.executable, "-m", "mypy", "."),)),
    Part("frontend", (("npm", "run", "--silent", "check"), ("npm", "test", "--silent")), folder="frontend"),
    Part("pure", (pytest_command("pure and not browser", "sqlite"),)),
    Part("sqlite", (pytest_command("not pure and not browser", "sqlite"),)),
    Part("postgresql", (pytest_command("not pure and not browser", "postgresql"),)),
    Part("browser", (pytest_command("browser", "postgresql", workers="0"),)),
)


def environment() -> dict[str, str]:
    """One thread per worker, because the workers already fill the cores; the environment's programs first."""
    env = dict(os.environ)
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        env.setdefault(name, "1")
    # Every process would otherwise compile its libraries anew, where a machine sets this.
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    env["NO_COLOR"] = "1"
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
    return env


def prove(part: Part) -> Outcome:
    """Run one part, its output passed through as it comes."""
    print(f"\n=== {part.name} ===", flush=True)
    started = time.monotonic()
    last = ""
    is_passed = True
    for command in part.commands:
        program = shutil.which(command[0], path=environment()["PATH"]) or command[0]
        with subprocess.Popen(
            [program, *command[1:]],
            cwd=ROOT / part.folder,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as running:
            assert running.stdout is not None
            for line in running.stdout:
                print(line, end="", flush=True)
                last = line.strip() or last
        is_passed = is_passed and running.returncode == 0
    return Outcome(part.name, is_passed, time.monotonic() - started, last)


def table(outcomes: Sequence[Outcome]) -> str:
    """The closing lines: what passed, what it took, and the last thing that each part said."""
    rows = [
        f"{'passed' if one.is_passed else 'FAILED'}  {one.name:<10} {one.seconds:6.0f} s  {one.summary}"
        for one in outcomes
    ]
    return "\n".join(["", "=== summary ===", *rows])


def main(names: Sequence[str]) -> int:
    known = {part.name: part for part in PARTS}
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"no part is called {', '.join(unknown)}; there are {', '.join(known)}.", file=sys.stderr)
        return 2
    outcomes = [prove(known[name]) for name in names or known]
    print(table(outcomes))
    return 0 if all(outcome.is_passed for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
