"""How often the demo's planted cases are found, by people and pictures of other seeds than the shipped one.

    python -m tests.proofs.planted --seed S [--count 200]

Both cases run in memory, as in the demo. Exits 1 if the case in which the evidence is marked is found in
fewer than nine of ten runs, or its null in more than one of eight.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np

from analysis.stats.planning.contrast_power import dunnett_power
from analysis.stats.shares.proportions import wilson
from crowd.rehearsal.planted import Run, load_plant, run
from crowd.rehearsal.planted.detection_counts import DetectionCounts

SEEDS_ON = 1_000
"""Added to the shipped seed: none of these was seen while the pictures were made."""


def line_of(counted: DetectionCounts) -> str:
    """As `counted_of` reads it."""
    return (
        f"planted {counted.digest}: of {counted.runs} other seeds {counted.marked} found the marked case and "
        f"{counted.null} its null; power {counted.power:.4f}"
    )


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Count how often the planted cases are found.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=200)
    asked = parser.parse_args(words)
    plant = load_plant()
    first = SEEDS_ON * (asked.seed + 1) + plant.seed
    with ProcessPoolExecutor(min(2, os.cpu_count() or 1)) as workers:
        runs = list(workers.map(partial(run, plant), range(first + 1, first + 1 + asked.count)))
    marked, null = (sum(each.found(case, plant.alpha) for each in runs) for case in ("marked", "null"))
    power = _power(runs, plant.people, plant.alpha)
    counted = DetectionCounts(plant.digest, asked.count, marked, null, power)
    print(line_of(counted))
    print()
    print("| case | found | 95 % interval | mean difference, points | of the means between seeds, SD |")
    print("| --- | --- | --- | --- | --- |")
    for case, times in (("marked", counted.marked), ("null", counted.null)):
        ends = wilson(times, asked.count)
        gains = [100 * _difference(each, case) for each in runs]
        print(
            f"| {case} | {times} of {asked.count} | {100 * ends.low:.1f} to {100 * ends.high:.1f} % | "
            f"{np.mean(gains):+.1f} | {np.std(gains, ddof=1):.1f} |"
        )
    bases = [100 * float(np.mean(each.scores["baseline"])) for each in runs]
    print(f"\nWithout explanation {np.mean(bases):.1f} %; {plant.people} {plant.kind} observers per group,")
    print(f"Dunnett's two-sided test at {plant.alpha:g}, seeds {first + 1} to {first + asked.count}.")
    return 0 if counted.marked >= 0.9 * asked.count and counted.null <= asked.count / 8 else 1


def _difference(made: Run, case: str) -> float:
    return float(np.mean(made.scores[case]) - np.mean(made.scores["baseline"]))


def _power(runs: Sequence[Run], people: int, alpha: float) -> float:
    """By the test's own formula, for the mean difference of the marked case and the spread of people."""
    within = [np.var(scores, ddof=1) for each in runs for scores in each.scores.values()]
    effect = np.mean([_difference(each, "marked") for each in runs]) / np.sqrt(np.mean(within))
    return dunnett_power(people, [people] * 2, [float(effect), 0.0], alpha=alpha).each[0]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
