"""Small networks with fixed weights, whose maps can be worked out by hand."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from stimuli.explainers import Batch, open_explainer
from stimuli.spec import Component
from stimuli.types import Maps

SIDE = 24


@dataclass(frozen=True)
class Tiny:
    """What explainers see of a predictor."""

    module: nn.Module
    layer: str = ""
    layers: tuple[str, ...] = ()

    def layer_module(self, name: str) -> nn.Module:
        return self.module.get_submodule(name)


def linear_net(side: int = SIDE) -> Tiny:
    """logits = W x + b: every gradient is a row of W."""
    module = nn.Sequential(nn.Flatten(), nn.Linear(3 * side * side, 3))
    return Tiny(_seeded(module))


def convolutional_net() -> Tiny:
    """Two convolutions with smooth activations (so that integrals converge) and places that matter."""
    features = nn.Sequential(
        nn.Conv2d(3, 6, 3, padding=1), nn.Softplus(), nn.Conv2d(6, 8, 3, stride=2, padding=1), nn.Softplus()
    )
    module = nn.Sequential(features, nn.AdaptiveAvgPool2d(3), nn.Flatten(), nn.Linear(72, 4))
    return Tiny(_seeded(module), layer="0", layers=("0", "0.0"))


def pictures(count: int, side: int = SIDE) -> Tensor:
    return torch.rand((count, 3, side, side), generator=torch.Generator().manual_seed(5))


def batch_of(inputs: Tensor, *, first: int = 0, layer: str = "") -> Batch:
    """A batch whose targets and keys depend on the image's place, counted from `first`."""
    places = range(first, first + len(inputs))
    return Batch(inputs, [i % 3 for i in places], [f"image-{i}" for i in places], [7] * len(inputs), layer)


def maps_of(name: str, net: Tiny, batch: Batch, **params: object) -> Maps:
    return open_explainer(Component(name, params)).attribute(net, batch).values


def _seeded(module: nn.Module) -> nn.Module:
    draws = torch.Generator().manual_seed(3)
    for weights in module.parameters():
        weights.data = torch.randn(weights.shape, generator=draws) / weights[0].numel() ** 0.5
        weights.requires_grad_(False)
    return module.eval()
