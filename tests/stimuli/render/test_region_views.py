"""What a network's view tells, on the grid over the picture that people see."""

from __future__ import annotations

import numpy as np
import pytest

from stimuli.regions.grid import cells_of
from stimuli.regions.network_view_cells import cell_strengths, cells_of_view
from stimuli.render.recipe import Canvas, RenderSpec
from stimuli.types import PixelAttribution

pytestmark = pytest.mark.pure

RIGHT_HALF = Canvas("p", (0.5, 0.0, 1.0, 1.0))
"""The network sees the right half of the picture alone."""


def ramp(signed: bool = True) -> PixelAttribution:
    """Values rise from left to right, 32 x 32, from below 0 to above."""
    values = np.repeat(np.linspace(-1, 1, 32, dtype=np.float32)[None], 32, 0)
    return PixelAttribution(values, signed)


def test_a_cell_is_as_strong_as_the_map_is_there_on_average() -> None:
    strengths = cell_strengths(ramp(), RenderSpec(), None, 4)
    assert np.allclose(strengths, strengths[:1]), "rows are alike"
    # Evidence for the answer begins in the middle: columns 16 to 31 rise from 1/31 to 1.
    assert strengths[0, :2] == pytest.approx([0, 0], abs=0.01)
    by_hand = [np.linspace(1 / 31, 1, 16)[part].mean() for part in (slice(8), slice(8, 16))]
    assert strengths[0, 2:] == pytest.approx(by_hand, abs=0.02)


def test_only_the_sign_that_the_recipe_shows_counts() -> None:
    magnitude = cell_strengths(ramp(), RenderSpec(sign="magnitude"), None, 4)
    assert np.allclose(magnitude, magnitude[:, ::-1], atol=0.02) and magnitude[0, 0] > magnitude[0, 1]
    whole = RenderSpec(sign="signed_range")
    assert cell_strengths(ramp(), whole, None, 4)[0, 0] == pytest.approx(0, abs=0.01)
    diverging = RenderSpec(sign="diverging", colormap="PuOr_r", unsigned="for")
    assert cell_strengths(ramp(), diverging, None, 4)[0, 0] == pytest.approx(0, abs=0.01)


def test_clipping_of_the_recipe_makes_no_ties() -> None:
    values = np.zeros((32, 32), np.float32)
    values[4, 4], values[20, 20] = 5.0, 9.0
    strengths = cell_strengths(PixelAttribution(values, True), RenderSpec(clip_high=51.0), None, 8)
    assert strengths[1, 1] < strengths[5, 5]


def test_what_the_network_did_not_see_cannot_be_marked() -> None:
    strengths = cell_strengths(ramp(False), RenderSpec(sign="magnitude"), RIGHT_HALF, 4)
    assert np.isneginf(strengths[:, :2]).all() and np.isfinite(strengths[:, 2:]).all()
    assert strengths[0, 2] == pytest.approx(strengths[0, 3], abs=0.02), "the map fills its half alone"


def test_a_flat_map_is_flat() -> None:
    flat = cell_strengths(PixelAttribution(np.ones((32, 32), np.float32), True), RenderSpec(), None, 4)
    assert not flat.any()


def test_a_region_of_the_view_is_found_on_the_picture() -> None:
    region = np.zeros((16, 16), bool)
    region[:8, :8] = True
    assert cells_of(cells_of_view(region, None, 4)) == (0, 1, 4, 5)
    assert cells_of(cells_of_view(region, RIGHT_HALF, 4)) == (2, 6)
    assert not cells_of_view(np.zeros((16, 16), bool), None, 4).any()
