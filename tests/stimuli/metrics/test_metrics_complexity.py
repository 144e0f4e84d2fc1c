"""Sparsity, entropy and JPEG size: closed forms and orderings."""

import io
import math
from typing import Any

import numpy as np
import pytest
from PIL import Image
from scipy.ndimage import gaussian_filter
from sklearn.preprocessing import minmax_scale

from stimuli.errors import NotApplicable
from stimuli.metrics import open_metric
from stimuli.metrics.base import MetricValue
from stimuli.metrics.complexity import JpegComplexity, jpeg
from stimuli.planner.values import Subject
from stimuli.spec import Component
from stimuli.types import ConceptAttribution, PixelAttribution, TokenAttribution, Weights

pytestmark = pytest.mark.pure


def of(made: Weights, name: str, **params: object) -> MetricValue:
    """The number of a metric that asks nothing."""
    try:
        next(open_metric(Component(name, params)).measure(None, Subject(0, "item", 0), made))
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    raise AssertionError(f"{name} asked for a pass")


def plane(values: Any) -> PixelAttribution:
    return PixelAttribution(np.asarray(values, np.float32), True)


def gini_by_pairs(values: np.ndarray) -> float:
    """Mean absolute difference of all pairs over twice the mean."""
    sizes = np.abs(values).ravel().astype(float)
    return float(np.abs(sizes[:, None] - sizes[None]).mean() / (2 * sizes.mean()))


def noise(sigma: float, side: int = 224) -> PixelAttribution:
    values = np.random.default_rng(4).standard_normal((side, side))
    return plane(gaussian_filter(values, sigma) if sigma else values)


def scaled(made: PixelAttribution) -> PixelAttribution:
    """A field as it is drawn, by the least and the largest value."""
    return plane(minmax_scale(made.values.ravel()).reshape(made.values.shape))


def test_it_has_the_closed_forms_of_the_gini_index() -> None:
    one_hot = np.zeros((8, 8))
    one_hot[3, 5] = -2
    assert of(plane(one_hot), "sparsity").value == pytest.approx(1 - 1 / 64)
    assert of(plane(np.full((8, 8), 0.7)), "sparsity").value == pytest.approx(0, abs=1e-12)
    assert of(plane(np.zeros((8, 8))), "sparsity").value == 0
    # 1, 2, ..., n: (n - 1) / 3n.
    assert of(plane(np.arange(1, 65).reshape(8, 8)), "sparsity").value == pytest.approx(63 / 192)


def test_it_is_the_mean_difference_of_pairs() -> None:
    values = np.random.default_rng(2).standard_normal((12, 12)).astype(np.float32)
    assert of(plane(values), "sparsity").value == pytest.approx(gini_by_pairs(values))


def test_it_has_the_closed_forms_of_the_entropy() -> None:
    one_hot = np.zeros((8, 8))
    one_hot[3, 5] = -2
    assert of(plane(one_hot), "entropy").value == 0
    assert of(plane(np.full((8, 8), 0.7)), "entropy").value == pytest.approx(math.log(64))
    assert of(plane(np.zeros((8, 8))), "entropy").value == pytest.approx(math.log(64))
    half = np.zeros((8, 8))
    half[:4] = 1
    number = of(plane(half), "entropy")
    assert number.value == pytest.approx(math.log(32))
    assert number.details == {"share": pytest.approx(5 / 6), "parts": 64}


@pytest.mark.parametrize("name", ["sparsity", "entropy"])
def test_it_ignores_scale_sign_and_place(name: str) -> None:
    values = np.random.default_rng(2).standard_normal((12, 12)).astype(np.float32)
    expected = of(plane(values), name).value
    for other in (-values, values * 1e-6, values * 1e6, np.abs(values), values[::-1].T):
        assert of(plane(other), name).value == pytest.approx(expected, rel=1e-6)


def test_it_weighs_words_and_concepts_too() -> None:
    weights = np.array([0, 0, -3, 0], np.float32)
    words = TokenAttribution(((0, 1), (2, 3), (4, 5), (6, 7)), weights)
    concepts = ConceptAttribution(("a", "b", "c", "d"), weights)
    for made in (words, concepts):
        assert of(made, "sparsity").value == pytest.approx(0.75)
        assert of(made, "entropy").value == 0
    distances = ConceptAttribution(("a", "b"), np.ones(2, np.float32), order="ascending")
    with pytest.raises(NotApplicable, match="small ones matter"):
        of(distances, "sparsity")
    with pytest.raises(NotApplicable, match="no part"):
        of(TokenAttribution((), np.zeros(0, np.float32)), "entropy")
    with pytest.raises(NotApplicable, match="needs a map"):
        of(words, "jpeg_complexity")


@pytest.mark.parametrize("quality", [50, 75, 95])
def test_it_takes_fewer_bytes_for_smoother_maps(quality: int) -> None:
    sizes = [of(scaled(noise(sigma)), "jpeg_complexity", quality=quality).value for sigma in (0, 1, 4, 24)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > 3 * sizes[-1]


def test_it_takes_as_many_bytes_as_measured_before() -> None:
    """Illustrations of the reference: white noise 19.0 kB, sigma 4 6.1 kB, sigma 24 2.6 kB."""
    sizes = [of(scaled(noise(sigma)), "jpeg_complexity").value for sigma in (0, 4, 24)]
    assert sizes == pytest.approx([19_000, 6_100, 2_600], rel=0.25)


def test_it_reports_bits_and_the_encoder() -> None:
    number = of(scaled(noise(4)), "jpeg_complexity")
    assert number.details["bits_per_pixel"] == pytest.approx(8 * number.value / 224**2)
    assert "Pillow" in number.details["encoder"] and "jpeg" in number.details["encoder"]


def test_it_writes_a_grey_and_bare_file() -> None:
    grey = JpegComplexity().grey(scaled(noise(4, 100)).values)
    assert grey.shape == (224, 224) and grey.dtype == np.uint8 and grey.min() <= 5 and grey.max() >= 250
    with Image.open(io.BytesIO(jpeg(grey, 75))) as picture:
        assert picture.mode == "L" and not picture.getexif()
        assert set(picture.info) <= {"jfif", "jfif_version", "jfif_unit", "jfif_density"}


def test_it_writes_both_sides_of_a_diverging_field_around_one_grey() -> None:
    field = np.asarray(2 * scaled(noise(4)).values - 1, np.float32)
    written = JpegComplexity().grey(field, two_sided=True)
    np.testing.assert_array_equal(written, JpegComplexity().grey(np.asarray((field + 1) / 2, np.float32)))
    assert of(plane(field), "jpeg_complexity").value == len(jpeg(written, 75))


def test_it_takes_least_for_a_flat_map() -> None:
    flat = of(plane(np.zeros((64, 64))), "jpeg_complexity").value
    assert flat < of(scaled(noise(24)), "jpeg_complexity").value
