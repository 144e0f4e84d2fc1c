"""What the suite costs, by room, and what each room may cost (tests/budget.toml).

Budgets are in units of a fixed loop, so that they hold on every machine: the file of the last measurement
(tests/seconds.txt) says how long the loop took there.
"""

from __future__ import annotations

import os
import re
import time
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SECONDS = ROOT / "tests" / "seconds.txt"
BUDGET = ROOT / "tests" / "budget.toml"
COLLECTION = "collection"
UNMEASURED_MAX = 10
_LOOP = re.compile(r"^# reference loop: (\d+\.\d+) s$", re.MULTILINE)


def loop() -> int:
    """The fixed loop: integers, a dictionary and texts, as in most of what tests do."""
    seen: dict[int, int] = {}
    for number in range(600_000):
        key = number * 7919 % 4093
        seen[key] = seen.get(key, 0) + len(str(number))
    return sum(seen.values())


def loop_s() -> float:
    """CPU seconds of the loop in this process, the least of five."""
    times = []
    for _ in range(5):
        before = time.process_time()
        loop()
        times.append(time.process_time() - before)
    return min(times)


def spent_s(*, with_living: bool) -> float:
    """CPU seconds of this process and of its children that have ended; `with_living`: of all its living
    descendants too, as of a browser, which serves many tests."""
    return sum(os.times()[:4]) + (living_s() if with_living else 0.0)


def living_s() -> float:
    """CPU seconds of the living descendants of this process; 0 without a /proc."""
    parents, ticks = dict[int, int](), dict[int, int]()
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # After the name, which may hold anything: the state, the parent, …; 14th to 17th of all: times.
            words = file.read_text().rpartition(")")[2].split()
            pid = int(file.parent.name)
            parents[pid], ticks[pid] = int(words[1]), sum(map(int, words[11:15]))
    mine, family = os.getpid(), {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    return sum(ticks[pid] for pid in family - {mine}) / os.sysconf("SC_CLK_TCK")


def room_of(path: str) -> str:
    """tests/ROOM/….py; what is no path is a room of its own."""
    parts = path.split("/")
    return parts[1] if len(parts) > 2 else path


def by_room(seconds: Mapping[str, float]) -> dict[str, float]:
    rooms: defaultdict[str, float] = defaultdict(float)
    for path, spent in seconds.items():
        rooms[room_of(path)] += spent
    return dict(sorted(rooms.items(), key=lambda pair: -pair[1]))


@dataclass(frozen=True, slots=True)
class Measurement:
    """CPU seconds by test file, and of collecting them, on a machine whose loop took `loop_s`."""

    seconds: Mapping[str, float]
    loop_s: float

    @classmethod
    def read(cls, text: str) -> Measurement:
        match = _LOOP.search(text)
        rows = (line.split() for line in text.splitlines() if line and line[0] != "#")
        return cls({path: float(spent) for spent, path in rows}, float(match[1]) if match else 0.0)

    def text(self, kind: str = "test file") -> str:
        rows = [f"{spent:.1f} {path}" for path, spent in sorted(self.seconds.items())]
        head = [
            f"# CPU seconds of each {kind} when last measured",
            f"# reference loop: {self.loop_s:.4f} s",
        ]
        return "\n".join([*head, *rows, ""])


def over(measured: Measurement, budgets: Mapping[str, float]) -> list[str]:
    """A sentence for each room that costs more than it may, or has no budget."""
    said = []
    for room, spent in by_room(measured.seconds).items():
        units, most = spent / measured.loop_s, budgets.get(room)
        files = [path for path in measured.seconds if room_of(path) == room]
        heaviest = sorted(files, key=lambda path: -measured.seconds[path])[:3]
        if most is None:
            said.append(f"{room} costs {units:.0f} units and has no budget: add a line to {BUDGET.name}.")
        elif units > most:
            said.append(
                f"{room} costs {units:.0f} units, and its budget is {most:.0f}: make its tests cheaper (most "
                f"is spent in {', '.join(heaviest)}), or raise the budget with a reason beside it."
            )
    return said


def budgets() -> dict[str, float]:
    return {room: float(units) for room, units in tomllib.loads(BUDGET.read_text())["units"].items()}


def files_of_tests() -> list[str]:
    """Paths from the root of all test files."""
    return sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py"))


def unmeasured(measured: Measurement, files: Iterable[str]) -> list[str]:
    return sorted(set(files) - set(measured.seconds))


def table(seconds: Mapping[str, float], elsewhere_s: float) -> str:
    """CPU seconds by room in this run; `elsewhere_s` are those of processes that belong to no single test."""
    # A browser that ends with its process is counted by its tests alone.
    rows = {**by_room(seconds), "of no single test": max(0.0, elsewhere_s)}
    total = sum(rows.values())
    return "\n".join(f"{spent:8.1f} s  {room}" for room, spent in [*rows.items(), ("together", total)])
