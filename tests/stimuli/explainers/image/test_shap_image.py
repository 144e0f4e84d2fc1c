"""Owen values against shap's own partition explainer, and against all orders of a tiny tree."""

from __future__ import annotations

from itertools import product
from typing import Any

import cv2
import numpy as np
import pytest
import shap
import torch
from numpy.typing import NDArray
from torch import nn

from stimuli.explainers import open_explainer
from stimuli.explainers.perturbation.partition_shap import box_blur
from stimuli.planner.values import Subject
from stimuli.spec import Component
from tests.stimuli.tiny import (
    SIDE,
    Tiny,
    convolutional_net,
    explained,
    maps_of,
    pictures,
    seeded,
    subjects_of,
)

pytestmark = [
    pytest.mark.pure,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.usefixtures("uncompiled_shap"),
]


def by_package(net: Tiny, x: torch.Tensor, target: int, masker: Any, evaluations: int) -> NDArray[np.float64]:
    def said(stack: NDArray[np.float32]) -> NDArray[np.float64]:
        with torch.no_grad():
            logits = net.module(torch.from_numpy(stack).permute(0, 3, 1, 2).contiguous().float())
        return np.asarray(logits[:, target].double().numpy(), np.float64)

    explainer = shap.PartitionExplainer(said, masker)
    picture = x.permute(1, 2, 0).numpy()
    explanation = explainer(picture[None], max_evals=evaluations, batch_size=10, silent=True)
    return np.asarray(explanation.values[0].sum(-1), np.float64)


def rounding(net: Tiny, x: torch.Tensor, expected: NDArray[np.float64]) -> float:
    """A logit in single precision is off by about a unit in its last place, on either side; the value of a
    part of the picture is a mean of differences of two logits, and its pixels share it."""
    unit = float(np.spacing(np.float32(net.module(x).detach().abs().max())))
    smallest_part = int(np.unique(expected.round(12), return_counts=True)[1].min())
    return 4 * unit / smallest_part


@pytest.mark.parametrize("evaluations", [12, 82, 200])
def test_it_finds_the_values_of_the_package_on_a_blurred_ground(evaluations: int) -> None:
    net, x = convolutional_net(), pictures(2)
    masker = shap.maskers.Image("blur(16,16)", x[1].permute(1, 2, 0).shape)
    expected = by_package(net, x[1], 1, masker, evaluations)
    params: dict[str, Any] = {"evaluations": evaluations, "blur_px": 16}
    values = maps_of("shap_partition", net, subjects_of(x[1:], first=1), **params)[0]
    np.testing.assert_allclose(values, expected, rtol=0, atol=rounding(net, x, expected))


def test_it_finds_the_values_of_the_package_on_a_flat_ground() -> None:
    net, x = convolutional_net(), pictures(1)
    masker = shap.maskers.Image(np.full((SIDE, SIDE, 3), 0.25, np.float32))
    expected = by_package(net, x[0], 0, masker, 100)
    params: dict[str, Any] = {"evaluations": 100, "fill": "flat", "value": 0.25}
    values = maps_of("shap_partition", net, subjects_of(x), **params)[0]
    np.testing.assert_allclose(values, expected, rtol=0, atol=rounding(net, x, expected))


@pytest.mark.parametrize(("side", "width"), [(24, 9), (24, 8), (40, 128), (160, 128)])
def test_it_blurs_like_opencv(side: int, width: int) -> None:
    picture = pictures(1, side)[0].numpy()
    expected = cv2.blur(picture.transpose(1, 2, 0), (width, width)).transpose(2, 0, 1)
    np.testing.assert_allclose(box_blur(picture, width), expected, atol=2e-6)


def all_orders(score: Any, height: int, width: int) -> NDArray[np.float64]:
    """Mean of what each pixel adds, over every order that keeps each half together."""

    def orders(box: tuple[int, int, int, int]) -> list[list[tuple[int, int]]]:
        top, bottom, left, right = box
        if (bottom - top) * (right - left) == 1:
            return [[(top, left)]]
        if bottom - top >= right - left:
            middle = (top + bottom) // 2
            halves = (top, middle, left, right), (middle, bottom, left, right)
        else:
            middle = (left + right) // 2
            halves = (top, bottom, left, middle), (top, bottom, middle, right)
        pairs = list(product(orders(halves[0]), orders(halves[1])))
        return [left + right for left, right in pairs] + [right + left for left, right in pairs]

    total, every = np.zeros((height, width)), orders((0, height, 0, width))
    for order in every:
        shown = np.zeros((height, width), bool)
        before = score(shown)
        for place in order:
            shown[place] = True
            after = score(shown)
            total[place] += (after - before) / len(every)
            before = after
    return total


@pytest.mark.parametrize("size", [(2, 2), (2, 3), (4, 2)])
def test_it_finds_owen_values(size: tuple[int, int]) -> None:
    layers = nn.Sequential(nn.Flatten(), nn.Linear(3 * size[0] * size[1], 6), nn.Tanh(), nn.Linear(6, 2))
    net = Tiny(seeded(layers), ("a", "b"))
    x = torch.rand(3, *size, generator=torch.Generator().manual_seed(2))

    def score(shown: NDArray[np.bool_]) -> float:
        seen = torch.where(torch.from_numpy(shown), x, torch.tensor(0.5))
        return float(net.module(seen[None])[0, 1])

    subject = Subject(1, "a", 1, image=x)
    params: dict[str, Any] = {"evaluations": 1000, "fill": "flat", "per_round": 4}
    done = explained(net, [subject], Component("shap_partition", params))
    attribution = done[0, "shap_partition"].result
    np.testing.assert_allclose(attribution.values, all_orders(score, *size), atol=1e-6)


@pytest.mark.parametrize("output", ["logit", "probability"])
def test_it_shares_the_whole_score_out(output: str) -> None:
    net, x = convolutional_net(), pictures(1)
    component = Component("shap_partition", {"fill": "flat", "value": 0.0, "output": output})
    result = explained(net, subjects_of(x), component)[0, "shap_partition"].result
    with torch.no_grad():
        ends = net.module(torch.cat([x, torch.zeros_like(x)])).double()
    ends = ends[:, 0] if output == "logit" else ends.softmax(1)[:, 0]
    assert float(result.values.sum(dtype=np.float64)) == pytest.approx(float(ends[0] - ends[1]), abs=1e-6)
    assert result.checks["efficiency_gap"] < 1e-9


@pytest.mark.parametrize(("evaluations", "per_round"), [(200, 10), (51, 16), (5, 10), (4, 2)])
def test_it_runs_no_more_than_was_allowed(evaluations: int, per_round: int) -> None:
    asked = []
    subject = subjects_of(pictures(1))[0]
    params = {"evaluations": evaluations, "per_round": per_round}
    steps = open_explainer(Component("shap_partition", params)).explain(convolutional_net(), subject)
    ask: Any = next(steps)
    while True:
        asked.append(len(ask.variants))
        try:
            ask = steps.send(np.linspace(0, 1, asked[-1]) + len(asked))
        except StopIteration:
            break
    assert sum(asked) <= evaluations and sum(asked) >= evaluations - 1
    assert max(asked) <= max(2, per_round)
