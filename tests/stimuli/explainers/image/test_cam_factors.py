"""EigenCam, EigenGradCam, DeepFeatureFactorization: against pytorch-grad-cam, scikit-learn, planted parts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.decomposition import NMF

from stimuli.errors import BadSpec, NotApplicable
from stimuli.explainers import open_explainer
from stimuli.explainers.layers.factors import factors, first_component
from stimuli.planner.values import Subject
from stimuli.spec import Component
from tests.stimuli.cam_networks import (
    deep_net,
    enlarged_by_torch,
    library_map,
    library_scaled,
    residual_net,
    scaled,
    steeper,
)
from tests.stimuli.tiny import Tiny, convolutional_net, explained, maps_of, pictures, pooled_net, token_net
from tests.witnesses import grad_cam

pytestmark = [pytest.mark.pure, pytest.mark.filterwarnings("ignore:Maximum number of iterations")]

NETWORKS = [convolutional_net, pooled_net, deep_net, residual_net, token_net]
SAME = 6e-6


def some(net: Tiny) -> list[Subject]:
    return [Subject(at % 4, f"image-{at}", 7, "", image) for at, image in enumerate(pictures(3))]


# EigenCam, EigenGradCam


@pytest.mark.parametrize("ours", ["eigen_cam", "eigen_grad_cam"])
@pytest.mark.parametrize("make", NETWORKS)
def test_it_projects_as_the_library_does_up_to_sign(make: Callable[[], Tiny], ours: str) -> None:
    """The library's sign is the routine's; it then drops what is negative."""
    net = steeper(make(), 1000)
    theirs = {"eigen_cam": "EigenCAM", "eigen_grad_cam": "EigenGradCAM"}[ours]
    maps, signed = maps_of(ours, net, some(net)), maps_of(ours, net, some(net), signed=True)
    for subject, attribution, both in zip(some(net), maps, signed, strict=True):
        expected = library_map(theirs, net, subject.pixels, subject.target)
        coarse = first_component(values_of(net, subject, ours)).numpy()
        turned = library_scaled(np.maximum(-coarse, 0))
        np.testing.assert_allclose(scaled(attribution), library_scaled(np.maximum(coarse, 0)), atol=SAME)
        assert min(abs(scaled(attribution) - expected).max(), abs(turned - expected).max()) < SAME
        np.testing.assert_allclose(scaled(both), scaled(enlarged_by_torch(coarse)), atol=SAME)
        assert both.min() < 0 <= coarse.min() + coarse.max()


def values_of(net: Tiny, subject: Subject, ours: str) -> torch.Tensor:
    """What is projected, (C, h, w), from the library's own reading of the layer."""
    from stimuli.planner.layers import spatial
    from tests.stimuli.explainers.image.test_cams import gradient_of

    pair = gradient_of(net, subject, net.layer)
    activation, gradient = (spatial(value, net.layouts[net.layer]) for value in pair)
    return activation if ours == "eigen_cam" else gradient * activation


@pytest.mark.parametrize("shape", [(40, 5, 5), (5, 9, 9), (6, 2, 3), (1, 3, 3)])
def test_it_has_the_sign_of_the_larger_end(shape: tuple[int, int, int]) -> None:
    """Against the library's full decomposition with its later rule for the sign."""
    values = np.random.default_rng(4).normal(size=shape).astype(np.float32)
    rule = grad_cam().utils.svd_on_activations.get_2d_projection_with_sign_correction
    expected = rule(values[None])[0]
    np.testing.assert_allclose(first_component(torch.from_numpy(values)), expected, atol=1e-5)
    np.testing.assert_allclose(first_component(torch.from_numpy(-values)), expected, atol=1e-5)


def test_it_projects_a_flat_layer_on_nothing() -> None:
    assert not first_component(torch.full((3, 4, 4), 2.0)).any()


# DeepFeatureFactorization


def planted(channels: int = 12, places: int = 36) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Two parts, each with channels and places of its own, so that there is one factorisation only."""
    draws = np.random.default_rng(8)
    left, right = draws.uniform(0.1, 1, (channels, 2)), draws.uniform(0.1, 1, (2, places))
    left[:3, 0] = left[3:6, 1] = 0
    right[0, :9] = right[1, 9:18] = 0
    right[:, -2:] = 0
    right[1] *= 3
    return left / np.linalg.norm(left, axis=0), right


@pytest.mark.parametrize("is_tall", [True, False])
def test_it_finds_planted_parts_the_largest_first(is_tall: bool) -> None:
    left, right = planted(*((60, 25) if is_tall else (12, 49)))
    result = factors(left @ right, 2)
    np.testing.assert_allclose(result[1], right[::-1], atol=2e-3)
    np.testing.assert_allclose(result[0], left[:, ::-1], atol=2e-3)


@pytest.mark.parametrize("components", [1, 2, 4])
@pytest.mark.parametrize("make", NETWORKS)
def test_it_fits_a_layer_as_well_as_another_library(make: Callable[[], Tiny], components: int) -> None:
    net = make()
    values = values_of(net, some(net)[0], "eigen_cam").flatten(1).double().numpy()
    values -= values.min(1, keepdims=True)
    left, right = factors(values, components)
    assert left.min() >= 0
    assert right.min() >= 0
    witness = NMF(components, init="nndsvd", solver="cd", tol=1e-8, max_iter=5000)
    theirs = witness.fit_transform(values)
    lost, lost_there = (
        np.linalg.norm(values - estimate) for estimate in (left @ right, theirs @ witness.components_)
    )
    assert lost <= 1.1 * lost_there + 1e-4 * np.linalg.norm(values)
    # Four parts have many local optima; two have one here, unless the layer has hardly more channels.
    if components <= 2 and make is not deep_net:
        others = witness.components_ * np.linalg.norm(theirs, axis=0)[:, None]
        order = np.argsort(-np.linalg.norm(others, axis=1))
        np.testing.assert_allclose(right, others[order], atol=0.01 * right.max())


@pytest.mark.parametrize("components", [2, 3, 5])
@pytest.mark.parametrize("share_hidden", [0.0, 0.5])
def test_it_ends_where_no_small_change_fits_better(components: int, share_hidden: float) -> None:
    """The conditions of a local optimum [Karush 1939; Kuhn and Tucker 1951]: no slope where a factor is
    positive, an upward one where it is zero. Without hidden values the valley is flat, and plain rounds are
    slow.
    """
    draws = np.random.default_rng(components)
    values = np.maximum(draws.uniform(-share_hidden, 1, (90, 50)), 0)
    left, right = factors(values, components)
    missed = left @ right - values
    for factor, slope in ((left, missed @ right.T), (right, left.T @ missed)):
        scale = np.abs(values).sum() / np.sqrt(factor.size)
        away = np.where(factor > 0, np.abs(slope), np.maximum(-slope, 0))
        assert away.max() <= 1e-5 * scale


def test_it_shows_what_the_library_calls_a_concept() -> None:
    """The library starts at random and keeps the order it comes to; its parts are ours in some order."""
    left, right = planted()
    values = left @ right
    factorise = grad_cam().feature_factorization.deep_feature_factorization.dff
    _, (parts,) = factorise(values.reshape(1, 12, 6, 6), n_components=2)
    for component in factors(values, 2)[1]:
        shown = scaled(component)
        assert min(abs(shown - scaled(part.ravel())).max() for part in parts) < 0.02


def test_it_draws_the_first_component_and_says_what_is_left_out() -> None:
    net = pooled_net()
    subject = some(net)[0]
    done = explained(net, [subject], "deep_feature_factorization")[0, "deep_feature_factorization"]
    values = values_of(net, subject, "eigen_cam").flatten(1).double().numpy()
    values -= values.min(1, keepdims=True)
    left, right = factors(values, 2)
    assert done.result.checks["left_out"] == pytest.approx(
        np.square(values - left @ right).sum() / np.square(values).sum()
    )
    assert not done.result.signed
    coarse = right[0].reshape(12, 12).astype(np.float32)
    np.testing.assert_allclose(scaled(done.result.values), library_scaled(coarse), atol=SAME)


def test_it_finds_the_same_every_time() -> None:
    net = deep_net()
    first, second = (maps_of("deep_feature_factorization", net, some(net), components=4) for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_it_factorises_a_layer_without_anything_into_nothing() -> None:
    left, right = factors(np.zeros((4, 9)), 2)
    assert not left.any()
    assert not right.any()


def test_it_refuses_a_component_that_is_not_made() -> None:
    with pytest.raises(BadSpec, match="shows component 2, counted from 0, of 2"):
        open_explainer(Component("deep_feature_factorization", {"shown": 2}))


def test_it_refuses_more_components_than_the_layer_has_channels() -> None:
    method = open_explainer(Component("deep_feature_factorization", {"components": 11}))
    with pytest.raises(NotApplicable, match="11 components in 10 channels of 12 x 12.*ask for 10 at most"):
        method.require(pooled_net(), "")
