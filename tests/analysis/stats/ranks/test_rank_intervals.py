"""Intervals of ranks hold their level, and say what two methods are known to be."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ttest_ind

from analysis.stats.intervals_and_checks import StatsError
from analysis.stats.ranks.method_rank_intervals import rank_methods

pytestmark = pytest.mark.pure
BASE = {"first": "base", "later": "base"}


def people(mean: float, n: int, rng: np.random.Generator) -> np.ndarray:
    """Accuracies of 21 answers each, with a spread between people."""
    return rng.binomial(21, rng.beta(12 * mean, 12 * (1 - mean), n)) / 21


def test_two_methods_of_a_study_are_told_apart_as_a_t_test_tells_them() -> None:
    rng = np.random.default_rng(3)
    for _ in range(40):
        a, b = people(0.62, 40, rng), people(0.72, 40, rng)
        study = {"base": people(0.6, 40, rng), "a": a, "b": b}
        ranks = {r.condition: r for r in rank_methods({"first": study}, BASE)}
        # The witness: Welch's test of the accuracies themselves, if it is far from the limit.
        p = ttest_ind(a, b, equal_var=False).pvalue
        if p < 0.02 or p > 0.10:
            assert ((ranks["a"].best, ranks["a"].worst) == (1, 2)) == (p > 0.05)
            top = "a" if a.mean() > b.mean() else "b"
            assert ranks[top].rank == 1 and ranks["a"].rank + ranks["b"].rank == 3


def test_the_true_ranks_lie_in_all_intervals_at_the_level() -> None:
    rng = np.random.default_rng(11)
    means = {"first": {"base": 0.6, "a": 0.6, "b": 0.6, "c": 0.72}, "later": {"base": 0.6, "d": 0.84}}
    utility = {"a": 1.0, "b": 1.0, "c": 1.2, "d": 1.4}
    inside, told = 0, 0
    for _ in range(1000):
        studies = {s: {c: people(m, 20, rng) for c, m in of.items()} for s, of in means.items()}
        ranks = rank_methods(studies, BASE)
        # Equal methods may take any rank of their group.
        inside += all(
            r.best <= 1 + sum(u > utility[r.condition] for u in utility.values())
            and r.worst >= sum(u >= utility[r.condition] for u in utility.values())
            for r in ranks
        )
        told += next(r for r in ranks if r.condition == "d").worst < 4
    assert inside >= 940, "below 95 % by more than drawing explains"
    assert told > 500, "the best method is told from at least one other in most studies"


def test_a_baseline_of_its_own_divides_each_study() -> None:
    """People who are better all round raise accuracy and baseline alike, and so no rank."""
    low = {"base": [0.4, 0.5, 0.6], "a": [0.5, 0.6, 0.7]}
    high = {"base": [0.8, 0.9, 1.0], "b": [0.8, 0.9, 1.0]}
    ranks = {r.condition: r for r in rank_methods({"first": low, "later": high}, BASE)}
    assert ranks["a"].utility == pytest.approx(1.2) and ranks["b"].utility == pytest.approx(1.0)
    assert (ranks["a"].rank, ranks["b"].rank) == (1, 2)
    assert {(r.best, r.worst) for r in ranks.values()} == {(1, 2)}


@pytest.mark.parametrize(
    ("studies", "said"),
    [
        ({"first": {"base": [0.5, 0.6], "a": [0.5, 0.6]}}, "at least 2 methods, got 1"),
        ({"first": {"a": [0.5, 0.6], "b": [0.4, 0.6]}}, "'first' has no baseline"),
        ({"first": {"base": [0.5, 0.6], "a": [0.5], "b": [0.4, 0.6]}}, "'a' of 'first' has 1 people"),
        ({"first": {"base": [0.5, 0.6], "a": [0.5, 0.5], "b": [0.4, 0.6]}}, "no variance"),
        ({"first": {"base": [0.5, 0.6], "a": [50, 60], "b": [0.4, 0.6]}}, "accuracies in 0-1"),
    ],
)
def test_bad_input_is_told(studies: dict[str, dict[str, list[float]]], said: str) -> None:
    with pytest.raises(StatsError, match=said):
        rank_methods(studies, BASE)
