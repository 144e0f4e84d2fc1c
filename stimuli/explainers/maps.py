"""From tensors on a device to attribution maps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from stimuli.errors import NotApplicable
from stimuli.types import PixelAttribution

if TYPE_CHECKING:
    from torch import Tensor


def pixel_map(values: Tensor, *, signed: bool, checks: Mapping[str, float] | None = None) -> PixelAttribution:
    """A map float32 (H, W) from a tensor of that shape. NotApplicable if it is not finite."""
    found = np.ascontiguousarray(values.detach().float().cpu().numpy())
    if not np.isfinite(found).all():
        raise NotApplicable("the map has values that are not finite: the network overflows on this image")
    return PixelAttribution(found, signed, dict(checks or {}))


def enlarged(coarse: Tensor, like: Tensor) -> Tensor:
    """A map (h, w) at the size of the picture `like` (3, H, W), bilinear with half-pixel centres."""
    from torch.nn import functional

    fine = functional.interpolate(coarse[None, None], size=like.shape[-2:], mode="bilinear")
    return fine[0, 0]
