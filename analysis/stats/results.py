"""What the tests share: intervals, group checks, and the one error of this room."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


class StatsError(ValueError):
    """A statistic is not defined for these values; the message says which value, the limit and the remedy."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A two-sided confidence interval. `level` is a share (0-1)."""

    low: float
    high: float
    level: float = 0.95

    def holds(self, value: float) -> bool:
        return self.low <= value <= self.high

    def as_json(self) -> list[float | None]:
        """[low, high]; an end that is not finite becomes null, which JSON can carry."""
        return [end if np.isfinite(end) else None for end in (self.low, self.high)]


def checked_level(level: float) -> float:
    if not 0 < level < 1:
        raise StatsError(f"Confidence level {level} is not between 0 and 1; use for example 0.95.")
    return level


def checked_groups(groups: Mapping[str, ArrayLike], *, least: int = 2) -> dict[str, Floats]:
    """Groups as float64 (n,) arrays, in the given order.

    Raises StatsError for fewer than two groups, a group with fewer than `least` values, values that are not
    finite, or no variance within any group.
    """
    if len(groups) < 2:
        raise StatsError(
            f"A comparison needs at least 2 groups, got {len(groups)}; wait for more participants."
        )
    arrays = {name: np.asarray(values, dtype=np.float64).ravel() for name, values in groups.items()}
    for name, values in arrays.items():
        if values.size < least:
            raise StatsError(
                f"Group '{name}' has {values.size} values, at least {least} are needed; wait for more "
                "participants."
            )
        if not np.isfinite(values).all():
            count = int((~np.isfinite(values)).sum())
            raise StatsError(
                f"Group '{name}' has {count} missing or infinite values; drop or fill them first."
            )
    if all(np.ptp(values) == 0 for values in arrays.values()):
        raise StatsError("No group has any variance, so no test is defined; look at the raw responses.")
    return arrays


def mean_interval(values: ArrayLike, *, level: float = 0.95) -> Interval | None:
    """Student's t interval of the mean of values (n,), or None where fewer than two values or no spread
    define none.
    """
    from scipy.stats import t

    array = np.asarray(values, dtype=np.float64)
    array = array[~np.isnan(array)]
    if array.size < 2 or np.ptp(array) == 0:
        return None
    half = float(t.ppf((1 + checked_level(level)) / 2, array.size - 1)) * float(
        array.std(ddof=1) / np.sqrt(array.size)
    )
    centre = float(array.mean())
    return Interval(centre - half, centre + half, level)
