"""Witnesses: R 4.2 (the calls stand beside the values), scipy, and simulated intervals."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats as scipy_stats
from scipy.stats import norm

from analysis.stats.intervals_and_checks import StatsError
from analysis.stats.ranks.several_groups import friedman, kruskal_wallis, rank_biserial_interval
from analysis.stats.ranks.two_groups import mann_whitney, signed_rank, signed_rank_interval
from tests.proofs.chance import likely_share

pytestmark = pytest.mark.pure
GROUPS = {"a": [3, 5, 4, 6, 7, 5], "b": [8, 6, 9, 7, 9, 10, 6], "c": [2, 3, 5, 1, 4]}
TABLE = [[3, 5, 4, 6], [2, 6, 5, 7], [4, 4, 5, 8], [1, 3, 3, 5], [5, 7, 6, 6], [2, 4, 3, 9], [3, 6, 2, 7]]


def test_it_agrees_with_r_on_kruskal_wallis_and_dunn() -> None:
    """R: kruskal.test(x); r <- rank(unlist(x)); s <- N*(N+1)/12 - sum(t^3 - t)/(12*(N-1)) over the ties;
    z <- (mean rank - mean rank)/sqrt(s*(1/n + 1/m)); p.adjust(2*pnorm(-abs(z)), "holm")."""
    result = kruskal_wallis(GROUPS)
    assert (result.statistic, result.df, result.p) == pytest.approx((11.92398119, 2, 0.00257478152), rel=1e-8)
    assert result.effect == pytest.approx(11.92398119 / 17)
    z = (-2.11746614821, 1.32292951087, 3.37999601194)
    p = (0.06844061071865, 0.18585882029928, 0.00217460644778)
    assert [pair.statistic for pair in result.pairs] == pytest.approx(z)
    assert [pair.p for pair in result.pairs] == pytest.approx(p)
    assert result.mean_ranks["c"] == pytest.approx((2 + 3.5 + 8 + 1 + 5.5) / 5)


def test_the_dominance_of_a_pair_is_mann_whitneys() -> None:
    """R: th <- mean(outer(a, b, function(p, q) (p > q) + .5*(p == q))); f <- function(t) (t - th)^2 -
    qnorm(.975)^2*t*(1-t)*(1 + 5.5*((1-t)/(2-t) + t/(1+t)))/42; 2*uniroot(f, c(0, th))$root - 1, and to 1."""
    pair = kruskal_wallis(GROUPS).pairs[0]
    assert pair.dominance == pytest.approx(mann_whitney(GROUPS["a"], GROUPS["b"]).rank_biserial)
    assert (pair.interval.low, pair.interval.high) == pytest.approx((-0.971995378740, -0.194638720078))
    assert rank_biserial_interval(1.0, 6, 7).high == 1 and rank_biserial_interval(-1.0, 6, 7).low == -1


def test_it_agrees_with_r_on_friedman_and_nemenyi() -> None:
    """R: friedman.test(Y); m <- colMeans(t(apply(Y, 1, rank)));
    ptukey(abs(m[i] - m[j])/sqrt(4*5/(12*7)), 4, Inf, lower = FALSE)."""
    result = friedman(TABLE, "wxyz")
    assert (result.statistic, result.p) == pytest.approx((15.62686567, 0.00135225355), rel=1e-8)
    assert list(result.mean_ranks.values()) == pytest.approx([17 / 14, 20 / 7, 15 / 7, 53 / 14])
    p = (0.0807796015048, 0.533746258262, 0.00111380435049, 0.728804759691, 0.533746258262, 0.0807796015048)
    assert [pair.p for pair in result.pairs] == pytest.approx(p, rel=1e-6)
    assert result.pairs[0].dominance == pytest.approx(-6 / 7)
    assert result.effect == pytest.approx(15.62686567 / 21)


def test_pairs_within_people_are_agresti_and_mins() -> None:
    """By hand: none larger, six smaller and one equal of seven; .5 is added to each of four outcomes."""
    ends = friedman(TABLE, "wxyz").pairs[0].interval
    b, c, total = 0.5 / 9, 6.5 / 9, 9
    half = 1.959963985 * ((b + c - (b - c) ** 2) / total) ** 0.5
    assert (ends.low, ends.high) == pytest.approx((-1, b - c + half)), "it would begin at -1.04"


@pytest.mark.parametrize(("first", "second", "apart"), [(10, 10, 0.0), (8, 20, 1.0), (30, 30, 1.5)])
def test_the_interval_of_dominance_keeps_its_level(first: int, second: int, apart: float) -> None:
    rng = np.random.default_rng(1)
    truth = 2 * norm.cdf(apart / 2**0.5) - 1
    held = []
    for _ in range(1500):
        x, y = rng.normal(apart, 1, first), rng.normal(0, 1, second)
        effect = float(np.sign(x[:, None] - y).mean())
        held.append(rank_biserial_interval(effect, first, second).holds(truth))
    assert 0.93 <= np.mean(held) <= 0.975


@pytest.mark.long(stays="test_the_interval_of_dominance_keeps_its_level")
@pytest.mark.parametrize(("people", "shift"), [(10, 0.8), (30, 0.5), (30, 1.2)])
def test_the_interval_within_people_keeps_its_level(people: int, shift: float) -> None:
    """The sum of two differences is above 0 with the probability Phi(shift sqrt 2)."""
    rng = np.random.default_rng(2)
    truth = 2 * norm.cdf(shift * 2**0.5) - 1
    zeros = np.zeros(people)
    held = [signed_rank_interval(rng.normal(shift, 1, people), zeros).holds(truth) for _ in range(500)]
    assert np.mean(held) >= likely_share(0.95, 500).low


def test_an_interval_within_people_holds_its_estimate_and_turns_with_it() -> None:
    first, second = [5, 7, 3, 9, 6, 8], [4, 5, 4, 6, 2, 8]
    there, back = signed_rank_interval(first, second), signed_rank_interval(second, first)
    assert there.holds(signed_rank(first, second).rank_biserial)
    assert (there.low, there.high) == pytest.approx((-back.high, -back.low))
    assert signed_rank_interval([1, 2, 3, 4], [0, 0, 0, 0]).high == 1
    widths = [(i := signed_rank_interval(first, second, level=x)).high - i.low for x in (0.5, 0.9, 0.99)]
    assert all(a < b for a, b in pairwise(widths))


def test_many_people_take_no_table_of_all_pairs() -> None:
    """30,000 by 30,000 pairs would be 7 GB; the share of larger ones is Mann-Whitney's."""
    rng = np.random.default_rng(7)
    x, y = rng.integers(0, 9, 30_000), rng.integers(1, 10, 30_000)
    (pair,) = kruskal_wallis({"a": x, "b": y}).pairs
    u = scipy_stats.mannwhitneyu(x, y, method="asymptotic").statistic
    assert pair.dominance == pytest.approx(2 * u / 30_000**2 - 1)
    assert signed_rank_interval(x, y).holds(signed_rank(x, y).rank_biserial)


def test_it_agrees_with_scipy() -> None:
    rng = np.random.default_rng(4)
    groups = {name: rng.integers(0, 9, 8 + at) for at, name in enumerate("abcd")}
    ours, theirs = kruskal_wallis(groups), scipy_stats.kruskal(*groups.values())
    assert (ours.statistic, ours.p) == pytest.approx((theirs.statistic, theirs.pvalue))
    table = rng.integers(0, 6, (12, 4))
    result, other = friedman(table, "abcd"), scipy_stats.friedmanchisquare(*table.T)
    assert (result.statistic, result.p) == pytest.approx((other.statistic, other.pvalue))


def test_it_refuses_what_has_no_ranks() -> None:
    with pytest.raises(StatsError, match="ranks say nothing"):
        friedman([[1, 1, 1], [2, 2, 2]], "abc")
    with pytest.raises(StatsError, match="3 conditions, each with a name"):
        friedman([[1, 2], [2, 1]], "ab")
    with pytest.raises(StatsError, match="No group has any variance"):
        kruskal_wallis({"a": [1, 1], "b": [1, 1]})
    with pytest.raises(StatsError, match="at least 3"):
        signed_rank_interval([1, 2, 3], [1, 2, 4])
