"""A share of yes over all answers of all people, if people are drawn at random and answer different numbers
of times.

Whole people are drawn with replacement, and each draw is divided by its own error, clustered by people, on
log odds: the bootstrap-t (Efron and Tibshirani 1993, sections 12.5 and 16). It speaks of people on these
items.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from analysis.stats import check
from analysis.stats.intervals_and_checks import Floats, Interval, Names, StatsError, json_of

DRAWS, DRAWS_MAX = 10_000, 100_000
CHUNK_CELLS = 4_000_000
"""Draws times people that are held at once."""
UNDEFINED_MAX = 0.1
"""With more draws without a value the others say too little of the ends."""
SPREAD_MIN = 1e-9


@dataclass(frozen=True, slots=True)
class PooledShare:
    """`share` is `yes` of `total` answers of `people`, each answer counting alike. `se` is its error on log
    odds, with half added to yes and no, clustered by people. `undefined` counts draws without a value.
    `problem` says why there is no interval.
    """

    share: float
    yes: int
    total: int
    people: int
    se: float
    undefined: int
    interval: Interval | None
    problem: str = ""

    def table(self) -> list[dict[str, object]]:
        """One row with everything that may be printed."""
        return [json_of(self, "share", "interval", "yes", "total", "people", "problem")]


def pooled_share(
    yes: ArrayLike, people: Names, *, draws: int = DRAWS, seed: int = 0, level: float = 0.95
) -> PooledShare:
    """The share of `yes` (n,), 0 or 1, given by `people` (n,).

    Raises StatsError for no answer, values other than 0 and 1, or lists of unequal length.
    """
    check.level(level)
    check.count(seed, "The seed")
    if check.count(draws, "The number of draws", least=20) > DRAWS_MAX:
        raise StatsError(f"{draws} draws are asked for; give at most {DRAWS_MAX}.")
    values, person = check.array(yes, "The answers"), check.codes(people, "people")
    if not values.size or values.size != person.size:
        raise StatsError(
            f"There are {values.size} answers of {person.size} people; give one person per answer, and at "
            "least one answer."
        )
    if not np.isin(values, (0, 1)).all():
        raise StatsError("The answers must be 0 or 1; leave the others out.")
    given = np.bincount(person, values).astype(np.float64)
    of = np.bincount(person).astype(np.float64)
    everybody = np.ones((1, of.size))
    (at,), (se,) = _log_odds(everybody, given, of)
    told = PooledShare(
        share=float(values.mean()),
        yes=int(values.sum()),
        total=values.size,
        people=of.size,
        se=float(se),
        undefined=0,
        interval=None,
    )
    if of.size < 2:
        return replace(told, problem="an interval needs 2 people")
    if not se > SPREAD_MIN:
        return replace(told, problem="people do not differ, so there is no interval")
    drawn, undefined = _draw_t_values(given, of, float(at), draws, seed)
    if undefined > UNDEFINED_MAX * draws:
        share = f"{100 * undefined / draws:.0f} %"
        return replace(told, problem=f"in {share} of the draws there is no value, so there is no interval")
    tail = (1 - level) / 2
    low_t, high_t = (float(q) for q in np.quantile(drawn, [tail, 1 - tail]))
    ends = Interval(float(expit(at - high_t * se)), float(expit(at - low_t * se)), level)
    return replace(told, undefined=undefined, interval=ends)


def _draw_t_values(given: Floats, of: Floats, at: float, draws: int, seed: int) -> tuple[Floats, int]:
    """The t values of the draws that have one, and how many have none."""
    rng = np.random.default_rng([seed, of.size])
    parts, step = [], max(1, CHUNK_CELLS // of.size)
    for start in range(0, draws, step):
        count = min(step, draws - start)
        copies = rng.multinomial(of.size, np.full(of.size, 1 / of.size), count).astype(np.float64)
        value, error = _log_odds(copies, given, of)
        has_value = error > SPREAD_MIN
        parts.append((value[has_value] - at) / error[has_value])
    kept = np.concatenate(parts)
    return kept, draws - kept.size


def _log_odds(copies: Floats, given: Floats, of: Floats) -> tuple[Floats, Floats]:
    """Log odds of the share (draws,) and their error; `copies` (draws, people) says how often each was
    drawn."""
    yes, total, people = copies @ given, copies @ of, copies.sum(axis=1)
    share, corrected = yes / total, (yes + 0.5) / (total + 1)
    # The sum over people of (yes - share x answers) squared, each as often as it was drawn.
    squares = copies @ given**2 - 2 * share * (copies @ (given * of)) + share**2 * (copies @ of**2)
    error = np.sqrt(np.maximum(squares, 0) * people / np.maximum(people - 1, 1)) / total
    return np.log(corrected / (1 - corrected)), error / (corrected * (1 - corrected))
