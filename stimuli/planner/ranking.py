"""One order for pixels of equal value, shared by all methods, metrics and pictures.

By index, ties would go from top to bottom, and a map with many zeros would be scored for where the picture's
upper edge lies.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stimuli.planner.values import counted_generator


def most_important_first(values: ArrayLike) -> NDArray[np.int64]:
    """Flat indices (n,) by descending value; equal values in the one drawn order of `n` places."""
    flat = np.asarray(values).ravel()
    drawn = _drawn_order(flat.size)
    return drawn[np.argsort(-flat[drawn], kind="stable")]


@lru_cache(maxsize=8)
def _drawn_order(count: int) -> NDArray[np.int64]:
    order = counted_generator(f"ties\x1f{count}").permutation(count).astype(np.int64)
    order.setflags(write=False)
    return order
