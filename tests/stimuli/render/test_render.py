"""Overlays: aligned to the pixel, one recipe, one even colour if nothing differs; files with pixels only."""

import struct

import numpy as np
import pytest
from matplotlib import colormaps
from numpy.typing import NDArray
from skimage.color import rgb2lab

from stimuli.errors import ShapeMismatch
from stimuli.render import heatmap, png
from stimuli.render.recipe import SEQUENTIAL, Base, Colormap, Opacity, RenderSpec, Sign, Style
from stimuli.types import PixelAttribution, Pixels
from tests.stimuli.material import strengths

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


@pytest.mark.parametrize("base", ["colour", "grey"])
def test_it_colours_exactly_the_pixels_that_matter(base: Base) -> None:
    ground = np.full((40, 50, 3), 128, np.uint8)
    values = np.zeros((40, 50), np.float32)
    values[7, 31] = 1
    drawn = heatmap.overlay(ground, strengths(values), RenderSpec(clip_low=0, clip_high=100, base=base))
    different = np.argwhere((drawn != drawn[0, 0]).any(2))
    np.testing.assert_array_equal(different, [[7, 31]])


def test_it_follows_the_declared_formula() -> None:
    ground, values = picture(), ramp()
    row, column = 33, 71
    v = float(values[row, column])
    colour = np.array(colormaps["magma"](round(v * 255))[:3]) * 255
    laws: dict[Opacity, float] = {"constant": 0.6, "rising": 0.6 * (0.25 + 0.75 * v)}
    for opacity, covered in laws.items():
        spec = RenderSpec(
            colormap="magma", alpha=0.6, clip_low=0, clip_high=100, sign="magnitude", opacity=opacity
        )
        expected = ground[row, column] * (1 - covered) + colour * covered
        drawn = heatmap.overlay(ground, strengths(values), spec)
        np.testing.assert_allclose(drawn[row, column], expected, atol=1)


def test_it_covers_every_place_alike() -> None:
    """Under one opacity the picture is as visible where much matters as where little does."""
    light, dark = np.full((60, 90, 3), 250, np.uint8), np.full((60, 90, 3), 10, np.uint8)
    made, spec = strengths(ramp()), RenderSpec(alpha=0.6)
    apart = heatmap.overlay(light, made, spec).astype(int) - heatmap.overlay(dark, made, spec)
    assert np.abs(apart - 0.4 * 240).max() <= 1


def test_it_greys_a_picture_at_its_own_lightness() -> None:
    """Against scikit-image's CIELAB, whose lightness is a function of luminance alone."""
    plain = heatmap.grey(picture())
    assert (plain[..., 0] == plain[..., 1]).all() and (plain[..., 0] == plain[..., 2]).all()
    apart = rgb2lab(plain)[..., 0] - rgb2lab(picture())[..., 0]
    assert np.abs(apart).max() < 0.35  # half a level of grey


def test_it_draws_lines_where_strength_passes_a_level() -> None:
    ground = np.full((200, 200, 3), 90, np.uint8)
    columns = np.broadcast_to(np.linspace(0, 1, 200, dtype=np.float32), (200, 200))
    drawn = heatmap.overlay(
        ground, strengths(columns), RenderSpec(style="contour", clip_low=0, clip_high=100)
    )
    touched = np.flatnonzero((drawn[100] != 90).any(1))
    assert [int(touched[np.abs(touched - at).argmin()]) for at in (50, 100, 150)] == [50, 100, 150]
    assert len(touched) < 20 and (drawn == drawn[:1]).all()


@pytest.mark.parametrize("ground", [0, 60, 128, 200, 255])
@pytest.mark.parametrize("colormap", ["viridis", "inferno", "gray", "PuOr_r"])
def test_it_draws_lines_that_show_on_every_ground(ground: int, colormap: Colormap) -> None:
    """Each line crosses at least 25 units of CIELAB's lightness against a ground of one grey."""
    sign: Sign = "diverging" if colormap == "PuOr_r" else "positive"
    spec = RenderSpec(style="contour", clip_low=0, clip_high=100, sign=sign, colormap=colormap)
    columns = np.broadcast_to(np.linspace(0, 1, 320, dtype=np.float32), (320, 320))
    drawn = heatmap.paint_field(np.full((320, 320, 3), ground, np.uint8), columns, spec)
    apart = np.abs(rgb2lab(drawn[100])[:, 0] - rgb2lab(np.full((1, 3), ground, np.uint8))[0, 0])
    for at in (80, 160, 240):
        assert apart[at - 8 : at + 8].max() > 25


def test_it_draws_wider_lines_where_strength_is_higher() -> None:
    columns = np.broadcast_to(np.linspace(0, 1, 1280, dtype=np.float32), (16, 1280))
    drawn = heatmap.paint_field(np.full((16, 1280, 3), 90, np.uint8), columns, RenderSpec(style="contour"))
    touched = (drawn[8] != 90).any(1)
    widths = [int(touched[at - 60 : at + 60].sum()) for at in (320, 640, 960)]
    assert widths[0] < widths[1] < widths[2]


def test_it_names_the_drawing_of_lines_in_their_keys_alone() -> None:
    lined = RenderSpec(style="contour")
    assert "lines" in lined.as_json() and RenderSpec.from_json(lined.as_json()) == lined
    assert not any("lines" in RenderSpec(style=style).as_json() for style in ("heat", "mask", "top_share"))


def test_it_shows_the_picture_where_it_matters() -> None:
    ground, values = picture(), np.zeros((60, 90), np.float32)
    values[:, :9] = ramp(60, 9) + 1
    shown = heatmap.overlay(ground, strengths(values), RenderSpec(style="top_share", top_share=0.1))
    np.testing.assert_array_equal(shown[:, :9], ground[:, :9])
    rest = np.abs(shown[:, 9:].astype(int) - heatmap.VEIL)
    assert (rest <= 0.15 * np.abs(ground[:, 9:].astype(int) - heatmap.VEIL) + 1).all()
    masked = heatmap.overlay(ground, strengths(values), RenderSpec(style="mask"))
    np.testing.assert_array_equal(masked[:, 9:], shown[:, 9:])


def test_it_marks_as_many_pixels_of_every_map_and_none_of_an_empty_one() -> None:
    for values in (ramp(), np.asarray(np.round(ramp() * 3) / 3, np.float32)):
        assert heatmap.top_places(values, 0.1).sum() == round(0.1 * values.size)
    assert heatmap.top_places(np.zeros((60, 90), np.float32), 0.1).sum() == 0


@pytest.mark.parametrize("style", ["heat", "contour", "mask", "top_share"])
@pytest.mark.parametrize("value", [0.0, 3.7])
def test_it_draws_a_constant_map_as_no_difference(value: float, style: Style) -> None:
    ground = np.full((40, 50, 3), 200, np.uint8)
    drawn = heatmap.overlay(ground, strengths(np.full((40, 50), value, np.float32)), RenderSpec(style=style))
    assert (drawn == drawn[0, 0]).all()


def test_it_gives_zero_one_colour_in_every_diverging_picture() -> None:
    spec = RenderSpec(colormap="PuOr_r", sign="diverging", alpha=1.0)
    white = np.full((60, 90, 3), 255, np.uint8)
    seen = set()
    for low, high in ((-1, 1), (-0.2, 1), (-3, 0.5)):
        values = np.linspace(low, high, 60 * 90, dtype=np.float32).reshape(60, 90)
        values[30] = 0
        drawn = heatmap.overlay(white, PixelAttribution(values, signed=True), spec)
        assert (drawn[30] == drawn[30, 0]).all()
        seen.add(tuple(int(level) for level in drawn[30, 0]))
    assert len(seen) == 1
    [zero] = seen
    assert min(zero) > 240, "the palette's neutral middle"


def test_it_refuses_a_map_of_another_size() -> None:
    with pytest.raises(ShapeMismatch, match="network's own view"):
        heatmap.overlay(picture(), strengths(ramp(30, 45)), SPEC)


@pytest.mark.parametrize("name", SEQUENTIAL)
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
    assert heatmap.overlay_tile(base, strengths(values), SPEC).shape == (*size, 3)


def test_it_aligns_tiles_with_pictures() -> None:
    base = np.full((80, 80, 3), 128, np.uint8)
    values = np.zeros((80, 80), np.float32)
    values[20:30, 60:70] = 1
    tile = heatmap.overlay_tile(base, strengths(values), SPEC).astype(int)
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
