"""What tests of independent groups assume, and on which person they hang: to be printed beside them.

None of it chooses a test. A test of variances or of normality that comes first changes the error of the test
that follows, so which test stands is declared before the data are seen (Zimmerman 2004, BJMSP 57, 173-181).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import f as f_distribution
from scipy.stats import levene, shapiro

from analysis.stats import check
from analysis.stats.intervals_and_checks import ROUNDING, Floats, Row, StatsError, finite, has_spread

SHAPIRO_MIN, SHAPIRO_MAX = 3, 5000
"""Values that the approximation of Royston (1995) is made for."""
CENTRES = {"Brown-Forsythe": "median", "Levene": "mean"}


@dataclass(frozen=True, slots=True)
class VarianceTest:
    """`f` of the distances from each group's centre: the median (Brown and Forsythe 1974) or the mean (Levene
    1960)."""

    test: str
    f: float
    df_between: int
    df_within: int
    p: float


@dataclass(frozen=True, slots=True)
class VarianceTests:
    """Both tests, and the largest standard deviation of a group over the smallest (None if that is 0)."""

    tests: tuple[VarianceTest, ...]
    sd_ratio: float | None

    def table(self) -> list[Row]:
        """A row per test."""
        return [{**asdict(test), "sd_ratio": self.sd_ratio} for test in self.tests]


def variance_tests(groups: Mapping[str, ArrayLike]) -> VarianceTests:
    """Tests that independent groups (n_i,) have one variance. Raises StatsError for fewer than two groups or
    values, missing values, or distances from the centre without spread within any group."""
    arrays = check.groups(groups)
    distances = (
        [np.abs(x - x.mean()) for x in arrays.values()],
        [np.abs(x - np.median(x)) for x in arrays.values()],
    )
    sizes = [x.size for x in arrays.values()]
    if not all(any(has_spread(x) for x in each) for each in distances):
        raise StatsError(
            "All distances from the centres of their groups are equal, so variances cannot be compared; wait "
            "for more participants."
        )
    told = []
    for name, centre in CENTRES.items():
        made = levene(*arrays.values(), center=centre)
        f = finite(float(made.statistic), f"F of {name}")
        told.append(VarianceTest(name, f, len(sizes) - 1, sum(sizes) - len(sizes), float(made.pvalue)))
    sds = [float(x.std(ddof=1)) if has_spread(x) else 0.0 for x in arrays.values()]
    return VarianceTests(tuple(told), max(sds) / min(sds) if min(sds) > 0 else None)


@dataclass(frozen=True, slots=True)
class Normality:
    """Shapiro and Wilk's `w` of `n` residuals; skewness and excess kurtosis (0 for a normal distribution)."""

    w: float
    p: float
    skewness: float
    kurtosis: float
    n: int

    def table(self) -> list[Row]:
        """One row, by the names of the fields."""
        return [asdict(self)]


def normality(residuals: ArrayLike) -> Normality:
    """Shapiro-Wilk test of residuals (n,), SHAPIRO_MIN to SHAPIRO_MAX of them, of the whole design. Raises
    StatsError for another number, or residuals without spread."""
    values = check.array(residuals, "The residuals")
    if not SHAPIRO_MIN <= values.size <= SHAPIRO_MAX:
        raise StatsError(
            f"Shapiro and Wilk's test is of {SHAPIRO_MIN} to {SHAPIRO_MAX:,} residuals, there are "
            f"{values.size:,}; with more, look at a drawing, for the smallest departure has a small p."
        )
    if not has_spread(values):
        raise StatsError("The residuals are all equal, so no distribution shows; look at the raw responses.")
    # Squares of the smallest numbers would be 0.
    standard = (values - values.mean()) / np.abs(values - values.mean()).max()
    made = shapiro(standard)
    sd = float(standard.std())
    skewness, kurtosis = (float((standard**power).mean()) / sd**power for power in (3, 4))
    return Normality(float(made.statistic), float(made.pvalue), skewness, kurtosis - 3, values.size)


@dataclass(frozen=True, slots=True)
class Influence:
    """A statistic of all people, and without the person whose removal moves it most. `p` are those of F, None
    for a difference of means."""

    statistic: str
    value: float
    person: str
    group: str
    without: float
    p: float | None = None
    p_without: float | None = None


@dataclass(frozen=True, slots=True)
class Influences:
    """F of the one-way analysis of variance, then the largest difference of two means."""

    rows: tuple[Influence, ...]

    def table(self) -> list[Row]:
        """A row per statistic."""
        return [asdict(row) for row in self.rows]


def influence(groups: Mapping[str, ArrayLike], people: Mapping[str, Sequence[object]]) -> Influences:
    """Leaves out each person of independent groups (n_i,) in turn; `people` names them, one name per value.
    Of people who move it alike the first is told. Raises StatsError for other names, and as `one_way`
    does."""
    arrays = check.groups(groups)
    if list(check.mapping(people, "The people")) != list(arrays):
        raise StatsError(f"Name the people of the groups {', '.join(arrays)}, in that order, as a mapping.")
    names = {group: [str(name) for name in check.sequence(people[group], "The names")] for group in arrays}
    wrong = [group for group, values in arrays.items() if len(names[group]) != values.size]
    if wrong:
        raise StatsError(f"Group {wrong[0]!r} has {len(names[wrong[0]])} names; give one for each value.")
    whole = _Moments.of(list(arrays.values()))
    f, df = float(whole.f()[0]), (whole.sizes.shape[1] - 1, int(whole.sizes.sum()) - whole.sizes.shape[1])
    finite(f, "F")
    who = [(name, group) for group in arrays for name in names[group]]
    left = whole.without(list(arrays.values()))
    fs = left.f()
    # Without spread F has no bound: nothing moves it more.
    at = int(np.where(np.isfinite(fs), np.abs(fs - f), np.inf).argmax())
    if not np.isfinite(fs[at]):
        raise StatsError(
            f"Without {who[at][0]} no spread is left within the groups; look at the raw responses."
        )
    p, p_without = float(f_distribution.sf(f, *df)), float(f_distribution.sf(fs[at], df[0], df[1] - 1))
    told = [Influence("F", f, *who[at], float(fs[at]), p, p_without)]
    means = whole.means[0]
    first, second = max(
        combinations(range(len(means)), 2), key=lambda pair: abs(means[pair[0]] - means[pair[1]])
    )
    gap, gaps = float(means[first] - means[second]), left.means[:, first] - left.means[:, second]
    at = int(np.abs(gaps - gap).argmax())
    title = f"{list(arrays)[first]} less {list(arrays)[second]}"
    told.append(Influence(title, gap, *who[at], float(gaps[at])))
    return Influences(tuple(told))


@dataclass(frozen=True, slots=True)
class _Moments:
    """Sizes and means (cases, groups), sums of squares within all groups (cases,), and what rounding
    leaves of these."""

    sizes: Floats
    means: Floats
    within: Floats
    least: float

    @classmethod
    def of(cls, groups: Sequence[Floats]) -> _Moments:
        sizes = np.array([[x.size for x in groups]], dtype=np.float64)
        means = np.array([[x.mean() for x in groups]])
        within = np.array([sum(float(((x - x.mean()) ** 2).sum()) for x in groups)])
        largest = max(float(np.abs(x).max()) for x in groups)
        return cls(sizes, means, within, float(sizes.sum()) * (ROUNDING * largest) ** 2)

    def without(self, groups: Sequence[Floats]) -> _Moments:
        """A case per person, in the order of the groups, who is taken from the sums of the own group."""
        group = np.repeat(np.arange(len(groups)), [x.size for x in groups])
        rows, values = np.arange(group.size), np.concatenate(groups)
        sizes, means = np.tile(self.sizes, (group.size, 1)), np.tile(self.means, (group.size, 1))
        gaps, n = values - means[rows, group], sizes[rows, group]
        sizes[rows, group] -= 1
        means[rows, group] -= gaps / (n - 1)
        within = self.within[0] - gaps**2 * n / (n - 1)
        # A difference of large sums keeps their rounding error.
        return _Moments(sizes, means, within, max(self.least, 1e-13 * float(self.within[0])))

    def f(self) -> Floats:
        """F of each case, infinite without spread within the groups."""
        total = self.sizes.sum(axis=1)
        centre = (self.sizes * self.means).sum(axis=1) / total
        between = (self.sizes * (self.means - centre[:, None]) ** 2).sum(axis=1)
        k = self.sizes.shape[1]
        rest = self.within / np.maximum(total - k, 1)
        known = (self.within > self.least) & (total > k)
        return np.asarray(np.where(known, between / (k - 1) / np.where(known, rest, 1.0), np.inf))
