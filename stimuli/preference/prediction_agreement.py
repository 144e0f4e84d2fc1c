"""How well predicted ratings fit people's, on the scale 1..5: MSE, weighted kappa, rank correlations.

Pure numbers without torch. Predictions are cut to 1..5 before each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stimuli.errors import BadRatings

Floats = NDArray[np.float64]
LOWEST, HIGHEST = 1, 5
LEVELS = HIGHEST - LOWEST + 1
Target = Literal["mode", "mean", "median"]
TARGETS: tuple[Target, ...] = get_args(Target)


@dataclass(frozen=True, slots=True)
class HeadScores:
    """The scores of a head on its `rated` rows.

    `mse` is on the scale 1..5. `kappa` is weighted by squared distance, over the five levels whether they
    occur or not. `binned` is Spearman's correlation of predictions rounded to levels, as published; `ranks`
    that of the predictions themselves. Both are None if predictions or ratings are all equal; everything is
    None without rows.
    """

    rated: int
    mse: float | None
    kappa: float | None
    binned: float | None
    ranks: float | None


@dataclass(frozen=True, slots=True)
class OverRuns:
    """`mean` and `sd` (n - 1) over the `defined` values, None if there are too few; `undefined` values are
    counted and not taken for 0, and a 0 counts like any other value.
    """

    mean: float | None
    sd: float | None
    defined: int
    undefined: int


def scores_of(predicted: ArrayLike, wanted: ArrayLike) -> list[HeadScores]:
    """The scores of each head: `predicted` float (n,) or (n, H), cut to 1..5 here; `wanted` of the same
    shape, 1..5, NaN for not rated.

    Raises BadRatings if the shapes differ, a prediction is not finite or a rating lies outside 1..5.
    """
    answers, ratings = np.asarray(predicted, dtype=float), np.asarray(wanted, dtype=float)
    if answers.shape != ratings.shape or answers.ndim not in (1, 2):
        raise BadRatings(
            f"predictions have the shape {answers.shape} and ratings {ratings.shape}: give both as (n,) or "
            "(n, heads), of the same rows and heads"
        )
    if not np.isfinite(answers).all():
        raise BadRatings("a prediction is not a finite number: predict again, or leave its row out")
    check_ratings(ratings)
    if answers.ndim == 1:
        answers, ratings = answers[:, None], ratings[:, None]
    return [_of_head(column, rating) for column, rating in zip(answers.T, ratings.T, strict=True)]


def _of_head(predicted: Floats, wanted: Floats) -> HeadScores:
    is_rated = ~np.isnan(wanted)
    answers, ratings = np.clip(predicted[is_rated], LOWEST, HIGHEST), wanted[is_rated]
    if not len(ratings):
        return HeadScores(0, None, None, None, None)
    return HeadScores(
        len(ratings),
        mse(answers, ratings),
        kappa(answers, ratings),
        spearman(nearest_levels(answers), ratings),
        spearman(answers, ratings),
    )


def check_ratings(ratings: Floats) -> None:
    """Raises BadRatings for a rating outside 1..5; NaN is none and passes."""
    is_wrong = ~np.isnan(ratings) & ~((ratings >= LOWEST) & (ratings <= HIGHEST))
    if is_wrong.any():
        raise BadRatings(
            f"a rating is {ratings[is_wrong].flat[0]:g}, and ratings go from {LOWEST} to {HIGHEST}: bring "
            "them to that scale, and write NaN for not rated"
        )


def mse(predicted: Floats, wanted: Floats) -> float:
    """The mean squared difference of values (n,) on the scale 1..5: 16 times that of shares of the scale."""
    return float(np.mean((predicted - wanted) ** 2))


def nearest_levels(values: ArrayLike) -> Floats:
    """The nearest level 1..5 of each value; a half goes up (2.5 is 3), and what lies outside to the end."""
    return np.clip(np.floor(np.asarray(values, dtype=float) + 0.5), LOWEST, HIGHEST)


def kappa(predicted: ArrayLike, wanted: ArrayLike) -> float:
    """Cohen's kappa weighted by squared distance, of values (n,), n at least 1, rounded to the levels 1..5.

    0 if either is the same level throughout: agreement then says nothing beyond chance. Source: Cohen (1968),
    Weighted kappa.
    """
    rows, columns = nearest_levels(predicted) - LOWEST, nearest_levels(wanted) - LOWEST
    if np.ptp(rows) == 0 or np.ptp(columns) == 0:
        return 0.0
    counts = np.bincount((rows * LEVELS + columns).astype(np.int64), minlength=LEVELS**2)
    seen = counts.reshape(LEVELS, LEVELS) / len(rows)
    expected = np.outer(seen.sum(axis=1), seen.sum(axis=0))
    distance = np.subtract.outer(np.arange(LEVELS), np.arange(LEVELS)) ** 2
    return 1 - float((distance * seen).sum() / (distance * expected).sum())


def _ranks(values: ArrayLike) -> Floats:
    """Ranks from 1, ties at their mean; in half the time of SciPy's, since intervals take 100,000 of them."""
    _, place, counts = np.unique(np.asarray(values, float), return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[place], np.float64)


def spearman(predicted: ArrayLike, wanted: ArrayLike) -> float | None:
    """Spearman's rank correlation of values (n,), ties at their mean rank; None if either is constant."""
    first, second = _ranks(predicted), _ranks(wanted)
    first, second = first - first.mean(), second - second.mean()
    spread = float(np.sqrt((first @ first) * (second @ second)))
    return float(first @ second) / spread if spread else None


def summed_up(values: Sequence[float | None]) -> OverRuns:
    """Mean and sd over runs, or over heads, with the undefined ones counted."""
    kept = [value for value in values if value is not None]
    return OverRuns(
        float(np.mean(kept)) if kept else None,
        float(np.std(kept, ddof=1)) if len(kept) > 1 else None,
        len(kept),
        len(values) - len(kept),
    )


def target_of(ratings: ArrayLike, target: Target = "mode") -> Floats:
    """What is to be predicted of each row of `ratings` (..., raters), 1..5, NaN for missing: float64 (...).

    "mode" takes the smallest of the most frequent values. A row without a rating gives NaN. Raises BadRatings
    for an unknown name, and for a rating that "mode" cannot count because it is no level.
    """
    values = np.asarray(ratings, dtype=float)
    check_ratings(values)
    if target not in TARGETS:
        raise BadRatings(f"there is no target {target!r}: known are {', '.join(TARGETS)}")
    is_given = ~np.isnan(values)
    if target == "mode":
        levels = np.arange(LOWEST, HIGHEST + 1)
        counts = (values[..., None] == levels).sum(axis=-2)
        if (counts.sum(axis=-1) != is_given.sum(axis=-1)).any():
            raise BadRatings("the mode is of whole ratings, and some are not: take the target mean or median")
        usual = levels[counts.argmax(axis=-1)].astype(float)
        return np.where(is_given.any(axis=-1), usual, np.nan)
    result = np.full(values.shape[:-1], np.nan)
    some = is_given.any(axis=-1)
    result[some] = (np.nanmean if target == "mean" else np.nanmedian)(values[some], axis=-1)
    return result
