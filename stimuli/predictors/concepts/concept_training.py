"""How small networks learn named concepts on the spot: from values per picture, or from marked boxes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from stimuli.errors import BadSpec
from stimuli.predictors.base import BuiltNetwork, TorchPredictor, assemble
from stimuli.predictors.concepts.head_fits import fit_linear
from stimuli.predictors.concepts.head_interface import Bottleneck, ConceptKind, Floats, LinearHead
from stimuli.predictors.concepts.head_layers import (
    CONCEPTS,
    head_of,
    pack_concepts,
    read_concepts,
    set_head,
    single,
    texts_of,
)
from stimuli.predictors.files.weights import fit_weights
from stimuli.predictors.framing import PictureSettings
from stimuli.predictors.parameters import LearnedConcepts
from stimuli.predictors.training_pictures import Learning, learn, read_views, training_key_of
from stimuli.registry import Params
from stimuli.spec import Component, JsonValue
from stimuli.training import hold_out
from stimuli.types import ConceptDataset, Item, Pixels, Progress

MEAN = (0.5, 0.5, 0.5)
STD = (0.25, 0.25, 0.25)
JUDGED_AT_ONCE = 64
CONCEPT_TRAINING_VERSION = 1
"""Raised whenever the same pictures and settings give another predictor, or planted concepts change."""


def concept_training_key(params: Params, name: str, dataset: Component, content_digest: str) -> str:
    """Names what training would give: settings, content and the version of the training."""
    settings = {"name": name, **params.model_dump(mode="json")}
    return training_key_of(settings, dataset, content_digest, CONCEPT_TRAINING_VERSION)


def concepts_in(dataset: object, predictor: str) -> tuple[str, ...]:
    """The concepts of a dataset. Raises BadSpec with the remedy if there are none."""
    concepts: tuple[str, ...] = tuple(getattr(dataset, "concepts", ()))
    if not concepts:
        raise BadSpec(
            f"predictor {predictor}: this dataset names no concepts; put concepts.csv (image, concept, "
            "value) or parts.csv beside the class folders, or use a synthetic scenario"
        )
    return concepts


@dataclass(frozen=True, eq=False)
class Lesson:
    """Pictures as a network sees them, uint8 (N, S, S, 3), with what is known of them: class indices (N,),
    which of them are held out, bool (N,), and the class labels.
    """

    views: Pixels
    targets: NDArray[np.int64]
    held_out: NDArray[np.bool_]
    labels: tuple[str, ...]

    def inputs(self) -> Tensor:
        """Normalised pictures, float32 (N, 3, S, S)."""
        stack = np.ascontiguousarray(self.views.transpose(0, 3, 1, 2))
        return torch.from_numpy(stack).float().div_(255).sub_(MEAN[0]).div_(STD[0])


def read_lesson(
    dataset: ConceptDataset, items: Sequence[Item], input_px: int, seed: int, progress: Progress
) -> Lesson:
    """Read the pictures; a fifth of each class is held out, by whole groups."""
    views = read_views(dataset, items, input_px, progress)
    targets = np.array([dataset.labels.index(item.truth) for item in items], dtype=np.int64)
    held_out = hold_out(targets, [item.group for item in items], np.random.default_rng([seed, 11]))
    return Lesson(views, targets, held_out, dataset.labels)


def learn_concepts(
    front: nn.Module,
    wanted: Tensor,
    loss: Callable[[Tensor, Tensor], Tensor],
    lesson: Lesson,
    params: LearnedConcepts,
    progress: Progress,
) -> int:
    """Fit `front`, a network with its last layer taken off, to what is wanted of the pictures that are not
    held out; returns the number of steps. Same pictures and seed, same weights.
    """
    rng = np.random.default_rng([params.seed, 13])
    learning = Learning(front, wanted, loss, params.epochs, params.learning_rate)
    return learn(learning, lesson.inputs(), np.flatnonzero(~lesson.held_out), rng, progress)


def outputs_of(network: nn.Module, inputs: Tensor) -> Tensor:
    """What a network in evaluation mode puts out for normalised pictures, a few at a time."""
    network.eval()
    with torch.no_grad():
        return torch.cat([network(part) for part in torch.split(inputs, JUDGED_AT_ONCE)])


@dataclass(frozen=True, eq=False)
class FittedHead:
    """A head fitted on the concept values that the network itself puts out, and how well it does.

    `samples` are those values for the pictures that were not held out; `notes` the held-out accuracy and
    the mean distance between wanted and found values, held out too.
    """

    head: LinearHead
    samples: Floats
    notes: dict[str, float]


def fit_head(front: nn.Module, lesson: Lesson, wanted: Floats, penalty: float) -> FittedHead:
    """Logistic regression on the values (N, concepts) that `front` finds in the pictures."""
    values = outputs_of(front, lesson.inputs()).double().numpy()
    shown = ~lesson.held_out
    head = fit_linear(values[shown], lesson.targets[shown], len(lesson.labels), penalty)
    rounded = LinearHead(single(head.weights), single(head.bias))
    said = rounded.logits(values[lesson.held_out]).argmax(axis=1)
    notes = {
        "held_out_accuracy": round(float((said == lesson.targets[lesson.held_out]).mean()), 4),
        "concept_distance": round(float(np.abs(values - wanted)[lesson.held_out].mean()), 4),
    }
    return FittedHead(rounded, values[shown], notes)


Read = Callable[[Mapping[str, JsonValue], bytes], BuiltNetwork]
"""Makes the network of an archive."""


def finish_predictor(
    network: nn.Sequential,
    lesson: Lesson,
    headed: FittedHead,
    *,
    read: Read,
    params: LearnedConcepts,
    labels: Sequence[str],
    architecture: Mapping[str, JsonValue],
    steps: int,
) -> TorchPredictor:
    """The trained network with its "head", as the predictor that its own archive gives. `architecture` is
    what its kind needs beside width, classes and notes.
    """
    set_head(network.get_submodule("head"), headed.head)
    whole: dict[str, JsonValue] = {
        **architecture,
        "width": params.width,
        "classes": len(labels),
        "notes": headed.notes,
    }
    payload = pack_concepts(network.eval(), headed.samples)
    return assemble(
        read(whole, payload),
        PictureSettings(params.input_px, MEAN, STD),
        labels=labels,
        layer="features",
        architecture=whole,
        payload=payload,
        provenance={
            "origin": "trained on the spot",
            **headed.notes,
            "held_out_count": int(lesson.held_out.sum()),
            "trained_count": int((~lesson.held_out).sum()),
            "steps": steps,
            "seed": params.seed,
        },
    )


def read_into(
    network: nn.Module, architecture: Mapping[str, JsonValue], payload: bytes, kind: ConceptKind, label: str
) -> BuiltNetwork:
    """The network with the weights of an archive, and its concepts; `kind` says what those are."""
    state, samples = read_concepts(payload, "the archive")
    fit_weights(network, state, "the archive")
    head, concepts = head_of(network.get_submodule("head")), texts_of(architecture, "concepts")
    bottleneck = Bottleneck(concepts, head, kind, samples, label, architecture["notes"])
    return BuiltNetwork(network, bottleneck=bottleneck, concept_layer=CONCEPTS)
