"""A researcher's own image model: an exported program, or safetensors weights with the function that builds
it.
"""

from __future__ import annotations

from pathlib import Path

import torch

from stimuli.errors import BadSpec
from stimuli.predictors.architectures import prefix_of
from stimuli.predictors.base import BuiltNetwork, TorchPredictor, assemble
from stimuli.predictors.files.builder_functions import build_network
from stimuli.predictors.files.picture_settings import settings_of
from stimuli.predictors.files.program import cast_program, read_program
from stimuli.predictors.files.weights import (
    cast_from,
    fit_weights,
    other_precisions,
    pack_weights,
    read_weights,
)
from stimuli.predictors.parameters import TorchImageParams
from stimuli.registry import read_params
from stimuli.spec import Component, JsonValue
from stimuli.types import Dataset, Progress

REMEDY = (
    "export the model with torch.export.save (.pt2), or save its weights with safetensors and name a builder"
)


def open_torch_image(
    component: Component, folder: Path, dataset: Dataset, progress: Progress
) -> TorchPredictor:
    """Load it. Raises BadSpec for files that are refused, ShapeMismatch for weights that do not fit."""
    params = read_params(component, TorchImageParams, "predictor")
    settings = settings_of(params, folder, "predictor 'torch_image'")
    path = folder / params.weights
    if path.suffix not in {".pt2", ".safetensors"}:
        raise BadSpec(
            f'weights = "{params.weights}": only .pt2 and .safetensors are read, for a pickle can run '
            f"code; {REMEDY}"
        )
    if bool(params.builder) != (path.suffix == ".safetensors"):
        raise BadSpec(
            f'weights = "{params.weights}": a builder is {"needed" if not params.builder else "not taken"} '
            f"with {path.suffix} files"
        )
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadSpec(f'weights = "{params.weights}": "{path}" cannot be read ({error.strerror})') from error
    progress("loading the model", 0, 1)
    prefix = params.token_prefix
    if path.suffix == ".pt2":
        taken = ""
        network: torch.nn.Module = read_program(data, f'"{path.name}"')
        precisions = cast_program(network)
        architecture: dict[str, JsonValue] = {"kind": "program"}
    else:
        with torch.random.fork_rng(devices=[]):
            network = build_network(params.builder, params.builder_params, folder)
        state = read_weights(data, f'"{path.name}"')
        precisions = other_precisions(state.values())
        taken = fit_weights(network, state, f'"{path.name}"')
        data = pack_weights(network)
        architecture = {"kind": "builder", "builder": params.builder, "params": params.builder_params}
        prefix = prefix_of(network) if prefix is None else prefix
    if prefix is not None:
        architecture["token_prefix"] = prefix
    predictor = assemble(
        BuiltNetwork(network, prefix),
        settings,
        labels=params.labels,
        layer=params.layer,
        architecture=architecture,
        payload=data,
        provenance={
            "origin": path.name,
            **params.told(),
            **cast_from(precisions),
            **({"name_prefix": taken} if taken else {}),
        },
    )
    progress("loading the model", 1, 1)
    return predictor
