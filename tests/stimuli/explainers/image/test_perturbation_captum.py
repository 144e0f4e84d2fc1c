"""Occlusion, integrated gradients and SmoothGrad against captum and against plain loops."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import torch
from captum.attr import IntegratedGradients, Occlusion

from stimuli.explainers import open_explainer
from stimuli.explainers.perturbation.occlusion import Occlusion as Squares
from stimuli.planner.values import Subject
from stimuli.spec import Component
from tests.stimuli.tiny import (
    SIDE,
    convolutional_net,
    explained,
    linear_net,
    maps_of,
    pictures,
    subjects_of,
)

pytestmark = [pytest.mark.pure, pytest.mark.filterwarnings("ignore")]
STRIDE = round(0.15 * SIDE)
PATCH = 2 * STRIDE  # as the shares are to each other
SHARES: dict[str, Any] = {"patch_share": 0.3, "stride_share": 0.15, "baseline": 0.25}


def test_it_occludes_like_captum() -> None:
    net, x = convolutional_net(), pictures(2)
    expected = Occlusion(net.module).attribute(
        x, (3, PATCH, PATCH), strides=(3, STRIDE, STRIDE), baselines=0.25, target=torch.tensor([0, 1])
    )
    maps = maps_of("occlusion", net, subjects_of(x), **SHARES)
    np.testing.assert_allclose(maps, expected[:, 0].numpy(), atol=1e-6)


@pytest.mark.parametrize("side", [112, 160, 224])
@pytest.mark.parametrize("overlaps", ["mean", "sum"])
def test_it_draws_no_lattice(side: int, overlaps: str) -> None:
    """By default values change where squares begin and nowhere else: no lines between them are left. At 224
    pixels squares of 45, 22 apart, would overlap by one pixel more than half: a lattice of lines.
    """
    net, stride = linear_net(side), round(0.1 * side)
    values = maps_of("occlusion", net, subjects_of(pictures(1, side)), overlaps=overlaps)[0]
    assert np.ptp(values) > 0
    for axis in (0, 1):
        steps = np.abs(np.diff(values, axis=axis)).max(1 - axis) > 1e-6 * np.abs(values).max()
        assert set(1 + np.flatnonzero(steps)) == set(range(stride, side, stride))


@pytest.mark.parametrize(
    ("params", "width", "squares"),
    [
        ({}, 160, (32, 16)),  # as they were: 32 is a multiple of 16
        ({}, 224, (44, 22)),
        ({"patch_share": 0.3}, 224, (66, 22)),
        ({"patch_share": 0.25, "stride_share": 0.1}, 224, (56, 22)),  # no multiple: as asked
        ({"patch_px": 45}, 224, (45, 22)),
        ({"stride_px": 10}, 224, (45, 10)),
        ({"patch_share": 1.0, "stride_share": 0.5}, 3, (3, 2)),  # no larger than the picture
        ({"patch_share": 0.02, "stride_share": 0.01}, 32, (1, 1)),
        ({"patch_px": 3, "stride_px": 3, "overlaps": "sum", "border": "leave"}, 224, (3, 3)),
    ],
)
def test_its_squares_are_a_multiple_of_their_distance(
    params: dict[str, object], width: int, squares: tuple[int, int]
) -> None:
    method = open_explainer(Component("occlusion", params))
    assert isinstance(method, Squares) and method.squares(width) == squares


def test_it_adds_overlaps_where_asked() -> None:
    net, x = convolutional_net(), pictures(1)
    falls = np.zeros((SIDE, SIDE))
    for top in range(0, SIDE - PATCH + STRIDE, STRIDE):
        for left in range(0, SIDE - PATCH + STRIDE, STRIDE):
            covered = x.clone()
            covered[:, :, top : top + PATCH, left : left + PATCH] = 0.25
            fall = float(net.module(x)[0, 0] - net.module(covered)[0, 0])
            falls[top : top + PATCH, left : left + PATCH] += fall
    values = maps_of("occlusion", net, subjects_of(x), overlaps="sum", **SHARES)[0]
    np.testing.assert_allclose(values, falls, atol=4e-6)


def test_it_integrates_like_captum() -> None:
    net, x = convolutional_net(), pictures(2)
    expected = IntegratedGradients(net.module).attribute(
        x, 0.25, torch.tensor([0, 1]), n_steps=50, method="riemann_trapezoid"
    )
    maps = maps_of("integrated_gradients", net, subjects_of(x), baseline=0.25)
    # captum's weights add up to 49/50 with this rule, ours to 1.
    expected = 50 / 49 * expected.mean(1).numpy()
    np.testing.assert_allclose(maps, expected, atol=3e-7 * np.abs(expected).max())


def test_it_says_how_complete_it_is() -> None:
    net, x = convolutional_net(), pictures(1)
    twin = deepcopy(net.module).double()
    change = float(twin(x.double())[0, 0] - twin(torch.zeros_like(x).double())[0, 0])
    # The change (.019) is the difference of two logits (1.5) in single precision, each a sum of 72 products.
    # A sum of n terms is off by about sqrt(n) half units in its last place, and there are two such sums.
    size = float(net.module(x)[0, 0].abs())
    allowance = 2 * 72**0.5 * size * 2.0**-24 / abs(change)
    gaps = {}
    for steps in (4, 64):
        done = explained(net, subjects_of(x), Component("integrated_gradients", {"steps": steps}))
        gaps[steps] = abs(integral(twin, x.double(), steps) - change) / abs(change)
        told = done[0, "integrated_gradients"].result.checks["completeness_gap"]
        assert told == pytest.approx(gaps[steps], abs=allowance)
    assert allowance < gaps[4] / 20 and gaps[64] < gaps[4] / 100


def integral(module: torch.nn.Module, x: torch.Tensor, steps: int) -> float:
    """The trapezoid sum of the first logit's gradient on the way from black to `x`, times `x`."""
    total = torch.zeros_like(x)
    for step in range(steps):
        point = (x * step / (steps - 1)).requires_grad_()
        (gradient,) = torch.autograd.grad(module(point)[0, 0], point)
        total += gradient * (0.5 if step in (0, steps - 1) else 1.0) / (steps - 1)
    return float((total * x).sum())


def test_it_smooths_like_a_loop_over_draws() -> None:
    net, x = convolutional_net(), pictures(1)
    subject = Subject(2, "a", 5, image=x[0])
    total = torch.zeros(1, 3, SIDE, SIDE)
    for draw in range(7):
        noise = subject.draws("noise", draw).standard_normal((3, SIDE, SIDE), dtype=np.float32)
        noisy = (x + 0.3 * torch.from_numpy(noise)).requires_grad_()
        total += torch.autograd.grad(net.module(noisy)[0, 2], noisy)[0] / 7
    values = maps_of("smooth_grad", net, [subject], draws=7, sigma=0.3)[0]
    np.testing.assert_allclose(values, total.mean(1)[0].numpy(), atol=1e-8)
