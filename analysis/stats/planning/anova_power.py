"""Power of the one-way ANOVA, by the noncentral F distribution."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import brentq
from scipy.stats import f as f_distribution
from scipy.stats import ncf

from analysis.stats import check
from analysis.stats.intervals_and_checks import StatsError, finite

DOUBLINGS_MAX = 64


def effect_size_f(means: Sequence[float], deviation: float, sizes: Sequence[int] | None = None) -> float:
    """Cohen's f = sd of the group means (weighted by size) / standard deviation within groups."""
    centres = check.array(means, "The means")
    if check.number(deviation, "The deviation") <= 0 or centres.size < 2:
        raise StatsError(
            f"Cohen's f needs at least 2 means and a deviation above 0, got {centres.size} and {deviation:g}."
        )
    weights = np.ones(centres.size) if sizes is None else check.array(sizes, "The sizes")
    if weights.size != centres.size or weights.min() <= 0:
        raise StatsError(f"Cohen's f needs one size above 0 per mean ({centres.size}), got {sizes}.")
    centre = np.average(centres, weights=weights)
    spread = float(np.sqrt(np.average((centres - centre) ** 2, weights=weights)))
    return finite(spread / deviation, "Cohen's f")


def effect_size_f_from_eta_squared(eta_squared: float) -> float:
    """Cohen's f = sqrt(eta squared / (1 - eta squared)), for eta squared in [0, 1)."""
    if not 0 <= check.number(eta_squared, "Eta squared") < 1:
        raise StatsError(f"Eta squared {eta_squared} is not in [0, 1).")
    return float(np.sqrt(eta_squared / (1 - eta_squared)))


def anova_power(sizes: Sequence[int], effect_f: float, *, alpha: float = 0.05) -> float:
    """Probability (0-1) that the one-way F test rejects at `alpha`, for group sizes n_i and Cohen's f.

    The noncentrality is N f squared. With unequal sizes, f must be the size-weighted one.
    """
    df1, df2, total = _degrees(sizes)
    if check.number(effect_f, "The effect") < 0 or not 0 < check.number(alpha, "Alpha") < 1:
        raise StatsError(
            f"Power needs an effect of at least 0 and alpha in (0, 1), got {effect_f} and {alpha}."
        )
    critical = float(f_distribution.isf(alpha, df1, df2))
    if effect_f == 0:
        return alpha
    return finite(float(ncf.sf(critical, df1, df2, total * effect_f**2)), "Power")


def minimal_detectable_f(sizes: Sequence[int], *, power: float = 0.8, alpha: float = 0.05) -> float:
    """The smallest Cohen's f that is detected with the given power."""
    if not 0 < check.number(alpha, "Alpha") < check.number(power, "Power") < 1:
        raise StatsError(f"Power {power} must lie between alpha ({alpha}) and 1, and alpha above 0.")
    high = 1.0
    for _ in range(DOUBLINGS_MAX):
        if anova_power(sizes, high, alpha=alpha) >= power:
            return float(brentq(lambda f: anova_power(sizes, f, alpha=alpha) - power, 0.0, high))
        high *= 2
    raise StatsError(f"No effect is found with power {power} at alpha {alpha}; plan more people.")


def _degrees(sizes: Sequence[int]) -> tuple[int, int, int]:
    counts = [check.count(n, "The size of a group", least=1) for n in check.sequence(sizes, "The sizes")]
    total = sum(counts)
    if len(counts) < 2 or total <= len(counts):
        raise StatsError(
            f"Group sizes {list(sizes)} leave no degrees of freedom; "
            "plan at least 2 conditions with 2 people each."
        )
    return len(sizes) - 1, total - len(sizes), total
