"""How well a person without insight would do: blind strategies, scored exactly on the plans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from experiments.paradigms.base import Plan, PlannedTrial, Pool

TRUE_CLASS_RANGE = (0.40, 0.60)
"""Allowed range of the score of "true class" in a study that asks for balance."""

Features = Callable[[str], NDArray[np.generic]]
"""Item key -> its picture as an array of numbers; the same shape for all items."""


@dataclass(frozen=True, slots=True)
class BlindScore:
    """Expected share (0-1) of scored test trials that a strategy gets right.

    Per plan, in the order of the plans, and pooled over all trials of all plans.
    """

    strategy: str
    per_plan: tuple[float, ...]
    pooled: float

    @property
    def lowest(self) -> float:
        return min(self.per_plan)

    @property
    def highest(self) -> float:
        return max(self.per_plan)


@dataclass(frozen=True, slots=True)
class _Test:
    """A scored test trial with all that a blind person could use; `right` is what the plan calls right."""

    truth: str
    right: str
    item: str
    options: tuple[str, ...]
    turn: int
    learned: tuple[tuple[str, str], ...]


def blind_scores(
    plans: Sequence[Plan], pool: Pool, features: Features | None = None
) -> tuple[BlindScore, ...]:
    """Scores "true class", "always <value>" for each answer, "alternate", "majority", and "nearest".

    - true class: answers the item's true class.
    - always: the same answer throughout.
    - alternate: goes round the buttons from the left, counting every trial with these buttons, also repeats.
    - majority: the commonest label among the training trials of the reservoir (if it is empty: all earlier
    training trials); ties count as an even guess.
    - nearest (with `features`): the label of the nearest of these by Euclidean distance; ties likewise.

    Only test trials with a right answer count, without checks. Expected values, nothing is drawn. Plans
    without such trials are left out; without any such plan the result is empty.
    """
    tests = [rows for plan in plans if (rows := _tests(plan, pool))]
    if not tests:
        return ()
    strategies: dict[str, Callable[[_Test], float]] = {"true class": lambda t: float(t.truth == t.right)}
    for value, _ in pool.choices:
        strategies[f"always {value}"] = lambda t, value=value: float(value == t.right)  # type: ignore[misc]
    strategies["alternate"] = lambda t: float(t.options[t.turn % len(t.options)] == t.right)
    strategies["majority"] = _majority
    if features is not None:
        strategies["nearest"] = _nearest(tests, features)
    return tuple(_scored(name, strategy, tests) for name, strategy in strategies.items())


def imbalance(scores: Sequence[BlindScore]) -> str | None:
    """A sentence if "true class" leaves TRUE_CLASS_RANGE over all plans, else None."""
    low, high = TRUE_CLASS_RANGE
    for score in scores:
        if score.strategy == "true class" and not low <= score.pooled <= high:
            return (
                f"the true class is right in {score.pooled:.2f} of the test trials, {low:.2f} to {high:.2f} "
                'is balanced: set balance = "prediction_x_correct", with enough wrong predictions in the pool'
            )
    return None


def _tests(plan: Plan, pool: Pool) -> list[_Test]:
    items = {item.key: item for item in pool.items}
    by_position = {trial.position: trial for trial in plan.trials}
    out = []
    turn = 0
    for trial in plan.trials:
        is_scored = trial.right is not None and not trial.check
        if trial.phase != "test" or trial.item is None or not (is_scored or trial.check):
            continue
        if is_scored:
            item = items[trial.item]
            learned = tuple((t.item, items[t.item].predicted) for t in _learned(trial, by_position) if t.item)
            options = tuple(choice.value for choice in trial.choices)
            out.append(_Test(item.truth, trial.right or "", item.key, options, turn, learned))
        turn += 1
    return out


def _learned(trial: PlannedTrial, by_position: Mapping[int, PlannedTrial]) -> list[PlannedTrial]:
    if trial.reservoir:
        return [by_position[position] for position in trial.reservoir]
    return [t for t in by_position.values() if t.phase == "train" and t.position < trial.position]


def _majority(test: _Test) -> float:
    counts = Counter(label for _, label in test.learned)
    most = max(counts.values(), default=0)
    return _even_guess(test, [label for label, count in counts.items() if count == most])


def _nearest(tests: Sequence[Sequence[_Test]], features: Features) -> Callable[[_Test], float]:
    keys = sorted({key for plan in tests for t in plan for key in (t.item, *(item for item, _ in t.learned))})
    at = {key: place for place, key in enumerate(keys)}
    vectors = np.stack([np.asarray(features(key), dtype=np.float64).ravel() for key in keys])

    def strategy(test: _Test) -> float:
        learned = np.array([at[item] for item, _ in test.learned], dtype=int)
        distances = ((vectors[learned] - vectors[at[test.item]]) ** 2).sum(axis=1)
        nearest = distances == distances.min() if len(distances) else distances
        return _even_guess(
            test, [label for (_, label), near in zip(test.learned, nearest, strict=True) if near]
        )

    return strategy


def _even_guess(test: _Test, labels: Sequence[str]) -> float:
    if not labels:
        return 1 / len(test.options)
    return sum(label == test.right for label in labels) / len(labels)


def _scored(name: str, strategy: Callable[[_Test], float], tests: Sequence[Sequence[_Test]]) -> BlindScore:
    right = [[strategy(test) for test in plan] for plan in tests]
    pooled = sum(map(sum, right)) / sum(map(len, right))
    return BlindScore(name, tuple(sum(plan) / len(plan) for plan in right), pooled)
