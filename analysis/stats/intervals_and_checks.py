"""What the results of all tests share: intervals, and their form as rows of a table or as JSON."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from analysis.stats import check

# Reporters of installed packages import these from here.
from analysis.stats.check import ROUNDING as ROUNDING
from analysis.stats.check import Codes as Codes
from analysis.stats.check import Floats as Floats
from analysis.stats.check import Names as Names
from analysis.stats.check import StatsError as StatsError
from analysis.stats.check import codes_again as codes_again
from analysis.stats.check import has_spread as has_spread

Row = dict[str, float | int | str | None]
"""One row of a result as a table: column -> value, in the order of the columns. A list of them is what
`pandas.DataFrame` takes."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A two-sided confidence interval. `level` is a share (0-1). An infinite end: there is no bound."""

    low: float
    high: float
    level: float = 0.95

    def holds(self, value: float) -> bool:
        return self.low <= value <= self.high

    def as_json(self) -> list[float | None]:
        """[low, high]; an end that is not finite becomes null, which JSON can carry."""
        return [end if np.isfinite(end) else None for end in (self.low, self.high)]


def ends_of(interval: Interval | None, before: str = "", after: str = "") -> Row:
    """The columns low and high of a table, with what stands `before` and `after` these words; None without an
    interval, or without a bound."""
    low, high = interval.as_json() if interval else (None, None)
    return {f"{before}low{after}": low, f"{before}high{after}": high}


def row_of(result: Any, *names: str) -> Row:
    """Fields of a result as columns: those named, in that order, or all. An `interval` is low and high."""
    row: Row = {}
    for name in names or [field.name for field in fields(result)]:
        value = getattr(result, name)
        row |= ends_of(value) if name == "interval" else {name: value}
    return row


def json_of(result: Any, *names: str, **others: str) -> dict[str, Any]:
    """Fields of a result as values that JSON can carry: those named, in that order, or all; then `others`,
    the field by its key. An interval, or what else has a form for JSON, is given in that."""
    every = [] if names or others else [field.name for field in fields(result)]
    keys = {name: name for name in names or every} | others
    values = {key: getattr(result, name) for key, name in keys.items()}
    return {key: value.as_json() if hasattr(value, "as_json") else value for key, value in values.items()}


def finite(value: float, what: str) -> float:
    """The result. Raises StatsError if it is outside the range that can be computed."""
    if not math.isfinite(value):
        raise StatsError(f"{what} cannot be computed from these values; look at the raw responses.")
    return value


def mean_interval(values: ArrayLike, *, level: float = 0.95) -> Interval | None:
    """Student's t interval of the mean of values (n,), NaN left out. None if fewer than two values or no
    spread define none. Raises StatsError for anything but numbers.
    """
    from scipy.stats import t

    check.level(level)
    array = check.array(values, "The sample", missing=True)
    array = array[~np.isnan(array)]
    if array.size < 2 or not has_spread(array):
        return None
    half = float(t.ppf((1 + level) / 2, array.size - 1)) * float(array.std(ddof=1) / np.sqrt(array.size))
    centre = float(array.mean())
    return Interval(finite(centre - half, "The interval"), finite(centre + half, "The interval"), level)
