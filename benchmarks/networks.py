"""Networks of known shapes with random weights: what they cost does not depend on what they have learnt."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

import torch
from torch import Tensor, nn

from stimuli.predictors.base import BuiltNetwork, TorchPredictor, assemble
from stimuli.predictors.framing import PictureSettings
from tests.witnesses import timm

LABELS = 1000
INPUT_PX = 224
SEED = 11
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def _resnet() -> BuiltNetwork:
    """ResNet-50 as timm builds it."""
    network: nn.Module = timm().create_model("resnet50", num_classes=LABELS)
    for part in network.modules():
        if isinstance(part, nn.BatchNorm2d):
            # A block adds to what the last one put out: with weights of 1 all numbers would grow.
            part.weight.data.fill_(sqrt(0.5))
            part.bias.data.normal_(0, 0.1)
    return BuiltNetwork(network)


class Logits(nn.Module):
    """A classifier of the library `transformers` that returns its logits alone."""

    def __init__(self, classifier: nn.Module) -> None:
        super().__init__()
        self.classifier = classifier

    def forward(self, inputs: Tensor) -> Tensor:
        logits: Tensor = self.classifier(pixel_values=inputs).logits
        return logits


def _vision_transformer(width: int, depth: int, heads: int) -> BuiltNetwork:
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
    return BuiltNetwork(Logits(network), token_prefix=1)


BEFORE_LAST_BLOCK = "classifier.vit.layers.11.layernorm_before"
NETWORKS: dict[str, tuple[str, Callable[[], BuiltNetwork]]] = {
    "resnet50": ("layer4", _resnet),
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
        PictureSettings(INPUT_PX, MEAN, STD),
        labels=[f"label {number}" for number in range(LABELS)],
        layer=layer,
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
