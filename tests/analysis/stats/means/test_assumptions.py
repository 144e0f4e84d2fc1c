"""What stands beside the tests, by other programs. Witnesses: R 4.2 (the calls stand beside the values)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pingouin
import pytest
import statsmodels.formula.api as smf
from scipy import stats as scipy_stats

from analysis.any_table.analyse import AnalysisPlan, analyse
from analysis.any_table.table import BadTable, Roles, tidy
from analysis.stats.cluster_correlation import correlation
from analysis.stats.intervals_and_checks import StatsError
from analysis.stats.means.anova import eta_squared_condition_by_session, one_way_from_summaries
from analysis.stats.means.assumptions import influence, normality, variance_tests
from analysis.stats.means.one_sample import one_sample
from analysis.stats.means.paired import paired_differences
from analysis.stats.means.randomised_block import randomised_block
from analysis.stats.means.trimmed import yuen
from analysis.stats.means.tukey_and_corrections import bonferroni
from analysis.stats.means.welch import bonferroni_pairs
from analysis.stats.planning.contrast_power import dunnett_power
from analysis.stats.ranks.grouped_correlation import rank_association
from analysis.stats.ratings.agreement import DRAWS_MAX, krippendorff_alpha
from tests.analysis.any_table.test_analyse import between, run, table, trials
from tests.analysis.stats.means.test_paired import TABLE

pytestmark = pytest.mark.pure
X = [3.1, 4.7, 2.2, 5.9, 4.4, 3.8, 6.1]
Y = [5.2, 7.9, 6.1, 9.4, 8.8, 7.3]
Z = [4.1, 4.0, 9.9, 3.5, 5.5, 4.6, 5.0, 4.8]
GROUPS = {"x": X, "y": Y, "z": Z}


def test_variances_are_compared_as_distances_are() -> None:
    """R: d <- abs(v - ave(v, g, FUN = median)); anova(lm(d ~ g)); and with the mean."""
    brown, levene = variance_tests(GROUPS).tests
    assert (brown.test, brown.df_between, brown.df_within) == ("Brown-Forsythe", 2, 18)
    assert (brown.f, brown.p) == pytest.approx((0.03091, 0.96962), abs=5e-6)
    assert (levene.f, levene.p) == pytest.approx((0.04749, 0.95374), abs=5e-6)
    for test, centre in ((brown, np.median), (levene, np.mean)):
        far = [(name, abs(v - centre(values))) for name, values in GROUPS.items() for v in values]
        theirs = pingouin.anova(data=pd.DataFrame(far, columns=["g", "d"]), dv="d", between="g").iloc[0]
        assert (test.f, test.p) == pytest.approx((theirs["F"], theirs["p_unc"]), rel=1e-9)
    wide = variance_tests({"x": X, "y": [8 * value for value in Y]})
    assert wide.tests[0].p < 0.01 and wide.sd_ratio == pytest.approx(
        8 * np.std(Y, ddof=1) / np.std(X, ddof=1)
    )
    with pytest.raises(StatsError, match="All distances"):
        variance_tests({"a": [1, 2], "b": [2, 4]})


def test_normality_is_of_the_residuals_within_limits() -> None:
    """R: shapiro.test(v - ave(v, g))."""
    residuals = np.concatenate([np.array(values) - np.mean(values) for values in GROUPS.values()])
    made = normality(residuals)
    assert (made.w, made.p, made.n) == pytest.approx((0.9206945625, 0.0895948675, 21), rel=1e-6)
    moments = scipy_stats.skew(residuals), scipy_stats.kurtosis(residuals)
    assert (made.skewness, made.kurtosis) == pytest.approx(moments)
    for count in (2, 5001):
        with pytest.raises(StatsError, match="3 to 5,000 residuals"):
            normality(range(count))


def test_the_most_influential_person_is_found_by_leaving_each_out() -> None:
    people = {name: [f"{name}{at}" for at in range(len(values))] for name, values in GROUPS.items()}
    f, gap = influence(GROUPS, people).rows
    every = {}
    for name, values in GROUPS.items():
        for at in range(len(values)):
            others = {**GROUPS, name: [*values[:at], *values[at + 1 :]]}
            means = {key: np.mean(each) for key, each in others.items()}
            every[f"{name}{at}"] = scipy_stats.f_oneway(*others.values()), means["x"] - means["y"]
    whole = scipy_stats.f_oneway(*GROUPS.values())
    who = max(every, key=lambda name: abs(every[name][0].statistic - whole.statistic))
    told = (whole.statistic, whole.pvalue, every[who][0].statistic, every[who][0].pvalue)
    assert f.person == who == "z2"
    assert (f.value, f.p, f.without, f.p_without) == pytest.approx(told, rel=1e-9)
    far = max(every, key=lambda name: abs(every[name][1] - (np.mean(X) - np.mean(Y))))
    assert (gap.statistic, gap.person, gap.p) == ("x less y", far, None)
    assert gap.without == pytest.approx(every[far][1], rel=1e-9)
    with pytest.raises(StatsError, match="'x' has 1 names"):
        influence(GROUPS, {**people, "x": ["p"]})
    with pytest.raises(StatsError, match=r"Without b2 no spread is left"):
        influence({"a": [1, 1, 1], "b": [2, 2, 9]}, {"a": "pqr", "b": ["b0", "b1", "b2"]})


def winsorised(values: list[float]) -> tuple[float, float, int]:
    """Trimmed mean, its squared error and the number of people in it, by hand."""
    n, ordered = len(values), sorted(values)
    cut = n // 5
    inner = ordered[cut : n - cut]
    pulled = [inner[0]] * cut + inner + [inner[-1]] * cut
    return (
        float(np.mean(inner)),
        (n - 1) * float(np.var(pulled, ddof=1)) / (len(inner) * (len(inner) - 1)),
        len(inner),
    )


def test_trimmed_means_follow_yuens_formula() -> None:
    """The last values are of the same formula in R, with mean(trim = .2), sort, var and pt."""
    raw = []
    pairs = yuen(GROUPS).pairs
    for pair in pairs:
        (a, va, na), (b, vb, nb) = winsorised(GROUPS[pair.first]), winsorised(GROUPS[pair.second])
        df = (va + vb) ** 2 / (va**2 / (na - 1) + vb**2 / (nb - 1))
        half = scipy_stats.t.ppf(0.975, df) * np.sqrt(va + vb)
        told = (pair.difference, pair.t, pair.df, pair.interval.low, pair.interval.high)
        assert told == pytest.approx(
            (a - b, (a - b) / np.sqrt(va + vb), df, a - b - half, a - b + half), rel=1e-9
        )
        raw.append(2 * scipy_stats.t.sf(abs(pair.t), df))
    # Holm: the second is no smaller than the first.
    assert raw == pytest.approx([0.0205143709459, 0.701962035294, 0.0290873538805])
    assert [pair.p for pair in pairs] == pytest.approx([3 * raw[0], raw[1], 3 * raw[0]])
    with pytest.raises(StatsError, match="'b' has 4 values, at least 5"):
        yuen({"a": X, "b": [1, 2, 3, 4]})
    with pytest.raises(StatsError, match="middle of group 'b' has no spread"):
        yuen({"a": X, "b": [1, 2, 2, 2, 9]})


def test_pairs_by_bonferroni_agree_with_r() -> None:
    """R: pairwise.t.test(v, g, "bonferroni", pool.sd = FALSE); t.test(x, y, conf.level = 1 - .05/3);
    pairwise.t.test(c(Y), rep(1:3, each = 7), "bonferroni", paired = TRUE) with Y of test_paired."""
    pairs = bonferroni_pairs(GROUPS).pairs
    assert [pair.p for pair in pairs] == pytest.approx([0.0116433218395, 1.0, 0.10857319446])
    assert (pairs[0].interval.low, pairs[0].interval.high) == pytest.approx(
        (-5.549141546321, -0.722287025108)
    )
    paired = paired_differences(TABLE, "xyz", correction="bonferroni").pairs
    assert [pair.p for pair in paired] == pytest.approx([0.9986706014757, 0.0962372261908, 0.0981653483696])
    assert bonferroni([0.01, 0.5, 0.2]) == pytest.approx((0.03, 1.0, 0.6))


def test_a_mean_against_chance_agrees_with_r() -> None:
    """R: t.test(x, mu = 3)."""
    made = one_sample(X, 3)
    assert (made.t, made.df, made.p) == pytest.approx((2.451808238, 6, 0.049668657))
    assert (made.interval.low, made.interval.high) == pytest.approx((3.00262469606, 5.62594673252))
    # Hedges' factor for 6 degrees of freedom: gamma(3) / (sqrt(3) gamma(2.5)).
    assert made.size.g_z == pytest.approx(2 / (np.sqrt(3) * 1.329340388179137) * made.t / np.sqrt(7))
    with pytest.raises(StatsError, match="All differences are equal"):
        one_sample([0.5, 0.5, 0.5], 0.4)


def test_a_correlation_of_independent_rows_has_the_p_of_r() -> None:
    """R: cor.test(x, z[1:7])$p.value; with method = "spearman", exact = FALSE."""
    assert correlation(X, Z[:7], draws=20).p == pytest.approx(0.121833222414)
    assert correlation(X, Z[:7], kind="spearman", draws=20).p == pytest.approx(0.337368311086)
    assert correlation(X, Z[:7], list("aabbccd"), draws=20).p is None
    assert correlation(X, X, draws=20).p is None


def test_the_command_prints_them_beside_and_says_so(tmp_path: Path) -> None:
    options = ("--dv", "Points", "--between", "Arm", "--subject", "Person", "--chance", "50")
    text = " ".join(run(tmp_path, between(), *options, "--out", str(tmp_path / "out")).split())
    for title in (
        "Equal variances",
        "Normal residuals",
        "Influence",
        "Trimmed means",
        "Means against chance, 50",
    ):
        assert title in text, title
    assert text.count("decides nothing: which test stands was chosen before the data") == 5
    written = pd.read_csv(tmp_path / "out" / "chance.csv")
    groups = between().groupby("Arm", sort=False)["Points"]
    raw = np.array([scipy_stats.ttest_1samp(values, 50).pvalue for _, values in groups])
    assert written["p"].min() == pytest.approx(3 * raw.min()) and list(written["level"]) == ["n", "l", "r"]


def test_residuals_of_a_covariate_design_are_those_of_its_model() -> None:
    frame = between()
    roles = Roles("Points", ("Arm",), subject="Person", covariates=("Age",))
    results = analyse(tidy(frame, roles), AnalysisPlan())
    residuals = smf.ols("Points ~ C(Arm) + Age", frame).fit().resid
    (row,) = table(results, "normality")
    assert row["w"] == pytest.approx(scipy_stats.shapiro(residuals).statistic)
    groups = [part for _, part in residuals.groupby(frame["Arm"])]
    assert table(results, "variances")[0]["f"] == pytest.approx(scipy_stats.levene(*groups).statistic)
    assert not any(made.key == "influence" for made in results.tables)


def test_chance_is_of_one_sample_and_of_people_within_conditions_too() -> None:
    (row,) = table(analyse(tidy(between(), Roles("Points")), AnalysisPlan(chance=50)), "chance")
    theirs = scipy_stats.ttest_1samp(between()["Points"], 50)
    assert (row["t"], row["p"]) == pytest.approx((theirs.statistic, theirs.pvalue))
    roles = Roles("right", within=("help",), subject="who", item="picture")
    results = analyse(tidy(trials(), roles), AnalysisPlan(chance=0.5, correction="bonferroni"))
    assert [row["level"] for row in table(results, "chance")] == ["plain", "helped"]
    for chance in (1.5, np.nan):
        with pytest.raises(BadTable, match="from 0 to 1 for answers 0 and 1"):
            analyse(tidy(trials(), roles), AnalysisPlan(chance=chance))


def test_what_is_no_list_is_named_with_its_remedy() -> None:
    frame: Any = pd.DataFrame({"a": [1, 2], "b": [2, 3]})
    nothing: Any = None
    sizes: Any = (n for n in (9, 9))
    numbers: Any = [1, 2]
    rows: Any = [[1]]
    cases: list[tuple[Callable[[], object], str]] = [
        (lambda: randomised_block([1, 2], nothing, [0, 1]), "type NoneType; give a list"),
        (lambda: randomised_block([1, 2], frame, [0, 1]), "type DataFrame; give a list"),
        (lambda: rank_association([1, 2], [1, 2], frame), "type DataFrame; give a list"),
        (lambda: dunnett_power(9, sizes, [1, 1]), "The sizes are of the type generator"),
        (lambda: one_way_from_summaries(numbers), "must be of the type Summary"),
        (lambda: eta_squared_condition_by_session(rows), "The conditions are a list; give a mapping"),
        (lambda: krippendorff_alpha([[1, 2], [2, 2]], [1, 2], draws=DRAWS_MAX + 1), "ask for at most 20,000"),
    ]
    for of, words in cases:
        with pytest.raises(StatsError, match=words):
            of()
