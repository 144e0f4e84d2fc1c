"""Controls: maps that look like explanations and know nothing of the network's reasons."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from stimuli.errors import BadSpec
from stimuli.explainers import open_explainer
from stimuli.explainers.base import AnyImage, Explainer, Kind, number
from stimuli.explainers.itti_koch import bottom_up_map
from stimuli.planner.asks import Steps, Subject
from stimuli.spec import Component
from stimuli.types import PixelAttribution


@dataclass(frozen=True, slots=True)
class NoMap(AnyImage):
    """A map that is 0 everywhere: people see a map's colours, but nothing is marked. Unsigned.
    [Ours]
    """

    version: ClassVar[int] = 1

    def explain(self, predictor: Any, subject: Subject) -> Steps:
        height, width = subject.pixels.shape[1:]
        return PixelAttribution(np.zeros((height, width), np.float32), signed=False)
        yield


@dataclass(frozen=True, slots=True)
class BottomUpSaliency(AnyImage):
    """What catches the eye in the picture itself, by `itti_koch.bottom_up_map`; never asks the network.
    Unsigned. [Itti, Koch and Niebur 1998]
    """

    version: ClassVar[int] = 1

    def explain(self, predictor: Any, subject: Subject) -> Steps:
        picture = subject.pixels.detach().cpu().numpy().transpose(1, 2, 0)
        return PixelAttribution(bottom_up_map(picture), signed=False)
        yield


@dataclass(frozen=True, slots=True)
class Random:
    """The map of method `of` (with its default parameters), its pixels permuted: same histogram, no
    information.

    The permutation is drawn from the image's key and the seed. [Ours]
    """

    version: ClassVar[int] = 2
    kind: ClassVar[Kind] = "image"
    of: str = "saliency"

    def __post_init__(self) -> None:
        _check_source("random", self.of)

    def require(self, predictor: Any, layer: str) -> None:
        """NotApplicable where the permuted method is."""
        self._source().require(predictor, layer)

    def explain(self, predictor: Any, subject: Subject) -> Steps:
        source = yield from self._source().explain(predictor, subject)
        flat = source.values.ravel()
        shuffled = flat[_order(subject.key, subject.seed, flat.size)]
        return PixelAttribution(shuffled.reshape(source.values.shape), source.signed)

    def _source(self) -> Explainer:
        return open_explainer(Component(self.of))


@dataclass(frozen=True, slots=True)
class Permuted:
    """The map of method `of` (with its default parameters), cut into `tiles` x `tiles` squares that change
    places: same histogram and same local structure, in the wrong places.

    Tiles have whole pixels; what is left over at the right and at the bottom stays where it is. The
    permutation is drawn from the image's key and the seed. [Ours]
    """

    version: ClassVar[int] = 1
    kind: ClassVar[Kind] = "image"
    of: str = "saliency"
    tiles: int = number(8, 2, 64)

    def __post_init__(self) -> None:
        _check_source("permuted", self.of)

    def require(self, predictor: Any, layer: str) -> None:
        """NotApplicable where the permuted method is."""
        open_explainer(Component(self.of)).require(predictor, layer)

    def explain(self, predictor: Any, subject: Subject) -> Steps:
        source = yield from open_explainer(Component(self.of)).explain(predictor, subject)
        values = source.values.copy()
        height, width = (max(1, side // self.tiles) for side in values.shape)
        down, across = (min(self.tiles, side) for side in values.shape)
        inner = values[: down * height, : across * width]
        tiles = inner.reshape(down, height, across, width).swapaxes(1, 2)
        order = subject.draws("tiles").permutation(down * across)
        shuffled = tiles.reshape(-1, height, width)[order].reshape(tiles.shape)
        inner[:] = shuffled.swapaxes(1, 2).reshape(inner.shape)
        return PixelAttribution(values, source.signed)


def _check_source(name: str, of: str) -> None:
    """BadSpec unless `of` names a method that draws maps and shuffles nothing itself."""
    source = None if of in {"random", "permuted"} else open_explainer(Component(of))
    if source is None or source.kind != "image":
        raise BadSpec(
            f"explainer {name!r} cannot permute {of!r}: set 'of' to a method that draws maps, such "
            "as 'saliency'"
        )


def _order(key: str, seed: int, count: int) -> NDArray[np.int64]:
    digest = hashlib.sha256(f"permutation\x1f{key}\x1f{seed}".encode()).digest()
    words = [int(word) for word in np.frombuffer(digest, dtype="<u4")]
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(words))).permutation(count)
