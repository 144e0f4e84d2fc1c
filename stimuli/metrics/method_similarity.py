"""How alike the methods' explanations of one item are: as pictures, and as maps."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from stimuli.errors import NotApplicable, ShapeMismatch
from stimuli.metrics.base import Better, Entry, MetricValue, Scored
from stimuli.metrics.correlation import product, standardise_values
from stimuli.registry import parameters
from stimuli.types import Pixels, Plane

Floats = NDArray[np.float64]

MEAN_LEVELS = 2.0
SEEN_LEVELS = 6.0
CLOSE_SHARE = 0.99
WINDOW_SHARE = 1 / 28
TILE = 16
ROUNDING = 1e-6
"""A map whose range is no more than this share of its magnitude has no structure."""
SSIM_SIDE = 11
"""The side of the window of the structural similarity; smaller maps have none."""


def near_identical(
    pictures: Mapping[str, Pixels],
    *,
    mean_max: float = MEAN_LEVELS,
    seen_min: float = SEEN_LEVELS,
    share: float = CLOSE_SHARE,
) -> list[tuple[str, ...]]:
    """Groups of conditions whose drawn pictures of one item differ less than people can see.

    `pictures` are uint8 (H, W, 3), all of one shape (else ShapeMismatch). A pixel's difference is that of
    its most different colour channel, in levels of 0-255. Two pictures are near identical when the mean
    difference is at most `mean_max`, at least `share` of the pixels differ by at most `seen_min`, and no
    square window of 1/28 of the shorter side (at least 3 pixels) differs by more than `seen_min` on average:
    otherwise a small spot that moved would pass for noise. Six levels of sRGB grey are about 2.3 units of
    CIELAB lightness, the just noticeable difference of [Mahy et al. 1994] for patches side by side;
    participants see the pictures one after the other, which is harder.

    In a group every pair is near identical. Names are sorted; pictures that are like no other are left out.
    The order of `pictures` does not matter.
    """
    _check_shapes(pictures)
    coarse = {name: _tile_means(picture) for name, picture in pictures.items()}

    def distance(first: str, second: str) -> float | None:
        # Means of tiles differ by no more than their pixels do: most pairs are told apart by them alone.
        if _mean_apart(coarse[first], coarse[second]) > mean_max + 1e-9:
            return None
        apart = np.abs(pictures[first].astype(np.int16) - pictures[second]).max(2)
        mean = float(apart.mean())
        is_near = mean <= mean_max and float((apart <= seen_min).mean()) >= share
        return mean if is_near and _strongest_window(apart) <= seen_min else None

    return _groups(sorted(pictures), distance)


@parameters
class MethodSimilarity:
    """Correlation of a map with the most similar map that another condition has of the same item.

    `correlation` is Spearman's or Pearson's over all pixels of the drawn fields. `value` is in -1 to 1: near
    1 says that two conditions show nearly the same. Two fields without any structure have 1, one beside
    another that has some 0. `details` name the closest condition (the first by name of equals) and give the
    structural similarity of the two fields, each scaled to 0-1 [Wang et al. 2004], if they have at least 11
    pixels a side.

    If an item has one condition only, `value` is NaN and `details["undefined"]` says why.
    """

    version: ClassVar[int] = 2
    unit: ClassVar[str] = "correlation"
    better: ClassVar[Better] = "neither"
    scores: ClassVar[Scored] = "drawn"
    correlation: Literal["spearman", "pearson"] = "spearman"

    def measure(self, entries: Sequence[Entry]) -> Sequence[MetricValue]:
        """One Measured per entry, in their order."""
        items: dict[str, list[int]] = {}
        for place, entry in enumerate(entries):
            items.setdefault(entry.item, []).append(place)
        by_place: dict[int, MetricValue] = {}
        for item, places in items.items():
            places.sort(key=lambda place: entries[place].condition)
            members = [entries[place] for place in places]
            if len({entry.condition for entry in members}) < len(members):
                raise NotApplicable(
                    f"method_similarity has two maps of one condition for item {item!r}: give one per "
                    "condition and item"
                )
            by_place.update(zip(places, self._of_item(members), strict=True))
        return [by_place[place] for place in range(len(entries))]

    def _of_item(self, members: Sequence[Entry]) -> list[MetricValue]:
        """One Measured per entry of one item; the entries are sorted by condition."""
        if len(members) == 1:
            return [MetricValue(math.nan, {"undefined": "no other condition has a map of this item"})]
        maps = [entry.values for entry in members]
        _check_shapes({entry.condition: values for entry, values in zip(members, maps, strict=True)})
        rows = [
            standardise_values(np.asarray(values, np.float64).ravel(), self.correlation, ROUNDING)
            for values in maps
        ]
        results = []
        for at, row in enumerate(rows):
            alike = [(_alike(row, other), -place) for place, other in enumerate(rows) if place != at]
            value, place = max(alike)
            closest = -place
            details: dict[str, object] = {"closest": members[closest].condition}
            similarity = structural_similarity(maps[at], maps[closest])
            if similarity is not None:
                details["ssim"] = similarity
            results.append(MetricValue(value, details))
        return results


def structural_similarity(first: Plane, second: Plane) -> float | None:
    """Mean structural similarity of two maps (H, W), each scaled to 0-1 by its least and largest value; None
    for less than 11 pixels a side. Gaussian window of sigma 1.5. [Wang et al. 2004]
    """
    if min(first.shape) < SSIM_SIDE:
        return None
    from skimage.metrics import structural_similarity as similarity

    score = similarity(  # type: ignore[no-untyped-call]
        _scale_map(first),
        _scale_map(second),
        data_range=1.0,
        gaussian_weights=True,
        sigma=1.5,
        use_sample_covariance=False,
    )
    return float(score)


def _scale_map(values: Plane) -> Floats:
    """A map by its least and largest value to 0-1, float64; all zero if it is constant."""
    exact = np.asarray(values, np.float64)
    low, high = float(exact.min()), float(exact.max())
    if high - low <= ROUNDING * max(abs(low), abs(high)):
        return np.zeros_like(exact)
    return np.asarray((exact - low) / (high - low), np.float64)


def _strongest_window(apart: NDArray[np.int16]) -> float:
    """The largest mean over a square window of the picture."""
    side = min(max(3, round(min(apart.shape) * WINDOW_SHARE)), *apart.shape)
    sums = np.zeros((apart.shape[0] + 1, apart.shape[1] + 1), np.int64)
    sums[1:, 1:] = apart.astype(np.int64).cumsum(0).cumsum(1)
    inside = sums[side:, side:] - sums[:-side, side:] - sums[side:, :-side] + sums[:-side, :-side]
    return float(inside.max() / side**2)


def _tile_means(picture: Pixels) -> tuple[Floats, Floats]:
    """Means of the picture's tiles (n, m, 3), and each tile's share of the pixels (n, m)."""
    height, width = picture.shape[:2]
    rows, columns = np.arange(0, height, TILE), np.arange(0, width, TILE)
    sums = np.add.reduceat(np.add.reduceat(picture.astype(np.float64), rows, 0), columns, 1)
    counts = np.outer(np.diff(rows, append=height), np.diff(columns, append=width))
    return sums / counts[..., None], counts / (height * width)


def _mean_apart(first: tuple[Floats, Floats], second: tuple[Floats, Floats]) -> float:
    return float((np.abs(first[0] - second[0]).max(2) * first[1]).sum())


def _groups(names: Sequence[str], distance: Callable[[str, str], float | None]) -> list[tuple[str, ...]]:
    """Sets of at least two of the sorted names in which every pair has a distance; the closest pairs are
    joined first.
    """
    near: dict[tuple[str, str], float] = {}
    for at, left in enumerate(names):
        for right in names[at + 1 :]:
            apart = distance(left, right)
            if apart is not None:
                near[left, right] = apart
    group = {name: frozenset([name]) for name in names}
    for left, right in sorted(near, key=lambda pair: (near[pair], pair)):
        first, second = group[left], group[right]
        if first is not second and all(tuple(sorted((a, b))) in near for a in first for b in second):
            joined = first | second
            group.update(dict.fromkeys(joined, joined))
    return sorted(tuple(sorted(members)) for members in set(group.values()) if len(members) > 1)


def _check_shapes(values: Mapping[str, Pixels] | Mapping[str, Plane]) -> None:
    shapes = {name: value.shape for name, value in values.items()}
    if len(set(shapes.values())) > 1:
        told = ", ".join(f"{name} {shape}" for name, shape in sorted(shapes.items()))
        raise ShapeMismatch(f"only pictures of one size can be compared, not {told}: draw them on one view")


def _alike(first: Floats | None, second: Floats | None) -> float:
    if first is None or second is None:
        return 1.0 if first is second else 0.0
    return product(first, second)
