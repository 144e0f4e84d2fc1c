"""The sensitivity analysis for matched plans: condition, adjusted for the plan that people of all
conditions share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import f as f_distribution

from analysis.stats import check
from analysis.stats.intervals_and_checks import ROUNDING, Floats, StatsError, finite

Codes = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class BlockedAnova:
    """F of the condition in a randomised-block design (condition + block, no interaction).

    `blocks` counts the blocks that hold at least two people; only these carry information about conditions.
    `partial_eta_squared` = SS_condition / (SS_condition + SS_residual), SS of condition adjusted for blocks.
    """

    f: float
    df_condition: int
    df_residual: int
    p: float
    partial_eta_squared: float
    blocks: int


def randomised_block(values: ArrayLike, conditions: Sequence[str], blocks: Sequence[int]) -> BlockedAnova:
    """Compares least squares with and without condition, both with blocks; values float (n,), one per person.

    Empty cells are allowed (type II sums of squares). Raises StatsError if no residual degrees of freedom
    are left, for example because no block was filled in two conditions.
    """
    y = check.array(values, "The blocked analysis")
    check.sequence(conditions, "The conditions")
    check.sequence(blocks, "The blocks")
    if y.size == 0 or not y.size == len(conditions) == len(blocks):
        raise StatsError(
            f"The blocked analysis got {y.size} values, {len(conditions)} conditions and {len(blocks)} "
            "blocks; give one of each per person, and at least one person."
        )
    block = _codes([str(name) for name in blocks])
    sizes = np.bincount(block)
    condition = _codes([str(name) for name in conditions])
    levels = np.eye(int(condition.max()) + 1)[condition]
    # Centring within blocks leaves what a fit with one column per block would leave (the theorem of Frisch,
    # Waugh and Lovell), so thousands of blocks cost no more than the conditions do.
    y_left, x_left = _centre_columns(y[:, None], block)[:, 0], _centre_columns(levels, block)
    coefficients, _, rank, _ = np.linalg.lstsq(x_left, y_left, rcond=None)
    rss_blocks, rss_full = float((y_left**2).sum()), float(((y_left - x_left @ coefficients) ** 2).sum())
    df_condition, df_residual = int(rank), y.size - sizes.size - int(rank)
    if df_condition < 1 or df_residual < 1 or rss_full <= y.size * (ROUNDING * float(np.abs(y).max())) ** 2:
        raise StatsError(
            f"The blocked analysis has {df_condition} and {df_residual} degrees of freedom and residual "
            f"{rss_full:.3g}; it needs plans that were completed in at least two conditions, and some spread."
        )
    ss_condition = rss_blocks - rss_full
    f = ss_condition / df_condition / (rss_full / df_residual)
    return BlockedAnova(
        f=finite(f, "F of the blocked analysis"),
        df_condition=df_condition,
        df_residual=df_residual,
        p=float(f_distribution.sf(f, df_condition, df_residual)),
        partial_eta_squared=ss_condition / (ss_condition + rss_full),
        blocks=int((sizes >= 2).sum()),
    )


def _codes(names: Sequence[str]) -> Codes:
    """Whole numbers from 0 in order of first appearance."""
    levels = {name: index for index, name in enumerate(dict.fromkeys(names))}
    return np.array([levels[name] for name in names], dtype=np.intp)


def _centre_columns(columns: Floats, block: Codes) -> Floats:
    """Columns (n, k) less their mean within each block."""
    sums = np.zeros((int(block.max()) + 1, columns.shape[1]))
    np.add.at(sums, block, columns)
    return columns - (sums / np.bincount(block)[:, None])[block]
