"""A small convolutional network, trained on the spot on the dataset's model split."""

from __future__ import annotations

from pathlib import Path

from stimuli.predictors.base import BuiltNetwork, TorchPredictor, assemble
from stimuli.predictors.files.weights import pack_weights
from stimuli.predictors.framing import PictureSettings
from stimuli.predictors.parameters import TrainedParams
from stimuli.predictors.training_pictures import read_examples, training_key_of
from stimuli.registry import read_params
from stimuli.spec import Component, JsonValue
from stimuli.training import TRAINING_VERSION, Recipe, TrainedNetwork, train
from stimuli.types import Dataset, Progress

MEAN = (0.5, 0.5, 0.5)
STD = (0.25, 0.25, 0.25)


def training_key(component: Component, dataset: Component, content_digest: str, folder: Path) -> str:
    """Names what training would give, without training: for finding a network that is already there."""
    params = read_params(component, TrainedParams, "predictor")
    settings = params.model_dump(mode="json")
    for name in ("downsampling", "mirrored"):
        if settings[name] == TrainedParams.model_fields[name].default:
            del settings[name]  # as keys were before there was a choice
    return training_key_of(settings, dataset, content_digest, TRAINING_VERSION)


def open_trained_cnn(
    component: Component, folder: Path, dataset: Dataset, progress: Progress
) -> TorchPredictor:
    """Train the network. Raises BadSpec when the model split is too small or the wanted accuracy is not
    met.
    """
    params = read_params(component, TrainedParams, "predictor")
    examples = read_examples(
        dataset, params.seed, params.train_items, params.input_px, component.name, progress
    )
    trained = train(
        examples.views,
        examples.targets,
        examples.groups,
        len(dataset.labels),
        Recipe(
            params.seed,
            params.epochs,
            params.width,
            params.learning_rate,
            params.target_accuracy,
            params.downsampling,
            params.mirrored,
        ),
        lambda done, total: progress("training the network", done, total),
    )
    return _assemble(trained, dataset, params)


def _assemble(trained: TrainedNetwork, dataset: Dataset, params: TrainedParams) -> TorchPredictor:
    architecture: dict[str, JsonValue] = {
        "kind": "small",
        "width": params.width,
        "classes": len(dataset.labels),
    }
    if params.downsampling != "stride":
        architecture["downsampling"] = params.downsampling
    return assemble(
        BuiltNetwork(trained.network),
        PictureSettings(params.input_px, MEAN, STD),
        labels=dataset.labels,
        layer="features",
        architecture=architecture,
        payload=pack_weights(trained.network),
        provenance={
            "origin": "trained on the spot",
            "held_out_accuracy": round(trained.held_out_accuracy, 4),
            "held_out_count": trained.held_out_count,
            "trained_count": trained.trained_count,
            "steps": trained.steps,
            "seed": params.seed,
        },
    )
