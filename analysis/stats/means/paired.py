"""Conditions within people, two at a time: differences with t, simultaneous intervals and corrected p."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import t as student

from analysis.stats import check
from analysis.stats.intervals_and_checks import Interval, Row, StatsError, ends_of, row_of
from analysis.stats.means.effect_size import StandardisedChange, standardised_change
from analysis.stats.means.tukey_and_corrections import benjamini_hochberg, bonferroni, holm

Correction = Literal["holm", "bonferroni", "bh"]
CORRECTIONS = {"holm": holm, "bonferroni": bonferroni, "bh": benjamini_hochberg}


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """Mean of the people's differences, first - second. `p` is corrected over all pairs; `interval` holds for
    all of them at once (Bonferroni); `size`: g_z with its own interval."""

    first: str
    second: str
    difference: float
    t: float
    p: float
    interval: Interval
    size: StandardisedChange


@dataclass(frozen=True, slots=True)
class PairedDifferences:
    """The pairs in the order of the conditions, or each condition against the control; `df` = people - 1."""

    pairs: tuple[PairedDifference, ...]
    df: int
    correction: Correction

    def table(self) -> list[Row]:
        """A row per pair; `g_low` and `g_high` are the ends of g_z."""
        return [
            {
                **row_of(pair, "first", "second", "difference", "interval", "t"),
                **{"df": self.df, "p": pair.p, "g_z": pair.size.g_z},
                **ends_of(pair.size.interval, "g_"),
            }
            for pair in self.pairs
        ]


def paired_differences(
    table: ArrayLike,
    conditions: Sequence[str],
    control: str | None = None,
    *,
    correction: Correction = "holm",
    level: float = 0.95,
) -> PairedDifferences:
    """Paired t tests of `table` (people, conditions): of all pairs, or of each condition against `control`.

    Each pair has its own standard error, so sphericity is not assumed. Raises StatsError for missing values,
    fewer than two people or conditions, names that are not one per column, a control that is none of them, or
    a pair whose differences are all equal.
    """
    check.level(level)
    y = check.array(table, "The table of people and conditions", dimensions=2)
    names = [str(name) for name in check.sequence(conditions, "The conditions")]
    if len(names) != y.shape[1] or len(set(names)) != len(names) or min(y.shape) < 2:
        raise StatsError(
            f"There are {y.shape[0]} people, {y.shape[1]} conditions and {len(set(names))} names; give at "
            "least 2 people and 2 conditions, each with a name of its own."
        )
    if control is not None and control not in names:
        raise StatsError(f"The control {control!r} is no condition; they are {', '.join(names)}.")
    check.word(correction, "The correction", tuple(CORRECTIONS))
    chosen = list(combinations(names, 2))
    if control is not None:
        chosen = [(name, control) for name in names if name != control]
    df = len(y) - 1
    width = float(student.ppf(1 - (1 - level) / (2 * len(chosen)), df))
    made, raw = [], []
    for first, second in chosen:
        x, other = y[:, names.index(first)], y[:, names.index(second)]
        size = standardised_change(x, other, level=level)
        change = x - other
        difference, se = float(change.mean()), float(change.std(ddof=1) / np.sqrt(change.size))
        made.append((first, second, difference, se, size))
        raw.append(2 * float(student.sf(abs(difference) / se, df)))
    corrected = CORRECTIONS[correction](raw)
    pairs = tuple(
        PairedDifference(a, b, d, d / se, p, Interval(d - width * se, d + width * se, level), size)
        for (a, b, d, se, size), p in zip(made, corrected, strict=True)
    )
    return PairedDifferences(pairs, df, correction)
