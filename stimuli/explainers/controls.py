"""Controls: maps that look like explanations and know nothing of the network's reasons."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from stimuli.errors import BadSpec
from stimuli.explainers import open_explainer
from stimuli.explainers.base import AnyPredictor, Batch, Differentiable, Explainer
from stimuli.explainers.itti_koch import bottom_up_map
from stimuli.spec import Component
from stimuli.types import PixelAttribution


@dataclass(frozen=True, slots=True)
class BottomUpSaliency(AnyPredictor):
    """What catches the eye in the picture itself, by `itti_koch.bottom_up_map`; never asks the network.
    Unsigned.
    """

    version: ClassVar[int] = 1

    def attribute(self, predictor: Differentiable, batch: Batch) -> PixelAttribution:
        pictures = batch.inputs.detach().cpu().numpy().transpose(0, 2, 3, 1)
        maps = [bottom_up_map(picture) for picture in pictures]
        return PixelAttribution(
            np.stack(maps) if maps else np.zeros(pictures.shape[:3], np.float32), signed=False
        )


@dataclass(frozen=True, slots=True)
class Random:
    """The map of method `of` (with its default parameters), its pixels permuted: same histogram, no
    information.

    The permutation is drawn from the image's key and the seed.
    """

    version: ClassVar[int] = 1
    of: str = "saliency"

    def __post_init__(self) -> None:
        if self.of == "random":
            raise BadSpec(
                "explainer 'random' cannot permute itself: set 'of' to another method such as 'saliency'"
            )
        self._source()

    def require(self, predictor: Differentiable, layer: str) -> None:
        """NotApplicable where the permuted method is."""
        self._source().require(predictor, layer)

    def attribute(self, predictor: Differentiable, batch: Batch) -> PixelAttribution:
        source = self._source().attribute(predictor, batch)
        maps = np.empty_like(source.values)
        for index, (key, seed) in enumerate(zip(batch.keys, batch.seeds, strict=True)):
            flat = source.values[index].ravel()
            maps[index] = flat[_order(key, seed, flat.size)].reshape(maps.shape[1:])
        return PixelAttribution(maps, source.signed)

    def _source(self) -> Explainer:
        return open_explainer(Component(self.of))


def _order(key: str, seed: int, count: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    digest = hashlib.sha256(f"permutation\x1f{key}\x1f{seed}".encode()).digest()
    words = [int(word) for word in np.frombuffer(digest, dtype="<u4")]
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(words))).permutation(count)
