"""How well a label is told from features of other people's rows, on ranks: cross-validated, with intervals by
bootstrap of people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

FOLDS, ROUND, RIDGE, RESAMPLES = 4, 8, 1e-3, 2000
"""Folds are of whole rounds of so many leads, over which every task is balanced: within a round, who learnt
what a task was for one lead would expect the same of the next, who is given the opposite."""
UPPER_MAX = 0.60
"""What is at chance has an upper 95 % limit of the AUC below this."""
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Told:
    """Area under the ROC curve over `n` rows of `groups` groups, with its intervals of 95 % and of 99.9 %."""

    auc: float
    usual: tuple[float, float]
    wide: tuple[float, float]
    n: int
    groups: int

    @property
    def is_told(self) -> bool:
        """Better than chance; in one of two thousand runs by luck."""
        return self.wide[0] > 0.5

    @property
    def is_at_chance(self) -> bool:
        """The wide interval holds .5, and even the upper end of the usual one is small. The wide one misses
        .5 in one of a thousand runs if there is nothing to be told, the usual one in one of twenty."""
        return self.wide[0] <= 0.5 <= self.wide[1] and self.usual[1] < UPPER_MAX

    def __str__(self) -> str:
        low, high = self.usual
        holds = "holds" if low <= 0.5 <= high else "misses"
        return (
            f"AUC {self.auc:.3f}, 95 % interval {low:.3f} to {high:.3f}, which {holds} .5; "
            f"n = {self.n} of {self.groups} people"
        )


class Decoder(Protocol):
    """Learns from some rows, and says of others how likely their label is; any scale."""

    def __call__(self, learnt: Floats, label: Flags, asked: Floats) -> Floats: ...


def by_ridge(learnt: Floats, label: Flags, asked: Floats) -> Floats:
    """Ridge regression."""
    middle, target = learnt.mean(0), label - label.mean()
    matrix = (learnt - middle).T @ (learnt - middle) + RIDGE * len(learnt) * np.eye(learnt.shape[1])
    said: Floats = (asked - middle) @ np.linalg.solve(matrix, (learnt - middle).T @ target)
    return said


def by_trees(learnt: Floats, label: Flags, asked: Floats) -> Floats:
    """A random forest, which sees what no sum of features tells."""
    from sklearn.ensemble import RandomForestClassifier

    forest = RandomForestClassifier(200, min_samples_leaf=5, random_state=1)
    return np.asarray(forest.fit(learnt, label).predict_proba(asked)[:, 1])


def told(features: Floats, label: Flags, groups: NDArray[np.int64], decoder: Decoder = by_ridge) -> Told:
    """`features` (N, F), `label` (N,), `groups` (N,): the leads by their places in the plan."""
    ranked = np.stack([_ranks(column) for column in features.T], 1)
    said = np.zeros(len(label))
    for fold in range(FOLDS):
        out = groups // ROUND % FOLDS == fold
        if not out.any():
            continue
        said[out] = decoder(ranked[~out], label[~out], ranked[out])
    rng, names = np.random.default_rng(1), np.unique(groups)
    of_group = [np.flatnonzero(groups == name) for name in names]
    drawn = []
    for _ in range(RESAMPLES):
        rows = np.concatenate([of_group[at] for at in rng.integers(0, len(names), len(names))])
        drawn.append(auc(said[rows], label[rows]))
    usual, wide = (_interval(drawn, tail) for tail in (2.5, 0.05))
    return Told(auc(said, label), usual, wide, len(label), len(names))


def auc(said: Floats, label: Flags) -> float:
    """The share of pairs of a row with the label and one without in which the first is said to be likelier;
    ties count half [Mann and Whitney 1947]."""
    ranks = (_ranks(said) + 1) / 2 * (len(said) - 1)
    ones = int(label.sum())
    pairs = ones * (len(said) - ones)
    return float((ranks[label].sum() - ones * (ones - 1) / 2) / pairs) if pairs else 0.5


def _interval(drawn: Any, tail: float) -> tuple[float, float]:
    low, high = np.percentile(drawn, [tail, 100 - tail])
    return float(low), float(high)


def _ranks(values: Floats) -> Floats:
    """Ranks from -1 to 1; equal values share theirs."""
    order, inverse = np.unique(values, return_inverse=True)
    counts = np.bincount(inverse)
    middles = np.cumsum(counts) - (counts + 1) / 2
    return np.asarray(2 * middles[inverse] / max(1, len(values) - 1) - 1 if len(order) > 1 else 0 * values)
