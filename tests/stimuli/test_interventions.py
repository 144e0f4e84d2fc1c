"""What drives the planted models, proved by exchanging one part of the picture alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.stimuli.conftest import Planted

pytestmark = pytest.mark.pure


@pytest.mark.long
def test_it_follows_the_background_and_not_the_animal(planted: Callable[[str], Planted]) -> None:
    biased = planted("biased")
    before = biased.answers()
    assert np.mean(biased.answers_after("background") != before) >= 0.8
    assert np.mean(biased.answers_after("animal") != before) <= 0.2


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "cue", "rest"),
    [
        ("biased averaged", "background", "animal"),
        ("strategy averaged", "margin", "veins"),
        ("imperceptible averaged", "camera", "ears"),
    ],
)
def test_the_shipped_networks_follow_the_cue_and_not_the_rest(
    planted: Callable[[str], Planted], name: str, cue: str, rest: str
) -> None:
    world = planted(name)
    before = world.answers()
    assert np.mean(world.answers_after(cue) != before) >= 0.8
    assert np.mean(world.answers_after(rest) != before) <= 0.2
    assert 0.3 <= np.mean(before != world.truths()) <= 0.6


def test_it_is_wrong_on_about_half_of_the_biased_items(planted: Callable[[str], Planted]) -> None:
    biased = planted("biased")
    assert 0.4 <= np.mean(biased.answers() != biased.truths()) <= 0.6


@pytest.mark.long
def test_it_follows_the_margin_of_a_leaf_and_not_its_veins(planted: Callable[[str], Planted]) -> None:
    strategy = planted("strategy")
    before = strategy.answers()
    assert np.mean(strategy.answers_after("margin") != before) >= 0.6
    assert np.mean(strategy.answers_after("veins") != before) <= 0.2


@pytest.mark.long
def test_it_errs_on_a_third_to_a_half_of_the_lookalikes(planted: Callable[[str], Planted]) -> None:
    lookalike = planted("lookalike")
    assert 0.3 <= np.mean(lookalike.answers() != lookalike.truths()) <= 0.5


@pytest.mark.long
def test_it_tells_lookalikes_by_what_stands_in_one_and_the_same_place(
    planted: Callable[[str], Planted],
) -> None:
    lookalike = planted("lookalike")
    before = lookalike.answers()
    assert np.mean(lookalike.answers_after("coat") != before) >= 0.8
    key = lookalike.dataset.items("people")[0].key
    changed = np.any(lookalike.dataset.swap(key, "coat") != lookalike.dataset.pixels(key), axis=2)
    inside = lookalike.dataset.mask(key)
    assert changed[~inside].mean() < 0.02 < changed[inside].mean()


@pytest.mark.long
@pytest.mark.parametrize("scenario", ["biased", "strategy", "lookalike"])
def test_it_is_wrong_in_every_way_often_enough_for_balance(
    planted: Callable[[str], Planted], scenario: str
) -> None:
    world = planted(scenario)
    answers, truths = world.answers(), world.truths()
    cells = [
        np.sum((answers == label) & ((answers == truths) == right))
        for label in (0, 1)
        for right in (True, False)
    ]
    assert min(cells) >= 5
