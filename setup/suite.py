"""Runs the parts of `make test`: one run of pytest for all tests, and what is no test (lint, types, the front
end) beside it; then prints how long each took and which tests were slow. Exits 1 if a part failed.

    .venv/bin/python setup/suite.py [PART ...]

`pure` needs no database; `postgresql` uses one; `browser` drives Chromium; they are chosen tests of the same
run. Tests whose result may depend on the database, `@pytest.mark.both_databases("locks")`, run on SQLite as
well by `make prove PARTS=long`. `fast` is for use while you work, and runs only if it is named: the test
files that were quick when they were last measured (tests/seconds.txt), on SQLite. Tests that are marked
`long` are left to `make prove`.
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
"""Processes of a run that keeps the cores busy; `make test` has one more, because servers are waited for."""
SLOWEST = 12
MEASURED = ROOT / "var" / "seconds.txt"
"""Where a whole run writes what each test file cost; `make seconds` keeps it as tests/seconds.txt."""
# A line of pytest's list of durations: "12.34s call     tests/test_x.py::test_it_works".
DURATION = re.compile(r"^\s*(\d+\.\d+)s (setup|call|teardown)\s+(\S.*)$")


@dataclass(frozen=True, slots=True)
class Part:
    """One part of the test run: commands that must all succeed."""

    name: str
    commands: tuple[tuple[str, ...], ...] = ()
    folder: str = "."
    is_default: bool = True
    is_static: bool = False
    """Runs beside all other parts."""
    marks: str = ""
    """The tests of this part, as pytest's -m names them; the tests of all chosen parts are one run."""


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
    core_s: float = 0.0


def pytest_command(marks: str, database: str, *more: str) -> tuple[str, ...]:
    options = ("--database", database, "--processes", str(WORKERS + 1), "--durations", str(SLOWEST))
    # The folder is named, because pytest takes the value of an option that it does not know yet for a path,
    # and then looks for our options beside it.
    return (sys.executable, "-m", "pytest", "tests", "-q", "-m", marks, *options, *more)


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
    Part("pure", marks="pure and not browser"),
    Part("postgresql", marks="not pure and not browser"),
    Part("browser", marks="browser"),
    Part(
        "fast",
        (LINT, pytest_command("not long", "sqlite", "--fast")),
        is_default=False,
    ),
)


def gathered(parts: Sequence[Part]) -> list[Part]:
    """The parts with all tests in one, so that what they import and prepare is imported and prepared once."""
    marks = [part.marks for part in parts if part.marks]
    kept = [part for part in parts if not part.marks]
    if not marks:
        return kept
    is_whole = len(marks) == sum(bool(part.marks) for part in PARTS)
    expression = (
        "not long" if is_whole else f"({' or '.join(f'({expression})' for expression in marks)}) and not long"
    )
    more = ("--seconds", str(MEASURED)) if is_whole else ()
    return [*kept, Part("tests", (pytest_command(expression, "postgresql", *more),))]


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
    core_s: float = 0.0

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
            _, status, usage = os.wait4(running.pid, 0)
            running.returncode = os.waitstatus_to_exitcode(status)
        self.core_s = usage.ru_utime + usage.ru_stime
        self.is_passed = running.returncode == 0


def run(part: Part, say: Callable[[str], object]) -> Outcome:
    """Run one part and `say` each line of its output as it comes."""
    say(f"\n=== {part.name} ===\n")
    started = time.monotonic()
    last, is_passed, slow, core_s = "", True, list[Slow](), 0.0
    for words in part.commands:
        command = Command(words, part.folder)
        for line in command.lines():
            say(line)
            last = line.strip() or last
            if match := DURATION.match(line):
                slow.append(Slow(float(match[1]), match[2], match[3].rstrip()))
        is_passed, core_s = is_passed and command.is_passed, core_s + command.core_s
    return Outcome(part.name, is_passed, time.monotonic() - started, last, tuple(slow), core_s)


def say_now(text: str) -> None:
    print(text, end="", flush=True)


def run_all(parts: Sequence[Part]) -> list[Outcome]:
    """Run the static parts beside the others, which run one after another; the output of a static part is
    passed through when it has ended."""

    def beside(part: Part) -> Outcome:
        lines: list[str] = []
        outcome = run(part, lines.append)
        say_now("".join(lines))
        return outcome

    static = [part for part in parts if part.is_static]
    with ThreadPoolExecutor(max(1, len(static))) as pool:
        started = [pool.submit(beside, part) for part in static]
        others = [run(part, say_now) for part in parts if not part.is_static]
        return [*(outcome.result() for outcome in started), *others]


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
        f"{outcome.core_s:6.0f} core-s  {outcome.summary}"
        for outcome in outcomes
    ]
    word = "passed" if all(outcome.is_passed for outcome in outcomes) else "FAILED"
    core_s = sum(outcome.core_s for outcome in outcomes)
    return "\n".join(
        [
            *(["", f"=== the {len(slow_rows)} slowest ===", *slow_rows] if slow_rows else []),
            *[
                "",
                "=== summary ===",
                *rows,
                f"{word}  {'in all':<10} {seconds / 60:5.1f} min  {core_s:6.0f} core-s",
            ],
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
    outcomes = run_all(gathered(chosen))
    print(table(outcomes, time.monotonic() - started))
    return 0 if all(outcome.is_passed for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
