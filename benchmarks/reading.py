"""Reading a table strictly beside the reader of pandas, on one file: CPU seconds and peak memory of each
in a process of its own, in turns, and whether both hold the same cells.

Run as `python -m benchmarks.reading SIDE FILE`; SIDE is "strict" (ours, every line proved) or "pandas".
"""

from __future__ import annotations

import json
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.processes import run

ROWS = 1_000_000
ROUNDS = 5
SIDES = ("strict", "pandas")
CPU_BAR, MEMORY_BAR = 2.6, 1.5


@dataclass(frozen=True, slots=True)
class Reading:
    """One reading: CPU seconds, memory in MiB beyond what the libraries take, a digest of all cells."""

    cpu_s: float
    peak_mib: float
    digest: int


def measure(say: Callable[[str], None]) -> dict[str, list[Reading]]:
    """The readings of both sides. Raises RuntimeError if their cells differ."""
    taken: dict[str, list[Reading]] = {side: [] for side in SIDES}
    with tempfile.TemporaryDirectory(prefix="legible-reading-") as folder:
        path = Path(folder) / "trials.csv"
        _write(path)
        for number in range(ROUNDS):
            for side in SIDES:
                say(f"{ROWS:,} rows, {side}, {number + 1} of {ROUNDS}")
                _, told = run(["-m", "benchmarks.reading", side, str(path)], {})
                taken[side].append(Reading(**json.loads(told)))
    if len({reading.digest for side in SIDES for reading in taken[side]}) > 1:
        raise RuntimeError("The two readers hold different cells.")
    return taken


def ratios(taken: dict[str, list[Reading]]) -> tuple[list[float], float]:
    """CPU seconds of ours beside pandas' of the same round, and the ratio of the medians of memory."""
    cpu = [ours.cpu_s / theirs.cpu_s for ours, theirs in zip(*(taken[side] for side in SIDES), strict=True)]
    ours, theirs = (median(reading.peak_mib for reading in taken[side]) for side in SIDES)
    return cpu, ours / theirs


def _write(path: Path) -> None:
    draw = random.Random(40)
    with path.open("w") as file:
        file.write("participant,condition,item,correct,rt_ms,confidence\n")
        for row in range(ROWS):
            file.write(f"p{row // 500:05d},{'abcd'[row % 4]},item-{row % 500:03d},{draw.randint(0, 1)},")
            file.write(f"{draw.uniform(300, 4000):.3f},{draw.randint(1, 7)}\n")


def main() -> None:
    import pandas as pd

    from analysis.any_table.table import read_table

    side, path = sys.argv[1], Path(sys.argv[2])
    before = resource.getrusage(resource.RUSAGE_SELF)
    start = time.process_time()
    if side == "strict":
        frame = read_table(path).frame
    else:
        frame = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    cpu_s = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before.ru_maxrss
    digest = int(pd.util.hash_pandas_object(frame, index=False).sum())
    print(json.dumps({"cpu_s": cpu_s, "peak_mib": peak / 1024, "digest": digest}))


if __name__ == "__main__":
    main()
