"""Scores of predicted ratings, beside scikit-learn, scipy and values computed by hand."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import mode, spearmanr
from sklearn.metrics import cohen_kappa_score, mean_squared_error

from stimuli.errors import BadRatings
from stimuli.preference.prediction_agreement import (
    HeadScores,
    OverRuns,
    kappa,
    mse,
    nearest_levels,
    scores_of,
    spearman,
    summed_up,
    target_of,
)

pytestmark = pytest.mark.pure

Floats = NDArray[np.float64]


def drawn(seed: int, rows: int = 200, top: int = 5) -> tuple[Floats, Floats]:
    """Predictions, some outside the scale, and ratings 1 to `top`."""
    rng = np.random.default_rng(seed)
    ratings = rng.integers(1, top + 1, rows).astype(float)
    return ratings + rng.normal(0, 1.5, rows), ratings


@pytest.mark.parametrize("top", [5, 4])
def test_it_agrees_with_scikit_learn_and_scipy(top: int) -> None:
    """T7: the levels are five, also when one of them never occurs."""
    answers, ratings = drawn(1, top=top)
    (scores,) = scores_of(answers, ratings)
    cut = np.clip(answers, 1, 5)
    levels = nearest_levels(answers)
    theirs = cohen_kappa_score(
        levels.astype(int), ratings.astype(int), labels=[1, 2, 3, 4, 5], weights="quadratic"
    )
    assert scores.kappa == pytest.approx(theirs)
    assert scores.mse == pytest.approx(mean_squared_error(ratings, cut))
    assert scores.ranks == pytest.approx(spearmanr(cut, ratings).statistic)
    assert scores.binned == pytest.approx(spearmanr(levels, ratings).statistic)
    assert scores.rated == 200


def test_it_fixes_the_levels_where_the_squared_distance_of_places_would_differ() -> None:
    """T7: without 2 to 4 the ends are neighbours, and kappa with these levels only would not know."""
    answers, ratings = np.array([1.0, 5, 5, 3]), np.array([1.0, 5, 1, 3])
    of_two = cohen_kappa_score([1, 5, 5, 1], [1, 5, 1, 1], weights="quadratic")
    assert kappa([1, 5, 5, 1], [1, 5, 1, 1]) == pytest.approx(of_two)  # two levels: any distance is the same
    assert kappa(answers, ratings) == pytest.approx(
        cohen_kappa_score([1, 5, 5, 3], [1, 5, 1, 3], labels=[1, 2, 3, 4, 5], weights="quadratic")
    )
    shifted = np.array([1.0, 2, 2, 5]), np.array([1.0, 2, 1, 5])
    of_these_levels = cohen_kappa_score([1, 2, 2, 5], [1, 2, 1, 5], weights="quadratic")
    assert kappa(*shifted) != pytest.approx(of_these_levels)


def test_it_rounds_a_half_upwards() -> None:
    """T7: bankers' rounding would give 2, 2, 4, 4."""
    assert nearest_levels([1.5, 2.5, 3.5, 4.5, 2.49, 0.2, 7]).tolist() == [2, 3, 4, 5, 2, 1, 5]
    assert np.rint([1.5, 2.5, 3.5, 4.5]).tolist() == [2, 2, 4, 4]


@pytest.mark.parametrize(
    ("answers", "ratings"),
    [([3.0] * 6, [1.0, 2, 3, 4, 5, 3]), ([1.0, 2, 3, 4, 5, 3], [3.0] * 6), ([3.0] * 6, [3.0] * 6)],
)
def test_it_gives_a_constant_no_agreement(answers: list[float], ratings: list[float]) -> None:
    assert kappa(answers, ratings) == 0
    (scores,) = scores_of(answers, ratings)
    assert (scores.kappa, scores.ranks, scores.binned) == (0, None, None)


def test_it_names_both_rank_correlations() -> None:
    """T8: rounding makes ties, so the two are different numbers."""
    answers, ratings = np.array([2.1, 2.2, 2.3, 2.4, 4.0]), np.array([1.0, 2, 3, 4, 5])
    (scores,) = scores_of(answers, ratings)
    assert scores.ranks == pytest.approx(1)
    assert scores.binned == pytest.approx(spearmanr([2, 2, 2, 2, 4], ratings).statistic)
    assert scores.binned is not None and scores.binned < 0.8
    (still,) = scores_of([2.1, 2.2, 2.3], [1.0, 2, 3])
    assert still.ranks == pytest.approx(1) and still.binned is None


def test_it_scores_on_the_scale_of_the_ratings() -> None:
    """T6: 16 times the error of shares, and nothing outside the scale counts."""
    answers, ratings = drawn(2)
    cut = np.clip(answers, 1, 5)
    assert mse(cut, ratings) == pytest.approx(16 * mse((cut - 1) / 4, (ratings - 1) / 4))
    assert scores_of([7.0, -3.0, 3.0], [5.0, 1.0, 3.0])[0] == HeadScores(3, 0.0, 1.0, 1.0, 1.0)
    assert scores_of(answers, ratings) == scores_of(cut, ratings)


def test_it_counts_zeros_and_counts_what_is_undefined() -> None:
    """T4: the published code drops both from its means."""
    summary = summed_up([0.0, 0.4, None, 0.2])
    assert summary.mean == pytest.approx(0.2) and summary.sd == pytest.approx(0.2)
    assert (summary.defined, summary.undefined) == (3, 1)
    assert summed_up([None, None]) == OverRuns(None, None, 0, 2)
    assert summed_up([0.5]) == OverRuns(0.5, None, 1, 0)


def test_it_scores_each_head_on_its_rated_rows() -> None:
    answers, ratings = drawn(3)
    other, other_ratings = drawn(4)
    other_ratings[50:] = np.nan
    nothing = np.full(200, np.nan)
    wide = np.stack([answers, other, other], 1), np.stack([ratings, other_ratings, nothing], 1)
    first, second, third = scores_of(*wide)
    assert first == scores_of(answers, ratings)[0]
    assert second == scores_of(other[:50], other_ratings[:50])[0]
    assert third == HeadScores(0, None, None, None, None)


def test_it_takes_the_smallest_of_the_most_frequent_ratings() -> None:
    """T5, and the mode of scipy as the witness."""
    assert target_of([2, 2, 4, 4, 5]) == 2
    assert target_of([2, 2, 4, 4, 5], "median") == 4
    assert target_of([2, 2, 4, 4, 5], "mean") == pytest.approx(3.4)
    ratings = np.random.default_rng(5).integers(1, 6, (300, 5)).astype(float)
    assert target_of(ratings).tolist() == mode(ratings, axis=1).mode.tolist()
    ratings[::7, 1] = np.nan
    ratings[3] = np.nan
    for target in ("mode", "mean", "median"):
        values = target_of(ratings, target)
        assert np.isnan(values[3]) and not np.isnan(np.delete(values, 3)).any()
    assert target_of(ratings).tolist()[:3] == mode(ratings[:3], axis=1, nan_policy="omit").mode.tolist()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (lambda: scores_of([1.0, 2.0], [1.0, 6.0]), "a rating is 6, and ratings go from 1 to 5"),
        (lambda: scores_of([1.0, 2.0], [1.0]), r"shape \(2,\) and ratings \(1,\)"),
        (lambda: scores_of([1.0, np.nan], [1.0, 2.0]), "a prediction is not a finite number"),
        (lambda: target_of([1.0, 2.5]), "take the target mean or median"),
        (lambda: target_of([0.0, 2.0], "mean"), "a rating is 0, and ratings go from 1 to 5"),
        (
            lambda: target_of([1.0, 2.0], cast(Any, "model")),
            "'model': known are mode, mean, median",
        ),
    ],
)
def test_it_refuses_what_it_cannot_score(given: Any, said: str) -> None:
    with pytest.raises(BadRatings, match=said):
        given()


def test_it_knows_no_correlation_of_a_constant() -> None:
    assert spearman([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]) is None
