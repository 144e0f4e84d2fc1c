"""Predictors whose maps are known in closed form, for tests and experiments."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from stimuli.errors import BadSpec
from stimuli.predictors.base import BuiltNetwork, TorchPredictor, assemble
from stimuli.predictors.framing import PictureSettings
from stimuli.predictors.parameters import ToyParams
from stimuli.registry import read_params
from stimuli.spec import Component, JsonValue
from stimuli.types import Dataset, Progress

QUADRANTS = 4


class Linear(nn.Module):
    """logits = W x; `weight` float32 (K, 3, H, W), so the gradient of logit k is weight[k] everywhere."""

    def __init__(self, classes: int, input_px: int, seed: int) -> None:
        super().__init__()
        noise = torch.randn((classes, 3, input_px, input_px), generator=torch.Generator().manual_seed(seed))
        self.weight: Tensor
        self.register_buffer("weight", noise / input_px)

    def forward(self, inputs: Tensor) -> Tensor:
        return torch.einsum("nchw,kchw->nk", inputs, self.weight)


class Quadrant(nn.Module):
    """logit k = gain x mean of quadrant k; the layer `cells` puts out the means, (N, 3, 2, 2)."""

    def __init__(self, classes: int, input_px: int, gain: float) -> None:
        super().__init__()
        self.classes = classes
        self.gain = gain
        self.cells = nn.AvgPool2d(input_px // 2)

    def forward(self, inputs: Tensor) -> Tensor:
        cells: Tensor = self.cells(inputs)
        return self.gain * cells.mean(dim=1).flatten(1)[:, : self.classes]


def open_toy(component: Component, folder: Path, dataset: Dataset, progress: Progress) -> TorchPredictor:
    """A closed-form predictor; its labels are the dataset's unless given."""
    params = read_params(component, ToyParams, "predictor")
    labels = params.labels or dataset.labels
    if params.kind == "quadrant" and (len(labels) > QUADRANTS or params.input_px % 2):
        raise BadSpec(
            f"predictor toy: quadrant takes at most {QUADRANTS} labels and an even input_px, "
            f'not {len(labels)} and {params.input_px}; choose kind = "linear"'
        )
    architecture = {
        "kind": "toy",
        "form": params.kind,
        "classes": len(labels),
        **params.model_dump(include={"input_px", "seed", "gain"}),
    }
    return assemble(
        BuiltNetwork(toy_network(architecture)),
        PictureSettings(params.input_px),
        labels=labels,
        layer="",
        architecture=architecture,
        payload=b"",
        provenance={"origin": "closed form"},
    )


def toy_network(architecture: Mapping[str, JsonValue]) -> nn.Module:
    """The network that an architecture written by `open_toy` stands for."""
    if architecture["form"] == "linear":
        return Linear(architecture["classes"], architecture["input_px"], architecture["seed"])
    return Quadrant(architecture["classes"], architecture["input_px"], architecture["gain"])
