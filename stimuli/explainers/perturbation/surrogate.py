"""The linear model of a network around one item, which LIME and similar methods show."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def ridge(design: ArrayLike, targets: ArrayLike, weights: ArrayLike, alpha: float) -> Floats:
    """Coefficients of the weighted ridge regression of `targets` on `design`, float64.

    `design` (n, d), `targets` (n,) or (n, m), `weights` (n,) not negative with a positive sum, `alpha` the
    penalty on the coefficients; the constant is fitted too, is not penalised and not returned. The answer is
    (d,) or (d, m). Solved by the normal equations; with `alpha` 0 and a rank that is too low, the shortest
    of the solutions.
    """
    x, y, w = (np.asarray(values, np.float64) for values in (design, targets, weights))
    share = w / w.sum()
    x = x - share @ x
    y = y - share @ y
    weighted = x.T * w
    normal = weighted @ x
    right = weighted @ y
    if alpha > 0:
        normal[np.diag_indices_from(normal)] += alpha
        return np.asarray(np.linalg.solve(normal, right), np.float64)
    return np.asarray(np.linalg.lstsq(normal, right, rcond=None)[0], np.float64)


def cosine_kernel(kept: NDArray[np.bool_], width: float, scale: float = 1.0) -> Floats:
    """Weights (n,) of copies that keep some of the parts, bool (n, d): near the whole item they are near 1.

    The square root of exp(-(distance / width)^2), with `scale` times the cosine distance of a row to the row
    that keeps all: 1 - sqrt(share kept). [Ribeiro et al. 2016]
    """
    distance = scale * (1 - np.sqrt(kept.mean(1, dtype=np.float64)))
    return np.asarray(np.sqrt(np.exp(-((distance / width) ** 2))), np.float64)


def fit_share(design: ArrayLike, targets: ArrayLike, weights: ArrayLike, coefficients: Floats) -> float:
    """The share of the weighted variance of `targets` (n,) that the linear model explains; 1 = all, at most.

    0 if the targets do not vary.
    """
    x, y, w = (np.asarray(values, np.float64) for values in (design, targets, weights))
    share = w / w.sum()
    y = y - share @ y
    left = y - (x - share @ x) @ coefficients
    spread = float(share @ y**2)
    return 0.0 if spread <= 0 else 1 - float(share @ left**2) / spread
