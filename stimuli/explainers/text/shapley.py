"""Shapley values of words: exactly over all subsets, or by random orders walked in both directions."""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial

import numpy as np
from numpy.typing import NDArray

from stimuli.planner.values import Subject

Floats = NDArray[np.float64]
Kept = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Coalitions:
    """The subsets that have to be scored: `rows` bool (n, features), the first keeps nothing, the last all.

    For the exact values they are all subsets in binary order; for orders `walks` int (orders, features + 1)
    are the places in `rows` along each way from nothing to all, and `orders` (orders, features) who joins.
    """

    rows: Kept
    orders: NDArray[np.int64] | None = None
    walks: NDArray[np.int64] | None = None

    def values(self, scores: Floats) -> Floats:
        """Shapley values float64 (features,) from the scores (n,) of the rows."""
        if self.orders is None or self.walks is None:
            return _exact(scores, self.rows.shape[1])
        gains = np.diff(scores[self.walks], axis=1)
        total = np.zeros(self.rows.shape[1])
        np.add.at(total, self.orders, gains)
        return total / len(self.orders)


def all_coalitions(features: int) -> Coalitions:
    """Every subset, 2 ** features of them."""
    numbers = np.arange(1 << features)
    return Coalitions((numbers[:, None] >> np.arange(features)) & 1 == 1)


def drawn_coalitions(features: int, orders: int, subject: Subject) -> Coalitions:
    """The subsets along `orders` random orders and their reverses, each subset once."""
    drawn = [subject.draws("shapley", number).permutation(features) for number in range(orders)]
    ways = np.array([way for order in drawn for way in (order, order[::-1])], np.int64)
    ranks = np.argsort(ways, axis=1)
    steps = np.arange(features + 1)
    kept = ranks[:, None, :] < steps[None, :, None]  # (ways, features + 1, features)
    rows, inverse = np.unique(kept.reshape(-1, features), axis=0, return_inverse=True)
    return Coalitions(rows, ways, np.asarray(inverse, np.int64).reshape(len(ways), features + 1))


def _exact(scores: Floats, features: int) -> Floats:
    numbers = np.arange(1 << features)
    sizes = np.array([int(number).bit_count() for number in numbers])
    weights = np.array([factorial(s) * factorial(features - s - 1) for s in range(features)], np.float64)
    weights /= factorial(features)
    values = np.empty(features)
    for feature in range(features):
        without = numbers[(numbers >> feature) & 1 == 0]
        values[feature] = weights[sizes[without]] @ (scores[without | (1 << feature)] - scores[without])
    return values
