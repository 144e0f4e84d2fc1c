"""Ties: one drawn order for all, which knows no upper edge."""

import numpy as np
import pytest
import torch
from torch import nn

from stimuli.planner.ranking import most_important_first
from stimuli.planner.values import Subject
from stimuli.types import PixelAttribution
from tests.stimuli.measuring import number_of
from tests.stimuli.tiny import SIDE, Tiny

pytestmark = pytest.mark.pure


class UpperHalf(nn.Module):
    """The logit is the mean brightness of the upper half; a second one is 0."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logit = 6 * x[:, :, : SIDE // 2].mean((1, 2, 3)) - 3
        return torch.stack([logit, 0 * logit], 1)


def test_it_sorts_what_differs() -> None:
    values = np.random.default_rng(1).random((9, 7))
    np.testing.assert_array_equal(most_important_first(values), np.argsort(-values.ravel()))


def test_it_has_one_order_for_equal_values_of_all_maps() -> None:
    """The places that two maps leave equal follow one another alike; none is favoured by where it lies."""
    first, second = np.zeros((40, 40)), np.zeros((40, 40))
    first[3, 5], second[30, 8] = 1, 2
    orders = [most_important_first(first), most_important_first(second)]
    assert orders[0][0] == 3 * 40 + 5 and orders[1][0] == 30 * 40 + 8
    ties = [order[~np.isin(order, [125, 1208])] for order in orders]
    np.testing.assert_array_equal(ties[0], ties[1])
    rows = ties[0][:400] // 40
    assert rows.mean() == pytest.approx(19.5, abs=4 * 11.5 / 20)
    assert sorted(orders[0]) == list(range(1600))


@pytest.mark.parametrize("metric", ["deletion", "insertion"])
def test_it_scores_an_empty_map_as_a_random_one(metric: str) -> None:
    """From top to bottom, an empty map would look like the best one of a network that looks at the top."""
    net, picture = Tiny(UpperHalf(), ("a", "b")), torch.ones((3, SIDE, SIDE))
    subject = Subject(0, "white", 1, image=picture)

    def area(values: np.ndarray[tuple[int, int], np.dtype[np.float32]]) -> float:
        made = PixelAttribution(values, True)
        return number_of(net, subject, made, metric, baseline="black").value

    draws = np.random.default_rng(2)
    shape = (SIDE, SIDE)
    random = [area(draws.random(shape, dtype=np.float32)) for _ in range(30)]
    raster = area(np.arange(SIDE * SIDE, 0, -1, dtype=np.float32).reshape(shape))
    empty = area(np.zeros(shape, np.float32))
    assert empty == pytest.approx(float(np.mean(random)), abs=4 * float(np.std(random)))
    assert abs(raster - np.mean(random)) > 10 * np.std(random)
