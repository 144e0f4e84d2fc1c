"""RISE: the picture behind many random soft masks, each weighed by what the network says behind it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from stimuli.explainers.base import AnyImage, choice, number
from stimuli.planner.asks import Floats, Scores, Steps, Subject, counted_generator
from stimuli.planner.variants import Weighted
from stimuli.predictors.interface import ImagePredictor
from stimuli.types import PixelAttribution

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class Rise(AnyImage):
    """Mean of random masks, weighed by the score of the picture behind each, over the share that is kept.

    Each of `masks` masks is a grid of `grid` x `grid` cells, kept with probability `keep` and else dark,
    enlarged bilinearly to one cell more than the picture and shifted at random. The masks depend on the seed
    and the parameters alone: all pictures of a study see the same. `output` is the explained number. The map
    is sum(score x mask) / (masks x keep), as in the definition; with "logit" it is signed. [Petsiuk, Das and
    Saenko 2018]
    """

    version: ClassVar[int] = 1
    masks: int = number(4000, 8, 20000)
    grid: int = number(7, 2, 32)
    keep: float = number(0.5, 0.05, 0.95)
    output: str = choice("probability", "logit")

    def explain(self, predictor: ImagePredictor, subject: Subject) -> Steps:
        height, width = (int(side) for side in subject.pixels.shape[1:])
        bank = mask_bank(subject.seed, self.masks, self.grid, self.keep, height, width)
        scores = yield Scores(
            Weighted(bank.names, bank.masks), "logit" if self.output == "logit" else "probability"
        )
        values = bank.weighed(scores) / (self.masks * self.keep)
        return PixelAttribution(np.ascontiguousarray(values, np.float32), signed=self.output == "logit")


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
