"""Overlays: aligned to the pixel, one recipe, one even colour if nothing differs; files with pixels only."""

import struct

import numpy as np
import pytest
from matplotlib import colormaps
from numpy.typing import NDArray

from stimuli.errors import BadSpec, ShapeMismatch
from stimuli.recipe import RenderSpec
from stimuli.render import heatmap, png
from stimuli.types import Pixels

pytestmark = pytest.mark.pure
SPEC = RenderSpec()


def picture(height: int = 60, width: int = 90) -> Pixels:
    return np.random.default_rng(4).integers(0, 256, (height, width, 3), dtype=np.uint8)


def ramp(height: int = 60, width: int = 90) -> NDArray[np.float32]:
    return np.linspace(0, 1, height * width, dtype=np.float32).reshape(height, width)


def chunks(content: bytes) -> list[str]:
    names, at = [], 8
    while at < len(content):
        length, name = struct.unpack(">I4s", content[at : at + 8])
        names.append(name.decode())
        at += 12 + length
    return names


def test_it_colours_exactly_the_pixels_that_matter() -> None:
    base = np.full((40, 50, 3), 128, np.uint8)
    values = np.zeros((40, 50), np.float32)
    values[7, 31] = 1
    spec = RenderSpec(clip_low=0, clip_high=100)
    drawn = heatmap.overlay(base, values, spec)
    different = np.argwhere((drawn != drawn[0, 0]).any(2))
    np.testing.assert_array_equal(different, [[7, 31]])


def test_it_follows_the_declared_formula() -> None:
    base, values = picture(), ramp()
    spec = RenderSpec(colormap="magma", alpha=0.6, clip_low=0, clip_high=100)
    row, column = 33, 71
    v = float(values[row, column])
    colour = np.array(colormaps["magma"](round(v * 255))[:3]) * 255
    opacity = 0.6 * (0.25 + 0.75 * v)
    expected = base[row, column] * (1 - opacity) + colour * opacity
    np.testing.assert_allclose(heatmap.overlay(base, values, spec)[row, column], expected, atol=1)


def test_it_cuts_at_the_percentiles() -> None:
    values = np.arange(1000, dtype=np.float32).reshape(20, 50)
    scaled = heatmap.normalised(values, RenderSpec(clip_low=10, clip_high=90)).ravel()
    assert (scaled[:100] == 0).all() and (scaled[900:] == 1).all()
    assert scaled[500] == pytest.approx((500 - 99.9) / (899.1 - 99.9), abs=1e-5)


def test_it_takes_magnitudes_when_asked() -> None:
    values = ramp() - np.float32(0.5)
    absolute = heatmap.normalised(values, SPEC)
    assert absolute[0, 0] == absolute[-1, -1] == 1
    signed = heatmap.normalised(values, RenderSpec(absolute=False))
    assert signed[0, 0] == 0 and signed[-1, -1] == 1


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_it_does_not_depend_on_the_scale_of_a_map(scale: float) -> None:
    expected = heatmap.normalised(ramp(), SPEC)
    np.testing.assert_allclose(heatmap.normalised(ramp() * np.float32(scale), SPEC), expected, atol=1e-5)


@pytest.mark.parametrize("value", [0.0, 3.7, -2.0])
def test_it_draws_a_constant_map_as_no_difference(value: float) -> None:
    base = np.full((40, 50, 3), 200, np.uint8)
    drawn = heatmap.overlay(base, np.full((40, 50), value, np.float32), SPEC)
    assert (drawn == drawn[0, 0]).all()
    assert np.abs(drawn.astype(int) - base).max() < 40


def test_it_keeps_a_few_strong_points_among_zeros() -> None:
    values = np.zeros((100, 100), np.float32)
    values[50, 50] = 2
    scaled = heatmap.normalised(values, SPEC)
    assert scaled[50, 50] == 1 and scaled.sum() == 1


def test_it_refuses_a_map_of_another_size() -> None:
    with pytest.raises(ShapeMismatch, match="network's own view"):
        heatmap.overlay(picture(), ramp(30, 45), SPEC)


def test_it_refuses_maps_that_are_not_finite() -> None:
    values = ramp()
    values[0, 0] = np.nan
    with pytest.raises(ShapeMismatch, match="not finite"):
        heatmap.overlay(picture(), values, SPEC)


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        ({"colormap": "jet"}, "'jet' is not known: use one of viridis"),
        ({"alpha": 0.0}, "above 0 and at most 1"),
        ({"clip_low": 99.0}, "the low one below the high one"),
        ({"clip_high": 101.0}, "between 0 and 100"),
        ({"tile_px": 8}, "between 16 and 512"),
    ],
)
def test_it_refuses_recipes_that_cannot_be_drawn(recipe: dict[str, object], message: str) -> None:
    with pytest.raises(BadSpec, match=message):
        heatmap.check_recipe(RenderSpec(**recipe))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", heatmap.COLORMAPS)
def test_it_grows_steadily_lighter_with_importance(name: str) -> None:
    lightness = heatmap.palette(name) @ np.array([0.2126, 0.7152, 0.0722])
    assert (np.diff(lightness) > -0.6).all() and lightness[-1] - lightness[0] > 100


@pytest.mark.parametrize(
    ("shape", "size"), [((60, 90), (149, 224)), ((160, 160), (224, 224)), ((300, 100), (224, 75))]
)
def test_it_makes_tiles_twice_as_large_as_they_are_shown(
    shape: tuple[int, int], size: tuple[int, int]
) -> None:
    base, values = picture(*shape), ramp(*shape)
    assert heatmap.tile(base, SPEC).shape == (*size, 3)
    assert heatmap.overlay_tile(base, values, SPEC).shape == (*size, 3)


def test_it_aligns_tiles_with_pictures() -> None:
    base = np.full((80, 80, 3), 128, np.uint8)
    values = np.zeros((80, 80), np.float32)
    values[20:30, 60:70] = 1
    tile = heatmap.overlay_tile(base, values, SPEC).astype(int)
    changed = np.abs(tile - tile[0, 0]).sum(2)
    centre = np.average(np.indices(changed.shape).reshape(2, -1), axis=1, weights=changed.ravel())
    np.testing.assert_allclose(centre / 224, [24.5 / 80, 64.5 / 80], atol=0.006)


def test_it_writes_pixels_and_nothing_else() -> None:
    content = png.encode(picture())
    assert set(chunks(content)) == {"IHDR", "IDAT", "IEND"}
    np.testing.assert_array_equal(png.decode(content), picture())
    assert png.encode(np.asfortranarray(picture())) == content


def test_it_names_pixels_and_shape() -> None:
    base = picture()
    assert png.pixel_key(base) == png.pixel_key(base.copy(order="F"))
    assert png.pixel_key(base) != png.pixel_key(base.reshape(90, 60, 3))
    assert png.pixel_key(base) == png.pixel_key(png.decode(png.encode(base)))


def test_it_refuses_what_is_no_picture() -> None:
    with pytest.raises(ShapeMismatch, match=r"uint8 \(H, W, 3\)"):
        png.encode(ramp())  # type: ignore[arg-type]
    with pytest.raises(ShapeMismatch, match="cannot be read"):
        png.decode(b"no picture at all")
