"""The models under study: a visible table of names, each with the function that loads or trains it.

Opening one imports torch; importing this module does not.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from stimuli.registry import lookup
from stimuli.spec import Component
from stimuli.types import Progress, silent

if TYPE_CHECKING:
    from stimuli.predictors.base import TorchPredictor
    from stimuli.predictors.text import TextPredictor

PREDICTORS = {
    # pictures
    "torch_image": "stimuli.predictors.torch_image:open_torch_image",
    "transformers_image": "stimuli.predictors.transformers_image:open_transformers_image",
    "clip_zero_shot": "stimuli.predictors.clip:open_clip_zero_shot",
    "trained_cnn": "stimuli.predictors.trained_cnn:open_trained_cnn",
    "trained_bcos": "stimuli.predictors.trained_bcos:open_trained_bcos",
    "toy": "stimuli.predictors.toy:open_toy",
    # pictures by named concepts
    "concept_bottleneck": "stimuli.predictors.concept_bottleneck:open_concept_bottleneck",
    "part_concepts": "stimuli.predictors.part_concepts:open_part_concepts",
    "clip_concepts": "stimuli.predictors.clip_concepts:open_clip_concepts",
    # texts
    "trained_text": "stimuli.predictors.trained_text:open_trained_text",
    "transformers_text": "stimuli.predictors.transformers_text:open_transformers_text",
}


TRAINING_KEYS = {
    "trained_cnn": "stimuli.predictors.trained_cnn:training_key",
    "trained_bcos": "stimuli.predictors.trained_bcos:training_key",
    "trained_text": "stimuli.predictors.trained_text:training_key",
    "concept_bottleneck": "stimuli.predictors.concept_bottleneck:training_key",
    "part_concepts": "stimuli.predictors.part_concepts:training_key",
    "clip_concepts": "stimuli.predictors.clip_concepts:training_key",
}
"""Predictors that are trained on the spot, each with what names its training beforehand."""


def training_key_of(
    component: Component, dataset: Component, content_digest: str, folder: Path
) -> str | None:
    """Names what training would give, without training; None for predictors that are loaded."""
    if component.name not in TRAINING_KEYS:
        return None
    namer = lookup(TRAINING_KEYS, component.name, "predictor")
    return str(namer(component, dataset, content_digest, folder))


def open_predictor(
    component: Component, folder: Path, dataset: Any, progress: Progress = silent
) -> TorchPredictor | TextPredictor:
    """Load, or train on the dataset's model split, the predictor that a component names.

    Raises BadSpec for unknown names, parameters and files that are refused, ShapeMismatch for weights that do
    not fit.
    """
    opener = lookup(PREDICTORS, component.name, "predictor")
    return cast("TorchPredictor | TextPredictor", opener(component, folder, dataset, progress))


def restore(data: bytes) -> TorchPredictor | TextPredictor:
    """The predictor that `dump` wrote; its key is computed again and must agree.

    Raises BadSpec for bytes that are no such archive, or that were changed.
    """
    reader = lookup({"archive": "stimuli.predictors.archive:restore"}, "archive", "reader")
    return cast("TorchPredictor | TextPredictor", reader(data))
