"""Outputs of layers as maps, and maps as outputs, by the layout that the predictor declares."""

from __future__ import annotations

from torch import Tensor

from stimuli.types import Layout


def spatial(output: Tensor, layout: Layout) -> Tensor:
    """(..., C, h, w) of an output (..., C, h, w) or of tokens (..., prefix + h * w, C)."""
    if layout.kind == "maps":
        return output
    cells = output[..., layout.prefix :, :]
    shape = (*output.shape[:-2], layout.height, layout.width, layout.channels)
    return cells.reshape(shape).movedim(-1, -3)


def native(maps: Tensor, raw: Tensor, layout: Layout) -> Tensor:
    """What the network expects behind the layer, for maps (n, C, h, w); class tokens from `raw`."""
    if layout.kind == "maps":
        return maps
    cells = maps.flatten(2).transpose(1, 2)
    if not layout.prefix:
        return cells
    import torch

    first = raw[: layout.prefix].expand(len(maps), layout.prefix, layout.channels)
    return torch.cat([first, cells], dim=1)
