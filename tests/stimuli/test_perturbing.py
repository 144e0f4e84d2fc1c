"""PASTA's perturbations and the search for those that keep or spoil a prediction."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageEnhance, ImageFilter, ImageOps

from stimuli.errors import BadSpec, ShapeMismatch
from stimuli.perturbing.perturbations import PERTURBATIONS, perturb_picture
from stimuli.perturbing.search import Search, SearchResult, drawn_order, largest_light, smallest_strong
from stimuli.planner.values import counted_generator
from stimuli.types import Pixels

pytestmark = pytest.mark.pure
MAGNITUDES = tuple(range(11))
MOVING = {"random_resized_crop", "random_perspective"}


def picture(height: int = 48, width: int = 64, seed: int = 2) -> Pixels:
    """Clouds of all values and colours, with edges."""
    draws = np.random.default_rng(seed)
    small = Image.fromarray(draws.integers(0, 256, (7, 9, 3), dtype=np.uint8))
    pixels = np.asarray(small.resize((width, height), Image.Resampling.BICUBIC)).copy()
    pixels[height // 4 : height // 2, width // 5 : width // 2] = (250, 20, 90)
    return pixels


def run(name: str, magnitude: float, view: Pixels | None = None, key: str = "k", seed: int = 1) -> Pixels:
    return perturb_picture(picture() if view is None else view, name, magnitude, key=key, seed=seed)


def change(first: Pixels, other: Pixels) -> float:
    return float(np.abs(first.astype(float) - other).mean())


def test_it_offers_the_twelve_of_pasta() -> None:
    assert list(PERTURBATIONS) == [
        "brightness_jitter",
        "contrast_jitter",
        "random_resized_crop",
        "gaussian_blur",
        "random_perspective",
        "brightness",
        "saturation",
        "contrast",
        "sharpness",
        "posterise",
        "solarise",
        "random_rectangles",
    ]


@pytest.mark.parametrize("name", PERTURBATIONS)
def test_it_leaves_the_picture_alone_at_magnitude_0(name: str) -> None:
    view = picture()
    np.testing.assert_array_equal(run(name, 0, view), view)
    draws = counted_generator("any")
    np.testing.assert_array_equal(PERTURBATIONS[name](view, 0.0, draws), view)


@pytest.mark.parametrize("name", PERTURBATIONS)
def test_it_keeps_size_kind_and_the_given_picture(name: str) -> None:
    view = picture(37, 53)
    before = view.copy()
    changed = run(name, 7, view)
    assert changed.shape == view.shape and changed.dtype == np.uint8
    assert changed.base is None or changed.base is not view
    np.testing.assert_array_equal(view, before)
    assert not np.array_equal(changed, view)


@pytest.mark.parametrize("name", PERTURBATIONS)
@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (8, 2), (3, 3)])
def test_it_takes_tiny_pictures(name: str, shape: tuple[int, int]) -> None:
    view = np.random.default_rng(3).integers(0, 256, (*shape, 3), dtype=np.uint8)
    assert run(name, 10, view).shape == view.shape


@pytest.mark.parametrize("name", sorted(set(PERTURBATIONS) - MOVING))
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_it_changes_more_with_the_magnitude(name: str, seed: int) -> None:
    view = picture(seed=seed)
    changes = [change(run(name, magnitude, view, seed=seed), view) for magnitude in np.linspace(0, 10, 41)]
    assert (np.diff(changes) >= 0).all(), changes
    assert changes[-1] > 3


@pytest.mark.parametrize("name", sorted(MOVING))
def test_it_changes_more_on_the_whole_where_pixels_move(name: str) -> None:
    """Far displacements all look alike wrong, so this holds for the mean over draws, up to a saturation."""
    changes = np.mean(
        [
            [
                change(run(name, magnitude, picture(seed=seed), seed=seed), picture(seed=seed))
                for magnitude in MAGNITUDES
            ]
            for seed in range(30)
        ],
        axis=0,
    )
    assert (np.diff(changes[:7]) > 0).all()
    assert (np.diff(changes) > -1).all() and changes[-1] > 3 * changes[1]


def within_one(pixels: Pixels, expected: Image.Image) -> None:
    """Pillow cuts decimals off, we round them."""
    assert np.abs(pixels.astype(int) - np.asarray(expected)).max() <= 1


@pytest.mark.parametrize("magnitude", [0.5, 3, 7, 10])
def test_it_enhances_as_pillow_does(magnitude: float) -> None:
    view, s = picture(), magnitude / 10
    image = Image.fromarray(view)
    within_one(run("brightness", magnitude), ImageEnhance.Brightness(image).enhance(1 + 0.9 * s))
    within_one(run("contrast", magnitude), ImageEnhance.Contrast(image).enhance(1 - 0.9 * s))
    within_one(run("saturation", magnitude), ImageEnhance.Color(image).enhance(1 - s))


@pytest.mark.parametrize("magnitude", [0.5, 3, 7, 10])
def test_it_sharpens_as_pillow_does(magnitude: float) -> None:
    """A rounding of the smoothed picture by one level counts as often as the factor says."""
    expected = ImageEnhance.Sharpness(Image.fromarray(picture())).enhance(1 + 0.9 * magnitude)
    off = np.abs(run("sharpness", magnitude).astype(int) - np.asarray(expected))
    assert off.max() <= 1 + 0.9 * magnitude and (off > 1).mean() < 0.05


@pytest.mark.parametrize(("magnitude", "bits"), [(1, 7), (3, 6), (5, 4), (7, 3), (10, 1)])
def test_it_posterises_as_pillow_does(magnitude: float, bits: int) -> None:
    expected = ImageOps.posterize(Image.fromarray(picture()), bits)
    np.testing.assert_array_equal(run("posterise", magnitude), np.asarray(expected))


@pytest.mark.parametrize(("magnitude", "threshold"), [(1, 254), (5, 192), (7, 131), (10, 0)])
def test_it_solarises_as_pillow_does(magnitude: float, threshold: int) -> None:
    expected = ImageOps.solarize(Image.fromarray(picture()), threshold)
    np.testing.assert_array_equal(run("solarise", magnitude), np.asarray(expected))


@pytest.mark.parametrize("name", ["brightness_jitter", "contrast_jitter"])
def test_it_jitters_both_ways_within_the_limits(name: str) -> None:
    """On a picture of two greys around 60 the factor can be read off the picture."""
    view = np.full((2, 2, 3), 40, np.uint8)
    view[0] = 80
    centre = 60 if name == "contrast_jitter" else 0
    factors = [
        (float(run(name, 5, view, seed=seed)[0, 0, 0]) - centre) / (80 - centre) for seed in range(200)
    ]
    sizes = np.abs(np.array(factors) - 1)
    assert 0.2 < sizes.min() < 0.26 and 0.42 < sizes.max() < 0.48
    assert 70 < np.sum(np.array(factors) > 1) < 130


def test_it_blurs_by_a_gaussian_of_fifteen_pixels() -> None:
    """A single point becomes the outer product of the window with itself."""
    view = np.zeros((41, 41, 3), np.uint8)
    view[20, 20] = 255
    places = np.arange(-7, 8)
    window = np.exp(-0.5 * (places / 3.0) ** 2)
    window /= window.sum()
    expected = np.zeros((41, 41))
    expected[13:28, 13:28] = 255 * np.outer(window, window)
    np.testing.assert_allclose(run("gaussian_blur", 5, view)[..., 1], expected, atol=0.5001)


def test_it_blurs_like_pillow_in_the_middle() -> None:
    view = picture(96, 96)
    expected = np.asarray(Image.fromarray(view).filter(ImageFilter.GaussianBlur(1.2)), float)
    off = np.abs(run("gaussian_blur", 2, view) - expected)[8:-8, 8:-8]
    assert off.mean() < 1


def test_it_crops_inside_the_picture() -> None:
    """Coordinates as colours: what a pixel shows says where it came from."""
    for seed in range(40):
        rows, columns = sources("random_resized_crop", 7, seed)
        # Bilinear enlarging shows centres of pixels, never more than the picture has.
        assert (np.diff(columns, axis=1) >= 0).all() and (np.diff(rows, axis=0) >= 0).all()
        seen_x, seen_y = np.ptp(columns) / 63, np.ptp(rows) / 63
        share = 1 - 0.7 * 0.7
        assert seen_x * seen_y == pytest.approx(share**2, rel=0.15)
        assert 3 / 4 < seen_x / seen_y < 4 / 3


def test_it_crops_at_many_places() -> None:
    lefts = [sources("random_resized_crop", 7, seed)[1].min() for seed in range(60)]
    assert min(lefts) < 4 and max(lefts) > 20


def test_it_slants_inside_the_picture() -> None:
    """Straight lines stay straight, corners come from near their corner, and no border is invented."""
    for seed in range(40):
        rows, columns = sources("random_perspective", 10, seed)
        for at, (row, column) in {
            (0, 0): (0, 0),
            (0, -1): (0, 63),
            (-1, 0): (63, 0),
            (-1, -1): (63, 63),
        }.items():
            away = abs(rows[at] - row), abs(columns[at] - column)
            assert all(0.03 * 63 - 2 <= distance <= 0.35 * 64 + 2 for distance in away), (seed, at, away)
        white = np.full((64, 64, 3), 255, np.uint8)
        inner = run("random_perspective", 10, white, seed=seed)[1:-1, 1:-1]
        assert (inner == 255).all()


def sources(name: str, magnitude: float, seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Per pixel of the result the row and column of a 64 x 64 picture that it shows."""
    view = np.zeros((64, 64, 3), np.uint8)
    view[..., 0], view[..., 1] = 4 * np.arange(64)[:, None], 4 * np.arange(64)[None]
    changed = run(name, magnitude, view, seed=seed).astype(float) / 4
    return changed[..., 0], changed[..., 1]


def test_it_covers_growing_rectangles() -> None:
    view = np.full((100, 120, 3), 200, np.uint8)
    covered = [run("random_rectangles", magnitude, view)[..., 0] == 0 for magnitude in MAGNITUDES]
    assert set(np.unique(run("random_rectangles", 7, view))) == {0, 200}
    for smaller, larger in zip(covered, covered[1:], strict=False):
        assert (larger | ~smaller).all()
    assert 0.1 < covered[7].mean() < 0.5


def test_it_draws_from_key_seed_and_name_alone() -> None:
    drawn = [name for name in PERTURBATIONS if name.startswith("random") or "jitter" in name]
    for name in drawn:
        again = run(name, 7, key="other")
        np.testing.assert_array_equal(run(name, 7, key="other"), again)
        kinds = {run(name, 7, key=key, seed=seed).tobytes() for key in "ab" for seed in range(4)}
        assert len(kinds) >= 6
    for name in set(PERTURBATIONS) - set(drawn):
        np.testing.assert_array_equal(run(name, 7, key="a"), run(name, 7, key="b", seed=9))


def test_it_makes_the_same_pictures_in_another_process() -> None:
    program = (
        "import hashlib, sys\n"
        "from tests.stimuli.test_perturbing import run\n"
        "from stimuli.perturbing.perturbations import PERTURBATIONS\n"
        "for name in PERTURBATIONS: print(hashlib.sha256(run(name, 7).tobytes()).hexdigest())\n"
        "print('torch' in sys.modules)\n"
    )
    import hashlib

    lines = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()
    expected = [hashlib.sha256(run(name, 7).tobytes()).hexdigest() for name in PERTURBATIONS]
    assert lines == [*expected, "False"]


@pytest.mark.parametrize("magnitude", [-0.1, 10.5, float("nan")])
def test_it_refuses_other_magnitudes(magnitude: float) -> None:
    with pytest.raises(BadSpec, match="between 0 and 10"):
        run("contrast", magnitude)


def test_it_refuses_unknown_names_and_other_shapes() -> None:
    with pytest.raises(BadSpec, match="known are brightness_jitter, "):
        run("rotation", 3)
    with pytest.raises(ShapeMismatch):
        run("contrast", 3, np.zeros((4, 4), np.uint8))


def bright(
    threshold: float, calls: list[int] | None = None
) -> Callable[[NDArray[np.uint8]], NDArray[np.int64]]:
    """Label 1 for views whose mean value is above the threshold."""

    def predicts(views: NDArray[np.uint8]) -> NDArray[np.int64]:
        if calls is not None:
            calls.append(len(views))
        return np.asarray(views.reshape(len(views), -1).mean(1) > threshold, np.int64)

    return predicts


GREY = np.full((16, 16, 3), 100, np.uint8)
BRIGHTER = Search(names=("brightness",))
"""On the grey picture `brightness` at magnitude m makes the value 100 + 9 m."""


@pytest.mark.parametrize(("threshold", "magnitude"), [(110, 1), (120, 2), (130, 3), (144.5, 4), (200, 5)])
def test_it_finds_the_largest_light_one_that_keeps(threshold: float, magnitude: float) -> None:
    result = largest_light(GREY, bright(threshold), key="k", seed=1, search=BRIGHTER)
    assert (result.perturbation, result.magnitude) == ("brightness", magnitude)
    assert result.view is not None and (result.view == 100 + 9 * magnitude).all()
    assert result.original == result.label == 0 and not result.reason


@pytest.mark.parametrize(("threshold", "magnitude"), [(150, 6), (155, 7), (163.5, 8), (172.5, 9), (185, 10)])
def test_it_finds_the_smallest_strong_one_that_spoils(threshold: float, magnitude: float) -> None:
    result = smallest_strong(GREY, bright(threshold), key="k", seed=1, search=BRIGHTER)
    assert (result.perturbation, result.magnitude) == ("brightness", magnitude)
    assert result.view is not None and (result.view == 100 + 9 * magnitude).all()
    assert (result.original, result.label) == (0, 1)


def test_it_says_why_there_is_none() -> None:
    never = smallest_strong(GREY, bright(300), key="k", seed=1)
    assert never.view is None and never.perturbation == ""
    assert never.reason == "none of 12 perturbations at magnitudes 6 to 10 changes the prediction"
    always = largest_light(GREY, bright(101), key="k", seed=1, search=BRIGHTER)
    assert always.view is None and always.reason.endswith("at magnitudes 1 to 5 keeps the prediction")


def test_it_does_not_count_what_changes_nothing() -> None:
    """A grey picture has no saturation to lose and no sharpness to gain."""
    result = largest_light(
        GREY, bright(300), key="k", seed=1, search=Search(names=("saturation", "sharpness", "gaussian_blur"))
    )
    assert result.view is None and result.tried == 0


def test_it_takes_the_extreme_over_all_or_the_first_drawn() -> None:
    names = ("brightness", "posterise")
    # 100 is 96 with five bits (magnitude 5: four bits kept, 96) and never above 120.
    predicts = bright(120)
    for seed in range(6):
        both = largest_light(GREY, predicts, key="k", seed=seed, search=Search(names=names))
        assert (both.perturbation, both.magnitude) == ("posterise", 5)
        first = largest_light(GREY, predicts, key="k", seed=seed, search=Search(names=names, rule="drawn"))
        expected = {"brightness": 2.0, "posterise": 5.0}
        assert first.perturbation == drawn_order(names, "k", seed)[0]
        assert first.magnitude == expected[first.perturbation] and first.rule == "drawn"


def test_it_agrees_with_a_plain_search() -> None:
    """Every candidate one by one, for a predictor that is not monotone."""

    def predicts(views: NDArray[np.uint8]) -> list[int]:
        return [int(view.astype(int).sum()) % 3 for view in views]

    for seed in range(8):
        view = picture(20, 20, seed)
        original = predicts(view[None])[0]
        for look, magnitudes, keeps in (
            (largest_light, (5, 4, 3, 2, 1), True),
            (smallest_strong, (6, 7, 8, 9, 10), False),
        ):
            result: SearchResult = look(view, predicts, key="k", seed=seed)
            expected = next(
                (name, float(magnitude))
                for magnitude in magnitudes
                for name in drawn_order(tuple(PERTURBATIONS), "k", seed)
                if (predicts(run(name, magnitude, view, seed=seed)[None])[0] == original) is keeps
                and not np.array_equal(run(name, magnitude, view, seed=seed), view)
            )
            assert (result.perturbation, result.magnitude) == expected


def test_it_varies_the_perturbation_from_picture_to_picture() -> None:
    names = {largest_light(picture(), bright(0), key=str(key), seed=1).perturbation for key in range(60)}
    assert len(names) >= 10


def test_it_asks_for_whole_batches() -> None:
    calls: list[int] = []
    smallest_strong(picture(), bright(300, calls), key="k", seed=1)
    assert calls == [1, 12, 12, 12, 12, 12]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"names": ("tilt",)}, "no perturbation 'tilt'"),
        ({"names": ()}, "at least one"),
        ({"names": ("contrast", "contrast")}, "none twice"),
        ({"light": (2.0, 1.0)}, "must rise"),
        ({"strong": (0.0, 5.0)}, "above 0"),
        ({"strong": (11.0,)}, "at most 10"),
        ({"rule": "best"}, "use one of any, drawn"),
    ],
)
def test_it_refuses_other_searches(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(BadSpec, match=message):
        Search(**wrong)  # type: ignore[arg-type]


def test_it_refuses_predictions_of_another_shape() -> None:
    with pytest.raises(BadSpec, match="one label index per view"):
        largest_light(GREY, lambda views: np.zeros((len(views), 2), np.int64), key="k", seed=1)


def test_it_takes_the_prediction_that_is_known_and_no_answer_that_is_not_asked() -> None:
    """Label 1 is the known prediction; above a mean of 150 the answer is none of the classes."""

    def predicts(views: NDArray[np.uint8]) -> list[int]:
        return [-1 if mean > 150 else int(mean > 120) for mean in views.reshape(len(views), -1).mean(1)]

    light = largest_light(GREY, predicts, key="k", seed=1, search=BRIGHTER, original=1)
    assert light.original == light.label == 1 and light.magnitude == 5
    strong = smallest_strong(GREY, predicts, key="k", seed=1, search=BRIGHTER, original=0)
    assert strong.view is None and strong.tried == 5
