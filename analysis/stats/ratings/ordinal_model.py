"""Ordered answers with crossed random effects: people, items, items by condition.

The cumulative logit model with random intercepts, fitted by Laplace's approximation; with two levels it is
the logistic mixed model. Estimates are those of R's `ordinal::clmm` and `lme4::glmer(nAGQ = 1)`.

For answer y in levels 1..K, P(y <= k) = F(threshold_k - eta), F the logistic function,
eta = fixed effects + one random intercept per factor. So a positive effect moves answers to higher levels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import brentq, minimize
from scipy.special import expit
from scipy.stats import f as f_distribution

from analysis.stats import check
from analysis.stats.containment import denominator_df
from analysis.stats.intervals_and_checks import Codes, Floats, Interval, Row, StatsError, finite

ROWS_MAX = 200_000
LEVELS_MAX = 4000
"""Of all factors but the largest: their matrix is dense."""
SD_START = 0.5
ESTIMATE_MAX = 12.0
"""A log odds ratio or standard deviation beyond this says that an answer never came; no estimate exists."""
DECREMENT = 1e-12
STEPS_MAX = 100
NODES = 41
RATIO_KEYS = ("likelihood_ratio", "f", "df", "df_error", "p")


@dataclass(frozen=True, slots=True)
class CrossedFit:
    """`effects`: fixed effects as log odds ratios by name. `thresholds` (K - 1,), ascending. `sds`: standard
    deviations of the random intercepts by factor, on the same scale; 0: none was found.
    """

    effects: dict[str, float]
    thresholds: tuple[float, ...]
    sds: dict[str, float]
    log_likelihood: float
    rows: int
    levels: dict[str, int]
    parameters: int
    data: _Data = field(repr=False, compare=False)
    solution: Floats = field(repr=False, compare=False)

    @property
    def points(self) -> tuple[float, ...]:
        """The levels of the answers (K,), ascending."""
        return self.data.points

    def probabilities(self, fixed: Mapping[str, float]) -> tuple[float, ...]:
        """The share of each level (K,) over all people and items: random effects integrated out, not set to
        0. `fixed` holds the value of each fixed effect; those that are left out are 0.
        """
        eta = sum(self.effects[name] * value for name, value in fixed.items())
        nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
        spread = float(np.sqrt(sum(sd**2 for sd in self.sds.values())))
        below = expit(np.array(self.thresholds)[:, None] - eta - spread * nodes) @ weights / weights.sum()
        shares = np.diff(below, prepend=0.0, append=1.0)
        return tuple(float(share) for share in shares)

    def table(self) -> list[Row]:
        """A row per parameter: `kind` is effect, threshold (named by the level below it) or sd."""
        told = [
            *(("effect", name, value) for name, value in self.effects.items()),
            *(("threshold", f"{p:g}", value) for p, value in zip(self.points, self.thresholds, strict=False)),
            *(("sd", name, value) for name, value in self.sds.items()),
        ]
        return [{"kind": kind, "name": name, "value": value} for kind, name, value in told]


@dataclass(frozen=True, slots=True)
class LikelihoodRatio:
    """Twice the difference of the log-likelihoods of nested fits. `p`: from F(df, df_error) of the statistic
    over `df`, for chi-square, its limit, is exceeded too often with few people (see containment.py).
    """

    statistic: float
    df: int
    df_error: int
    p: float

    @property
    def f(self) -> float:
        return self.statistic / self.df

    def as_json(self) -> Row:
        return dict(zip(RATIO_KEYS, (self.statistic, self.f, self.df, self.df_error, self.p), strict=True))

    def table(self) -> list[Row]:
        """One row."""
        return [self.as_json()]


def fit_crossed(
    answers: ArrayLike, fixed: Mapping[str, ArrayLike], factors: Mapping[str, Sequence[object]]
) -> CrossedFit:
    """Fits ordered `answers` (n,), any numbers, their order counts. `fixed`: columns (n,) by name, without an
    intercept (thresholds take its place). `factors`: the level of each row by name of the factor.

    Raises StatsError if rows do not match, an answer never varies, columns depend on each other, a fixed
    effect has no finite estimate, there are too many rows, or the fit does not converge.
    """
    data = _data(answers, fixed, factors)
    start = np.concatenate([_thresholds_start(data), np.zeros(data.x.shape[1]), np.full(data.q, SD_START)])
    return _fit_model(data, start)


def likelihood_ratio(whole: CrossedFit, part: CrossedFit) -> LikelihoodRatio:
    """Tests the effects that `part` lacks; both must be fits of the same answers and factors. Raises
    StatsError, also if there are too few levels to judge the effects by."""
    df = len(whole.effects) - len(part.effects)
    is_nested = part.effects.keys() <= whole.effects.keys() and part.levels == whole.levels
    if whole.rows != part.rows or df < 1 or not is_nested or not np.array_equal(whole.data.y, part.data.y):
        raise StatsError(
            f"The two fits have {whole.rows} and {part.rows} rows and {whole.parameters} and "
            f"{part.parameters} parameters; compare a fit with a smaller one of the same answers and factors."
        )
    df_error = whole.data.df_error(part.data.x)
    statistic = max(0.0, 2 * (whole.log_likelihood - part.log_likelihood))
    return LikelihoodRatio(statistic, df, df_error, float(f_distribution.sf(statistic / df, df, df_error)))


def profile_interval(fit: CrossedFit, effect: str, *, level: float = 0.95) -> Interval:
    """The profile likelihood interval of one fixed effect: the values that the test with `likelihood_ratio`'s
    reference does not reject. An end beyond ESTIMATE_MAX is infinite. Raises StatsError as the test does."""
    if effect not in fit.effects:
        raise StatsError(f"{effect!r} is no effect of this fit; it has {', '.join(fit.effects) or 'none'}.")
    column = list(fit.effects).index(effect)
    df_error = fit.data.df_error(np.delete(fit.data.x, column, axis=1))
    limit = float(f_distribution.isf(1 - check.level(level), 1, df_error))
    place = len(fit.thresholds) + column
    kept = np.delete(np.arange(fit.solution.size), place)
    best = fit.effects[effect]

    def excess(value: float) -> float:
        # Always from the fit: a start that depends on the calls before would give one value two answers.
        deviance, _ = _maximise_likelihood(fit.data, fit.solution[kept], kept, place, value)
        return 2 * (fit.log_likelihood + deviance) - limit

    return Interval(_end(excess, best, -1), _end(excess, best, +1), level)


def _end(excess: Callable[[float], float], best: float, side: int) -> float:
    width = 0.25
    while abs(best + side * width) < ESTIMATE_MAX:
        if excess(best + side * width) > 0:
            inner = best + side * width / 2 if width > 0.25 else best
            return float(brentq(excess, inner, best + side * width, xtol=1e-4))
        width *= 2
    return side * np.inf


# Data -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Data:
    """`y` (n,) from 0, the places of the answers in `points`; `codes`: the level of each row for each factor,
    the largest factor first."""

    y: Codes
    points: tuple[float, ...]
    x: Floats
    names: tuple[str, ...]
    factors: tuple[str, ...]
    codes: tuple[Codes, ...]
    sizes: tuple[int, ...]

    @property
    def k(self) -> int:
        return len(self.points)

    @property
    def q(self) -> int:
        return len(self.codes)

    @property
    def rest(self) -> int:
        return sum(self.sizes[1:])

    def columns(self) -> list[Codes]:
        """Of the factors after the first, each row's place among all their levels."""
        starts = [sum(self.sizes[1:place]) for place in range(1, self.q)]
        return [code + start for code, start in zip(self.codes[1:], starts, strict=True)]

    def df_error(self, kept: Floats) -> int:
        """Of the test of all columns against the `kept` ones. Raises StatsError."""
        return denominator_df(self.x, kept, dict(zip(self.factors, self.codes, strict=True)))


def _data(
    answers: ArrayLike, fixed: Mapping[str, ArrayLike], factors: Mapping[str, Sequence[object]]
) -> _Data:
    values = check.array(answers, "The answers")
    n = values.size
    if not 0 < n <= ROWS_MAX:
        raise StatsError(f"There are {n} answers; a mixed model takes 1 to {ROWS_MAX:,}.")
    check.mapping(fixed, "The columns")
    if not check.mapping(factors, "The factors"):
        raise StatsError("A mixed model needs at least one factor, for example the person of each row.")
    levels, y = np.unique(values, return_inverse=True)
    if levels.size < 2:
        raise StatsError(f"All {n} answers are {levels[0]:g}, so nothing can be compared.")
    columns = [check.array(column, f"Column {name!r}") for name, column in fixed.items()]
    wrong = [name for name, column in zip(fixed, columns, strict=True) if column.size != n]
    wrong += [name for name, rows in factors.items() if len(check.sequence(rows, name)) != n]
    if wrong:
        raise StatsError(f"{', '.join(wrong)}: give one value for each of the {n} answers.")
    x = np.column_stack(columns) if columns else np.empty((n, 0))
    if np.linalg.matrix_rank(np.column_stack([np.ones(n), x])) < x.shape[1] + 1:
        raise StatsError(
            f"The columns {', '.join(fixed)} depend on each other or are constant; leave a level out."
        )
    coded = {
        name: np.unique(np.asarray(rows, dtype=str), return_inverse=True) for name, rows in factors.items()
    }
    order = sorted(coded, key=lambda name: -coded[name][0].size)
    sizes = tuple(int(coded[name][0].size) for name in order)
    if sum(sizes[1:]) > LEVELS_MAX:
        raise StatsError(f"The smaller factors have {sum(sizes[1:])} levels together; at most {LEVELS_MAX}.")
    codes = tuple(coded[name][1].astype(np.intp) for name in order)
    return _Data(y.astype(np.intp), tuple(map(float, levels)), x, tuple(fixed), tuple(order), codes, sizes)


def _thresholds_start(data: _Data) -> Floats:
    """The first threshold and the logarithms of the gaps, from the shares of the levels alone."""
    below = np.cumsum(np.bincount(data.y, minlength=data.k))[:-1] / data.y.size
    points = np.log(below / (1 - below))
    return np.concatenate([points[:1], np.log(np.diff(points))])


# Likelihood -------------------------------------------------------------------------------------------------


class _Laplace:
    """Minus the log-likelihood with its gradient. Keeps the last random effects, so that the next evaluation
    starts from them."""

    def __init__(self, data: _Data) -> None:
        self.data = data
        self.columns = data.columns()
        self.u = [np.zeros(size) for size in data.sizes]

    def __call__(self, parameters: Floats) -> tuple[float, Floats]:
        data = self.data
        cuts, p = data.k - 1, data.x.shape[1]
        thresholds = _thresholds(parameters[:cuts])
        offset = data.x @ parameters[cuts : cuts + p]
        sds = parameters[cuts + p :]
        state = self._mode(thresholds, offset, sds)
        pieces = _Pieces(data, self.columns, state, sds)
        value = state.penalised - 0.5 * pieces.log_determinant
        return -value, -self._gradient(parameters, state, pieces, sds)

    def _mode(self, thresholds: Floats, offset: Floats, sds: Floats) -> _State:
        """Newton's method with halved steps; the function is concave, so the mode is unique."""
        data = self.data
        state = _state(data, thresholds, offset, sds, self.u)
        for _ in range(STEPS_MAX):
            pieces = _Pieces(data, self.columns, state, sds)
            slope = [
                sd * np.bincount(code, state.first, size) - u
                for sd, code, size, u in zip(sds, data.codes, data.sizes, state.u, strict=True)
            ]
            step = pieces.solve(slope)
            decrement = sum(float(s @ d) for s, d in zip(slope, step, strict=True))
            if decrement < DECREMENT * (1 + abs(state.penalised)):
                break
            share = 1.0
            while share > 1e-6:
                tried = [u + share * d for u, d in zip(state.u, step, strict=True)]
                new = _state(data, thresholds, offset, sds, tried)
                if new.penalised >= state.penalised - 1e-12 * abs(state.penalised):
                    break
                share /= 2
            state = new
        else:
            raise StatsError("The random effects did not converge; look for answers that never vary.")
        self.u = state.u
        return state

    def _gradient(self, parameters: Floats, state: _State, pieces: _Pieces, sds: Floats) -> Floats:
        data = self.data
        cuts = data.k - 1
        leverage, shares = pieces.leverage()
        third = -(state.slope_a + state.slope_b)
        c = leverage * third
        s = pieces.solve(
            [
                sd * np.bincount(code, c, size)
                for sd, code, size in zip(sds, data.codes, data.sizes, strict=True)
            ]
        )
        v = sum(
            (sd * part[code] for sd, part, code in zip(sds, s, data.codes, strict=True)), np.zeros(c.size)
        )
        of_cut = np.zeros(cuts)
        upper, lower = data.y < cuts, data.y > 0
        by_a = state.by_a - 0.5 * leverage * state.slope_a - 0.5 * v * state.density_a
        by_b = state.by_b - 0.5 * leverage * state.slope_b - 0.5 * v * state.density_b
        np.add.at(of_cut, data.y[upper], by_a[upper])
        np.add.at(of_cut, data.y[lower] - 1, by_b[lower])
        gaps = np.exp(parameters[1:cuts])
        # Every later threshold moves with the first one and with each gap before it.
        later = np.cumsum(of_cut[::-1])[::-1]
        of_thresholds = np.concatenate([later[:1], later[1:] * gaps])
        of_effects = data.x.T @ (state.first - 0.5 * c + 0.5 * state.weight * v)
        of_sds = np.empty(data.q)
        for f, (code, size) in enumerate(zip(data.codes, data.sizes, strict=True)):
            t = state.u[f][code]
            explicit = state.first @ t - 0.5 * (c @ t) - state.weight @ shares[f]
            implicit = -0.5 * (s[f] @ np.bincount(code, state.first, size)) + 0.5 * (v @ (state.weight * t))
            of_sds[f] = explicit + implicit
        return np.concatenate([of_thresholds, of_effects, of_sds])


@dataclass(frozen=True, slots=True)
class _State:
    """The log-likelihood of each row at given random effects, with its derivatives by the linear predictor
    and by the thresholds above (a) and below (b) the answer."""

    u: list[Floats]
    penalised: float
    first: Floats
    weight: Floats
    by_a: Floats
    by_b: Floats
    density_a: Floats
    density_b: Floats
    slope_a: Floats
    slope_b: Floats


def _thresholds(parameters: Floats) -> Floats:
    return np.cumsum(np.concatenate([parameters[:1], np.exp(parameters[1:])]))


def _state(data: _Data, thresholds: Floats, offset: Floats, sds: Floats, u: list[Floats]) -> _State:
    eta = offset + sum((sd * part[code] for sd, part, code in zip(sds, u, data.codes, strict=True)), 0.0)
    ends = np.concatenate([[-np.inf], thresholds, [np.inf]])
    a, b = ends[data.y + 1] - eta, ends[data.y] - eta
    with np.errstate(invalid="ignore"):
        gap = np.where(np.isfinite(a) & np.isfinite(b), ends[data.y + 1] - ends[data.y], np.inf)
    # log(F(a) - F(b)), written so that nothing cancels far out in the tails.
    rows = np.log1p(-np.exp(-gap)) - np.logaddexp(0, -a) - np.logaddexp(0, b)
    fa, fb = expit(a), expit(b)
    density_a, density_b = fa * expit(-a), fb * expit(-b)
    with np.errstate(over="ignore"):
        from_gap = 1 / np.expm1(gap)
    return _State(
        u=u,
        penalised=float(rows.sum()) - 0.5 * sum(float(part @ part) for part in u),
        first=fa + fb - 1,
        weight=density_a + density_b,
        by_a=expit(-a) + from_gap,
        by_b=-fb - from_gap,
        density_a=density_a,
        density_b=density_b,
        slope_a=density_a * (1 - 2 * fa),
        slope_b=density_b * (1 - 2 * fb),
    )


class _Pieces:
    """H = A'WA + I in blocks: the largest factor's block is diagonal and is eliminated, so that the cost does
    not grow with the number of people; the rest is dense."""

    def __init__(self, data: _Data, columns: list[Codes], state: _State, sds: Floats) -> None:
        self.data, self.columns, self.sds = data, columns, sds
        weight = state.weight
        size, rest = data.sizes[0], data.rest
        self.diagonal = 1 + sds[0] ** 2 * np.bincount(data.codes[0], weight, size)
        self.cross = np.zeros((size, rest))
        inner = np.eye(rest)
        for sd, column in zip(sds[1:], columns, strict=True):
            counted = np.bincount(data.codes[0] * rest + column, weight, size * rest)
            self.cross += sds[0] * sd * counted.reshape(size, rest)
            for other_sd, other in zip(sds[1:], columns, strict=True):
                counted = np.bincount(column * rest + other, weight, rest * rest)
                inner += sd * other_sd * counted.reshape(rest, rest)
        self.scaled = self.cross / self.diagonal[:, None]
        self.factor = cho_factor(inner - self.cross.T @ self.scaled, lower=True)

    @property
    def log_determinant(self) -> float:
        return float(np.log(self.diagonal).sum() + 2 * np.log(np.diag(self.factor[0])).sum())

    def solve(self, right: list[Floats]) -> list[Floats]:
        """H^-1 times a vector, given and returned factor by factor."""
        after = np.concatenate(right[1:]) if len(right) > 1 else np.empty(0)
        below = cho_solve(self.factor, after - self.scaled.T @ right[0])
        above = right[0] / self.diagonal - self.scaled @ below
        return [above, *np.split(below, np.cumsum(self.data.sizes[1:])[:-1])] if len(right) > 1 else [above]

    def leverage(self) -> tuple[Floats, list[Floats]]:
        """a'H^-1 a of each row, and for each factor the entry of H^-1 a at the row's own level."""
        first, sds = self.data.codes[0], self.sds
        inverse = cho_solve(self.factor, np.eye(self.data.rest))
        mixed = -self.scaled @ inverse
        corner = 1 / self.diagonal - (mixed * self.scaled).sum(axis=1)
        of_first = sds[0] * corner[first]
        others = []
        for column in self.columns:
            entry = sds[0] * mixed[first, column]
            for sd, other in zip(sds[1:], self.columns, strict=True):
                entry = entry + sd * inverse[column, other]
            others.append(entry)
        for sd, column in zip(sds[1:], self.columns, strict=True):
            of_first = of_first + sd * mixed[first, column]
        shares = [of_first, *others]
        return sum((sd * share for sd, share in zip(sds, shares, strict=True)), np.zeros(first.size)), shares


# Maximum ----------------------------------------------------------------------------------------------------


def _bounds(data: _Data) -> list[tuple[float | None, float | None]]:
    # Bounds on everything would make the first step of the search a long one.
    return [(None, None)] * (data.k - 1 + data.x.shape[1]) + [(0.0, None)] * data.q


def _fit_model(data: _Data, start: Floats) -> CrossedFit:
    everything = np.arange(start.size)
    deviance, solution = _maximise_likelihood(data, start, everything)
    cuts, p = data.k - 1, data.x.shape[1]
    if (solution[cuts + p :] == 0).any():
        # The slope is 0 at 0 by symmetry: a search that met the bound early would stay there.
        again = solution.copy()
        again[cuts + p :] = np.maximum(again[cuts + p :], SD_START / 2)
        deviance, solution = min(
            (deviance, solution), _maximise_likelihood(data, again, everything), key=lambda r: r[0]
        )
    _check_finite(data, solution)
    return CrossedFit(
        effects=dict(zip(data.names, map(float, solution[cuts : cuts + p]), strict=True)),
        thresholds=tuple(map(float, _thresholds(solution[:cuts]))),
        sds=dict(zip(data.factors, map(float, solution[cuts + p :]), strict=True)),
        log_likelihood=finite(-deviance, "The log-likelihood"),
        rows=data.y.size,
        levels=dict(zip(data.factors, data.sizes, strict=True)),
        parameters=start.size,
        data=data,
        solution=solution,
    )


def _check_finite(data: _Data, solution: Floats) -> None:
    """Raises StatsError for an estimate that has run away: answers are separated by what it belongs to."""
    estimates = zip((*data.names, *data.factors), solution[data.k - 1 :], strict=True)
    if far := [name for name, value in estimates if abs(value) > ESTIMATE_MAX]:
        raise StatsError(
            f"{', '.join(far)}: no finite estimate, as some answer never came there, or always; join levels, "
            "or leave it out."
        )


def _maximise_likelihood(
    data: _Data, start: Floats, free: Codes, fixed_at: int | None = None, value: float = 0.0
) -> tuple[float, Floats]:
    """Minus the largest log-likelihood over the free parameters, and where it lies."""
    objective = _Laplace(data)
    bounds = [_bounds(data)[place] for place in free]

    def whole(parameters: Floats) -> Floats:
        return parameters if fixed_at is None else np.insert(parameters, fixed_at, value)

    def function(parameters: Floats) -> tuple[float, Floats]:
        minus, gradient = objective(whole(parameters))
        return minus, gradient[free]

    options = {"maxiter": 500, "ftol": 1e-13, "gtol": 1e-6}
    done = minimize(function, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    if not done.success and "ABNORMAL" not in str(done.message):
        _check_finite(data, whole(done.x))
        raise StatsError(
            f"The mixed model did not converge ({done.message}); "
            "join levels that few answers have, or use fewer factors."
        )
    return float(done.fun), np.asarray(done.x, dtype=np.float64)
