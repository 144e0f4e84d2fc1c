"""The table of explainers, and each method against arithmetic that does not use captum."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from stimuli.errors import BadSpec, NotApplicable
from stimuli.explainers import EXPLAINERS, RECORDED, check_explainer, open_explainer, version_of
from stimuli.planner.values import Subject
from stimuli.spec import Component
from stimuli.types import Layout
from tests.stimuli.tiny import SIDE, Tiny, convolutional_net, linear_net, maps_of, pictures, subjects_of

pytestmark = pytest.mark.pure


def gradient_of(net: Tiny, x: torch.Tensor, target: int) -> torch.Tensor:
    """The gradient of one logit for images (N, 3, H, W), by torch alone."""
    x = x.clone().requires_grad_()
    return torch.autograd.grad(net.module(x)[:, target].sum(), x)[0]


def rows_of(net: Tiny) -> torch.Tensor:
    """The weights of the linear net as pictures, (3 logits, 3, H, W)."""
    return net.layer_module("1").get_parameter("weight").detach().reshape(3, 3, SIDE, SIDE)


def test_it_lists_the_known_names_and_the_closest_one() -> None:
    with pytest.raises(BadSpec, match=r"'grad_cm' \(did you mean 'grad_cam'\?\).*saliency"):
        check_explainer(Component("grad_cm"))


def test_it_lists_the_parameters_of_a_method() -> None:
    with pytest.raises(BadSpec, match=r"'step' \(did you mean 'steps'\?\): it takes baseline, steps"):
        check_explainer(Component("integrated_gradients", {"step": 10}))


@pytest.mark.parametrize("value", ["50", 50.0, True, None, [50]])
def test_it_refuses_a_parameter_of_another_type(value: object) -> None:
    with pytest.raises(BadSpec, match="must be a whole number such as 50"):
        check_explainer(Component("integrated_gradients", {"steps": value}))


@pytest.mark.parametrize("value", [-0.1, 2.1, float("nan"), float("inf")])
def test_it_names_the_limits_of_a_parameter(value: float) -> None:
    with pytest.raises(BadSpec, match=r"must lie between 0.0 and 2.0"):
        check_explainer(Component("smooth_grad", {"sigma": value}))


def test_it_writes_every_parameter_out() -> None:
    full = check_explainer(Component("integrated_gradients", {"baseline": 1}))
    assert dict(full.params) == {"steps": 50, "baseline": 1.0}
    assert check_explainer(full) == full


@pytest.mark.parametrize("name", sorted({*EXPLAINERS} - {RECORDED}))
def test_it_knows_defaults_and_a_version_of_every_method(name: str) -> None:
    assert open_explainer(check_explainer(Component(name))) == open_explainer(Component(name))
    assert version_of(Component(name)) >= 1


def test_it_takes_saliency_as_the_largest_magnitude_over_channels() -> None:
    net, x = linear_net(), pictures(3)
    expected = rows_of(net).abs().amax(1).numpy()
    np.testing.assert_allclose(maps_of("saliency", net, subjects_of(x)), expected, atol=1e-7)


def test_it_averages_gradient_times_input_over_channels() -> None:
    net, x = linear_net(), pictures(3)
    expected = (rows_of(net) * x).mean(1).numpy()
    np.testing.assert_allclose(maps_of("gradient_x_input", net, subjects_of(x)), expected, atol=1e-7)


def test_it_integrates_a_linear_net_exactly() -> None:
    net, x = linear_net(), pictures(3)
    expected = (rows_of(net) * (x - 0.5)).mean(1).numpy()
    maps = maps_of("integrated_gradients", net, subjects_of(x), steps=7, baseline=0.5)
    np.testing.assert_allclose(maps, expected, atol=1e-6)


def test_it_completes_integrated_gradients() -> None:
    net, x = convolutional_net(), pictures(3)
    sums = 3 * maps_of("integrated_gradients", net, subjects_of(x)).sum((1, 2))
    gains = net.module(x) - net.module(torch.zeros_like(x))
    np.testing.assert_allclose(sums, [float(gains[i, i]) for i in range(3)], rtol=2e-3, atol=1e-3)


def test_it_weighs_the_ends_of_the_trapezoid_by_half() -> None:
    net, x = convolutional_net(), pictures(1)
    mean = torch.zeros_like(x)
    for point, weight in zip((0, 0.25, 0.5, 0.75, 1), (1 / 8, 1 / 4, 1 / 4, 1 / 4, 1 / 8), strict=True):
        mean += weight * gradient_of(net, point * x, 0)
    maps = maps_of("integrated_gradients", net, subjects_of(x), steps=5)
    np.testing.assert_allclose(maps, (mean * x).mean(1).numpy(), atol=1e-6)


def test_it_smooths_to_the_plain_gradient_without_noise() -> None:
    net, x = convolutional_net(), pictures(2)
    expected = torch.cat([gradient_of(net, x[i : i + 1], i).mean(1) for i in range(2)])
    np.testing.assert_allclose(
        maps_of("smooth_grad", net, subjects_of(x), draws=3, sigma=0.0), expected, atol=1e-6
    )


def test_it_draws_noise_of_the_declared_strength() -> None:
    class Square(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x**2).sum((1, 2, 3))[:, None]

    # The gradient of x squared is 2 x, so the mean over draws is 2 x plus twice the mean noise.
    x = pictures(1, 96)
    subject = Subject(0, "a", 1, image=x[0])
    net = Tiny(Square(), ("a",), input_px=96)
    values = maps_of("smooth_grad", net, [subject], draws=16, sigma=0.3)[0]
    noise = (values - 2 * x.mean(1)[0].numpy()) / 2
    assert noise.mean() == pytest.approx(0, abs=4 * 0.3 / 48**0.5 / 96)
    assert noise.std() == pytest.approx(0.3 / 48**0.5, rel=0.05)


def test_it_occludes_like_a_loop_over_squares() -> None:
    net, x = convolutional_net(), pictures(1)
    stride = round(0.15 * SIDE)
    patch = 2 * stride  # as the shares are to each other
    falls, counts = np.zeros((SIDE, SIDE)), np.zeros((SIDE, SIDE))
    whole = float(net.module(x)[0, 0])
    starts = range(0, SIDE - patch + stride, stride)
    for top in starts:
        for left in starts:
            covered = x.clone()
            covered[:, :, top : top + patch, left : left + patch] = 0.25
            place = np.s_[top : top + patch, left : left + patch]
            falls[place] += whole - float(net.module(covered)[0, 0])
            counts[place] += 1
    params: dict[str, Any] = {"patch_share": 0.3, "stride_share": 0.15, "baseline": 0.25}
    np.testing.assert_allclose(
        maps_of("occlusion", net, subjects_of(x), **params)[0], falls / counts, atol=1e-5
    )


class Deaf(nn.Module):
    """Logits that are the same for all pictures but for the last digits, which pixels do change."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        noise = 3e-8 * torch.sin(1e4 * x.sum((1, 2, 3)))
        return torch.tensor([0.7, 0.1, -3.0]) + noise[:, None] * torch.tensor([1.0, -1.0, 10.0])


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("occlusion", {}),
        ("occlusion", {"overlaps": "sum"}),
        ("lime_image", {"segmentation": "grid-1", "segments": 16}),
        ("lime_image", {"segmentation": "grid-1", "segments": 16, "output": "logit"}),
        ("rise", {"masks": 100}),
        ("rise", {"masks": 100, "output": "logit"}),
        ("shap_partition", {}),
        ("shap_partition", {"output": "probability"}),
    ],
)
@pytest.mark.parametrize("target", [0, 2])
def test_it_does_not_take_rounding_for_an_explanation(name: str, params: dict[str, Any], target: int) -> None:
    net = Tiny(Deaf(), ("a", "b", "c"))
    assert len(net.module(pictures(16)).unique()) > 3
    subject = Subject(target, "a", 1, image=pictures(1)[0])
    values = maps_of(name, net, [subject], rows=16, **params)[0]
    assert np.isfinite(values).all() and np.ptp(values) == 0
    if name != "rise":
        assert not values.any()


@pytest.mark.parametrize("name", ["occlusion", "lime_image", "rise", "shap_partition"])
def test_it_still_explains_small_probabilities_and_small_falls(name: str) -> None:
    """A label that is hardly ever named: its probability is less than any rounding, its ratios are not."""
    net, x = convolutional_net(), pictures(1)
    net.layer_module("3").get_parameter("bias").data[0] -= 40.0
    params: dict[str, dict[str, Any]] = {"lime_image": {"segmentation": "grid-1"}, "rise": {"masks": 50}}
    values = maps_of(name, net, subjects_of(x), **params.get(name, {}))[0]
    assert np.ptp(values) > 0


def test_it_finds_grad_cam_by_hand() -> None:
    net, x = convolutional_net(), pictures(1)
    maps = net.module[0](x).detach().requires_grad_()  # type: ignore[index]
    logit = net.module[1:](maps)[0, 0]  # type: ignore[index]
    weights = torch.autograd.grad(logit, maps)[0].mean((2, 3), keepdim=True)
    coarse = (weights * maps).sum(1, keepdim=True).clamp(min=0).detach()
    expected = nn.functional.interpolate(coarse, size=(SIDE, SIDE), mode="bilinear", align_corners=False)[
        0, 0
    ]
    assert float(expected.max()) > 0
    np.testing.assert_allclose(maps_of("grad_cam", net, subjects_of(x))[0], expected.numpy(), atol=1e-6)


def test_it_reads_the_layer_that_is_named() -> None:
    net, x = convolutional_net(), pictures(1)
    named = maps_of("grad_cam", net, subjects_of(x), layer="0.0")
    np.testing.assert_array_equal(named, maps_of("grad_cam", net, subjects_of(x, layer="0.0")))
    assert not np.allclose(named, maps_of("grad_cam", net, subjects_of(x)))


def test_it_refuses_grad_cam_without_its_layer() -> None:
    with pytest.raises(NotApplicable, match="layer 'block4'.*name one of 0.0, 0, 1"):
        open_explainer(Component("grad_cam", {"layer": "block4"})).require(convolutional_net(), "0")
    with pytest.raises(NotApplicable, match="name one of none"):
        open_explainer(Component("grad_cam")).require(linear_net(), "")


def test_it_refuses_grad_cam_on_a_layer_of_single_cells() -> None:
    net = Tiny(nn.Identity(), ("a", "b"), "0", {"0": Layout("maps", 4, 1, 1)})
    with pytest.raises(NotApplicable, match="at least 2 x 2"):
        open_explainer(Component("grad_cam")).require(net, "")


def test_it_refuses_maps_that_are_not_finite() -> None:
    class Overflow(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x.sum((1, 2, 3)) * 1e30 * 1e30)[:, None]

    with pytest.raises(NotApplicable, match="not finite"):
        maps_of("saliency", Tiny(Overflow(), ("a",)), subjects_of(pictures(1)))
