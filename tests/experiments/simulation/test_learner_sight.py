"""What the observer takes from pictures: features that mean what they say, heat as it was drawn."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from experiments.simulation.browser.picture_cache import Album
from experiments.simulation.looking import perceive
from experiments.simulation.sight import (
    CELLS,
    FEATURES,
    GRID,
    PATCHES,
    SCALES,
    Percept,
    attention_of,
    patch_features,
    read_heat,
    squared,
)
from stimuli.errors import ShapeMismatch
from stimuli.render.heatmap import paint_field
from stimuli.render.png import decode, encode
from stimuli.render.recipe import Canvas, RenderSpec
from stimuli.render.view_placement import drawn_on, shown_picture
from stimuli.store.png_padding import pad_png
from stimuli.types import Box, PixelAttribution, Pixels

pytestmark = pytest.mark.pure


def meadow(seed: int, side: int = 160) -> Pixels:
    noise = gaussian_filter(np.random.default_rng(seed).random((side, side, 3)), (3, 3, 0))
    return np.asarray(np.clip(noise * 4 - 1.5, 0, 1) * 255, dtype=np.uint8)


def hill(seed: int, side: int = 160) -> NDArray[np.float32]:
    heat = gaussian_filter(np.random.default_rng(seed).random((side, side)), side / 20)
    return np.asarray((heat - heat.min()) / (heat.max() - heat.min()), dtype=np.float32)


def cells(heat: NDArray[np.float32]) -> NDArray[np.float32]:
    side = heat.shape[0] // CELLS
    return np.asarray(heat.reshape(CELLS, side, CELLS, side).mean(axis=(1, 3)), dtype=np.float32)


def feature(picture: Pixels, name: str) -> float:
    return float(patch_features(picture)[:, FEATURES.index(name)].mean())


def stripes(angle: float) -> Pixels:
    y, x = np.mgrid[:160, :160]
    turn = np.deg2rad(angle)
    wave = 0.5 + 0.5 * np.sin((np.cos(turn) * x + np.sin(turn) * y) / 2)
    return np.repeat((wave * 255).astype(np.uint8)[..., None], 3, axis=2)


def test_it_sees_plain_colours_as_they_are() -> None:
    red = np.full((160, 160, 3), (200, 50, 50), np.uint8)
    features = patch_features(red)
    assert features.shape == (PATCHES, len(FEATURES))
    expected = [300 / 765, 150 / 255, (50 - 125) / 255, *[0.0] * 7]
    assert features == pytest.approx(np.tile(expected, (PATCHES, 1)), abs=1e-3)


@pytest.mark.parametrize("angle", [0, 45, 90, 135])
def test_it_sees_which_way_edges_run(angle: int) -> None:
    strengths = {a: feature(stripes(angle), f"edge_{a}") for a in (0, 45, 90, 135)}
    assert max(strengths, key=lambda a: strengths[a]) == angle


def test_it_sees_corners_apart_from_edges() -> None:
    squares = (np.indices((160, 160)) // 4).sum(axis=0) % 2
    chequered = np.repeat((squares * 255).astype(np.uint8)[..., None], 3, axis=2)
    assert feature(chequered, "junctions") > 5 * feature(stripes(0), "junctions")


@pytest.mark.parametrize("side", [96, 160, 224])
def test_it_sees_the_same_at_other_sizes(side: int) -> None:
    picture = np.full((side, side, 3), 40, np.uint8)
    picture[:, side // 2 :] = 220
    light = patch_features(picture)[:, 0].reshape(GRID, GRID)
    assert light[:, :4] == pytest.approx(40 / 255, abs=0.01)
    assert light[:, 6:] == pytest.approx(220 / 255, abs=0.01)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("alpha", [0.3, 0.55, 0.8])
def test_it_reads_the_heat_that_was_drawn(scale: str, alpha: float) -> None:
    picture, heat = meadow(1), hill(2)
    spec = RenderSpec(colormap=scale, alpha=alpha)  # type: ignore[arg-type]
    recovered = read_heat(picture, paint_field(picture, heat, spec))
    assert recovered is not None
    assert np.corrcoef(recovered.ravel(), cells(heat).ravel())[0, 1] > 0.98


def test_it_reads_a_plain_blend_as_well() -> None:
    picture, heat = meadow(3), hill(4)
    grey = heat[..., None] * np.array([253, 231, 37]) + (1 - heat[..., None]) * np.array([68, 1, 84])
    blend = np.rint(0.5 * picture + 0.5 * grey).astype(np.uint8)
    recovered = read_heat(picture, blend)
    assert recovered is not None
    assert np.corrcoef(recovered.ravel(), cells(heat).ravel())[0, 1] > 0.8


def test_it_attends_evenly_where_nothing_is_shown_or_said() -> None:
    picture = meadow(5)
    assert perceive(picture).attention is None
    assert perceive(picture, picture).attention is None
    flat = paint_field(picture, np.full((160, 160), 0.5, np.float32), RenderSpec())
    assert perceive(picture, flat).attention is None
    assert perceive(picture).where() == pytest.approx(np.full(PATCHES, 0.01))


def test_it_attends_where_it_is_bright() -> None:
    heat = np.zeros((CELLS, CELLS), np.float32)
    heat[:8, :8] = 1
    attention = attention_of(heat)
    assert attention is not None
    assert attention.sum() == pytest.approx(1)
    assert attention.reshape(GRID, GRID)[:2, :2].sum() == pytest.approx(1)


BOXES = [(0.1875, 0.0, 0.8125, 1.0), (0.0, 0.0, 1.0, 1.0), (0.0, -0.3, 1.0, 1.3)]


@pytest.mark.parametrize("box", BOXES)
def test_it_reads_heat_on_pictures_that_are_not_square(box: Box) -> None:
    """What it reads lies where it was drawn: in the square that the page keeps for a picture, on the view."""
    original = shown_picture(meadow(4, 640)[:400], box, 640, "smooth")
    field = hill(6, 64)
    overlay = drawn_on(
        original, PixelAttribution(field, False), RenderSpec(clip_low=0, clip_high=100), Canvas("k", box)
    )
    heat = read_heat(original, overlay)
    assert heat is not None
    left, top, right, bottom = box
    y, x = (np.mgrid[:CELLS, :CELLS] + 0.5) / CELLS
    # Shares of the picture, which stands in the middle of its square: 400 of 640 rows.
    down = (y - 120 / 640) * 640 / 400
    inside = (down > max(0, top)) & (down < min(1, bottom)) & (x > left) & (x < right)
    # Cells on the edge are half one, half the other: they may be read either way.
    edge, high = 1 / CELLS, 640 / 400 / CELLS
    near = (
        (down > max(0, top) - high) & (down < min(1, bottom) + high) & (x > left - edge) & (x < right + edge)
    )
    rows = np.clip((down - top) / (bottom - top) * 64, 0, 63).astype(int)
    columns = np.clip((x - left) / (right - left) * 64, 0, 63).astype(int)
    assert np.corrcoef(heat[inside], field[rows, columns][inside])[0, 1] > 0.95
    assert not heat[~near].any() and (~near).any()


def test_it_sees_a_picture_that_is_not_square_undistorted() -> None:
    wide = meadow(5, 160)[30:130]
    framed = np.full((160, 160, 3), 236, np.uint8)
    framed[30:130] = wide
    np.testing.assert_array_equal(squared(wide), framed)
    np.testing.assert_array_equal(patch_features(wide), patch_features(framed))
    assert squared(framed) is framed


def test_it_refuses_pictures_of_two_sizes() -> None:
    with pytest.raises(ValueError, match="differ in size"):
        read_heat(meadow(1, 160), meadow(1, 96))


def test_it_reads_a_file_once_and_the_same() -> None:
    picture, heat = meadow(6), hill(7)
    drawn = paint_field(picture, heat, RenderSpec())
    album = Album()
    first = album.percept(encode(picture), encode(drawn))
    seeds = bytes(32), bytes(31) + b"1"
    again = album.percept(
        *(pad_png(encode(seen), seed, 99_999) for seen, seed in zip((picture, drawn), seeds, strict=True))
    )
    direct = perceive(picture, drawn)
    assert again.features is first.features
    assert np.array_equal(first.features, direct.features)
    assert np.array_equal(first.where(), direct.where())
    assert album.percept(encode(picture)).attention is None


def test_people_who_look_at_the_same_moment_wait_for_one_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    album, file, together = Album(), encode(meadow(6)), Barrier(3)
    begun, asked, read = Event(), Event(), list[bytes]()

    def decoded(content: bytes) -> Pixels:
        read.append(content)
        begun.set()
        asked.wait()
        return decode(content)

    def look() -> Percept:
        if together.wait() == 0:
            begun.wait()
            asked.set()
        return album.percept(file)

    monkeypatch.setattr("experiments.simulation.browser.picture_cache.decode", decoded)
    with ThreadPoolExecutor(3) as people:
        seen = [person.result() for person in [people.submit(look) for _ in range(3)]]
    assert read == [file] and all(percept is seen[0] for percept in seen)


def test_a_file_that_could_not_be_read_is_tried_again() -> None:
    album = Album()
    for _ in range(2):
        with pytest.raises(ShapeMismatch, match="cannot be read"):
            album.percept(b"no picture")
    assert album.percept(encode(meadow(6))).attention is None


def test_it_forgets_the_oldest_file() -> None:
    album = Album(kept=1)
    first = album.percept(encode(meadow(8)))
    album.percept(encode(meadow(9)))
    assert album.percept(encode(meadow(8))).features is not first.features
