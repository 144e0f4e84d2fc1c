"""Weight times value, and the distances to another decision, on heads that are written down by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from stimuli.errors import NotApplicable
from stimuli.explainers import open_explainer
from stimuli.explainers.concepts.head_methods import FAR, nearest_changes
from stimuli.predictors.concepts.head_interface import Bottleneck, LinearHead, QdaHead
from stimuli.spec import Component
from tests.stimuli.concepts import Floats, explained, random_linear, random_qda, written
from tests.stimuli.tiny import linear_net

pytestmark = pytest.mark.pure
SAMPLES = np.random.default_rng(0).uniform(0, 1, (40, 5)).astype(np.float32).astype(np.float64)
VALUES = np.array([0.25, 0.5, 1.0, 0.0, 0.75])


@pytest.mark.parametrize(("name", "kind"), [("x_nesyl", "parts"), ("clip_linear", "clip")])
def test_it_multiplies_weights_and_values(name: str, kind: str) -> None:
    head = LinearHead(np.array([[1.0, -2, 3, 4, -1], [0, 1, 0, 1, 0]]), np.array([0.5, -0.5]))
    attribution = explained(written(head, SAMPLES, kind), VALUES, name)  # type: ignore[arg-type]
    np.testing.assert_array_equal(attribution.values, np.array([0.25, -1, 3, 0, -0.75], np.float32))
    assert attribution.concepts == ("c0", "c1", "c2", "c3", "c4")
    assert (attribution.order, attribution.label) == ("descending", "by hand")
    assert attribution.values.sum() + 0.5 == pytest.approx(head.logits(VALUES[None])[0, 0])


def test_it_measures_from_the_mean_of_training_if_asked() -> None:
    head = random_linear(1, 3, 5)
    attribution = explained(written(head, SAMPLES), VALUES, "clip_linear", 2, centred=True)
    np.testing.assert_allclose(attribution.values, head.weights[2] * (VALUES - SAMPLES.mean(0)), rtol=1e-6)
    from_mean = head.logits(VALUES[None])[0, 2] - head.logits(SAMPLES).mean(0)[2]
    assert attribution.values.sum() == pytest.approx(from_mean, rel=1e-5)


def test_it_solves_two_distributions_of_one_concept_by_hand() -> None:
    """N(0, 1) against N(2, 1), equal priors: the border is at 1."""
    head = QdaHead(np.array([[0.0], [2.0]]), np.ones((2, 1, 1)), np.zeros(2))
    samples = np.array([[0.0], [2.0]])
    assert explained(written(head, samples), np.array([0.25]), "clip_qda").values == pytest.approx(0.75)
    assert explained(written(head, samples), np.array([1.5]), "clip_qda", 1).values == pytest.approx(0.5)


def test_it_finds_the_nearer_of_two_borders() -> None:
    """N(0, 1) against N(0, 1/4): by log 2 = 3/8 x^2 the narrow one is likelier within 1.3596."""
    head = QdaHead(np.zeros((2, 1)), np.array([[[1.0]], [[2.0]]]), np.array([0.0, np.log(2)]))
    border = np.sqrt(np.log(2) / 1.5)
    for value, target in ((0.25, 1), (-0.25, 1), (1.5, 0), (-1.5, 0)):
        attribution = explained(written(head, np.zeros((2, 1))), np.array([value]), "clip_qda", target)
        assert attribution.values[0] == pytest.approx(abs(border - abs(value)), rel=1e-5)


@pytest.mark.parametrize("seed", range(6))
def test_it_puts_the_decision_exactly_on_the_border(seed: int) -> None:
    """At the distance another class is as likely; before it, on a fine grid, none is likelier."""
    head = random_qda(seed, 4, 5)
    target = int(head.logits(VALUES[None]).argmax())
    moves = nearest_changes(head, VALUES, target)
    assert np.isfinite(moves).any()
    attribution = explained(written(head, SAMPLES), VALUES, "clip_qda", target)
    np.testing.assert_allclose(attribution.values, np.minimum(np.abs(moves), FAR), rtol=2e-5)
    for place, move in enumerate(moves):
        if np.isfinite(move):
            assert lead(head, target, place, np.array([move]))[0] == pytest.approx(0, abs=1e-8)
        reach = min(abs(move), 50) * 0.999
        assert (lead(head, target, place, np.linspace(-reach, reach, 401)) > 0).all()


@pytest.mark.parametrize("seed", range(4))
def test_it_finds_the_way_back_to_a_class_that_is_not_predicted(seed: int) -> None:
    head = random_qda(seed, 3, 5)
    target = int(head.logits(VALUES[None]).argmin())
    for place, move in enumerate(nearest_changes(head, VALUES, target)):
        reach = min(abs(move), 50) * 0.999
        assert (lead(head, target, place, np.linspace(-reach, reach, 401)) < 0).all()
        if np.isfinite(move):
            assert lead(head, target, place, np.array([move]))[0] == pytest.approx(0, abs=1e-8)


def test_it_says_far_of_a_concept_that_changes_nothing() -> None:
    """Equal means and deviations in the second concept; the third widens the lead in both directions."""
    roots = np.stack([np.diag([1.0, 1.0, 1.0]), np.diag([1.0, 1.0, 2.0])])
    head = QdaHead(np.array([[0.0, 0, 0], [2.0, 0, 0]]), roots, np.array([1.0, 0.0]))
    attribution = explained(written(head, np.eye(3)), np.array([0.0, 0.5, 0.0]), "clip_qda")
    assert attribution.values.tolist() == [1.5, FAR, FAR]
    assert attribution.order == "ascending" and attribution.checks["deciding"] == pytest.approx(1 / 3)


def test_it_orders_concepts_by_their_distances_and_not_by_their_names() -> None:
    """The order of the distances is the order of the boundary distances, for shuffled concepts too."""
    drawn, order = random_qda(2, 3, 5), np.array([3, 1, 4, 0, 2])
    head = QdaHead(drawn.means, np.repeat(drawn.roots[:1], 3, axis=0), drawn.offsets)  # planes: all decide
    turned = QdaHead(head.means[:, order], head.roots[:, order], head.offsets)
    target = int(head.logits(VALUES[None]).argmax())
    plain = explained(written(head, SAMPLES), VALUES, "clip_qda", target)
    shuffled = explained(written(turned, SAMPLES[:, order]), VALUES[order], "clip_qda", target)
    np.testing.assert_allclose(shuffled.values, plain.values[order], rtol=1e-5)
    assert len(set(plain.values.tolist())) == 5


def test_it_measures_in_deviations_if_asked() -> None:
    net = written(random_qda(3, 3, 5), SAMPLES)
    plain, scaled = (explained(net, VALUES, "clip_qda", unit=unit) for unit in ("value", "deviation"))
    np.testing.assert_allclose(scaled.values, plain.values / SAMPLES.std(0), rtol=1e-5)


@pytest.mark.parametrize("name", ["x_nesyl", "clip_linear", "clip_qda", "lime_cbm", "shap_cbm", "rise_cbm"])
def test_it_needs_named_concepts(name: str) -> None:
    with pytest.raises(NotApplicable, match="has none: choose the predictor concept_bottleneck"):
        open_explainer(Component(name)).require(linear_net(), "")


@pytest.mark.parametrize(
    ("name", "kind", "is_linear", "words"),
    [
        ("x_nesyl", "clip", True, "come from a detector of parts or a network trained on annotations, and"),
        ("x_nesyl", "parts", False, 'use clip_qda, or set head = "linear"'),
        ("clip_linear", "parts", True, "these come from a detector of parts: use x_nesyl"),
        ("clip_linear", "annotations", True, "come from the similarity of picture and text, and"),
        ("clip_linear", "clip", False, "this head is made of normal distributions: use clip_qda"),
        ("clip_qda", "clip", True, 'this head is linear: choose .* with head = "qda"'),
    ],
)
def test_it_says_why_it_does_not_apply(name: str, kind: str, is_linear: bool, words: str) -> None:
    head = random_linear(0, 2, 5) if is_linear else random_qda(0, 2, 5)
    net = written(head, SAMPLES, kind)  # type: ignore[arg-type]
    with pytest.raises(NotApplicable, match=words):
        open_explainer(Component(name)).require(net, "")


def test_it_refuses_weights_that_are_not_finite() -> None:
    net = written(random_linear(0, 2, 5), SAMPLES)
    assert net.bottleneck is not None
    head = LinearHead(np.full((2, 5), np.nan), np.zeros(2))
    broken: Bottleneck = replace(net.bottleneck, head=head)
    with pytest.raises(NotApplicable, match="not finite"):
        explained(replace(net, bottleneck=broken), VALUES, "clip_linear")


def lead(head: QdaHead, target: int, place: int, moves: Floats) -> Floats:
    """By how much the target's logit is ahead of the best other after each move of one concept."""
    moved = np.repeat(VALUES[None], len(moves), axis=0)
    moved[:, place] += moves
    logits = head.logits(moved)
    return np.asarray(logits[:, target] - np.delete(logits, target, axis=1).max(axis=1))
