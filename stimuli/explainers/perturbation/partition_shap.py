"""SHAP for pictures: Owen values over a tree of halves, refined where the score changes most."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from stimuli.explainers.base import AnyImage, OfOutput
from stimuli.explainers.maps import says_nothing
from stimuli.planner.asks import ORIGINAL, Scores, Steps
from stimuli.planner.values import Floats, Subject
from stimuli.planner.variants import Fill, fill_name, filling, flat
from stimuli.predictors.interface import ImagePredictor
from stimuli.registry import parameters
from stimuli.types import PixelAttribution, Plane

if TYPE_CHECKING:
    from torch import Tensor

Box = tuple[int, int, int, int]
"""Top, bottom, left, right; bottom and right are not part of it."""


@parameters
class ShapPartition(OfOutput, AnyImage):
    """What each part of the picture adds to the score, shared fairly by a tree of halves. Signed.

    The picture is halved along its longer side again and again. A part's value is the mean of what it adds
    alone and beside its other half (Owen value); a part that is not split further spreads its value evenly
    over its pixels. `evaluations` copies are run in all, at most `per_round` at once: the next round splits
    the parts whose score changes most, so a smaller number looks closer where it matters, and a larger one
    asks for more at a time. Hidden parts become a box blur of `blur_px` pixels, or with `fill` = "flat" the
    `value` (0 = black). `output` is the explained number.

    The sum of the map is the score of the picture less that of the hidden picture; the check `efficiency_gap`
    is the deviation from this, as a share of that difference. If all copies have the same score except for
    rounding (a millionth of it), the map is 0. [Lundberg and Lee 2017; Owen 1977]
    """

    version: ClassVar[int] = 2
    evaluations: Annotated[int, Field(ge=4, le=20000)] = 200
    per_round: Annotated[int, Field(ge=2, le=4096)] = 10
    fill: Literal["blur", "flat"] = "blur"
    blur_px: Annotated[int, Field(ge=3, le=1024)] = 128
    value: Annotated[float, Field(ge=0.0, le=1.0)] = 0.5
    output: Literal["logit", "probability"] = "logit"

    def has_sign(self) -> bool:
        return True

    def explain(self, predictor: ImagePredictor, subject: Subject) -> Steps:
        picture = subject.pixels.detach().cpu().numpy()
        size = picture.shape[1], picture.shape[2]
        fill: Fill = self.value if self.fill == "flat" else box_blur(picture, self.blur_px)
        ends = yield Scores(ShownBoxes([(), ((0, size[0], 0, size[1]),)], size, fill), self.output)
        tree = Tree(size, float(ends[0]), float(ends[1]))
        said = [ends]
        left = self.evaluations - 2
        while left >= 2 and (parts := tree.next_parts(min(left, self.per_round) // 2)):
            shown = [boxes for part in parts for boxes in part.shown()]
            scores = yield Scores(ShownBoxes(shown, size, fill), self.output)
            tree.split(parts, scores)
            said.append(scores)
            left -= len(scores)
        if says_nothing(np.concatenate(said), self.output):
            nothing = np.zeros(size, np.float32)
            return PixelAttribution(nothing, signed=self.has_sign(), checks={"efficiency_gap": 0.0})
        values = tree.values()
        whole = float(ends[1]) - float(ends[0])
        gap = abs(float(values.sum()) - whole) / max(abs(whole), 1e-12)
        made = values.astype(np.float32)
        return PixelAttribution(made, signed=self.has_sign(), checks={"efficiency_gap": gap})


@dataclass(frozen=True, eq=False)
class ShownBoxes:
    """Copies of which only the pixels inside some boxes are seen; the others become `fill`. The boxes of a
    copy do not overlap; a copy that shows all of the picture has one box.
    """

    boxes: Sequence[tuple[Box, ...]]
    size: tuple[int, int]
    fill: Fill

    def __len__(self) -> int:
        return len(self.boxes)

    @cached_property
    def _name(self) -> tuple[Hashable, ...]:
        return ("shown", fill_name(self.fill))

    def identity(self, place: int) -> Hashable:
        boxes = self.boxes[place]
        if boxes == ((0, self.size[0], 0, self.size[1]),):
            return ORIGINAL
        if not boxes and isinstance(self.fill, float):
            return flat(self.fill)
        return (*self._name, tuple(sorted(boxes)))

    def make(self, image: Tensor, places: Sequence[int]) -> Tensor:
        import torch

        shown = np.zeros((len(places), *self.size), bool)
        for mask, place in zip(shown, places, strict=True):
            for top, bottom, left, right in self.boxes[place]:
                mask[top:bottom, left:right] = True
        seen = torch.from_numpy(shown).to(image.device)
        return torch.where(seen[:, None], image, filling(self.fill, image))


@dataclass(frozen=True, slots=True)
class TreePart:
    """One part of the picture in one context: the boxes `around` are seen besides it, `without` and `beside`
    are the scores before and after it is added, `weight` is the share of orders that look like this.
    """

    box: Box
    around: tuple[Box, ...]
    without: float
    beside: float
    weight: float

    @property
    def value(self) -> float:
        return self.weight * (self.beside - self.without)

    def halves(self) -> tuple[Box, Box]:
        """The two halves, cut across the longer side."""
        top, bottom, left, right = self.box
        if bottom - top >= right - left:
            middle = top + (bottom - top) // 2
            return (top, middle, left, right), (middle, bottom, left, right)
        middle = left + (right - left) // 2
        return (top, bottom, left, middle), (top, bottom, middle, right)

    def shown(self) -> list[tuple[Box, ...]]:
        """What is seen when one half or the other is added to the context."""
        return [(*self.around, half) for half in self.halves()]


@dataclass(eq=False)
class Tree:
    """The parts so far. Which is split next depends on the scores alone: equal changes in order of age."""

    size: tuple[int, int]
    hidden: float
    whole: float
    open: list[tuple[float, int, TreePart]] = field(default_factory=list)
    born: int = 0
    pixels: list[TreePart] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._add(TreePart((0, self.size[0], 0, self.size[1]), (), self.hidden, self.whole, 1.0))

    def next_parts(self, most: int) -> list[TreePart]:
        """The parts whose score changes most, at most `most`; fewer, or none, when single pixels are left."""
        return [heapq.heappop(self.open)[2] for _ in range(min(most, len(self.open)))]

    def split(self, parts: Sequence[TreePart], scores: Floats) -> None:
        """Take the scores of the halves of `parts`, in the order of their `halves`."""
        for at, part in enumerate(parts):
            first, second = float(scores[2 * at]), float(scores[2 * at + 1])
            first_half, second_half = part.halves()
            weight = part.weight / 2
            self._add(TreePart(first_half, part.around, part.without, first, weight))
            self._add(TreePart(second_half, part.around, part.without, second, weight))
            self._add(TreePart(first_half, (*part.around, second_half), second, part.beside, weight))
            self._add(TreePart(second_half, (*part.around, first_half), first, part.beside, weight))

    def values(self) -> Floats:
        """The map, float64 (H, W)."""
        plane = np.zeros(self.size)
        for part in (*self.pixels, *(entry[2] for entry in self.open)):
            top, bottom, left, right = part.box
            plane[top:bottom, left:right] += part.value / ((bottom - top) * (right - left))
        return plane

    def _add(self, part: TreePart) -> None:
        top, bottom, left, right = part.box
        if (bottom - top) * (right - left) == 1:
            self.pixels.append(part)
            return
        # Rounded, so that changes that are equal but for rounding do not order the parts by chance.
        change = round(abs(part.value) / max(abs(self.whole - self.hidden), 1e-12), 5)
        heapq.heappush(self.open, (-change, self.born, part))
        self.born += 1


def box_blur(picture: Plane, width: int) -> Plane:
    """Mean over a square of `width` pixels, the picture mirrored at its border; float32 (3, H, W)."""
    from scipy import ndimage

    blurred = ndimage.uniform_filter(picture.astype(np.float64), size=(0, width, width), mode="mirror")
    return np.asarray(blurred, np.float32)
