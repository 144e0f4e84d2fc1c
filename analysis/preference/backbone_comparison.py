"""Predicted ratings side by side: of one explainer on several backbones, and beside a metric.

What is resampled are images, since all explanations of an image belong together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

from analysis.stats.intervals_and_checks import Interval
from stimuli.errors import BadRatings

LEVEL = 0.95
DRAWS = 4000


@dataclass(frozen=True, slots=True)
class Mean:
    """Of so many images; `interval` by resampling them, None for fewer than 3 or if all are equal."""

    mean: float
    interval: Interval | None
    images: int


@dataclass(frozen=True, slots=True)
class Sweep:
    """An explainer on every backbone, and `change`: the last backbone less the first, of the same images."""

    explainer: str
    means: Mapping[str, Mean]
    change: Mean


def mean_of(values: ArrayLike, seed: int = 0) -> Mean:
    """Mean and percentile interval of values that are each of one image, float (n,)."""
    by_image = np.asarray(values, np.float64)
    told = float(by_image.mean())
    if by_image.size < 3 or np.ptp(by_image) == 0:
        return Mean(told, None, by_image.size)
    ends = stats.bootstrap(
        (by_image,), np.mean, method="percentile", n_resamples=DRAWS, confidence_level=LEVEL,
        rng=np.random.default_rng(seed),
    ).confidence_interval  # fmt: skip
    return Mean(told, Interval(float(ends.low), float(ends.high), LEVEL), by_image.size)


def sweeps(rows: pd.DataFrame, order: Sequence[str], seed: int = 0) -> list[Sweep]:
    """Of rows with `item`, `explainer`, `predictor` and `predicted`: each explainer that explains all
    backbones of `order`, over the images that have it on all of them.

    Raises BadRatings for fewer than 2 backbones, one that no row has, or no explainer on all.
    """
    if lacking := [name for name in order if name not in set(rows["predictor"])]:
        known = ", ".join(dict.fromkeys(map(str, rows["predictor"])))
        raise BadRatings(f'no explanation is of the predictor "{lacking[0]}"; known are {known}')
    if len(set(order)) < 2 or len(set(order)) < len(order):
        raise BadRatings(
            f"backbones are compared among at least 2 predictors, each once, and {', '.join(order)} are named"
        )
    made = []
    for explainer, part in rows.groupby("explainer", sort=False):
        wide = part.pivot_table("predicted", "item", "predictor", sort=False)
        if not set(order) <= set(wide.columns):
            continue
        whole = wide[list(order)].dropna()
        if len(whole):
            means = {name: mean_of(whole[name], seed) for name in order}
            change = mean_of(whole[order[-1]] - whole[order[0]], seed)
            made.append(Sweep(str(explainer), means, change))
    if not made:
        raise BadRatings(
            f"no explainer explains the same images on {', '.join(order)}: add conditions with the same "
            "explainer and the other predictors"
        )
    return made


@dataclass(frozen=True, slots=True)
class MethodPlace:
    """A method's predicted rating beside a metric, each the mean over the same images."""

    method: str
    predicted: Mean
    metric: Mean


def places(rows: pd.DataFrame, values: Mapping[tuple[str, str], float], seed: int = 0) -> list[MethodPlace]:
    """Of rows with `item`, `condition` and `predicted`, and a metric by (item, condition): a place for each
    condition, over the images that have it under all. Empty if no image has.
    """
    at = rows.set_index(["item", "condition"])["predicted"].unstack("condition", sort=False)
    metric = pd.Series(dict(values), dtype=float).reindex(rows.set_index(["item", "condition"]).index)
    beside = metric.unstack("condition", sort=False)[at.columns]
    whole = (at.notna() & beside.notna()).all(axis=1)
    if not whole.any():
        return []
    return [
        MethodPlace(str(name), mean_of(at.loc[whole, name], seed), mean_of(beside.loc[whole, name], seed))
        for name in at.columns
    ]
