"""Perturbed copies of a picture: declared by numbers, made on the device when their batch comes.

Each kind says by `identity` which copies are equal, so that they run once per picture for all methods and
metrics; a copy that is the picture itself, or a single value, has the same identity in every kind.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stimuli.planner.asks import ORIGINAL
from stimuli.planner.values import Subject

if TYPE_CHECKING:
    from torch import Tensor

Fill = float | NDArray[np.float32]
"""What hidden pixels become: one value in 0-1, or a picture float32 (3, H, W)."""


def flat(value: float) -> Hashable:
    """The identity of a picture of a single value."""
    return ("flat", float(value))


@dataclass(frozen=True, eq=False)
class Windows:
    """A square of `patch` pixels of one value at each of `corners` (top, left); cut off at the border."""

    corners: Sequence[tuple[int, int]]
    patch: int
    value: float

    def __len__(self) -> int:
        return len(self.corners)

    def identity(self, place: int) -> Hashable:
        return ("window", *self.corners[place], self.patch, self.value)

    def make(self, image: Tensor, places: Sequence[int]) -> Tensor:
        copies = image.expand(len(places), *image.shape).clone()
        for copy, place in zip(copies, places, strict=True):
            top, left = self.corners[place]
            copy[:, top : top + self.patch, left : left + self.patch] = self.value
        return copies


@dataclass(frozen=True, eq=False)
class Cells:
    """Parts of the picture kept or hidden: `cells` int (H, W) numbers each pixel's cell from 0, `kept` bool
    (n, cells) says per copy which cells stay; the rest becomes `fill`.
    """

    cells: NDArray[np.int64]
    kept: NDArray[np.bool_]
    fill: Fill = 0.0

    def __len__(self) -> int:
        return len(self.kept)

    @cached_property
    def _name(self) -> tuple[Hashable, ...]:
        return ("cells", digest(self.cells), fill_name(self.fill))

    def identity(self, place: int) -> Hashable:
        row = self.kept[place]
        if row.all():
            return ORIGINAL
        if not row.any() and isinstance(self.fill, float):
            return flat(self.fill)
        return (*self._name, np.packbits(row).tobytes())

    def make(self, image: Tensor, places: Sequence[int]) -> Tensor:
        import torch

        kept = torch.from_numpy(self.kept[list(places)]).to(image.device)
        cells = torch.from_numpy(np.ascontiguousarray(self.cells)).to(image.device)
        return torch.where(kept[:, cells][:, None], image, filling(self.fill, image))


@dataclass(frozen=True, eq=False)
class PixelReplacements:
    """The first `counts[i]` pixels of `order` replaced: by `fill` in the picture, or with `inserts` by the
    picture in `fill`. `order` int (H * W,) holds flat pixel indices.
    """

    order: NDArray[np.int64]
    counts: Sequence[int]
    fill: Fill = 0.0
    inserts: bool = False

    def __len__(self) -> int:
        return len(self.counts)

    @cached_property
    def _name(self) -> tuple[Hashable, ...]:
        return ("ranked", digest(self.order), fill_name(self.fill), self.inserts)

    def identity(self, place: int) -> Hashable:
        changed = self.counts[place]
        if changed == (len(self.order) if self.inserts else 0):
            return ORIGINAL
        if changed == (0 if self.inserts else len(self.order)):
            return flat(self.fill) if isinstance(self.fill, float) else ("fill", fill_name(self.fill))
        return (*self._name, changed)

    def make(self, image: Tensor, places: Sequence[int]) -> Tensor:
        import torch

        ranks = np.empty(len(self.order), np.int64)
        ranks[self.order] = np.arange(len(self.order))
        grid = torch.from_numpy(ranks).to(image.device).view(image.shape[1:])
        counts = torch.tensor([self.counts[place] for place in places], device=image.device)
        changed = (grid < counts.view(-1, 1, 1))[:, None]
        other = filling(self.fill, image)
        return torch.where(changed, image, other) if self.inserts else torch.where(changed, other, image)


@dataclass(frozen=True, eq=False)
class Noisy:
    """The picture with normal noise of standard deviation `sigma`, not clipped; one generator per draw."""

    subject: Subject
    draws: int
    sigma: float

    def __len__(self) -> int:
        return self.draws

    def identity(self, place: int) -> Hashable:
        return ORIGINAL if self.sigma == 0 else ("noise", self.sigma, place)

    def make(self, image: Tensor, places: Sequence[int]) -> Tensor:
        import torch

        shape = tuple(image.shape)
        noise = [
            self.subject.draws("noise", place).standard_normal(shape, dtype=np.float32) for place in places
        ]
        return image + self.sigma * torch.from_numpy(np.stack(noise)).to(image.device)


@dataclass(frozen=True, eq=False)
class OnPath:
    """Points on the line from a picture of one value to the picture: `shares` in 0-1, 1 = picture."""

    shares: Sequence[float]
    start: float

    def __len__(self) -> int:
        return len(self.shares)

    def identity(self, place: int) -> Hashable:
        share = self.shares[place]
        if share in (0.0, 1.0):
            return ORIGINAL if share else flat(self.start)
        return ("path", self.start, share)

    def make(self, image: Tensor, places: Sequence[int]) -> Tensor:
        import torch

        shares = torch.tensor([self.shares[place] for place in places], device=image.device)
        return self.start + shares.view(-1, 1, 1, 1).to(image.dtype) * (image - self.start)


@dataclass(frozen=True, eq=False)
class MaskedPictures:
    """The picture multiplied by masks with values in 0-1. `masks` makes those at the given places on the
    device, float32 (n, H, W); `names` are equal exactly for equal masks. What is hidden is black, or the
    colour `ground` (red, green, blue in 0-1).
    """

    names: Sequence[Hashable]
    masks: Callable[[Sequence[int], Tensor], Tensor]
    ground: tuple[float, ...] | None = None

    def __len__(self) -> int:
        return len(self.names)

    def identity(self, place: int) -> Hashable:
        return ("weighted", self.names[place], *(self.ground or ()))

    def make(self, image: Tensor, places: Sequence[int]) -> Tensor:
        masks = self.masks(places, image)[:, None]
        if self.ground is None:
            return image * masks
        ground = image.new_tensor(self.ground).view(-1, 1, 1)
        return ground + masks * (image - ground)


def digest(values: NDArray[np.generic]) -> bytes:
    """Sixteen bytes that name an array's shape and content."""
    return hashlib.sha256(repr(values.shape).encode() + np.ascontiguousarray(values).tobytes()).digest()[:16]


def fill_name(fill: Fill) -> Hashable:
    return float(fill) if isinstance(fill, float) else digest(fill)


def filling(fill: Fill, image: Tensor) -> Tensor:
    """The fill on the image's device, in a shape that broadcasts with (n, 3, H, W)."""
    import torch

    if isinstance(fill, float):
        return torch.full((1, 1, 1, 1), fill, dtype=image.dtype, device=image.device)
    return torch.from_numpy(fill).to(image.device)[None]
