"""Utility of an explanation method: how much better people predict the model with it than without.

Colin et al. (2022): Utility-K divides the accuracy after K training examples by the baseline's; Utility sums
over K. The numbers that the paper prints are the ratio of mean accuracies, which is `utility` here; the
trapezoid of the paper's wording and the mean of the ratios stand under their own names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import t as t_distribution

from analysis.stats.results import Floats, Interval, StatsError, checked_level
from experiments.design.rng import Streams

CHUNK_CELLS = 4_000_000


@dataclass(frozen=True, slots=True)
class Utility:
    """One condition against the baseline. The baseline itself has utility 1 and no intervals.

    `utility_k` (blocks,): accuracy per block over the baseline's. `utility`: mean accuracy over blocks over
    the baseline's. `interval`, `utility_k_intervals`: percentile bootstrap over people. `simultaneous`: all
    conditions of the table hold together at the level (bootstrap of the largest studentised deviation).
    `fieller`: the analytic witness, None where the baseline is too close to 0 for it to be bounded.
    """

    condition: str
    n: int
    accuracy: tuple[float, ...]
    accuracy_mean: float
    utility_k: tuple[float, ...]
    utility: float
    utility_trapezoid: float
    utility_mean_of_ratios: float
    utility_k_intervals: tuple[Interval, ...] | None
    interval: Interval | None
    simultaneous: Interval | None
    fieller: Interval | None


@dataclass(frozen=True, slots=True)
class Draws:
    """Bootstrap draws of one condition: block means (draws, blocks), overall mean (draws,), its variance
    (draws,).
    """

    blocks: Floats
    mean: Floats
    mean_variance: Floats


def utilities(
    scores: Mapping[str, ArrayLike], baseline: str, *, seed: int, draws: int = 10_000, level: float = 0.95
) -> tuple[Utility, ...]:
    """One `Utility` per condition, in the order of `scores`.

    `scores` maps each condition to accuracies float (people, blocks) in 0-1; NaN marks a block that a person
    did not do. People are resampled whole within their condition; one draw of the baseline divides all
    methods, so their intervals share its error as they do in fact. Raises StatsError for an unknown baseline,
    a baseline at 0, or a condition with fewer than two people.
    """
    arrays = _checked(scores, baseline)
    streams = Streams(seed)
    tail = (1 - checked_level(level)) / 2
    drawn = {name: _draw(x, streams("utility", name), draws) for name, x in arrays.items()}
    limit = _simultaneous_limit(arrays, drawn, baseline, level)
    return tuple(_utility(name, arrays, drawn, baseline, limit=limit, tail=tail) for name in arrays)


def utility_trapezoid(accuracy: ArrayLike, baseline: ArrayLike) -> float:
    """Trapezoid over blocks of the accuracy, divided by the baseline's trapezoid; with one block the plain
    ratio.
    """
    a, b = np.asarray(accuracy, dtype=np.float64), np.asarray(baseline, dtype=np.float64)
    return float(np.trapezoid(a) / np.trapezoid(b)) if a.size > 1 else float(a[0] / b[0])


def utility_mean_of_ratios(accuracy: ArrayLike, baseline: ArrayLike) -> float:
    """Mean over blocks of the Utility-K."""
    return float(np.mean(np.asarray(accuracy, dtype=np.float64) / np.asarray(baseline, dtype=np.float64)))


def fieller(numerator: ArrayLike, denominator: ArrayLike, *, level: float = 0.95) -> Interval | None:
    """Fieller's interval of the ratio of two independent means, each float (n,); Welch-Satterthwaite degrees
    of freedom.

    The values R with (a - R b)^2 <= t^2 (v_a + R^2 v_b). None where the denominator's mean does not differ
    from 0 at the level: the set is then not an interval.
    """
    x, y = (np.asarray(values, dtype=np.float64) for values in (numerator, denominator))
    a, b = float(x.mean()), float(y.mean())
    va, vb = float(x.var(ddof=1)) / x.size, float(y.var(ddof=1)) / y.size
    if va + vb == 0:
        return None
    ratio = a / b
    spread = va + ratio**2 * vb
    df = spread**2 / (va**2 / (x.size - 1) + (ratio**2 * vb) ** 2 / (y.size - 1))
    square = float(t_distribution.ppf((1 + checked_level(level)) / 2, df)) ** 2
    scale = b**2 - square * vb
    if scale <= 0:
        return None
    half = float(np.sqrt(max(0.0, (a * b) ** 2 - scale * (a**2 - square * va))))
    return Interval((a * b - half) / scale, (a * b + half) / scale, level)


def _checked(scores: Mapping[str, ArrayLike], baseline: str) -> dict[str, Floats]:
    if baseline not in scores:
        raise StatsError(
            f"Utility divides by the baseline, and '{baseline}' is not among {', '.join(scores)}."
        )
    arrays = {name: np.asarray(values, dtype=np.float64) for name, values in scores.items()}
    for name, x in arrays.items():
        if x.ndim != 2 or x.shape[0] < 2:
            raise StatsError(
                f"Condition '{name}' has {x.shape[0]} people, Utility needs at least 2; wait for more."
            )
        if np.isnan(x).all(axis=0).any():
            raise StatsError(
                f"Nobody in condition '{name}' answered one of the blocks; wait for more participants."
            )
    if np.nanmean(arrays[baseline], axis=0).min() <= 0:
        raise StatsError(
            "The baseline's accuracy is 0 in a block, so Utility-K is not defined; look at the baseline."
        )
    return arrays


def _draw(x: Floats, rng: np.random.Generator, draws: int) -> Draws:
    """Resamples people, counted by their row of scores: equal rows are drawn as one with their share.

    That is the same distribution as drawing people one by one, needs no copies, does not depend on the order
    of people, and stays small in a large study, since scores of few trials take few values.
    """
    people = x.shape[0]
    rows, counted = np.unique(np.nan_to_num(x, nan=-1.0), axis=0, return_counts=True)
    rows = np.where(rows < 0, np.nan, rows)
    present, filled, own = ~np.isnan(rows), np.nan_to_num(rows), np.nanmean(rows, axis=1)
    blocks, mean, variance = np.empty((draws, x.shape[1])), np.empty(draws), np.empty(draws)
    step, shares = max(1, CHUNK_CELLS // len(rows)), counted / people
    for start in range(0, draws, step):
        part = slice(start, min(draws, start + step))
        counts = rng.multinomial(people, shares, size=part.stop - start).astype(np.float64)
        with np.errstate(invalid="ignore"):
            blocks[part] = counts @ filled / (counts @ present)
        first, second = counts @ own / people, counts @ own**2 / people
        mean[part] = np.nanmean(blocks[part], axis=1)
        variance[part] = np.maximum(0.0, second - first**2) / (people - 1)
    return Draws(blocks, mean, variance)


def _error(
    ratio: Floats | float, base: Floats | float, variance: Floats | float, base_variance: Floats | float
) -> Floats:
    """Delta-method standard error of a ratio of independent means."""
    return np.asarray(np.sqrt(variance + np.square(ratio) * base_variance) / base)


def _estimates(x: Floats) -> tuple[float, float]:
    own = np.nanmean(x, axis=1)
    return float(np.nanmean(x, axis=0).mean()), float(own.var(ddof=1)) / own.size


def _simultaneous_limit(
    arrays: Mapping[str, Floats], drawn: Mapping[str, Draws], baseline: str, level: float
) -> float:
    """The quantile of the largest studentised deviation over all methods, from the shared draws."""
    base_mean, _ = _estimates(arrays[baseline])
    base = drawn[baseline]
    largest = np.zeros(base.mean.size)
    with np.errstate(divide="ignore", invalid="ignore"):
        for name, x in arrays.items():
            if name == baseline:
                continue
            ratio = drawn[name].mean / base.mean
            error = _error(ratio, base.mean, drawn[name].mean_variance, base.mean_variance)
            deviation = np.abs(ratio - _estimates(x)[0] / base_mean) / error
            largest = np.fmax(largest, deviation)
    # "higher" interpolates nothing: with very few people a draw without variance deviates infinitely.
    return float(np.quantile(largest, level, method="higher"))


def _utility(
    name: str,
    arrays: Mapping[str, Floats],
    drawn: Mapping[str, Draws],
    baseline: str,
    *,
    limit: float,
    tail: float,
) -> Utility:
    x, base = arrays[name], arrays[baseline]
    accuracy, base_accuracy = np.nanmean(x, axis=0), np.nanmean(base, axis=0)
    (mean, variance), (base_mean, base_variance) = _estimates(x), _estimates(base)
    value, level = mean / base_mean, 1 - 2 * tail
    intervals: dict[str, Interval | None] = {"interval": None, "simultaneous": None, "fieller": None}
    per_block: tuple[Interval, ...] | None = None
    if name != baseline:
        with np.errstate(divide="ignore", invalid="ignore"):
            overall = drawn[name].mean / drawn[baseline].mean
            by_block = drawn[name].blocks / drawn[baseline].blocks
        per_block = tuple(_percentile(column, tail) for column in by_block.T)
        half = limit * float(_error(value, base_mean, variance, base_variance))
        intervals = {
            "interval": _percentile(overall, tail),
            "simultaneous": Interval(value - half, value + half, level),
            "fieller": fieller(np.nanmean(x, axis=1), np.nanmean(base, axis=1), level=level),
        }
    return Utility(
        condition=name,
        n=x.shape[0],
        accuracy=tuple(float(a) for a in accuracy),
        accuracy_mean=mean,
        utility_k=tuple(float(r) for r in accuracy / base_accuracy),
        utility=value,
        utility_trapezoid=utility_trapezoid(accuracy, base_accuracy),
        utility_mean_of_ratios=utility_mean_of_ratios(accuracy, base_accuracy),
        utility_k_intervals=per_block,
        **intervals,
    )


def _percentile(draws: Floats, tail: float) -> Interval:
    usable = draws[~np.isnan(draws)]
    low, high = np.quantile(usable, [tail, 1 - tail])
    return Interval(float(low), float(high), 1 - 2 * tail)
