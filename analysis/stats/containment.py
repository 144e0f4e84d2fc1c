"""Denominator degrees of freedom of a test of fixed effects, by containment, for crossed and nested factors.

With few people the likelihood ratio of a mixed model exceeds chi-square: the spread that effects are judged
by is estimated from as many numbers as there are people. As in a balanced analysis of variance, the
denominator belongs to the factor within whose levels the effect does not change. Sources: Schluchter and
Elashoff 1990 (between and within); Pinheiro and Bates 2000, section 2.4.2 (inner and outer terms); SAS
GLIMMIX, DDFM=CONTAIN (rank contributions of random effects, also for logistic models by Laplace).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from analysis.stats.intervals_and_checks import Codes, Floats, StatsError

TOLERANCE = 1e-8
"""Columns have length 1; a direction that is shorter within levels does not vary there."""


def denominator_df(columns: Floats, kept: Floats, factors: Mapping[str, Codes]) -> int:
    """Of the test of the fixed `columns` (n, p) against `kept` (n, less), those of the smaller model, neither
    with an intercept. `factors`: the level of each row (n,), from 0 without a gap, by name of the factor.

    A factor contains the test if some combination of the tested columns is constant within its levels. It
    offers its levels, less those of the factor that it is nested in, less the rank of the fixed columns that
    vary between the first and not within the second. The least of these offers is returned; without one the
    rows less the rank of all columns and levels. Raises StatsError if none is left.
    """
    whole = np.zeros(len(columns), dtype=np.intp)
    tested = _rank_within(columns, whole) - _rank_within(kept, whole)
    offers, used = [], 1 + _rank_within(columns, whole)
    for name, codes in factors.items():
        around = _around(codes, factors, whole)
        within = _rank_within(columns, codes)
        offered = _levels(codes) - _levels(around) - (_rank_within(columns, around) - within)
        used += max(offered, 0)
        if within - _rank_within(kept, codes) < tested:
            offers.append((offered, f"{_levels(codes)} levels of {name}"))
    least, of = min(offers, default=(len(columns) - used, f"{len(columns)} answers"))
    if least < 1:
        raise StatsError(f"{of} leave nothing to judge the effect by; it takes more of them.")
    return least


def _levels(codes: Codes) -> int:
    return int(codes.max()) + 1


def _around(codes: Codes, factors: Mapping[str, Codes], whole: Codes) -> Codes:
    """The finest coarser factor in whose levels those of `codes` lie; if none, `whole`: one level of all."""
    coarser = [
        other
        for other in factors.values()
        if _levels(other) < _levels(codes) == np.unique(codes * _levels(other) + other).size
    ]
    return max(coarser, key=_levels, default=whole)


def _rank_within(columns: Floats, codes: Codes) -> int:
    """The rank of the columns less their mean in each level."""
    if not columns.shape[1]:
        return 0
    scaled = columns / np.linalg.norm(columns, axis=0)
    sizes = np.bincount(codes)[:, None]
    means = np.column_stack([np.bincount(codes, column) for column in scaled.T]) / sizes
    return int(np.linalg.matrix_rank(scaled - means[codes], tol=TOLERANCE))
