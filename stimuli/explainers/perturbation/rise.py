"""RISE: the picture behind many random soft masks, and per pixel the mean score of the masks that show it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from stimuli.explainers.base import AnyImage, OfOutput
from stimuli.explainers.maps import says_nothing
from stimuli.planner.asks import Scores, Steps
from stimuli.planner.values import Floats, Subject, counted_generator
from stimuli.planner.variants import MaskedPictures
from stimuli.predictors.interface import ImagePredictor
from stimuli.registry import parameters
from stimuli.types import PixelAttribution

if TYPE_CHECKING:
    from torch import Tensor


@parameters
class Rise(OfOutput, AnyImage):
    """Per pixel the mean score of the picture behind random masks, counted by how far they show the pixel.

    Each of `masks` masks is a grid of `grid` x `grid` cells, kept with probability `keep` and else dark,
    enlarged bilinearly to one cell more than the picture and shifted at random. The masks depend on the seed
    and the parameters alone: all pictures of a study see the same. `output` is the explained number. The map
    is sum(score x mask) / sum(mask), the mean score given that the pixel is seen; with "logit" it is signed.
    The paper defines the map as this mean, and then divides by masks x keep, what sum(mask) is expected to
    be: but some pixels are shown more often by the masks that were drawn, and with few thousand of them that
    outweighs what the network says.

    A pixel that no mask shows has the mean of all scores. If all copies have the same score except for
    rounding (a millionth of it), the whole map has that value. [Petsiuk, Das and Saenko 2018]
    """

    version: ClassVar[int] = 2
    masks: Annotated[int, Field(ge=8, le=20000)] = 4000
    grid: Annotated[int, Field(ge=2, le=32)] = 7
    keep: Annotated[float, Field(ge=0.05, le=0.95)] = 0.5
    output: Literal["probability", "logit"] = "probability"

    def has_sign(self) -> bool:
        return self.output == "logit"

    def explain(self, predictor: ImagePredictor, subject: Subject) -> Steps:
        height, width = (int(side) for side in subject.pixels.shape[1:])
        bank = mask_bank(subject.seed, self.masks, self.grid, self.keep, height, width)
        scores = yield Scores(MaskedPictures(bank.names, bank.masks), self.output)
        mean = float(scores.mean())
        values = np.full((height, width), mean)
        if not says_nothing(scores, self.output):
            # The mean is taken off first, so that rounding does not grow with it.
            seen, gains = bank.seen, bank.weighed(scores - mean)
            values += np.divide(gains, seen, np.zeros_like(seen), where=seen > 0)
        return PixelAttribution(np.ascontiguousarray(values, np.float32), signed=self.has_sign())


@dataclass(frozen=True, eq=False)
class MaskBank:
    """Soft masks for pictures of `height` x `width` pixels: `cells` float32 (n, grid, grid) of 0 and 1, each
    enlarged and moved by `shifts` int (n, 2) pixels up and left.
    """

    height: int
    width: int
    cells: NDArray[np.float32]
    shifts: NDArray[np.int64]
    names: Sequence[Hashable]

    def masks(self, places: Sequence[int], image: Tensor) -> Tensor:
        """The masks at `places`, float32 (n, H, W) on the device of `image`."""
        import torch

        chosen = np.asarray(places, np.int64)
        grid = self.cells.shape[1]
        rows = _enlarging(self.height, grid)[self.shifts[chosen, 0]]
        columns = _enlarging(self.width, grid)[self.shifts[chosen, 1]]
        parts = [
            torch.from_numpy(part.astype(np.float32)).to(image.device)
            for part in (rows, self.cells[chosen], columns)
        ]
        return torch.bmm(torch.bmm(parts[0], parts[1]), parts[2].transpose(1, 2))

    @cached_property
    def seen(self) -> Floats:
        """The sum of all masks, float64 (H, W): how often each pixel is seen."""
        return self.weighed(np.ones(len(self.cells)))

    def weighed(self, weights: Floats) -> Floats:
        """The sum of weight times mask, float64 (H, W), for weights (n,).

        Enlarging is linear, so masks of equal shift are added while they are small: the work does not grow
        with the pixels times the masks.
        """
        grid = self.cells.shape[1]
        rows, columns = _enlarging(self.height, grid), _enlarging(self.width, grid)
        sums = np.zeros((len(rows), len(columns), grid, grid))
        np.add.at(sums, (self.shifts[:, 0], self.shifts[:, 1]), weights[:, None, None] * self.cells)
        wide = np.einsum("tlab,lxb->tax", sums, columns, optimize=True)
        return np.asarray(np.einsum("tya,tax->yx", rows, wide, optimize=True), np.float64)


@lru_cache(maxsize=4)
def mask_bank(seed: int, count: int, grid: int, keep: float, height: int, width: int) -> MaskBank:
    """The bank of a study: a function of its arguments alone; a smaller `count` takes the first masks."""
    name = f"rise\x1f{seed}\x1f{grid}\x1f{keep}\x1f{height}\x1f{width}"
    kept = counted_generator(name, 0).random((count, grid, grid)) < keep
    room = [len(_enlarging(side, grid)) for side in (height, width)]
    shifts = counted_generator(name, 1).integers(0, room, (count, 2))
    names = [
        ("rise", grid, np.packbits(cells).tobytes(), int(top), int(left))
        for cells, (top, left) in zip(kept, shifts, strict=True)
    ]
    return MaskBank(height, width, kept.astype(np.float32), shifts, names)


@lru_cache(maxsize=8)
def _enlarging(side: int, grid: int) -> Floats:
    """Per shift the matrix (side, grid) that enlarges a row of cells: bilinear with half-pixel centres, from
    `grid` cells to `grid + 1` cells' worth of pixels, of which `side` are seen.
    """
    cell = -(-side // grid)
    at = np.arange(cell)[:, None] + np.arange(side)[None] + 0.5
    source = np.clip(at * grid / ((grid + 1) * cell) - 0.5, 0, grid - 1)
    return np.asarray(np.maximum(1 - np.abs(source[..., None] - np.arange(grid)), 0), np.float64)
