"""The picture that people see: as Pillow resamples the original, the map where the network looked."""

from typing import Any

import numpy as np
import pytest
from PIL import Image

from stimuli.errors import ShapeMismatch
from stimuli.predictors.framing import Framing, cropped_share
from stimuli.render import view_placement
from stimuli.render.attribution_field import drawn_field
from stimuli.render.heatmap import grey, paint_field, tile
from stimuli.render.recipe import Canvas, Interpolation, RenderSpec
from stimuli.render.view_placement import drawn_on, field_on, region_on, seen_part, shown_picture
from stimuli.spec import Component, StimulusSpec
from stimuli.types import WHOLE, Box, PixelAttribution, Pixels, Plane

pytestmark = pytest.mark.pure

SIDE = 64
FRAMINGS = {
    "crop": Framing(),
    "inner": Framing(96, "bilinear", "crop", "torchvision"),
    "squash": Framing(64, "bicubic", "squash", "torchvision"),
    "squash, inner": Framing(80, "bicubic", "squash", "torchvision"),
    "pad": Framing(64, "bilinear", "pad", "torchvision"),
}
SIZES = [(300, 500), (500, 300), (400, 400), (90, 160)]
framings = pytest.mark.parametrize("framing", FRAMINGS.values(), ids=FRAMINGS.keys())
sizes = pytest.mark.parametrize(("height", "width"), SIZES)


def noise(height: int, width: int) -> Pixels:
    return np.random.default_rng(3).integers(0, 256, (height, width, 3), dtype=np.uint8)


def made_of(values: Any) -> PixelAttribution:
    return PixelAttribution(np.asarray(values, np.float32), signed=False)


def bright(row: int, column: int, side: int = SIDE) -> PixelAttribution:
    values = np.zeros((side, side))
    values[row, column] = 1
    return made_of(values)


def centre(weights: Plane) -> tuple[float, float]:
    rows, columns = np.mgrid[: weights.shape[0], : weights.shape[1]] + 0.5
    return (
        float((weights * rows).sum() / weights.sum()),
        float((weights * columns).sum() / weights.sum()),
    )


def whole_field(made: PixelAttribution, on: Canvas, shape: tuple[int, ...]) -> Plane:
    field = np.zeros(shape[:2], np.float32)
    field[seen_part(on.box, shape)] = field_on(made.values, on, shape)
    return field


@framings
@sizes
@pytest.mark.parametrize("longest_px", [640, 128])
@pytest.mark.parametrize("interpolation", ["smooth", "pixelated"])
def test_a_bright_pixel_of_the_view_lands_at_its_place_in_the_original(
    framing: Framing, height: int, width: int, longest_px: int, interpolation: Interpolation
) -> None:
    """In closed form: pixel c of S columns is centred at left + (c + 1/2) / S of the box's width."""
    left, top, right, bottom = box = framing.box(height, width, SIDE)
    shown = shown_picture(noise(height, width), box, longest_px, interpolation)
    for row, column in ((32, 32), (20, 41), (44, 25)):
        x = (left + (column + 0.5) / SIDE * (right - left)) * shown.shape[1]
        y = (top + (row + 0.5) / SIDE * (bottom - top)) * shown.shape[0]
        if not (0.1 * shown.shape[1] < x < 0.9 * shown.shape[1]):
            continue
        if not (0.1 * shown.shape[0] < y < 0.9 * shown.shape[0]):
            continue
        field = whole_field(bright(row, column), Canvas("k", box, interpolation), shown.shape)
        # Half a pixel of the picture, for what has no exact place on its grid.
        assert np.abs(np.subtract(centre(field), (y, x))).max() <= 0.5


@framings
@sizes
def test_what_is_bright_in_the_original_is_bright_where_its_view_is_drawn(
    framing: Framing, height: int, width: int
) -> None:
    """The network's own view of a spot is the map: drawn back, it covers the spot."""
    original = np.zeros((height, width, 3), np.uint8)
    rows, columns = slice(height // 2 - 20, height // 2 + 5), slice(width // 2 + 2, width // 2 + 30)
    original[rows, columns] = 255
    box = framing.box(height, width, SIDE)
    shown = shown_picture(original, WHOLE, 640, "smooth")
    view = framing.view(original, SIDE)[..., 0] / np.float32(255)
    field = whole_field(made_of(view), Canvas("k", box), shown.shape)
    assert np.corrcoef(field.ravel(), shown[..., 0].ravel())[0, 1] > 0.9
    spot = [(rows.start + rows.stop) / 2 / height, (columns.start + columns.stop) / 2 / width]
    # The view's grid is coarse: a quarter of one of its pixels.
    pixel = (box[3] - box[1]) / SIDE, (box[2] - box[0]) / SIDE
    placed = np.array(centre(field)) / shown.shape[:2]
    assert (np.abs(placed - spot) < np.array(pixel) / 4 + 0.001).all()


@framings
@sizes
def test_nothing_is_painted_where_the_network_saw_nothing(framing: Framing, height: int, width: int) -> None:
    box = framing.box(height, width, SIDE)
    shown = shown_picture(noise(height, width), box, 640, "smooth")
    made = made_of(np.random.default_rng(1).random((SIDE, SIDE)))
    drawn = drawn_on(shown, made, RenderSpec(), Canvas("k", box))
    rows, columns = (np.arange(length) + 0.5 for length in shown.shape[:2])
    inside = np.outer(
        (rows / shown.shape[0] >= box[1]) & (rows / shown.shape[0] < box[3]),
        (columns / shown.shape[1] >= box[0]) & (columns / shown.shape[1] < box[2]),
    )
    np.testing.assert_array_equal(drawn[~inside], shown[~inside])
    assert (drawn != shown).any(axis=2)[inside].mean() > 0.99
    # What is left out has the share that the survey counts, to the border's pixels.
    assert (~inside).mean() == pytest.approx(cropped_share(box), abs=2 / min(shown.shape[:2]))


@framings
@sizes
def test_the_plain_picture_is_the_original_and_faded_where_it_is_not_seen(
    framing: Framing, height: int, width: int
) -> None:
    original = noise(height, width)
    box = framing.box(height, width, SIDE)
    shown = shown_picture(original, box, 640, "smooth")
    size = (640, round(640 * height / width)) if width >= height else (round(640 * width / height), 640)
    assert shown.shape == (size[1], size[0], 3)
    expected = np.asarray(Image.fromarray(original).resize(size, Image.Resampling.BICUBIC))
    part = seen_part(box, shown.shape)
    np.testing.assert_array_equal(shown[part], expected[part])
    outside = np.ones(shown.shape[:2], bool)
    outside[part] = False
    mixed = 0.35 * expected[outside] + 0.65 * np.array([236, 236, 236])
    assert np.abs(shown[outside] - mixed).max(initial=0) <= 0.5
    if cropped_share(box) < 1e-9:
        assert not outside.any()


def test_a_view_is_enlarged_to_the_shown_size_smoothly_or_in_squares() -> None:
    view = noise(SIDE, SIDE)
    crisp = shown_picture(view, WHOLE, 640, "pixelated")
    np.testing.assert_array_equal(crisp, view.repeat(10, axis=0).repeat(10, axis=1))
    smooth = shown_picture(view, WHOLE, 640, "smooth")
    np.testing.assert_array_equal(
        smooth, np.asarray(Image.fromarray(view).resize((640, 640), Image.Resampling.BICUBIC))
    )
    # What is made smaller is always averaged: nearest pixels would drop fine lines.
    np.testing.assert_array_equal(
        shown_picture(view, WHOLE, 32, "pixelated"), shown_picture(view, WHOLE, 32, "smooth")
    )


def test_a_field_in_squares_is_every_value_so_often() -> None:
    values = np.random.default_rng(2).random((8, 8)).astype(np.float32)
    drawn = field_on(values, Canvas("k", interpolation="pixelated"), (64, 64, 3))
    np.testing.assert_array_equal(drawn, np.kron(values, np.ones((8, 8), np.float32)))


@pytest.mark.parametrize("box", [WHOLE, (0.2, 0.0, 0.83, 1.0), (0.0, -0.31, 1.0, 1.3)])
def test_a_smooth_field_is_bilinear_between_the_centres_of_its_pixels(box: Box) -> None:
    """Pixel by pixel by the formula; beyond the outermost centres the value stays."""
    values = np.random.default_rng(4).random((9, 9)).astype(np.float32)
    shape = (90, 130, 3)
    drawn = field_on(values, Canvas("k", box), shape)
    rows, columns = seen_part(box, shape)
    for row in range(rows.start, rows.stop, 7):
        for column in range(columns.start, columns.stop, 7):
            y = ((row + 0.5) / shape[0] - box[1]) / (box[3] - box[1]) * 9 - 0.5
            x = ((column + 0.5) / shape[1] - box[0]) / (box[2] - box[0]) * 9 - 0.5
            y, x = min(max(y, 0), 8), min(max(x, 0), 8)
            i, j = min(int(y), 7), min(int(x), 7)
            v, u = y - i, x - j
            expected = (1 - v) * ((1 - u) * values[i, j] + u * values[i, j + 1]) + v * (
                (1 - u) * values[i + 1, j] + u * values[i + 1, j + 1]
            )
            assert drawn[row - rows.start, column - columns.start] == pytest.approx(expected, abs=1e-4)


def test_an_even_field_stays_even_up_to_every_edge() -> None:
    for framing in FRAMINGS.values():
        for height, width in SIZES:
            box = framing.box(height, width, SIDE)
            drawn = field_on(np.full((SIDE, SIDE), 0.7, np.float32), Canvas("k", box), (300, 500, 3))
            np.testing.assert_allclose(drawn, 0.7, atol=1e-6)


@pytest.mark.parametrize("style", ["heat", "contour", "mask", "top_share"])
@pytest.mark.parametrize("base", ["colour", "grey"])
@pytest.mark.parametrize("box", [(0.2, 0.0, 0.8, 1.0), (0.0, -0.25, 1.0, 1.25)])
def test_every_style_is_drawn_inside_the_box_alone(style: Any, base: Any, box: Box) -> None:
    shown = shown_picture(noise(300, 500), box, 320, "smooth")
    rows, columns = np.mgrid[:SIDE, :SIDE] / SIDE
    made = made_of(np.exp(-((rows - 0.5) ** 2 + (columns - 0.4) ** 2) * 20))
    recipe = RenderSpec(style=style, base=base)
    below = grey(shown) if base == "grey" else shown
    for picture in (shown, tile(shown, recipe)):
        drawn = drawn_on(picture, made, recipe, Canvas("k", box))
        below = grey(picture) if base == "grey" else picture
        outside = np.ones(picture.shape[:2], bool)
        outside[seen_part(box, picture.shape)] = False
        assert drawn.shape == picture.shape and (drawn[~outside] != below[~outside]).any()
        np.testing.assert_array_equal(drawn[outside], below[outside])


def test_the_share_that_stays_is_one_of_the_network_s_pixels() -> None:
    shown = shown_picture(noise(300, 500), WHOLE, 640, "smooth")
    recipe = RenderSpec(style="top_share", top_share=0.25)
    made = made_of(np.arange(64.0).reshape(8, 8))
    drawn = drawn_on(shown, made, recipe, Canvas("k", interpolation="pixelated"))
    # Values grow row by row: the lowest two of eight rows stay.
    np.testing.assert_array_equal(drawn[288:], shown[288:])
    assert (drawn[:288] != shown[:288]).any(axis=2).mean() > 0.95


def test_on_a_whole_box_of_the_view_s_size_it_is_drawn_as_before() -> None:
    view, made = noise(SIDE, SIDE), made_of(np.random.default_rng(6).random((SIDE, SIDE)))
    for recipe in (RenderSpec(), RenderSpec(style="contour"), RenderSpec(base="grey")):
        expected = paint_field(view, drawn_field(made, recipe), recipe)
        np.testing.assert_array_equal(drawn_on(view, made, recipe, Canvas("k")), expected)


def test_a_region_is_found_where_it_lies_in_the_original() -> None:
    original = np.zeros((300, 500, 3), np.uint8)
    original[60:240, 180:330] = 255
    for framing in FRAMINGS.values():
        box = framing.box(300, 500, SIDE)
        region = framing.view(original, SIDE)[..., 0] >= 128
        placed = region_on(region, Canvas("k", box), (384, 640, 3))
        truth = np.asarray(Image.fromarray(original).resize((640, 384)))[..., 0] >= 128
        assert (placed & truth).sum() / (placed | truth).sum() > 0.93


def test_a_map_of_another_grid_is_refused() -> None:
    with pytest.raises(ShapeMismatch, match=r"\(8, 8\) pixels and the network's view \(64, 64\)"):
        view_placement.check_fits(made_of(np.zeros((8, 8))), noise(SIDE, SIDE))


def test_a_very_long_picture_keeps_a_row() -> None:
    shown = shown_picture(noise(2, 900), (0.4, 0, 0.401, 1), 128, "smooth")
    assert shown.shape == (1, 128, 3)
    assert drawn_on(shown, bright(0, 0), RenderSpec(), Canvas("k", (0.4, 0, 0.401, 1))).shape == shown.shape


def test_what_people_see_is_in_the_picture_s_key_and_not_in_the_map_s() -> None:
    plain = StimulusSpec("a" * 64, "b" * 64, "", 1, Component("saliency"), 2, 7, RenderSpec())
    on = [
        Canvas("c" * 64),
        Canvas("d" * 64),
        Canvas("c" * 64, (0.1, 0, 0.9, 1)),
        Canvas("c" * 64, interpolation="pixelated"),
    ]
    specs = [plain, *(StimulusSpec(**{**vars_of(plain), "canvas": view_placement}) for view_placement in on)]
    assert len({spec.picture_key for spec in specs}) == 5
    assert len({spec.attribution_key for spec in specs}) == 1
    assert all(StimulusSpec.from_json(spec.as_json()) == spec for spec in specs)
    assert "canvas" not in plain.as_json()


def vars_of(made: StimulusSpec) -> dict[str, Any]:
    return {name: getattr(made, name) for name in StimulusSpec.__dataclass_fields__}
