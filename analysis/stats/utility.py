"""Utility of an explanation method: how much better people predict the model with it than without.

Colin et al. (2022): Utility-K divides the accuracy after K training examples by the baseline's; Utility sums
over K. The numbers that the paper prints are the ratio of mean accuracies, which is `utility` here; the
trapezoid of the paper's wording and the mean of the ratios stand under their own names.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import t as t_distribution

from analysis.stats import check
from analysis.stats.intervals_and_checks import Floats, Interval, StatsError, finite, has_spread
from analysis.stats.means.dunnett import LOADING_MAX, critical_value

CHUNK_CELLS = 4_000_000
LEAST_ACCURACY = 1e-9
"""A person with any right answer has a higher mean accuracy: a lower value counts as 0, and nothing is
divided by it."""


@dataclass(frozen=True, slots=True)
class Utility:
    """One condition against the baseline. The baseline itself has utility 1 and no intervals.

    `utility_k` (blocks,): accuracy per block over the baseline's. `utility`: mean accuracy over blocks over
    the baseline's. `interval`, `utility_k_intervals`: Fieller's, of one condition or block alone.
    `simultaneous`: Fieller's, so wide that those of all conditions hold together. `bootstrap`: the witness of
    `interval`, percentiles over people. None: the set of ratios has no two ends, as the baseline may be 0, or
    neither group varies.
    """

    condition: str
    n: int
    accuracy: tuple[float, ...]
    accuracy_mean: float
    utility_k: tuple[float, ...]
    utility: float
    utility_trapezoid: float
    utility_mean_of_ratios: float
    utility_k_intervals: tuple[Interval | None, ...] | None
    interval: Interval | None
    simultaneous: Interval | None
    bootstrap: Interval | None


def utilities(
    scores: Mapping[str, ArrayLike],
    baseline: str,
    *,
    people: Mapping[str, ArrayLike] | None = None,
    seed: int,
    draws: int = 10_000,
    level: float = 0.95,
    together: float | None = None,
) -> tuple[Utility, ...]:
    """One `Utility` per condition, in the order of `scores`; the simultaneous intervals at the level
    `together`, if that is another than `level`.

    `scores` maps each condition to accuracies float (people, blocks) in 0-1; NaN marks a block that a person
    did not do; people without any block are left out. `people`: each person's accuracy over all trials,
    float (people,) per condition in the same order, if blocks have unequal numbers of trials; else it is the
    mean over the person's blocks. The mean of a condition is the mean of its people, here as in every other
    test. Variances are those of each condition by itself.
    Simultaneous intervals are those of Dilba, Bretz and Guiard (2006) with variances of their own as in
    Hasler and Hothorn (2008): correlations at the estimated ratios. For the bootstrap people are resampled
    whole within their condition, and one draw of the baseline divides all methods; its upper end is infinite
    if the baseline is 0 in that many draws. Raises StatsError for an unknown baseline, a baseline at 0, a
    condition with fewer than two people, or other blocks than the others have.
    """
    check.count(draws, "The number of draws", least=1)
    groups = _check_scores(check.mapping(scores, "The scores"), people, baseline)
    check.count(seed, "The seed")
    tail = (1 - check.level(level)) / 2
    drawn = {name: _draw(group.means, _stream(seed, name), draws) for name, group in groups.items()}
    wide = _simultaneous(groups, baseline, check.level(level if together is None else together))
    return tuple(
        _utility(name, groups, drawn, baseline, simultaneous=wide.get(name), tail=tail) for name in groups
    )


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
        check.array(accuracy, "The accuracy per block"),
        check.array(baseline, "The baseline per block"),
    )
    if a.size == 0 or a.size != b.size or b.min() < LEAST_ACCURACY:
        raise StatsError(
            f"Utility needs the same blocks of both, and a baseline above 0; got {a.size} and {b.size} "
            "blocks: look at the baseline."
        )
    return a, b


@dataclass(frozen=True, slots=True)
class _Ratio:
    """Two independent means in units of their largest values, so that no square leaves the range of numbers:
    `a` of the numerator and `b` of the denominator, variances of these means, degrees of freedom at the
    estimated ratio (Satterthwaite), and the unit of the ratio."""

    a: float
    b: float
    va: float
    vb: float
    df: float
    unit: float

    @property
    def loading(self) -> float:
        """The square root of the denominator's share in the variance of a - (a / b) b: what comparisons with
        one baseline have in common."""
        shared = (self.a / self.b) ** 2 * self.vb
        return float(np.sqrt(shared / (self.va + shared)))

    def within(self, times: float, level: float) -> Interval | None:
        """The ratios R with |a - R b| <= `times` its standard error; None if they have no two ends."""
        square = times**2
        scale = self.b**2 - square * self.vb
        if scale <= 0:
            return None
        half = float(np.sqrt(max(0.0, (self.a * self.b) ** 2 - scale * (self.a**2 - square * self.va))))
        low, high = ((self.a * self.b + side) / scale * self.unit for side in (-half, half))
        return Interval(finite(low, "Fieller's interval"), finite(high, "Fieller's interval"), level)


def fieller(numerator: ArrayLike, denominator: ArrayLike, *, level: float = 0.95) -> Interval | None:
    """Fieller's interval of the ratio of two independent means, each float (n,); Welch-Satterthwaite degrees
    of freedom.

    The values R with (a - R b)^2 <= t^2 (v_a + R^2 v_b). None if the denominator's mean does not differ from
    0 at the level (the set is then not an interval), or neither varies. Raises StatsError for fewer than two
    values of either.
    """
    check.level(level)
    ratio = _ratio(numerator, denominator)
    return (
        None if ratio is None else ratio.within(float(t_distribution.ppf((1 + level) / 2, ratio.df)), level)
    )


def _ratio(numerator: ArrayLike, denominator: ArrayLike) -> _Ratio | None:
    """None if the denominator is 0 or neither varies."""
    x, y = (check.array(values, "A sample of Fieller's interval") for values in (numerator, denominator))
    if min(x.size, y.size) < 2:
        raise StatsError(f"Fieller's interval needs at least 2 values of each, got {x.size} and {y.size}.")
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
    return _Ratio(a, b, va, vb, df, unit_x / unit_y)


@dataclass(frozen=True, slots=True)
class _Group:
    """Accuracies of the people of one condition: `blocks` (people, blocks), NaN for a block that a person did
    not do, and `means` (people,)."""

    blocks: Floats
    means: Floats


def _check_scores(
    scores: Mapping[str, ArrayLike], people: Mapping[str, ArrayLike] | None, baseline: str
) -> dict[str, _Group]:
    if baseline not in scores:
        raise StatsError(
            f"Utility divides by the baseline, and '{baseline}' is not among {', '.join(scores)}."
        )
    groups = {name: _group(name, values, people) for name, values in scores.items()}
    sizes = [group.blocks.shape[1] for group in groups.values()]
    if len(set(sizes)) > 1 or sizes[0] == 0:
        raise StatsError(f"Conditions have {sizes} blocks; all need the same ones.")
    for name, group in groups.items():
        _check_group(name, group)
    base = groups[baseline]
    if min(np.nanmean(base.blocks, axis=0).min(), base.means.mean()) < LEAST_ACCURACY:
        raise StatsError(
            "The baseline's accuracy is 0 in a block, so Utility-K is not defined; look at the baseline."
        )
    return groups


def _group(name: str, values: ArrayLike, people: Mapping[str, ArrayLike] | None) -> _Group:
    table = check.array(values, f"Condition '{name}'", dimensions=2, missing=True)
    came = ~np.isnan(table).all(axis=1)
    if people is None:
        return _Group(table[came], np.nanmean(table[came], axis=1))
    means = check.array(people.get(name, ()), f"The people of '{name}'", missing=True)
    if means.size != table.shape[0] or np.isnan(means[came]).any():
        raise StatsError(
            f"Condition '{name}' has {table.shape[0]} people with blocks and {means.size} accuracies; give "
            "one for each person, in the same order."
        )
    return _Group(table[came], means[came])


def _check_group(name: str, group: _Group) -> None:
    if group.means.size < 2:
        raise StatsError(
            f"Condition '{name}' has {group.means.size} people, Utility needs at least 2; wait for more."
        )
    each = np.concatenate([group.blocks.ravel(), group.means])
    if np.nanmin(each) < 0 or np.nanmax(each) > 1:
        raise StatsError(f"Condition '{name}' has accuracies outside 0-1; give shares, not percent.")
    if np.isnan(group.blocks).all(axis=0).any():
        raise StatsError(
            f"Nobody in condition '{name}' answered one of the blocks; wait for more participants."
        )


def _stream(seed: int, method: str) -> np.random.Generator:
    """The method's own generator: another method beside it changes none of its draws. Its numbers are those
    of `Streams(seed)("utility", method)` in experiments/design, which these statistics do without."""
    digest = hashlib.sha256(f"int:{seed}\x1fstr:utility\x1fstr:{method}".encode()).digest()
    words = [int(word) for word in np.frombuffer(digest, dtype=np.uint32)]
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(words)))


def _draw(means: Floats, rng: np.random.Generator, draws: int) -> Floats:
    """Means (draws,) of people who are resampled, counted by their accuracy: equal ones are drawn as one with
    their share.

    That is the same distribution as drawing people one by one, does not depend on the order of people, and
    stays small in a large study, since few trials have few values.
    """
    values, counted = np.unique(means, return_counts=True)
    drawn = np.empty(draws)
    step, shares = max(1, CHUNK_CELLS // len(values)), counted / means.size
    for start in range(0, draws, step):
        part = slice(start, min(draws, start + step))
        drawn[part] = rng.multinomial(means.size, shares, size=part.stop - start) @ values / means.size
    return drawn


def _simultaneous(groups: Mapping[str, _Group], baseline: str, level: float) -> dict[str, Interval | None]:
    """Intervals that hold together, by condition. A condition without spread, as the baseline, has none."""
    base = groups[baseline].means
    ratios = {name: _ratio(group.means, base) for name, group in groups.items() if name != baseline}
    usable = {name: ratio for name, ratio in ratios.items() if ratio is not None}
    loadings = np.minimum([ratio.loading for ratio in usable.values()], LOADING_MAX)
    return {
        name: ratio.within(critical_value(loadings, ratio.df, level), level) for name, ratio in usable.items()
    }


def _utility(
    name: str,
    groups: Mapping[str, _Group],
    drawn: Mapping[str, Floats],
    baseline: str,
    *,
    simultaneous: Interval | None,
    tail: float,
) -> Utility:
    group, base = groups[name], groups[baseline]
    accuracy, base_accuracy = np.nanmean(group.blocks, axis=0), np.nanmean(base.blocks, axis=0)
    mean, level = float(group.means.mean()), 1 - 2 * tail
    intervals: dict[str, Interval | None] = {"interval": None, "simultaneous": None, "bootstrap": None}
    per_block: tuple[Interval | None, ...] | None = None
    if name != baseline:
        with np.errstate(divide="ignore", invalid="ignore"):
            overall = drawn[name] / drawn[baseline]
        blocks = zip(group.blocks.T, base.blocks.T, strict=True)
        per_block = tuple(_of_block(scores, base_scores, level) for scores, base_scores in blocks)
        intervals = {
            "interval": fieller(group.means, base.means, level=level),
            "simultaneous": simultaneous,
            "bootstrap": _percentile(overall, tail),
        }
    return Utility(
        condition=name,
        n=group.means.size,
        accuracy=tuple(float(a) for a in accuracy),
        accuracy_mean=mean,
        utility_k=tuple(float(r) for r in accuracy / base_accuracy),
        utility=mean / float(base.means.mean()),
        utility_trapezoid=utility_trapezoid(accuracy, base_accuracy),
        utility_mean_of_ratios=utility_mean_of_ratios(accuracy, base_accuracy),
        utility_k_intervals=per_block,
        **intervals,
    )


def _of_block(scores: Floats, base: Floats, level: float) -> Interval | None:
    """Of the people (n,) who did the block; None with fewer than two on a side."""
    present, base_present = scores[~np.isnan(scores)], base[~np.isnan(base)]
    if min(present.size, base_present.size) < 2:
        return None
    return fieller(present, base_present, level=level)


def _percentile(draws: Floats, tail: float) -> Interval:
    usable = draws[~np.isnan(draws)]
    if usable.size == 0:
        raise StatsError("No draw of the bootstrap has an answer in each block; use more draws.")
    with np.errstate(invalid="ignore"):
        ends = np.quantile(usable, [tail, 1 - tail])
    # Between two infinite draws, which have a baseline of 0, a quantile is interpolated to NaN.
    low, high = np.where(np.isnan(ends), np.inf, ends)
    return Interval(float(low), float(high), 1 - 2 * tail)
