"""LIME for pictures against the package lime with the same copies, and scikit-learn's ridge regression."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest
import torch
from lime.lime_image import LimeImageExplainer
from lime.wrappers.scikit_image import SegmentationAlgorithm
from numpy.typing import NDArray
from skimage import data
from sklearn.linear_model import Ridge

from stimuli.errors import NotApplicable
from stimuli.explainers.perturbation.lime_image import agreement
from stimuli.explainers.perturbation.segments import Segmentation, segment_means, segment_picture
from stimuli.explainers.perturbation.surrogate import cosine_kernel, fit_share, ridge
from stimuli.planner.network import Network
from stimuli.spec import Component
from tests.stimuli.tiny import SIDE, Tiny, convolutional_net, explained, maps_of, pictures, subjects_of

pytestmark = pytest.mark.pure
GRID: dict[str, Any] = {"segmentation": "grid-1", "segments": 16, "samples": 80}


class Given(np.random.RandomState):
    """A generator of the package's kind that gives out the copies that we drew."""

    def __init__(self, shown: NDArray[np.bool_]) -> None:
        super().__init__(0)
        self.shown = shown

    def randint(self, low: Any, high: Any = None, size: Any = None, dtype: Any = int) -> Any:
        return self.shown.astype(int).ravel() if size == self.shown.size else 0


def chelsea(side: int = 96) -> NDArray[np.float32]:
    cat: Any = data.chelsea()  # type: ignore[no-untyped-call]
    return np.asarray(cat[20 : 20 + side, 100 : 100 + side] / 255, np.float32)


def by_package(net: Tiny, subject: Any, fill: str) -> NDArray[np.float64]:
    """The weights of the segments as the package lime finds them."""
    cells = segment_picture(subject.pixels.permute(1, 2, 0).numpy(), "grid-1", 16)
    shown = subject.draws("lime", 0).integers(0, 2, (80, 16)).astype(bool)

    def said(pictures: list[NDArray[np.float64]]) -> NDArray[np.float64]:
        x = torch.from_numpy(np.stack(pictures)).permute(0, 3, 1, 2).float()
        with torch.no_grad():
            return np.asarray(net.module(x).double().softmax(1).numpy(), np.float64)

    explanation = LimeImageExplainer(random_state=Given(shown)).explain_instance(
        subject.pixels.permute(1, 2, 0).double().numpy(),
        said,
        labels=(subject.target,),
        hide_color=0 if fill == "black" else None,
        top_labels=None,
        num_samples=80,
        segmentation_fn=lambda _image: cells,
    )
    weights = np.zeros(16)
    for segment, weight in explanation.local_exp[subject.target]:
        weights[segment] = weight
    return weights[cells]


@pytest.mark.parametrize("fill", ["black", "mean"])
def test_it_finds_the_weights_of_the_package(fill: str) -> None:
    net, subject = convolutional_net(), subjects_of(pictures(2))[1]
    expected = by_package(net, subject, fill)
    values = maps_of("lime_image", net, [subject], fill=fill, **GRID)[0]
    np.testing.assert_allclose(values, expected, atol=1e-6 * np.abs(expected).max() + 1e-9)


def test_it_fits_like_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    shown, scores = rng.integers(0, 2, (200, 30)).astype(bool), rng.normal(size=200)
    weights = cosine_kernel(shown, 0.25)
    model = Ridge(alpha=0.7).fit(shown, scores, sample_weight=weights)
    coefficients = ridge(shown, scores, weights, 0.7)
    np.testing.assert_allclose(coefficients, model.coef_, atol=1e-12)
    share = model.score(shown, scores, sample_weight=weights)
    assert fit_share(shown, scores, weights, coefficients) == pytest.approx(share, abs=1e-12)
    several = ridge(shown, np.stack([scores, 2 * scores], 1), weights, 0.7)
    np.testing.assert_allclose(several, np.stack([model.coef_, 2 * model.coef_], 1), atol=1e-12)


def test_it_takes_the_shortest_of_many_solutions_without_a_penalty() -> None:
    design = np.array([[0, 0], [1, 1], [0, 0], [1, 1]])
    np.testing.assert_allclose(ridge(design, [0, 1, 0, 1], np.ones(4), 0.0), [0.5, 0.5], atol=1e-12)


def test_it_segments_like_the_package() -> None:
    picture = chelsea()
    cut = SegmentationAlgorithm("quickshift", kernel_size=4, max_dist=200, ratio=0.2, random_seed=0)
    expected = cut(picture.astype(np.float64))
    segments = segment_picture(picture, "quickshift-1", 50)
    assert segments.max() > 5
    np.testing.assert_array_equal(
        segments, np.unique(expected, return_inverse=True)[1].reshape(segments.shape)
    )


@pytest.mark.parametrize("way", get_args(Segmentation))
def test_it_numbers_segments_without_gaps_and_repeats_itself(way: Segmentation) -> None:
    picture = chelsea(48)
    segments = segment_picture(picture, way, 20)
    assert segments.shape == (48, 48) and segments.dtype == np.int64
    np.testing.assert_array_equal(np.unique(segments), np.arange(segments.max() + 1))
    np.testing.assert_array_equal(segment_picture(picture, way, 20), segments)


def test_it_cuts_a_grid_of_equal_squares() -> None:
    segments = segment_picture(np.zeros((12, 12, 3), np.float32), "grid-1", 9)
    np.testing.assert_array_equal(segments[::4, ::4], np.arange(9).reshape(3, 3))
    np.testing.assert_array_equal(np.bincount(segments.ravel()), np.full(9, 16))


def test_it_fills_with_the_mean_of_each_segment() -> None:
    picture, cells = chelsea(32), segment_picture(chelsea(32), "slic-1", 8)
    means = segment_means(picture, cells)
    for segment in range(cells.max() + 1):
        expected = picture[cells == segment].mean(0)
        np.testing.assert_allclose(
            means[:, cells == segment].T, np.tile(expected, (int((cells == segment).sum()), 1)), atol=1e-6
        )


def test_it_shows_the_segments_of_largest_weight_only() -> None:
    net, subjects = convolutional_net(), subjects_of(pictures(1))
    whole = maps_of("lime_image", net, subjects, **GRID)[0]
    top = maps_of("lime_image", net, subjects, shown=3, **GRID)[0]
    largest = np.unique(np.abs(whole))[-3:]
    np.testing.assert_array_equal(top, np.where(np.isin(np.abs(whole), largest), whole, 0))


def test_it_runs_equal_copies_once() -> None:
    net, subjects = convolutional_net(), subjects_of(pictures(1))
    component = Component("lime_image", {"segmentation": "grid-1", "segments": 4, "samples": 500})
    network = Network(net, rows=16)
    assert explained(net, subjects, component, network=network)[0, "lime_image"].error is None
    assert network.bill.forwards <= 16


def test_it_is_stable_where_the_copies_say_it_all() -> None:
    net, subjects = convolutional_net(), subjects_of(pictures(1))
    stability = {}
    for samples in (12, 400):
        params = {**GRID, "samples": samples, "stability": 3, "alpha": 0.01}
        result = explained(net, subjects, Component("lime_image", params), rows=64)[0, "lime_image"].result
        stability[samples] = result.checks["stability"]
        assert result.checks["segments"] == 16
        assert 0 <= result.checks["fit"] <= 1
    assert stability[400] > max(stability[12], 0.7)


def test_it_counts_the_agreement_of_top_segments() -> None:
    models = [
        np.array([9.0, -8.0, 1.0, 0.0]),
        np.array([9.0, 0.0, 1.0, -8.0]),
        np.array([7.0, 6.0, 1.0, 0.0]),
    ]
    assert agreement(models, 2) == pytest.approx((0.5 + 1 + 0.5) / 3)


@pytest.mark.parametrize("output", ["probability", "logit"])
def test_it_marks_nothing_where_hiding_changes_nothing(output: str) -> None:
    """A black picture behind black: copies of equal pixels in batches of other sizes."""
    black = subjects_of(torch.zeros((1, 3, SIDE, SIDE)))
    component = Component("lime_image", {**GRID, "output": output, "stability": 2})
    result = explained(convolutional_net(), black, component)[0, "lime_image"].result
    assert not result.values.any()
    assert result.checks == {"segments": 16.0, "fit": 0.0, "stability": 1.0}


def test_it_refuses_a_picture_of_a_single_segment() -> None:
    grey = subjects_of(torch.full((1, 3, SIDE, SIDE), 0.5))
    with pytest.raises(NotApplicable, match="single segment.*grid-1"):
        maps_of("lime_image", convolutional_net(), grey)
