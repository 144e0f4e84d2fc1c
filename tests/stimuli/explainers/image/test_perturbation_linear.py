"""A network that adds up its squares: every method that covers parts of the picture must find the weights."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.stats import spearmanr
from torch import nn

from stimuli.planner.values import Subject
from tests.stimuli.tiny import SIDE, Tiny, maps_of

pytestmark = pytest.mark.pure
CELLS = 4
WIDTH = SIDE // CELLS
BRIGHTNESS = 0.8


class Squares(nn.Module):
    """The logit is the sum of 16 weights times the mean brightness of 16 squares."""

    def __init__(self, weights: NDArray[np.float64]) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.from_numpy(weights).float(), requires_grad=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        squares = nn.functional.avg_pool2d(x.mean(1, keepdim=True), WIDTH).flatten(1)
        return torch.stack([squares @ self.weights, squares @ -self.weights], 1)


WEIGHTS = np.random.default_rng(4).permutation(np.linspace(-1, 1, CELLS**2))
NET = Tiny(Squares(WEIGHTS), ("for", "against"))
SUBJECT = Subject(0, "a", 1, image=torch.full((3, SIDE, SIDE), BRIGHTNESS))


def squares_of(name: str, **params: object) -> NDArray[np.float64]:
    """The mean of the map in each square, (16,)."""
    values = maps_of(name, NET, [SUBJECT], rows=64, **params)[0].astype(float)
    return np.asarray(values.reshape(CELLS, WIDTH, CELLS, WIDTH).mean((1, 3)).ravel(), np.float64)


def test_it_finds_the_weights_by_covering_squares() -> None:
    values = squares_of("occlusion", patch_share=0.25, stride_share=0.25)
    np.testing.assert_allclose(values, BRIGHTNESS * WEIGHTS, atol=1e-6)


def test_it_finds_the_weights_by_owen_values() -> None:
    values = squares_of("shap_partition", fill="flat", value=0.0, evaluations=2000, per_round=64)
    np.testing.assert_allclose(values, BRIGHTNESS * WEIGHTS / WIDTH**2, atol=1e-7)


def test_it_finds_the_weights_by_lime() -> None:
    params = {"segmentation": "grid-1", "segments": 16, "samples": 200, "alpha": 1e-6, "output": "logit"}
    values = squares_of("lime_image", **params)
    np.testing.assert_allclose(values, BRIGHTNESS * WEIGHTS, atol=1e-4)


def test_it_ranks_the_weights_by_random_masks() -> None:
    values = squares_of("rise", masks=8000, grid=8, output="logit")
    assert spearmanr(values, WEIGHTS).statistic > 0.9


@pytest.mark.parametrize("name", ["integrated_gradients", "gradient_x_input"])
def test_it_finds_the_weights_by_gradients(name: str) -> None:
    np.testing.assert_allclose(squares_of(name), BRIGHTNESS * WEIGHTS / WIDTH**2 / 3, atol=1e-7)
