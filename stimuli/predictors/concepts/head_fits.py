"""Heads on concept values, fitted in double precision: logistic regression and normal distributions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from stimuli.errors import BadSpec
from stimuli.predictors.concepts.head_interface import Floats, LinearHead, QdaHead

MAX_STEPS = 5000
GRADIENT_LIMIT = 1e-7


def fit_linear(
    values: Floats,
    targets: NDArray[np.int64],
    labels: int,
    penalty: float = 1.0,
    *,
    standardised: bool = False,
) -> LinearHead:
    """Multinomial logistic regression of class indices (n,) on concept values (n, concepts).

    Minimises the summed cross-entropy plus penalty / 2 times the sum of squared weights; biases are free.
    With `standardised` that holds for values of mean 0 and deviation 1; the weights returned are for the
    values themselves. For more than two labels it is scikit-learn's `LogisticRegression(C=1 / penalty)`.
    """
    mean, spread = _scale(values) if standardised else (np.zeros(values.shape[1]), np.ones(values.shape[1]))
    x = (values - mean) / spread
    wanted = np.eye(labels)[targets]
    shape = (labels, x.shape[1] + 1)

    def loss(flat: Floats) -> tuple[float, Floats]:
        weights = flat.reshape(shape)
        logits = np.einsum("nc,kc->nk", x, weights[:, :-1]) + weights[:, -1]
        logits -= logits.max(axis=1, keepdims=True)
        powers = np.exp(logits)
        total = powers.sum(axis=1, keepdims=True)
        entropy = float((np.log(total) - (logits * wanted).sum(axis=1, keepdims=True)).sum())
        apart = powers / total - wanted
        gradient = np.concatenate([np.einsum("nk,nc->kc", apart, x), apart.sum(axis=0)[:, None]], axis=1)
        gradient[:, :-1] += penalty * weights[:, :-1]
        return entropy + 0.5 * penalty * float((weights[:, :-1] ** 2).sum()), gradient.ravel()

    options = {"maxiter": MAX_STEPS, "maxfun": 2 * MAX_STEPS, "ftol": 1e-15, "gtol": GRADIENT_LIMIT}
    optimum = minimize(loss, np.zeros(np.prod(shape)), jac=True, method="L-BFGS-B", options=options)
    weights = optimum.x.reshape(shape)
    inner = weights[:, :-1] / spread
    bias = weights[:, -1] - inner @ mean
    return LinearHead(np.asarray(inner, np.float64), np.asarray(bias - bias.mean(), np.float64))


def fit_qda(values: Floats, targets: NDArray[np.int64], labels: int, shrinkage: float = 0.1) -> QdaHead:
    """One normal distribution per class, its covariance drawn towards the unit matrix; priors are the shares.

    In values of mean 0 and deviation 1 a covariance S becomes (1 - shrinkage) S + shrinkage I, with S the
    maximum-likelihood estimate: there it is scikit-learn's
    `QuadraticDiscriminantAnalysis(reg_param=shrinkage)`. Raises BadSpec for a class with fewer than two
    items.
    """
    mean, spread = _scale(values)
    x = (values - mean) / spread
    means, roots, offsets = [], [], []
    for label in range(labels):
        members = x[targets == label]
        if len(members) < 2:
            raise BadSpec(
                f"class {label} has {len(members)} picture(s) to fit its distribution of concepts on, "
                'at least 2 are needed; add pictures, or set head = "linear"'
            )
        covariance = np.atleast_2d(np.cov(members.T, bias=True))
        covariance = (1 - shrinkage) * covariance + shrinkage * np.eye(len(covariance))
        root = np.linalg.cholesky(np.linalg.inv(covariance)) / spread[:, None]
        means.append(mean + spread * members.mean(axis=0))
        roots.append(root)
        offsets.append(np.log(len(members) / len(x)) + np.log(np.abs(np.diag(root))).sum())
    apart = np.array(offsets)
    return QdaHead(np.stack(means), np.stack(roots), np.asarray(apart - apart.mean(), np.float64))


def _scale(values: Floats) -> tuple[Floats, Floats]:
    """Mean and deviation of each concept; 1 if a concept does not vary."""
    spread = values.std(axis=0)
    return values.mean(axis=0), np.where(spread > 1e-9, spread, 1.0)
