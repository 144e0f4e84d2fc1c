"""Methods that cover parts of the picture and watch the explained number."""

from __future__ import annotations

from math import ceil, floor, isclose
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from stimuli.explainers.base import AnyImage
from stimuli.explainers.maps import ROUNDING
from stimuli.planner.asks import Scores, Steps
from stimuli.planner.values import Floats, Subject
from stimuli.planner.variants import OnPath, Windows
from stimuli.predictors.interface import ImagePredictor
from stimuli.registry import LATER, parameters
from stimuli.types import PixelAttribution


@parameters
class Occlusion(AnyImage):
    """How far the explained number falls when a square is covered, averaged over the squares that cover a
    pixel. Signed.

    Squares have `patch_share` of the picture's side and stand `stride_share` of it apart (both rounded to
    pixels, at least 1). If the first share is a whole multiple of the second, so are the pixels: every pixel
    inside is then covered equally often, and no lattice of thin lines is drawn. With `patch_px` or
    `stride_px` above 0 it is that many pixels of the network's view.
    `baseline` is their value, 0 = black. The last squares are cut off at the border; with `border` = "leave"
    they are left out, and what no square covers has the value 0. With `overlaps` = "sum" the falls are added
    instead, as some libraries do, so that the middle weighs more than the border. A fall of up to a
    millionth of the number (of 1, if that is larger and the number no probability) is rounding and counts as
    0. [Zeiler and Fergus 2014]
    """

    version: ClassVar[int] = 4
    patch_share: Annotated[float, Field(ge=0.01, le=1.0)] = 0.2
    stride_share: Annotated[float, Field(ge=0.01, le=1.0)] = 0.1
    baseline: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0
    overlaps: Literal["mean", "sum"] = "mean"
    patch_px: Annotated[int, Field(ge=0, le=1024), LATER] = 0
    stride_px: Annotated[int, Field(ge=0, le=1024), LATER] = 0
    border: Annotated[Literal["cut", "leave"], LATER] = "cut"

    def has_sign(self) -> bool:
        return True

    def explain(self, predictor: ImagePredictor, subject: Subject) -> Steps:
        height, width = (int(side) for side in subject.pixels.shape[1:])
        patch, stride = self.squares(width)
        last = ceil if self.border == "cut" else floor
        corners = [
            (top * stride, left * stride)
            for top in range(1 + last((height - patch) / stride))
            for left in range(1 + last((width - patch) / stride))
        ]
        # The picture's own score in the precision of the others; in single precision it is the shared trace.
        whole, scores = yield (
            Scores(OnPath((1.0,), self.baseline)),
            Scores(Windows(corners, patch, self.baseline)),
        )
        number = float(whole[0])
        least = 0.0 if subject.operator == "probability" else 1.0
        falls = number - scores
        falls[np.abs(falls) <= ROUNDING * max(abs(number), least)] = 0.0
        total, cover = _spread_falls(corners, patch, falls, (height, width))
        values = total / np.maximum(cover, 1) if self.overlaps == "mean" else total
        return PixelAttribution(values.astype(np.float32), signed=self.has_sign())

    def squares(self, width: int) -> tuple[int, int]:
        """The side of the squares and their distance, in pixels of a picture of `width` pixels."""
        patch = min(self.patch_px, width) or max(1, round(self.patch_share * width))
        stride = min(patch, self.stride_px or max(1, round(self.stride_share * width)))
        times = self.patch_share / self.stride_share
        by_shares = not (self.patch_px or self.stride_px) and isclose(times, round(times))
        if by_shares and patch % stride:
            patch = min(width, round(times) * stride)
        return patch, stride


def _spread_falls(
    corners: list[tuple[int, int]], patch: int, falls: Floats, size: tuple[int, int]
) -> tuple[Floats, Floats]:
    """Per pixel the sum of the falls of the squares over it, and how many squares those are, (H, W).

    Four entries per square in a difference array and two cumulative sums, however large the squares.
    """
    height, width = size
    corner = np.asarray(corners)
    tops, lefts = corner[:, 0], corner[:, 1]
    bottoms, rights = np.minimum(tops + patch, height), np.minimum(lefts + patch, width)
    totals = []
    for weights in (falls, np.ones(len(corners))):
        edges = np.zeros((height + 1, width + 1))
        np.add.at(edges, (tops, lefts), weights)
        np.add.at(edges, (bottoms, rights), weights)
        np.add.at(edges, (tops, rights), -weights)
        np.add.at(edges, (bottoms, lefts), -weights)
        totals.append(edges.cumsum(0).cumsum(1)[:height, :width])
    return totals[0], np.rint(totals[1])
