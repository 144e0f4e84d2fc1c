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

from analysis.stats.results import (
    Floats,
    Interval,
    StatsError,
    checked_array,
    checked_count,
    checked_level,
    finite,
    has_spread,
)
from experiments.design.rng import Streams

CHUNK_CELLS = 4_000_000
LEAST_ACCURACY = 1e-9
"""A person with any right answer has a higher mean accuracy: a lower value counts as 0, and nothing is
divided by it."""


@dataclass(frozen=True, slots=True)
class Utility:
    """One condition against the baseline. The baseline itself has utility 1 and no intervals.

    `utility_k` (blocks,): accuracy per block over the baseline's. `utility`: mean accuracy over blocks over
    the baseline's. `interval`, `utility_k_intervals`: percentile bootstrap over people. `simultaneous`: all
    conditions of the table hold together at the level (bootstrap of the largest studentised deviation).
    `fieller`: the analytic cross-check, None if the baseline is too close to 0 for a bounded interval.
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
    did not do; people without any block are left out. People are resampled whole within their condition; one
    draw of the baseline divides all methods, so their intervals share its error. The upper
    end of a percentile interval is infinite if the baseline is 0 in that many draws. Raises StatsError for an
    unknown baseline, a baseline at 0, a condition with fewer than two people, or other blocks than the others
    have.
    """
    checked_count(draws, "The number of draws", least=1)
    arrays = _checked(scores, baseline)
    streams = Streams(seed)
    tail = (1 - checked_level(level)) / 2
    drawn = {name: _draw(x, streams("utility", name), draws) for name, x in arrays.items()}
    limit = _simultaneous_limit(arrays, drawn, baseline, level)
    return tuple(_utility(name, arrays, drawn, baseline, limit=limit, tail=tail) for name in arrays)


def utility_trapezoid(accuracy: ArrayLike, baseline: ArrayLike) -> float:
    """Trapezoid over blocks of the accuracy, divided by the baseline's trapezoid; with one block the plain
    ratio. Raises StatsError as `utility_mean_of_ratios` does.
    """
    a, b = _curves(accuracy, baseline)
    return finite(float(np.trapezoid(a) / np.trapezoid(b)) if a.size > 1 else float(a[0] / b[0]), "Utility")


def utility_mean_of_ratios(accuracy: ArrayLike, baseline: ArrayLike) -> float:
    """Mean over blocks of the Utility-K. Raises StatsError if a block of the baseline is not above 0, and for
    curves (blocks,) of unequal length.
    """
    a, b = _curves(accuracy, baseline)
    return finite(float(np.mean(a / b)), "Utility")


def _curves(accuracy: ArrayLike, baseline: ArrayLike) -> tuple[Floats, Floats]:
    a, b = (
        checked_array(accuracy, "The accuracy per block"),
        checked_array(baseline, "The baseline per block"),
    )
    if a.size == 0 or a.size != b.size or b.min() < LEAST_ACCURACY:
        raise StatsError(
            f"Utility needs the same blocks of both, and a baseline above 0; got {a.size} and {b.size} "
            "blocks: look at the baseline."
        )
    return a, b


def fieller(numerator: ArrayLike, denominator: ArrayLike, *, level: float = 0.95) -> Interval | None:
    """Fieller's interval of the ratio of two independent means, each float (n,); Welch-Satterthwaite degrees
    of freedom.

    The values R with (a - R b)^2 <= t^2 (v_a + R^2 v_b). None if the denominator's mean does not differ from
    0 at the level (the set is then not an interval), or neither varies. Raises StatsError for fewer than two
    values of either.
    """
    checked_level(level)
    x, y = (checked_array(values, "A sample of Fieller's interval") for values in (numerator, denominator))
    if min(x.size, y.size) < 2:
        raise StatsError(f"Fieller's interval needs at least 2 values of each, got {x.size} and {y.size}.")
    # Each in units of its largest value, so that no square leaves the range of numbers.
    unit_x, unit_y = (float(np.abs(z).max()) or 1.0 for z in (x, y))
    a, b = float((x / unit_x).mean()), float((y / unit_y).mean())
    va, vb = (
        float((z / u).var(ddof=1)) / z.size if has_spread(z) else 0.0 for z, u in ((x, unit_x), (y, unit_y))
    )
    if b == 0 or va + vb == 0:
        return None
    from_b = (a / b) ** 2 * vb
    if va == 0:
        df = float(y.size - 1)
    else:
        df = (va + from_b) ** 2 / (va**2 / (x.size - 1) + from_b**2 / (y.size - 1))
    square = float(t_distribution.ppf((1 + level) / 2, df)) ** 2
    scale = b**2 - square * vb
    if scale <= 0:
        return None
    half = float(np.sqrt(max(0.0, (a * b) ** 2 - scale * (a**2 - square * va))))
    low, high = ((a * b + side) / scale * (unit_x / unit_y) for side in (-half, half))
    return Interval(finite(low, "Fieller's interval"), finite(high, "Fieller's interval"), level)


def _checked(scores: Mapping[str, ArrayLike], baseline: str) -> dict[str, Floats]:
    if baseline not in scores:
        raise StatsError(
            f"Utility divides by the baseline, and '{baseline}' is not among {', '.join(scores)}."
        )
    arrays = {}
    for name, values in scores.items():
        table = checked_array(values, f"Condition '{name}'", dimensions=2, missing=True)
        arrays[name] = table[~np.isnan(table).all(axis=1)]
    if len({x.shape[1] for x in arrays.values()}) > 1 or arrays[baseline].shape[1] == 0:
        raise StatsError(
            f"Conditions have {[x.shape[1] for x in arrays.values()]} blocks; all need the same ones."
        )
    for name, x in arrays.items():
        if x.shape[0] < 2:
            raise StatsError(
                f"Condition '{name}' has {x.shape[0]} people, Utility needs at least 2; wait for more."
            )
        if np.nanmin(x) < 0 or np.nanmax(x) > 1:
            raise StatsError(f"Condition '{name}' has accuracies outside 0-1; give shares, not percent.")
        if np.isnan(x).all(axis=0).any():
            raise StatsError(
                f"Nobody in condition '{name}' answered one of the blocks; wait for more participants."
            )
    if np.nanmean(arrays[baseline], axis=0).min() < LEAST_ACCURACY:
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
    present, filled, overall = ~np.isnan(rows), np.nan_to_num(rows), np.nanmean(rows, axis=1)
    blocks, mean, variance = np.empty((draws, x.shape[1])), np.empty(draws), np.empty(draws)
    step, shares = max(1, CHUNK_CELLS // len(rows)), counted / people
    for start in range(0, draws, step):
        part = slice(start, min(draws, start + step))
        counts = rng.multinomial(people, shares, size=part.stop - start).astype(np.float64)
        with np.errstate(invalid="ignore"):
            blocks[part] = counts @ filled / (counts @ present)
        first, second = counts @ overall / people, counts @ overall**2 / people
        mean[part] = np.nanmean(blocks[part], axis=1)
        variance[part] = np.maximum(0.0, second - first**2) / (people - 1)
    return Draws(blocks, mean, variance)


def _error(
    ratio: Floats | float, base: Floats | float, variance: Floats | float, base_variance: Floats | float
) -> Floats:
    """Delta-method standard error of a ratio of independent means."""
    return np.asarray(np.sqrt(variance + np.square(ratio) * base_variance) / base)


def _estimates(x: Floats) -> tuple[float, float]:
    of_person = np.nanmean(x, axis=1)
    return float(np.nanmean(x, axis=0).mean()), float(of_person.var(ddof=1)) / of_person.size


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
        error = float(_error(value, base_mean, variance, base_variance))
        half = limit * error if error else 0.0
        intervals = {
            "interval": _percentile(overall, tail),
            "simultaneous": Interval(value - half, value + half, level) if error else None,
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
    if usable.size == 0:
        raise StatsError("No draw of the bootstrap has an answer in each block; use more draws.")
    with np.errstate(invalid="ignore"):
        ends = np.quantile(usable, [tail, 1 - tail])
    # Between two infinite draws, which have a baseline of 0, a quantile is interpolated to NaN.
    low, high = np.where(np.isnan(ends), np.inf, ends)
    return Interval(float(low), float(high), 1 - 2 * tail)
