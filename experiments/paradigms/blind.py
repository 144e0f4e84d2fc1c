"""How well a person without insight would do: blind strategies, scored exactly on the plans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from experiments.kinds import get_kind
from experiments.paradigms.base import GroupsTooLarge, Paradigm, Plan, PlanError, PlannedTrial, Pool

TRUE_CLASS_RANGE = (0.40, 0.60)
"""Allowed range of the score of "true class" in a study that asks for balance."""

ONE_ANSWER_MAX = 0.65
"""One answer may be right in this share of all test trials that ask for the model's answer. With two answers
that is 2 to 1. Beyond it a person who always gives one answer beats what people reach without explanations
(.50 to .65 in published studies), so that being right no longer tells who understands the model."""

LIKENESS_MAX = 0.65
"""Above this share of right answers over all plans, "nearest" leaves a method as little room as one answer
does, for the same reason."""

LIKENESS_PLAN_MAX = 0.85
"""The same for one plan, in which nothing is left to gain; or what the luckiest of as many plans would
reach by guessing, if that is more."""

NEAREST_PICTURE = "the nearest training picture, by pixels,"
NEAREST_TEXT = "the nearest training text, by words in common,"

Features = Callable[[str], NDArray[np.generic]]
"""Item key -> the item as an array of numbers; the same shape for all items."""


@dataclass(frozen=True, slots=True)
class BlindScore:
    """Expected share (0-1) of scored test trials that a strategy gets right.

    Per plan, in the order of the plans, and pooled over all trials of all plans; `tests` are the trials of
    each plan.
    """

    strategy: str
    per_plan: tuple[float, ...]
    pooled: float
    tests: tuple[int, ...] = ()

    @property
    def lowest(self) -> float:
        return min(self.per_plan)

    @property
    def highest(self) -> float:
        return max(self.per_plan)


@dataclass(frozen=True, slots=True)
class _Test:
    """A scored test trial with all that a blind person could use; `right` is what the plan calls right.
    `other` is the true class if people are asked for the model's answer, else the model's answer."""

    asks_for_model: bool
    other: str
    right: str
    item: str
    options: tuple[str, ...]
    turn: int
    learned: tuple[tuple[str, str], ...]


def blind_scores(
    plans: Sequence[Plan], pool: Pool, features: Features | None = None
) -> tuple[BlindScore, ...]:
    """Scores "true class" or "model's answer", "always <value>" for each answer, "alternate", "majority", and
    "nearest".

    - true class: answers the item's true class. If people are asked for what is true, "model's answer"
    instead: answers what the model says.
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
    strategies: dict[str, Callable[[_Test], float]] = {
        "true class" if tests[0][0].asks_for_model else "model's answer": lambda t: float(t.other == t.right)
    }
    for value, _ in pool.choices:
        strategies[f"always {value}"] = lambda t, value=value: float(value == t.right)  # type: ignore[misc]
    strategies["alternate"] = lambda t: float(t.options[t.turn % len(t.options)] == t.right)
    strategies["majority"] = _majority
    if features is not None:
        strategies["nearest"] = _nearest(tests, features)
    return tuple(_score_strategy(name, strategy, tests) for name, strategy in strategies.items())


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


def knowledge(scores: Sequence[BlindScore]) -> str | None:
    """A sentence if the true class is right too often to tell who understands the model, else None; of every
    study that asks for its model's answers, with any balance."""
    high = TRUE_CLASS_RANGE[1]
    for score in scores:
        if score.strategy == "true class" and score.pooled > high:
            return (
                f"the true class is right in {score.pooled:.2f} of the test trials, more than {high:.2f}: "
                "whoever knows the class seems to understand the model, without an explanation; set balance "
                '= "prediction_x_correct", with enough wrong predictions in the pool, or ask about classes '
                "that people cannot know"
            )
    return None


def opposite(scores: Sequence[BlindScore]) -> str | None:
    """A sentence if, of two answers, the one that is not the true class is right too often, else None."""
    answers = sum(score.strategy.startswith("always ") for score in scores)
    for score in scores:
        if score.strategy == "true class" and answers == 2 and 1 - score.pooled > ONE_ANSWER_MAX:
            return (
                f"the answer that is not the true class is right in {1 - score.pooled:.2f} of the test "
                f"trials, more than {ONE_ANSWER_MAX:.2f}: with two answers, whoever says the opposite of "
                "what they believe seems to understand the model; compare conditions, not people with "
                'chance, or set balance = "prediction_x_correct"'
            )
    return None


def likeness(scores: Sequence[BlindScore], answers: int, nearest: str = NEAREST_PICTURE) -> str | None:
    """A sentence if "nearest" is right too often, over all plans or in one of them, else None. `nearest` says
    what is nearest, and by what.

    A plan of few tests is often right throughout by luck: one that a guesser among `answers` answers reaches
    in some plan of as many, with a chance of .05, is not told.
    """
    from scipy.stats import binom

    for score in scores:
        if score.strategy != "nearest":
            continue
        if score.pooled > LIKENESS_MAX:
            return (
                f"the label of {nearest} is right in {score.pooled:.2f} of the test trials, more than "
                f"{LIKENESS_MAX:.2f}: people may succeed by likeness alone; compare methods with the "
                "baseline, not with chance, or take items that differ more"
            )
        reached = 1 - 0.05 / len(score.per_plan)
        high = [
            share
            for share, tests in zip(score.per_plan, score.tests, strict=True)
            if share > max(LIKENESS_PLAN_MAX, float(binom.ppf(reached, tests, 1 / answers)) / tests)
        ]
        if high:
            return (
                f"in {len(high)} of {len(score.per_plan)} plans the label of {nearest} is right in up to "
                f"{max(high):.2f} of the test trials, more than {LIKENESS_PLAN_MAX:.2f} and more than luck "
                "gives: no explanation can show a gain there; add items, or take such that differ more"
            )
    return None


def asks_for_model(paradigm: Paradigm) -> bool:
    """Whether a study of this paradigm may ask people for its model's answers."""
    return any(get_kind(kind).asks_for_model for kind in paradigm.kinds)


@dataclass(slots=True)
class ModelAnswers:
    """How often each answer is right in the test trials that ask for the model's answer."""

    counts: Counter[str] = field(default_factory=Counter)

    def watched(self, plans: Iterable[Plan]) -> Iterator[Plan]:
        """The same plans, counted as they pass."""
        for plan in plans:
            for trial in plan.trials:
                is_scored = trial.phase == "test" and not trial.check and trial.right is not None
                if is_scored and get_kind(trial.kind).asks_for_model:
                    self.counts[str(trial.right)] += 1
            yield plan

    def unfit(self, pool: Pool, unknowing: Sequence[str]) -> list[str]:
        """Why people cannot be asked for this model's answers: `unknowing` (what speaks against the model
        itself), an answer that it never gives, one that is right too often. Empty if no trial asks for it.
        """
        if not self.counts:
            return []
        return [*unknowing, *absent(pool), *self._one_answer()]

    def _one_answer(self) -> list[str]:
        answer, count = max(self.counts.items(), key=lambda pair: pair[1])
        share = count / self.counts.total()
        if share <= ONE_ANSWER_MAX:
            return []
        return [
            f"{answer!r} is right in {share:.2f} of the test trials, more than {ONE_ANSWER_MAX:.2f}: whoever "
            'always gives it seems to understand the model; set balance = "prediction_x_correct" or '
            '"prediction", with enough items of which the model says something else'
        ]


def shortage(error: PlanError, causes: Sequence[str]) -> str:
    """Why a study cannot be planned: with known causes instead of the usual remedies, unless groups are why:
    no other model would divide them."""
    if isinstance(error, GroupsTooLarge):
        return str(error)
    return "; ".join([getattr(error, "need", str(error)), *causes]) if causes else str(error)


def absent(pool: Pool) -> list[str]:
    """That the model gives an answer of the study to none of the items, if so."""
    given = {pool.predicted(item, c.name) for item in pool.items for c in pool.conditions}
    never = [value for value, _ in pool.choices if value not in given]
    if not never or not pool.items:
        return []
    return [
        f"the model says {' and '.join(map(repr, never))} of none of the pool's {len(pool.items)} items, so "
        "this answer is never right: add items of which it does, or leave the class out"
    ]


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
            said = pool.predicted(item, trial.condition)
            asks_for_model = get_kind(trial.kind).asks_for_model
            shown = [items[t.item] for t in _training_trials(trial, by_position) if t.item]
            # What is learned of an example is what is asked of others.
            learned = tuple((i.key, i.predicted if asks_for_model else i.truth) for i in shown)
            options = tuple(choice.value for choice in trial.choices)
            other = item.truth if asks_for_model else said
            out.append(_Test(asks_for_model, other, trial.right or "", item.key, options, turn, learned))
        turn += 1
    return out


def _training_trials(trial: PlannedTrial, by_position: Mapping[int, PlannedTrial]) -> list[PlannedTrial]:
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


def _score_strategy(
    name: str, strategy: Callable[[_Test], float], tests: Sequence[Sequence[_Test]]
) -> BlindScore:
    right = [[strategy(test) for test in plan] for plan in tests]
    pooled = sum(map(sum, right)) / sum(map(len, right))
    shares = tuple(sum(plan) / len(plan) for plan in right)
    return BlindScore(name, shares, pooled, tuple(len(plan) for plan in right))
