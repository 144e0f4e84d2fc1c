"""A small B-cos network, trained on the spot on the dataset's model split."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

from stimuli.predictors.base import BuiltNetwork, TorchPredictor, assemble
from stimuli.predictors.files.weights import fit_weights, pack_weights, read_weights
from stimuli.predictors.framing import PictureSettings
from stimuli.predictors.image.bcos_layers import bcos_network
from stimuli.predictors.parameters import TrainedBcosParams
from stimuli.predictors.training_pictures import Learning, learn, read_examples, training_key_of
from stimuli.registry import read_params
from stimuli.spec import Component, JsonValue
from stimuli.training import hold_out, repeatable
from stimuli.types import Dataset, Pixels, Progress

BCOS_VERSION = 1


def training_key(component: Component, dataset: Component, content_digest: str, folder: Path) -> str:
    """Names what training would give, without training: for finding a network that is already there."""
    params = read_params(component, TrainedBcosParams, "predictor")
    settings = {"name": "trained_bcos", **params.model_dump(mode="json")}
    return training_key_of(settings, dataset, content_digest, BCOS_VERSION)


def open_trained_bcos(
    component: Component, folder: Path, dataset: Dataset, progress: Progress
) -> TorchPredictor:
    """Train the network. Raises BadSpec when the model split is too small."""
    params = read_params(component, TrainedBcosParams, "predictor")
    examples = read_examples(
        dataset, params.seed, params.train_items, params.input_px, component.name, progress
    )
    classes = len(dataset.labels)
    network, provenance = train_bcos(
        examples.views, examples.targets, examples.groups, classes, params, progress
    )
    return assemble(
        BuiltNetwork(network),
        PictureSettings(params.input_px),
        labels=dataset.labels,
        layer="features",
        architecture={
            "kind": "bcos",
            "width": params.width,
            "classes": classes,
            "b": params.b,
            "max_out": params.max_out,
        },
        payload=pack_weights(network),
        provenance=provenance,
    )


def read_bcos(architecture: dict[str, JsonValue], payload: bytes) -> BuiltNetwork:
    """The network of an archive that `open_trained_bcos` wrote."""
    with torch.random.fork_rng(devices=[]):
        network = bcos_network(
            architecture["width"], architecture["classes"], architecture["b"], architecture["max_out"]
        )
    fit_weights(network, read_weights(payload, "the archive"), "the archive")
    return BuiltNetwork(network)


def train_bcos(
    views: Pixels,
    targets: NDArray[np.int64],
    groups: list[str],
    classes: int,
    params: TrainedBcosParams,
    progress: Progress,
) -> tuple[nn.Module, dict[str, JsonValue]]:
    """Train on uint8 (N, H, W, 3) and class indices (N,); a fifth is held out, by whole groups.

    Each class is a yes or no of its own (binary cross-entropy), as in the paper: a contribution then speaks
    for its class, and not only against the others. Returns the network and what is worth telling of it.
    """
    rng = np.random.default_rng([params.seed, 13])
    held_out = hold_out(targets, groups, rng)
    inputs = torch.from_numpy(np.ascontiguousarray(views.transpose(0, 3, 1, 2))).float().div_(255)
    wanted = functional.one_hot(torch.from_numpy(targets), classes).float()
    shown, kept = np.flatnonzero(~held_out), np.flatnonzero(held_out)
    with repeatable(params.seed):
        network = bcos_network(params.width, classes, params.b, params.max_out)
        # No weight decay: a weight's length has no effect.
        learning = Learning(
            network,
            wanted,
            functional.binary_cross_entropy_with_logits,
            params.epochs,
            params.learning_rate,
            weight_decay=0.0,
        )
        steps = learn(learning, inputs, shown, rng, progress)
    with torch.no_grad():
        said = torch.cat(
            [network(inputs[part]).argmax(1) for part in np.array_split(kept, -(-len(kept) // 64))]
        )
    provenance: dict[str, JsonValue] = {
        "origin": "trained on the spot",
        "held_out_accuracy": round(float((said.numpy() == targets[kept]).mean()), 4),
        "held_out_count": len(kept),
        "trained_count": len(shown),
        "steps": steps,
        "seed": params.seed,
    }
    return network, provenance
