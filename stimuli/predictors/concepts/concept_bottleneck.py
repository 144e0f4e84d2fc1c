"""A concept bottleneck, trained on the spot: picture -> values of annotated concepts -> linear head.

The network first learns the values; then a logistic regression learns the classes from the values that the
network itself finds. All of it is one network, so that methods for pictures explain it too. [Koh et al. 2020]
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from stimuli.predictors.base import BuiltNetwork, TorchPredictor
from stimuli.predictors.concepts.concept_training import (
    concept_training_key,
    concepts_in,
    finish_predictor,
    fit_head,
    learn_concepts,
    read_into,
    read_lesson,
)
from stimuli.predictors.concepts.head_interface import ANNOTATIONS
from stimuli.predictors.concepts.head_layers import CONCEPTS, texts_of
from stimuli.predictors.parameters import BottleneckParams
from stimuli.predictors.training_pictures import choose_items
from stimuli.registry import read_params
from stimuli.spec import Component, JsonValue
from stimuli.training import repeatable, small_network
from stimuli.types import ConceptDataset, Progress

NAME = "concept_bottleneck"
LABEL = "concepts found by a small network trained on the spot (in the paper: a ResNet-50)"


def training_key(component: Component, dataset: Component, content_digest: str, folder: Path) -> str:
    """Names what training would give, without training: for finding a network that is already there."""
    params = read_params(component, BottleneckParams, "predictor")
    return concept_training_key(params, NAME, dataset, content_digest)


def open_concept_bottleneck(
    component: Component, folder: Path, dataset: ConceptDataset, progress: Progress
) -> TorchPredictor:
    """Train it on the model split.

    Raises BadSpec if the dataset names no concepts, or a class is too small.
    """
    params = read_params(component, BottleneckParams, "predictor")
    concepts = concepts_in(dataset, NAME)
    items = choose_items(dataset, params.seed, params.train_items, NAME)
    lesson = read_lesson(dataset, items, params.input_px, params.seed, progress)
    wanted = np.stack([dataset.concept_values(item.key) for item in items])
    with repeatable(params.seed):
        network = concept_network(params.width, len(concepts), len(dataset.labels))
        scores = network[: _place(network, CONCEPTS)]
        loss = functional.binary_cross_entropy_with_logits
        steps = learn_concepts(scores, torch.from_numpy(wanted), loss, lesson, params, progress)
        headed = fit_head(
            network[: _place(network, "head")], lesson, wanted.astype(np.float64), params.penalty
        )
    return finish_predictor(
        network,
        lesson,
        headed,
        read=read_concept_bottleneck,
        params=params,
        labels=dataset.labels,
        architecture={"kind": NAME, "concepts": list(concepts)},
        steps=steps,
    )


def concept_network(width: int, concepts: int, classes: int) -> nn.Sequential:
    """The small network with a value per concept in 0-1, module "concepts", and a linear "head" on them.

    Takes normalised pictures (N, 3, H, W), returns logits (N, classes).
    """
    network = nn.Sequential()
    for name, module in small_network(width, concepts).named_children():
        network.add_module("scores" if name == "head" else name, module)
    network.add_module(CONCEPTS, nn.Sigmoid())
    network.add_module("head", nn.Linear(concepts, classes))
    return network


def read_concept_bottleneck(architecture: Mapping[str, JsonValue], payload: bytes) -> BuiltNetwork:
    """The network of an archive, with its concepts."""
    concepts = texts_of(architecture, "concepts")
    network = concept_network(architecture["width"], len(concepts), architecture["classes"])
    return read_into(network, architecture, payload, ANNOTATIONS, LABEL)


def _place(network: nn.Sequential, name: str) -> int:
    return [child for child, _ in network.named_children()].index(name)
