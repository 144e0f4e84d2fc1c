"""The chances that a guesser and an attentive person pass the screening rules."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.design.rng import Streams
from experiments.kinds import get_kind
from experiments.kinds.base import INSTRUCTED, KNOWN, REPEAT
from experiments.paradigms.base import Plan, PlannedTrial
from experiments.paradigms.screening import Rule, read_rules

GUESSER_PASS_MAX = 0.10
"""If a guesser passes all rules with a higher chance, the study gets a warning."""

SLIP_SHARE = 0.05
"""The share of wrong answers that the attentive person gives by mistake."""

SIMULATED_PEOPLE = 20_000


@dataclass(frozen=True, slots=True)
class PassProbability:
    """The chance (0-1) to pass all rules, and each rule alone.

    `exact` is False if the answer-share rule had to be simulated. `assumed` names rules taken as passed,
    since chance does not bear on them (times, completeness, gates whose questions are not given).
    """

    total: float
    by_rule: Mapping[str, float]
    exact: bool
    assumed: tuple[str, ...]


def pass_probability(
    plan: Plan,
    rules: Mapping[str, Any],
    slip_share: float | None = None,
    gates: Mapping[str, Sequence[int]] | None = None,
    seed: int = 0,
) -> PassProbability:
    """The chance that one person passes all `rules` (a `[screening]` table) together on this plan.

    Without `slip_share` the person guesses: each answer is drawn evenly from its options. With it (0-1),
    check and gate questions are answered right but for that share. `gates` gives the number of options of
    each question of "quiz" and "practice", all of which must be right in one try, tries being independent.
    Unchecked test trials are taken as answered evenly by both. The rules then bear on different trials, so
    the total is the product: binomial for the shares of checks, multinomial for the share of one answer, or
    simulated (20,000 people, seeded) if test trials differ in their options.
    """
    known = read_rules(rules)
    by_rule: dict[str, float] = {}
    assumed = []
    exact = True
    for name, rule in known.items():
        if name in ("instructed_share_min", "repeat_share_min"):
            check = INSTRUCTED if name == "instructed_share_min" else REPEAT
            asked = [len(trial.choices) for trial in plan.trials if trial.check == check]
            by_rule[name] = _share_passed(rule, asked, slip_share)
        elif name == "known_share_min":
            # That a region has to fit as well makes a guess harder still.
            known_tasks = [len(t.choices) for t in plan.trials if t.extra.get("use") == KNOWN]
            by_rule[name] = _share_passed(rule, known_tasks, slip_share)
        elif name == "side_share_max":
            sizes = _answer_sizes(plan)
            exact = len(set(sizes)) <= 1
            by_rule[name] = _side_passed(_limit(rule), sizes, seed)
        elif name.endswith("_attempts_max") and (gates or {}).get(name.removesuffix("_attempts_max")):
            options = (gates or {})[name.removesuffix("_attempts_max")]
            once = math.prod(_right(count, slip_share) for count in options)
            by_rule[name] = 1 - (1 - once) ** int(_limit(rule))
        else:
            assumed.append(name)
    return PassProbability(math.prod(by_rule.values()), by_rule, exact, tuple(assumed))


def _right(options: int, slip_share: float | None) -> float:
    return 1 / options if slip_share is None else 1 - slip_share


def _share_passed(rule: Rule, asked: Sequence[int], slip_share: float | None) -> float:
    """`asked` are the numbers of options of what a share is taken of."""
    if not asked:
        return 1.0
    # Right answers among checks with unequal chances: the Poisson-binomial distribution, one check at a time.
    right = np.array([1.0])
    for options in asked:
        chance = _right(options, slip_share)
        right = np.convolve(right, [1 - chance, chance])
    needed = math.ceil(_limit(rule) * len(asked) - 1e-6)
    return float(min(1.0, right[needed:].sum()))


def _answer_sizes(plan: Plan) -> list[int]:
    tests = [trial for trial in plan.trials if trial.phase == "test" and not trial.check]
    return [len(trial.choices) for trial in tests for _ in range(_answer_count(trial))]


def _answer_count(trial: PlannedTrial) -> int:
    """How many single answers one value of this trial gives."""
    kind = get_kind(trial.kind)
    return len(kind.answers(kind.preview(trial.view())))


def _side_passed(limit: float, sizes: Sequence[int], seed: int) -> float:
    if not sizes:
        return 1.0
    most = math.floor(limit * len(sizes) + 1e-6)
    if len(set(sizes)) == 1:
        return _none_above(most, len(sizes), sizes[0])
    rng = Streams(seed)("pass probability")
    answers = np.column_stack([rng.integers(size, size=SIMULATED_PEOPLE) for size in sizes])
    highest = np.max([(answers == option).sum(axis=1) for option in range(max(sizes))], axis=0)
    return float((highest <= most).mean())


def _none_above(most: int, answers: int, options: int) -> float:
    """Chance that none of `options` equally likely answers is given more than `most` times."""
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, answers + 1)))])
    left = np.zeros(answers + 1)
    left[answers] = 1.0
    for option in range(options - 1):
        after = np.zeros_like(left)
        for remaining in np.flatnonzero(left):
            given = np.arange(min(most, int(remaining)) + 1)
            kept = remaining - given
            ways = log_factorial[remaining] - log_factorial[given] - log_factorial[kept]
            chance = 1 / (options - option)
            after[kept] += left[remaining] * np.exp(
                ways + given * math.log(chance) + kept * math.log1p(-chance)
            )
        left = after
    return float(min(1.0, left[: most + 1].sum()))


def _limit(rule: Rule) -> float:
    assert not isinstance(rule.limit, tuple)
    return rule.limit
