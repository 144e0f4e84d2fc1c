"""Regions are outlined on the picture that people see, and go the ordinary way of all explanations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from stimuli.errors import ShapeMismatch, StimulusError
from stimuli.pipeline import Bench, RenderedStimulus, StimulusFailure, attempt
from stimuli.regions.grid import mask_of
from stimuli.render import png
from stimuli.render.recipe import RenderSpec
from stimuli.render.region import on_picture, outline_region
from stimuli.spec import Component, StimulusSpec
from stimuli.spec_derivation import canvas_of, spec_for
from stimuli.store import LocalStore, files
from stimuli.types import Pixels, RegionAttribution
from tests.stimuli.material import toy_source

pytestmark = pytest.mark.pure

SIDE = 8
SQUARE = RegionAttribution(mask_of([18, 19, 26, 27], SIDE))
"""Two by two cells: rows and columns 2 and 3 of eight."""


def ground(height: int = 320, width: int = 320, seed: int = 3) -> Pixels:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3)).astype(np.uint8)


def changed(picture: Pixels, made: RegionAttribution) -> np.ndarray:
    return np.asarray((outline_region(picture, made) != picture).any(2))


def test_a_line_runs_along_the_edge_of_the_region_and_nowhere_else() -> None:
    """The square covers pixels 80 to 160 each way; the line and its casing reach at most four pixels."""
    different = changed(np.full((320, 320, 3), 128, np.uint8), SQUARE)
    rows, columns = np.nonzero(different)
    assert (rows.min(), rows.max(), columns.min(), columns.max()) == (76, 163, 76, 163)
    assert not different[84:156, 84:156].any(), "inside, the picture is as it was"
    assert different[78:162, 80].all() and different[160, 78:162].all(), "the outline is closed"


@pytest.mark.parametrize("level", [0, 128, 255])
def test_the_line_shows_on_dark_and_on_light_ground(level: int) -> None:
    drawn = outline_region(np.full((320, 320, 3), level, np.uint8), SQUARE)
    crossing = drawn[120, 70:92, 0].astype(int)
    assert np.ptp(crossing) == 255, "black in white on any ground"
    assert (drawn[..., 0] == drawn[..., 1]).all() and (drawn[..., 0] == drawn[..., 2]).all()


def test_an_empty_region_leaves_the_picture_as_it_is() -> None:
    picture = ground()
    assert np.array_equal(outline_region(picture, RegionAttribution(np.zeros((SIDE, SIDE), bool))), picture)


def test_a_region_at_the_border_is_closed_there() -> None:
    different = changed(np.full((320, 320, 3), 128, np.uint8), RegionAttribution(mask_of([0], SIDE)))
    assert different[0, :40].all() and different[:40, 0].all()
    whole = changed(np.full((320, 320, 3), 128, np.uint8), RegionAttribution(np.ones((SIDE, SIDE), bool)))
    assert whole[0].all() and whole[:, -1].all() and not whole[10:-10, 10:-10].any()


def test_cells_cover_pictures_of_any_proportions() -> None:
    shown = on_picture(SQUARE.cells, (160, 320, 3))
    rows, columns = np.nonzero(shown)
    assert (rows.min(), rows.max(), columns.min(), columns.max()) == (40, 79, 80, 159)
    assert shown.sum() == 40 * 80


def test_a_region_without_a_square_grid_is_refused() -> None:
    with pytest.raises(ShapeMismatch, match=r"marked on a square grid, and this one is \(4, 8\)"):
        outline_region(ground(), RegionAttribution(np.zeros((4, 8), bool)))


def test_it_is_stored_by_its_cells(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    digest = files.keep_recorded(store, SQUARE)
    assert digest == files.keep_recorded(store, replace(SQUARE, cells=SQUARE.cells.copy()))
    other = RegionAttribution(mask_of([18, 19, 26], SIDE))
    # The same cells of a larger grid are another place.
    larger = RegionAttribution(mask_of([18, 19, 26, 27], SIDE + 1))
    assert len({digest, *(files.keep_recorded(store, made) for made in (other, larger))}) == 3
    read = files.read_recorded(store, digest)
    assert isinstance(read, RegionAttribution) and np.array_equal(read.cells, SQUARE.cells)
    assert read.cells.dtype == np.bool_


def specs_of(folder: Path, store: LocalStore, regions: list[RegionAttribution]) -> list[StimulusSpec]:
    """The regions on one picture of a study, as specs."""
    source, items = toy_source(folder, store)
    canvas = canvas_of(items[0], source, store, "original", 320)
    named = (
        Component("recorded", {"kind": "region", "digest": files.keep_recorded(store, made)})
        for made in regions
    )
    return [spec_for(items[0], source, each, RenderSpec(), 3, canvas=canvas) for each in named]


def test_the_ordinary_pipeline_draws_regions(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "store")
    other = RegionAttribution(mask_of([0, 1, 2], SIDE))
    specs = specs_of(tmp_path, store, [SQUARE, other, RegionAttribution(np.zeros((SIDE, SIDE), bool))])
    made = list(attempt(specs, Bench(store)))
    assert all(isinstance(each, RenderedStimulus) for each in made), made
    drawn = [each.drawn for each in made if isinstance(each, RenderedStimulus)]
    assert len({each.image_file for each in drawn}) == 1, "one picture, many regions"
    plain = png.decode(store.get(drawn[0].image_file))
    for each, region in zip(drawn, (SQUARE, other), strict=False):
        assert each.explanation_file is not None and each.said == ""
        shown = png.decode(store.get(each.explanation_file))
        assert np.array_equal(shown, outline_region(plain, region))
        assert shown.shape == plain.shape == (each.height_px, each.width_px, 3)
    assert drawn[2].explanation_file is not None
    assert np.array_equal(png.decode(store.get(drawn[2].explanation_file)), plain)
    assert len({each.picture_digest for each in drawn}) == 3


def test_what_asks_for_weights_says_that_a_region_has_none(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "store")
    [spec] = specs_of(tmp_path, store, [SQUARE])
    [made] = attempt([spec], Bench(store), {spec.picture_key: [Component("jpeg_complexity")]})
    assert isinstance(made, RenderedStimulus)
    [number] = made.numbers
    assert number.measured is None and "it is made of a marked region" in number.error


def test_a_damaged_region_fails_by_itself(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "store")
    specs = specs_of(tmp_path, store, [SQUARE, RegionAttribution(np.ones((3, 5), bool))])
    good, bad = attempt(specs, Bench(store))
    assert isinstance(good, RenderedStimulus)
    assert (
        isinstance(bad, StimulusFailure)
        and issubclass(ShapeMismatch, StimulusError)
        and "(3, 5)" in bad.error
    )
