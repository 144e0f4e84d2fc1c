"""Witnesses: R's mvtnorm (calls beside the values), Dunnett's published table, scipy's seeded integration."""

import numpy as np
import pytest
from scipy import stats as scipy_stats

from analysis.stats.intervals_and_checks import StatsError
from analysis.stats.means.dunnett import dunnett
from tests.analysis.stats.means.test_welch import GROUPS

pytestmark = pytest.mark.pure


def test_it_agrees_with_r_for_equal_variances() -> None:
    """R: l <- sqrt((1/6) / (1/n + 1/6)); R <- outer(l, l); diag(R) <- 1; 1 - pmvt(-rep(t, 2), rep(t, 2),
    df = 16, corr = R, algorithm = GenzBretz(abseps = 1e-9, maxpts = 5e7))."""
    b, c = dunnett(GROUPS, "a").comparisons
    assert (b.t, b.p, b.df) == pytest.approx((2.2461880304814, 0.0700668531461, 16), rel=1e-9)
    assert (c.t, c.p) == pytest.approx((-0.085485246960, 0.994612774272), rel=1e-9)


def test_it_agrees_with_r_for_separate_variances() -> None:
    """R: df by Welch; f(q) = integrate(function(s) sapply(s, function(u) pmvnorm(-rep(q*u, 2), rep(q*u, 2),
    corr = R, algorithm = Miwa(4096)) * dchisq(df*u^2, df)*2*df*u), 0, Inf); 1 - f(t); uniroot(f - .95)."""
    rows = [
        (7.57730924015, 2.25456564944, 0.10337183997, 2.74481944228),
        (8.088040131067, -0.408765793420, 0.899330726804, 2.707201574042),
    ]
    for mine, row in zip(dunnett(GROUPS, "a", variances="separate").comparisons, rows, strict=True):
        width = (mine.interval.high - mine.interval.low) / 2 / mine.se
        assert (mine.df, mine.t, mine.p, width) == pytest.approx(row, rel=1e-9)


def test_it_gives_the_critical_value_of_dunnetts_table() -> None:
    """Dunnett (1964), two-sided 5 %: 2.54 for 3 treatments beside the control, 20 degrees of freedom."""
    rng = np.random.default_rng(1)
    result = dunnett({name: rng.normal(0, 1, 6) for name in "kxyz"}, "k")
    for comparison in result.comparisons:
        assert comparison.df == 20
        width = (comparison.interval.high - comparison.difference) / comparison.se
        assert round(width, 2) == 2.54


def test_it_agrees_with_scipys_draws_to_their_error() -> None:
    rng = np.random.default_rng(3)
    groups = {name: rng.normal(at / 3, 1, 10 + 5 * at) for at, name in enumerate("kabcde")}
    ours = dunnett(groups, "k")
    theirs = scipy_stats.dunnett(
        *[x for name, x in groups.items() if name != "k"], control=groups["k"], rng=np.random.default_rng(7)
    )
    assert [c.t for c in ours.comparisons] == pytest.approx(theirs.statistic)
    assert [c.p for c in ours.comparisons] == pytest.approx(theirs.pvalue, abs=1e-3)


def test_a_single_comparison_is_a_t_test_and_an_order_makes_no_difference() -> None:
    pair = {"a": GROUPS["a"], "b": GROUPS["b"]}
    for variances, equal in (("equal", True), ("separate", False)):
        (mine,) = dunnett(pair, "a", variances=variances).comparisons  # type: ignore[arg-type]
        other = scipy_stats.ttest_ind(GROUPS["b"], GROUPS["a"], equal_var=equal)
        ends = other.confidence_interval()
        assert (mine.p, *(mine.interval.low, mine.interval.high)) == pytest.approx((other.pvalue, *ends))
    turned = dunnett(dict(reversed(GROUPS.items())), "a").comparisons
    assert turned[1].p == pytest.approx(dunnett(GROUPS, "a").comparisons[0].p, rel=1e-12)


def test_it_stays_exact_for_very_unequal_groups() -> None:
    """Loadings near 1: a comparison's p lies between the plain one and Bonferroni's."""
    rng = np.random.default_rng(5)
    groups = {"k": rng.normal(0, 1, 3), "a": rng.normal(1, 1, 400), "b": rng.normal(0.2, 1, 400)}
    for mine in dunnett(groups, "k").comparisons:
        plain = 2 * scipy_stats.t.sf(abs(mine.t), mine.df)
        assert plain <= mine.p <= min(1.0, 2 * plain)


def test_it_refuses_what_it_cannot_compare() -> None:
    with pytest.raises(StatsError, match="'z' is no group; the groups are a, b, c"):
        dunnett(GROUPS, "z")
    with pytest.raises(StatsError, match="'equal' or 'separate'"):
        dunnett(GROUPS, "a", variances="some")  # type: ignore[arg-type]
    with pytest.raises(StatsError, match="Group 'b' has no variance"):
        dunnett({"a": [1, 2, 3], "b": [2, 2, 2]}, "a", variances="separate")
