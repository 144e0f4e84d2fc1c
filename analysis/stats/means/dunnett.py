"""Every condition against one control at once: Dunnett's test, with equal or with separate variances.

The largest of |t_1|..|t_m| has no closed form, but the correlations of comparisons with one control are
products of loadings, so that its distribution is an integral over two numbers: the control's deviation and
the scale of the variance estimate (Dunnett 1955). Both are integrated by the trapezoid rule, exact to about
1e-9 for these integrands; nothing is drawn, so there is no seed and no random digit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import ndtr
from scipy.stats import chi2, norm

from analysis.stats import check
from analysis.stats.intervals_and_checks import Floats, Interval, Row, StatsError, finite
from analysis.stats.means.effect_size import MeanDifference, hedges_g

Variances = Literal["equal", "separate"]
LOADING_MAX = 0.999
"""A larger one is taken for this: less correlation makes p larger and intervals wider (Slepian 1962)."""
REACH = 8.5
"""Standard deviations of the control's deviation that are integrated over."""
SCALE_NODES = 128
TINY = 1e-14


@dataclass(frozen=True, slots=True)
class Dunnett:
    """Two-sided comparisons of every other group with `control`, in the order of the groups."""

    control: str
    comparisons: tuple[MeanDifference, ...]
    variances: Variances
    level: float

    def table(self) -> list[Row]:
        """A row per comparison."""
        return [comparison.row() for comparison in self.comparisons]


def dunnett(
    groups: Mapping[str, ArrayLike], control: str, *, variances: Variances = "equal", level: float = 0.95
) -> Dunnett:
    """Dunnett's two-sided test of independent groups (n_i,) against the group `control`.

    "equal": one variance is pooled over all groups, df = N - k (Dunnett 1955, 1964). "separate": every group
    has its own; each comparison has Welch's df and the correlations are estimated (Hasler and Hothorn 2008).
    Which one is declared before the data are seen. Raises StatsError for a control that is no group, and as
    `welch_anova` and `hedges_g` do.
    """
    check.level(level)
    arrays = check.groups(groups)
    if control not in arrays:
        raise StatsError(f"The control {control!r} is no group; the groups are {', '.join(arrays)}.")
    check.word(variances, "The assumption of variances", get_args(Variances))
    if variances == "separate":
        check.spreads(arrays)
    errors, dfs = _errors(arrays, control, variances)
    others = [name for name in arrays if name != control]
    # The control's share in the variance of a difference is the square of the loading.
    loadings = np.sqrt([errors[control] / (errors[name] + errors[control]) for name in others])
    loadings = np.minimum(loadings, LOADING_MAX)
    widths: dict[float, float] = {}
    made = []
    for name in others:
        x, y, df = arrays[name], arrays[control], dfs[name]
        difference, se = float(x.mean() - y.mean()), float(np.sqrt(errors[name] + errors[control]))
        size = hedges_g(x, y, level=level)
        t = difference / se
        p = finite(largest_tail(abs(t), loadings, df), "Dunnett's p")
        if df not in widths:
            widths[df] = critical_value(loadings, df, level)
        half = widths[df] * se
        interval = Interval(difference - half, difference + half, level)
        made.append(MeanDifference(name, control, difference, se, df, t, p, interval, size))
    return Dunnett(control, tuple(made), variances, level)


def _errors(
    arrays: Mapping[str, Floats], control: str, variances: Variances
) -> tuple[dict[str, float], dict[str, float]]:
    """The squared standard error of each mean, and the df of each comparison."""
    if variances == "equal":
        df = sum(x.size - 1 for x in arrays.values())
        pooled = float(sum(((x - x.mean()) ** 2).sum() for x in arrays.values())) / df
        if pooled == 0:
            raise StatsError("The variance within groups is 0, so no test is defined; see the raw responses.")
        return {name: pooled / x.size for name, x in arrays.items()}, dict.fromkeys(arrays, float(df))
    errors = {name: float(x.var(ddof=1)) / x.size for name, x in arrays.items()}
    dfs = {}
    for name in arrays:
        whole = errors[name] + errors[control]
        dfs[name] = 1 / sum((errors[g] / whole) ** 2 / (arrays[g].size - 1) for g in (name, control))
    return errors, dfs


def largest_tail(t: float, loadings: Floats, df: float, shifts: Floats | None = None) -> float:
    """P(max |T_i| > t), the T_i multivariate t with `df` and correlations loading_i loading_j; noncentral
    with means `shifts` (m,) before the common scale, if given."""
    means = np.zeros(loadings.size) if shifts is None else shifts
    return _largest_tail(float(t), tuple(loadings.tolist()), float(df), tuple(means.tolist()))


# A report asks for the same numbers of everybody and of those who were kept, who are often the same people.
@lru_cache(maxsize=4096)
def _largest_tail(t: float, given: tuple[float, ...], df: float, means: tuple[float, ...]) -> float:
    loadings = np.array(given, dtype=np.float64)
    rest = np.sqrt(1 - loadings**2)
    low, high = (float(np.log(quantile(TINY, df) / df)) / 2 for quantile in (chi2.ppf, chi2.isf))
    if not np.isfinite(low + high):
        raise StatsError(f"The variances leave {df:g} degrees of freedom, too few; wait for more people.")
    scale = np.exp(np.linspace(low, high, SCALE_NODES))
    # The density of log(scale), which falls off twice exponentially.
    density = chi2.pdf(df * scale**2, df) * 2 * df * scale**2
    nodes = int(np.clip(8 * REACH / rest.min(), 96, 1500))
    z = np.linspace(-REACH, REACH, nodes)
    inside = np.zeros((SCALE_NODES, nodes))
    for loading, part, mean in zip(loadings, rest, means, strict=True):
        centre, edge = ((loading * z + mean) / part)[None, :], (t * scale / part)[:, None]
        outside = np.minimum(ndtr(centre - edge) + ndtr(-centre - edge), 1 - 1e-16)
        inside += np.log1p(-outside)
    per_scale = -np.expm1(inside) @ norm.pdf(z) * (z[1] - z[0])
    step = (high - low) / (SCALE_NODES - 1)
    return float(np.clip((per_scale * density).sum() * step, 0.0, 1.0))


def critical_value(loadings: Floats, df: float, level: float) -> float:
    """The two-sided critical value of the largest of m multivariate t with `df` and correlations
    loading_i loading_j; `loadings` (m,) lie in 0 to LOADING_MAX. Raises StatsError for few df."""
    return _critical_value(tuple(loadings.tolist()), float(df), float(level))


@lru_cache(maxsize=1024)
def _critical_value(given: tuple[float, ...], df: float, level: float) -> float:
    loadings, high = np.array(given, dtype=np.float64), 2.0
    if largest_tail(0.0, loadings, df) <= 1 - level:
        raise StatsError(f"There is no critical value at level {level:g}; use a level such as 0.95.")
    while largest_tail(high, loadings, df) > 1 - level:
        high *= 2
        if high > 1e6:
            raise StatsError(
                f"There is no critical value at level {level:g} and {df:g} degrees of freedom; use a level "
                "such as 0.95 and more participants."
            )
    return float(brentq(lambda t: largest_tail(t, loadings, df) - (1 - level), 0.0, high, xtol=1e-9))
