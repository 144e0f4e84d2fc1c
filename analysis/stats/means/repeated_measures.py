"""Analysis of variance within people: one or two factors, with or without a factor between people.

Every effect within people is a set of orthonormal contrasts of a person's cells, so that one formula serves
all designs: the sum of squares of the contrasts' means over the sum of squares of people around them. With
groups, an effect within is that of unweighted means of groups (type III), as in SPSS.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import chi2
from scipy.stats import f as f_distribution

from analysis.stats import check
from analysis.stats.intervals_and_checks import (
    ROUNDING,
    Codes,
    Floats,
    Interval,
    Names,
    Row,
    StatsError,
    row_of,
)
from analysis.stats.means.anova import eta_squared_interval

CELLS_MAX = 200
FACTORS_MAX = 2


@dataclass(frozen=True, slots=True)
class Sphericity:
    """Mauchly's `w` with its chi-square test (Mauchly 1940; Box's expansion); None if the people are too few
    for it. Epsilons as shares of the degrees of freedom that may be counted, at most 1: `greenhouse_geisser`
    (1959) and `huynh_feldt` (1976, with Lecoutre's correction for groups)."""

    greenhouse_geisser: float
    huynh_feldt: float
    w: float | None = None
    chi_square: float | None = None
    df: int | None = None
    p: float | None = None


def _shape_row(shape: Sphericity | None) -> Row:
    told = {"w": "w", "mauchly_p": "p"} | {name: name for name in ("greenhouse_geisser", "huynh_feldt")}
    return {column: getattr(shape, name, None) for column, name in told.items()}


@dataclass(frozen=True, slots=True)
class RepeatedEffect:
    """`f` with its uncorrected degrees of freedom and `p`. `p_gg` and `p_hf`: with both degrees of freedom
    multiplied by the epsilon; equal to `p` for two levels and between people. `partial_eta_squared` =
    SS_effect / (SS_effect + SS_error), its interval from the noncentral F."""

    name: str
    f: float
    df_effect: int
    df_error: int
    p: float
    p_gg: float
    p_hf: float
    ss_effect: float
    ss_error: float
    partial_eta_squared: float
    interval: Interval
    sphericity: Sphericity | None


@dataclass(frozen=True, slots=True)
class RepeatedAnova:
    """The effects: between people first, then within, then their interactions."""

    effects: tuple[RepeatedEffect, ...]
    people: int
    groups: int

    def table(self) -> list[Row]:
        """A row per effect; `low` and `high` are the ends of partial eta squared."""
        named = ("name", "f", "df_effect", "df_error", "p", "p_gg", "p_hf", "partial_eta_squared", "interval")
        return [row_of(effect, *named) | _shape_row(effect.sphericity) for effect in self.effects]


def repeated_measures(
    table: ArrayLike,
    factors: Mapping[str, Sequence[object]],
    groups: Names | None = None,
    *,
    between: str = "group",
    level: float = 0.95,
) -> RepeatedAnova:
    """Analysis of variance of `table` (people, cells), one value per person and cell.

    `factors`: the levels of one or two factors by name, whose product are the cells, the last factor's
    levels changing fastest. `groups` (people,): the level of a factor between people, called `between`.
    Raises StatsError for missing values, cells that are not that product, fewer than two people per group,
    or people who do not differ in an effect.
    """
    check.level(level)
    y = check.array(table, "The table of people and cells", dimensions=2)
    sizes = _sizes(factors, y)
    codes = np.zeros(len(y), dtype=np.intp) if groups is None else check.codes(groups, "groups")
    counts = np.bincount(codes, minlength=1) if codes.size else np.zeros(1, dtype=np.intp)
    if codes.size != len(y) or counts.min() < 2 or (groups is not None and counts.size < 2):
        raise StatsError(
            f"There are {len(y)} people in groups of {', '.join(map(str, counts))}; give at least 2 people "
            "per group, and 2 groups if people are grouped."
        )
    if between in factors:
        raise StatsError(f"The factor {between!r} is within and between people; name it once.")
    size = float(np.abs(y).max(initial=0.0))
    scaled = (y - y.mean()) / (size or 1.0)
    effects = []
    if groups is not None:
        whole = [np.full((count, 1), 1 / math.sqrt(count)) for count in sizes.values()]
        effects.append(_effect(between, scaled @ _product(whole), codes, True, level, size))
    for count in range(1, len(sizes) + 1):
        for names in combinations(sizes, count):
            parts = [_contrasts(k) if name in names else np.full((k, 1), 1 / math.sqrt(k))
                     for name, k in sizes.items()]  # fmt: skip
            scores = scaled @ _product(parts)
            effects.append(_effect(" x ".join(names), scores, codes, False, level, size))
            if groups is not None:
                effects.append(_effect(" x ".join((between, *names)), scores, codes, True, level, size))
    return RepeatedAnova(tuple(effects), len(y), counts.size)


def _sizes(factors: Mapping[str, Sequence[object]], y: Floats) -> dict[str, int]:
    """The number of levels by factor."""
    sizes = {
        name: len(set(map(str, check.sequence(levels, f"The levels of '{name}'"))))
        for name, levels in check.mapping(factors, "The factors").items()
    }
    if not 1 <= len(sizes) <= FACTORS_MAX or min(sizes.values()) < 2:
        raise StatsError(
            f"There are {len(sizes)} factors within people, each with its levels; name 1 or {FACTORS_MAX}, "
            "each with at least 2 levels."
        )
    cells = math.prod(sizes.values())
    if any(len(levels) != sizes[name] for name, levels in factors.items()) or y.shape[1] != cells:
        raise StatsError(f"The table has {y.shape[1]} cells and the factors {cells}; name each level once.")
    if cells > CELLS_MAX:
        raise StatsError(f"There are {cells} cells per person, at most {CELLS_MAX}; compare fewer levels.")
    return sizes


def _contrasts(levels: int) -> Floats:
    """Orthonormal Helmert contrasts (levels, levels - 1)."""
    matrix = np.zeros((levels, levels - 1))
    for at in range(1, levels):
        matrix[:at, at - 1] = 1 / math.sqrt(at * (at + 1))
        matrix[at, at - 1] = -at / math.sqrt(at * (at + 1))
    return matrix


def _product(parts: Sequence[Floats]) -> Floats:
    matrix: Floats = np.ones((1, 1))
    for part in parts:
        matrix = np.asarray(np.kron(matrix, part), dtype=np.float64)
    return matrix


def _effect(
    name: str, scores: Floats, codes: Codes, is_between: bool, level: float, size: float
) -> RepeatedEffect:
    """The test of contrast scores (people, d): that groups are equal in them, or that their means are 0.
    `size`: the largest value, by which the scores were divided."""
    d = scores.shape[1]
    counts = np.bincount(codes).astype(np.float64)
    means = np.stack([np.bincount(codes, column) for column in scores.T], axis=1) / counts[:, None]
    rest = scores - means[codes]
    df = len(scores) - counts.size
    covariance = rest.T @ rest / df
    ss_error = float(np.trace(covariance)) * df
    if is_between:
        centre = counts @ means / counts.sum()
        ss_effect = float((counts[:, None] * (means - centre) ** 2).sum())
        df_effect = d * (counts.size - 1)
    else:
        ss_effect = float((means.mean(axis=0) ** 2).sum() * counts.size**2 / (1 / counts).sum())
        df_effect = d
    if ss_error <= len(scores) * d * (16 * ROUNDING) ** 2:
        raise StatsError(f"People do not differ in the effect {name}, so it has no test; see the data.")
    df_error = d * df
    f = ss_effect / df_effect / (ss_error / df_error)
    shape = _sphericity(covariance, df, len(scores)) if d > 1 else None
    epsilons = (1.0, shape.greenhouse_geisser, shape.huynh_feldt) if shape else (1.0, 1.0, 1.0)
    p, p_gg, p_hf = (float(f_distribution.sf(f, e * df_effect, e * df_error)) for e in epsilons)
    return RepeatedEffect(
        name=name,
        f=f,
        df_effect=df_effect,
        df_error=df_error,
        p=p,
        p_gg=p_gg,
        p_hf=p_hf,
        ss_effect=ss_effect * size**2,
        ss_error=ss_error * size**2,
        partial_eta_squared=ss_effect / (ss_effect + ss_error),
        interval=eta_squared_interval(f, df_effect, df_error, level=level),
        sphericity=shape,
    )


def _sphericity(covariance: Floats, df: int, people: int) -> Sphericity:
    """Of the pooled covariance (d, d) of orthonormal contrasts, on `df` degrees of freedom."""
    d = len(covariance)
    scaled = covariance / (np.trace(covariance) / d)
    gg = float(np.clip(d / (scaled**2).sum(), 1 / d, 1.0))
    room = d * (df - d * gg)
    hf = min(1.0, ((df + 1) * d * gg - 2) / room) if room > 0 else 1.0
    hf = max(hf, gg)
    sign, log_w = np.linalg.slogdet(scaled)
    if df < d or sign <= 0 or not math.isfinite(log_w):
        return Sphericity(gg, hf)
    log_w = min(float(log_w), 0.0)
    weight = df - (2 * d**2 + d + 2) / (6 * d)
    if weight <= 0:
        return Sphericity(gg, hf)
    statistic, cells = -weight * log_w, d * (d + 1) // 2 - 1
    # The second term (Anderson 2003); R's mauchly.test has the number of cells in place of the last d.
    second = (d + 2) * (d - 1) * (d - 2) * (2 * d**3 + 6 * d**2 + 3 * d + 2) / (288 * (d * weight) ** 2)
    p, beyond = float(chi2.sf(statistic, cells)), float(chi2.sf(statistic, cells + 4))
    p = min(1.0, max(0.0, p + second * (beyond - p)))
    return Sphericity(gg, hf, math.exp(log_w), statistic, cells, p)
