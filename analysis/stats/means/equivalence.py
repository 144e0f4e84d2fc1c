"""Groups, or conditions of the same people, against a declared smallest effect: equivalent, not inferior,
worse, superior, or undecided.

Two one-sided tests at 5 % (Schuirmann 1987) are the 90 % interval; the words are those of `margin`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.stats import norm
from scipy.stats import t as student

from analysis.stats import check
from analysis.stats.intervals_and_checks import Interval, Row, StatsError, ends_of, has_spread, row_of
from analysis.stats.shares.margin_decision import NARROW, WIDE, Decision, decide_margin


@dataclass(frozen=True, slots=True)
class Equivalence:
    """`difference`, first - second. `p_above`: one-sided p of a difference of -margin or less, which is the p
    of "not inferior"; `p_below`: of margin or more; `p` the larger of both, which is that of "equivalent".

    `is_noninferior`: the 90 % interval lies above -margin, that is p_above < 5 %.
    """

    decision: Decision
    is_noninferior: bool
    margin: float
    difference: float
    p_above: float
    p_below: float
    p: float
    wide: Interval
    narrow: Interval

    @property
    def p_beyond(self) -> float:
        """Two-sided p of a difference that lies within the margin: that of "superior" and "worse"."""
        return min(1.0, 2 * (1 - max(self.p_above, self.p_below)))

    def table(self) -> list[Row]:
        """One row; `low` and `high` are the ends of the 90 % interval, with _95 those of the 95 % one."""
        row = row_of(self, "decision", "is_noninferior", "margin", "difference")
        row |= ends_of(self.narrow) | ends_of(self.wide, after="_95")
        return [{**row, "p_noninferior": self.p_above, "p_equivalent": self.p}]


def equivalent_means(
    first: ArrayLike, second: ArrayLike, margin: float, *, alpha: float = 0.05
) -> Equivalence:
    """Welch's two one-sided t tests of independent groups (n1,), (n2,), each at `alpha` (the intervals are at
    1 - 2 alpha and 1 - alpha); `margin` in the unit of the values.

    The margin is declared before the data are seen. Raises StatsError for a margin of 0 or less, fewer than
    two values in a group, or no variance in both.
    """
    bound = _checked_margin(margin)
    x, y = (check.array(values, "A group of the equivalence test") for values in (first, second))
    if min(x.size, y.size) < 2:
        raise StatsError(f"Equivalence needs at least 2 values per group, got {x.size} and {y.size}.")
    parts = [float(v.var(ddof=1)) / v.size if has_spread(v) else 0.0 for v in (x, y)]
    se = math.sqrt(sum(parts))
    if se == 0:
        raise StatsError("Neither group has any variance, so no test is defined; look at the raw responses.")
    shares = [part / sum(parts) for part in parts]
    df = 1 / (shares[0] ** 2 / (x.size - 1) + shares[1] ** 2 / (y.size - 1))
    return _by_t(float(x.mean() - y.mean()), se, df, bound, alpha)


def equivalent_changes(first: ArrayLike, second: ArrayLike, margin: float) -> Equivalence:
    """The two one-sided t tests of the differences of (n,) people who met both; `margin` as above.

    Raises StatsError for a margin of 0 or less, fewer than two people, other people in `second`, or
    differences that are all equal.
    """
    bound = _checked_margin(margin)
    x, y = (check.array(values, "A condition of the equivalence test") for values in (first, second))
    if x.size != y.size or x.size < 2:
        raise StatsError(
            f"Equivalence within people needs both values of at least 2 people, got {x.size} and {y.size}."
        )
    changes = x - y
    if not has_spread(changes):
        raise StatsError("All differences are equal, so no test is defined; look at the raw responses.")
    se = float(changes.std(ddof=1)) / math.sqrt(x.size)
    return _by_t(float(changes.mean()), se, x.size - 1, bound)


def _by_t(difference: float, se: float, df: float, bound: float, alpha: float = 0.05) -> Equivalence:
    if not se > 0:
        raise StatsError("All differences are equal, so no test is defined; look at the raw responses.")

    def ends(level: float) -> Interval:
        half = float(student.ppf((1 + level) / 2, df)) * se
        return Interval(difference - half, difference + half, level)

    above = float(student.sf((difference + bound) / se, df))
    below = float(student.cdf((difference - bound) / se, df))
    level = check.level(1 - 2 * check.number(alpha, "Alpha"))
    return _make_equivalence(bound, difference, above, below, ends((1 + level) / 2), ends(level))


def equivalent_shares(
    count_first: int, total_first: int, count_second: int, total_second: int, margin: float
) -> Equivalence:
    """The same of two independent shares, by the score test of a difference (Farrington and Manning 1990) and
    the interval that inverts it (Mee 1984). `margin` in 0-1. Raises StatsError for counts beyond their
    totals, totals of 0, or a margin outside 0-1.
    """
    bound = _checked_margin(margin)
    for count, total in ((count_first, total_first), (count_second, total_second)):
        if check.count(count, "The count") > check.count(total, "The total", least=1):
            raise StatsError(f"A share needs 0 <= count <= total, got {count} of {total}.")
    if bound >= 1:
        raise StatsError(f"The margin {margin} of a difference of shares must lie between 0 and 1.")
    sizes = (int(total_first), int(total_second))
    shares = (int(count_first) / sizes[0], int(count_second) / sizes[1])

    def z(value: float) -> float:
        return _score(shares, sizes, value)

    difference = shares[0] - shares[1]
    narrow, wide = (_score_interval(shares, sizes, level) for level in (NARROW, WIDE))
    return _make_equivalence(
        bound, difference, float(norm.sf(z(-bound))), float(norm.cdf(z(bound))), wide, narrow
    )


def _checked_margin(margin: float) -> float:
    if not check.number(margin, "The margin") > 0:
        raise StatsError(f"The margin is {margin}; declare the smallest effect that matters, above 0.")
    return float(margin)


def _make_equivalence(
    margin: float, difference: float, above: float, below: float, wide: Interval, narrow: Interval
) -> Equivalence:
    return Equivalence(
        decision=decide_margin(wide, narrow, margin),
        is_noninferior=narrow.low > -margin,
        margin=margin,
        difference=difference,
        p_above=above,
        p_below=below,
        p=max(above, below),
        wide=wide,
        narrow=narrow,
    )


def _score(shares: tuple[float, float], sizes: tuple[int, int], value: float) -> float:
    """The distance of the difference from `value` in standard errors, taken at the shares that are most
    likely if the difference is `value`."""
    (p1, p2), (n1, n2) = shares, sizes
    at_second = _restricted_share(shares, sizes, value)
    at_first = at_second + value
    variance = at_first * (1 - at_first) / n1 + at_second * (1 - at_second) / n2
    gap = p1 - p2 - value
    if variance <= 1e-15:
        return 0.0 if abs(gap) < 1e-12 else math.copysign(1e8, gap)
    return gap / math.sqrt(variance)


def _restricted_share(shares: tuple[float, float], sizes: tuple[int, int], value: float) -> float:
    """The most likely second share if the difference is `value`: the root of the likelihood equation, a cubic
    (Farrington and Manning 1990, appendix, with the groups turned)."""
    (p1, p2), (n1, n2) = shares, sizes
    low, high = max(0.0, -value), min(1.0, 1 - value)

    def slope(share: float) -> float:
        # The derivative of the log-likelihood times its positive denominators.
        a, b = share + value, share
        return float(n1 * (p1 - a) * b * (1 - b) + n2 * (p2 - b) * a * (1 - a))

    if high - low < 1e-12:
        return (low + high) / 2
    inner = (high - low) * 1e-12
    ends = (slope(low + inner), slope(high - inner))
    if ends[0] <= 0:
        return low
    if ends[1] >= 0:
        return high
    return float(brentq(slope, low + inner, high - inner, xtol=1e-14))


def _score_interval(shares: tuple[float, float], sizes: tuple[int, int], level: float) -> Interval:
    z = float(norm.ppf((1 + level) / 2))
    difference = shares[0] - shares[1]

    def end(side: int) -> float:
        limit = float(side)
        if abs(difference - limit) < 1e-12:
            return limit

        def excess(value: float) -> float:
            return abs(_score(shares, sizes, value)) - z

        edge = limit - side * 1e-9
        return limit if excess(edge) <= 0 else float(brentq(excess, difference, edge, xtol=1e-12))

    return Interval(end(-1), end(1), level)
