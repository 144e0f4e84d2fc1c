"""Witnesses: Shrout and Fleiss' (1979) worked example, pingouin, all halves enumerated, counts by hand, R."""

from itertools import combinations

import numpy as np
import pandas as pd
import pingouin
import pytest

from analysis.stats.intervals_and_checks import StatsError
from analysis.stats.ratings.reliability import intraclass, item_statistics, split_half
from analysis.stats.shares.proportions import odds_ratio, wilson

pytestmark = pytest.mark.pure
SHROUT = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]


def test_it_gives_the_published_intraclass_correlations() -> None:
    """Shrout and Fleiss (1979), table 4: .29, .62, .71."""
    made = {c.name: round(c.icc, 2) for c in intraclass(SHROUT).correlations}
    assert made == {"ICC(2,1)": 0.29, "ICC(2,k)": 0.62, "ICC(3,1)": 0.71}


def test_its_intervals_agree_with_pingouin() -> None:
    rng = np.random.default_rng(3)
    table = rng.normal(0, 1, (15, 1)) + rng.normal(0, 0.7, (15, 5)) + rng.normal(0, 0.4, (1, 5))
    long = pd.DataFrame(table).melt(ignore_index=False).reset_index()
    theirs = pingouin.intraclass_corr(long, "index", "variable", "value").set_index("Type")
    for mine, other in zip(intraclass(table).correlations, ("ICC(A,1)", "ICC(A,k)", "ICC(C,1)"), strict=True):
        assert mine.icc == pytest.approx(theirs.loc[other, "ICC"])
        assert [round(mine.interval.low, 2), round(mine.interval.high, 2)] == list(theirs.loc[other, "CI95"])


def test_split_halves_are_the_mean_of_all_halves() -> None:
    """Four items have three halvings; each is drawn alike."""
    rng = np.random.default_rng(5)
    table = rng.normal(0, 1, (30, 1)) + rng.normal(0, 1, (30, 4))
    by_hand = []
    for half in combinations(range(4), 2):
        rest = [at for at in range(4) if at not in half]
        r = pd.Series(table[:, half].mean(axis=1)).corr(pd.Series(table[:, rest].mean(axis=1)))
        by_hand.append(2 * r / (1 + r))
    result = split_half(table, draws=3000, seed=2)
    assert result.reliability == pytest.approx(np.mean(by_hand), abs=0.005)
    assert (result.low, result.high) == pytest.approx((min(by_hand), max(by_hand)))
    assert result == split_half(table, draws=3000, seed=2)
    # With alike items it is alpha, whose value pingouin computes in another way.
    assert result.reliability == pytest.approx(pingouin.cronbach_alpha(pd.DataFrame(table))[0], abs=0.02)


def test_equal_halves_are_perfectly_reliable() -> None:
    table = np.arange(6)[:, None] + np.arange(4)[None, :]
    assert split_half(table, draws=20).reliability == pytest.approx(1)


def test_item_statistics_are_those_counted_by_hand() -> None:
    table = np.array([[1, 1, 1], [1, 1, 0], [1, 0, 0], [1, 0, np.nan], [1, 1, 1]])
    easy, middle, hard = item_statistics(table, ["easy", "middle", "hard"]).items
    assert (easy.difficulty, easy.discrimination, easy.people) == (1, None, 5)
    assert (hard.difficulty, hard.people, hard.interval) == (0.5, 4, wilson(2, 4))
    others = [1, 0.5, 0.5, 1, 1]
    assert middle.discrimination == pytest.approx(np.corrcoef([1, 1, 0, 0, 1], others)[0, 1])


def test_it_agrees_with_r_on_an_odds_ratio() -> None:
    """R: exp(log(12*55/(48*5)) + c(0, -1, 1)*qnorm(.975)*sqrt(1/12 + 1/48 + 1/5 + 1/55))."""
    made = odds_ratio(12, 60, 5, 60)
    assert (made.ratio, made.interval.low, made.interval.high) == pytest.approx(
        (2.75, 0.903767467317, 8.367749751438)
    )
    assert not made.is_corrected
    empty = odds_ratio(0, 10, 5, 10)
    assert empty.is_corrected and empty.ratio == pytest.approx(0.5 * 5.5 / (10.5 * 5.5))


def test_it_says_what_has_no_reliability() -> None:
    with pytest.raises(StatsError, match="do not differ in any half"):
        split_half(np.ones((4, 4)), draws=5)
    with pytest.raises(StatsError, match="2 people and 2 items"):
        split_half([[1, 2], [2, 1]])
    with pytest.raises(StatsError, match="agree entirely"):
        intraclass([[1, 1], [2, 2], [3, 3]])
    with pytest.raises(StatsError, match="1 or 0 per answer"):
        item_statistics([[1, 2], [0, 1]], ["a", "b"])
    with pytest.raises(StatsError, match="0 <= count <= total"):
        odds_ratio(3, 2, 1, 2)


def test_the_mean_of_raters_who_disagree_has_no_lower_bound() -> None:
    """Spearman and Brown's 2 r / (1 + r) falls without bound as r goes to -1."""
    single, mean, _ = intraclass([[0.3, 0.3], [0.0, 1.0]]).table()
    assert single["low"] == pytest.approx(-1) and mean["low"] is None
