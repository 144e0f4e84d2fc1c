"""Ranks of methods by Utility, with intervals that hold together, over studies with baselines of their own.

A rank is at least 1 plus the methods that are significantly better, and at most the number of methods less
those that are significantly worse, every pair tested at a level that holds for all of them (Mogstad, Romano,
Shaikh and Wilhelm 2024, Review of Economic Studies 91; here single-step by Bonferroni, which needs no draws).
Ranks of resampled people would be too narrow wherever methods are nearly equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import t as student

from analysis.stats import check
from analysis.stats.intervals_and_checks import Floats, StatsError, has_spread
from analysis.stats.utility import LEAST_ACCURACY


@dataclass(frozen=True, slots=True)
class MethodRank:
    """One method. `rank` 1 is the highest Utility; equal ones share the better rank. The true rank lies from
    `best` to `worst`, for all methods together at the level."""

    study: str
    condition: str
    n: int
    utility: float
    rank: int
    best: int
    worst: int


@dataclass(frozen=True, slots=True)
class _Method:
    study: str
    condition: str
    mean: float
    n: int
    square: float
    """The variance of its mean, relative to the mean's square: that of its logarithm."""


def rank_methods(
    studies: Mapping[str, Mapping[str, ArrayLike]], baselines: Mapping[str, str], *, level: float = 0.95
) -> tuple[MethodRank, ...]:
    """Every condition but the baselines, the highest Utility first.

    `studies`: by study and condition the accuracy of each person, 0-1, float (n,). `baselines`: by study the
    condition that divides the others. Two methods of one study are compared directly, those of two studies
    each by its own baseline: Welch's t of the difference of the logarithms of Utility, with Satterthwaite's
    degrees of freedom (delta method). Raises StatsError for fewer than two methods, a study without its
    baseline, fewer than two people, values outside 0-1, a mean of 0, or a condition without variance.
    """
    alpha = 1 - check.level(level)
    methods: list[_Method] = []
    bases: dict[str, _Method] = {}
    check.mapping(baselines, "The baselines")
    for study, conditions in check.mapping(studies, "The studies").items():
        if baselines.get(study) not in check.mapping(conditions, f"The conditions of '{study}'"):
            raise StatsError(f"Study '{study}' has no baseline with people, so its methods have no Utility.")
        for name, values in conditions.items():
            method = _method(study, name, values)
            if name == baselines[study]:
                bases[study] = method
            else:
                methods.append(method)
    if len(methods) < 2:
        raise StatsError(f"Ranks need at least 2 methods, got {len(methods)}; wait for more participants.")
    pairs = list(combinations(range(len(methods)), 2))
    better = np.zeros((len(methods), len(methods)), dtype=bool)
    for i, j in pairs:
        difference, p = _compare_methods(methods[i], methods[j], bases)
        if p <= alpha / len(pairs):
            better[(i, j) if difference > 0 else (j, i)] = True
    values = np.array([m.mean / bases[m.study].mean for m in methods])
    ranks = [
        MethodRank(
            m.study,
            m.condition,
            m.n,
            float(values[i]),
            1 + int((values > values[i]).sum()),
            1 + int(better[:, i].sum()),
            len(methods) - int(better[i].sum()),
        )
        for i, m in enumerate(methods)
    ]
    return tuple(sorted(ranks, key=lambda r: (r.rank, r.study, r.condition)))


def _method(study: str, name: str, values: ArrayLike) -> _Method:
    accuracies: Floats = check.array(values, f"Condition '{name}' of '{study}'")
    if accuracies.size < 2 or not has_spread(accuracies):
        raise StatsError(
            f"Condition '{name}' of '{study}' has {accuracies.size} people and no variance among them; ranks "
            "need at least 2 who differ: wait for more participants."
        )
    if accuracies.min() < 0 or accuracies.max() > 1 or accuracies.mean() < LEAST_ACCURACY:
        raise StatsError(f"Condition '{name}' of '{study}' needs accuracies in 0-1 with a mean above 0.")
    mean = float(accuracies.mean())
    square = float(accuracies.var(ddof=1)) / accuracies.size / mean**2
    return _Method(study, name, mean, accuracies.size, square)


def _compare_methods(first: _Method, second: _Method, bases: Mapping[str, _Method]) -> tuple[float, float]:
    """Difference of the logarithms of Utility, and its two-sided p; a common baseline falls out."""
    parts = [first, second]
    difference = np.log(first.mean) - np.log(second.mean)
    if first.study != second.study:
        divisors = bases[first.study], bases[second.study]
        parts += divisors
        difference += np.log(divisors[1].mean) - np.log(divisors[0].mean)
    total = sum(part.square for part in parts)
    # Relative to the largest, so that no square leaves the range of numbers.
    df = 1 / sum((part.square / total) ** 2 / (part.n - 1) for part in parts)
    return float(difference), 2 * float(student.sf(abs(difference) / np.sqrt(total), df))
