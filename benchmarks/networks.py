"""Networks of known shapes with random weights: what they cost does not depend on what they have learnt."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

import torch
from torch import Tensor, nn

from stimuli.predictors.base import Built, TorchPredictor, assemble

LABELS = 1000
INPUT_PX = 224
SEED = 11
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class Block(nn.Module):
    """A bottleneck block: 1 x 1, 3 x 3 and 1 x 1 convolutions in parallel with a shortcut."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.convolutions = nn.Sequential(
            *_convolution(channels, width, 1, 1),
            nn.ReLU(inplace=True),
            *_convolution(width, width, 3, stride),
            nn.ReLU(inplace=True),
            *_convolution(width, 4 * width, 1, 1),
        )
        is_same = channels == 4 * width and stride == 1
        self.shortcut = nn.Sequential(*([] if is_same else _convolution(channels, 4 * width, 1, stride)))
        self.last = nn.ReLU(inplace=True)

    def forward(self, maps: Tensor) -> Tensor:
        changed: Tensor = self.last(self.convolutions(maps) + self.shortcut(maps))
        return changed


def _convolution(before: int, after: int, size: int, stride: int) -> list[nn.Module]:
    normalise = nn.BatchNorm2d(after)
    # A block adds to what the last one put out: weights of 1 would let the numbers grow with every block.
    normalise.weight.data.fill_(sqrt(0.5))
    normalise.bias.data.normal_(0, 0.1)
    return [nn.Conv2d(before, after, size, stride, padding=size // 2, bias=False), normalise]


def _resnet() -> Built:
    """ResNet-50: 3, 4, 6 and 3 bottleneck blocks, global average pooling, one linear layer."""
    start = [*_convolution(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, padding=1)]
    stages, channels = [], 64
    for number, depth in enumerate((3, 4, 6, 3)):
        blocks = []
        for place in range(depth):
            blocks.append(Block(channels, 64 << number, 2 if number and not place else 1))
            channels = 256 << number
        stages.append(nn.Sequential(*blocks))
    end = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, LABELS)]
    return Built(nn.Sequential(nn.Sequential(*start), *stages, *end))


class Logits(nn.Module):
    """A classifier of the library `transformers` that returns its logits alone."""

    def __init__(self, classifier: nn.Module) -> None:
        super().__init__()
        self.classifier = classifier

    def forward(self, inputs: Tensor) -> Tensor:
        logits: Tensor = self.classifier(pixel_values=inputs).logits
        return logits


def _vision_transformer(width: int, depth: int, heads: int) -> Built:
    from transformers import ViTConfig, ViTForImageClassification

    settings: dict[str, Any] = {"num_labels": LABELS}
    config = ViTConfig(
        hidden_size=width,
        num_hidden_layers=depth,
        num_attention_heads=heads,
        intermediate_size=4 * width,
        image_size=INPUT_PX,
        patch_size=16,
        **settings,
    )
    network = ViTForImageClassification(config)
    for name, weights in network.named_parameters():
        # As the library begins, every place attends to all alike; trained networks choose.
        if name.endswith(("q_proj.weight", "k_proj.weight")):
            weights.data *= 3
    return Built(Logits(network), token_prefix=1)


BEFORE_LAST_BLOCK = "classifier.vit.layers.11.layernorm_before"
NETWORKS: dict[str, tuple[str, Callable[[], Built]]] = {
    "resnet50": ("4", _resnet),
    "vit_b16": (BEFORE_LAST_BLOCK, lambda: _vision_transformer(768, 12, 12)),
    "vit_s16": (BEFORE_LAST_BLOCK, lambda: _vision_transformer(384, 12, 6)),
}
"""The networks that can be measured, by name: which layer is read, and how they are made."""


def predictor(name: str) -> TorchPredictor:
    """The named network as a predictor of 1,000 labels for pictures of 224 px; always the same weights."""
    layer, build = NETWORKS[name]
    torch.manual_seed(SEED)
    return assemble(
        build(),
        labels=[f"label {number}" for number in range(LABELS)],
        input_px=INPUT_PX,
        layer=layer,
        mean=MEAN,
        std=STD,
        architecture={"kind": "benchmark", "name": name},
        payload=b"",
        provenance={"made": "random weights"},
    )


def pictures(count: int) -> Tensor:
    """Pictures of smooth random shapes, float32 (count, 3, 224, 224) in 0-1."""
    draws = torch.Generator().manual_seed(SEED)
    coarse = torch.rand((count, 3, 9, 9), generator=draws)
    fine = nn.functional.interpolate(coarse, size=(INPUT_PX, INPUT_PX), mode="bicubic", align_corners=True)
    return (fine + 0.05 * torch.rand(fine.shape, generator=draws)).clamp(0, 1)
