"""What is wrong with a set of fields: planted faults are found, and material without them is not accused."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from scipy.ndimage import gaussian_filter
from sklearn.metrics import roc_auc_score

from stimuli.quality.field_faults import (
    PERIODS,
    answer_auc,
    is_flat,
    lattice_energy,
    map_features,
    mean_map_correlation,
    picture_features,
    share_inside,
)
from stimuli.types import Plane

pytestmark = pytest.mark.pure
SIDE = 56
LIMIT = 0.25
"""A mean lattice above it is warned of."""


def noise(seed: int, sigma: float = 0.0) -> Plane:
    values = np.random.default_rng(seed).random((SIDE, SIDE))
    smooth = gaussian_filter(values, sigma) if sigma else values
    return np.asarray((smooth - smooth.min()) / np.ptp(smooth), np.float32)


def dots(period: int) -> Plane:
    board = np.zeros((SIDE, SIDE), np.float32)
    board[::period, ::period] = 1
    return board


@pytest.mark.parametrize("period", PERIODS)
def test_it_finds_a_grid_of_dots(period: int) -> None:
    assert lattice_energy(dots(period)) > 0.7, "all power but its mean, less what noise has there"
    energies = [
        lattice_energy(np.asarray(0.2 * noise(seed) + 0.8 * dots(period), np.float32)) for seed in range(20)
    ]
    assert sum(energy > LIMIT for energy in energies) >= 19


@pytest.mark.parametrize("sigma", [0.0, 1.0, 4.0])
def test_it_accuses_no_noise_and_no_smooth_map_of_a_grid(sigma: float) -> None:
    assert max(lattice_energy(noise(seed, sigma)) for seed in range(20)) < LIMIT / 2
    coarse = Image.fromarray(np.random.default_rng(3).random((7, 7)).astype(np.float32))
    enlarged = np.asarray(coarse.resize((SIDE, SIDE), Image.Resampling.BILINEAR), np.float32)
    assert lattice_energy(enlarged) < LIMIT / 2
    assert lattice_energy(np.zeros((SIDE, SIDE), np.float32)) == 0


def test_an_empty_field_is_flat_and_no_other() -> None:
    assert is_flat(np.zeros((4, 4), np.float32)) and not is_flat(noise(1))


def test_it_says_how_much_the_maps_of_a_method_are_one() -> None:
    """Against numpy's correlation, field by field, with the mean of the others."""
    fields = [noise(seed) for seed in range(6)]
    by_hand = [
        np.corrcoef(field.ravel(), np.mean([f for f in fields if f is not field], 0).ravel())[0, 1]
        for field in fields
    ]
    flat = np.zeros((SIDE, SIDE), np.float32)
    assert mean_map_correlation([*fields, flat]) == pytest.approx(np.mean(by_hand), abs=1e-6)
    assert mean_map_correlation([noise(1)] * 4) == pytest.approx(1)
    assert np.isnan(mean_map_correlation([flat, noise(1)]))


def test_it_counts_the_most_marked_pixels_of_a_region() -> None:
    field = np.zeros((10, 10), np.float32)
    field[0] = np.arange(10, 0, -1) / 10
    region = np.zeros((10, 10), bool)
    region[0, :3] = True
    assert [share_inside(field, region, share) for share in (0.01, 0.03, 0.06)] == pytest.approx([1, 1, 0.5])
    assert share_inside(-field, region, 0.03) == 1, "on whichever side"


def planted(seed: int, strength: float, count: int = 40) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    rng = np.random.default_rng(seed)
    answer = np.arange(count) % 2 == 0
    features = rng.standard_normal((count, 12))
    features[:, 3] += strength * answer
    return features, answer


def test_it_guesses_an_answer_as_a_loop_over_left_out_groups_does() -> None:
    features, answer = planted(2, 1.5)
    groups = [str(at // 2) for at in range(len(answer))]
    scaled = features - features.mean(0)
    scaled = scaled / (scaled.std(0) * np.sqrt(scaled.shape[1]))
    said = np.zeros(len(answer))
    for name in set(groups):
        out = np.array([group == name for group in groups])
        middle, share = scaled[~out].mean(0), answer[~out].mean()
        centred = scaled[~out] - middle
        slopes = np.linalg.solve(
            centred.T @ centred + np.eye(centred.shape[1]), centred.T @ (answer[~out] - share)
        )
        said[out] = (scaled[out] - middle) @ slopes
    assert answer_auc(features, answer, groups) == pytest.approx(roc_auc_score(answer, said))


def test_it_guesses_better_the_more_there_is_to_guess_from() -> None:
    means = []
    for strength in (0.0, 1.0, 4.0):
        areas = [answer_auc(*planted(seed, strength), [str(at) for at in range(40)]) for seed in range(20)]
        means.append(float(np.mean(areas)))
    assert all(later > earlier for earlier, later in pairwise(means))
    assert means[0] < 0.6 and means[-1] > 0.95


def test_it_cannot_guess_without_two_groups_of_each_answer() -> None:
    features, answer = planted(1, 1)
    assert np.isnan(answer_auc(features, answer, ["same" if is_first else "other" for is_first in answer]))


def test_features_see_where_a_map_lies_and_a_picture_is_coloured() -> None:
    left, right = np.zeros((SIDE, SIDE), np.float32), np.zeros((SIDE, SIDE), np.float32)
    left[20:30, :10] = 1
    right[20:30, -10:] = 1
    assert not np.allclose(map_features(left), map_features(right))
    red = np.zeros((SIDE, SIDE, 3), np.uint8)
    red[..., 0] = 255
    assert picture_features(red).reshape(25, 3) == pytest.approx(np.tile([1.0, 0.0, 0.0], (25, 1)))
