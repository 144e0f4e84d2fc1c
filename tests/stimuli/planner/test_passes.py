"""How many passes are run, against the fewest that the definitions allow: counts, never time."""

from __future__ import annotations

from math import ceil
from typing import Any

import pytest

from stimuli.planner.network import Network
from stimuli.spec import Component
from tests.stimuli.tiny import SIDE, explained, pictures, pooled_net, subjects_of, token_net

pytestmark = pytest.mark.pure

BY_GRADIENT = ("saliency", "gradient_x_input")
BY_GRADIENT_OF_LAYER = (
    "grad_cam",
    "hires_cam",
    "grad_cam_elementwise",
    "grad_cam_plus_plus",
    "xgrad_cam",
    "layer_cam",
    "eigen_grad_cam",
)
BY_ACTIVATION = ("eigen_cam", "deep_feature_factorization")
FAMILY = (*BY_GRADIENT, *BY_GRADIENT_OF_LAYER, *BY_ACTIVATION, "full_grad")
CONTROLS = ("bottom_up_saliency", "spectral_residual")
WINDOWS = Component("occlusion", {"patch_share": 4 / SIDE, "stride_share": 2 / SIDE})
WINDOW_COUNT = (1 + (SIDE - 4) // 2) ** 2
SIX = (*BY_GRADIENT, "grad_cam", "integrated_gradients", "smooth_grad", WINDOWS)


def bill_of(net: Any, count: int, *methods: str | Component, rows: int = 8) -> tuple[int, int, int]:
    """Rows forwards, backwards and through tails for `count` pictures and all methods in one drive."""
    network = Network(net, rows=rows)
    done = explained(net, subjects_of(pictures(count)), *methods, network=network)
    assert len(done) == count * len(methods)
    assert not [outcome.error for outcome in done.values() if outcome.error is not None]
    return network.bill.forwards, network.bill.backwards, network.bill.tails


@pytest.mark.parametrize("name", [*BY_GRADIENT, *BY_GRADIENT_OF_LAYER, "full_grad"])
def test_it_goes_there_and_back_once_for_a_method_that_reads_a_gradient(name: str) -> None:
    assert bill_of(pooled_net(), 1, name) == (1, 1, 0)


@pytest.mark.parametrize("name", BY_ACTIVATION)
def test_it_never_goes_back_for_a_method_that_reads_activations(name: str) -> None:
    assert bill_of(pooled_net(), 1, name) == (1, 0, 0)


@pytest.mark.parametrize("name", CONTROLS)
def test_it_does_not_run_the_network_for_a_control(name: str) -> None:
    assert bill_of(pooled_net(), 2, name) == (0, 0, 0)


@pytest.mark.parametrize("count", [1, 3])
def test_it_gives_the_whole_family_one_pass_there_and_back_per_picture(count: int) -> None:
    assert bill_of(pooled_net(), count, *FAMILY) == (count, count, 0)


def test_it_gives_the_family_of_a_vision_transformer_one_pass() -> None:
    assert bill_of(token_net(), 2, *(name for name in FAMILY if name != "full_grad")) == (2, 2, 0)


def test_it_traces_all_pictures_in_as_few_batches_as_hold_them() -> None:
    net = pooled_net()
    network = Network(net, rows=4)
    explained(net, subjects_of(pictures(9)), *FAMILY, network=network)
    assert network.bill.calls == ceil(9 / 4)


@pytest.mark.parametrize(("steps", "draws"), [(50, 50), (5, 3)])
def test_it_takes_the_end_of_the_way_from_the_shared_pass(steps: int, draws: int) -> None:
    """Fifty points are 49 and the picture itself; the logit at the start is the completeness check's."""
    way = Component("integrated_gradients", {"steps": steps})
    assert bill_of(pooled_net(), 1, way) == (1 + (steps - 1) + 1, 1 + (steps - 1), 0)
    noise = Component("smooth_grad", {"draws": draws})
    assert bill_of(pooled_net(), 1, noise) == (draws, draws, 0)
    both = bill_of(pooled_net(), 1, way, noise, "saliency", "grad_cam")
    assert both == (1 + (steps - 1) + 1 + draws, 1 + (steps - 1) + draws, 0)


def test_it_runs_each_window_once_and_the_picture_itself_with_everybody_else() -> None:
    assert bill_of(pooled_net(), 1, WINDOWS) == (1 + WINDOW_COUNT, 0, 0)
    assert bill_of(pooled_net(), 1, WINDOWS, *FAMILY) == (1 + WINDOW_COUNT, 1, 0)


def test_it_runs_equal_copies_once_for_all_methods() -> None:
    summed = Component("occlusion", {**WINDOWS.params, "overlaps": "sum"})
    net = pooled_net()
    network = Network(net, rows=8)
    subject = subjects_of(pictures(1))[0]
    explained(net, [subject], WINDOWS, network=network)
    once = network.bill.forwards
    explained(net, [subject, subject], WINDOWS, summed, network=network)
    assert network.bill.forwards == 2 * once


def test_it_costs_the_six_no_more_than_their_copies_and_one_shared_pass() -> None:
    assert bill_of(pooled_net(), 1, *SIX) == (1 + 49 + 1 + 50 + WINDOW_COUNT, 1 + 49 + 50, 0)


def test_it_does_not_count_on_the_order_of_the_methods() -> None:
    methods: list[str | Component] = [*SIX, *FAMILY[3:], "score_cam", "ablation_cam"]
    assert bill_of(pooled_net(), 2, *methods) == bill_of(pooled_net(), 2, *reversed(methods))


def test_it_reads_the_ablation_weights_off_a_pooled_network() -> None:
    """Eight groups and a sample of single channels, behind the layer only, show that the logit is linear
    there: of the ten channels of this network all, of two thousand sixteen.
    """
    assert bill_of(pooled_net(), 1, "ablation_cam", *FAMILY) == (1, 1, 8 + 10)


def test_it_tries_channels_behind_the_layer_only() -> None:
    """Twelve channels of a transformer's first block, and the eight that show that it is not linear."""
    method = Component("ablation_cam", {"layer": "blocks.0"})
    assert bill_of(token_net(), 1, method, "saliency") == (1, 1, 8 + 12)


def test_it_asks_score_cam_for_one_pass_per_channel_at_most() -> None:
    forwards, backwards, _ = bill_of(pooled_net(), 1, "score_cam", "eigen_cam")
    assert backwards == 0
    assert 1 < forwards <= 1 + 10


@pytest.mark.parametrize(
    ("method", "copies"),
    [
        (Component("rise", {"masks": 40}), 40),
        (Component("shap_partition", {"evaluations": 30, "per_round": 8}), 30),
        (Component("guided_backprop"), 1),
    ],
)
def test_it_runs_no_more_than_a_sampling_method_asks_for(method: Component, copies: int) -> None:
    assert bill_of(pooled_net(), 1, method)[0] == copies


def test_it_runs_the_distinct_samples_of_lime_only() -> None:
    """Four segments have sixteen subsets, one of which is the picture itself."""
    few = Component("lime_image", {"samples": 200, "segmentation": "grid-1", "segments": 4})
    assert bill_of(pooled_net(), 1, few) == (16, 0, 0)
    assert bill_of(pooled_net(), 1, few, *FAMILY) == (16, 1, 0)


def test_it_counts_padding_apart() -> None:
    net = pooled_net()
    network = Network(net, rows=8)
    explained(net, subjects_of(pictures(3)), "saliency", network=network)
    assert (network.bill.forwards, network.bill.padded) == (3, 1)
