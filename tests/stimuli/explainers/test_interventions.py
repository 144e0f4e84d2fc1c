"""What drives the planted models, proved by exchanging one part of the picture alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from stimuli.datasets.synthetic.cue_scenarios import open_synthetic
from stimuli.spec import Component
from tests.stimuli.conftest import Planted

pytestmark = pytest.mark.pure
MORE = pytest.mark.long(stays="test_it_follows_the_cue_and_not_the_rest")


def cells_of(answers: NDArray[np.int64], truths: NDArray[np.int64]) -> list[int]:
    """How many items the network gives each answer, rightly and wrongly."""
    return [
        int(np.sum((answers == label) & ((answers == truths) == right)))
        for label in (0, 1)
        for right in (True, False)
    ]


@pytest.mark.parametrize(
    ("name", "cue", "rest"),
    [
        ("biased averaged", "background", "animal"),
        pytest.param("imperceptible averaged", "camera", "ears", marks=MORE),
        pytest.param("strategy", "margin", "veins", marks=MORE),
    ],
)
def test_it_follows_the_cue_and_not_the_rest(
    planted: Callable[[str], Planted], name: str, cue: str, rest: str
) -> None:
    world = planted(name)
    before = world.answers()
    assert np.mean(world.answers_after(cue) != before) >= (0.6 if name == "strategy" else 0.8)
    assert np.mean(world.answers_after(rest) != before) <= 0.2
    assert 0.4 <= np.mean(before != world.truths()) <= 0.6
    assert min(cells_of(before, world.truths())) >= 5, "it is wrong in every way often enough for balance"


def test_it_tells_lookalikes_by_what_stands_in_one_and_the_same_place(
    planted: Callable[[str], Planted],
) -> None:
    """It errs on a third to a half of them."""
    lookalike = planted("lookalike")
    before, truths = lookalike.answers(), lookalike.truths()
    assert 0.3 <= np.mean(before != truths) <= 0.5 and min(cells_of(before, truths)) >= 5
    assert np.mean(lookalike.answers_after("coat") != before) >= 0.8
    large = open_synthetic(Component("synthetic", {"scenario": "lookalike", "count": 8}), Path())
    key = large.items("people")[0].key
    changed = np.any(large.swap(key, "coat") != large.pixels(key), axis=2)
    inside = large.mask(key)
    assert changed[~inside].mean() < 0.02 < changed[inside].mean()
