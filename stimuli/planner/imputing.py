"""Hidden pixels filled in from their neighbours, so that a hole does not say where it is.

Noisy linear imputation [Rong et al. 2022]: every hidden pixel is the weighted mean of its eight neighbours,
direct ones twice as heavy as diagonal ones, solved for all hidden pixels at once; a little noise is added.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stimuli.planner.asks import ORIGINAL
from stimuli.planner.values import Subject
from stimuli.planner.variants import digest
from stimuli.types import Mask

if TYPE_CHECKING:
    from torch import Tensor

Floats = NDArray[np.float64]
NEIGHBOURS = tuple(
    ((down, across), 1 / 6 if 0 in (down, across) else 1 / 12)
    for down in (-1, 0, 1)
    for across in (-1, 0, 1)
    if (down, across) != (0, 0)
)


@dataclass(frozen=True, eq=False)
class Imputations:
    """The picture with the first `counts[i]` pixels of `order` filled in from the rest. `order` int (H * W,)
    holds flat pixel indices. Noise of standard deviation `noise` is drawn per pixel and colour by key and
    seed, the same for every copy.
    """

    subject: Subject
    order: NDArray[np.int64]
    counts: Sequence[int]
    noise: float

    def __len__(self) -> int:
        return len(self.counts)

    @cached_property
    def _name(self) -> tuple[Hashable, ...]:
        return ("imputed", digest(self.order), self.noise, self.subject.seed)

    def identity(self, place: int) -> Hashable:
        return (*self._name, self.counts[place]) if self.counts[place] else ORIGINAL

    def make(self, image: Tensor, places: Sequence[int]) -> Tensor:
        import torch

        picture = image.detach().cpu().numpy().astype(np.float64)
        noise = self.noise * self.subject.draws("imputation").standard_normal(picture.shape)
        copies = []
        for place in places:
            hidden = np.zeros(picture.shape[1:], bool)
            hidden.ravel()[self.order[: self.counts[place]]] = True
            copies.append(np.where(hidden, impute_pixels(picture, hidden) + noise, picture))
        return torch.from_numpy(np.stack(copies).astype(np.float32)).to(image.device)


def impute_pixels(picture: Floats, hidden: Mask) -> Floats:
    """The picture, float64 (C, H, W), with the `hidden` pixels, bool (H, W), filled in; grey (0.5) if all are
    hidden. Beyond the border there is nothing: the weights of the neighbours that are there sum to 1.
    """
    if hidden.all():
        return np.full_like(picture, 0.5)
    if not hidden.any():
        return picture.copy()
    from scipy.sparse import coo_array
    from scipy.sparse.linalg import splu

    places = np.argwhere(hidden)
    count, numbers = len(places), np.full(hidden.shape, -1)
    numbers[hidden] = np.arange(count)
    weights = np.zeros(count)
    known = np.zeros((count, len(picture)))
    rows: list[NDArray[np.int64]] = []
    columns: list[NDArray[np.int64]] = []
    values: list[Floats] = []
    for offset, weight in NEIGHBOURS:
        beside = places + offset
        inside = ((beside >= 0) & (beside < hidden.shape)).all(1)
        at, (down, across) = np.flatnonzero(inside), beside[inside].T
        weights[at] += weight
        is_hidden = hidden[down, across]
        rows.append(at[is_hidden])
        columns.append(numbers[down, across][is_hidden])
        values.append(np.full(int(is_hidden.sum()), -weight))
        known[at[~is_hidden]] += weight * picture[:, down, across].T[~is_hidden]
    every = np.arange(count)
    matrix = coo_array(
        (
            np.concatenate([*values, weights]),
            (np.concatenate([*rows, every]), np.concatenate([*columns, every])),
        ),
        shape=(count, count),
    )
    filled = picture.copy()
    filled[:, hidden] = splu(matrix.tocsc()).solve(known).T
    return filled
