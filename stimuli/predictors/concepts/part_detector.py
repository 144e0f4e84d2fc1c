"""Parts, then a decision: a small detector of marked parts and a logistic regression on their scores.

The detector is a convolutional network with one heat map per part, trained on the marked boxes; a part's
score is the largest (or mean) heat anywhere. The paper detects parts with Faster R-CNN; the label of the
predictor says so. [Diaz-Rodriguez et al. 2022]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from stimuli.errors import BadSpec
from stimuli.predictors.base import BuiltNetwork, TorchPredictor
from stimuli.predictors.concepts.concept_training import (
    concept_training_key,
    finish_predictor,
    fit_head,
    learn_concepts,
    read_into,
    read_lesson,
)
from stimuli.predictors.concepts.head_interface import PARTS
from stimuli.predictors.concepts.head_layers import CONCEPTS, texts_of
from stimuli.predictors.parameters import PartParams, Pool
from stimuli.predictors.training_pictures import choose_items
from stimuli.registry import read_params
from stimuli.spec import Component, JsonValue
from stimuli.training import repeatable, small_network
from stimuli.types import ConceptDataset, Part, Progress

NAME = "part_concepts"
LABEL = "parts found by a small heat-map detector trained on the spot (in the paper: Faster R-CNN)"
MAX_RARITY = 4.0


def training_key(component: Component, dataset: Component, content_digest: str, folder: Path) -> str:
    """Names what training would give, without training: for finding a network that is already there."""
    params = read_params(component, PartParams, "predictor")
    return concept_training_key(params, NAME, dataset, content_digest)


def open_part_concepts(
    component: Component, folder: Path, dataset: ConceptDataset, progress: Progress
) -> TorchPredictor:
    """Train it on the model split. Raises BadSpec if no part is marked there, or a class is too small."""
    params = read_params(component, PartParams, "predictor")
    items = choose_items(dataset, params.seed, params.train_items, NAME)
    parts = _marked_parts(dataset, [item.key for item in items])
    named = {part.concept for some in parts for part in some}
    concepts = tuple(concept for concept in dataset.concepts if concept in named)
    lesson = read_lesson(dataset, items, params.input_px, params.seed, progress)
    with repeatable(params.seed):
        network = part_network(params.width, len(concepts), len(dataset.labels), params.pool)
        maps = nn.Sequential(network.get_submodule("features"), network.get_submodule("maps"))
        maps.eval()
        with torch.no_grad():
            cells = maps(torch.zeros(1, 3, params.input_px, params.input_px)).shape[2:]
        heat = np.stack([heat_maps(some, concepts, int(cells[0]), int(cells[1])) for some in parts])
        loss = _balanced_loss(heat[~lesson.held_out])
        steps = learn_concepts(maps, torch.from_numpy(heat), loss, lesson, params, progress)
        shown = (heat.max(axis=(2, 3)) if params.pool == "max" else heat.mean(axis=(2, 3))).astype(np.float64)
        headed = fit_head(network[:-1], lesson, shown, params.penalty)
    return finish_predictor(
        network,
        lesson,
        headed,
        read=read_part_concepts,
        params=params,
        labels=dataset.labels,
        architecture={"kind": NAME, "concepts": list(concepts), "pool": params.pool},
        steps=steps,
    )


def part_network(width: int, concepts: int, classes: int, pool: Pool) -> nn.Sequential:
    """Features, a heat map in 0-1 per part (module "heat"), their scores (module "concepts"), a linear head.

    Takes normalised pictures (N, 3, H, W), returns logits (N, classes).
    """
    network = nn.Sequential()
    network.add_module("features", small_network(width, concepts).get_submodule("features"))
    network.add_module("maps", nn.Conv2d(4 * width, concepts, 1))
    network.add_module("heat", nn.Sigmoid())
    pooled = nn.AdaptiveMaxPool2d(1) if pool == "max" else nn.AdaptiveAvgPool2d(1)
    network.add_module(CONCEPTS, nn.Sequential(pooled, nn.Flatten()))
    network.add_module("head", nn.Linear(concepts, classes))
    return network


def read_part_concepts(architecture: Mapping[str, JsonValue], payload: bytes) -> BuiltNetwork:
    """The network of an archive, with its parts."""
    concepts = texts_of(architecture, "concepts")
    network = part_network(
        architecture["width"], len(concepts), architecture["classes"], architecture["pool"]
    )
    return read_into(network, architecture, payload, PARTS, LABEL)


def heat_maps(parts: Sequence[Part], concepts: Sequence[str], height: int, width: int) -> NDArray[np.float32]:
    """How much of each cell the boxes of each concept cover, float32 (concepts, height, width) in 0-1; of
    boxes that overlap, the one that covers more counts.
    """
    maps = np.zeros((len(concepts), height, width), np.float32)
    for part in parts:
        rows = _cell_coverage(part.top, part.bottom, height)
        columns = _cell_coverage(part.left, part.right, width)
        place = concepts.index(part.concept)
        maps[place] = np.maximum(maps[place], rows[:, None] * columns)
    return maps


def seen_parts(parts: Sequence[Part], height: int, width: int) -> list[Part]:
    """Parts of a picture of `height` x `width` pixels, in shares of its square view: shorter
    side, centre.
    """
    side = min(height, width)
    seen = []
    for part in parts:
        left, right = _in_view(part.left, part.right, width / side)
        top, bottom = _in_view(part.top, part.bottom, height / side)
        if left < right and top < bottom:
            seen.append(Part(part.concept, left, top, right, bottom))
    return seen


def _marked_parts(dataset: ConceptDataset, keys: Sequence[str]) -> list[list[Part]]:
    marked = [list(dataset.parts(key)) if hasattr(dataset, "parts") else [] for key in keys]
    if not any(marked):
        raise BadSpec(
            f"predictor {NAME}: no part is marked in the {len(keys)} pictures for training; put parts.csv "
            "(image, concept, left, top, right, bottom) beside the class folders, or use a synthetic scenario"
        )
    return [
        seen_parts(some, *dataset.pixels(key).shape[:2]) if some else []
        for key, some in zip(keys, marked, strict=True)
    ]


def _in_view(low: float, high: float, stretch: float) -> tuple[float, float]:
    moved = [share * stretch - (stretch - 1) / 2 for share in (low, high)]
    return min(1.0, max(0.0, moved[0])), min(1.0, max(0.0, moved[1]))


def _cell_coverage(low: float, high: float, cells: int) -> NDArray[np.float32]:
    edges = np.arange(cells + 1) / cells
    overlap = np.minimum(edges[1:], high) - np.maximum(edges[:-1], low)
    return np.asarray(np.clip(overlap * cells, 0, 1), np.float32)


def _balanced_loss(heat: NDArray[np.float32]) -> nn.BCEWithLogitsLoss:
    """Cross-entropy per cell in which rare parts count for more, up to MAX_RARITY times."""
    share = heat.mean(axis=(0, 2, 3), dtype=np.float64)
    rarity = np.clip((1 - share) / np.maximum(share, 1e-9), 1, MAX_RARITY).astype(np.float32)
    return nn.BCEWithLogitsLoss(pos_weight=torch.from_numpy(rarity).view(-1, 1, 1))
