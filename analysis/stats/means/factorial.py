"""Several factors between people, with or without covariates: factorial analysis of (co)variance.

Least squares on deviation-coded factors, their interactions and centred covariates. The sums of squares are
named by their type, since with unequal cells they differ: II tests an effect beside all effects that do not
hold it; III beside all others, so that levels count alike however many people are in them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import f as f_distribution
from scipy.stats import t as student

from analysis.stats import check
from analysis.stats.intervals_and_checks import (
    ROUNDING,
    Floats,
    Interval,
    Names,
    Row,
    StatsError,
    has_spread,
    row_of,
)
from analysis.stats.means.anova import eta_squared_interval

SumOfSquares = Literal["II", "III"]
FACTORS_MAX = 4
CELLS_MAX = 400


@dataclass(frozen=True, slots=True)
class FactorialEffect:
    """One effect or covariate. `partial_eta_squared` = SS / (SS + SS_error), its interval from the
    noncentral F."""

    name: str
    f: float
    df_effect: int
    df_error: int
    p: float
    ss_effect: float
    partial_eta_squared: float
    interval: Interval


@dataclass(frozen=True, slots=True)
class AdjustedMean:
    """The mean of a level at the means of the covariates, over the levels of the other factors alike."""

    factor: str
    level_name: str
    n: int
    mean: float
    se: float
    interval: Interval


@dataclass(frozen=True, slots=True)
class FactorialAnova:
    """Factors first, then covariates, then interactions; `sum_of_squares` names their type. `slopes` of the
    covariates in their own units."""

    effects: tuple[FactorialEffect, ...]
    means: tuple[AdjustedMean, ...]
    slopes: dict[str, float]
    ss_error: float
    n: int
    sum_of_squares: SumOfSquares

    def table(self) -> list[Row]:
        """A row per effect; `low` and `high` are the ends of partial eta squared."""
        return [row_of(effect) for effect in self.effects]


def factorial_anova(
    values: ArrayLike,
    factors: Mapping[str, Names],
    covariates: Mapping[str, ArrayLike] | None = None,
    *,
    sum_of_squares: SumOfSquares = "III",
    level: float = 0.95,
) -> FactorialAnova:
    """Analysis of variance of values (n,) by `factors`, names (n,) of levels each, with all interactions, and
    `covariates` (n,) without any.

    Assumes independent people, equal variances, and one slope per covariate in all cells. Raises StatsError
    for lists of unequal length, a factor of one level, an empty cell, covariates that the factors determine,
    no people left for the error, or none of it.
    """
    check.level(level)
    y = check.array(values, "The values")
    check.word(sum_of_squares, "The type of the sums of squares", get_args(SumOfSquares))
    codes, names = _factors(factors, y.size)
    columns = _covariates({} if covariates is None else check.mapping(covariates, "The covariates"), y.size)
    repeated = sorted({*codes} & {*columns})
    if repeated:
        raise StatsError(f"{repeated[0]!r} is a factor and a covariate; name it once.")
    terms = _terms(codes, columns, [len(names[name]) for name in codes])
    scale = float(np.abs(y).max(initial=0.0)) or 1.0
    scaled = (y - y.mean()) / scale
    design = np.column_stack([np.ones(y.size), *terms.values()])
    df_error = y.size - design.shape[1]
    if df_error < 1 or np.linalg.matrix_rank(design) < design.shape[1]:
        raise StatsError(
            f"{y.size} people cannot tell {design.shape[1]} effects and slopes apart: a cell is empty, or a "
            "covariate follows from the factors; leave a factor or covariate out."
        )
    ss_error = _rest(design, scaled)
    if not has_spread(y) or ss_error <= y.size * (16 * ROUNDING) ** 2:
        raise StatsError(
            "People in one cell do not differ, so no test is defined; look at the raw responses."
        )
    effects = []
    for term, part in terms.items():
        others = [
            c for name, c in terms.items() if name != term and (sum_of_squares == "III" or not term < name)
        ]
        without = np.column_stack([np.ones(y.size), *others])
        ss = max(0.0, _rest(without, scaled) - _rest(np.column_stack([without, part]), scaled))
        effects.append(_effect(" x ".join(sorted(term, key=[*codes, *columns].index)), ss, part.shape[1],
                               ss_error, df_error, level, scale))  # fmt: skip
    solution = np.linalg.lstsq(design, scaled, rcond=None)[0]
    covariance = np.linalg.inv(design.T @ design) * ss_error / df_error
    means = _means(terms, codes, names, solution, covariance)
    width = float(student.ppf((1 + level) / 2, df_error))
    told = tuple(
        AdjustedMean(
            factor, name, n, y.mean() + mean * scale, se * scale,
            Interval(y.mean() + (mean - width * se) * scale, y.mean() + (mean + width * se) * scale, level),
        )
        for factor, name, n, mean, se in means
    )  # fmt: skip
    places = _places(terms)
    spreads = {name: float(np.std(np.asarray(x, dtype=np.float64))) for name, x in (covariates or {}).items()}
    slopes = {
        name: float(solution[places[frozenset([name])]][0]) * scale / spread
        for name, spread in spreads.items()
    }
    return FactorialAnova(tuple(effects), told, slopes, ss_error * scale**2, y.size, sum_of_squares)


def _factors(factors: Mapping[str, Names], n: int) -> tuple[dict[str, np.ndarray], dict[str, list[str]]]:
    """The code of each row by factor, and its levels in the order of their names."""
    codes, names = {}, {}
    for factor, levels in check.mapping(factors, "The factors").items():
        if len(check.sequence(levels, f"The names of '{factor}'")) != n or not all(
            isinstance(level, (str, int, np.integer)) for level in levels
        ):
            raise StatsError(
                f"Factor '{factor}' has {len(levels)} names for {n} values; give one name per value."
            )
        unique, code = np.unique(np.asarray(levels, dtype=str), return_inverse=True)
        if unique.size < 2:
            raise StatsError(f"Factor '{factor}' has {unique.size} levels, at least 2 are needed.")
        codes[factor], names[factor] = code, unique.tolist()
    cells = int(np.prod([len(levels) for levels in names.values()]))
    if not 1 <= len(codes) <= FACTORS_MAX or cells > CELLS_MAX:
        raise StatsError(
            f"There are {len(codes)} factors with {cells} cells; name 1 to {FACTORS_MAX} with at most "
            f"{CELLS_MAX} cells."
        )
    return codes, names


def _covariates(covariates: Mapping[str, ArrayLike], n: int) -> dict[str, Floats]:
    """Centred and in units of their standard deviation, so that no unit hides one of them."""
    columns = {}
    for name, values in covariates.items():
        column = check.array(values, f"Covariate '{name}'")
        if column.size != n:
            raise StatsError(f"Covariate '{name}' has {column.size} values for {n} people; give one each.")
        if not has_spread(column):
            raise StatsError(f"Covariate '{name}' does not vary; leave it out.")
        scaled = (column - column.mean()) / np.abs(column).max()
        columns[name] = scaled / scaled.std()
    return columns


Terms = dict[frozenset[str], Floats]


def _terms(codes: Mapping[str, np.ndarray], covariates: Mapping[str, Floats], sizes: Sequence[int]) -> Terms:
    """The columns of each effect by the names of its factors: main effects, covariates, interactions."""
    coded = {}
    for (name, code), k in zip(codes.items(), sizes, strict=True):
        coded[name] = np.vstack([np.eye(k - 1), -np.ones(k - 1)])[code]
    terms: Terms = {frozenset([name]): columns for name, columns in coded.items()}
    terms |= {frozenset([name]): column[:, None] for name, column in covariates.items()}
    for count in range(2, len(coded) + 1):
        for names in combinations(coded, count):
            columns = coded[names[0]]
            for name in names[1:]:
                columns = (columns[:, :, None] * coded[name][:, None, :]).reshape(len(columns), -1)
            terms[frozenset(names)] = columns
    return terms


def _rest(design: Floats, y: Floats) -> float:
    """The sum of squares that the columns leave."""
    q, _ = np.linalg.qr(design)
    return float(((y - q @ (q.T @ y)) ** 2).sum())


def _effect(
    name: str, ss: float, df: int, ss_error: float, df_error: int, level: float, scale: float
) -> FactorialEffect:
    f = ss / df / (ss_error / df_error)
    return FactorialEffect(
        name=name,
        f=f,
        df_effect=df,
        df_error=df_error,
        p=float(f_distribution.sf(f, df, df_error)),
        ss_effect=ss * scale**2,
        partial_eta_squared=ss / (ss + ss_error),
        interval=eta_squared_interval(f, df, df_error, level=level),
    )


def _places(terms: Terms) -> dict[frozenset[str], slice]:
    """Which columns of the design are a term's; the first is the intercept."""
    places, at = {}, 1
    for term, columns in terms.items():
        places[term] = slice(at, at + columns.shape[1])
        at += columns.shape[1]
    return places


def _means(
    terms: Terms,
    codes: Mapping[str, np.ndarray],
    names: Mapping[str, list[str]],
    solution: Floats,
    covariance: Floats,
) -> list[tuple[str, str, int, float, float]]:
    """Factor, level, people, adjusted mean and its standard error."""
    made = []
    places = _places(terms)
    for factor, code in codes.items():
        rows = terms[frozenset([factor])]
        for at, name in enumerate(names[factor]):
            weights = np.zeros(solution.size)
            weights[0] = 1
            weights[places[frozenset([factor])]] = rows[np.flatnonzero(code == at)[0]]
            se = math.sqrt(max(0.0, float(weights @ covariance @ weights)))
            made.append((factor, name, int((code == at).sum()), float(weights @ solution), se))
    return made
