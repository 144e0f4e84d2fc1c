"""PASTA-score: 6 questions times 5 seeds together and one by one, and a whole fit with early stopping.

Each measurement is a process of its own, so that its time and its peak of memory are its own. Embeddings and
ratings are drawn: good for time and memory, and no result on people.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stimuli.preference.scorer import PreferenceScorer

ROOT = Path(__file__).parent.parent
ROWS, HELD_SHARE = 21_000, 0.1
QUESTIONS, SEEDS = 6, 5
WIDTHS = (512, 1050)
COMPARED_EPOCHS = 1
CORES = 2
GOAL_S = 600


@dataclass(frozen=True, slots=True)
class Fitted:
    """A measurement: seconds by the clock and of the processor, peak memory in MiB, the epochs that were
    trained by the longest head, and the mean kappa of the heads in the validation."""

    side: str
    columns: int
    wall_s: float
    cpu_s: float
    peak_mib: float
    epochs: int
    kappa: float


@dataclass(frozen=True, slots=True)
class Compared:
    """Both ways of the same few epochs, and the largest difference between their predicted ratings."""

    together: Fitted
    alone: Fitted
    difference: float


def measure(say: Callable[[str], None]) -> tuple[list[Compared], list[Fitted]]:
    """The comparison and the whole fit, each for every width."""
    compared, whole = [], []
    with tempfile.TemporaryDirectory(prefix="legible-preference-") as folder:
        for columns in WIDTHS:
            sides, answers = [], []
            for side in ("together", "alone"):
                say(f"{QUESTIONS * SEEDS} heads of {columns} columns {side}")
                file = Path(folder) / f"{side}.npy"
                sides.append(_run(side, columns, file))
                answers.append(np.load(file))
            compared.append(Compared(sides[0], sides[1], float(np.abs(answers[0] - answers[1]).max())))
        for columns in WIDTHS:
            say(f"the whole fit on {columns} columns")
            whole.append(_run("whole", columns, Path(folder) / "whole.npy"))
    return compared, whole


def _run(side: str, columns: int, file: Path) -> Fitted:
    command = [sys.executable, "-m", "benchmarks.preference", side, str(columns), str(file)]
    env = {**os.environ, "OMP_NUM_THREADS": str(CORES)}
    made = subprocess.run(command, cwd=ROOT, env=env, check=True, capture_output=True, text=True)
    return Fitted(**json.loads(made.stdout))


def drawn(columns: int) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Embeddings (ROWS, columns) of 24 hidden causes, and ratings (ROWS, QUESTIONS) of them with noise."""
    rng = np.random.default_rng(columns)
    causes = rng.normal(size=(ROWS, 24))
    mixed = np.tanh(causes @ rng.normal(size=(24, 200)) / 5) @ rng.normal(size=(200, columns)) / 14
    wanted = [
        causes[:, q] * causes[:, q + 1] + np.maximum(causes[:, q + 2], causes[:, q + 3])
        for q in range(QUESTIONS)
    ]
    ratings = 2.9 + np.stack(wanted, axis=1) + rng.normal(0, 0.9, (ROWS, QUESTIONS))
    return mixed.astype(np.float32), np.clip(np.rint(ratings), 1, 5)


def fit(side: str, columns: int) -> tuple[Fitted, NDArray[np.float64]]:
    """One measurement in this process, and the ratings predicted for the held out rows."""
    X, y = drawn(columns)
    y = np.repeat(y, SEEDS, axis=1)
    seeds = list(range(SEEDS)) * QUESTIONS
    held = int(ROWS * HELD_SHARE)
    options: dict[str, Any] = {} if side == "whole" else {"epochs": COMPARED_EPOCHS}
    started = time.perf_counter(), time.process_time()
    if side == "alone":
        scorers = [
            PreferenceScorer(seed=seed, **options).fit(
                X[held:], y[held:, head], validation=(X[:held], y[:held, head])
            )
            for head, seed in enumerate(seeds)
        ]
    else:
        scorers = [
            PreferenceScorer(seed=seeds, **options).fit(X[held:], y[held:], validation=(X[:held], y[:held]))
        ]
    wall_s, cpu_s = time.perf_counter() - started[0], time.process_time() - started[1]
    answers = np.column_stack([scorer.predict(X[:held]) for scorer in scorers])
    fitted = Fitted(
        side=side,
        columns=columns,
        wall_s=wall_s,
        cpu_s=cpu_s,
        peak_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        epochs=int(max(scorer.arrays_["history"][:, -1, 0].max() for scorer in scorers)),
        kappa=float(np.mean([scorer.arrays_["kappa"] for scorer in scorers])),
    )
    return fitted, answers


def main() -> None:
    side, columns, file = sys.argv[1:]
    fitted, answers = fit(side, int(columns))
    np.save(file, answers)
    print(json.dumps(asdict(fitted)))


if __name__ == "__main__":
    main()
