"""LIME's arithmetic for texts: which words are hidden, which features are chosen, what they weigh.

It follows the package lime 0.2.0.1 in every draw and every formula, so that equal seeds give equal
coefficients. [Ribeiro, Singh and Guestrin 2016]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.random import RandomState  # the package's generator; one of our own per item, never the global one
from numpy.typing import NDArray

from stimuli.explainers.perturbation.surrogate import cosine_kernel, fit_share, ridge
from stimuli.explainers.text.removable_words import says_nothing

Floats = NDArray[np.float64]
Kept = NDArray[np.bool_]
Selection = Literal["auto", "highest_weights", "forward_selection"]
KERNEL_SCALE = 100.0
RIDGE = 1.0
RANKING_RIDGE = 0.01
GREEDY_MAX = 6
"""Up to so many features, "auto" adds one after the other."""


@dataclass(frozen=True, slots=True)
class LinearFit:
    """`values` float64 (features,), 0 for those not chosen; `chosen` in the order of choice; `share` of the
    weighted variance that the linear model explains.
    """

    values: Floats
    chosen: tuple[int, ...]
    share: float


def drawn_rows(features: int, samples: int, seed: int) -> Kept:
    """Which features are kept in each of `samples` copies, bool (samples, features); the first keeps all.

    The number of hidden features is uniform on 1 to all of them, then which ones.
    """
    state = RandomState(seed)
    sizes = state.randint(1, features + 1, samples - 1)
    rows = np.ones((samples, features), bool)
    for row, size in zip(rows[1:], sizes, strict=True):
        row[state.choice(features, size, replace=False)] = False
    return rows


def fit_words(rows: Kept, targets: Floats, top: int, kernel_width: float, selection: Selection) -> LinearFit:
    """The linear model around the text, on at most `top` features.

    `rows` bool (n, features), `targets` float64 (n,). Targets that are equal but for rounding have no
    explanation: nothing is chosen, and the share is 0.
    """
    if says_nothing(targets):
        return LinearFit(np.zeros(rows.shape[1]), (), 0.0)
    weights = cosine_kernel(rows, kernel_width, KERNEL_SCALE)
    design = rows.astype(np.float64)
    greedy = selection == "forward_selection" or (selection == "auto" and top <= GREEDY_MAX)
    chosen = (forward_selection if greedy else highest_weights)(design, targets, weights, top)
    part = design[:, chosen]
    coefficients = ridge(part, targets, weights, RIDGE)
    values = np.zeros(design.shape[1])
    values[chosen] = coefficients
    return LinearFit(values, tuple(chosen), fit_share(part, targets, weights, coefficients))


def highest_weights(design: Floats, targets: Floats, weights: Floats, top: int) -> list[int]:
    """The features with the largest coefficients when all are in the model."""
    coefficients = ridge(design, targets, weights, RANKING_RIDGE)
    return [int(at) for at in np.argsort(-np.abs(coefficients), kind="stable")[:top]]


def forward_selection(design: Floats, targets: Floats, weights: Floats, top: int) -> list[int]:
    """One feature after the other: each time the one with which least squares explain most.

    All candidates are judged at once: with the chosen features taken out of candidates and targets, the gain
    of a candidate is its squared product with what is left of the targets over its own square.
    """
    share = weights / weights.sum()
    root = np.sqrt(share)
    left = root * (targets - share @ targets)
    columns = root[:, None] * (design - share @ design)
    sizes = (columns**2).sum(0)
    chosen: list[int] = []
    for _ in range(min(top, design.shape[1])):
        squares = (columns**2).sum(0)
        # A feature that is a combination of the chosen ones has only rounding left.
        is_free = squares > 1e-12 * np.maximum(sizes, 1e-300)
        gains = np.where(is_free, (left @ columns) ** 2 / np.where(is_free, squares, 1.0), 0.0)
        gains[chosen] = -1.0
        best = int(np.argmax(gains))
        chosen.append(best)
        if is_free[best]:
            unit = columns[:, best] / np.sqrt(squares[best])
            left = left - unit * (unit @ left)
            columns = columns - np.outer(unit, unit @ columns)
    return chosen


def agreement(chosen: list[tuple[int, ...]]) -> float:
    """The mean share (0-1) of features that two choices have in common, over all pairs; empty ones agree."""
    shares = [
        len(set(first) & set(second)) / len(first) if first else float(not second)
        for at, first in enumerate(chosen)
        for second in chosen[:at]
    ]
    return float(np.mean(shares))
