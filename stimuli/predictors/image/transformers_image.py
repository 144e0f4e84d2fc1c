"""Image classifiers of the transformers library, from a model folder inside the study's folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from torch import Tensor, nn

from stimuli.errors import BadSpec
from stimuli.predictors.base import BuiltNetwork, TorchPredictor, assemble
from stimuli.predictors.files.hub_folder import (
    Config,
    chosen_labels,
    fill,
    library,
    open_hub_folder,
    own_labels,
    plain_config,
    problem_of,
)
from stimuli.predictors.files.hub_preprocessing import picture_settings
from stimuli.predictors.files.weights import (
    cast_from,
    in_float32,
    other_precisions,
    pack_weights,
    read_weights,
)
from stimuli.predictors.network_forms import logits_of
from stimuli.predictors.parameters import HubPictureParams
from stimuli.registry import read_params
from stimuli.spec import Component, JsonValue
from stimuli.types import Dataset, Progress

PREFIXES = {
    "vit": 1,
    "vit_msn": 1,
    "deit": 2,
    "beit": 1,
    "data2vec-vision": 1,
    "dinov2": 1,
    "dinov2_with_registers": 1,
    "clip": 1,
    "siglip": 0,
    "ijepa": 0,
    "swin": 0,
    "swinv2": 0,
}
"""Class and distillation tokens before the cells, for architectures whose layers put out tokens; registers
come on top.
"""
ELSEWHERE = {
    "timm_wrapper": "its network is built by another library, which may download it",
    "shieldgemma2": "it reads texts with its pictures",
    "imagegpt": "it reads colours as numbers of a palette",
    "siglip2": "it reads patches of pictures of any form",
}
TABLE = "transformers.models.auto.modeling_auto"


class Logits(nn.Module):
    """The logits (N, K) of a classifier that returns them among other things."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, pictures: Tensor) -> Tensor:
        return logits_of(self.model(pixel_values=pictures))


def open_transformers_image(
    component: Component, folder: Path, dataset: Dataset, progress: Progress
) -> TorchPredictor:
    """Load it. Labels are those of the study, else of `id2label`, else of the dataset.

    Raises BadSpec for folders that are refused (see hub_folder.py) and architectures that the library does
    not have as image classifiers, ShapeMismatch for weights that do not fit.
    """
    params = read_params(component, HubPictureParams, "predictor")
    hub = open_hub_folder(folder, params.folder)
    config = hub.config()
    kind = _class_name(config, params.folder)
    plain = plain_config(config)
    plain["num_labels"] = count = _label_count(config)
    named = own_labels(config, params.folder)
    # One logit may stand for two labels; that there is one or the other is seen when the network runs.
    labels = chosen_labels(params.labels, named, max(count, 2), params.folder, dataset.labels)
    settings = picture_settings(hub, config.get("image_size"), config.get("model_type"), params)
    progress("loading the model", 0, 1)
    weights = hub.weights()
    model = fill(_class(kind), plain, in_float32(weights), f'"{params.folder}"')
    prefix = _prefix(config) if params.token_prefix is None else params.token_prefix
    predictor = assemble(
        BuiltNetwork(Logits(model), prefix),
        settings,
        labels=labels,
        layer=params.layer,
        architecture={"kind": "transformers_image", "class": kind, "config": plain, "token_prefix": prefix},
        payload=pack_weights(model),
        provenance={
            "origin": params.folder,
            "transformers": str(library().__version__),
            **params.told(),
            **cast_from(other_precisions(weights.values())),
            **problem_of(config, f'"{params.folder}"'),
        },
    )
    progress("loading the model", 1, 1)
    return predictor


def read_transformers_image(architecture: Mapping[str, JsonValue], payload: bytes) -> BuiltNetwork:
    """The network of an archive; the folder is not needed."""
    kind = _class(
        _class_name({**architecture["config"], "architectures": [architecture["class"]]}, "the archive")
    )
    model = fill(kind, architecture["config"], read_weights(payload, "the archive"), "the archive")
    return BuiltNetwork(Logits(model), architecture["token_prefix"])


def built_of(model: nn.Module) -> tuple[BuiltNetwork, tuple[str, ...]]:
    """A classifier of the library that is in memory, and the labels that it names; none if it names none."""
    config = json.loads(cast("Any", model).config.to_json_string())
    problem_of(config, type(model).__name__)
    return BuiltNetwork(Logits(model), _prefix(config)), own_labels(config, type(model).__name__)


def _class_name(config: Mapping[str, JsonValue], shown: str) -> str:
    """The library's class for this configuration. Raises BadSpec if it is no image classifier of it."""
    kind = str(config.get("model_type"))
    table = library(TABLE).MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES
    if kind in ELSEWHERE or kind not in table:
        reason = ELSEWHERE.get(
            kind, "the installed transformers library has no image classifier of that type"
        )
        raise BadSpec(
            f'"{shown}" holds a model of type "{kind}": {reason}; export it as .pt2 '
            "and use predictor torch_image"
        )
    offered = table[kind] if isinstance(table[kind], tuple) else (table[kind],)
    named = config.get("architectures")
    wanted = named[0] if isinstance(named, list) and named else None
    if wanted not in offered:
        raise BadSpec(
            f'"{shown}" holds a {wanted!r}, which is no image classifier; one of type "{kind}" is '
            f"{' or '.join(offered)}. Save a model that was trained to name classes"
        )
    return str(wanted)


def _class(name: str) -> Any:
    return getattr(library(), name)


def _label_count(config: Config) -> int:
    table, count = config.get("id2label"), config.get("num_labels")
    if isinstance(table, dict) and table:
        return len(table)
    return count if type(count) is int else 2  # the library's default


def _prefix(config: Mapping[str, JsonValue]) -> int | None:
    prefix = PREFIXES.get(str(config["model_type"]))
    registers = config.get("num_register_tokens") or 0
    return None if prefix is None else prefix + int(registers)
