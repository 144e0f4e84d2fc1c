"""Methods that cover parts of the picture and watch the explained logit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from stimuli.explainers.base import AnyPredictor, Batch, Differentiable, number
from stimuli.types import PixelAttribution


@dataclass(frozen=True, slots=True)
class Occlusion(AnyPredictor):
    """How far the logit falls when a square is covered, averaged over the squares that cover a pixel. Signed.

    Squares have `patch_share` of the picture's side and stand `stride_share` of it apart (both rounded to
    pixels, at least 1); `baseline` is their value, 0 = black. Unlike some libraries, overlaps are averaged
    and not summed, so that the border weighs as much as the middle. [Zeiler and Fergus 2014]
    """

    version: ClassVar[int] = 1
    patch_share: float = number(0.2, 0.01, 1.0)
    stride_share: float = number(0.1, 0.01, 1.0)
    baseline: float = number(0.0, 0.0, 1.0)

    def attribute(self, predictor: Differentiable, batch: Batch) -> PixelAttribution:
        from stimuli.explainers import passes

        side = int(batch.inputs.shape[-1])
        patch = max(1, round(self.patch_share * side))
        stride = min(patch, max(1, round(self.stride_share * side)))
        return passes.each(
            predictor,
            batch,
            passes.occlusion,
            signed=True,
            patch=patch,
            stride=stride,
            baseline=self.baseline,
        )
