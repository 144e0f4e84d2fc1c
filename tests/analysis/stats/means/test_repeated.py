"""Witnesses: R 4.2 (the calls stand beside the values), pingouin, and closed forms."""

import numpy as np
import pandas as pd
import pingouin
import pytest
from scipy import stats as scipy_stats

from analysis.stats.intervals_and_checks import StatsError
from analysis.stats.means.repeated_measures import RepeatedEffect, repeated_measures
from tests.proofs.chance import likely_share

pytestmark = pytest.mark.pure
Y = [
    [8.3, 10, 13.3, 8.2, 11.2, 10],
    [11, 13.2, 13.5, 14.2, 12.5, 12.4],
    [9.2, 9.1, 10.1, 5.9, 9.5, 7.3],
    [15.3, 15, 19.1, 11.2, 11.4, 18.5],
    [13.5, 11.3, 14.9, 12, 9.8, 19.4],
    [10.9, 10.9, 10.2, 8.7, 7.9, 10.2],
    [6.6, 12.5, 14.2, 8.8, 10.1, 11.8],
    [11.4, 12.7, 14.3, 13.6, 10.9, 14.2],
    [14.8, 11.9, 9.6, 10.1, 12.2, 11.4],
    [13.2, 10.1, 14, 8.4, 6.5, 15.2],
]
GROUPS = list("kkkkmmmnnn")
FACTORS = {"a": ["a1", "a2"], "b": ["b1", "b2", "b3"]}


def numbers(effect: RepeatedEffect) -> tuple[float, ...]:
    return (effect.f, effect.df_effect, effect.df_error, effect.p, effect.p_gg, effect.p_hf)


def test_it_agrees_with_r_on_two_factors_within() -> None:
    """R: id <- data.frame(a = gl(2, 3), b = gl(3, 1, 6)); m <- lm(Y ~ 1); anova(m, M = ~a + b, X = ~a,
    idata = id, test = "Spherical"); M = ~a*b, X = ~a + b; M = ~a, X = ~1; mauchly.test(m, the same)."""
    a, b, both = repeated_measures(Y, FACTORS).effects
    assert [effect.name for effect in (a, b, both)] == ["a", "b", "a x b"]
    p = 0.02150855879
    assert numbers(a) == pytest.approx((7.71132, 1, 9, p, p, p), rel=1e-6) and a.sphericity is None
    assert numbers(b) == pytest.approx((5.9375, 2, 18, 0.01046360818, 0.0164273532, 0.01096795587), rel=1e-5)
    assert numbers(both) == pytest.approx(
        (0.60931, 2, 18, 0.5545652015, 0.5298397686, 0.5545652015), rel=2e-5
    ), "R's Huynh-Feldt epsilon of 1.0174 counts as 1"
    assert b.sphericity is not None and both.sphericity is not None
    shape = b.sphericity
    assert (shape.w, shape.p) == pytest.approx((0.7832813847, 0.376418727), rel=1e-8)
    assert (shape.greenhouse_geisser, shape.huynh_feldt) == pytest.approx((0.8219, 0.9813), abs=5e-5)
    assert (both.sphericity.w, both.sphericity.p) == pytest.approx((0.8150596545, 0.441324039), rel=1e-8)


def test_it_agrees_with_r_on_unequal_groups() -> None:
    """R: mg <- lm(Y ~ g, contrasts = list(g = "contr.sum")); anova(mg, M =, X =, idata = id, test =
    "Spherical") for the interactions; anova(lm(rowMeans(Y) ~ g)); for effects within, anova(m0, mg, ...) with
    m0 <- lm(Y ~ 0 + the two columns of contr.sum)."""
    made = {effect.name: numbers(effect) for effect in repeated_measures(Y, FACTORS, GROUPS).effects}
    assert list(made) == ["group", "a", "group x a", "b", "group x b", "a x b", "group x a x b"]
    assert made["group"][:4] == pytest.approx((0.05583109, 2, 7, 0.94612), rel=1e-4)
    assert made["a"][:4] == pytest.approx((5.85590501569, 1, 7, 0.0460990944615), rel=1e-9)
    assert made["group x a"][:4] == pytest.approx((0.148127424175, 2, 7, 0.8649542916866), rel=1e-9)
    rows = {
        "b": (5.27533600479, 2, 14, 0.0196088696598, 0.0333896084742, 0.0243958781848),
        "group x b": (0.488206087456, 4, 14, 0.7444211108991, 0.6958374233787, 0.7260664920346),
        "a x b": (0.89792269135, 2, 14, 0.429631515813, 0.410155548337, 0.425952494218),
        "group x a x b": (1.026771437737, 4, 14, 0.427444125305, 0.420771863841, 0.426256431610),
    }
    for name, row in rows.items():
        assert made[name] == pytest.approx(row, rel=1e-9), name


def test_it_agrees_with_pingouin_within() -> None:
    table = np.array(Y)[:, [0, 2, 3, 5]]
    (mine,) = repeated_measures(table, {"b": list("wxyz")}).effects
    long = pd.DataFrame(table).melt(ignore_index=False).reset_index()
    theirs = pingouin.rm_anova(
        data=long,
        dv="value",
        within="variable",
        subject="index",
        correction=True,
        detailed=True,
        effsize="np2",
    ).iloc[0]
    assert mine.f == pytest.approx(theirs["F"]) and mine.p == pytest.approx(theirs["p_unc"])
    assert mine.p_gg == pytest.approx(theirs["p_GG_corr"])
    assert mine.partial_eta_squared == pytest.approx(theirs["np2"])
    assert mine.sphericity is not None and mine.sphericity.w == pytest.approx(theirs["W_spher"])
    # It follows R, whose last term counts cells in place of contrasts: .83515 for .83512.
    assert mine.sphericity.p == pytest.approx(theirs["p_spher"], abs=5e-5)
    hf = pingouin.epsilon(pd.DataFrame(table), correction="hf")
    assert mine.sphericity.huynh_feldt == pytest.approx(hf)


def test_it_agrees_with_pingouin_on_a_balanced_mixed_design() -> None:
    table, groups = np.array(Y)[:, :3], list("kkkkkmmmmm")
    made = {e.name: e for e in repeated_measures(table, {"b": list("xyz")}, groups, between="g").effects}
    long = pd.DataFrame(table).assign(g=groups, who=range(10)).melt(id_vars=["g", "who"])
    theirs = pingouin.mixed_anova(data=long, dv="value", within="variable", between="g", subject="who")
    rows = theirs.set_index("Source")
    for mine, other in (("g", "g"), ("b", "variable"), ("g x b", "Interaction")):
        assert made[mine].f == pytest.approx(rows.loc[other, "F"])
        assert made[mine].partial_eta_squared == pytest.approx(rows.loc[other, "np2"])


def test_two_levels_are_a_paired_t_test() -> None:
    first, second = np.array(Y)[:, 0], np.array(Y)[:, 2]
    (mine,) = repeated_measures(np.stack([first, second], axis=1), {"b": [1, 2]}).effects
    other = scipy_stats.ttest_rel(first, second)
    assert (mine.f, mine.p) == pytest.approx((other.statistic**2, other.pvalue))


def test_it_depends_on_no_unit_and_no_origin() -> None:
    plain, moved = repeated_measures(Y, FACTORS), repeated_measures(1000 * np.array(Y) + 5e4, FACTORS)
    assert [e.f for e in plain.effects] == pytest.approx([e.f for e in moved.effects])
    assert moved.effects[0].ss_error == pytest.approx(1e6 * plain.effects[0].ss_error)


def test_corrected_tests_keep_their_level_if_sphericity_is_violated() -> None:
    """1,000 null studies of 10 people and 4 cells, the last of which varies thrice as much: the plain p is
    too small too often, the corrected one is not."""
    rng = np.random.default_rng(8)
    spread = np.array([1, 1, 1, 4])
    effects = [
        repeated_measures(rng.normal(0, spread, (10, 4)), {"b": list("wxyz")}).effects[0] for _ in range(1000)
    ]
    plain, corrected = (np.mean([getattr(e, name) < 0.05 for e in effects]) for name in ("p", "p_gg"))
    assert corrected < likely_share(0.05, 1000).high < plain


def test_it_says_what_is_wrong_with_a_table() -> None:
    with pytest.raises(StatsError, match="6 cells and the factors 4"):
        repeated_measures(Y, {"a": [1, 2], "b": [1, 2]})
    with pytest.raises(StatsError, match="10 people in groups of 9, 1"):
        repeated_measures(Y, FACTORS, ["k"] * 9 + ["m"])
    with pytest.raises(StatsError, match="do not differ in the effect b"):
        repeated_measures([[1, 2, 3], [4, 5, 6], [7, 8, 9]], {"b": [1, 2, 3]})
    with pytest.raises(StatsError, match="name it once"):
        repeated_measures(Y, FACTORS, GROUPS, between="a")
    with pytest.raises(StatsError, match="missing or infinite"):
        repeated_measures([[1.0, np.nan], [2.0, 3.0]], {"b": [1, 2]})
