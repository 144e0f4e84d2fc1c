"""Witnesses: R 4.2 (the calls stand beside the values)."""

import numpy as np
import pytest

from analysis.stats.intervals_and_checks import StatsError
from analysis.stats.means.effect_size import standardised_change
from analysis.stats.means.paired import paired_differences

pytestmark = pytest.mark.pure
TABLE = [
    [8.3, 10, 13.3],
    [11, 13.2, 13.5],
    [9.2, 9.1, 10.1],
    [15.3, 15, 19.1],
    [13.5, 11.3, 14.9],
    [10.9, 10.9, 10.2],
    [6.6, 12.5, 14.2],
]


def test_it_agrees_with_r() -> None:
    """R: t.test(Y[, i], Y[, j], paired = TRUE, conf.level = 1 - .05/3); p.adjust(p, "holm"), "BH"."""
    rows = [
        (-1.02857142857, -1.05299475149, -4.23977684294, 2.18263398579),
        (-2.928571428571, -2.778060030279, -6.394136297878, 0.536993440735),
        (-1.9, -2.763049237276, -4.160605679479, 0.360605679479),
    ]
    result = paired_differences(TABLE, "xyz")
    for pair, row in zip(result.pairs, rows, strict=True):
        assert (pair.difference, pair.t, pair.interval.low, pair.interval.high) == pytest.approx(row)
    holm = (0.3328902004919, 0.0962372261908, 0.0962372261908)
    bh = (0.3328902004919, 0.0490826741848, 0.0490826741848)
    assert [pair.p for pair in result.pairs] == pytest.approx(holm) and result.df == 6
    assert [p.p for p in paired_differences(TABLE, "xyz", correction="bh").pairs] == pytest.approx(bh)


def test_it_agrees_with_r_on_the_standardised_change() -> None:
    """R: t <- t.test(Y[, 1], Y[, 3], paired = TRUE)$statistic; J <- gamma(3)/(sqrt(3)*gamma(2.5));
    J/sqrt(7)*c(t, uniroot(function(z) pt(t, 6, z) - .975, c(-12, 5))$root, and with .025)."""
    first, _, third = np.array(TABLE).T
    made = standardised_change(first, third)
    assert (made.g_z, made.interval.low, made.interval.high) == pytest.approx(
        (-0.9120649671778, -1.7072400681095, -0.0725429723928)
    )


def test_a_control_is_compared_with_every_other() -> None:
    result = paired_differences(TABLE, "xyz", "y")
    assert [(pair.first, pair.second) for pair in result.pairs] == [("x", "y"), ("z", "y")]
    assert result.pairs[1].difference == pytest.approx(1.9)
    every = paired_differences(TABLE, "xyz").pairs[2]
    # Two comparisons need less room than three.
    assert result.pairs[1].interval.low > -every.interval.high


def test_it_says_what_cannot_be_compared() -> None:
    with pytest.raises(StatsError, match="'w' is no condition; they are x, y, z"):
        paired_differences(TABLE, "xyz", "w")
    with pytest.raises(StatsError, match="All differences are equal"):
        paired_differences([[1, 2], [2, 3], [3, 4]], "xy")
    with pytest.raises(StatsError, match="name it 'holm', 'bonferroni' or 'bh'"):
        paired_differences(TABLE, "xyz", correction="none")  # type: ignore[arg-type]
    with pytest.raises(StatsError, match="each with a name of its own"):
        paired_differences(TABLE, "xxz")
