"""RISE against a plain loop over masks that torch enlarges, and what the paper says about its masks."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from stimuli.explainers.perturbation.rise import MaskBank, mask_bank
from stimuli.planner.values import Subject
from tests.stimuli.cam_networks import steeper
from tests.stimuli.tiny import SIDE, Tiny, convolutional_net, maps_of, pictures, subjects_of

pytestmark = pytest.mark.pure


def naive_masks(bank: MaskBank, places: range) -> NDArray[np.float64]:
    """Each grid enlarged by torch to one cell more than the picture, and a window cut out of it."""
    cell = -(-bank.height // bank.cells.shape[1])
    size = (bank.cells.shape[1] + 1) * cell
    masks = []
    for place in places:
        grid = torch.from_numpy(bank.cells[place])[None, None].double()
        fine = torch.nn.functional.interpolate(grid, size=(size, size), mode="bilinear", align_corners=False)
        top, left = bank.shifts[place]
        masks.append(fine[0, 0, top : top + bank.height, left : left + bank.width].numpy())
    return np.stack(masks)


@pytest.mark.parametrize("side", [24, 30, 31])
def test_it_enlarges_shifts_and_cuts_like_torch(side: int) -> None:
    bank = mask_bank(3, 20, 7, 0.5, side, side)
    masks = bank.masks(range(20), torch.zeros(3, side, side))
    assert masks.dtype == torch.float32 and masks.shape == (20, side, side)
    np.testing.assert_allclose(masks.numpy(), naive_masks(bank, range(20)), atol=1e-6)


@pytest.mark.parametrize("output", ["probability", "logit"])
def test_it_weighs_masks_like_a_loop(output: str) -> None:
    net, x = convolutional_net(), pictures(2)
    maps = maps_of("rise", net, subjects_of(x), masks=50, grid=5, keep=0.3, output=output, rows=16)
    masks = naive_masks(mask_bank(7, 50, 5, 0.3, SIDE, SIDE), range(50))
    for at in range(2):
        total, seen = np.zeros((SIDE, SIDE)), np.zeros((SIDE, SIDE))
        for mask in masks:
            logits = net.module(x[at : at + 1] * torch.from_numpy(mask).float()).double()
            score = logits.softmax(1)[0, at] if output == "probability" else logits[0, at]
            total += float(score) * mask
            seen += mask
        np.testing.assert_allclose(maps[at], total / seen, rtol=2e-6, atol=1e-7)


class Corner(nn.Module):
    """The logit rises with the brightness of one corner, and with nothing else."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        seen = x[:, :, :6, :6].mean((1, 2, 3))
        return torch.stack([5.7 + seen, 5.7 - seen], 1)


def test_it_does_not_show_how_often_its_masks_show_a_pixel() -> None:
    """A large constant part of the score once made the bank's own density the strongest part of the map."""
    white = Subject(0, "a", 1, image=torch.ones((3, SIDE, SIDE)))
    net = Tiny(Corner(), ("for", "against"))
    values = maps_of("rise", net, [white], masks=600, grid=4, output="logit", rows=64)[0].astype(float)
    even = mask_bank(1, 600, 4, 0.5, SIDE, SIDE).weighed(np.ones(600)) / 300
    assert values[:6, :6].mean() > values[6:, 6:].max()
    # Away from the corner the mean score is the same up to chance, and the density explains little of it.
    away = np.s_[12:, 12:]
    assert values[away].std() < 0.25 * (5.7 * even[away]).std()


@pytest.mark.parametrize("output", ["probability", "logit"])
def test_it_is_flat_where_the_network_does_not_look(output: str) -> None:
    net, x = steeper(convolutional_net(), 0), pictures(2)
    net.layer_module("3").get_parameter("bias").data += torch.tensor([2.7, 0.3, -1.1, 0.0])
    maps = maps_of("rise", net, subjects_of(x), masks=50, output=output)
    for at in range(2):
        logits = net.module(x[at : at + 1]).double()
        score = float(logits.softmax(1)[0, at] if output == "probability" else logits[0, at])
        np.testing.assert_array_equal(maps[at], np.float32(maps[at, 0, 0]))
        assert maps[at, 0, 0] == pytest.approx(score, rel=1e-6)


def test_it_gives_pixels_that_no_mask_shows_the_mean_of_all_scores() -> None:
    net, x = convolutional_net(), pictures(1)
    values = maps_of("rise", net, subjects_of(x), masks=8, keep=0.05)[0]
    masks = naive_masks(mask_bank(7, 8, 7, 0.05, SIDE, SIDE), range(8))
    unseen = masks.sum(0) == 0
    assert unseen.any()
    scores = net.module(x * torch.from_numpy(masks[:, None]).float()).double().softmax(1)[:, 0]
    np.testing.assert_allclose(values[unseen], float(scores.mean()), rtol=1e-6)


def test_it_keeps_the_share_that_was_asked() -> None:
    bank = mask_bank(1, 4000, 7, 0.3, 28, 28)
    assert bank.cells.mean() == pytest.approx(0.3, abs=4 * (0.21 / bank.cells.size) ** 0.5)
    even = bank.weighed(np.full(4000, 1 / 4000))
    assert np.abs(even - 0.3).max() < 5 * (0.21 / 4000) ** 0.5
    assert set(np.unique(bank.shifts)) == set(range(4))


def test_it_takes_the_first_masks_of_a_larger_bank() -> None:
    few, many = mask_bank(1, 10, 7, 0.5, 28, 28), mask_bank(1, 40, 7, 0.5, 28, 28)
    np.testing.assert_array_equal(few.cells, many.cells[:10])
    np.testing.assert_array_equal(few.shifts, many.shifts[:10])


def test_it_names_equal_masks_alike_and_others_not() -> None:
    bank = mask_bank(2, 300, 2, 0.5, 8, 8)
    masks = naive_masks(bank, range(300)).round(9)
    by_name: dict[object, set[bytes]] = {}
    for name, mask in zip(bank.names, masks, strict=True):
        by_name.setdefault(name, set()).add(mask.tobytes())
    assert len(by_name) < 300
    assert all(len(equal_masks) == 1 for equal_masks in by_name.values())
