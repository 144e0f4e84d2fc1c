"""What processes cost, read from /proc: CPU seconds, memory and loaded libraries. Linux only."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def _fields(pid: int) -> list[str]:
    """/proc/<pid>/stat from the state on, since the name before it may hold anything; empty if it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def family(pid: int) -> Iterator[int]:
    """The process and all that descend from it."""
    yield pid
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            fields = _fields(int(entry.name))
            if fields and int(fields[1]) == pid:
                yield from family(int(entry.name))


def cpu_s(pid: int) -> float:
    """User and system seconds of the family so far, ended children included."""
    spent = 0
    for member in family(pid):
        fields = _fields(member)
        if fields:
            spent += sum(int(field) for field in fields[11:15])  # own and ended children's
    return spent / TICKS_PER_S


def loads(pid: int, library: str) -> bool:
    """Whether any process of the family has a file of this name mapped."""
    return any(library in Path(f"/proc/{member}/maps").read_text() for member in family(pid))


def rss_mb(pid: int) -> float:
    """Memory of the family that lies in RAM, in MB; pages that they share are counted once for each."""
    return sum(int(fields[21]) for member in family(pid) if (fields := _fields(member))) * PAGE_BYTES / 1e6


@dataclass(frozen=True, slots=True)
class Taken:
    """Peak memory in MiB, seconds by the clock and of the processor of one program on a study of so many
    answers."""

    peak_mib: float
    wall_s: float
    cpu_s: float
    side: str = ""
    answers: int = 0


def run(arguments: list[str], env: Mapping[str, str]) -> tuple[Taken, str]:
    """What one program of Python takes, and the last line that it prints. Raises RuntimeError if it fails."""
    started = time.monotonic()
    with tempfile.TemporaryFile() as printed:
        child = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=ROOT,
            env={**os.environ, **env},
            stdout=printed,
            stderr=subprocess.STDOUT,
        )
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        wall_s = time.monotonic() - started
        printed.seek(0)
        told = printed.read().decode()
    if child.returncode != 0:
        raise RuntimeError(f"{' '.join(arguments[:3])} failed:\n{told[-4000:]}")
    taken = Taken(usage.ru_maxrss / 1024, wall_s, usage.ru_utime + usage.ru_stime)
    return taken, (told.strip().splitlines() or [""])[-1]
