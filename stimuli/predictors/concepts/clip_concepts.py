"""CLIP as a concept bottleneck: how alike the picture is to each concept's prompt, and a head on that.

The value of a concept is the cosine of the picture's and the prompt's embedding. The head is fitted on the
dataset's model split: a logistic regression, or one normal distribution per class. The prompts are embedded
once; so an archive needs neither the text model nor the tokenizer. [Kazmierczak et al. 2023]
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from stimuli.errors import BadSpec
from stimuli.predictors.base import BuiltNetwork, NormalisedNetwork, TorchPredictor, assemble
from stimuli.predictors.clip import Clip, PictureTower, load_clip, picture_tower, prompts
from stimuli.predictors.concepts.concept_training import concept_training_key, concepts_in
from stimuli.predictors.concepts.head_fits import fit_linear, fit_qda
from stimuli.predictors.concepts.head_interface import CLIP, Bottleneck, ConceptHead, Floats
from stimuli.predictors.concepts.head_layers import (
    CONCEPTS,
    head_layer,
    head_of,
    pack_concepts,
    read_concepts,
    set_head,
    texts_of,
)
from stimuli.predictors.files.hub_folder import library, open_hub_folder
from stimuli.predictors.files.picture_settings import PictureSettings
from stimuli.predictors.files.weights import cast_from, fit_weights
from stimuli.predictors.parameters import ClipConceptParams, HubPictureParams
from stimuli.predictors.training_pictures import choose_items
from stimuli.registry import read_params
from stimuli.spec import Component, JsonValue
from stimuli.training import hold_out
from stimuli.types import ConceptDataset, Item, Progress

NAME = "clip_concepts"
SIGLIP_LABEL = "similarities of picture and text by SigLIP (in the paper: CLIP)"
ITEMS_AT_ONCE = 16


class Similarities(nn.Module):
    """Cosines (N, concepts) of embeddings (N, D) of length 1 with the prompts' (concepts, D)."""

    def __init__(self, texts: Tensor) -> None:
        super().__init__()
        self.texts: Tensor
        self.register_buffer("texts", texts)

    def forward(self, embeddings: Tensor) -> Tensor:
        cosines: Tensor = embeddings @ self.texts.T
        return cosines


def training_key(component: Component, dataset: Component, content_digest: str, folder: Path) -> str:
    """Names what fitting the head would give: settings, content, and the files of the model."""
    params = read_params(component, ClipConceptParams, "predictor")
    model = open_hub_folder(folder, params.folder)
    total = hashlib.sha256(f"{content_digest}\nframed as the folder says".encode())
    for path in sorted(model.path.iterdir()):
        if path.suffix in {".json", ".safetensors"} and model.file(path.name):
            total.update(f"\n{path.name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}".encode())
    return concept_training_key(params, NAME, dataset, total.hexdigest())


def open_clip_concepts(
    component: Component, folder: Path, dataset: ConceptDataset, progress: Progress
) -> TorchPredictor:
    """Embed the prompts, then fit the head on the model split. Raises BadSpec as `load_clip`, for a prompt
    without a place for the concept, if there are no concepts, and for a class that is too small.
    """
    params = read_params(component, ClipConceptParams, "predictor")
    concepts = _concepts(params, dataset)
    texts = prompts(params.prompt, concepts, len(concepts))
    progress("loading the model", 0, 1)
    pictures = HubPictureParams(
        folder=params.folder, input_px=params.input_px, mean=params.mean, std=params.std
    )
    clip = load_clip(folder, params.folder, pictures)
    network = ClipNetwork(clip.tower, clip.embed(texts), params.head, len(dataset.labels))
    progress("loading the model", 1, 1)
    items = choose_items(dataset, params.seed, params.fit_items, NAME)
    values = _values(network, clip.settings, dataset, items, progress)
    targets = np.array([dataset.labels.index(item.truth) for item in items], dtype=np.int64)
    apart = hold_out(targets, [item.group for item in items], np.random.default_rng([params.seed, 11]))
    head = _fit_head(params, values[~apart], targets[~apart], len(dataset.labels))
    set_head(network.head, head)
    notes = {"held_out_accuracy": round(_accuracy(head, values[apart], targets[apart]), 4)}
    prefix = clip.token_prefix if params.token_prefix is None else params.token_prefix
    architecture = _architecture(clip, prefix, concepts, params.head, len(dataset.labels), notes)
    payload = pack_concepts(network, values[~apart])
    return assemble(
        read_clip_concepts(architecture, payload),
        clip.settings,
        labels=dataset.labels,
        layer=params.layer,
        architecture=architecture,
        payload=payload,
        provenance={
            "origin": params.folder,
            "prompts": texts,
            "transformers": str(library().__version__),
            **notes,
            "held_out_count": int(apart.sum()),
            "fitted_count": int((~apart).sum()),
            **cast_from(clip.precisions),
        },
    )


class ClipNetwork(nn.Module):
    """Normalised pictures (N, 3, H, W) to logits (N, classes), by way of module "concepts"."""

    def __init__(self, tower: PictureTower, texts: Tensor, head: str, classes: int) -> None:
        super().__init__()
        self.tower = tower
        self.concepts = Similarities(texts)
        self.head = head_layer(head, classes, len(texts))
        self.eval()

    def forward(self, pictures: Tensor) -> Tensor:
        logits: Tensor = self.head(self.concepts(self.tower(pictures)))
        return logits


def read_clip_concepts(architecture: Mapping[str, JsonValue], payload: bytes) -> BuiltNetwork:
    """The network of an archive; neither folder, text model nor tokenizer are needed."""
    concepts = texts_of(architecture, "concepts")
    state, samples = read_concepts(payload, "the archive")
    inside = {
        name.removeprefix("tower."): tensor for name, tensor in state.items() if name.startswith("tower.")
    }
    tower = picture_tower(architecture, inside, "the archive")
    texts = state.get("concepts.texts", torch.zeros(len(concepts), 1))
    network = ClipNetwork(tower, texts, architecture["head"], architecture["classes"])
    fit_weights(network, state, "the archive")
    label = SIGLIP_LABEL if architecture["form"] == "siglip" else ""
    bottleneck = Bottleneck(concepts, head_of(network.head), CLIP, samples, label, architecture["notes"])
    return BuiltNetwork(network, architecture["token_prefix"], bottleneck, CONCEPTS)


def _concepts(params: ClipConceptParams, dataset: ConceptDataset) -> tuple[str, ...]:
    concepts = params.concepts or concepts_in(dataset, f"{NAME} without concepts of its own")
    if len(set(concepts)) != len(concepts) or not all(concept.strip() for concept in concepts):
        raise BadSpec(f"concepts = {list(concepts)[:8]}: every concept needs a name of its own")
    return concepts


def _values(
    network: ClipNetwork,
    settings: PictureSettings,
    dataset: ConceptDataset,
    items: Sequence[Item],
    progress: Progress,
) -> Floats:
    """The concept values of the items, float64 (n, concepts)."""
    inputs = NormalisedNetwork(
        nn.Sequential(network.tower, network.concepts), settings.mean, settings.std
    ).eval()
    batches = []
    for start in range(0, len(items), ITEMS_AT_ONCE):
        part = items[start : start + ITEMS_AT_ONCE]
        views = np.stack([settings.view(dataset.pixels(item.key)) for item in part])
        with torch.no_grad():
            batches.append(inputs(torch.from_numpy(views).permute(0, 3, 1, 2).float().div_(255)))
        progress("comparing pictures with concepts", start + len(part), len(items))
    return torch.cat(batches).double().numpy()


def _fit_head(
    params: ClipConceptParams, values: Floats, targets: NDArray[np.int64], labels: int
) -> ConceptHead:
    if params.head == "qda":
        return fit_qda(values, targets, labels, params.shrinkage)
    return fit_linear(values, targets, labels, params.penalty, standardised=True)


def _accuracy(head: ConceptHead, values: Floats, targets: NDArray[np.int64]) -> float:
    return float((head.logits(values).argmax(axis=1) == targets).mean())


def _architecture(
    clip: Clip, prefix: int, concepts: Sequence[str], head: str, classes: int, notes: Mapping[str, float]
) -> dict[str, JsonValue]:
    return {
        "kind": NAME,
        "token_prefix": prefix,
        **clip.architecture,
        "concepts": list(concepts),
        "head": head,
        "classes": classes,
        "notes": dict(notes),
    }
