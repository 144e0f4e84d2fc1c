"""The models under study: a visible table of names, each with the function that loads or trains it.

Opening one imports torch; importing this module does not.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from stimuli.registry import lookup
from stimuli.spec import Component
from stimuli.types import Dataset, Progress, silent

if TYPE_CHECKING:
    from stimuli.predictors.base import TorchPredictor

PREDICTORS = {
    "torch_image": "stimuli.predictors.torch_image:open_torch_image",
    "trained_cnn": "stimuli.predictors.trained_cnn:open_trained_cnn",
    "toy": "stimuli.predictors.toy:open_toy",
}


def open_predictor(
    component: Component, folder: Path, dataset: Dataset, progress: Progress = silent
) -> TorchPredictor:
    """Load, or train on the dataset's model split, the predictor that a component names.

    Raises BadSpec for unknown names, parameters and files that are refused, ShapeMismatch for weights that do
    not fit.
    """
    opener = lookup(PREDICTORS, component.name, "predictor")
    return cast("TorchPredictor", opener(component, folder, dataset, progress))


def restore(data: bytes) -> TorchPredictor:
    """The predictor that `TorchPredictor.dump` wrote; its key is computed again and must agree.

    Raises BadSpec for bytes that are no such archive, or that were changed.
    """
    reader = lookup({"archive": "stimuli.predictors.archive:restore"}, "archive", "reader")
    return cast("TorchPredictor", reader(data))
