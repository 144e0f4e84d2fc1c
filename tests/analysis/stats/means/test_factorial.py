"""Witnesses: R 4.2 (the calls stand beside the values), statsmodels, and the closed form of equal cells."""

import numpy as np
import pandas as pd
import pytest
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm

from analysis.stats.intervals_and_checks import StatsError
from analysis.stats.means.anova import one_way
from analysis.stats.means.factorial import FactorialAnova, SumOfSquares, factorial_anova

pytestmark = pytest.mark.pure
Y = [5.1, 6.2, 4.8, 7.4, 8.1, 6.9, 7.7, 5.5, 9.2, 8.8, 9.9, 4.1, 3.9, 5.0, 6.6, 7.0, 6.1, 5.8, 8.4, 7.9]
A = list("pppppppqqqqppqqqqqpq")
B = list("uuuvvwwuvvwuuuwvwuvw")
X = [1.2, 2.5, 0.7, 3.1, 2.2, 1.9, 2.8, 1.1, 4.0, 3.3, 3.9, 0.2, 0.9, 1.4, 2.0, 2.6, 1.7, 2.1, 3.6, 3.0]


def squares(result: FactorialAnova) -> dict[str, float]:
    return {effect.name: effect.ss_effect for effect in result.effects}


def test_it_agrees_with_r_on_type_three() -> None:
    """R: options(contrasts = c("contr.sum", "contr.poly")); drop1(lm(y ~ a*b), . ~ ., test = "F")."""
    result = factorial_anova(Y, {"a": A, "b": B})
    assert squares(result) == pytest.approx(
        {"a": 0.87334615, "b": 34.23155015, "a x b": 0.08122566}, rel=1e-6
    )
    assert result.ss_error == pytest.approx(15.8955)
    a, b, both = result.effects
    assert (a.f, a.p, b.f, b.p) == pytest.approx((0.76920, 0.39526514, 15.07476, 0.00032241), rel=2e-5)
    assert (both.df_effect, both.df_error) == (2, 14)


def test_it_agrees_with_r_on_type_two() -> None:
    """R: anova(lm(y ~ b), lm(y ~ a + b)), and with a for b."""
    result = squares(factorial_anova(Y, {"a": A, "b": B}, sum_of_squares="II"))
    assert result["a"] == pytest.approx(0.966607669617)
    assert result["b"] == pytest.approx(35.1232743363)


def test_it_agrees_with_r_on_a_covariate() -> None:
    """R: m2 <- lm(y ~ a*b + x); drop1(m2, . ~ ., test = "F"); coef(m2)["x"]; L = column means of
    model.matrix(~ a*b + x) over the cells of a level at mean(x); sum(L * coef(m2)), sqrt(L %*% vcov(m2) %*%
    L)."""
    result = factorial_anova(Y, {"a": A, "b": B}, {"x": X})
    assert squares(result) == pytest.approx(
        {"a": 0.004532481, "b": 2.165655543, "x": 11.424636420, "a x b": 0.020619772}, rel=1e-6
    )
    assert [effect.name for effect in result.effects] == ["a", "b", "x", "a x b"]
    assert result.slopes == pytest.approx({"x": 1.13246024322})
    p, q = result.means[:2]
    assert (p.level_name, p.n) == ("p", 10)
    assert (p.mean, p.se) == pytest.approx((6.77608606174, 0.19920210977))
    assert (q.mean, q.se) == pytest.approx((6.808433530818, 0.195324523498))


@pytest.mark.parametrize("kind", ["II", "III"])
def test_it_agrees_with_statsmodels(kind: str) -> None:
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"a": rng.choice(list("kl"), 60), "b": rng.choice(list("xyz"), 60),
                          "c": rng.choice(list("mn"), 60), "x": rng.normal(0, 3, 60)})  # fmt: skip
    frame["y"] = rng.normal(0, 1, 60) + (frame["b"] == "y") + 0.2 * frame["x"]
    model = ols("y ~ C(a, Sum) * C(b, Sum) * C(c, Sum) + x", frame).fit()
    theirs = anova_lm(model, typ={"II": 2, "III": 3}[kind])
    factors = {name: frame[name].tolist() for name in "abc"}
    ours = squares(factorial_anova(frame["y"], factors, {"x": frame["x"]}, sum_of_squares=kind))  # type: ignore[arg-type]
    for name, ss in ours.items():
        key = ":".join(part if part == "x" else f"C({part}, Sum)" for part in name.split(" x "))
        assert ss == pytest.approx(theirs.loc[key if name != "x" else "x", "sum_sq"]), name


def test_equal_cells_are_the_closed_form() -> None:
    """SS of a main effect = people per level times the squared distances of the level means; both types."""
    rng = np.random.default_rng(4)
    table = rng.normal(0, 1, (2, 3, 5)) + np.arange(3)[None, :, None]
    a, b = (np.broadcast_to(np.arange(k).reshape(s), table.shape).ravel().tolist()
            for k, s in ((2, (2, 1, 1)), (3, (1, 3, 1))))  # fmt: skip
    by_hand = {
        "a": 15 * ((table.mean(axis=(1, 2)) - table.mean()) ** 2).sum(),
        "b": 10 * ((table.mean(axis=(0, 2)) - table.mean()) ** 2).sum(),
    }
    rest = table.mean(axis=2) - table.mean(axis=(1, 2))[:, None] - table.mean(axis=(0, 2)) + table.mean()
    by_hand["a x b"] = 5 * (rest**2).sum()
    kinds: tuple[SumOfSquares, ...] = ("II", "III")
    for kind in kinds:
        result = factorial_anova(table.ravel(), {"a": a, "b": b}, sum_of_squares=kind)
        assert squares(result) == pytest.approx(by_hand)
        assert result.ss_error == pytest.approx(((table - table.mean(axis=2, keepdims=True)) ** 2).sum())


def test_one_factor_is_the_one_way_analysis() -> None:
    (effect,) = factorial_anova(Y, {"b": B}).effects
    other = one_way({name: [y for y, b in zip(Y, B, strict=True) if b == name] for name in "uvw"})
    assert (effect.f, effect.p, effect.partial_eta_squared) == pytest.approx(
        (other.f, other.p, other.eta_squared)
    )


def test_a_unit_of_a_covariate_makes_no_difference() -> None:
    far = factorial_anova(Y, {"a": A}, {"x": [1e9 * x + 5e9 for x in X]})
    near = factorial_anova(Y, {"a": A}, {"x": X})
    assert [e.f for e in far.effects] == pytest.approx([e.f for e in near.effects])
    assert far.slopes["x"] == pytest.approx(near.slopes["x"] / 1e9)


def test_it_says_what_cannot_be_told_apart() -> None:
    with pytest.raises(StatsError, match="a cell is empty"):
        factorial_anova([1, 2, 3, 4, 5, 7], {"a": list("kkkkll"), "b": list("xxyyxx")})
    with pytest.raises(StatsError, match="a cell is empty, or a covariate follows"):
        factorial_anova(Y, {"a": A}, {"x": [float(a == "p") for a in A]})
    with pytest.raises(StatsError, match="Factor 'a' has 1 levels"):
        factorial_anova([1, 2, 3], {"a": list("kkk")})
    with pytest.raises(StatsError, match="Covariate 'x' does not vary"):
        factorial_anova(Y, {"a": A}, {"x": [1.0] * 20})
    with pytest.raises(StatsError, match="'a' is a factor and a covariate"):
        factorial_anova(Y, {"a": A}, {"a": X})
