"""Controls: maps that look like explanations but do not depend on the network's reasons."""

from __future__ import annotations

import hashlib
from math import gcd
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from stimuli.errors import NotApplicable
from stimuli.explainers.base import AnyImage
from stimuli.explainers.controls.inner_method import OfMethod
from stimuli.explainers.controls.itti_koch import bottom_up_map
from stimuli.planner.asks import Steps
from stimuli.planner.values import Subject
from stimuli.registry import parameters
from stimuli.types import PixelAttribution

MOST_TILES = 64


@parameters
class NoMap(AnyImage):
    """A map that is 0 everywhere: people see its colours, but no place is marked. Unsigned. [Ours]"""

    version: ClassVar[int] = 1

    def has_sign(self) -> bool:
        return False

    def explain(self, predictor: Any, subject: Subject) -> Steps:
        height, width = subject.pixels.shape[1:]
        return PixelAttribution(np.zeros((height, width), np.float32), signed=self.has_sign())
        yield


@parameters
class BottomUpSaliency(AnyImage):
    """What catches the eye in the picture itself, by `itti_koch.bottom_up_map`; never asks the network.
    Unsigned. [Itti, Koch and Niebur 1998]
    """

    version: ClassVar[int] = 1

    def has_sign(self) -> bool:
        return False

    def explain(self, predictor: Any, subject: Subject) -> Steps:
        picture = subject.pixels.detach().cpu().numpy().transpose(1, 2, 0)
        return PixelAttribution(bottom_up_map(picture), signed=self.has_sign())
        yield


@parameters
class Random(OfMethod):
    """The map of method `of`, its pixels permuted: no place says anything, but the histogram stays, and with
    it the brightness, which may depend on the answer.

    `parameters` are that method's, as JSON text; those that are not named have their defaults. A control of a
    condition names what that condition names. The permutation is drawn from the image's key and the seed.
    [Ours]
    """

    version: ClassVar[int] = 2
    control: ClassVar[str] = "random"
    verb: ClassVar[str] = "permute"

    def explain(self, predictor: Any, subject: Subject) -> Steps:
        source = yield from self.method.explain(predictor, subject)
        flat = source.values.ravel()
        shuffled = flat[_order(subject.key, subject.seed, flat.size)]
        return PixelAttribution(shuffled.reshape(source.values.shape), source.signed)


@parameters
class PermutedMap(OfMethod):
    """The map of method `of`, cut into tiles that all change places: same histogram and same local structure,
    in the wrong places.

    `parameters` are that method's, as JSON text; those that are not named have their defaults. The map is cut
    into n x n equal tiles of whole pixels, n the largest number up to `tiles` that divides both sides (8 for
    224 pixels and `tiles` = 8; 6 for 90). Every tile goes to the place of another one: of all permutations
    that leave none in place, one is drawn from the image's key and the seed. [Ours]

    NotApplicable if no number from 2 to `tiles` divides both sides.
    """

    version: ClassVar[int] = 2
    control: ClassVar[str] = "permuted"
    verb: ClassVar[str] = "permute"
    tiles: Annotated[int, Field(ge=2, le=MOST_TILES)] = 8

    def require(self, predictor: Any, layer: str) -> None:
        """NotApplicable if the permuted method is not applicable, or the network's pictures cannot be cut."""
        OfMethod.require(self, predictor, layer)
        self._count(predictor.input_px, predictor.input_px)

    def explain(self, predictor: Any, subject: Subject) -> Steps:
        height, width = (int(side) for side in subject.pixels.shape[1:])
        count = self._count(height, width)
        source = yield from self.method.explain(predictor, subject)
        tiles = source.values.reshape(count, height // count, count, width // count).swapaxes(1, 2)
        order = _derangement(subject.draws("tiles"), count**2)
        moved = tiles.reshape(count**2, *tiles.shape[2:])[order].reshape(tiles.shape)
        return PixelAttribution(moved.swapaxes(1, 2).reshape(height, width), source.signed)

    def _count(self, height: int, width: int) -> int:
        """The number of tiles along each side of the picture."""
        common = gcd(height, width)
        counts = [count for count in range(2, MOST_TILES + 1) if common % count == 0]
        if counts and counts[0] <= self.tiles:
            return max(count for count in counts if count <= self.tiles)
        remedy = f"set tiles to {counts[0]} or more" if counts else "set input_px to a multiple of 8"
        raise NotApplicable(
            f"Permuted: no number from 2 to {self.tiles} divides both sides of a map of {width} x {height} "
            f"pixels, so it cannot be cut into equal tiles: {remedy}"
        )


def _derangement(rng: np.random.Generator, count: int) -> NDArray[np.int64]:
    """A permutation of `count` (at least 2) that leaves nothing in place, each as likely as another.

    Drawn again until it is one: about every third permutation is.
    """
    places = np.arange(count)
    order = rng.permutation(count)
    while (order == places).any():
        order = rng.permutation(count)
    return order


def _order(key: str, seed: int, count: int) -> NDArray[np.int64]:
    digest = hashlib.sha256(f"permutation\x1f{key}\x1f{seed}".encode()).digest()
    words = [int(word) for word in np.frombuffer(digest, dtype="<u4")]
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(words))).permutation(count)
