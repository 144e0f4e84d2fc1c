"""How two columns go together if rows of one person, or of one item, do: whole clusters are drawn.

The interval is the percentile bootstrap over clusters. Rows of one cluster are kept together, so that many
rows of few people count as few people. Fisher's z stands beside it for rows that are independent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm, rankdata
from scipy.stats import t as student

from analysis.stats import check
from analysis.stats.intervals_and_checks import (
    Codes,
    Floats,
    Interval,
    Names,
    Row,
    StatsError,
    ends_of,
    finite,
    has_spread,
    row_of,
)

Kind = Literal["pearson", "spearman"]
CLUSTERS_MIN = 20
"""With fewer clusters the percentiles hold the true correlation too seldom, and none are given."""
ROWS_MAX = 200_000
WORK_MAX = 10**9
"""Rows times draws."""
FISHER_ROWS_MIN = 4
SPEARMAN_FACTOR = 1.06
"""Of the variance of Fisher's z of a rank correlation (Fieller, Hartley and Pearson 1957)."""


@dataclass(frozen=True, slots=True)
class ClusterCorrelation:
    """`r` over all `rows`. `interval`: percentiles over draws of whole `clusters`; None with fewer than
    CLUSTERS_MIN. `fisher`: Fisher's z, and `p`: Student's t of r, two-sided, only if every row is a cluster
    by itself. `undefined` draws had no spread in a column and are left out.
    """

    kind: Kind
    r: float
    rows: int
    clusters: int
    interval: Interval | None
    fisher: Interval | None
    undefined: int
    p: float | None = None

    def table(self) -> list[Row]:
        """One row; `fisher_low` and `fisher_high` are the ends of Fisher's interval."""
        row = row_of(self, "kind", "r", "interval") | ends_of(self.fisher, "fisher_")
        return [{**row, **row_of(self, "p", "rows", "clusters"), "undefined_draws": self.undefined}]


def correlation(
    first: ArrayLike,
    second: ArrayLike,
    clusters: Names | None = None,
    *,
    kind: Kind = "pearson",
    draws: int = 2000,
    seed: int = 0,
    level: float = 0.95,
) -> ClusterCorrelation:
    """Pearson's or Spearman's correlation of `first` and `second` (n,), ties by mean rank.

    `clusters`: the person or item of each row; without it each row is a cluster. In each draw as many
    clusters as there are come with replacement, by `numpy.random.default_rng(seed).integers`, and ranks are
    made anew. Raises StatsError for a column without spread, lists of unequal length, fewer than 3 rows, or
    more rows or draws than are computed.
    """
    check.level(level)
    x, y = (check.array(values, "A column of the correlation") for values in (first, second))
    if x.size != y.size or not 3 <= x.size <= ROWS_MAX:
        raise StatsError(
            f"The columns have {x.size} and {y.size} values; give one of each per row, 3 to "
            f"{ROWS_MAX:,} rows."
        )
    check.word(kind, "The kind of correlation", get_args(Kind))
    count = check.count(draws, "The number of draws", least=1)
    start = check.count(seed, "The seed")
    if count * x.size > WORK_MAX:
        raise StatsError(f"{x.size:,} rows and {count:,} draws are too many; ask for fewer draws.")
    codes = np.arange(x.size) if clusters is None else check.codes(clusters, "clusters")
    if codes.size != x.size:
        raise StatsError(f"There are {codes.size} clusters; give one for each of the {x.size} rows.")
    if not (has_spread(x) and has_spread(y)):
        raise StatsError("A correlation needs values that differ in both columns; look at the raw values.")
    # In their own units squares would leave the range of numbers.
    x, y = _standard(x), _standard(y)
    ranked = kind == "spearman"
    r = _clip_correlation(_product(rankdata(x) if ranked else x, rankdata(y) if ranked else y))
    many = int(codes.max()) + 1
    interval, undefined = None, 0
    if many >= CLUSTERS_MIN:
        drawn = _draw_correlations(x, y, codes, ranked, np.random.default_rng(start), count)
        usable = drawn[~np.isnan(drawn)]
        undefined = count - usable.size
        if usable.size:
            low, high = np.quantile(usable, [(1 - level) / 2, (1 + level) / 2])
            interval = Interval(float(low), float(high), level)
    alone = many == x.size and x.size >= FISHER_ROWS_MIN
    fisher, p = (_fisher(r, x.size, ranked, level), _p(r, x.size)) if alone else (None, None)
    return ClusterCorrelation(kind, r, x.size, many, interval, fisher, undefined, p)


def _standard(values: Floats) -> Floats:
    centred = values - values.mean()
    return np.asarray(centred / np.abs(centred).max())


def _product(x: Floats, y: Floats) -> float:
    return finite(float(np.corrcoef(x, y)[0, 1]), "The correlation")


def _clip_correlation(r: float) -> float:
    return min(1.0, max(-1.0, r))


def _fisher(r: float, rows: int, ranked: bool, level: float) -> Interval | None:
    """None for a correlation of 1 or -1, which has no z."""
    if abs(r) > 1 - 1e-12:
        return None
    half = float(norm.ppf((1 + level) / 2)) * math.sqrt((SPEARMAN_FACTOR if ranked else 1.0) / (rows - 3))
    return Interval(math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half), level)


def _p(r: float, rows: int) -> float | None:
    """None for a correlation of 1 or -1, for which t is infinite."""
    if abs(r) > 1 - 1e-12:
        return None
    return float(2 * student.sf(abs(r) * math.sqrt((rows - 2) / (1 - r**2)), rows - 2))


def _draw_correlations(
    x: Floats, y: Floats, codes: Codes, ranked: bool, rng: np.random.Generator, draws: int
) -> Floats:
    """The correlation of each draw (draws,), NaN without spread. A row counts as often as its cluster was
    drawn, which is the same as repeating it."""
    many = int(codes.max()) + 1
    ranks = (_Ranks(x), _Ranks(y)) if ranked else None
    made = np.empty(draws)
    for at in range(draws):
        times = np.bincount(rng.integers(0, many, many), minlength=many)[codes].astype(np.float64)
        a, b = (x, y) if ranks is None else (ranks[0].weighted(times), ranks[1].weighted(times))
        made[at] = _weighted_correlation(a, b, times)
    return made


class _Ranks:
    """Mean ranks of values that count several times: sorted once."""

    def __init__(self, values: Floats) -> None:
        self.levels, self.codes = np.unique(values, return_inverse=True)

    def weighted(self, times: Floats) -> Floats:
        counted = np.bincount(self.codes, times, self.levels.size)
        return np.asarray((np.cumsum(counted) - (counted - 1) / 2)[self.codes])


def _weighted_correlation(x: Floats, y: Floats, times: Floats) -> float:
    total = times.sum()
    a, b = x - (times @ x) / total, y - (times @ y) / total
    spread_a, spread_b = float(times @ a**2), float(times @ b**2)
    # What rounding leaves of a column that is constant in this draw is no spread.
    scale = 1e-24 * total
    if spread_a <= scale * float(np.abs(x).max()) ** 2 or spread_b <= scale * float(np.abs(y).max()) ** 2:
        return math.nan
    return _clip_correlation(float(times @ (a * b)) / math.sqrt(spread_a * spread_b))
