"""Published architectures with a last layer trained in seconds, on crops of the packages' photographs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from stimuli.predictors.files.picture_settings import PictureSettings
from stimuli.types import Pixels

AT_ONCE = 16
STEPS = 200
PENALTY = 0.02


def train_head(
    network: nn.Module, head: nn.Linear, settings: PictureSettings, folders: Sequence[Path], most: int
) -> float:
    """Fit `head`, the last layer of `network`, to tell the pictures of `folders` apart, one folder per class;
    at most `most` of each. All other weights stay, random ones too. The answers are balanced by the median,
    so that a weak network errs to both sides. Returns the accuracy on these pictures.
    """
    files = [(path, label) for label, at in enumerate(folders) for path in sorted(at.iterdir())[:most]]
    targets = torch.tensor([label for _, label in files])
    features = features_of(network, head, settings, [path for path, _ in files])
    mean, deviation = features.mean(0), features.std(0) + 1e-6
    scaled = (features - mean) / deviation
    layer = nn.Linear(features.shape[1], len(folders))
    nn.init.zeros_(layer.weight)
    optimiser = torch.optim.AdamW(layer.parameters(), lr=0.02, weight_decay=PENALTY)
    for _ in range(STEPS):
        optimiser.zero_grad()
        loss = nn.functional.cross_entropy(layer(scaled), targets)
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    with torch.no_grad():
        layer.bias.sub_(layer(scaled).median(0).values)
        head.weight.copy_(layer.weight / deviation)
        head.bias.copy_(layer.bias - head.weight @ mean)
        return float((layer(scaled).argmax(1) == targets).float().mean())


def features_of(
    network: nn.Module, head: nn.Linear, settings: PictureSettings, files: Sequence[Path]
) -> Tensor:
    """What goes into the last layer for each picture, float32 (N, features)."""
    kept: list[Tensor] = []
    hook = head.register_forward_pre_hook(lambda _module, inputs: kept.append(inputs[0].detach()))
    views = np.stack([settings.view(read(path)) for path in files])
    inputs = torch.from_numpy(views).permute(0, 3, 1, 2).float() / 255
    mean, std = (torch.tensor(values).view(1, 3, 1, 1) for values in (settings.mean, settings.std))
    try:
        with torch.no_grad():
            for part in torch.split((inputs - mean) / std, AT_ONCE):
                network(part)
    finally:
        hook.remove()
    return torch.cat(kept)


def read(path: Path) -> Pixels:
    with Image.open(path) as picture:
        return np.asarray(picture.convert("RGB"), dtype=np.uint8).copy()
