"""Networks that a run trains once: other workers read the archive of what was trained."""

from __future__ import annotations

from collections.abc import Callable

from stimuli.predictors import restore
from stimuli.predictors.base import TorchPredictor
from stimuli.predictors.text.base import TextPredictor
from tests import worlds

Trained = TorchPredictor | TextPredictor


def trained_once(name: str, train: Callable[[], Trained]) -> Trained:
    """The result of `train`, in this process or in an earlier one of this run; `name` identifies it."""
    with worlds.world("networks", name) as (kept, is_whole):
        if is_whole:
            return restore((kept / "archive").read_bytes())
        predictor = train()
        (kept / "archive").write_bytes(predictor.dump())
        return predictor
