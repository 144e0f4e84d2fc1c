"""RISE against a plain loop over masks that torch enlarges, and what the paper says about its masks."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from stimuli.explainers.rise import MaskBank, mask_bank
from tests.stimuli.tiny import SIDE, convolutional_net, maps_of, pictures, subjects_of

pytestmark = pytest.mark.pure


def naive_masks(bank: MaskBank, places: range) -> NDArray[np.float64]:
    """Each grid enlarged by torch to one cell more than the picture, and a window cut out of it."""
    cell = -(-bank.height // bank.cells.shape[1])
    size = (bank.cells.shape[1] + 1) * cell
    found = []
    for place in places:
        grid = torch.from_numpy(bank.cells[place])[None, None].double()
        fine = torch.nn.functional.interpolate(grid, size=(size, size), mode="bilinear", align_corners=False)
        top, left = bank.shifts[place]
        found.append(fine[0, 0, top : top + bank.height, left : left + bank.width].numpy())
    return np.stack(found)


@pytest.mark.parametrize("side", [24, 30, 31])
def test_it_enlarges_shifts_and_cuts_like_torch(side: int) -> None:
    bank = mask_bank(3, 20, 7, 0.5, side, side)
    masks = bank.masks(range(20), torch.zeros(3, side, side))
    assert masks.dtype == torch.float32 and masks.shape == (20, side, side)
    np.testing.assert_allclose(masks.numpy(), naive_masks(bank, range(20)), atol=1e-6)


@pytest.mark.parametrize("output", ["probability", "logit"])
def test_it_weighs_masks_like_a_loop(output: str) -> None:
    net, x = convolutional_net(), pictures(2)
    found = maps_of("rise", net, subjects_of(x), masks=50, grid=5, keep=0.3, output=output, rows=16)
    masks = naive_masks(mask_bank(7, 50, 5, 0.3, SIDE, SIDE), range(50))
    for at in range(2):
        expected = np.zeros((SIDE, SIDE))
        for mask in masks:
            logits = net.module(x[at : at + 1] * torch.from_numpy(mask).float()).double()
            score = logits.softmax(1)[0, at] if output == "probability" else logits[0, at]
            expected += float(score) * mask / (50 * 0.3)
        np.testing.assert_allclose(found[at], expected, rtol=2e-6, atol=1e-7)


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
    assert all(len(found) == 1 for found in by_name.values())
