"""Power of the difference between two methods' ratings, against statsmodels and against drawn ratings."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.power import TTestPower

from analysis.stats.power import detectable_rating, rating_power
from analysis.stats.results import StatsError

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(("items", "raters", "difference"), [(12, 1, 0.5), (40, 5, 0.25), (200, 3, 0.1)])
def test_it_agrees_with_statsmodels(items: int, raters: int, difference: float) -> None:
    """Of a t test of one sample, for the standardised difference."""
    deviation = np.sqrt(2 * (0.8**2 / raters + 0.4**2))
    theirs = TTestPower().power(difference / deviation, items, 0.05)
    ours = rating_power(items, raters, difference, rater_sd=0.8, explanation_sd=0.4)
    assert ours == pytest.approx(theirs, abs=1e-6)


def test_drawn_ratings_find_it_as_often_as_promised() -> None:
    """Whole studies are drawn by the stated variances, and the test is run on them."""
    rng, studies, items, raters = np.random.default_rng(3), 4000, 30, 4
    shares = []
    for difference in (0.0, 0.4):
        means = rng.normal([0.0, difference], 0.5, (studies, items, 2))
        votes = means[..., None] + rng.normal(0, 0.75, (studies, items, 2, raters))
        rated = votes.mean(-1)
        p = stats.ttest_rel(rated[..., 0], rated[..., 1], axis=1).pvalue
        shares.append(float((p < 0.05).mean()))
    assert shares[0] == pytest.approx(0.05, abs=0.012)
    assert shares[1] == pytest.approx(rating_power(items, raters, 0.4), abs=0.025)


def test_the_detectable_difference_is_that_of_its_power() -> None:
    for items, raters in ((8, 2), (100, 5), (1000, 5)):
        assert rating_power(items, raters, detectable_rating(items, raters)) == pytest.approx(0.8)
    assert rating_power(20, 5, 0.0) == 0.05
    assert rating_power(20, 5, 0.3) == rating_power(20, 5, -0.3)
    assert detectable_rating(100, 50) > detectable_rating(400, 5), "items count more than raters"


def test_it_refuses_what_has_no_power() -> None:
    with pytest.raises(StatsError, match="number of items"):
        rating_power(1, 5, 0.5)
    with pytest.raises(StatsError, match="not both 0"):
        rating_power(10, 5, 0.5, rater_sd=0, explanation_sd=0)
    with pytest.raises(StatsError, match="must lie between alpha"):
        detectable_rating(10, 5, power=0.01)
