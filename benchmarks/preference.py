"""PASTA-score: the encoder beside its bare forward, 6 questions times 5 seeds together and one by one, and
the whole fit of a twin.

Each measurement is a process of its own, so that its time and its peak of memory are its own. Weights of the
encoder and the embeddings of the two ways are drawn: good for time and memory, and no result on people.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.processes import run

ROWS, HELD_SHARE, COLUMNS = 21_000, 0.1, 1050
QUESTIONS, SEEDS = 6, 5
COMPARED_EPOCHS = 1
CORES = 2
GOAL_S = 600
PICTURES, SIDE, TAKES = 64, 224, 3


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
class Preference:
    """Seconds for `pictures` pictures, the quickest take; both ways of the same epoch with the largest
    difference of their ratings; the whole fit."""

    pictures: int
    bare_s: float
    embedding_s: float
    together: Fitted
    alone: Fitted
    difference: float
    whole: Fitted


def measure(say: Callable[[str], None]) -> Preference:
    with tempfile.TemporaryDirectory(prefix="legible-preference-") as folder:
        say("embedding")
        bare_s, embedding_s = _run("embedding", folder)
        sides, answers = [], []
        for side in ("together", "alone"):
            say(f"{QUESTIONS * SEEDS} heads {side}")
            sides.append(Fitted(**_run(side, folder)))
            answers.append(np.load(Path(folder) / f"{side}.npy"))
        say("the whole fit of a twin")
        whole = Fitted(**_run("twin", folder))
    difference = float(np.abs(answers[0] - answers[1]).max())
    return Preference(PICTURES, bare_s, embedding_s, sides[0], sides[1], difference, whole)


def _run(side: str, folder: str) -> Any:
    env = {"OMP_NUM_THREADS": str(CORES), "DJANGO_SETTINGS_MODULE": "crowd.settings"}
    return json.loads(run(["-m", "benchmarks.preference", side, folder], env)[1])


def embedding() -> tuple[float, float]:
    """Seconds of the bare forward and of the encoder, in turns, with a tower of random weights."""
    import torch
    from transformers import CLIPVisionConfig, CLIPVisionModel

    from stimuli.predictors.clip import PictureTower
    from stimuli.predictors.files.picture_settings import PictureSettings
    from stimuli.preference.encoders import LocalModel

    width: dict[str, Any] = {"hidden_size": 768, "intermediate_size": 3072}
    shape = CLIPVisionConfig(
        **width, num_hidden_layers=12, num_attention_heads=12, image_size=SIDE, patch_size=16
    )
    vision: Any = CLIPVisionModel(shape)
    tower = PictureTower(vision, torch.nn.Identity()).eval()
    settings = PictureSettings(SIDE, (0.48, 0.46, 0.41), (0.27, 0.26, 0.28))
    clip: Any = type("Halves", (), {"tower": tower, "settings": settings})()
    encoder = LocalModel("random", clip, "cpu")
    pictures = list(np.random.default_rng(0).integers(0, 256, (PICTURES, SIDE, SIDE, 3), dtype=np.uint8))
    inputs = torch.from_numpy(np.stack(pictures)).permute(0, 3, 1, 2).float() / 255
    taken: list[list[float]] = [[], []]
    for _ in range(TAKES):
        started = time.perf_counter()
        with torch.inference_mode():
            for part in torch.split(inputs, encoder.BATCH):
                tower(part)
        taken[0].append(time.perf_counter() - started)
        started = time.perf_counter()
        encoder.pictures(pictures)
        taken[1].append(time.perf_counter() - started)
    return min(taken[0]), min(taken[1])


def drawn() -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Embeddings (ROWS, COLUMNS) of 24 hidden causes, and ratings (ROWS, QUESTIONS) of them with noise."""
    rng = np.random.default_rng(COLUMNS)
    causes = rng.normal(size=(ROWS, 24))
    mixed = np.tanh(causes @ rng.normal(size=(24, 200)) / 5) @ rng.normal(size=(200, COLUMNS)) / 14
    wanted = [
        causes[:, q] * causes[:, q + 1] + np.maximum(causes[:, q + 2], causes[:, q + 3])
        for q in range(QUESTIONS)
    ]
    ratings = 2.9 + np.stack(wanted, axis=1) + rng.normal(0, 0.9, (ROWS, QUESTIONS))
    return mixed.astype(np.float32), np.clip(np.rint(ratings), 1, 5)


def heads(side: str) -> tuple[Any, NDArray[np.float64]]:
    """The scorers of one epoch, and the ratings that they predict for the held out rows."""
    from stimuli.preference.scorer_estimator import PreferenceScorer

    X, y = drawn()
    y = np.repeat(y, SEEDS, axis=1)
    seeds = list(range(SEEDS)) * QUESTIONS
    held = int(ROWS * HELD_SHARE)
    given: dict[str, Any] = {"epochs": COMPARED_EPOCHS}
    if side == "alone":
        scorers = [
            PreferenceScorer(seed=seed, **given).fit(
                X[held:], y[held:, head], validation=(X[:held], y[:held, head])
            )
            for head, seed in enumerate(seeds)
        ]
    else:
        scorers = [
            PreferenceScorer(seed=seeds, **given).fit(X[held:], y[held:], validation=(X[:held], y[:held]))
        ]
    return scorers, np.column_stack([scorer.predict(X[:held]) for scorer in scorers])


def twin(folder: Path) -> Any:
    """The scorer of the twin of PASTA's size, on the released split, the largest to learn from."""
    import django

    django.setup()
    from analysis.preference.fitting import FitPlan, fit
    from analysis.preference.rated_explanations import from_twin
    from stimuli.preference.encoders import Histograms

    plan = FitPlan(split="released", runs=SEEDS)
    return fit(from_twin("properties", 1000, 0), Histograms(), plan, folder, lambda *_: None).scorer


def main() -> None:
    side, folder = sys.argv[1], Path(sys.argv[2])
    if side == "embedding":
        print(json.dumps(embedding()))
        return
    started = time.perf_counter(), time.process_time()
    if side == "twin":
        scorers = [twin(folder)]
    else:
        scorers, answers = heads(side)
        np.save(folder / f"{side}.npy", answers)
    fitted = Fitted(
        side=side,
        columns=scorers[0].n_features_in_,
        wall_s=time.perf_counter() - started[0],
        cpu_s=time.process_time() - started[1],
        peak_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        epochs=int(max(np.nanmax(scorer.arrays_["history"][:, :, 0]) for scorer in scorers)),
        kappa=float(np.mean([scorer.arrays_["kappa"] for scorer in scorers])),
    )
    print(json.dumps(asdict(fitted)))


if __name__ == "__main__":
    main()
