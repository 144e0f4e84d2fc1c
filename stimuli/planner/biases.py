"""FullGrad's sum over bias layers, taken while the backward pass goes by: no gradient is kept.

Per layer each channel's magnitude of gradient times bias is scaled to 0-1 and the channels are added before
the one resize, which is the same as resizing each, since resizing is linear. [Srinivas and Fleuret 2019]
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class BiasMaps:
    """Collects, for one pass, the maps (H, W) of all rows of the batch."""

    def __init__(self, size: tuple[int, ...]) -> None:
        self.size = size
        self.total: Tensor | None = None

    @staticmethod
    def layers(module: nn.Module) -> list[tuple[nn.Module, Tensor]]:
        """The convolutions and normalisations that add something, each with its effective bias (C,)."""
        return [(part, bias) for part in module.modules() if (bias := _bias(part)) is not None]

    def watch(self, layers: list[tuple[nn.Module, Tensor]]) -> list[torch.utils.hooks.RemovableHandle]:
        return [part.register_forward_hook(self._hook(bias)) for part, bias in layers]

    def of(self, row: int) -> Tensor | None:
        """The summed map of one row, float32 (H, W); None if no layer has a bias."""
        return None if self.total is None else self.total[row].clone()

    def _hook(self, bias: Tensor):  # type: ignore[no-untyped-def]
        def note(_module: nn.Module, _inputs: object, output: Tensor) -> Tensor:
            output.register_hook(lambda gradient: self._add(gradient, bias))  # type: ignore[no-untyped-call]
            return output.clone()

        return note

    def _add(self, gradient: Tensor, bias: Tensor) -> None:
        magnitudes = (gradient * bias.view(1, -1, 1, 1)).abs()
        low = magnitudes.amin((2, 3), keepdim=True)
        scaled = (magnitudes - low) / (1e-7 + (magnitudes.amax((2, 3), keepdim=True) - low))
        fine = nn.functional.interpolate(
            scaled.sum(1, keepdim=True), size=self.size, mode="bilinear", align_corners=False
        )[:, 0]
        self.total = fine if self.total is None else self.total + fine


def _bias(part: nn.Module) -> Tensor | None:
    if isinstance(part, nn.BatchNorm2d) and part.running_mean is not None and part.running_var is not None:
        mean, deviation = part.running_mean, torch.sqrt(part.running_var + part.eps)
        if not part.affine:
            return (-mean / deviation).detach()
        return (part.bias - mean * part.weight / deviation).detach()
    if isinstance(part, nn.Conv2d) and part.bias is not None:
        return part.bias.detach()
    return None
