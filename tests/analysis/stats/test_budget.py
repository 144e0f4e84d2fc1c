"""p(budget): 0 at 0, never falling, the share accepted in the end; by hand and for any times."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.stats.acceptance_within_budget import budget_curve, within_budget
from analysis.stats.intervals_and_checks import StatsError
from analysis.stats.ratings.clustered_means import clustered_mean

pytestmark = [pytest.mark.pure, pytest.mark.filterwarnings("error")]
decisions = st.lists(
    st.tuples(st.booleans(), st.one_of(st.integers(1, 9000), st.just(0), st.just(math.nan))),
    min_size=1,
    max_size=30,
)
budgets_of = st.lists(st.integers(1, 12_000), min_size=1, max_size=12, unique=True).map(sorted)


@given(decisions, budgets_of)
def test_the_curve_starts_at_0_never_falls_and_ends_at_the_share_accepted(
    told: list[tuple[bool, float]], budgets: list[int]
) -> None:
    accepted, times = [float(yes) for yes, _ in told], [rt for _, rt in told]
    people, items = list(range(len(told))), [at % 3 for at in range(len(told))]
    curve = budget_curve(accepted, times, people, items, [0, *budgets, 1e9])
    assert curve.shares[0] == 0
    assert list(curve.shares) == sorted(curve.shares)
    in_the_end = sum(yes for yes, rt in told if rt > 0) / len(told)
    assert curve.shares[-1] == pytest.approx(in_the_end)
    assert curve.at_any_time == pytest.approx(sum(yes for yes, _ in told) / len(told))
    for budget, share, ends in zip(curve.budgets_ms, curve.shares, curve.intervals, strict=True):
        by_hand = [yes and 0 < rt <= budget for yes, rt in told]
        assert share == pytest.approx(sum(by_hand) / len(told))
        assert ends is None or 0 <= ends.low <= share <= ends.high <= 1


def test_a_later_decision_counts_as_rejection() -> None:
    accepted, times = [1, 1, 1, 0], [2999, 3000, 3001, 100]
    assert within_budget(accepted, times, 3000).tolist() == [1, 1, 0, 0]
    assert within_budget(accepted, times, None).tolist() == [1, 1, 1, 0]
    assert within_budget([1, 1], [0, math.nan], 3000).tolist() == [0, 0]


def test_the_band_is_the_clustered_interval_of_each_point() -> None:
    rng = np.random.default_rng(3)
    people, items = np.divmod(np.arange(60), 10)
    accepted, times = rng.integers(0, 2, 60), rng.integers(500, 6000, 60)
    curve = budget_curve(accepted, times, people, items, [3000])
    told = clustered_mean((accepted == 1) & (times <= 3000), people, items)
    ends = curve.intervals[0]
    assert ends is not None and told.interval is not None
    assert (ends.low, ends.high) == (max(0, told.interval.low), min(1, told.interval.high))
    assert curve.table()[0]["share"] == told.estimate


def test_budgets_out_of_order_are_a_sentence() -> None:
    with pytest.raises(StatsError, match="must ascend"):
        budget_curve([1], [900], ["a"], ["b"], [3000, 1000])
    with pytest.raises(StatsError, match="2 answers and 1 times"):
        within_budget([1, 0], [900], 1000)
