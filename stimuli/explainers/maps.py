"""From tensors on a device to attribution maps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stimuli.errors import NotApplicable
from stimuli.types import PixelAttribution

if TYPE_CHECKING:
    from torch import Tensor

    from stimuli.planner.asks import Output
    from stimuli.planner.values import Subject
    from stimuli.predictors.interface import ImagePredictor

ROUNDING = 1e-6
"""Scores that differ by no more than this share of their size differ by rounding in single precision: the
same picture may get other last digits in a batch of another size.
"""


def says_nothing(scores: NDArray[np.float64], output: Output) -> bool:
    """Whether the scores (n,) of all copies of a picture are equal but for rounding: no pixel matters then.

    Probabilities are told apart by their ratios; logits by their differences too, since a logit of 0 is the
    outcome of sums that are not.
    """
    least = 0.0 if output == "probability" else 1.0
    return float(np.ptp(scores)) <= ROUNDING * max(float(np.abs(scores).max()), least)


def pixel_map(values: Tensor, *, signed: bool, checks: Mapping[str, float] | None = None) -> PixelAttribution:
    """A map float32 (H, W) from a tensor of that shape. NotApplicable if it is not finite."""
    array = np.ascontiguousarray(values.detach().float().cpu().numpy())
    if not np.isfinite(array).all():
        raise NotApplicable("the map has values that are not finite: the network overflows on this image")
    return PixelAttribution(array, signed, dict(checks or {}))


def enlarge_map(coarse: Tensor, like: Tensor) -> Tensor:
    """A map (h, w) at the size of the picture `like` (3, H, W), bilinear with half-pixel centres."""
    from torch.nn import functional

    fine = functional.interpolate(coarse[None, None], size=like.shape[-2:], mode="bilinear")
    return fine[0, 0]


def centre_picture(predictor: ImagePredictor, subject: Subject) -> Tensor:
    """The picture less the mean that the predictor takes off it, (3, H, W)."""
    mean = dict(predictor.module.named_buffers(recurse=False)).get("mean")
    return subject.pixels if mean is None else subject.pixels - mean[0].to(subject.pixels.device)
