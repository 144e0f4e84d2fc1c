"""Correlations, by standardising both sides once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def standardise_values(values: Floats, correlation: str, flat: float = 1e-12) -> Floats | None:
    """The values (n,), or with "spearman" their ranks (ties share the mean rank), with mean 0 and length 1.

    The product of two is their correlation. None if they are constant: if their range is at most `flat` times
    their largest magnitude.
    """
    if float(np.ptp(values)) <= flat * float(np.abs(values).max(initial=0)):
        return None
    if correlation == "spearman":
        from scipy.stats import rankdata

        values = rankdata(values)
    centred = values - values.mean()
    return np.asarray(centred / np.sqrt(np.square(centred).sum()), np.float64)


def product(first: Floats, second: Floats) -> float:
    """The correlation of two standardised rows, in -1 to 1."""
    return float(np.clip(first @ second, -1, 1))
