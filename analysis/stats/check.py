"""Checks of what the functions of this room are given, and its one error.

Every public function of this room takes finite numbers of the shape that it names and returns finite numbers,
or raises StatsError: for text, missing or infinite values, tables instead of lists, lists of unequal length.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
Names = Sequence[object] | Codes
ROUNDING = 2.0**-46
"""As a share of the largest value: the rounding error of a sum of some dozen shares. A smaller spread counts
as none: 0.1 + 0.2 and 0.3 are equal."""
LARGEST = 1e50
"""Squares and their products then stay far from the largest number that a float64 holds."""
COUNT_MAX = 10**8


class StatsError(ValueError):
    """A statistic is not defined for these values; the message says which value, the limit and the remedy."""


def level(level: float) -> float:
    if not 0 < number(level, "The confidence level") < 1:
        raise StatsError(f"Confidence level {level} is not between 0 and 1; use for example 0.95.")
    return level


def _value_text(value: object) -> str:
    """At most 40 characters in one line."""
    return " ".join(repr(value).split())[:40]


def number(value: Any, what: str) -> float:
    """A finite number, not text. Raises StatsError."""
    # LARGEST is no float32, and whole numbers may be larger than any float.
    wide: Any = float(value) if isinstance(value, np.floating) else value
    is_number = isinstance(wide, (int, float, np.integer))
    if not is_number or not abs(wide) <= LARGEST:  # NaN too
        raise StatsError(f"{what} is {_value_text(value)}; give a number of magnitude at most {LARGEST:g}.")
    return float(value)


def count(value: Any, what: str, *, least: int = 0) -> int:
    """A whole number from `least` to COUNT_MAX. Raises StatsError."""
    is_whole = isinstance(value, Integral) or (isinstance(value, Real) and float(value).is_integer())
    if not is_whole or not least <= value <= COUNT_MAX:
        raise StatsError(f"{what} is {_value_text(value)}; give a whole number from {least} to {COUNT_MAX}.")
    return int(value)


def word(value: Any, what: str, words: Sequence[str]) -> None:
    """Raises StatsError unless `value` is one of two or more `words`."""
    if not isinstance(value, str) or value not in words:
        *others, last = map(repr, words)
        raise StatsError(f"{what} is {_value_text(value)}; name it {', '.join(others)} or {last}.")


def array(values: ArrayLike, what: str, *, dimensions: int = 1, missing: bool = False) -> Floats:
    """`values` as float64 with that many dimensions; NaN and None are let through if `missing`.

    Raises StatsError for text, another shape (a table is not flattened: its rows would count as people),
    and values that are missing, infinite or above LARGEST.
    """
    shape = {1: "one value per person", 2: "a table with one row per person"}[dimensions]
    try:
        raw = np.asarray(values)
        is_text = raw.dtype.kind in "USOMmc" and any(not _is_number_or_none(x) for x in raw.ravel().tolist())
        array = np.asarray(raw, dtype=np.float64) if not is_text else None
    except (TypeError, ValueError, OverflowError):
        array = None
    if array is None:
        raise StatsError(f"{what} must hold numbers in rows of equal length; give {shape}.")
    if array.ndim != dimensions:
        raise StatsError(f"{what} has the shape {array.shape}; give {shape}.")
    wrong = ~(np.abs(array) <= LARGEST) & ~(np.isnan(array) & missing)
    if wrong.any():
        raise StatsError(
            f"{what} has {int(wrong.sum())} missing or infinite values (or above {LARGEST:g}); "
            "drop or fill them first."
        )
    return array


def sequence(values: Any, what: str) -> Any:
    """`values` if they are a list, a text or an array (n,). Raises StatsError for None, a scalar, a
    generator, a set, a mapping and a table: their length is not known, or is no number of rows."""
    is_list = all(hasattr(values, name) for name in ("__len__", "__getitem__"))
    if not is_list or isinstance(values, Mapping) or getattr(values, "ndim", 1) != 1:
        raise StatsError(f"{what} are of the type {type(values).__name__}; give a list, one for each row.")
    return values


def mapping(values: Any, what: str) -> Any:
    """`values` if they are a mapping. Raises StatsError."""
    # The length of a data frame is its number of rows.
    if not isinstance(values, Mapping):
        raise StatsError(
            f"{what} are a {type(values).__name__}; give a mapping from names to values, such as a dict."
        )
    return values


def codes(names: Names, what: str) -> Codes:
    """Whole numbers from 0 without gaps, one for each name of (n,) `what`. Raises StatsError for lists of
    lists, and as `sequence` does."""
    sequence(names, f"The names of {what}")
    # Codes of a large table need not become texts.
    is_coded = isinstance(names, np.ndarray) and names.dtype.kind in "iu"
    try:
        codes = np.asarray(names) if is_coded else np.asarray(names, dtype=str)
    except ValueError:
        codes = np.empty((0, 0))
    if codes.ndim != 1:
        raise StatsError(f"The names of {what} are lists themselves; give one name per row.")
    return codes_again(codes)


def codes_again(codes: NDArray[np.generic]) -> Codes:
    """Codes from 0 without gaps, in the order of `codes` (n,)."""
    return np.asarray(np.unique(codes, return_inverse=True)[1], dtype=np.intp)


def _is_number_or_none(value: object) -> bool:
    return value is None or (isinstance(value, Real) and not isinstance(value, complex))


def has_spread(values: Floats) -> bool:
    """Whether values (n,) differ by more than rounding."""
    return bool(values.size) and float(np.ptp(values)) > ROUNDING * float(np.abs(values).max())


def groups(groups: Mapping[str, ArrayLike], *, least: int = 2) -> dict[str, Floats]:
    """Groups as float64 (n,) arrays, in the given order.

    Raises StatsError for anything but a mapping, fewer than two groups, a group with fewer than `least`
    values, values that are not finite numbers, or no variance (beyond rounding) within any group.
    """
    if len(mapping(groups, "The groups")) < 2:
        raise StatsError(
            f"A comparison needs at least 2 groups, got {len(groups)}; wait for more participants."
        )
    arrays = {name: array(values, f"Group '{name}'") for name, values in groups.items()}
    for name, values in arrays.items():
        if values.size < least:
            raise StatsError(
                f"Group '{name}' has {values.size} values, at least {least} are needed; "
                "wait for more participants."
            )
    if not any(has_spread(values) for values in arrays.values()):
        raise StatsError("No group has any variance, so no test is defined; look at the raw responses.")
    return arrays


def spreads(groups: Mapping[str, Floats]) -> None:
    """Raises StatsError unless every group (n_i,) has a variance of its own, for tests that pool none."""
    for name, values in groups.items():
        if not (has_spread(values) and float(values.var()) > 0):
            raise StatsError(
                f"Group '{name}' has no variance, and separate variances need some in every group; look at "
                "the raw responses, or assume equal variances."
            )
