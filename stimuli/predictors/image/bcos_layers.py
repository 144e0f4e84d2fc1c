"""Networks whose answer is a sum over the pixels: B-cos layers, without a bias anywhere.

A B-cos unit is a linear unit with a weight of length 1, scaled down by how badly its input fits the weight:
w.x |cos(x, w)|^(B-1). With the scale held still, a whole network is one matrix W(x) times its input, so that
every logit is exactly a sum of contributions of the pixels. [Böhle, Fritz and Schiele 2022]
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn import functional

EPSILON = 1e-6


class SixChannels(nn.Module):
    """(N, 3, H, W) in 0-1 becomes (N, 6, H, W): the colours and 1 minus each, so that black counts too."""

    def forward(self, inputs: Tensor) -> Tensor:
        return torch.cat([inputs, 1 - inputs], dim=1)


class BcosConv2d(nn.Module):
    """A convolution of B-cos units with exponent `b` (1 = plain linear). Of `max_out` units per channel the
    largest linear output counts. While `still` is set, the scale takes no part in the gradient.
    """

    def __init__(
        self, inside: int, outside: int, *, kernel: int, stride: int = 1, b: float = 2.0, max_out: int = 1
    ) -> None:
        super().__init__()
        self.b, self.max_out, self.outside = b, max_out, outside
        self.stride, self.padding = stride, kernel // 2
        self.still = False
        self.weight = nn.Parameter(torch.empty(outside * max_out, inside, kernel, kernel))
        nn.init.kaiming_uniform_(self.weight, a=5**0.5)

    def forward(self, inputs: Tensor) -> Tensor:
        lengths = self.weight.flatten(1).norm(dim=1).clamp_min(EPSILON)
        weight = self.weight / lengths.view(-1, 1, 1, 1)
        linear = functional.conv2d(inputs, weight, stride=self.stride, padding=self.padding)
        if self.max_out > 1:
            linear = linear.view(len(linear), self.outside, self.max_out, *linear.shape[2:]).amax(2)
        if self.b == 1:
            return linear
        ones = torch.ones_like(weight[:1, :1])
        squares = inputs.square().sum(1, keepdim=True)
        length = functional.conv2d(squares, ones, stride=self.stride, padding=self.padding)
        # The clamp keeps the slope of the root finite if a patch is empty.
        cosine = linear.abs() / length.clamp_min(EPSILON**2).sqrt()
        scale = cosine if self.b == 2 else (cosine + EPSILON) ** (self.b - 1)
        return linear * (scale.detach() if self.still else scale)


class SquareNorm2d(nn.Module):
    """Batch normalisation that neither centres nor adds: a channel over its root mean square, times a weight.

    Fixed, and so linear, in evaluation mode.
    """

    def __init__(self, channels: int, momentum: float = 0.25) -> None:
        super().__init__()
        self.momentum = momentum
        self.weight = nn.Parameter(torch.ones(channels))
        self.running_square: Tensor
        self.register_buffer("running_square", torch.ones(channels))

    def forward(self, inputs: Tensor) -> Tensor:
        square = self.running_square
        if self.training:
            square = inputs.square().mean((0, 2, 3))
            self.running_square.lerp_(square.detach(), self.momentum)
        factor = self.weight / (square + EPSILON).sqrt()
        return inputs * factor.view(1, -1, 1, 1)


def bcos_network(width: int, classes: int, b: float, max_out: int) -> nn.Module:
    """Four B-cos convolutions, a B-cos unit per class at every place, and their mean.

    Takes float32 (N, 3, H, W) in 0-1, returns logits (N, classes); `features` puts out maps of 1/8 of the
    input.
    """
    sizes = [6, max(1, width // 2), 2 * width, 3 * width, 4 * width]
    steps = ((5, 2), (3, 2), (3, 2), (3, 1))
    stages = [
        nn.Sequential(
            BcosConv2d(inside, outside, kernel=kernel, stride=stride, b=b, max_out=max_out),
            SquareNorm2d(outside),
        )
        for inside, outside, (kernel, stride) in zip(sizes, sizes[1:], steps, strict=False)
    ]
    network = nn.Sequential()
    network.add_module("encode", SixChannels())
    network.add_module("features", nn.Sequential(*stages))
    network.add_module("head", BcosConv2d(sizes[-1], classes, kernel=1, b=b))
    network.add_module("pool", nn.AdaptiveAvgPool2d(1))
    network.add_module("flat", nn.Flatten())
    return network


def encoding_of(module: nn.Module) -> SixChannels | None:
    """The module that encodes the picture, if `module` is a B-cos network: one encoding, at least one B-cos
    layer, and nothing besides that adds a constant or bends the sum; else None.
    """
    leaves = [part for part in module.modules() if not list(part.children())]
    encodings = [part for part in leaves if isinstance(part, SixChannels)]
    is_bcos = any(isinstance(part, BcosConv2d) for part in leaves)
    if len(encodings) != 1 or not is_bcos or not all(isinstance(part, _LINEAR) for part in leaves):
        return None
    return encodings[0]


@contextmanager
def scales_still(module: nn.Module) -> Iterator[None]:
    """Within, the gradient of the network is W(x), its matrix for the input at hand."""
    parts = [part for part in module.modules() if isinstance(part, BcosConv2d)]
    before = [part.still for part in parts]
    for part in parts:
        part.still = True
    try:
        yield
    finally:
        for part, was in zip(parts, before, strict=True):
            part.still = was


_LINEAR = (
    SixChannels,
    BcosConv2d,
    SquareNorm2d,
    nn.AdaptiveAvgPool2d,
    nn.AvgPool2d,
    nn.Dropout,
    nn.Flatten,
    nn.Identity,
    nn.MaxPool2d,
)
