"""Witnesses: R 4.2 (the calls stand beside the values), pingouin, the worked p-values of R's p.adjust."""

import numpy as np
import pandas as pd
import pingouin
import pytest

from analysis.stats.intervals_and_checks import StatsError
from analysis.stats.means.effect_size import hedges_g
from analysis.stats.means.tukey_and_corrections import benjamini_hochberg
from analysis.stats.means.welch import games_howell, welch_anova

pytestmark = pytest.mark.pure
GROUPS = {
    "a": [41.2, 38.5, 44.1, 39.9, 42.7, 40.3],
    "b": [52.4, 33.1, 61.8, 47.2, 58.9, 39.5, 44.4, 66.0],
    "c": [40.1, 41.3, 39.2, 42.2, 40.8],
}


def test_it_agrees_with_r_on_welch() -> None:
    """R: oneway.test(y ~ g)."""
    result = welch_anova(GROUPS)
    assert (result.f, result.df_between, result.df_within, result.p) == pytest.approx(
        (2.686384534912, 2, 10.050357641335, 0.116241824257), rel=1e-10
    )
    assert result.table()[0]["n"] == 19


def test_two_groups_are_welchs_t_squared() -> None:
    """The t test of scipy is another code; F = t squared with the same df."""
    from scipy.stats import ttest_ind

    pair = {name: GROUPS[name] for name in "ab"}
    other = ttest_ind(GROUPS["a"], GROUPS["b"], equal_var=False)
    assert welch_anova(pair).f == pytest.approx(other.statistic**2)
    assert welch_anova(pair).p == pytest.approx(other.pvalue)


def test_it_agrees_with_r_on_games_howell() -> None:
    """R: v <- c(var(x)/n, var(y)/m); df by Welch; t <- diff/sqrt(sum(v)); ptukey(abs(t)*sqrt(2), 3, df,
    lower = FALSE); diff -+ qtukey(.95, 3, df)/sqrt(2)*sqrt(sum(v))."""
    rows = [
        (-2.254565649442, 7.577309240147, 0.124197855175, -21.216509158508, 2.624842491841),
        (0.408765793420, 8.088040131067, 0.912972966187, -2.369878809700, 3.163212143033),
        (2.380278876370, 7.222796010115, 0.106698305347, -2.210227033104, 21.595227033104),
    ]
    pairs = games_howell(GROUPS).pairs
    assert [(pair.first, pair.second) for pair in pairs] == [("a", "b"), ("a", "c"), ("b", "c")]
    for pair, row in zip(pairs, rows, strict=True):
        assert (pair.t, pair.df, pair.p, pair.interval.low, pair.interval.high) == pytest.approx(
            row, rel=1e-6
        )


def test_it_agrees_with_pingouin() -> None:
    long = pd.DataFrame([(g, y) for g, ys in GROUPS.items() for y in ys], columns=["g", "y"])
    theirs = pingouin.pairwise_gameshowell(data=long, dv="y", between="g")
    ours = pd.DataFrame(games_howell(GROUPS).table())
    assert ours["p"].to_numpy() == pytest.approx(theirs["pval"].to_numpy(), rel=1e-6)
    assert ours["se"].to_numpy() == pytest.approx(theirs["se"].to_numpy())
    # Its factor for small samples is approximated by 1 - 3 / (4 n - 9).
    assert ours["g"].to_numpy() == pytest.approx(theirs["hedges"].to_numpy(), rel=3e-3)


def test_it_agrees_with_r_on_hedges_g() -> None:
    """R: t <- t.test(a, b, var.equal = TRUE)$statistic; m <- 12; low <- uniroot(function(z) pt(t, m, z) -
    .975, c(-8, 8))$root, high with .025; J <- gamma(m/2)/(sqrt(m/2)*gamma((m-1)/2));
    J * sqrt(1/6 + 1/8) * c(t, low, high)."""
    result = hedges_g(GROUPS["a"], GROUPS["b"])
    assert (result.g, result.interval.low, result.interval.high) == pytest.approx(
        (-0.9860085050563, -2.0331837170239, 0.0963346525337), rel=1e-8
    )
    back = hedges_g(GROUPS["b"], GROUPS["a"])
    assert (back.g, back.interval.low) == pytest.approx((-result.g, -result.interval.high))


def test_the_interval_of_g_keeps_its_level() -> None:
    """2,000 pairs of 6 and 10 values from normal distributions 0.8 apart."""
    rng = np.random.default_rng(2)
    held = [hedges_g(rng.normal(0.8, 1, 6), rng.normal(0, 1, 10)).interval.holds(0.8) for _ in range(2000)]
    assert 0.93 < np.mean(held) < 0.97


def test_it_agrees_with_r_on_benjamini_and_hochberg() -> None:
    """R: p.adjust(c(.01, .04, .03, .005, .5), "BH")."""
    assert benjamini_hochberg([0.01, 0.04, 0.03, 0.005, 0.5]) == pytest.approx(
        (0.025, 0.05, 0.05, 0.025, 0.5)
    )
    with pytest.raises(StatsError, match="from 0 to 1"):
        benjamini_hochberg([0.1, 1.2])


def test_it_names_the_group_without_variance() -> None:
    with pytest.raises(StatsError, match="Group 'b' has no variance"):
        welch_anova({"a": [1, 2, 3], "b": [2, 2, 2]})
    with pytest.raises(StatsError, match="next to no spread"):
        hedges_g([1, 1.0001], [5, 5.0001])
