"""d' and criterion by hand, and against the standard library's normal distribution."""

from __future__ import annotations

from statistics import NormalDist

import pytest

from analysis.stats.intervals_and_checks import StatsError
from analysis.stats.shares.signal_detection import signal_detection

pytestmark = pytest.mark.pure


def test_d_prime_is_that_of_a_worked_example() -> None:
    """Of 24 right ones 20 accepted, of 24 wrong ones 4: corrected rates .82 and .18, so z = ±.9154."""
    made = signal_detection(20, 24, 4, 24)
    assert (made.hit_rate, made.false_rate) == (20 / 24, 4 / 24)
    assert made.d_prime == pytest.approx(1.8307, abs=1e-4)
    assert made.criterion == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(("hits", "rights", "false", "wrongs"), [(10, 10, 0, 5), (0, 3, 3, 3), (7, 9, 1, 30)])
def test_it_is_the_normal_quantile_of_the_corrected_rates(
    hits: int, rights: int, false: int, wrongs: int
) -> None:
    made = signal_detection(hits, rights, false, wrongs)
    z = NormalDist().inv_cdf
    h, f = z((hits + 0.5) / (rights + 1)), z((false + 0.5) / (wrongs + 1))
    assert [made.d_prime, made.criterion] == pytest.approx([h - f, -(h + f) / 2])
    assert made.table()[0]["d_prime"] == made.d_prime


def test_accepting_more_of_everything_moves_the_criterion_and_not_d_prime() -> None:
    strict, lax = signal_detection(50, 100, 50, 100), signal_detection(90, 100, 90, 100)
    assert strict.d_prime == lax.d_prime == 0 and lax.criterion < strict.criterion == pytest.approx(0)


def test_without_right_or_wrong_ones_there_is_a_sentence() -> None:
    with pytest.raises(StatsError, match="The wrong ones is 0; give a whole number from 1"):
        signal_detection(3, 4, 0, 0)
    with pytest.raises(StatsError, match="5 hits of 4 right ones"):
        signal_detection(5, 4, 0, 2)
