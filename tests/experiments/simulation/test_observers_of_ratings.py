"""The observer of explanations: properties of what is drawn in closed form, and its taste found again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

from experiments.simulation import person_class
from experiments.simulation.declared import declared
from experiments.simulation.drawn import Drawn, drawn_beside, drawn_over, drawn_words
from experiments.simulation.looking import own_looking
from experiments.simulation.people import RateView
from experiments.simulation.raters import (
    FILE,
    agreement,
    area,
    difference,
    ease,
    fragmentation,
    judged,
    point_of,
)
from experiments.simulation.sight import patch_features
from stimuli.render.heatmap import paint_field
from stimuli.render.recipe import RenderSpec

pytestmark = pytest.mark.pure

EASY = "How easy is this explanation to understand?"
AGREES = "How well does this explanation agree with how you would explain this answer yourself?"
TRUST = "How far would you trust the machine because of this explanation?"


def blobs(*places: tuple[int, int], side: int = 10) -> np.ndarray:
    heat = np.zeros((40, 40), np.float32)
    for row, column in places:
        heat[row : row + side, column : column + side] = 1
    return heat


EMPTY, BLOB, FOUR = blobs(), blobs((15, 15)), blobs((0, 0), (0, 30), (30, 0), (30, 30))


def test_the_properties_have_their_closed_forms() -> None:
    assert area(BLOB) == 100 / 1600 and area(FOUR) == 400 / 1600 and area(EMPTY) == 0
    assert fragmentation(BLOB) == 0 and fragmentation(FOUR) == 0.75
    assert ease(BLOB) == (1 - 1 / 16 + 1) / 2 and ease(FOUR) == (0.75 + 0.25) / 2 and ease(EMPTY) == 0
    assert difference(BLOB, BLOB) == 0 and difference(BLOB, FOUR) == 1 and difference(EMPTY, EMPTY) == 0
    # Half of a square moved by five cells: 50 of 150 places are shared.
    assert_allclose(difference(BLOB, blobs((15, 20))), 1 - 50 / 150)


def test_corners_that_touch_are_no_piece() -> None:
    assert fragmentation(blobs((0, 0), (10, 10))) == 0.5


def test_agreement_is_the_area_under_the_curve_of_what_draws_the_eye() -> None:
    looked = np.random.default_rng(3).dirichlet(np.ones(100)).astype(np.float32)
    wanted = 2 * roc_auc_score(BLOB.ravel() > 0, np.kron(looked.reshape(10, 10), np.ones((4, 4))).ravel()) - 1
    assert_allclose(agreement(Drawn(BLOB, looked)), max(0.0, wanted), atol=1e-9)
    assert agreement(Drawn(EMPTY, looked)) == 0 and agreement(Drawn(BLOB)) == 0.5


def scene() -> np.ndarray:
    """A bright square in the middle of a grey picture."""
    picture = np.full((160, 160, 3), 120, np.uint8)
    picture[50:110, 50:110] = (250, 200, 40)
    return picture


def drawn(heat: np.ndarray) -> Drawn:
    return drawn_over(scene(), paint_field(scene(), np.kron(heat, np.ones((4, 4), np.float32)), RenderSpec()))


def test_a_map_is_read_back_from_its_drawing() -> None:
    seen = drawn(BLOB)
    assert seen.heat.shape == (40, 40) and np.corrcoef(seen.heat.ravel(), BLOB.ravel())[0, 1] > 0.9
    assert seen.looked is not None
    assert_allclose(seen.looked, own_looking(patch_features(scene())))


def test_clear_cases_are_judged_as_they_are_planted() -> None:
    noise = np.random.default_rng(1).random((40, 40)).astype(np.float32)
    judged_of = {
        name: {words: judged(words, drawn(heat), ()) for words in (EASY, AGREES, TRUST)}
        for name, heat in {"good": BLOB, "noise": noise, "away": blobs((0, 0)), "empty": EMPTY}.items()
    }
    for words in (AGREES, TRUST):
        assert judged_of["good"][words] > 0.7
        assert (
            max(judged_of[name][words] for name in ("noise", "away", "empty"))
            < judged_of["good"][words] - 0.2
        )
    assert judged_of["good"][EASY] > 0.8 > judged_of["noise"][EASY] and judged_of["empty"][EASY] == 0
    assert judged(EASY, None, (drawn(BLOB), drawn(blobs((0, 0))))) > 0.8
    assert judged(EASY, None, (drawn(BLOB), drawn(BLOB))) < 0.05


def test_what_stands_beside_a_picture_is_seen_as_ink() -> None:
    page = np.full((100, 200, 3), 255, np.uint8)
    page[40:60, 20:120] = 0
    heat = drawn_beside(page).heat
    assert heat.shape == (40, 40) and heat.max() == 1
    # 2,000 of the 40,000 places of the square that the page keeps for it.
    assert_allclose(heat.mean(), 0.05, atol=0.005)
    assert drawn_over(np.zeros((50, 50, 3), np.uint8), page).looked is None


def test_marked_words_are_one_row() -> None:
    tokens: list[dict[str, Any]] = [
        {"text": "The ", "shade": None},
        {"text": "cat", "shade": 1.0},
        {"text": " sat.", "shade": None},
    ]
    assert drawn_words(tokens).heat.tolist() == [[0, 1, 0]]
    assert fragmentation(np.array([[1, 0, 1, 1]], np.float32)) == pytest.approx(1 / 3)


def test_the_points_are_equal_parts_of_the_scale() -> None:
    levels = (np.arange(1000) + 0.5) / 1000
    assert np.bincount([point_of(level, 5) for level in levels])[1:].tolist() == [200] * 5
    assert point_of(-3.0, 5) == 1 and point_of(9.0, 5) == 5


def test_the_planted_taste_is_in_the_mean_ratings_and_people_differ() -> None:
    people = [person_class("rater").drawn(7, number) for number in range(60)]
    heats = [blobs((row, column), side=side) for row, column, side in
             [(15, 15, 10), (10, 10, 20), (0, 0, 38), (0, 0, 6), (5, 20, 12)]] + [FOUR]  # fmt: skip
    seen = [Drawn(heat) for heat in heats]
    ratings = np.array([[p.rate(RateView(i, "q3", EASY, 5, s)) for i, s in enumerate(seen)] for p in people])
    assert set(np.unique(ratings)) <= {1, 2, 3, 4, 5}
    assert spearmanr(ratings.mean(axis=0), [ease(heat) for heat in heats]).statistic > 0.8
    assert ratings.mean(axis=1).std() > 0.1, "people differ in how they use the scale"


def test_the_same_person_rates_the_same_page_alike() -> None:
    person, view = person_class("rater").drawn(7, 3), RateView(4, "q1", AGREES, 5, drawn(BLOB))
    assert person.rate(view) == person_class("rater").drawn(7, 3).rate(view)


@pytest.mark.parametrize(("kind", "most"), [("careless", 0.95), ("guesser", 0.5)])
def test_those_who_do_not_look_have_no_taste(kind: str, most: float) -> None:
    people = [person_class(kind).drawn(1, number) for number in range(20)]
    shares = []
    for person in people:
        points = [person.rate(RateView(place, "q3", EASY, 5, Drawn(BLOB))) for place in range(40)]
        shares.append(np.bincount(points).max() / 40)
    assert np.mean(shares) < most and (np.mean(shares) > 0.6) == (kind == "careless")


def test_every_parameter_has_its_source() -> None:
    for group in declared(FILE).values():
        for name, parameter in group.items():
            assert parameter.kind == "literature" and len(parameter.source) > 20, name
