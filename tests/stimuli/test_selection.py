from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from stimuli.errors import BadSpec
from stimuli.selection import balanced, select, strata

pytestmark = pytest.mark.pure


@dataclass(frozen=True)
class Guess:
    key: str
    truth: str
    predicted: str
    confidence: float


POOL = [
    Guess(f"{truth}{predicted}{n}", truth, predicted, 0.5 + 0.05 * n)
    for truth in "ab"
    for predicted in "ab"
    for n in range(6)
]


def test_it_draws_the_asked_number_of_each_stratum() -> None:
    chosen = select(POOL, {("a", True): 3, ("a", False): 2, ("b", False): 4}, np.random.default_rng(1))
    assert {cell: len(items) for cell, items in strata(chosen).items()} == {
        ("a", True): 3,
        ("a", False): 2,
        ("b", False): 4,
    }
    assert len({item.key for item in chosen}) == 9


def test_it_depends_on_the_seed_and_not_on_the_order() -> None:
    wanted = balanced(("a", "b"), 8)
    draws = [select(pool, wanted, np.random.default_rng(5)) for pool in (POOL, POOL[::-1])]
    assert draws[0] == draws[1]
    assert select(POOL, wanted, np.random.default_rng(6)) != draws[0]


def test_it_keeps_to_the_confidence_asked_for() -> None:
    chosen = select(POOL, {("a", True): 2}, np.random.default_rng(0), confidence=(0.6, 0.7))
    assert all(0.6 <= item.confidence <= 0.7 for item in chosen)


def test_it_names_what_is_needed_and_what_there_is() -> None:
    with pytest.raises(BadSpec, match=r'9 wrong predictions of "a" \(there are 6\).*add pictures'):
        select(POOL, {("a", False): 9}, np.random.default_rng(0))


def test_it_shares_out_what_is_left_over() -> None:
    assert sorted(balanced(("a", "b"), 15).values()) == [3, 4, 4, 4]
