"""Runs the parts of `make test`, the static ones at the same time, the others one after another; then prints
how long each took and which tests were slow. Exits 1 if a part failed.

    .venv/bin/python setup/suite.py [PART ...]

`pure` needs no database. `postgresql` runs all tests that use the database, but for what keeps its rows in
SQLite: `@pytest.mark.sqlite_only("…")`. `sqlite` runs that. Tests whose result may depend on the database,
`@pytest.mark.both_databases("locks")`, run on SQLite as well by `make prove PARTS=long`. `fast` is for use
while you work, and runs only if it is named: the test files that were quick when they were last measured
(tests/seconds.txt), on SQLite. Tests that are marked `long` are left to `make prove`.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORKERS = min(8, max(2, os.cpu_count() or 2))
SLOWEST = 12
# A line of pytest's list of durations: "12.34s call     tests/test_x.py::test_it_works".
DURATION = re.compile(r"^\s*(\d+\.\d+)s (setup|call|teardown)\s+(\S.*)$")


@dataclass(frozen=True, slots=True)
class Part:
    """One part of the test run: commands that must all succeed."""

    name: str
    commands: tuple[tuple[str, ...], ...]
    folder: str = "."
    is_default: bool = True
    is_static: bool = False
    """Uses one core and no service, so it runs at the same time as the other static parts."""


@dataclass(frozen=True, slots=True)
class Slow:
    seconds: float
    phase: str
    test: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a part; `summary` is the last line that it printed."""

    name: str
    is_passed: bool
    seconds: float
    summary: str
    slow: tuple[Slow, ...] = ()


def pytest_command(
    marks: str, database: str, *more: str, workers: int = WORKERS, share: str = "worksteal"
) -> tuple[str, ...]:
    options = ("--database", database, "-n", str(workers), "--dist", share, "--durations", str(SLOWEST))
    return (sys.executable, "-m", "pytest", "-q", "-m", f"{marks} and not long", *options, *more)


LINT = (sys.executable, "-m", "ruff", "check", ".")
PARTS = (
    Part("lint", (LINT,), is_static=True),
    Part("types", ((sys.executable, "-m", "mypy", "."),), is_static=True),
    Part(
        "frontend",
        (("npm", "run", "--silent", "check"), ("npm", "test", "--silent")),
        "frontend",
        is_static=True,
    ),
    Part("pure", (pytest_command("pure and not browser", "sqlite"),)),
    # Tests with a database wait for servers and processes a third of their time, and browsers more.
    Part(
        "postgresql",
        (pytest_command("not pure and not browser and not sqlite_only", "postgresql", workers=WORKERS + 1),),
    ),
    Part(
        "sqlite",
        (pytest_command("sqlite_only and not browser", "sqlite", workers=WORKERS + 1),),
    ),
    # The tests of a file share one served study, so they must run in the same worker (tests/conftest.py);
    # those that are marked `apart` share none, and are long.
    Part(
        "browser",
        (
            pytest_command(
                "browser", "postgresql", "--no-loadscope-reorder", workers=WORKERS + 1, share="loadgroup"
            ),
        ),
    ),
    Part("fast", (LINT, pytest_command("not browser", "sqlite", "--fast")), is_default=False),
)


def environment() -> dict[str, str]:
    """The environment of the commands: one thread per worker, because the workers already fill the cores; and
    programs of the virtual environment before all others."""
    env = dict(os.environ)
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        env.setdefault(name, "1")
    # Some machines set this. Then every process would compile its libraries again.
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    env["NO_COLOR"] = "1"
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
    return env


@dataclass(slots=True)
class Command:
    """A command that runs: it yields its lines as they come, then knows whether it succeeded."""

    words: tuple[str, ...]
    folder: str
    is_passed: bool = False

    def lines(self) -> Iterator[str]:
        env = environment()
        program = shutil.which(self.words[0], path=env["PATH"]) or self.words[0]
        with subprocess.Popen(
            [program, *self.words[1:]],
            cwd=ROOT / self.folder,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as running:
            assert running.stdout is not None
            yield from running.stdout
        self.is_passed = running.returncode == 0


def run(part: Part, say: Callable[[str], object]) -> Outcome:
    """Run one part and `say` each line of its output as it comes."""
    say(f"\n=== {part.name} ===\n")
    started = time.monotonic()
    last, is_passed, slow = "", True, list[Slow]()
    for words in part.commands:
        command = Command(words, part.folder)
        for line in command.lines():
            say(line)
            last = line.strip() or last
            if match := DURATION.match(line):
                slow.append(Slow(float(match[1]), match[2], match[3].rstrip()))
        is_passed = is_passed and command.is_passed
    return Outcome(part.name, is_passed, time.monotonic() - started, last, tuple(slow))


def say_now(text: str) -> None:
    print(text, end="", flush=True)


def run_together(parts: Sequence[Part]) -> Iterator[Outcome]:
    """Run parts at the same time; the output of each is passed through when it has ended."""

    def gathered(part: Part) -> tuple[Outcome, str]:
        lines: list[str] = []
        return run(part, lines.append), "".join(lines)

    with ThreadPoolExecutor(max(1, len(parts))) as pool:
        for outcome, output in pool.map(gathered, parts):
            say_now(output)
            yield outcome


def table(outcomes: Sequence[Outcome], seconds: float) -> str:
    """The closing lines: the slowest tests; then what passed, its minutes, and the last line of its output.

    `seconds` is the time of all parts together, some of which run at the same time.
    """
    slowest = sorted(
        ((slow, outcome.name) for outcome in outcomes for slow in outcome.slow),
        key=lambda pair: -pair[0].seconds,
    )
    slow_rows = [
        f"{slow.seconds:7.1f} s  {name:<10}  {slow.phase:<8}  {slow.test}" for slow, name in slowest[:SLOWEST]
    ]
    rows = [
        f"{'passed' if outcome.is_passed else 'FAILED'}  {outcome.name:<10} {outcome.seconds / 60:5.1f} min  "
        f"{outcome.summary}"
        for outcome in outcomes
    ]
    word = "passed" if all(outcome.is_passed for outcome in outcomes) else "FAILED"
    return "\n".join(
        [
            *(["", f"=== the {len(slow_rows)} slowest ===", *slow_rows] if slow_rows else []),
            *["", "=== summary ===", *rows, f"{word}  {'in all':<10} {seconds / 60:5.1f} min"],
        ]
    )


def main(names: Sequence[str]) -> int:
    known = {part.name: part for part in PARTS}
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"no part is called {', '.join(unknown)}; there are {', '.join(known)}.", file=sys.stderr)
        return 2
    chosen = [known[name] for name in names] or [part for part in PARTS if part.is_default]
    started = time.monotonic()
    outcomes = list(run_together([part for part in chosen if part.is_static]))
    outcomes += [run(part, say_now) for part in chosen if not part.is_static]
    print(table(outcomes, time.monotonic() - started))
    return 0 if all(outcome.is_passed for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
