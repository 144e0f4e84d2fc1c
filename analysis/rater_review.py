"""What a person should look at in one rater's work while ratings are collected: never a condition, and never
agreement with other raters, which is no ground for exclusion or pay (it stands in the report, afterwards).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

STRAIGHT_MIN = 3
"""Fewer questions about one explanation may well have one and the same answer."""
STRAIGHT_SHARE_MAX = 0.5
FAST_MS = 700.0
DRIFT_MAX = 1.0
AGAIN_MAX = 1.5
TRIALS_MIN, AGAIN_MIN = 6, 4
"""Least trials for a drift, and ratings of anchors for their mean distance, before they are looked at."""
LIMITS = (
    f"one answer to all {STRAIGHT_MIN} or more questions on more than {STRAIGHT_SHARE_MAX:.0%} of the pages, "
    f"less than {FAST_MS / 1000:g} s per rating, a missed check, "
    f"a drift of {DRIFT_MAX:g} point or more (from {TRIALS_MIN} pages), "
    f"and repeats that are {AGAIN_MAX:g} points or more apart (from {AGAIN_MIN})"
)
"""What is flagged, in words."""


@dataclass(frozen=True, slots=True)
class RatedTrial:
    """One answered trial: the points (1-5) by question, and how long all of them took."""

    sitting: int
    position: int
    points: Mapping[str, int]
    rt_ms: float
    explanation: tuple[str, str]
    is_anchor: bool = False


@dataclass(frozen=True, slots=True)
class Rater:
    """`straight_share`: share of trials with at least STRAIGHT_MIN questions that got one and the same point.
    `rating_ms`: median over trials of the time per single rating. `drift`: mean point of the last third of
    the trials less that of the first. `followed` of `checks` instructed checks. `again`: of anchors in
    another session the number of ratings, `again_distance` their mean distance in points. `flags` say what
    to look at; a person decides.
    """

    sittings: int
    trials: int
    ratings: int
    straight_share: float | None
    rating_ms: float | None
    drift: float | None
    followed: int
    checks: int
    again: int
    again_distance: float | None
    flags: tuple[str, ...]


def rater_of(trials: Sequence[RatedTrial], checks: Sequence[bool] = ()) -> Rater:
    """`checks`: whether each instructed check was followed."""
    ordered = sorted(trials, key=lambda trial: (trial.sitting, trial.position))
    several = [set(t.points.values()) for t in ordered if len(t.points) >= STRAIGHT_MIN]
    straight = fmean(len(points) == 1 for points in several) if several else None
    times = [trial.rt_ms / len(trial.points) for trial in ordered if trial.points]
    rating_ms = float(median(times)) if times else None
    distances = _again(ordered)
    distance = fmean(distances) if distances else None
    drift = _drift(ordered)
    flags = {
        "one answer to all": straight is not None and straight > STRAIGHT_SHARE_MAX,
        "fast": rating_ms is not None and rating_ms < FAST_MS,
        "missed checks": not all(checks),
        "drift": drift is not None and abs(drift) >= DRIFT_MAX,
        "repeats differ": len(distances) >= AGAIN_MIN and distance is not None and distance >= AGAIN_MAX,
    }
    return Rater(
        sittings=len({trial.sitting for trial in ordered}),
        trials=len(ordered),
        ratings=sum(len(trial.points) for trial in ordered),
        straight_share=straight,
        rating_ms=rating_ms,
        drift=drift,
        followed=sum(checks),
        checks=len(checks),
        again=len(distances),
        again_distance=distance,
        flags=tuple(flag for flag, is_raised in flags.items() if is_raised),
    )


def _drift(ordered: Sequence[RatedTrial]) -> float | None:
    third = len(ordered) // 3
    if len(ordered) < TRIALS_MIN:
        return None
    ends = [
        [point for trial in part for point in trial.points.values()]
        for part in (ordered[:third], ordered[-third:])
    ]
    return fmean(ends[1]) - fmean(ends[0]) if all(ends) else None


def _again(ordered: Sequence[RatedTrial]) -> list[int]:
    """How far each rating of an anchor lies from the person's first one of it, in an earlier session."""
    first: dict[tuple[tuple[str, str], str], tuple[int, int]] = {}
    distances = []
    for trial in ordered:
        for question, point in trial.points.items() if trial.is_anchor else ():
            sitting, before = first.setdefault((trial.explanation, question), (trial.sitting, point))
            if sitting != trial.sitting:
                distances.append(abs(point - before))
    return distances
