"""Regions on a grid: closed forms by hand, and what must hold of any mark."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial import ConvexHull, QhullError

from stimuli.errors import ShapeMismatch
from stimuli.regions.grid import cell_means, cells_of, covered, mask_of, strongest
from stimuli.regions.mark_smoothing import (
    COARSE,
    KINDS,
    RegionKind,
    area_opened,
    close_mask,
    coarse,
    disk,
    hull,
    shape_region,
    smooth_mask,
)
from stimuli.regions.overlap_and_form import FORM, form_numbers, overlap
from stimuli.types import Mask

pytestmark = pytest.mark.pure

masks = st.integers(5, 13).flatmap(lambda side: arrays(np.bool_, (side, side)))
radii = st.integers(0, 3)


def drawn(*rows: str) -> Mask:
    """A mask as it is written: "x" is marked."""
    return np.array([[cell == "x" for cell in row] for row in rows])


# Cells, masks and cuts


def test_cells_are_numbered_row_by_row() -> None:
    mask = mask_of((1, 5, 8), 3)
    assert mask.tolist() == [[False, True, False], [False, False, True], [False, False, True]]
    assert cells_of(mask) == (1, 5, 8)


@given(masks)
def test_a_mask_survives_being_written_as_cells(mask: Mask) -> None:
    assert np.array_equal(mask_of(cells_of(mask), len(mask)), mask)
    assert list(cells_of(mask)) == sorted(set(cells_of(mask)))


@pytest.mark.parametrize("cell", [-1, 16, 784])
def test_a_region_of_another_grid_is_refused(cell: int) -> None:
    with pytest.raises(ShapeMismatch, match=rf"cell {cell} lies outside .* 4 x 4 cells, which are 0 to 15"):
        mask_of((0, cell), 4)


@given(arrays(np.int8, (6, 6)), st.integers(-3, 50))
def test_a_cut_has_the_area_that_was_asked_for_and_takes_the_largest(field: np.ndarray, count: int) -> None:
    cut = strongest(field, count)
    assert cut.sum() == min(36, max(1, count))
    assert cut.all() or field[cut].min() >= field[~cut].max()


@given(arrays(np.int8, (6, 6)), st.integers(1, 34))
def test_a_larger_cut_holds_the_smaller_one(field: np.ndarray, count: int) -> None:
    """Of ties too, so that nothing depends on anything but field and area."""
    assert not (strongest(field, count) & ~strongest(field, count + 1)).any()


def test_ties_have_no_side() -> None:
    """A flat field is cut all over the grid, not from its upper edge."""
    rows, columns = np.nonzero(strongest(np.zeros((28, 28)), 196))
    assert abs(rows.mean() - 13.5) < 1.5 and abs(columns.mean() - 13.5) < 1.5


def test_what_cannot_be_marked_is_taken_last() -> None:
    field = np.full((4, 4), -np.inf)
    field[1:3, 1:3] = [[-5, -6], [-7, -8]]
    assert cells_of(strongest(field, 4)) == (5, 6, 9, 10)


def test_means_of_cells_are_means() -> None:
    field = np.arange(16, dtype=np.float32).reshape(4, 4)
    assert cell_means(field, 2).tolist() == [[2.5, 4.5], [10.5, 12.5]]
    with pytest.raises(ShapeMismatch, match="does not divide into 3 x 3 cells"):
        cell_means(field, 3)


def test_a_picture_s_mask_covers_the_cells_that_it_fills_by_half() -> None:
    mask = np.zeros((10, 20), bool)
    mask[:5, :8] = True  # of 2 x 2 cells of 5 x 10 pixels: .8 of the first, nothing of the others
    assert cells_of(covered(mask, 2)) == (0,)
    mask[5:7, 10:] = True  # .4 of the last
    assert cells_of(covered(mask, 2)) == (0,)
    small = np.zeros((10, 20), bool)
    small[9, 19] = True
    assert cells_of(covered(small, 2)) == (3,) and not covered(np.zeros((10, 20), bool), 2).any()


# Smoothing


def test_disks_are_disks() -> None:
    assert disk(0).tolist() == [[True]]
    assert np.array_equal(disk(1), drawn(".x.", "xxx", ".x."))
    assert np.array_equal(disk(2), drawn("..x..", ".xxx.", "xxxxx", ".xxx.", "..x.."))


def test_it_fills_a_hole_and_drops_a_speck() -> None:
    mark = drawn("xxxx..", "x.xx..", "xxxx..", "......", "......", ".....x")
    assert np.array_equal(
        smooth_mask(mark, 1), drawn("xxxx..", "xxxx..", "xxxx..", "......", "......", "......")
    )


def test_it_keeps_a_thin_stroke_whole() -> None:
    """An opening by a disk would leave nothing of it."""
    stroke = drawn("x......", ".x.....", "..x....", "...x...", "....x..", ".....x.", "......x")
    assert not (stroke & ~smooth_mask(stroke, 1)).any()


def test_it_never_leaves_nothing() -> None:
    speck = drawn(".....", ".....", "..x..", ".....", ".....")
    assert np.array_equal(smooth_mask(speck, 2), close_mask(speck, 2)) and smooth_mask(speck, 2)[2, 2]


@given(masks, radii)
def test_a_closing_adds_and_is_done_once(mask: Mask, radius: int) -> None:
    whole = close_mask(mask, radius)
    assert not (mask & ~whole).any() and np.array_equal(close_mask(whole, radius), whole)


@given(masks, st.integers(0, 9))
def test_an_area_opening_removes_and_is_done_once(mask: Mask, least: int) -> None:
    large = area_opened(mask, least)
    assert not (large & ~mask).any() and np.array_equal(area_opened(large, least), large)


@given(masks, masks, radii)
def test_a_larger_mark_has_no_smaller_closing_or_opening(first: Mask, other: Mask, radius: int) -> None:
    if first.shape != other.shape:
        return
    small, large = first & other, first
    assert not (close_mask(small, radius) & ~close_mask(large, radius)).any()
    assert not (area_opened(small, 4) & ~area_opened(large, 4)).any()


@given(masks, radii)
def test_turning_the_grid_turns_what_was_smoothed(mask: Mask, radius: int) -> None:
    assert np.array_equal(smooth_mask(np.rot90(mask), radius), np.rot90(smooth_mask(mask, radius)))
    assert np.array_equal(hull(np.rot90(mask)), np.rot90(hull(mask)))


# Kinds of region


def test_the_hull_of_a_ring_is_full_and_that_of_two_ends_a_line() -> None:
    ring = drawn("xxx", "x.x", "xxx")
    assert hull(ring).all()
    ends = drawn("x....", ".....", ".....", ".....", "....x")
    assert np.array_equal(hull(ends), np.eye(5, dtype=bool))
    single = drawn("...", ".x.", "...")
    assert np.array_equal(hull(single), single) and not hull(np.zeros((4, 4), bool)).any()


def test_the_hull_of_an_angle_is_its_triangle() -> None:
    angle = drawn("x....", "x....", "x....", "x....", "xxxxx")
    assert np.array_equal(hull(angle), np.tril(np.ones((5, 5), bool)))


@given(masks)
def test_a_hull_holds_its_mark_and_is_its_own_hull(mask: Mask) -> None:
    assert not (mask & ~hull(mask)).any() and np.array_equal(hull(hull(mask)), hull(mask))


@given(masks)
def test_a_hull_is_that_of_another_library(mask: Mask) -> None:
    """Qhull's half planes, to its rounding; it refuses points on a line."""
    points = np.argwhere(mask)
    try:
        planes = ConvexHull(points).equations if len(points) > 2 else None
    except QhullError:
        planes = None
    if planes is None:
        return
    cells = np.argwhere(np.ones(mask.shape, bool))
    inside = (cells @ planes[:, :2].T + planes[:, 2] <= 1e-9).all(1)
    assert np.array_equal(inside.reshape(mask.shape), hull(mask))


@given(masks)
def test_coarse_cells_are_whole_and_come_near_to_the_area(mask: Mask) -> None:
    blocks, side = coarse(mask), len(mask)
    for row in range(0, side, COARSE):
        for column in range(0, side, COARSE):
            part = blocks[row : row + COARSE, column : column + COARSE]
            assert part.all() or not part.any()
    if mask.any():
        assert 1 <= blocks.sum() <= max(1, round(mask.sum() / COARSE**2)) * COARSE**2
    if side % COARSE == 0 and mask.sum() >= COARSE**2 / 2:
        assert abs(int(blocks.sum()) - int(mask.sum())) <= COARSE**2 / 2


def test_coarse_cells_are_those_with_most_of_the_mark() -> None:
    mask = np.zeros((8, 8), bool)
    mask[:4, :4] = True
    mask[4:, 7] = True  # a quarter of the last block
    assert cells_of(coarse(mask)) == cells_of(np.kron([[1, 0], [0, 0]], np.ones((4, 4))).astype(bool))


@given(masks, st.sampled_from(sorted(KINDS)), radii)
def test_no_region_is_empty_unless_its_mark_is(mask: Mask, kind: RegionKind, radius: int) -> None:
    assert shape_region(mask, kind, radius).any() == mask.any()
    assert shape_region(mask, kind, radius).shape == mask.shape


# Numbers


def test_overlaps_by_hand() -> None:
    first, second = drawn("xx.", "xx.", "..."), drawn("...", ".xx", ".xx")
    assert overlap(first, second) == 1 / 7 == overlap(second, first)
    assert overlap(first, first) == 1.0 and overlap(first, ~first) == 0.0
    assert overlap(np.zeros((3, 3), bool), np.zeros((3, 3), bool)) == 1.0


def test_the_form_of_a_ring_by_hand() -> None:
    ring = drawn(".....", ".xxx.", ".x.x.", ".xxx.", ".....")
    told = dict(zip(FORM, form_numbers(ring), strict=True))
    away = [1.0, 1.0, 1.0, 1.0, *4 * [np.sqrt(2)]]
    assert told["spread"] == pytest.approx(np.std(away))
    rest = {"area": 8, "edge": 16, "parts": 1, "holes": 1, "fullness": 8 / 9, "wide": 3, "high": 3}
    assert {name: told[name] for name in rest} == pytest.approx(rest)
    assert not form_numbers(np.zeros((4, 4), bool)).any()


@given(masks, st.integers(0, 3), st.integers(0, 3))
def test_the_form_says_nothing_about_the_place(mask: Mask, down: int, across: int) -> None:
    side = len(mask) + 3
    first, second = (np.zeros((side, side), bool) for _ in range(2))
    first[: len(mask), : len(mask)] = mask
    second[down : down + len(mask), across : across + len(mask)] = mask
    assert form_numbers(first) == pytest.approx(form_numbers(second))
