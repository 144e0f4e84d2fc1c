"""A little preference to learn, and scorers quick enough to be fitted by the dozen."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stimuli.preference.scorer_estimator import PreferenceScorer
from stimuli.preference.scorer_file import EncoderCard, HeadCard, ScorerCard, save, scorer_parameters
from stimuli.preference.training import Keeping

Floats = NDArray[np.float64]
QUICK: dict[str, Any] = {"hidden": (24, 8), "epochs": 6, "batch": 32, "learning_rate": 3e-3, "n_jobs": 2}
ENCODER = EncoderCard(name="filters", digest="a" * 64, size=9)


def preference(rows: int = 260, heads: int = 3, seed: int = 0) -> tuple[NDArray[np.float32], Floats]:
    """Embeddings (rows, 9) and ratings (rows, heads) that follow from them, with noise."""
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(rows, 9)) * rng.uniform(0.1, 20, 9)).astype(np.float32)
    spread = X / X.std(axis=0)
    wanted = 3 + spread[:, :heads] + np.abs(spread[:, [3]]) - 0.8 + rng.normal(0, 0.4, (rows, heads))
    return X, np.clip(np.rint(wanted), 1, 5)


def card(scorer: PreferenceScorer, **others: Any) -> ScorerCard:
    """A card that fits a scorer of `preference`."""
    told = {
        "data": "d" * 64,
        "split": {"name": "strict", "seed": 0, "train": 200, "validation": 60},
        "target": "mode",
        "label": "none",
        "labels": (),
        "inputs": "single",
        "encoder": ENCODER,
        "heads": tuple(HeadCard(question=f"Q{h + 1}", seed=0) for h in range(scorer.n_heads_)),
        "parameters": scorer_parameters(scorer),
        "scores": {"kappa": 0.5, "ranks": None},
        "licence": "CC BY 4.0",
    }
    return ScorerCard(**{**told, **others})


def fit_and_save(folder: Path, progress: Callable[[int, int], None]) -> bytes:
    """The file of a scorer whose training keeps its state in `folder` after every second epoch."""
    X, y = preference()
    y[::4, 1] = np.nan
    settings = {**QUICK, "epochs": 9, "patience": 2, "learning_rate": 0.03}
    scorer = PreferenceScorer(seed=[1, 2, 3], **settings)
    held = X[200:], y[200:]
    scorer.fit(X[:200], y[:200], validation=held, keeping=Keeping(folder, 2), progress=progress)
    save(folder / "scorer.safetensors", scorer, card(scorer))
    return (folder / "scorer.safetensors").read_bytes()


def stop_after_the_fifth(done: int, _total: int) -> None:
    """Says each epoch, and after the fifth waits for a line that never comes."""
    print(done, flush=True)
    if done == 5:
        sys.stdin.readline()
