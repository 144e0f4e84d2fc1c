"""Power of the planned comparison of two methods' ratings: that very test, run on simulated ratings."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.stats import t as student

from analysis.stats import check
from analysis.stats.intervals_and_checks import Floats, Row, StatsError
from analysis.stats.ratings.clustered_means import clustered_difference

RATER_SD = 0.75
"""Single ratings around an explanation's own: a rater's mean squared distance to the mode is .30 to .56 over
PASTA's six questions [Kazmierczak et al. 2026, Table 1, "Human"]."""
EXPLANATION_SD = 0.5
"""Explanations of a method from item to item: an assumption, no published number."""
PERSON_SHARE = 0.08
"""Of the variance of single ratings, what people's styles of response explain [Baumgartner and Steenkamp
2001]."""
DRAWS = 500
RATINGS_MAX = 100_000
"""Of one pair of methods: more are not simulated."""
PEOPLE_MIN, ITEMS_MIN = 2, 2
POWER = 0.8
NEVER = 1e50
"""The limit of a study without a standard error: nothing is found, however large the difference."""
EFFECTS = (0.1, 0.25, 0.5)
"""Differences whose power a table shows, in points of the scale."""


@dataclass(frozen=True, slots=True)
class PairPower:
    """`estimates` (draws,) of a difference of 0, and the `limits` (draws,) that an estimate must pass. A
    difference between two methods moves every estimate by itself and no limit, so that one simulation tells
    the power of each."""

    estimates: Floats = field(repr=False, compare=False)
    limits: Floats = field(repr=False, compare=False)

    def of(self, difference: float) -> float:
        """The share of studies (0-1) that find a difference of so many points, in either direction."""
        shift = check.number(difference, "The difference")
        return float((np.abs(self.estimates + shift) > self.limits).mean())

    def detectable(self, power: float = POWER) -> float | None:
        """The smallest difference, in points, that this share of studies finds in its own direction; None if
        none is large enough."""
        if not 0 < check.number(power, "Power") < 1:
            raise StatsError(f"Power {power} must lie between 0 and 1; use for example 0.8.")
        least = float(np.quantile(self.limits - self.estimates, power, method="higher"))
        return max(0.0, least) if least < NEVER else None

    def table(self) -> list[Row]:
        """A row per difference of `EFFECTS`, and one of the smallest that is found with power .80."""
        sizes = [*EFFECTS, self.detectable()]
        return [{"difference": size, "power": None if size is None else self.of(size)} for size in sizes]


def pair_power(
    items: int,
    raters: int,
    people: int,
    *,
    pairs: int = 1,
    rater_sd: float = RATER_SD,
    explanation_sd: float = EXPLANATION_SD,
    person_share: float = PERSON_SHARE,
    alpha: float = 0.05,
    draws: int = DRAWS,
    seed: int = 0,
) -> PairPower:
    """Simulates studies in which two methods share `items` and each explanation has `raters` of `people`,
    who are divided into that many rounds; in each the planned test is run, at `alpha` / `pairs`.

    That is Holm's first step: power is at least this, since later steps are easier. Ratings are numbers, not
    rounded: `rater_sd` is the spread of single ratings around an explanation's own, of which variance
    `person_share` is people's own level; `explanation_sd` that of a method's explanations. Raises StatsError
    for fewer people than raters or than 2, fewer than 2 items, more ratings than
    RATINGS_MAX, or no spread at all.
    """
    n, k, who = (
        check.count(items, "The number of items", least=ITEMS_MIN),
        check.count(raters, "The number of raters", least=1),
        check.count(people, "The number of people", least=PEOPLE_MIN),
    )
    tests, count = (
        check.count(pairs, "The number of pairs", least=1),
        check.count(draws, "The draws", least=1),
    )
    spreads = (
        check.number(rater_sd, "The raters' SD"),
        check.number(explanation_sd, "The explanations' SD"),
    )
    share, level = check.number(person_share, "The share of people"), check.number(alpha, "Alpha")
    if who < k:
        raise StatsError(f"{k} raters of each explanation need as many people, got {who}; plan more people.")
    if 2 * n * k > RATINGS_MAX:
        raise StatsError(
            f"Two methods with {n} items and {k} raters have {2 * n * k:,} ratings, at most {RATINGS_MAX:,} "
            "are simulated; ask for fewer."
        )
    # Who rates no explanation changes nothing.
    who = min(who, 2 * n * k)
    if min(spreads) < 0 or max(spreads) == 0 or not 0 <= share <= 1 or not 0 < level < 1:
        raise StatsError(
            "Power needs standard deviations of at least 0, not both 0, a share of people from 0 to 1 and "
            f"alpha in (0, 1), got {rater_sd}, {explanation_sd}, {person_share} and {alpha}."
        )
    rng = np.random.default_rng(check.count(seed, "The seed"))
    # Each explanation once per round; the two methods' explanations follow each other.
    explanation = np.tile(np.arange(2 * n), k)
    estimates, limits = np.empty(count), np.empty(count)
    for at in range(count):
        person = np.concatenate([_round(rng, lane, k, who, 2 * n) for lane in range(k)])
        by_explanation = rng.normal(0, 1, 2 * n)[explanation] * spreads[1]
        level_of = rng.normal(0, 1, who)[person] * spreads[0] * share**0.5
        noise = rng.normal(0, 1, person.size) * spreads[0] * (1 - share) ** 0.5
        told = clustered_difference(
            by_explanation + level_of + noise, explanation < n, person, explanation % n
        )
        estimates[at] = told.estimate
        edge = float(student.isf(level / tests / 2, told.df)) if told.df else 0.0
        limits[at] = edge * told.se if told.se else NEVER
    return PairPower(estimates, limits)


def _round(rng: np.random.Generator, lane: int, lanes: int, people: int, explanations: int) -> np.ndarray:
    """Who rates each explanation in a round: people of the round in turn, explanations shuffled."""
    members = np.arange(lane, people, lanes)
    return members[rng.permutation(explanations) % members.size]
