"""What chance alone may do to a share of draws."""

from __future__ import annotations

from scipy.stats import binom

from analysis.stats.intervals_and_checks import Interval

CHANCE = 0.001
"""How often a right program may fail a short proof, over all seeds; the seed of `make test` never changes."""


def likely_share(rate: float, count: int) -> Interval:
    """Between which shares of `count` draws an event of this rate falls in 999 of 1,000 cases."""
    low, high = binom.interval(1 - CHANCE, count, rate)
    return Interval(low / count, high / count)
