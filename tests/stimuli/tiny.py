"""Small networks with fixed weights, whose maps can be worked out by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from stimuli.explainers import open_explainer
from stimuli.planner.drive import Job, JobResult, drive
from stimuli.planner.network import Network
from stimuli.planner.values import Subject
from stimuli.predictors.concepts.head_interface import Bottleneck
from stimuli.spec import Component
from stimuli.types import Layout, Pixels, Plane

SIDE = 24
Maps = NDArray[np.float32]


@dataclass(frozen=True)
class Tiny:
    """What explainers and the planner see of a predictor."""

    module: nn.Module
    labels: tuple[str, ...]
    layer: str = ""
    layouts: Mapping[str, Layout] = field(default_factory=dict)
    input_px: int = SIDE
    bottleneck: Bottleneck | None = None
    no_gradient: str = ""

    def layer_module(self, name: str) -> nn.Module:
        return self.module.get_submodule(name)

    def concept_module(self) -> nn.Module:
        raise AssertionError("this network has no concepts")


def linear_net(side: int = SIDE) -> Tiny:
    """logits = W x + b: every gradient is a row of W."""
    module = nn.Sequential(nn.Flatten(), nn.Linear(3 * side * side, 3))
    return Tiny(seeded(module), ("a", "b", "c"), input_px=side)


def convolutional_net() -> Tiny:
    """Two convolutions with smooth activations (so that integrals converge) and places that matter."""
    features = nn.Sequential(
        nn.Conv2d(3, 6, 3, padding=1), nn.Softplus(), nn.Conv2d(6, 8, 3, stride=2, padding=1), nn.Softplus()
    )
    module = nn.Sequential(features, nn.AdaptiveAvgPool2d(3), nn.Flatten(), nn.Linear(72, 4))
    layouts = {
        "0.0": Layout("maps", 6, 24, 24),
        "0": Layout("maps", 8, 12, 12),
        "1": Layout("maps", 8, 3, 3),
    }
    return Tiny(seeded(module), ("a", "b", "c", "d"), "0", layouts)


def pooled_net() -> Tiny:
    """ReLU convolutions with normalisation and in-place steps, global average pooling, one linear layer."""
    features = nn.Sequential(
        nn.Conv2d(3, 6, 3, padding=1),
        nn.BatchNorm2d(6),
        nn.ReLU(inplace=True),
        nn.Conv2d(6, 10, 3, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(10),
        nn.ReLU(inplace=True),
    )
    module = nn.Sequential(features, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(10, 4))
    layouts = {"0.2": Layout("maps", 6, 24, 24), "0": Layout("maps", 10, 12, 12)}
    return Tiny(seeded(module), ("a", "b", "c", "d"), "0", layouts)


class TokenBlock(nn.Module):
    """One block of a vision transformer: attention and two layers, each behind a normalisation."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)
        self.second = nn.LayerNorm(width)
        self.mixer = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, tokens: Tensor) -> Tensor:
        seen = self.first(tokens)
        tokens = tokens + self.attention(seen, seen, seen, need_weights=False)[0]
        mixed: Tensor = tokens + self.mixer(self.second(tokens))
        return mixed


class TinyTransformer(nn.Module):
    """A class token, patches of 4 pixels, two blocks; the class token alone is read at the end."""

    def __init__(self, side: int = SIDE, width: int = 12, classes: int = 4) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 4, stride=4)
        self.first_token = nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(torch.zeros(1, 1 + (side // 4) ** 2, width))
        self.blocks = nn.ModuleList([TokenBlock(width), TokenBlock(width)])
        self.last = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, inputs: Tensor) -> Tensor:
        cells = self.patches(inputs).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.first_token.expand(cells.shape[0], -1, -1), cells], 1) + self.places
        for block in self.blocks:
            tokens = block(tokens)
        logits: Tensor = self.head(self.last(tokens)[:, 0])
        return logits


def token_net() -> Tiny:
    """A vision transformer whose default layer is the first normalisation of the last block."""
    cells = SIDE // 4
    read = Layout("tokens", 12, cells, cells, 1)
    unread = Layout("tokens", 12, cells, cells, 1, sees_target=False)
    layouts = {
        "blocks.0": read,
        "blocks.1.first": read,
        "blocks.1.second": unread,
        "last": unread,
    }
    return Tiny(seeded(TinyTransformer()), ("a", "b", "c", "d"), "blocks.1.first", layouts)


def pictures(count: int, side: int = SIDE) -> Tensor:
    return torch.rand((count, 3, side, side), generator=torch.Generator().manual_seed(5))


def subjects_of(inputs: Tensor, *, first: int = 0, layer: str = "", seed: int = 7) -> list[Subject]:
    """Subjects whose targets and keys depend on the image's place, counted from `first`."""
    return [
        Subject((first + at) % 3, f"image-{first + at}", seed, layer, image)
        for at, image in enumerate(inputs)
    ]


def explained(
    net: Any,
    subjects: Sequence[Subject],
    *names: str | Component,
    rows: int = 4,
    network: Network | None = None,
) -> dict[tuple[int, str], JobResult]:
    """All methods on all subjects in one drive: by (place of the subject, name of the method)."""
    jobs = []
    for at, subject in enumerate(subjects):
        for name in names:
            component = name if isinstance(name, Component) else Component(name)
            method = open_explainer(component)
            jobs.append(Job((at, component.name), subject, partial(method.explain, net, subject)))
    return {done.name: done for done in drive(jobs, network or Network(net, rows=rows))}  # type: ignore[misc]


def maps_of(name: str, net: Any, subjects: Sequence[Subject], *, rows: int = 4, **params: object) -> Maps:
    """The maps of one method, float32 (subjects, H, W); the first error is raised."""
    done = explained(net, subjects, Component(name, params), rows=rows)
    for outcome in done.values():
        if outcome.error is not None:
            raise outcome.error
    side = net.input_px
    maps = [done[at, name].result.values for at in range(len(subjects))]
    return np.stack(maps) if maps else np.zeros((0, side, side), np.float32)


def seeded(module: nn.Module) -> nn.Module:
    """Random weights of a fixed seed, running statistics too; evaluation mode, no gradients on weights."""
    draws = torch.Generator().manual_seed(3)
    for weights in module.parameters():
        scale = weights[0].numel() ** 0.5 if weights.ndim > 1 else 1.0
        weights.data = torch.randn(weights.shape, generator=draws) / scale
        weights.requires_grad_(False)
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            assert part.running_mean is not None and part.running_var is not None
            part.running_mean.copy_(0.1 * torch.randn(part.running_mean.shape, generator=draws))
            part.running_var.copy_(0.5 + torch.rand(part.running_var.shape, generator=draws))
    return module.eval()


@dataclass(frozen=True)
class Shown:
    """An entry of a metric that compares stimuli, in memory."""

    item: str
    condition: str
    label: str
    view: Pixels
    values: Plane
