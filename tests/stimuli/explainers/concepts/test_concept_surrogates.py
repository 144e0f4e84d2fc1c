"""LIME, SHAP and RISE on concept vectors: closed forms, and the reference libraries on one background."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from stimuli.explainers.concepts.concept_surrogates import (
    all_subsets,
    k_means,
    kernel_subsets,
    kernel_values,
    shapley,
    surrogate_outputs,
)
from stimuli.planner.values import ExplainedNumber
from stimuli.predictors.concepts.head_interface import LinearHead
from tests.stimuli.concepts import Floats, explained, random_linear, random_qda, written

pytestmark = pytest.mark.pure
RNG = np.random.default_rng(0)
SAMPLES = (RNG.uniform(0, 1, (60, 5)) ** 2).astype(np.float32).astype(np.float64)
VALUES = np.array([0.25, 0.5, 0.875, 0.0, 0.75])
NAMES = [f"c{j}" for j in range(5)]


def test_it_gives_shapley_values_of_a_linear_head_in_closed_form() -> None:
    """Weight times distance from the background's mean, for any centres."""
    head = random_linear(1, 3, 5)
    centres, shares = k_means(SAMPLES, 5)
    attribution = explained(written(head, SAMPLES), VALUES, "shap_cbm", 2)
    np.testing.assert_allclose(attribution.values, head.weights[2] * (VALUES - shares @ centres), rtol=1e-5)
    np.testing.assert_allclose(shares @ centres, SAMPLES.mean(axis=0), rtol=1e-12)
    assert attribution.checks["efficiency_gap"] < 1e-9


def test_it_takes_the_mean_gain_over_all_orders() -> None:
    """Against the definition by permutations, for a head with interactions."""
    worths = RNG.normal(0, 1, 16)
    expected = np.zeros(4)
    orders = list(permutations(range(4)))
    for order in orders:
        there = 0
        for place in order:
            expected[place] += worths[there | 1 << place] - worths[there]
            there |= 1 << place
    np.testing.assert_allclose(shapley(worths, 4), expected / len(orders), atol=1e-12)


@pytest.mark.parametrize("output", ["logit", "probability"])
def test_it_agrees_with_kernel_explainer(output: str) -> None:
    import shap
    from shap.utils._legacy import DenseData

    head = random_qda(4, 3, 5)
    centres, shares = k_means(SAMPLES, 5)
    background = DenseData(centres, NAMES, None, shares)
    explainer = shap.KernelExplainer(
        lambda rows: surrogate_outputs(head, np.asarray(rows), ExplainedNumber(1), output), background
    )
    expected = explainer.shap_values(VALUES, nsamples=4000, l1_reg=False, silent=True)
    attribution = explained(written(head, SAMPLES), VALUES, "shap_cbm", 1, output=output)
    np.testing.assert_allclose(attribution.values, expected, rtol=1e-4, atol=1e-6)


def test_it_samples_subsets_where_there_are_too_many_and_still_adds_up() -> None:
    """A linear head of 20 concepts: any well-posed regression gives the closed form."""
    samples = RNG.uniform(0, 1, (50, 20)).astype(np.float32).astype(np.float64)
    values = RNG.uniform(0, 1, 20).astype(np.float32).astype(np.float64)
    head = random_linear(2, 3, 20)
    attribution = explained(written(head, samples), values, "shap_cbm", 1)
    np.testing.assert_allclose(
        attribution.values, head.weights[1] * (values - samples.mean(axis=0)), rtol=1e-4
    )
    assert attribution.checks["efficiency_gap"] < 1e-9


def test_it_comes_near_the_exact_values_with_sampled_subsets() -> None:
    """Thirteen concepts with interactions: all subsets against 1500 of the 8190."""
    head, samples = random_qda(5, 3, 13), RNG.uniform(0, 1, (50, 13))
    values, (centres, shares) = RNG.uniform(0, 1, 13), k_means(samples, 5)

    def worth(subsets: np.ndarray[tuple[int, int], np.dtype[np.bool_]]) -> Floats:
        mixed = np.where(subsets[:, None], values, centres[None]).reshape(-1, 13)
        return np.asarray(
            surrogate_outputs(head, mixed, ExplainedNumber(0), "logit").reshape(len(subsets), -1) @ shares
        )

    exact_worths = worth(all_subsets(13))
    exact = shapley(exact_worths, 13)
    whole = float(exact_worths[-1] - exact_worths[0])
    subsets, weights = kernel_subsets(13, 1500, np.random.default_rng(1))
    near = kernel_values(subsets, worth(subsets) - exact_worths[0], weights, whole)
    assert len(subsets) <= 1500 and weights.sum() == pytest.approx(1)
    assert np.abs(near - exact).max() < 0.05 * np.abs(exact).max()
    subsets, weights = kernel_subsets(13, 8190, np.random.default_rng(1))
    assert len(subsets) == 8190
    np.testing.assert_allclose(
        kernel_values(subsets, worth(subsets) - exact_worths[0], weights, whole), exact, rtol=1e-8, atol=1e-9
    )


def test_it_finds_centres_that_are_means_of_what_is_nearest_to_them() -> None:
    samples = np.concatenate([RNG.normal(place, 0.01, (10 * (place + 1), 3)) for place in range(3)])
    centres, shares = k_means(samples, 3)
    order = np.argsort(centres[:, 0])
    np.testing.assert_allclose(centres[order], np.arange(3)[:, None] * np.ones(3), atol=0.02)
    np.testing.assert_allclose(shares[order], [1 / 6, 2 / 6, 3 / 6])
    few, all_of_it = k_means(np.ones((7, 2)), 5)
    assert few.tolist() == [[1.0, 1.0]] and all_of_it.tolist() == [1.0]


@pytest.mark.parametrize(("keep", "output"), [(0.5, "logit"), (0.3, "logit"), (0.5, "probability")])
def test_it_estimates_the_mean_answer_where_a_concept_is_kept(keep: float, output: str) -> None:
    """Against all subsets, each with its probability."""
    head, mean = random_qda(6, 3, 5), SAMPLES.mean(axis=0)
    subsets = all_subsets(5)
    chances = np.prod(np.where(subsets, keep, 1 - keep), axis=1)
    answers = surrogate_outputs(head, np.where(subsets, VALUES, mean), ExplainedNumber(1), output)
    shown = (chances * answers) @ subsets / (chances @ subsets)
    hidden = (chances * answers) @ ~subsets / (chances @ ~subsets)
    net = written(head, SAMPLES)
    attribution = explained(net, VALUES, "rise_cbm", 1, keep=keep, output=output, masks=60000)
    spread = answers.std()
    np.testing.assert_allclose(attribution.values, shown, atol=0.03 * spread)
    apart = explained(net, VALUES, "rise_cbm", 1, keep=keep, output=output, masks=60000, centred=True)
    np.testing.assert_allclose(apart.values, shown - hidden, atol=0.06 * spread)


def test_it_gives_rise_of_a_linear_head_in_closed_form() -> None:
    """Kept less hidden is the concept's own part; what is left is the noise of the other concepts."""
    head = LinearHead(np.array([[2.0, 0, 0, 0, 0], [0.0, 0, 0, 0, 0]]), np.zeros(2))
    attribution = explained(written(head, SAMPLES), VALUES, "rise_cbm", output="logit", centred=True)
    assert attribution.values[0] == pytest.approx(2 * (0.25 - SAMPLES[:, 0].mean()), rel=1e-5)
    assert np.abs(attribution.values[1:]).max() < 0.1 * abs(attribution.values[0])


def test_it_masks_all_pictures_of_a_study_alike() -> None:
    net = written(random_qda(7, 3, 5), SAMPLES)
    first = explained(net, VALUES, "rise_cbm", masks=64)
    np.testing.assert_array_equal(explained(net, VALUES, "rise_cbm", key="b", masks=64).values, first.values)
    assert not np.array_equal(explained(net, VALUES, "rise_cbm", seed=8, masks=64).values, first.values)


@pytest.mark.parametrize("discretised", [True, False])
def test_it_agrees_with_lime_tabular(discretised: bool) -> None:
    """Other draws, the same sampling and regression: equal but for the noise of 40 000 samples."""
    import lime.lime_tabular as lime_tabular

    head = random_linear(3, 3, 5)

    def answers(rows: Floats) -> Floats:
        powers = np.exp(head.logits(rows))
        return np.asarray(powers / powers.sum(axis=1, keepdims=True))

    explainer = lime_tabular.LimeTabularExplainer(
        SAMPLES, feature_names=NAMES, discretize_continuous=discretised, random_state=0
    )
    theirs = explainer.explain_instance(VALUES, answers, labels=(1,), num_features=5, num_samples=40000)
    expected = np.array([weight for _, weight in sorted(theirs.as_map()[1])])
    ours = explained(
        written(head, SAMPLES), VALUES, "lime_cbm", 1, discretised=discretised, samples=40000
    ).values
    np.testing.assert_allclose(ours, expected, atol=0.03 * np.abs(expected).max())


def test_it_gives_lime_of_a_linear_head_in_closed_form() -> None:
    """Logits that are linear are fitted exactly: weight times deviation, and the fit is whole."""
    head = random_linear(5, 3, 5)
    attribution = explained(
        written(head, SAMPLES), VALUES, "lime_cbm", 1, discretised=False, output="logit", alpha=0.0
    )
    np.testing.assert_allclose(attribution.values, head.weights[1] * SAMPLES.std(axis=0), rtol=1e-5)
    assert attribution.checks["fit"] == pytest.approx(1)


def test_it_ranks_concepts_as_the_weights_do() -> None:
    """Evenly spread concepts, all explained values in the highest quarter: larger weight, larger gain."""
    samples = np.random.default_rng(1).uniform(0, 1, (200, 5)).astype(np.float32).astype(np.float64)
    head = LinearHead(np.array([[0.5, -3.0, 2.0, -1.0, 4.0], np.zeros(5)]), np.zeros(2))
    values = np.full(5, 0.9375)
    for output in ("logit", "probability"):
        attribution = explained(written(head, samples), values, "lime_cbm", output=output)
        assert np.argsort(attribution.values).tolist() == np.argsort(head.weights[0]).tolist()
        assert np.sign(attribution.values).tolist() == np.sign(head.weights[0]).tolist()


def test_it_draws_by_key_and_seed_alone() -> None:
    net = written(random_qda(8, 3, 5), SAMPLES)
    first = explained(net, VALUES, "lime_cbm", samples=50).values
    np.testing.assert_array_equal(explained(net, VALUES, "lime_cbm", samples=50).values, first)
    for changed in ({"key": "b"}, {"seed": 8}):
        other = explained(net, VALUES, "lime_cbm", samples=50, **changed).values
        assert not np.array_equal(other, first)


@pytest.mark.parametrize("name", ["lime_cbm", "shap_cbm", "rise_cbm"])
def test_it_copes_with_concepts_that_never_vary(name: str) -> None:
    samples = SAMPLES.copy()
    samples[:, 2] = 0.5
    attribution = explained(written(random_qda(9, 3, 5), samples), VALUES, name)
    assert np.isfinite(attribution.values).all()
