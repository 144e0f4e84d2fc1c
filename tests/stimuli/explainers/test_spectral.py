"""Spectral residual against its formulas written out with sums, and on pictures with one odd thing."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from stimuli.explainers.controls.spectral import spectral_residual_map
from tests.stimuli.tiny import convolutional_net, linear_net, maps_of, pictures, subjects_of

pytestmark = pytest.mark.pure


def by_sums(grey: NDArray[np.float64], sigma: float) -> NDArray[np.float64]:
    """The definition for a square picture of the right size: no transform, no filter of a library."""
    n = len(grey)
    wave = np.exp(-2j * np.pi * np.outer(np.arange(n), np.arange(n)) / n)
    spectrum = wave @ grey @ wave
    log = np.log(np.abs(spectrum))
    mean = sum(np.roll(log, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1)) / 9
    back = np.exp(log - mean) * spectrum / np.abs(spectrum)
    strength = np.abs(wave.conj() @ back @ wave.conj() / n**2) ** 2
    reach = int(4 * sigma + 0.5)
    bell = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    bell /= bell.sum()
    for axis in (0, 1):
        edged = np.pad(strength, [(reach, reach) if at == axis else (0, 0) for at in (0, 1)], mode="edge")
        strength = np.apply_along_axis(lambda line: np.convolve(line, bell, "valid"), axis, edged)
    return np.asarray((strength - strength.min()) / (strength.max() - strength.min()))


def test_it_follows_the_definition() -> None:
    picture = pictures(1, 32)[0].permute(1, 2, 0).numpy()
    expected = by_sums(picture.astype(np.float64).mean(2), 1.5)
    np.testing.assert_allclose(spectral_residual_map(picture, side=32, sigma=1.5), expected, atol=1e-6)


def test_it_finds_the_one_odd_thing() -> None:
    picture = np.full((160, 160, 3), 0.5, np.float32)
    for row in range(12, 150, 24):
        for column in range(12, 150, 24):
            picture[row : row + 4, column : column + 14] = 0.9
    picture[84:88, 108:122] = 0.5
    picture[79:93, 113:117] = 0.9
    place = np.unravel_index(spectral_residual_map(picture).argmax(), (160, 160))
    assert np.hypot(*np.subtract(place, (86, 115))) < 12


@pytest.mark.parametrize("shape", [(8, 8), (33, 57), (224, 224), (40, 160)])
def test_it_maps_pictures_of_any_size(shape: tuple[int, int]) -> None:
    picture = np.random.default_rng(1).random((*shape, 3), dtype=np.float32)
    values = spectral_residual_map(picture)
    assert values.shape == shape and values.dtype == np.float32
    assert values.min() == 0 and values.max() == 1


def test_it_says_nothing_where_nothing_stands_out() -> None:
    assert not spectral_residual_map(np.full((40, 40, 3), 0.3, np.float32)).any()


def test_it_never_asks_the_network() -> None:
    subjects = subjects_of(pictures(2))
    maps = maps_of("spectral_residual", linear_net(), subjects)
    np.testing.assert_array_equal(maps, maps_of("spectral_residual", convolutional_net(), subjects))
