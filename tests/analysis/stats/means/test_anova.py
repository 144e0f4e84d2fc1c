"""Witnesses: scipy.stats.f_oneway, pingouin.anova, scipy.stats.tukey_hsd, statsmodels."""

import numpy as np
import pandas as pd
import pingouin
import pytest
import statsmodels.api as sm
from scipy.stats import f_oneway, ncf, tukey_hsd
from statsmodels.formula.api import ols
from statsmodels.stats.power import FTestAnovaPower

from analysis.stats.intervals_and_checks import StatsError, mean_interval
from analysis.stats.means.anova import (
    Summary,
    eta_squared_condition_by_session,
    eta_squared_interval,
    one_way,
    one_way_from_summaries,
)
from analysis.stats.means.randomised_block import randomised_block
from analysis.stats.means.tukey_and_corrections import tukey_kramer, tukey_kramer_from_summaries
from analysis.stats.planning.anova_power import (
    anova_power,
    effect_size_f,
    effect_size_f_from_eta_squared,
    minimal_detectable_f,
)

pytestmark = pytest.mark.pure


@pytest.fixture
def groups() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    return {"a": rng.normal(0, 1, 12), "b": rng.normal(0.8, 1, 9), "c": rng.normal(0.2, 1, 15)}


def long(groups: dict[str, np.ndarray]) -> pd.DataFrame:
    return pd.DataFrame([(name, x) for name, values in groups.items() for x in values], columns=["g", "y"])


def test_it_agrees_with_scipy_and_pingouin(groups: dict[str, np.ndarray]) -> None:
    ours, theirs = one_way(groups), f_oneway(*groups.values())
    assert (ours.f, ours.p) == pytest.approx((theirs.statistic, theirs.pvalue))
    table = pingouin.anova(data=long(groups), dv="y", between="g", detailed=True, effsize="n2")
    assert ours.eta_squared == pytest.approx(table.loc[0, "n2"], abs=1e-6)
    assert (ours.df_between, ours.df_within) == (table.loc[0, "DF"], table.loc[1, "DF"])
    assert ours.partial_eta_squared == ours.eta_squared


def test_it_has_an_omega_squared_below_eta_squared(groups: dict[str, np.ndarray]) -> None:
    result = one_way(groups)
    direct = (result.f - 1) / (result.f + (result.df_within + 1) / result.df_between)
    assert result.omega_squared == pytest.approx(direct)
    assert result.omega_squared < result.eta_squared


def test_it_gives_the_same_from_summaries(groups: dict[str, np.ndarray]) -> None:
    summaries = [Summary(x.size, float(x.mean()), float(x.var(ddof=1))) for x in groups.values()]
    assert one_way_from_summaries(summaries).f == pytest.approx(one_way(groups).f)


def test_it_inverts_the_noncentral_f_for_the_interval() -> None:
    interval = eta_squared_interval(9.19, 7, 234)
    for end, quantile in ((interval.low, 0.975), (interval.high, 0.025)):
        noncentrality = 242 * end / (1 - end)
        assert ncf.cdf(9.19, 7, 234, noncentrality) == pytest.approx(quantile, abs=1e-6)


def test_it_has_an_interval_from_zero_for_a_small_f() -> None:
    assert eta_squared_interval(0.3, 3, 40).low == 0.0
    assert eta_squared_interval(0.001, 3, 40).high == 0.0


def test_it_computes_the_mixed_table_eta_squared_under_its_own_name() -> None:
    rng = np.random.default_rng(2)
    scores = {name: rng.normal(i, 1, (10 + i, 3)) for i, name in enumerate("abc")}
    rows = [(n, s, x[p, s]) for n, x in scores.items() for p in range(len(x)) for s in range(3)]
    frame = pd.DataFrame(rows, columns=["c", "s", "y"])
    table = sm.stats.anova_lm(ols("y ~ C(c)", frame).fit())
    expected = table.loc["C(c)", "sum_sq"] / table["sum_sq"].sum()
    assert eta_squared_condition_by_session(scores) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ({"a": [1.0, 2.0]}, "at least 2 groups"),
        ({"a": [1.0, 2.0], "b": [1.0]}, "'b' has 1 values"),
        ({"a": [1.0, 1.0], "b": [2.0, 2.0]}, "variance"),
        ({"a": [1.0, np.nan], "b": [2.0, 3.0]}, "'a' has 1 missing"),
    ],
)
def test_it_refuses_what_has_no_test(groups: dict[str, list[float]], words: str) -> None:
    with pytest.raises(StatsError, match=words):
        one_way(groups)
    with pytest.raises(StatsError, match=words):
        tukey_kramer(groups)


def test_it_agrees_with_scipy_on_tukey_kramer(groups: dict[str, np.ndarray]) -> None:
    ours, theirs = tukey_kramer(groups), tukey_hsd(*groups.values())
    interval = theirs.confidence_interval(0.95)
    for pair in ours.pairs:
        i, j = "abc".index(pair.first), "abc".index(pair.second)
        assert pair.difference == pytest.approx(theirs.statistic[i, j])
        assert pair.p == pytest.approx(theirs.pvalue[i, j], abs=1e-6)
        assert (pair.interval.low, pair.interval.high) == pytest.approx(
            (interval.low[i, j], interval.high[i, j]), abs=1e-6
        )


def test_it_gives_a_pair_in_either_order(groups: dict[str, np.ndarray]) -> None:
    result = tukey_kramer(groups)
    there, back = result.between("a", "c"), result.between("c", "a")
    assert there.difference == -back.difference
    assert (there.interval.low, there.p) == (-back.interval.high, back.p)
    with pytest.raises(KeyError):
        result.between("a", "z")


def test_it_gives_tukey_from_summaries(groups: dict[str, np.ndarray]) -> None:
    raw, anova = tukey_kramer(groups), one_way(groups)
    summary = tukey_kramer_from_summaries(
        {k: float(v.mean()) for k, v in groups.items()},
        {k: v.size for k, v in groups.items()},
        ms_within=anova.ms_within,
        df_within=anova.df_within,
    )
    assert [p.p for p in summary.pairs] == pytest.approx([p.p for p in raw.pairs])


def test_it_agrees_with_statsmodels_on_power() -> None:
    theirs = FTestAnovaPower().power(effect_size=0.25, nobs=240, alpha=0.05, k_groups=8)
    assert anova_power([30] * 8, 0.25) == pytest.approx(theirs, abs=1e-6)
    assert anova_power([30] * 8, 0.0) == 0.05
    assert anova_power([30] * 8, minimal_detectable_f([30] * 8)) == pytest.approx(0.8)


def test_it_computes_effect_sizes() -> None:
    assert effect_size_f([1.0, 3.0], 2.0) == pytest.approx(0.5)
    assert effect_size_f_from_eta_squared(0.2) == pytest.approx(0.5)
    with pytest.raises(StatsError, match="degrees of freedom"):
        anova_power([1, 1], 0.2)


def test_it_agrees_with_statsmodels_on_the_blocked_analysis() -> None:
    rng = np.random.default_rng(3)
    block, condition = np.repeat(np.arange(10), 3), np.tile(["a", "b", "c"], 10)
    y = rng.normal(0, 1, 30) + block * 0.3 + (condition == "b")
    keep = rng.permutation(30)[:26]
    frame = pd.DataFrame({"y": y, "b": block, "c": condition}).iloc[keep]
    table = sm.stats.anova_lm(ols("y ~ C(c) + C(b)", frame).fit(), typ=2)
    ours = randomised_block(frame["y"], list(frame["c"]), list(frame["b"]))
    assert ours.f == pytest.approx(table.loc["C(c)", "F"])
    assert ours.p == pytest.approx(table.loc["C(c)", "PR(>F)"])
    assert ours.df_residual == table.loc["Residual", "df"]


def test_it_refuses_a_blocked_analysis_without_shared_blocks() -> None:
    with pytest.raises(StatsError, match="degrees of freedom"):
        randomised_block([0.1, 0.2, 0.3, 0.4], ["a", "a", "b", "b"], [0, 1, 2, 3])


def test_it_gives_students_interval_or_none() -> None:
    interval = mean_interval([1.0, 2.0, 3.0, 4.0])
    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx((0.44573974, 4.55426026))
    assert mean_interval([1.0, 1.0]) is None
