"""Agreement against Krippendorff's published example, scikit-learn, scipy and naive loops."""

from __future__ import annotations

import math
from collections import Counter
from itertools import permutations
from typing import Any, get_args

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import cohen_kappa_score

from analysis.stats.intervals_and_checks import StatsError
from analysis.stats.ratings.agreement import (
    Metric,
    human_row,
    krippendorff_alpha,
    modes,
    spearman,
    weighted_kappa,
)

pytestmark = [pytest.mark.pure, pytest.mark.filterwarnings("error")]
NONE = math.nan
SCALE = (1, 2, 3, 4, 5)
# Krippendorff (2011), Computing Krippendorff's alpha-reliability, section C: 4 observers, 12 units.
PUBLISHED = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NONE, NONE, NONE],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NONE, 3],
        [NONE, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NONE],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NONE],
    ]
).T


def rated(seed: int, units: int = 40, raters: int = 5, missing: float = 0.2) -> np.ndarray:
    """Ratings that share a tendency per unit; some are missing."""
    rng = np.random.default_rng(seed)
    tendency = rng.normal(3, 1, (units, 1)) + rng.normal(0, 0.8, (units, raters))
    table = np.clip(np.round(tendency), 1, 5)
    table[rng.random(table.shape) < missing] = np.nan
    return table


@pytest.mark.parametrize(("metric", "alpha"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_alpha_is_the_published_value(metric: Metric, alpha: float) -> None:
    result = krippendorff_alpha(PUBLISHED, SCALE, metric)
    assert result.alpha == pytest.approx(alpha, abs=5e-4)
    # Unit 12 has one rating and says nothing.
    assert (result.units, result.ratings) == (11, 40)


def naive_alpha(table: np.ndarray, metric: Metric) -> float:
    """By its definition: pairs within units against all pairs, each distance counted out."""
    units = [[v for v in row if not math.isnan(v)] for row in table]
    units = [unit for unit in units if len(unit) > 1]
    everything = [value for unit in units for value in unit]
    often = Counter(everything)

    def distance(a: float, b: float) -> float:
        if metric == "nominal":
            return float(a != b)
        if metric == "interval":
            return (a - b) ** 2
        low, high = sorted((a, b))
        between = sum(count for value, count in often.items() if low <= value <= high)
        return (between - (often[a] + often[b]) / 2) ** 2

    observed = sum(
        sum(distance(a, b) for a, b in permutations(unit, 2)) / (len(unit) - 1) for unit in units
    ) / len(everything)
    pairs = len(everything) * (len(everything) - 1)
    expected = sum(distance(a, b) for a, b in permutations(everything, 2)) / pairs
    return 1 - observed / expected


@pytest.mark.parametrize("metric", get_args(Metric))
def test_alpha_is_that_of_the_definition(metric: Metric) -> None:
    for seed in range(3):
        table = rated(seed)
        assert krippendorff_alpha(table, SCALE, metric).alpha == pytest.approx(naive_alpha(table, metric))


def test_alpha_is_one_for_equal_raters_and_near_zero_for_chance() -> None:
    rng = np.random.default_rng(5)
    same = np.repeat(rng.integers(1, 6, (50, 1)), 4, axis=1)
    assert krippendorff_alpha(same, SCALE).alpha == 1
    chance = krippendorff_alpha(rng.integers(1, 6, (400, 5)), SCALE, draws=400, seed=1)
    assert chance.interval is not None and chance.interval.holds(0) and abs(chance.alpha) < 0.05


def test_kappa_is_scikit_learns() -> None:
    rng = np.random.default_rng(2)
    first = rng.integers(1, 5, 60)
    second = np.clip(first + rng.integers(-1, 2, 60), 1, 5)
    for weights in ("linear", "quadratic"):
        expected = cohen_kappa_score(first, second, labels=list(SCALE), weights=weights)
        assert weighted_kappa(first, second, SCALE, weights) == pytest.approx(expected)
    # One rater who never varies agrees as often as chance does.
    assert weighted_kappa(np.full(60, 3), second, SCALE) == 0


def test_spearman_is_scipys() -> None:
    table = rated(7, missing=0.0)
    assert spearman(table[:, 0], table[:, 1]) == pytest.approx(spearmanr(table[:, 0], table[:, 1]).statistic)


def test_a_tied_mode_is_the_smallest() -> None:
    assert modes(np.array([[2, 2, 4, 4, 5], [5, 5, 1, NONE, NONE]])).tolist() == [2, 5]


def test_a_human_row_is_the_mean_over_who_was_drawn() -> None:
    """Two units whose drawn rater decides all: every combination by hand, each equally likely."""
    table = [[1.0, 1.0, 4.0], [2.0, 5.0, 5.0]]
    usual = (1, 5)
    errors = [((a - usual[0]) ** 2 + (b - usual[1]) ** 2) / 2 for a in table[0] for b in table[1]]
    result = human_row(table, SCALE, leave_one_out=False, draws=4000, seed=3)
    # Draws in which both drawn raters gave the same value cannot happen here; so none is undefined.
    assert result.undefined == 0 and result.units == 2
    assert result.mse == pytest.approx(np.mean(errors), abs=0.15)


def test_without_the_own_vote_agreement_is_lower() -> None:
    table = rated(9, units=200, missing=0.0)
    with_own = human_row(table, SCALE, leave_one_out=False, draws=50)
    without = human_row(table, SCALE, leave_one_out=True, draws=50)
    assert without.kappa < with_own.kappa - 0.03 and without.mse > with_own.mse


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: krippendorff_alpha([[1, 9]], SCALE), "9 is none of the levels"),
        (lambda: krippendorff_alpha([[1, NONE]], SCALE), "No unit has two ratings"),
        (lambda: krippendorff_alpha([[2, 2], [2, 2]], SCALE), "All ratings are equal"),
        (lambda: krippendorff_alpha([[1, 2]], [2, 1]), "ascending order"),
        (lambda: krippendorff_alpha([1, 2], SCALE), "has the shape"),
        (lambda: weighted_kappa([1], [1, 2], SCALE), "1 and 2 values"),
        (lambda: weighted_kappa([3, 3], [3, 3], SCALE), "kappa is not defined"),
        (lambda: weighted_kappa(["a"], ["b"], SCALE), "must hold numbers"),
        (
            lambda: krippendorff_alpha([[1, 2]], SCALE, "ratio"),  # type: ignore[arg-type]
            "The metric is 'ratio'; name it 'nominal', 'ordinal' or 'interval'",
        ),
        (
            lambda: weighted_kappa([1], [2], SCALE, "equal"),  # type: ignore[arg-type]
            "The weighting is 'equal'; name it 'linear' or 'quadratic'",
        ),
        (lambda: spearman([1, 1], [1, 2]), "values that differ"),
        (lambda: modes(np.array([[1], [NONE]])), "Unit 1 has no rating"),
        (lambda: human_row([[1, NONE]], SCALE, leave_one_out=True), "0 units have enough"),
        (lambda: human_row([[2, 2], [2, 2]], SCALE, leave_one_out=False), "never vary"),
    ],
)
def test_bad_input_gets_a_sentence(call: Any, sentence: str) -> None:
    with pytest.raises(StatsError, match=sentence):
        call()
