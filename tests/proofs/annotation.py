"""How many ratings active annotation saves: chosen by disagreement and at random, by simulated raters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.isotonic import IsotonicRegression

from stimuli.errors import BadRatings
from stimuli.preference.active_annotation import disagreement, rated_next
from stimuli.preference.encoders import Vectors
from stimuli.preference.prediction_agreement import Floats, kappa
from stimuli.preference.scorer_estimator import PreferenceScorer

RUNS_MIN = 20
"""Fewer runs of simulated raters say too little of what is saved."""
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class AnnotationPlan:
    """`first` explanations are drawn and rated, then `rounds` times `step` more, by `heads` heads."""

    first: int = 60
    step: int = 60
    rounds: int = 6
    heads: int = 4
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def counts(self) -> list[int]:
        return [self.first + self.step * turn for turn in range(self.rounds + 1)]


def learning_curves(
    vectors: Vectors, wanted: Floats, plan: AnnotationPlan, seed: int
) -> tuple[list[float], list[float]]:
    """Weighted kappa after each round, chosen by disagreement and at random: on a third of the rows, drawn
    before and never chosen. Both begin with the same rated rows; `wanted` (n,), 1..5."""
    rng = np.random.default_rng([seed, 0])
    order = rng.permutation(len(wanted))
    test, pool = order[: len(order) // 3], order[len(order) // 3 :]
    if len(pool) < plan.counts[-1]:
        raise BadRatings(
            f"{len(pool)} explanations can be chosen from and {plan.counts[-1]} are to be rated: take fewer"
        )
    curves: list[list[float]] = []
    for is_active in (True, False):
        rows, curve = list(pool[: plan.first]), []
        for turn in range(plan.rounds + 1):
            scorer = PreferenceScorer(
                seed=[seed * plan.heads + head for head in range(plan.heads)], **dict(plan.options)
            )
            scorer.fit(vectors[rows], np.repeat(wanted[rows][:, None], plan.heads, axis=1))
            answers = scorer.predict(vectors)
            curve.append(kappa(answers[test].mean(axis=1), wanted[test]))
            left = np.setdiff1d(pool, rows, assume_unique=True)
            if turn == plan.rounds:
                break
            if is_active:
                spread = disagreement(answers[left], ["rating"] * plan.heads)
                rows += list(left[rated_next(spread, np.zeros(len(left), np.bool_), plan.step)])
            else:
                rows += list(np.random.default_rng([seed, 1, turn]).permutation(left)[: plan.step])
        curves.append(curve)
    return curves[0], curves[1]


@dataclass(frozen=True, slots=True)
class Saved:
    """`share` (below 1) of the ratings that random choice needs for the kappa that it ends with, saved by
    disagreement; negative if more are needed. `low`, `high`: percentiles over drawn runs."""

    share: float
    low: float
    high: float
    runs: int


def ratings_saved(
    active: Floats, random: Floats, counts: Sequence[int], *, draws: int = 1000, seed: int = 0
) -> Saved:
    """Of curves (runs, rounds + 1) after `counts` ratings each. The mean curves are made monotone, and the
    kappa that both reach is compared. Raises BadRatings for fewer than RUNS_MIN runs."""
    if len(active) < RUNS_MIN or active.shape != random.shape or active.shape[1] != len(counts):
        raise BadRatings(
            f"curves of {len(active)} runs with {active.shape[1]} counts: at least {RUNS_MIN} of each way "
            f"are needed, with {len(counts)} counts"
        )
    rng = np.random.default_rng(seed)
    drawn = []
    for _ in range(draws):
        runs = rng.integers(0, len(active), len(active))
        drawn.append(_saved(active[runs].mean(axis=0), random[runs].mean(axis=0), counts))
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    share = _saved(active.mean(axis=0), random.mean(axis=0), counts)
    return Saved(share, float(low), float(high), len(active))


def _saved(active: Floats, random: Floats, counts: Sequence[int]) -> float:
    """1 - ratings of one way / ratings of the other, for the highest kappa that both reach."""
    first, second = (_monotone(curve, counts) for curve in (active, random))
    level = min(first[-1], second[-1])
    return 1 - _needed(first, counts, level) / _needed(second, counts, level)


def _monotone(curve: Floats, counts: Sequence[int]) -> Floats:
    return np.asarray(IsotonicRegression().fit_transform(counts, curve), dtype=np.float64)


def _needed(curve: Floats, counts: Sequence[int], level: float) -> float:
    """The ratings after which a monotone curve first reaches the level, between counts linearly."""
    place = int(np.argmax(curve >= level - 1e-12))
    if place == 0:
        return float(counts[0])
    below, above = curve[place - 1], curve[place]
    share = (level - below) / (above - below) if above > below else 1.0
    return float(counts[place - 1] + share * (counts[place] - counts[place - 1]))
