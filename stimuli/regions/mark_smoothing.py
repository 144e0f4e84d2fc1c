"""The one way from a raw mark to the region that is shown, for brush strokes and for cut maps alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from stimuli.regions.grid import strongest
from stimuli.types import Mask

RegionKind = Literal["hull", "strokes", "cells"]
COARSE = 4
"""Side, in cells, of the coarser cells of kind "cells"."""
NEIGHBOURS = np.ones((3, 3), np.bool_)
"""Cells that touch, also at a corner, belong together."""


def shape_region(mark: Mask, kind: RegionKind, radius: int) -> Mask:
    """The region of a mark, bool (side, side): smoothed, then as its kind is. Never empty unless the mark
    is."""
    return KINDS[kind](smooth_mask(mark, radius))


def smooth_mask(mark: Mask, radius: int) -> Mask:
    """A mark without holes and specks: closed by a disk of `radius` cells, then opened by its area.

    The area opening leaves out what hangs together and has fewer cells than the disk, and all else as it is:
    an opening by the disk itself would wipe out thin strokes of a brush. If nothing would be left, the closed
    mark stays. Radius 0 changes nothing. Reference: Vincent 1993, on area openings.
    """
    if not radius:
        return mark.copy()
    whole = close_mask(mark, radius)
    large = area_opened(whole, int(disk(radius).sum()))
    return large if large.any() else whole


def disk(radius: int) -> Mask:
    """The cells whose centre lies within `radius` cells of the middle one, bool (2r + 1, 2r + 1)."""
    steps = np.arange(-radius, radius + 1)
    return np.asarray(steps[:, None] ** 2 + steps[None] ** 2 <= radius**2)


def close_mask(mark: Mask, radius: int) -> Mask:
    """The morphological closing by a disk. What lies beyond the grid neither fills nor erodes."""
    from scipy.ndimage import binary_dilation, binary_erosion

    element = disk(radius)
    grown = binary_dilation(mark, element)
    return np.asarray(binary_erosion(grown, element, border_value=1), np.bool_)


def area_opened(mark: Mask, least: int) -> Mask:
    """The parts of a mark that hang together and have at least `least` cells."""
    from scipy.ndimage import label

    parts, count = label(mark, NEIGHBOURS)
    sizes = np.bincount(parts.ravel(), minlength=count + 1)
    sizes[0] = 0
    return np.asarray(sizes[parts] >= max(1, least))


def hull(mark: Mask) -> Mask:
    """The cells whose centres lie in the convex hull of the mark's, by whole numbers: exact, and the same if
    it is done twice."""
    rows, columns = np.nonzero(mark)
    corners = _corners(sorted(zip(columns.tolist(), rows.tolist(), strict=True)))
    if not corners:
        return mark.copy()
    y, x = np.mgrid[: mark.shape[0], : mark.shape[1]]
    inside = np.ones(mark.shape, np.bool_)
    for (x0, y0), (x1, y1) in zip(corners, corners[1:] + corners[:1], strict=True):
        inside &= (x1 - x0) * (y - y0) - (y1 - y0) * (x - x0) >= 0
    # Of a line or a point the sides say nothing about what lies beyond its ends.
    left, top, right, bottom = columns.min(), rows.min(), columns.max(), rows.max()
    return np.asarray(inside & (x >= left) & (x <= right) & (y >= top) & (y <= bottom))


def coarse(mark: Mask) -> Mask:
    """The mark in squares of COARSE cells: those that it covers most, as many as come nearest to its area,
    at least one."""
    side = mark.shape[0]
    if not mark.any():
        return mark.copy()
    starts = np.arange(0, side, COARSE)
    counts = np.add.reduceat(np.add.reduceat(mark.astype(np.int64), starts, 0), starts, 1)
    sizes = np.diff([*starts, side])
    areas = sizes[:, None] * sizes[None]
    chosen = strongest(counts / areas, max(1, round(int(mark.sum()) / COARSE**2)))
    drawn: NDArray[np.bool_] = np.repeat(np.repeat(chosen, sizes, 0), sizes, 1)
    return drawn


def _corners(points: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The corners of the convex hull of points sorted by x, then y, with the inside on the left of each edge
    in the direction of the next. [Andrew 1979]"""
    if len(points) < 3:
        return points
    halves = []
    for ordered in (points, points[::-1]):
        half: list[tuple[int, int]] = []
        for point in ordered:
            while len(half) > 1 and _turn(half[-2], half[-1], point) <= 0:
                half.pop()
            half.append(point)
        halves.append(half[:-1])
    return halves[0] + halves[1]


def _turn(a: tuple[int, int], b: tuple[int, int], c: tuple[int, int]) -> int:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


KINDS: Mapping[RegionKind, Callable[[Mask], Mask]] = {
    "hull": hull,
    "strokes": lambda mark: mark,
    "cells": coarse,
}
"""hull: the filled convex hull, which says where and does not write. strokes: the smoothed mark itself.
cells: coarser cells."""
