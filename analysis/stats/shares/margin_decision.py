"""Worse, equivalent or superior by a declared margin, or undecided: two intervals of one difference."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from scipy.optimize import brentq
from scipy.stats import norm

from analysis.stats import check
from analysis.stats.intervals_and_checks import Interval, StatsError, json_of
from analysis.stats.shares.pigeonhole import CrossedEstimate

Decision = Literal["worse", "equivalent", "superior", "inconclusive"]
PEOPLE_MIN, ITEMS_MIN = 12, 30
"""With fewer people or items there is no decision."""
WIDE, NARROW = 0.95, 0.90
FACTOR_MAX = 100.0
"""A difference that would need more than this many times the data lies at the margin, for all one can say."""


@dataclass(frozen=True, slots=True)
class MarginDecision:
    """`decision`: "worse" or "superior" if the whole 95 % interval of the difference lies below minus the
    margin or above it; "equivalent" if the whole 90 % interval lies within; else "inconclusive".

    `factor` (inconclusive only) is how many times as many people and items would decide with the given power
    if the difference is what it is now, and `people_needed` and `items_needed` what that makes; None if the
    difference lies at the margin.
    """

    decision: Decision
    margin: float
    difference: float
    wide: Interval
    narrow: Interval
    people: int
    items: int
    power: float
    factor: float | None = None
    people_needed: int | None = None
    items_needed: int | None = None

    def table(self) -> list[dict[str, object]]:
        """One row."""
        return [
            {
                **json_of(self, "decision", "margin", "difference", interval_95="wide", interval_90="narrow"),
                **json_of(self, "people", "items", "power", "factor", "people_needed", "items_needed"),
            }
        ]


def margin_decision(difference: CrossedEstimate, margin: float, *, power: float = 0.8) -> MarginDecision:
    """Decides on a difference of two shares (`scale` "share"). Raises StatsError below PEOPLE_MIN people or
    ITEMS_MIN items, without an interval, or for a margin outside (0, 1).

    An equivalence by the 90 % interval is two one-sided tests at 5 % (Schuirmann 1987).
    """
    if not 0 < check.number(margin, "The margin") < 1 or not 0.5 <= check.number(power, "Power") < 1:
        raise StatsError(
            f"The margin {margin} and the power {power} must lie in (0, 1), the power at .5 or above."
        )
    if difference.people < PEOPLE_MIN or difference.items < ITEMS_MIN:
        raise StatsError(
            f"There are {difference.people} people and {difference.items} items; a decision needs at least "
            f"{PEOPLE_MIN} and {ITEMS_MIN}. Wait for more."
        )
    wide, narrow = difference.interval(WIDE), difference.interval(NARROW)
    if wide is None or narrow is None or difference.scale != "share":
        raise StatsError(
            "A decision needs the interval of a difference of shares: "
            f"{difference.problem or 'this one is on another scale'}."
        )
    decision = decide_margin(wide, narrow, margin)
    factor = None
    if decision == "inconclusive":
        factor = _factor(difference.estimate, difference.se, margin, power)
    return MarginDecision(
        decision=decision,
        margin=margin,
        difference=difference.estimate,
        wide=wide,
        narrow=narrow,
        people=difference.people,
        items=difference.items,
        power=power,
        factor=factor,
        people_needed=None if factor is None else _times(difference.people, factor),
        items_needed=None if factor is None else _times(difference.items, factor),
    )


def decide_margin(wide: Interval, narrow: Interval, margin: float) -> Decision:
    """The word for a 95 % and a 90 % interval of one difference."""
    if wide.high < -margin:
        return "worse"
    if wide.low > margin:
        return "superior"
    return "equivalent" if -margin < narrow.low and narrow.high < margin else "inconclusive"


def _times(count: int, factor: float) -> int:
    return max(count + 1, math.ceil(count * factor))


def _factor(difference: float, se: float, margin: float, power: float) -> float | None:
    """How many times as much data make the error so small that the decision has that power. All parts of
    the variance shrink with the data only if people and items grow alike."""
    room = margin - abs(difference)
    one_sided, two_sided, z_power = (float(norm.ppf(q)) for q in ((1 + NARROW) / 2, (1 + WIDE) / 2, power))
    if abs(room) < se / FACTOR_MAX:
        return None
    if room > 0:
        other = margin + abs(difference)

        def excess(error: float) -> float:
            return float(norm.cdf(room / error - one_sided) + norm.cdf(other / error - one_sided)) - 1 - power

        needed = float(brentq(excess, room / 50, room / one_sided))
    else:
        needed = -room / (two_sided + z_power)
    factor = (se / needed) ** 2
    return factor if factor <= FACTOR_MAX else None
