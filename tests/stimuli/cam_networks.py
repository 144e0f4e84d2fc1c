"""Networks for the tests of class activation maps, and the maps of pytorch-grad-cam on them."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from stimuli.types import Layout
from tests.stimuli.tiny import SIDE, Tiny, pictures, seeded
from tests.witnesses import grad_cam

LABELS = ("a", "b", "c", "d")


def deep_net() -> Tiny:
    """ReLU convolutions with in-place steps, and a head of two linear layers that is not linear."""
    features = nn.Sequential(
        nn.Conv2d(3, 6, 3, padding=1),
        nn.BatchNorm2d(6),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 10, 3, stride=2, padding=1),
        nn.ReLU(inplace=True),
    )
    head = nn.Sequential(nn.Linear(360, 20), nn.ReLU(inplace=True), nn.Linear(20, 4))
    module = nn.Sequential(features, nn.Flatten(), head)
    layouts = {"0.1": Layout("maps", 6, SIDE, SIDE), "0": Layout("maps", 10, 6, 6)}
    return Tiny(seeded(module), LABELS, "0", layouts)


class Around(nn.Module):
    """A block with a path around it, whose activation runs twice."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(width, width, 3, padding=1)
        self.second = nn.Conv2d(width, width, 3, padding=1)
        self.bend = nn.ReLU(inplace=True)

    def forward(self, inputs: Tensor) -> Tensor:
        bent: Tensor = self.bend(inputs + self.second(self.bend(self.first(inputs))))
        return bent


def residual_net() -> Tiny:
    """Two blocks with paths around them, pooled, one linear layer."""
    module = nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2, padding=1), Around(8), Around(8), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    )
    module.append(nn.Linear(8, 4))
    names = ("0", "1.first", "1.bend", "1", "2.second", "2")
    return Tiny(seeded(module), LABELS, "2", {name: Layout("maps", 8, 12, 12) for name in names})


def steeper(net: Tiny, factor: float) -> Tiny:
    """The same network with its last linear layer multiplied."""
    module = copy.deepcopy(net.module)
    last = [part for part in module.modules() if isinstance(part, nn.Linear)][-1]
    last.weight.mul_(factor)
    last.bias.mul_(factor)
    return Tiny(module, net.labels, net.layer, net.layouts, net.input_px)


def without_in_place(net: Tiny) -> Tiny:
    """The same network, no step of which writes into its input."""
    module = copy.deepcopy(net.module)
    for part in module.modules():
        if isinstance(part, nn.ReLU):
            part.inplace = False
    return Tiny(module, net.labels, net.layer, net.layouts, net.input_px)


def exported(module: nn.Module) -> nn.Module:
    """The network as it comes back from an exported program: modules that hold weights, and steps."""
    with warnings.catch_warnings():
        # Copying its own graph, torch warns of a name of its own.
        warnings.simplefilter("ignore", FutureWarning)
        dynamic = ({0: torch.export.Dim("pictures")},)
        program = torch.export.export(module, (pictures(2),), dynamic_shapes=dynamic, strict=False)
        return torch.export.unflatten(program)


def cells_of(tokens: Tensor) -> Tensor:
    """What the library wants to be told of a transformer's tokens: (N, C, h, w) without the class token."""
    side = int((tokens.shape[1] - 1) ** 0.5)
    return tokens[:, 1:].reshape(len(tokens), side, side, -1).permute(0, 3, 1, 2)


def library_map(
    name: str, net: Tiny, image: Tensor, target: int, layer: str = "", **settings: Any
) -> NDArray[np.float32]:
    """The library's map (H, W) of one picture, which it always scales to 0-1."""
    package = grad_cam()
    targets = [package.utils.model_targets.ClassifierOutputTarget(target)]
    module = copy.deepcopy(net.module)
    layers = [] if name == "FullGrad" else [module.get_submodule(layer or net.layer)]
    layout = net.layouts[layer or net.layer]
    if layout.kind == "tokens":
        settings["reshape_transform"] = cells_of
    with getattr(package, name)(model=module, target_layers=layers, **settings) as method:
        # The library takes gradients back to the leaves, of which there must be one.
        maps = method(input_tensor=image[None].clone().requires_grad_(), targets=targets)
    return np.asarray(maps[0], np.float32)


def scaled(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """A map as the library leaves it: less its minimum, over its maximum."""
    shifted = values - values.min()
    return np.asarray(shifted / (1e-7 + shifted.max()), np.float32)


def library_scaled(coarse: NDArray[np.float32], side: int = SIDE) -> NDArray[np.float32]:
    """A coarse map through the library's own scaling and resizing."""
    scale: Callable[..., NDArray[np.float32]] = grad_cam().utils.image.scale_cam_image
    return scaled(scale(coarse[None], (side, side))[0])


half_pixel = partial(nn.Upsample, mode="bilinear", align_corners=False)
"""The resizing that the library's ScoreCAM is given in place of its own, which puts centres elsewhere."""


def enlarged_by_torch(coarse: NDArray[np.float32], side: int = SIDE) -> NDArray[np.float32]:
    """A coarse map at the picture's size, its values kept."""
    fine: NDArray[np.float32] = half_pixel(size=(side, side))(torch.from_numpy(coarse)[None, None])[
        0, 0
    ].numpy()
    return fine
