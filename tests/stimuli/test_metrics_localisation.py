"""Localisation by hand, and the regions that a study stores."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from stimuli.errors import NotApplicable
from stimuli.metrics.localisation import mass_inside, top_inside
from stimuli.planner.values import Subject
from stimuli.types import PixelAttribution
from tests.stimuli.measuring import number_of
from tests.stimuli.tiny import linear_net, pictures

pytestmark = pytest.mark.pure
REGION = np.zeros((24, 24), bool)
REGION[:6, :8] = True


def subject_of(**params: object) -> Subject:
    return replace(Subject(0, "a", 1, image=pictures(1)[0], region=REGION), **params)  # type: ignore[arg-type]


def share(field: np.ndarray, what: str, **params: object) -> float:
    made = PixelAttribution(field.astype(np.float32), False)
    return number_of(linear_net(), subject_of(), made, "localisation", share=what, **params).value


def test_it_counts_mass_and_places_by_hand() -> None:
    field = np.zeros((24, 24))
    field[0, :4], field[20, :2] = 0.5, (1.0, -0.25)
    assert share(field, "mass") == pytest.approx(2.0 / 3.25)
    assert share(field, "point") == 0.0
    assert share(field, "top", top_share=5 / 576) == pytest.approx(4 / 5)


def test_it_ranks_as_many_places_as_the_region_has() -> None:
    field = np.random.default_rng(1).random((24, 24)) * 0.5
    field[REGION] += 0.5
    assert share(field, "rank") == share(field, "point") == share(field, "top") == 1.0
    field[0, :12] = 0.0
    assert share(field, "rank") == pytest.approx(40 / 48)


@pytest.mark.parametrize("what", ["mass", "rank", "top", "point"])
def test_it_gives_the_share_of_the_region_to_a_field_that_knows_nothing(what: str) -> None:
    shares = [share(np.random.default_rng(seed).random((24, 24)), what, top_share=0.2) for seed in range(60)]
    assert np.mean(shares) == pytest.approx(REGION.mean(), abs=4 * np.std(shares) / 60**0.5 + 1e-9)


def test_it_does_not_rank_ties_by_their_place() -> None:
    """A field without structure: the region in the upper left gets no more than its share."""
    assert top_inside(np.zeros((24, 24)), REGION, 200) == pytest.approx(REGION.mean(), abs=0.06)


def test_it_says_that_an_empty_field_has_no_mass() -> None:
    made = PixelAttribution(np.zeros((24, 24), np.float32), False)
    number = number_of(linear_net(), subject_of(), made, "localisation")
    assert math.isnan(number.value) and "marks nothing" in number.details["undefined"]
    assert number.details["region"] == pytest.approx(48 / 576)
    assert math.isnan(mass_inside(np.zeros((2, 2)), np.ones((2, 2), bool)))


@pytest.mark.parametrize("region", [None, np.zeros((24, 24), bool)])
def test_it_asks_for_a_region(region: np.ndarray | None) -> None:
    made = PixelAttribution(torch.rand(24, 24).numpy(), False)
    with pytest.raises(NotApplicable, match="no region is known"):
        number_of(linear_net(), subject_of(region=region), made, "localisation")
