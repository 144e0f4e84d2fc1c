"""The short forms of the calibration fail on a fault that is planted in what they examine.

The fault is the commonest of such analyses: every person counts twice, as if blocks were people. Of reviews
two others: leads are drawn and tasks are not; and a point within the margin is called equivalent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from analysis.stats.means.randomised_block import randomised_block
from analysis.stats.shares import margin_decision
from analysis.stats.shares.pigeonhole import CrossedEstimate, pigeonhole
from tests.analysis.stats.means import test_calibration as calibration
from tests.analysis.stats.shares import test_margin as decisions
from tests.analysis.stats.shares import test_pigeonhole as reviews
from tests.proofs.scale import Scale

pytestmark = pytest.mark.pure
SHORT = Scale(is_full=False)
Groups = Mapping[str, NDArray[np.float64]]
RATES = (0.58, 0.70, 0.80)


def twice(examined: Callable[..., Any]) -> Callable[..., Any]:
    """The same statistic of groups in which every person counts twice."""

    def wrong(groups: Groups, *more: Any, **options: Any) -> Any:
        return examined(
            {name: np.repeat(people, 2, axis=0) for name, people in groups.items()}, *more, **options
        )

    return wrong


@pytest.mark.parametrize(
    ("name", "notice"),
    [
        ("one_way", calibration.test_it_keeps_the_error_rate_of_the_anova),
        ("one_way", calibration.test_it_covers_eta_squared_and_the_mean),
        ("tukey_kramer", calibration.test_it_is_the_same_tukey_as_the_vectorised_one),
        pytest.param(
            *("utilities", lambda scale: calibration.test_it_covers_utility(RATES, 6, scale)),
            marks=pytest.mark.long(stays="test_it_notices_people_who_count_twice"),
        ),
    ],
)
def test_it_notices_people_who_count_twice(
    monkeypatch: pytest.MonkeyPatch, name: str, notice: Callable[[Scale], None]
) -> None:
    monkeypatch.setattr(calibration, name, twice(getattr(calibration, name)))
    with pytest.raises(AssertionError):
        notice(SHORT)


def test_it_notices_people_who_count_twice_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(values: NDArray[np.float64], conditions: list[str], plans: list[int]) -> Any:
        return randomised_block(*(list(np.repeat(column, 2)) for column in (values, conditions, plans)))

    monkeypatch.setattr(calibration, "randomised_block", wrong)
    with pytest.raises(AssertionError):
        calibration.test_it_keeps_the_error_rate_of_the_blocked_analysis(SHORT)


def test_it_notices_tasks_that_are_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(
        yes: Any, cells: Any, people: Any, items: NDArray[np.intp], *more: Any, **options: Any
    ) -> CrossedEstimate:
        return pigeonhole(yes, cells, people, np.arange(len(items)), *more, **options)

    monkeypatch.setattr(reviews, "pigeonhole", wrong)
    with pytest.raises(AssertionError):
        reviews.test_intervals_of_a_share_and_of_a_difference_keep_their_level(
            (40, 40), (0.3, 1.5, 0.3), SHORT
        )


def test_it_notices_an_equivalence_by_the_point_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(margin_decision, "NARROW", 0.02)
    with pytest.raises(AssertionError):
        decisions.test_wrong_decisions_are_as_rare_as_promised(
            16, 80, decisions.MARGIN, {"equivalent": 0.05}, SHORT
        )
