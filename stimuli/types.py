"""The values that travel through the stimulus rooms: dataset -> predictor -> explainer -> render."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Split = Literal["model", "people"]
Pixels = NDArray[np.uint8]
"""An RGB picture, uint8 (H, W, 3)."""
Mask = NDArray[np.bool_]
"""A planted region, bool (H, W)."""
Maps = NDArray[np.float32]
"""Attribution maps, float32 (N, H, W); larger = more important; signed where the method is."""


@dataclass(frozen=True, slots=True)
class Item:
    """One image of a dataset, without its content.

    `key` is unique and stable within the dataset, and never shown to a participant. `truth` is the class it
    really belongs to. Items that share a `group` (crops of one photograph) never stand on both sides of a
    session. `split` says whether the item may train the model or be shown to people: never both.
    """

    key: str
    truth: str
    group: str
    split: Split


class Dataset(Protocol):
    """Items with their contents. `labels` are the classes in a fixed order."""

    @property
    def labels(self) -> tuple[str, ...]: ...

    def items(self, split: Split) -> Sequence[Item]: ...

    def pixels(self, key: str) -> Pixels:
        """The picture of one item, uint8 (H, W, 3), as stored; resizing is the predictor's business."""
        ...


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a predictor says about one item: `logits` float (K,), in the order of the predictor's labels."""

    item: str
    label: str
    index: int
    confidence: float
    logits: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class PixelAttribution:
    """Maps of one method for a batch: `values` float32 (N, H, W) on the grid of the network's input."""

    values: Maps
    signed: bool


Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is in all."""


def silent(what: str, done: int, total: int) -> None:
    """The progress of somebody who does not want to know."""
