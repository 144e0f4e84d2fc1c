"""Power of the planned tests of means: contrasts with the baseline, pairs, equivalence, Utility.

Exact under normal distributions with equal variances, by one integral; only that of
Utility is simulated, from a stored seed, with its error beside it. Effects are declared, never taken from
data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import ndtr
from scipy.stats import chi2
from scipy.stats import t as student

from analysis.stats import check
from analysis.stats.intervals_and_checks import Floats, Row, StatsError, finite
from analysis.stats.means.dunnett import LOADING_MAX, critical_value, largest_tail

EFFECT_MAX = 20.0
"""A larger difference in standard deviations has a power of 1 with two people."""
CONTRASTS_MAX = 50
SIZE_MAX = 100_000
ALPHA_MIN = 1e-6
SCALE_NODES = 2001
TINY = 1e-13
DRAWS = 20_000
SEED = 20_220


@dataclass(frozen=True, slots=True)
class ContrastPower:
    """`each` (contrasts,): the probability that this contrast is told; `any`: that at least one of them is.
    `critical`: the limit of |t|, Dunnett's two-sided one, at which the family errs with alpha."""

    each: tuple[float, ...]
    any: float
    critical: float

    def table(self) -> list[Row]:
        """A row per contrast, in the order given, and one of any of them."""
        rows: list[Row] = [
            {"contrast": str(at), "power": value} for at, value in enumerate(self.each, start=1)
        ]
        return [*rows, {"contrast": "any", "power": self.any}]


@dataclass(frozen=True, slots=True)
class SimulatedPower:
    """`power` (0-1) is a share of simulated studies, `error` its standard error, `draws` how many."""

    power: float
    error: float
    draws: int

    def table(self) -> list[Row]:
        """One row."""
        return [{"power": self.power, "standard_error": self.error, "draws": self.draws}]


def dunnett_power(
    control: int, sizes: Sequence[int], effects: Sequence[float], *, alpha: float = 0.05
) -> ContrastPower:
    """Power of Dunnett's two-sided test of groups of `sizes` (m,) against a control, one variance for all.

    `effects` (m,): true differences from the control in standard deviations of people. Raises StatsError for
    other lengths, groups without degrees of freedom, or numbers outside their range.
    """
    counts = [_size(size) for size in (control, *check.sequence(sizes, "The sizes"))]
    shifts = check.array(check.sequence(effects, "The effects"), "The effects")
    level = _alpha(alpha)
    df = sum(counts) - len(counts)
    if (
        not 1 <= shifts.size == len(counts) - 1 <= CONTRASTS_MAX
        or np.abs(shifts).max() > EFFECT_MAX
        or df < 1
    ):
        raise StatsError(
            f"There are {len(counts) - 1} groups beside the control, {shifts.size} effects and {df} "
            f"degrees of freedom; give one effect of at most {EFFECT_MAX:g} SD per group, for up to "
            f"{CONTRASTS_MAX} groups."
        )
    base, others = counts[0], np.array(counts[1:], dtype=np.float64)
    loadings = np.minimum(np.sqrt((1 / base) / (1 / others + 1 / base)), LOADING_MAX)
    critical = critical_value(loadings, df, 1 - level)
    means = shifts * np.sqrt(others * base / (others + base))
    each = tuple(_two_sided(critical, df, float(mean)) for mean in means)
    return ContrastPower(each, max(*each, largest_tail(critical, loadings, df, means)), critical)


def detectable_contrast(
    control: int, sizes: Sequence[int], *, power: float = 0.8, alpha: float = 0.05
) -> float:
    """The smallest difference, in standard deviations, that the contrast of the smallest group is told with
    this power. Raises StatsError."""
    if not _alpha(alpha) < check.number(power, "Power") < 1:
        raise StatsError(f"Power {power} must lie between alpha ({alpha}) and 1.")
    many = len(check.sequence(sizes, "The sizes"))
    null = dunnett_power(control, sizes, [0.0] * many, alpha=alpha)
    least, df = min(sizes), sum(sizes) + control - many - 1
    root = math.sqrt(least * control / (least + control))

    def excess(effect: float) -> float:
        return _two_sided(null.critical, df, effect * root) - power

    if excess(EFFECT_MAX) < 0:
        raise StatsError(
            f"No difference up to {EFFECT_MAX:g} SD is told with power {power}; plan more people."
        )
    return float(brentq(excess, 0.0, EFFECT_MAX, xtol=1e-9))


def paired_power(people: int, effect: float, *, tests: int = 1, alpha: float = 0.05) -> float:
    """Power (0-1) of a two-sided paired t test; `effect`: the mean difference in standard deviations of the
    differences. At `alpha` / `tests`, the first step of Holm's correction. Raises StatsError."""
    n, many = _size(people), check.count(tests, "The number of tests", least=1)
    far = _effect(effect)
    if n < 2:
        raise StatsError(f"A paired test needs at least 2 people, got {n}; plan more people.")
    edge = float(student.isf(_alpha(alpha) / many / 2, n - 1))
    return _two_sided(edge, n - 1, far * math.sqrt(n))


def equivalence_power(
    first: int, second: int, margin: float, *, difference: float = 0.0, alpha: float = 0.05
) -> float:
    """Power (0-1) of two one-sided t tests of two groups, each at `alpha`: the probability that they are
    called equivalent. `margin` and the true `difference` in standard deviations of people. Raises
    StatsError."""
    n, m = _size(first), _size(second)
    bound, centre, level = _effect(margin), _effect(difference), _alpha(alpha)
    df = n + m - 2
    if bound <= 0 or df < 1:
        raise StatsError(
            f"The margin is {margin} and the groups {n} and {m}; give a margin above 0, more people."
        )
    error = math.sqrt(1 / n + 1 / m)
    edge = float(student.isf(level, df))
    low, high = (math.sqrt(float(end) / df) for end in (chi2.ppf(TINY, df), chi2.isf(TINY, df)))
    # A larger estimate of the variance leaves no room between the margins.
    scale = np.linspace(low, min(high, bound / (edge * error)), SCALE_NODES) if edge > 0 else None
    if scale is None or scale[-1] <= low:
        return (
            0.0
            if scale is not None
            else float(ndtr((bound - centre) / error) - ndtr((-bound - centre) / error))
        )
    room = np.maximum(bound - edge * error * scale, 0.0)
    inside = ndtr((room - centre) / error) - ndtr((-room - centre) / error)
    density = chi2.pdf(df * scale**2, df) * 2 * df * scale
    return finite(float(np.clip(np.trapezoid(inside * density, scale), 0.0, 1.0)), "Power")


def utility_power(
    sizes: tuple[int, int],
    means: tuple[float, float],
    deviations: tuple[float, float],
    *,
    tests: int = 1,
    alpha: float = 0.05,
    draws: int = DRAWS,
    seed: int = SEED,
) -> SimulatedPower:
    """How often Fieller's interval of a Utility leaves out 1, of condition and baseline in that order:
    numbers of people, mean accuracies (0-1), standard deviations of people. At level 1 - `alpha` / `tests`.

    Means are drawn from normal distributions and variances from chi-square ones, which is what whole studies
    of normal accuracies give. Raises StatsError.
    """
    n, centre, spread = _pair(sizes, "sizes"), _pair(means, "means"), _pair(deviations, "deviations")
    counts = np.array([_size(size) for size in n], dtype=np.float64)
    many, number = (
        check.count(tests, "The number of tests", least=1),
        check.count(draws, "The draws", least=1),
    )
    if (
        counts.min() < 2
        or not (centre.min() > 0 and centre.max() <= 1)
        or not (0 < spread.min() <= spread.max() <= 1)
    ):
        raise StatsError(
            "The power of a Utility needs 2 people in each group, mean accuracies above 0 and up to 1, and "
            f"deviations above 0 and up to 1; got {sizes}, {means} and {deviations}."
        )
    if number > DRAWS * 50:
        raise StatsError(f"{number:,} draws are too many; ask for at most {DRAWS * 50:,}.")
    rng = np.random.default_rng(check.count(seed, "The seed"))
    a, b = (rng.normal(m, s / math.sqrt(k), number) for m, s, k in zip(centre, spread, counts, strict=True))
    va, vb = (s**2 / k * rng.chisquare(k - 1, number) / (k - 1) for s, k in zip(spread, counts, strict=True))
    from_b = (a / b) ** 2 * vb
    df = (va + from_b) ** 2 / (va**2 / (counts[0] - 1) + from_b**2 / (counts[1] - 1))
    edge = student.isf(_alpha(alpha) / many / 2, df)
    # The ratio 1 lies outside of the set whether or not the set has two ends.
    share = float((np.abs(a - b) > edge * np.sqrt(va + vb)).mean())
    return SimulatedPower(share, math.sqrt(share * (1 - share) / number), number)


def _two_sided(edge: float, df: float, shift: float) -> float:
    """P(|T| > edge) of a noncentral t: the largest of one. That of scipy is not a number for large shifts."""
    return finite(largest_tail(edge, np.zeros(1), df, np.array([shift])), "Power")


def _pair(values: ArrayLike, what: str) -> Floats:
    array = check.array(values, f"The {what}")
    if array.size != 2:
        raise StatsError(
            f"There are {array.size} {what}; give that of the condition and that of the baseline."
        )
    return array


def _size(size: object) -> int:
    count = check.count(size, "The size of a group", least=1)
    if count > SIZE_MAX:
        raise StatsError(f"A group has {count:,} people; power is computed for at most {SIZE_MAX:,}.")
    return count


def _effect(effect: float) -> float:
    if abs(check.number(effect, "The effect")) > EFFECT_MAX:
        raise StatsError(f"The effect is {effect}; give at most {EFFECT_MAX:g} standard deviations.")
    return float(effect)


def _alpha(alpha: float) -> float:
    if not ALPHA_MIN <= check.number(alpha, "Alpha") <= 0.5:
        raise StatsError(f"Alpha is {alpha}; give a number from {ALPHA_MIN:g} to 0.5, for example 0.05.")
    return float(alpha)
