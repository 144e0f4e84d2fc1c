"""ROAD: imputation as a linear system, curves by a loop, and what a perfect ranking scores."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from stimuli.planner.imputing import impute_pixels
from stimuli.planner.ranking import most_important_first
from stimuli.planner.values import Subject
from stimuli.types import PixelAttribution
from tests.stimuli.measuring import number_of, pixel_maps
from tests.stimuli.tiny import SIDE, Tiny, convolutional_net, pictures, subjects_of

pytestmark = pytest.mark.pure
Floats = NDArray[np.float64]


def holes(share: float, side: int = 12, seed: int = 0) -> NDArray[np.bool_]:
    return np.random.default_rng(seed).random((side, side)) < share


@pytest.mark.parametrize("share", [0.1, 0.5, 0.97])
def test_it_makes_every_hidden_pixel_the_mean_of_its_neighbours(share: float) -> None:
    """The definition itself, pixel by pixel; seen pixels stay to the bit."""
    picture, hidden = np.random.default_rng(1).random((3, 12, 12)), holes(share)
    filled = impute_pixels(picture, hidden)
    np.testing.assert_array_equal(filled[:, ~hidden], picture[:, ~hidden])
    for row, column in np.argwhere(hidden):
        total, weights = np.zeros(3), 0.0
        for down in (-1, 0, 1):
            for across in (-1, 0, 1):
                at = row + down, column + across
                if (down or across) and 0 <= at[0] < 12 and 0 <= at[1] < 12:
                    weight = 2.0 if 0 in (down, across) else 1.0
                    total, weights = total + weight * filled[:, at[0], at[1]], weights + weight
        np.testing.assert_allclose(filled[:, row, column], total / weights, atol=1e-12)


def test_it_continues_a_slope() -> None:
    """A linear ramp is its own mean of neighbours: a hole in it is filled in without a trace."""
    ramp = np.add.outer(np.arange(16.0), 2 * np.arange(16.0))[None] / 50
    hidden = np.zeros((16, 16), bool)
    hidden[4:11, 3:12] = True
    np.testing.assert_allclose(impute_pixels(ramp, hidden), ramp, atol=1e-12)


def test_it_knows_the_two_ends() -> None:
    picture = np.random.default_rng(1).random((3, 6, 6))
    assert (impute_pixels(picture, np.ones((6, 6), bool)) == 0.5).all()
    np.testing.assert_array_equal(impute_pixels(picture, np.zeros((6, 6), bool)), picture)


def test_it_is_the_loop_over_both_ends_of_the_ranking() -> None:
    net, subject = convolutional_net(), subjects_of(pictures(1))[0]
    [made] = pixel_maps(1, SIDE)
    number = number_of(net, subject, made, "road", steps=4, noise=0.0)
    order, picture = most_important_first(made.values), subject.pixels.numpy().astype(np.float64)

    def said(places: NDArray[np.int64]) -> float:
        hidden = np.zeros(SIDE * SIDE, bool)
        hidden[places] = True
        copy = torch.from_numpy(impute_pixels(picture, hidden.reshape(SIDE, SIDE))[None]).float()
        return float(net.module(copy).softmax(1)[0, subject.target])

    counts = [round(SIDE * SIDE * step / 4) for step in (1, 2, 3)]
    most = [said(order[:count]) for count in counts]
    least = [said(order[-count:]) for count in counts]
    assert number.details["most_first"] == pytest.approx(most, abs=1e-6)
    assert number.details["least_first"] == pytest.approx(least, abs=1e-6)
    assert number.details["shares"] == pytest.approx([0.25, 0.5, 0.75])
    assert number.value == pytest.approx(np.mean(least) - np.mean(most), abs=1e-6)
    assert -number_of(net, subject, opposite(made), "road", steps=4, noise=0.0).value == pytest.approx(
        number.value, abs=1e-6
    )


def opposite(made: PixelAttribution) -> PixelAttribution:
    return PixelAttribution(-made.values, True)


class Bright(nn.Module):
    """The logit is the mean brightness of the upper half; a second one is 0."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logit = 4 * x[:, :, : SIDE // 2].mean((1, 2, 3))
        return torch.stack([logit, 0 * logit], 1)


def test_it_scores_the_map_that_is_right_above_the_map_that_is_wrong() -> None:
    """A bright upper half on black: filling its pixels in from below costs, filling in below does not."""
    picture = torch.zeros((3, SIDE, SIDE))
    picture[:, : SIDE // 2] = 1
    subject = Subject(0, "halves", 1, image=picture)
    right = PixelAttribution(picture.mean(0).numpy(), True)
    scores = [
        number_of(Tiny(Bright(), ("a", "b")), subject, made, "road", noise=0.0).value
        for made in (right, opposite(right))
    ]
    assert scores[0] > 0.05 > -0.05 > scores[1]


def test_it_draws_noise_of_the_declared_strength_by_key_and_seed() -> None:
    class Spread(nn.Module):
        """The logit is the mean square of the picture's left half, which is hidden."""

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            spread = (x[..., : SIDE // 2] - 0.5).square().mean((1, 2, 3))
            return torch.stack([spread, 0 * spread], 1)

    net, grey = Tiny(Spread(), ("a", "b")), torch.full((3, SIDE, SIDE), 0.5)
    left = np.tile(np.arange(SIDE, 0, -1, dtype=np.float32), (SIDE, 1))
    spreads = []
    for seed in (1, 1, 2):
        subject = Subject(0, "grey", seed, image=grey)
        number = number_of(
            net, subject, PixelAttribution(left, True), "road", steps=2, noise=0.2, score="logit"
        )
        spreads.append(number.details["most_first"][0])
    assert spreads[0] == spreads[1] != spreads[2]
    assert spreads[0] == pytest.approx(0.04, rel=0.15)
