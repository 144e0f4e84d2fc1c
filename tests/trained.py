"""Networks that a run trains once: other workers read the archive of what was trained."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from stimuli.predictors import restore
from stimuli.predictors.base import TorchPredictor
from stimuli.predictors.text.base import TextPredictor
from tests.databases import FOLDER_VARIABLE, only_one

Trained = TorchPredictor | TextPredictor


def trained_once(name: str, train: Callable[[], Trained]) -> Trained:
    """The result of `train`, in this process or in an earlier one of this run; `name` identifies it."""
    archive = Path(os.environ[FOLDER_VARIABLE], f"trained-{name}")
    with only_one(archive.with_name(f"{archive.name}.lock")):
        if archive.exists():
            return restore(archive.read_bytes())
        predictor = train()
        archive.write_bytes(predictor.dump())
        return predictor
