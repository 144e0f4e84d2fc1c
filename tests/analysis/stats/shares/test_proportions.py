"""Witnesses: statsmodels (Wilson), Newcombe's worked example, scipy (chi-square, Fisher, Mann-Whitney)."""

import numpy as np
import pytest
from scipy.stats import chi2_contingency, fisher_exact, mannwhitneyu
from statsmodels.stats.proportion import proportion_confint

from analysis.stats.intervals_and_checks import StatsError
from analysis.stats.ranks.two_groups import mann_whitney
from analysis.stats.shares.proportions import compare_rates, newcombe, wilson

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(("count", "total"), [(0, 10), (3, 10), (10, 10), (81, 263)])
def test_it_agrees_with_statsmodels_on_wilson(count: int, total: int) -> None:
    low, high = proportion_confint(count, total, method="wilson")
    assert (wilson(count, total).low, wilson(count, total).high) == pytest.approx((low, high), abs=1e-12)


def test_it_prints_newcombes_worked_example() -> None:
    # Newcombe (1998), Statistics in Medicine 17: 56/70 - 48/80, method 10: 0.0524 to 0.3339.
    interval = newcombe(56, 70, 48, 80)
    assert (interval.low, interval.high) == pytest.approx((0.0524, 0.3339), abs=5e-5)


def test_it_refuses_a_count_above_its_total() -> None:
    with pytest.raises(StatsError, match="11 of 10"):
        wilson(11, 10)


def test_it_uses_chi_square_where_counts_are_large() -> None:
    counts, totals = [20, 35, 28], [100, 100, 100]
    expected = chi2_contingency([counts, [100 - c for c in counts]], correction=False)
    result = compare_rates(counts, totals, seed=1)
    assert (result.method, result.df) == ("chi-square", 2)
    assert (result.statistic, result.p) == pytest.approx((expected.statistic, expected.pvalue))


def test_it_uses_a_permutation_test_where_counts_are_small() -> None:
    result = compare_rates([7, 1], [12, 12], seed=1)
    assert result.method == "permutation"
    assert result.p == pytest.approx(fisher_exact([[7, 1], [5, 11]]).pvalue, abs=0.01)
    assert compare_rates([7, 1], [12, 12], seed=1) == result


def test_it_has_no_p_where_nothing_varies() -> None:
    assert compare_rates([0, 0], [10, 12], seed=1).p is None
    assert compare_rates([3], [10], seed=1).p is None


def test_it_wraps_mann_whitney() -> None:
    rng = np.random.default_rng(4)
    x, y = rng.normal(0, 1, 12), rng.normal(1, 1, 10)
    exact = mann_whitney(x, y)
    assert exact.method == "exact"
    assert exact.p == pytest.approx(mannwhitneyu(x, y, method="exact").pvalue)
    tied = mann_whitney([1, 2, 2, 3], [2, 3, 3, 4])
    assert tied.method == "asymptotic"
    assert tied.rank_biserial == pytest.approx(2 * tied.u / 16 - 1)
    with pytest.raises(StatsError, match="equal"):
        mann_whitney([1, 1], [1, 1])
