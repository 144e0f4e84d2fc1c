"""Draws of the contract of statistics that once gave neither a finite number nor a sentence."""

from __future__ import annotations

import pytest

from analysis.stats.intervals_and_checks import StatsError
from analysis.stats.means import dunnett, equivalence, one_sample, paired
from analysis.stats.ranks import several_groups
from analysis.stats.ratings import condition_order_agreement, reliability

pytestmark = [pytest.mark.pure, pytest.mark.filterwarnings("error")]


def test_draws_that_once_slipped_through_are_told() -> None:
    """A spread that is lost when it is squared, names whose number is not known, a level at which nothing is
    left to search, a noncentrality that scipy does not know, and an ICC without degrees of freedom."""
    with pytest.raises(StatsError, match="use a level such as 0.95"):
        dunnett.dunnett({"a": [1, 0], "b": [0.5, 1.0]}, "a", level=3.4e-66)
    with pytest.raises(StatsError, match="No noncentrality makes t"):
        one_sample.one_sample([0.0, 0.3], -1)
    with pytest.raises(StatsError, match="The interval of the ICC"):
        reliability.intraclass([[0.3, 0.3, 0.3, 2.0], [0.3, 0.3, 0.3, 2.0], [0.3, 0.3, 1.0, 1.0]])
    with pytest.raises(StatsError, match="All differences are equal"):
        equivalence.equivalent_changes([0, 0, 0.3], [0, 1e-262, 0.3], 1.0)
    for test in (paired.paired_differences, several_groups.friedman):
        with pytest.raises(StatsError, match="The conditions are of the type NoneType"):
            test([[1.0, 2, 3], [2, 1, 5], [4, 2, 6]], None)  # type: ignore[arg-type]
    with pytest.raises(StatsError, match="The groups are of the type generator"):
        condition_order_agreement.rank_agreement(
            [1.0],
            (name for name in "a"),  # type: ignore[arg-type]
            ["p"],
            ["i"],
            [1.0],
            ["a"],
            ["i"],
        )
