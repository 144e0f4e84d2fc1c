"""From a folder of pictures to what people see of them; what is measured does not know of it."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from stimuli import pipeline
from stimuli.errors import ShapeMismatch
from stimuli.explainers import bind_to_items
from stimuli.pipeline import Bench, RenderedStimulus, attempt
from stimuli.render import png
from stimuli.render.explanation_drawing import draw
from stimuli.render.recipe import Canvas, RenderSpec, View
from stimuli.spec import Component, StimulusSpec
from stimuli.spec_derivation import PredictedItem, Source, canvas_of, spec_for
from stimuli.store import LocalStore, files
from stimuli.types import WHOLE
from tests.stimuli.material import SALIENCY, SIDE, strengths, toy_source

pytestmark = pytest.mark.pure

METRICS = [
    Component(name) for name in ("deletion", "deletion_drawn", "sparsity", "entropy", "jpeg_complexity")
]
World = tuple[Source, list[PredictedItem]]


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "store")


@pytest.fixture
def world(tmp_path: Path, store: LocalStore) -> World:
    return toy_source(tmp_path, store)


@pytest.fixture(autouse=True)
def forgetful() -> Iterator[None]:
    yield
    pipeline._restored.clear()


def specs_seen(
    world: World, store: LocalStore, view: View | None, explainers: Sequence[Component | None]
) -> list[StimulusSpec]:
    """The specs of all items under one method each, on the canvas of a view; None is as before."""
    source, items = world
    canvases = [canvas_of(item, source, store, view, 160) if view else None for item in items]
    return [
        spec_for(item, source, explainer, RenderSpec(), 1, canvas=canvas)
        for item, canvas, explainer in zip(items, canvases, explainers, strict=True)
    ]


def rendered(specs: Sequence[StimulusSpec], store: LocalStore) -> list[RenderedStimulus]:
    made = list(attempt(specs, Bench(store), {spec.picture_key: METRICS for spec in specs}))
    assert all(isinstance(stimulus, RenderedStimulus) for stimulus in made), made
    return [stimulus for stimulus in made if isinstance(stimulus, RenderedStimulus)]


def test_people_see_the_file_at_the_shown_size_with_the_crop_faded(world: World, store: LocalStore) -> None:
    """48 x 40 pixels; the network sees the middle 38/32 by the rounding of its framing."""
    _, items = world
    assert items[0].original_px == (48, 40) and 0 < items[0].cropped_share < 0.2
    [made, *_] = rendered(specs_seen(world, store, "original", [SALIENCY] * len(items)), store)
    drawn = made.drawn
    assert (drawn.width_px, drawn.height_px) == (160, 133)
    assert (drawn.tile_width_px, drawn.tile_height_px) == (224, 186)
    plain, explained = (
        png.decode(store.get(file or "")) for file in (drawn.image_file, drawn.explanation_file)
    )
    assert plain.shape == explained.shape == (133, 160, 3)
    file = Image.open(store.root.parent / "images" / f"{items[0].key}")
    expected = np.asarray(file.resize((160, 133), Image.Resampling.BICUBIC))
    # Columns 3 to 35 of 38 were the view: of 160 columns those whose centres lie between.
    inside = slice(round(3 / 38 * 160), round(35 / 38 * 160))
    np.testing.assert_array_equal(plain[:, inside], expected[:, inside])
    np.testing.assert_array_equal(plain[:, :12], explained[:, :12])
    np.testing.assert_array_equal(plain[:, 148:], explained[:, 148:])
    assert (plain[:, inside] != explained[:, inside]).any(axis=2).mean() > 0.95
    tiles = [
        png.decode(store.get(file or "")) for file in (drawn.image_tile_file, drawn.explanation_tile_file)
    ]
    assert tiles[0].shape == tiles[1].shape == (186, 224, 3)
    np.testing.assert_array_equal(tiles[0][:, :16], tiles[1][:, :16])


def test_the_network_s_view_is_shown_if_the_study_says_so(world: World, store: LocalStore) -> None:
    [made, *_] = rendered(specs_seen(world, store, "network", [None] * len(world[1])), store)
    assert (made.drawn.width_px, made.drawn.height_px) == (160, 160)
    view = Image.fromarray(files.read_view(store, made.spec.image_key))
    shown = png.decode(store.get(made.drawn.image_file))
    np.testing.assert_array_equal(shown, np.asarray(view.resize((160, 160), Image.Resampling.BICUBIC)))


def test_what_is_measured_is_equal_whatever_people_see(world: World, store: LocalStore) -> None:
    maps, numbers = [], []
    for view in (None, "original", "network"):
        specs = specs_seen(world, store, view, [SALIENCY] * len(world[1]))
        made = rendered(specs, store)
        maps.append([stimulus.spec.attribution_key for stimulus in made])
        numbers.append([[number.measured for number in stimulus.numbers] for stimulus in made])
    assert maps[0] == maps[1] == maps[2]
    assert numbers[0] == numbers[1] == numbers[2]
    assert all(measured is not None for row in numbers[0] for measured in row)
    assert len(numbers[0][0]) == len(METRICS)


def test_a_map_of_another_picture_lies_on_the_view_of_this_one(world: World, store: LocalStore) -> None:
    """A borrowed map is drawn on its own item's box, wherever its donor's was."""
    source, items = world
    borrowed = bind_to_items(Component("other_item", {"of": "saliency"}), items, 7)
    [first, *_] = specs_seen(world, store, "original", list(borrowed))
    left, right = (0.0, 0.0, 0.5, 1.0), (0.5, 0.0, 1.0, 1.0)
    assert first.canvas is not None
    plain = png.decode(store.get(files.view_file(first.canvas.picture)))
    for box, touched in ((left, slice(0, 80)), (right, slice(80, 160))):
        spec = StimulusSpec.from_json(
            {**first.as_json(), "canvas": Canvas(first.canvas.picture, box).as_json()}
        )
        [made] = rendered([spec], store)
        changed = (png.decode(store.get(made.drawn.explanation_file or "")) != plain).any(axis=(0, 2))
        assert set(np.flatnonzero(changed)) <= set(range(touched.start, touched.stop)) and changed.any()


def test_a_map_that_does_not_fit_the_view_is_refused(world: World, store: LocalStore) -> None:
    [spec, *_] = specs_seen(world, store, "original", [SALIENCY] * len(world[1]))
    with pytest.raises(ShapeMismatch, match=rf"\(8, 8\) pixels and the network's view \({SIDE}, {SIDE}\)"):
        draw(spec, strengths(np.zeros((8, 8), np.float32)), store)


def test_a_canvas_is_stored_once_and_named_by_its_pixels(world: World, store: LocalStore) -> None:
    source, items = world
    first = canvas_of(items[0], source, store, "original", 160)
    count = len(list(store.keys()))
    assert canvas_of(items[0], source, store, "original", 160) == first
    assert len(list(store.keys())) == count
    assert png.pixel_key(files.read_view(store, first.picture)) == first.picture
    assert canvas_of(items[0], source, store, "network", 160).box == WHOLE
