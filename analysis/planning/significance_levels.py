"""The levels at which planned contrasts are tested, of a plan with looks and of one without."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from experiments.definition.preregistration_table import ALPHA

if TYPE_CHECKING:
    from analysis.stats.planning.sequential_looks import Spending


def planned_levels(document: Mapping[str, Any], sizes: Sequence[int]) -> tuple[float, ...]:
    """Of each planned look, and last of the end; only of the end if the plan names none. `sizes` are the
    places of each condition, the baseline among them. Raises StatsError for looks that the places do not
    allow."""
    alpha, looks = float(document.get("alpha") or ALPHA), document.get("looks")
    if not looks:
        return (alpha,)
    return _levels(tuple(looks), max(sizes, default=0), document["boundary"], alpha, len(sizes) - 1)


@cache
def _levels(
    looks: tuple[int, ...], places: int, boundary: Spending, alpha: float, contrasts: int
) -> tuple[float, ...]:
    # Imported here, with SciPy: pages and commands that start often need no level.
    from analysis.stats.planning.sequential_looks import LookPlan, family_levels

    shares = tuple(people / max(1, places) for people in (*looks, places))
    return family_levels(LookPlan(shares, boundary, alpha), contrasts)
