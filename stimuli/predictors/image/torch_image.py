"""A researcher's own image model: an exported program, or safetensors weights with the function that builds
it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import torch
from pydantic import Field

from stimuli.errors import BadSpec
from stimuli.predictors.base import Built, TorchPredictor, assemble
from stimuli.predictors.files.builders import build_network
from stimuli.predictors.files.program import read_program
from stimuli.predictors.files.weights import fit_weights, pack_weights, read_weights
from stimuli.registry import Params, read_params
from stimuli.spec import Component, JsonValue
from stimuli.types import Dataset, Progress

REMEDY = (
    "export the model with torch.export.save (.pt2), or save its weights with safetensors and name a builder"
)


class TorchImageParams(Params):
    """`weights` is a .pt2 or .safetensors file; `labels` are in logit order; `layer` is a module path.

    `mean` and `std` are those of the training, for inputs in 0-1. `builder` ("package.module:function") and
    `builder_params` belong to .safetensors only. `token_prefix` declares, for a vision transformer, how many
    class and register tokens stand before the cells, so that layers that put out tokens can be read as maps.
    """

    weights: str
    input_px: Annotated[int, Field(ge=8, le=1024)]
    labels: Annotated[tuple[str, ...], Field(min_length=2)]
    layer: str = ""
    mean: tuple[float, float, float] = (0.0, 0.0, 0.0)
    std: tuple[float, float, float] = (1.0, 1.0, 1.0)
    token_prefix: Annotated[int, Field(ge=0, le=64)] | None = None
    builder: str = ""
    builder_params: dict[str, JsonValue] = {}


def open_torch_image(
    component: Component, folder: Path, dataset: Dataset, progress: Progress
) -> TorchPredictor:
    """Load it. Raises BadSpec for files that are refused, ShapeMismatch for weights that do not fit."""
    params = read_params(component, TorchImageParams, "predictor")
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
    if path.suffix == ".pt2":
        network: torch.nn.Module = read_program(data, f'"{path.name}"')
        architecture: dict[str, JsonValue] = {"kind": "program"}
    else:
        with torch.random.fork_rng(devices=[]):
            network = build_network(params.builder, params.builder_params, folder)
        fit_weights(network, read_weights(data, f'"{path.name}"'), f'"{path.name}"')
        data = pack_weights(network)
        architecture = {"kind": "builder", "builder": params.builder, "params": params.builder_params}
    if params.token_prefix is not None:
        architecture["token_prefix"] = params.token_prefix
    predictor = assemble(
        Built(network, params.token_prefix),
        labels=params.labels,
        input_px=params.input_px,
        layer=params.layer,
        mean=params.mean,
        std=params.std,
        architecture=architecture,
        payload=data,
        provenance={"origin": path.name},
    )
    progress("loading the model", 1, 1)
    return predictor
