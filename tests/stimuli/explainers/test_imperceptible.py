"""The scenario whose cause the eye does not find: how little it shows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from skimage.color import deltaE_ciede2000, rgb2lab

from stimuli.datasets.synthetic.cue_scenarios import open_synthetic
from stimuli.spec import Component

pytestmark = pytest.mark.pure
JUST_NOTICED = 1.0
"""CIEDE2000 between two even patches side by side: about the least that is noticed."""


def difference(left: NDArray[np.int64], right: NDArray[np.int64]) -> float:
    """The largest CIEDE2000 of two rows of colours (N, 3) of 0-255."""
    first, second = (rgb2lab((pixels / 255.0)[None])[0] for pixels in (left, right))
    return float(np.max(deltaE_ciede2000(first, second)))  # type: ignore[no-untyped-call]


def test_it_differs_at_no_grey_by_what_is_just_noticed() -> None:
    """Over every picture that there can be: the two cameras' colours of all 255 greys."""
    grey = np.repeat(np.arange(255)[:, None], 3, axis=1)
    reddish, bluish = grey + (1, 0, 0), grey + (0, 0, 1)
    assert difference(reddish, bluish) < JUST_NOTICED
    assert difference(reddish, grey) < JUST_NOTICED
    # Twice the step would be noticed.
    assert difference(grey[:-1] + (2, 0, 0), grey[:-1] + (0, 0, 2)) > JUST_NOTICED


@pytest.mark.parametrize("size_px", [160, 320])
def test_it_plants_one_level_in_one_channel_and_nothing_else(size_px: int) -> None:
    params = {"scenario": "imperceptible", "count": 8, "model_count": 16, "size_px": size_px}
    dataset = open_synthetic(Component("synthetic", params), Path())
    for item in dataset.items("people"):
        cue = dataset.plans[item.key].cue
        red, green, blue = np.moveaxis(dataset.pixels(item.key).astype(int), 2, 0)
        assert np.all(red - green == (1, 0)[cue]) and np.all(blue - green == (0, 1)[cue])
        other = dataset.swap(item.key, "camera").astype(int)
        assert np.array_equal(other[..., 1], green) and np.all(other[..., 0] - green == cue)
        assert dataset.mask(item.key).all()


def test_its_ears_tell_the_kinds_apart_no_better_than_they_overlap() -> None:
    """Shares are normal about points .2 apart with a deviation of .25, so that a person who knows both kinds
    is right in Phi(.4) = .66 of the pictures."""
    dataset = open_synthetic(
        Component("synthetic", {"scenario": "imperceptible", "model_count": 2000}), Path()
    )
    values: dict[str, list[float]] = {label: [] for label in dataset.labels}
    for item in dataset.items("model"):
        place = dataset.concepts.index("long ears")
        values[item.truth].append(float(dataset.concept_values(item.key)[place]))
    kit, red = (np.asarray(values[label]) for label in ("kit fox", "red fox"))
    middle = np.median(np.concatenate([kit, red]))
    assert 0.58 <= (np.mean(kit > middle) + np.mean(red < middle)) / 2 <= 0.70
