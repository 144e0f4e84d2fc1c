"""The smallest samples and the ends of ranges that the statistics admit, each against a closed form."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import hypergeom, ncf, norm, t, ttest_rel

from analysis.stats import check
from analysis.stats.check import COUNT_MAX, LARGEST
from analysis.stats.intervals_and_checks import Interval, StatsError, has_spread, mean_interval
from analysis.stats.means.anova import F_MAX, eta_squared_interval, one_way
from analysis.stats.means.randomised_block import randomised_block
from analysis.stats.means.tukey_and_corrections import tukey_kramer_from_summaries
from analysis.stats.planning.anova_power import anova_power, effect_size_f, minimal_detectable_f
from analysis.stats.ranks.two_groups import mann_whitney
from analysis.stats.shares.proportions import compare_rates, newcombe, wilson
from analysis.stats.utility import fieller, utilities

pytestmark = pytest.mark.pure


def ends(interval: Interval | None) -> tuple[float, float]:
    assert interval is not None
    return interval.low, interval.high


def test_an_interval_holds_its_ends_and_says_its_level() -> None:
    interval = Interval(1.0, 2.0)
    assert interval.level == 0.95
    assert interval.holds(1.0) and interval.holds(2.0) and not interval.holds(np.nextafter(2.0, 3.0))
    assert not interval.holds(np.nextafter(1.0, 0.0))
    assert Interval(-math.inf, 2.0).as_json() == [None, 2.0] and interval.as_json() == [1.0, 2.0]


@pytest.mark.parametrize("value", [3, COUNT_MAX, 3.0, np.int64(4)])
def test_it_takes_whole_numbers_within_the_range(value: float) -> None:
    assert check.count(value, "n", least=3) == value


@pytest.mark.parametrize("value", [2, COUNT_MAX + 1, 3.5, "3", math.nan, None])
def test_it_refuses_other_counts(value: object) -> None:
    with pytest.raises(StatsError, match=f"from 3 to {COUNT_MAX}"):
        check.count(value, "n", least=3)


@pytest.mark.parametrize("value", [LARGEST, -LARGEST, 0])
def test_it_takes_numbers_within_the_range(value: float) -> None:
    assert check.number(value, "x") == value


@pytest.mark.parametrize("value", [1.01 * LARGEST, -1.01 * LARGEST, math.nan, math.inf, "1", None])
def test_it_refuses_other_numbers(value: object) -> None:
    with pytest.raises(StatsError, match="x is "):
        check.number(value, "x")


@pytest.mark.parametrize("level", [0, 1, -0.5, 1.5])
@pytest.mark.parametrize(
    "of",
    [
        lambda level: wilson(1, 2, level=level),
        lambda level: mean_interval([1, 2], level=level),
        lambda level: fieller([1, 2], [1, 2], level=level),
        lambda level: one_way({"a": [1, 2], "b": [2, 4]}, level=level),
        lambda level: tukey_kramer_from_summaries(
            {"a": 1, "b": 2}, {"a": 2, "b": 2}, ms_within=1, df_within=2, level=level
        ),
    ],
)
def test_a_level_lies_between_0_and_1(of: Callable[[float], object], level: float) -> None:
    with pytest.raises(StatsError, match="not between 0 and 1"):
        of(level)


def test_two_values_have_an_interval_with_one_degree_of_freedom() -> None:
    """t(0.975; 1) = 12.7062 (every table); mean 0.5, standard error 0.5."""
    assert ends(mean_interval([0, 1])) == pytest.approx((0.5 - 12.7062 / 2, 0.5 + 12.7062 / 2), rel=1e-5)
    assert mean_interval([0, 1, math.nan]) == mean_interval([0, 1])
    assert mean_interval([1]) is None and mean_interval([math.nan, 1]) is None
    assert mean_interval([3, 3]) is None


def test_spread_is_more_than_rounding() -> None:
    assert not has_spread(np.array([0.1 + 0.2, 0.3])) and has_spread(np.array([0.3, 0.3 + 1e-12]))
    assert not has_spread(np.array([])) and not has_spread(np.array([5.0]))


def test_groups_need_two_of_two_values() -> None:
    assert list(check.groups({"a": [1, 2], "b": [3, 3]})) == ["a", "b"]
    assert list(check.groups({"a": [1, 2], "b": [3]}, least=1)) == ["a", "b"]
    with pytest.raises(StatsError, match="at least 2 groups, got 1"):
        check.groups({"a": [1, 2]})
    with pytest.raises(StatsError, match="'b' has 1 values, at least 2"):
        check.groups({"a": [1, 2], "b": [3]})
    for groups in ([[1, 2], [3, 4]], None, pd.DataFrame({"a": [1, 2], "b": [3, 5]})):
        with pytest.raises(StatsError, match="give a mapping from names to values"):
            check.groups(groups)  # type: ignore[arg-type]


def test_numbers_of_any_width_are_taken_and_what_is_none_is_named_shortly() -> None:
    assert check.number(np.float32(0.5), "x") == check.number(np.float16(0.5), "x") == 0.5
    assert check.level(np.float32(0.5)) == 0.5  # type: ignore[arg-type]
    for value in (np.float32("nan"), np.float32("inf"), Fraction(1, 2), Decimal("0.5"), 10**400):
        with pytest.raises(StatsError, match="give a number") as error:
            check.number(value, "x")
        assert len(str(error.value)) < 120


# Proportions


def test_one_person_has_a_proportion() -> None:
    """With p = 0 Wilson's upper end is z^2 / (n + z^2); with p = 1 it is mirrored."""
    z2 = norm.ppf(0.975) ** 2
    assert ends(wilson(0, 1)) == pytest.approx((0, z2 / (1 + z2)))
    assert ends(wilson(1, 1)) == pytest.approx((1 / (1 + z2), 1))
    z2 = norm.ppf(0.995) ** 2
    assert ends(wilson(0, 3, level=0.99)) == pytest.approx((0, z2 / (3 + z2)))
    assert wilson(0, 3, level=0.99).level == newcombe(0, 3, 1, 2, level=0.99).level == 0.99
    with pytest.raises(StatsError, match="The total"):
        wilson(0, 0)


def test_wilson_solves_its_quadratic() -> None:
    """The ends are the p with |share - p| = z sqrt(p (1 - p) / n)."""
    for count, total in product((1, 3, 7), (8, 30)):
        for p in ends(wilson(count, total, level=0.9)):
            assert abs(count / total - p) == pytest.approx(norm.ppf(0.95) * math.sqrt(p * (1 - p) / total))


def test_chi_square_begins_at_an_expected_count_of_five() -> None:
    assert compare_rates([4, 6], [10, 10], seed=1).method == "chi-square"
    assert compare_rates([4, 5], [10, 10], seed=1, draws=100).method == "permutation"
    # The rarer of both answers counts.
    assert compare_rates([6, 5], [10, 10], seed=1, draws=100).method == "permutation"


def test_the_permutation_test_is_fishers_for_two_groups() -> None:
    """Two groups of one size: the statistic grows with the distance of the first count from its mean, so p is
    a sum of hypergeometric probabilities."""
    first, second, size = 7, 2, 9
    total, drawn = first + second, np.arange(0, size + 1)
    far = np.abs(drawn - total / 2) >= abs(first - total / 2)
    exact = hypergeom(2 * size, total, size).pmf(drawn)[far].sum()
    compared = compare_rates([first, second], [size, size], seed=3)
    assert compared.method == "permutation" and compared.df == 1
    assert compared.p == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / 20_000))
    # One draw is enough for a p, which is never 0.
    assert compare_rates([first, second], [size, size], seed=3, draws=1).p in (0.5, 1.0)
    with pytest.raises(StatsError, match="number of draws"):
        compare_rates([1, 2], [3, 3], seed=1, draws=0)


def test_groups_without_people_and_rates_that_cannot_differ_have_no_p() -> None:
    assert compare_rates([30, 20, 0], [50, 50, 0], seed=1) == compare_rates([30, 20], [50, 50], seed=1)
    for counts, totals in [([0, 0], [5, 6]), ([5, 6], [5, 6]), ([3], [5]), ([3, 0], [5, 0]), ([], [])]:
        compared = compare_rates(counts, totals, seed=1)
        assert (compared.statistic, compared.p, compared.method) == (0.0, None, "none")
        assert compared.df == max(0, sum(total > 0 for total in totals) - 1)
    with pytest.raises(StatsError, match="one per group"):
        compare_rates([1, 2], [3], seed=1)
    with pytest.raises(StatsError, match="one per group"):
        compare_rates([1, 4], [3, 3], seed=1)
    compare_rates([1, 1], [COUNT_MAX // 2, COUNT_MAX // 2], seed=1, draws=1)
    with pytest.raises(StatsError, match="more than"):
        compare_rates([1, 1], [COUNT_MAX // 2, COUNT_MAX // 2 + 1], seed=1, draws=1)


# Utility


def test_fieller_is_students_interval_if_the_denominator_does_not_vary() -> None:
    x = np.array([0.5, 0.7, 0.9, 0.4])
    half = t.ppf(0.975, 3) * x.std(ddof=1) / 2
    expected = ((x.mean() - half) / 0.8, (x.mean() + half) / 0.8)
    assert ends(fieller(x, [0.8, 0.8, 0.8])) == pytest.approx(expected)


def test_fieller_is_a_reciprocal_if_the_numerator_does_not_vary() -> None:
    y = np.array([0.5, 0.7, 0.9])
    half = t.ppf(0.95, 2) * y.std(ddof=1) / math.sqrt(3)
    interval = fieller([0.6, 0.6], y, level=0.9)
    assert ends(interval) == pytest.approx((0.6 / (y.mean() + half), 0.6 / (y.mean() - half)))
    assert interval is not None and interval.level == 0.9
    assert ends(fieller([0.0, 0.0], y)) == (0.0, 0.0)


def test_fieller_needs_a_denominator_and_some_spread() -> None:
    assert fieller([1, 1], [2, 2]) is None and fieller([1, 2], [0, 0]) is None
    assert fieller([1, 2], [0, 1]) is None
    with pytest.raises(StatsError, match="at least 2 values of each, got 1 and 2"):
        fieller([1], [1, 2])
    with pytest.raises(StatsError, match="at least 2 values of each, got 2 and 1"):
        fieller([1, 2], [1])


def test_a_study_of_one_block_and_two_people_has_a_utility() -> None:
    told = utilities(
        {"baseline": np.array([[0.0], [1.0]]), "method": np.array([[1.0], [0.5]])},
        baseline="baseline", draws=50, seed=1,
    )  # fmt: skip
    by_name = {row.condition: row for row in told}
    assert by_name["method"].utility == by_name["method"].utility_k[0] == 1.5
    assert (by_name["method"].n, by_name["baseline"].utility) == (2, 1.0)


def test_utility_means_over_people() -> None:
    """With an answer missing: (3/4 + 3/4 + 1/2) / 3, not the mean over blocks, (3/4 + 1/2) / 2."""
    method = np.array([[1.0, 0.5], [0.75, math.nan], [0.5, 0.5]])
    flat = np.full((3, 2), 0.5)
    told = utilities({"baseline": flat, "method": method}, baseline="baseline", draws=50, seed=1)
    row = {row.condition: row for row in told}["method"]
    assert row.accuracy == (0.75, 0.5) and row.accuracy_mean == pytest.approx(2 / 3)
    assert row.utility == pytest.approx(4 / 3) and row.utility_k == pytest.approx((1.5, 1.0))


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ([[0.5]], "has 1 people, Utility needs at least 2"),
        ([[0.5], [1.01]], "outside 0-1"),
        ([[0.5], [-0.01]], "outside 0-1"),
        ([[0.5, 0.5], [0.5, 0.5]], r"have \[1, 2\] blocks"),
    ],
)
def test_it_refuses_scores_beyond_the_limits(method: list[list[float]], words: str) -> None:
    with pytest.raises(StatsError, match=words):
        utilities({"baseline": [[0.5], [0.6]], "method": method}, baseline="baseline", draws=10, seed=1)


# Several groups


def test_tukey_takes_a_group_of_one_person() -> None:
    told = tukey_kramer_from_summaries({"a": 1, "b": 3}, {"a": 1, "b": 3}, ms_within=4, df_within=2)
    assert told.pairs[0].difference == -2
    # q = |d| / sqrt(MSE/2 (1/1 + 1/3)); for two groups it is sqrt(2) |t|.
    statistic = 2 / math.sqrt(4 * (1 + 1 / 3))
    assert told.pairs[0].p == pytest.approx(2 * t.sf(statistic, 2), rel=1e-4)
    with pytest.raises(StatsError, match="size of 'a'"):
        tukey_kramer_from_summaries({"a": 1, "b": 3}, {"a": 0, "b": 3}, ms_within=4, df_within=2)


def test_one_way_of_two_groups_is_students_t() -> None:
    first, second = np.array([1.0, 2.0, 4.0]), np.array([3.0, 5.0])
    pooled = (2 * first.var(ddof=1) + second.var(ddof=1)) / 3
    statistic = (first.mean() - second.mean()) / math.sqrt(pooled * (1 / 3 + 1 / 2))
    told = one_way({"first": first, "second": second})
    assert (told.df_between, told.df_within) == (1, 3)
    assert told.f == pytest.approx(statistic**2) and told.p == pytest.approx(2 * t.sf(abs(statistic), 3))
    assert told.eta_squared == told.partial_eta_squared == pytest.approx(statistic**2 / (statistic**2 + 3))
    assert told.ms_within == pytest.approx(pooled)


def test_two_conditions_in_complete_blocks_are_a_paired_t_test() -> None:
    """With two blocks there is one degree of freedom in either place, which is enough."""
    for first, second in [([1.0, 4.0], [2.0, 7.0]), ([1.0, 4.0, 3.0], [2.0, 7.0, 3.5])]:
        values, count = [*first, *second], len(first)
        told = randomised_block(values, ["a"] * count + ["b"] * count, [*range(count), *range(count)])
        statistic, p = ttest_rel(first, second)
        assert told.f == pytest.approx(statistic**2) and told.p == pytest.approx(p)
        assert (told.df_condition, told.df_residual, told.blocks) == (1, count - 1, count)
        assert told.partial_eta_squared == pytest.approx(statistic**2 / (statistic**2 + count - 1))
    # A block with one person says nothing of the conditions.
    more = randomised_block([*values, 9.0], ["a"] * count + ["b"] * count + ["a"], [*range(count)] * 2 + [7])
    assert more.f == pytest.approx(told.f) and more.blocks == count
    for conditions, blocks in [("ab", [0, 0]), ("aa", [0, 0]), ("abab", [0, 1, 2, 3])]:
        with pytest.raises(StatsError, match="degrees of freedom"):
            randomised_block(range(len(conditions)), list(conditions), blocks)
    with pytest.raises(StatsError, match="one of each per person"):
        randomised_block([1.0, 2.0], ["a", "b"], [0])
    with pytest.raises(StatsError, match="at least one person"):
        randomised_block([], [], [])


def test_mann_whitney_counts_pairs() -> None:
    first, second = [1.0, 4.0, 6.0], [2.0, 3.0]
    pairs = sum((a > b) + (a == b) / 2 for a in first for b in second)
    told = mann_whitney(first, second)
    assert (told.u, told.method) == (pairs, "exact") and told.rank_biserial == pytest.approx(
        2 * pairs / 6 - 1
    )
    # Of the 10 orders, those at least as uneven: U <= 2 or U >= 4.
    assert told.p == pytest.approx(8 / 10)
    assert mann_whitney([1, 2], [2, 3]).method == "asymptotic"
    assert mann_whitney(range(20), np.arange(20) + 0.5).method == "exact"
    assert mann_whitney(range(21), np.arange(20) + 0.5).method == "asymptotic"
    assert mann_whitney([1.0], [2.0]).u == 0
    with pytest.raises(StatsError, match="got 0 and 1"):
        mann_whitney([], [1.0])


def test_the_interval_of_eta_squared_has_its_quantiles_at_one_degree_of_freedom() -> None:
    """At each end, as a noncentrality, the observed F is the quantile that the level names."""
    for df1, df2, f in [(1, 1, 700.0), (2, 1, 900.0), (1, 9, 12.0)]:
        low, high = ends(eta_squared_interval(f, df1, df2, level=0.9))
        total = df1 + df2 + 1
        assert ncf.cdf(f, df1, df2, high * total / (1 - high)) == pytest.approx(0.05, rel=1e-3)
        assert low == 0 or ncf.sf(f, df1, df2, low * total / (1 - low)) == pytest.approx(0.05, rel=1e-3)
    for df1, df2 in [(0, 5), (5, 0)]:
        with pytest.raises(StatsError, match="degrees of freedom"):
            eta_squared_interval(1.0, df1, df2)
    for f in (-0.1, 1.01 * F_MAX):
        with pytest.raises(StatsError, match="has no interval"):
            eta_squared_interval(f, 2, 20)


def test_power_at_its_limits() -> None:
    for effect, alpha in [(-0.1, 0.05), (0.5, 1.0), (0.5, 1.5), (0.5, 0.0)]:
        with pytest.raises(StatsError, match="alpha in"):
            anova_power([20, 20], effect, alpha=alpha)
    assert anova_power([2, 2], 0.0, alpha=0.07) == 0.07
    assert effect_size_f([0, 2], 1) == 1.0 and effect_size_f([0, 2], 1, [3, 1]) == pytest.approx(
        math.sqrt(0.75)
    )
    assert minimal_detectable_f([2, 2], power=0.99) > 1  # beyond the first doubling
    with pytest.raises(StatsError, match="at least 2 means"):
        effect_size_f([1], 1)
    with pytest.raises(StatsError, match="deviation above 0"):
        effect_size_f([1, 2], 0)
    with pytest.raises(StatsError, match="no degrees of freedom"):
        anova_power([1, 1], 0.5)
    for power, alpha in [(0.05, 0.05), (1.0, 0.05), (0.8, 0.0)]:
        with pytest.raises(StatsError, match="must lie between alpha"):
            minimal_detectable_f([20, 20], power=power, alpha=alpha)
