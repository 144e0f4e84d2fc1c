"""Heads on concept values, with scikit-learn and SciPy as witnesses."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal

from stimuli.errors import BadSpec
from stimuli.predictors.concepts.head_fits import fit_linear, fit_qda
from stimuli.predictors.concepts.head_interface import LinearHead, QdaHead
from stimuli.predictors.concepts.head_layers import (
    head_layer,
    head_of,
    pack_concepts,
    read_concepts,
    set_head,
)
from tests.stimuli.concepts import random_linear, random_qda

pytestmark = pytest.mark.pure
RNG = np.random.default_rng(0)
TARGETS = np.repeat([0, 1, 2], [40, 50, 60])
VALUES = RNG.normal(0, 1, (150, 4)) * [1, 0.5, 2, 0.1] + RNG.normal(0, 1, (3, 4))[TARGETS] * [1, 0.3, 1, 0.1]


@pytest.mark.parametrize("penalty", [0.1, 1.0, 10.0])
def test_it_fits_three_classes_as_scikit_learn_does(penalty: float) -> None:
    import sklearn.linear_model as linear_model

    head = fit_linear(VALUES, TARGETS, 3, penalty)
    theirs = linear_model.LogisticRegression(C=1 / penalty, tol=1e-8, max_iter=10000).fit(VALUES, TARGETS)
    np.testing.assert_allclose(head.weights, theirs.coef_, atol=2e-4)
    np.testing.assert_allclose(head.bias, theirs.intercept_ - theirs.intercept_.mean(), atol=2e-4)


def test_it_fits_two_classes_with_half_a_weight_on_each_side() -> None:
    """Two rows w / 2 and -w / 2 pay w^2 / 4: scikit-learn's single row w with twice the C."""
    import sklearn.linear_model as linear_model

    values, targets = VALUES[TARGETS < 2], TARGETS[TARGETS < 2]
    head = fit_linear(values, targets, 2)
    theirs = linear_model.LogisticRegression(C=2.0, tol=1e-8, max_iter=10000).fit(values, targets)
    np.testing.assert_allclose(head.weights[1] - head.weights[0], theirs.coef_[0], atol=2e-4)
    np.testing.assert_allclose(head.bias[1] - head.bias[0], theirs.intercept_[0], atol=2e-4)


def test_it_does_not_care_for_units_when_it_standardises() -> None:
    units, shifts = np.array([10.0, 0.01, 1, 5]), np.array([3.0, -2, 0, 100])
    plain = fit_linear(VALUES, TARGETS, 3, standardised=True)
    other = fit_linear(VALUES * units + shifts, TARGETS, 3, standardised=True)
    np.testing.assert_allclose(other.weights * units, plain.weights, atol=1e-5)
    np.testing.assert_allclose(other.logits(VALUES * units + shifts), plain.logits(VALUES), atol=1e-4)


@pytest.mark.parametrize("shrinkage", [0.0, 0.1, 0.7])
def test_it_fits_distributions_as_scikit_learn_does(shrinkage: float) -> None:
    import sklearn.discriminant_analysis as analysis

    scaled = (VALUES - VALUES.mean(0)) / VALUES.std(0)
    theirs = analysis.QuadraticDiscriminantAnalysis(reg_param=shrinkage).fit(scaled, TARGETS)
    logits = fit_qda(VALUES, TARGETS, 3, shrinkage).logits(VALUES)
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    np.testing.assert_allclose(
        powers / powers.sum(axis=1, keepdims=True), theirs.predict_proba(scaled), atol=1e-9
    )


def test_it_puts_out_log_posteriors_up_to_a_constant() -> None:
    """Against SciPy's densities and the classes' shares."""
    head = fit_qda(VALUES, TARGETS, 3, 0.0)
    groups = [VALUES[np.equal(TARGETS, k)] for k in range(3)]
    posteriors = [
        np.log(len(group) / len(VALUES))
        + multivariate_normal(group.mean(0), np.cov(group.T, bias=True)).logpdf(VALUES)
        for group in groups
    ]
    apart = head.logits(VALUES) - np.stack(posteriors, axis=1)
    assert np.ptp(apart) < 1e-9


def test_it_keeps_distributions_upright_with_fewer_items_than_concepts() -> None:
    values = np.random.default_rng(1).normal(0, 1, (12, 30))
    logits = fit_qda(values, np.arange(12) % 2, 2, 0.2).logits(values)
    assert np.isfinite(logits).all()
    with pytest.raises(BadSpec, match=r'class 1 has 1 picture\(s\).*set head = "linear"'):
        fit_qda(values[:3], np.array([0, 0, 1]), 2)


def test_it_takes_a_concept_that_never_varies() -> None:
    values = VALUES.copy()
    values[:, 1] = 0.25
    for head in (fit_linear(values, TARGETS, 3, standardised=True), fit_qda(values, TARGETS, 3)):
        assert np.isfinite(head.logits(values)).all()


@pytest.mark.parametrize("head", [random_linear(0, 3, 4), random_qda(0, 3, 4)], ids=["linear", "qda"])
def test_it_computes_the_same_as_a_layer(head: LinearHead | QdaHead) -> None:
    layer = head_layer("qda" if isinstance(head, QdaHead) else "linear", 3, 4)
    set_head(layer, head)
    with torch.no_grad():
        outputs = layer(torch.from_numpy(VALUES).float()).numpy()
    np.testing.assert_allclose(outputs, head.logits(VALUES), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(head_of(layer).logits(VALUES), head.logits(VALUES), rtol=1e-5, atol=1e-5)


def test_it_lets_gradients_through_a_layer_of_distributions() -> None:
    """Against central differences of the head in double precision."""
    head = random_qda(1, 3, 4)
    layer = head_layer("qda", 3, 4).double()
    layer.load_state_dict(
        {
            name: torch.from_numpy(value)
            for name, value in (("means", head.means), ("roots", head.roots), ("offsets", head.offsets))
        }
    )
    x = torch.from_numpy(VALUES[:1]).requires_grad_()
    (gradient,) = torch.autograd.grad(layer(x)[0, 2], x)
    steps = np.eye(4) * 1e-5
    apart = head.logits(VALUES[:1] + steps)[:, 2] - head.logits(VALUES[:1] - steps)[:, 2]
    np.testing.assert_allclose(gradient[0].numpy(), apart / 2e-5, rtol=1e-6)


def test_it_knows_the_inverse_covariances() -> None:
    head = fit_qda(VALUES, TARGETS, 3, 0.0)
    for k in range(3):
        inverse = np.linalg.inv(np.cov(VALUES[np.equal(TARGETS, k)].T, bias=True))
        np.testing.assert_allclose(head.precisions[k], inverse, rtol=1e-8, atol=1e-6)


def test_it_packs_weights_and_samples_to_the_same_bytes() -> None:
    layer, samples = head_layer("linear", 3, 4), VALUES.astype(np.float32).astype(np.float64)
    data = pack_concepts(layer, samples)
    state, back = read_concepts(data, "the archive")
    np.testing.assert_array_equal(back, samples)
    assert torch.equal(state["weight"], layer.state_dict()["weight"])
    layer.load_state_dict(state)
    assert pack_concepts(layer, back) == data
    with pytest.raises(BadSpec, match="is no safetensors file"):
        read_concepts(b"nothing", "the archive")


def test_it_fits_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit_linear(VALUES, TARGETS, 3, 1e-3)
        fit_qda(VALUES, TARGETS, 3)
