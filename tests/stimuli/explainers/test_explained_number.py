"""Which number is explained: its value and slopes, and every method against arithmetic on the logits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

import captum.attr
import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from stimuli.errors import BadSpec
from stimuli.explainers import open_explainer
from stimuli.planner.asks import LayerScores, Scores, Steps, SummedGradient
from stimuli.planner.drive import Job, drive
from stimuli.planner.network import Network
from stimuli.planner.values import ExplainedNumber, Operator, Subject, Trace
from stimuli.planner.variants import Windows
from stimuli.spec import Component
from stimuli.types import Layout
from tests.stimuli import text_toys
from tests.stimuli.concepts import picture_of, random_linear, written
from tests.stimuli.operators import OPERATORS, OTHER, asked, number_of
from tests.stimuli.predictors.test_bcos import bcos_net
from tests.stimuli.tiny import (
    SIDE,
    Tiny,
    convolutional_net,
    maps_of,
    pictures,
    pooled_net,
    seeded,
    subjects_of,
    token_net,
)

pytestmark = pytest.mark.pure
Maps = NDArray[np.float32]


def gradient_of(net: Tiny, subject: Subject) -> Tensor:
    x = subject.pixels[None].double().requires_grad_()
    twin = seeded_double(net)
    return torch.autograd.grad(number_of(twin(x), subject).sum(), x)[0][0]


def seeded_double(net: Tiny) -> nn.Module:
    return deepcopy(net.module).double()


def two_classes() -> Tiny:
    """A smooth convolutional network of two classes."""
    features = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.Softplus(), nn.AdaptiveAvgPool2d(4))
    module = nn.Sequential(features, nn.Flatten(), nn.Linear(96, 2))
    return Tiny(seeded(module), ("a", "b"), "0.1", {"0.1": Layout("maps", 6, SIDE, SIDE)})


def small_net() -> Tiny:
    """Bends between 4 x 4 pixels and four classes: so few pixels that SHAP's tree is complete."""
    module = nn.Sequential(nn.Flatten(), nn.Linear(48, 12), nn.Tanh(), nn.Linear(12, 4))
    return Tiny(seeded(module), ("a", "b", "c", "d"), input_px=4)


# The number


@pytest.mark.parametrize("operator", OPERATORS)
def test_its_value_and_slopes_are_those_of_autograd(operator: Operator) -> None:
    logits = torch.randn(5, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    number = ExplainedNumber(2, operator=operator, against=4 if operator == "margin" else None)
    for row in logits:
        row.requires_grad_()
        expected = number_of(row, number)
        (slopes,) = torch.autograd.grad(expected, row)
        values = row.detach().numpy()
        assert number.explained(values) == pytest.approx(float(expected), rel=1e-12)
        assert float(number.explained(row.detach())) == pytest.approx(float(expected), rel=1e-12)
        np.testing.assert_allclose(number.slopes(values), slopes, rtol=1e-12, atol=1e-15)


def test_the_slope_of_a_probability_near_one_is_not_lost() -> None:
    """Single precision says 1, and 1 - p would be 0: the closed form is p (1 - p), here e^-60."""
    slopes = ExplainedNumber(0, operator="probability").slopes(np.array([60.0, 0.0]))
    np.testing.assert_allclose(slopes, [np.exp(-60.0), -np.exp(-60.0)], rtol=1e-9)


def test_it_refuses_a_margin_against_nothing_and_a_logit_against_something() -> None:
    for operator, against in (("margin", None), ("logit", 1), ("probability", 0)):
        with pytest.raises(BadSpec, match="name the label that a margin is taken against"):
            Subject(0, "a", 1, operator=operator, against=against)  # type: ignore[arg-type]


# What the planner answers


class Shrunk:
    """A layer's output times each of some shares."""

    shares = (0.0, 0.5, 2.0)

    def __len__(self) -> int:
        return len(self.shares)

    def make(self, activation: Tensor, places: Sequence[int]) -> Tensor:
        return torch.stack([activation * self.shares[place] for place in places])


@pytest.mark.parametrize("rows", [2, 16])
def test_every_answer_is_of_the_number_of_its_own_item(rows: int) -> None:
    """Three operators on the same pictures in one drive: traces, copies and layers, in mixed batches."""
    net = convolutional_net()
    squares = Windows([(0, 0), (8, 4), (16, 16)], 8, 0.5)
    weights = [0.5, -1.0, 2.0]

    def method() -> Steps:
        traced = yield Trace(layers=("0",), gradients=True, input_gradient=True)
        return traced, *(
            yield (
                Scores(squares),
                Scores(squares, "probability"),
                SummedGradient(squares, weights),
                LayerScores("0", Shrunk()),
            )
        )

    subjects = [s for o in OPERATORS for s in asked(subjects_of(pictures(2)), o)]
    jobs = [Job(at, subject, method) for at, subject in enumerate(subjects)]
    done = {outcome.name: outcome for outcome in drive(jobs, Network(net, rows=rows))}
    for at, subject in enumerate(subjects):
        assert done[at].error is None
        traced, scores, shares, summed, behind = done[at].result
        copies = squares.make(subject.pixels, range(3))
        logits = net.module(copies)
        np.testing.assert_allclose(scores, number_of(logits, subject), atol=1e-6)
        np.testing.assert_allclose(shares, logits.softmax(1)[:, subject.target], atol=1e-6)
        np.testing.assert_allclose(traced.input_gradient, gradient_of(net, subject), atol=1e-6)
        expected = sum(
            weight * gradient_of(net, replace(subject, image=copy))
            for weight, copy in zip(weights, copies, strict=True)
        )
        np.testing.assert_allclose(summed, expected, atol=1e-6)
        features: Any = net.layer_module("0")
        rest = nn.Sequential(*list(net.module.children())[1:])
        inside = features(subject.pixels[None]).detach().requires_grad_()
        (slope,) = torch.autograd.grad(number_of(rest(inside), subject).sum(), inside)
        np.testing.assert_allclose(traced.gradients["0"], slope[0], atol=1e-6)
        replaced = torch.cat([inside.detach() * share for share in Shrunk.shares])
        np.testing.assert_allclose(behind, number_of(rest(replaced), subject), atol=1e-6)


# A margin of a linear method is the difference of two of its maps

LINEAR: list[tuple[str, dict[str, Any], Callable[[], Tiny]]] = [
    ("gradient_x_input", {}, convolutional_net),
    ("gradient_x_input", {}, token_net),
    ("integrated_gradients", {"steps": 9}, convolutional_net),
    ("smooth_grad", {"draws": 4}, convolutional_net),
    ("hires_cam", {"signed": True}, convolutional_net),
    ("hires_cam", {"signed": True}, token_net),
    ("occlusion", {}, convolutional_net),
    ("rise", {"masks": 32, "output": "logit"}, convolutional_net),
    ("lime_image", {"segmentation": "grid-1", "segments": 9, "output": "logit"}, convolutional_net),
    ("shap_partition", {"evaluations": 400, "fill": "flat"}, small_net),
    ("captum", {"method": "InputXGradient"}, convolutional_net),
    ("captum", {"method": "DeepLift", "arguments": '{"baselines": 0.5}'}, pooled_net),
    (
        "captum",
        {"method": "ShapleyValueSampling", "parts": 2, "arguments": '{"n_samples": 2}'},
        convolutional_net,
    ),
    ("captum", {"method": "LayerGradCam"}, convolutional_net),
]


@pytest.mark.parametrize(
    ("name", "params", "network"), LINEAR, ids=lambda part: getattr(part, "__name__", part)
)
def test_a_margin_is_the_difference_of_two_maps(
    name: str, params: dict[str, Any], network: Callable[[], Tiny]
) -> None:
    net = network()
    subjects = subjects_of(pictures(2, net.input_px))
    margins = maps_of(name, net, asked(subjects, "margin"), **params)
    single = maps_of(name, net, subjects, **params)
    others = maps_of(name, net, [replace(s, target=OTHER) for s in subjects], **params)
    size = np.abs(margins).max()
    assert size > 0
    np.testing.assert_allclose(margins, single - others, atol=3e-6 * max(size, np.abs(single).max()))


def test_a_margin_of_channels_is_weighed_before_negative_values_go() -> None:
    """Grad-CAM: the weights are differences, the map is no difference."""
    net = convolutional_net()
    subjects = asked(subjects_of(pictures(3)), "margin")
    for subject, made in zip(subjects, maps_of("captum", net, subjects, method="LayerGradCam"), strict=True):
        ours = maps_of("grad_cam", net, [subject])[0]
        # Both are enlarged bilinearly, captum's with its mean over channels in place of their sum.
        assert (ours >= 0).all()
        wrapped = captum.attr.LayerGradCam(
            lambda x, s=subject: number_of(net.module(x), s), net.layer_module("0")
        )
        coarse = wrapped.attribute(subject.pixels[None], relu_attributions=True)
        fine = nn.functional.interpolate(coarse, size=(SIDE, SIDE), mode="bilinear")[0, 0].detach()
        np.testing.assert_allclose(ours, fine, atol=1e-6)
        assert made.shape == ours.shape


def test_a_margin_of_concepts_is_the_difference_of_two_lists() -> None:
    rng = np.random.default_rng(5)
    net = written(random_linear(4, 4, 6), rng.random((40, 6)))
    values = rng.random(6).astype(np.float32).astype(np.float64)

    def weights(name: str, subject: Subject, **params: object) -> NDArray[np.float32]:
        method = open_explainer(Component(name, params))
        (done,) = drive([Job(0, subject, lambda: method.explain(net, subject))], Network(net, rows=2))
        assert done.error is None, done.error
        return np.asarray(done.result.values)

    single = Subject(1, "a", 7, image=picture_of(values))
    for name in ("clip_linear", "shap_cbm", "lime_cbm", "rise_cbm"):
        params = {} if name == "clip_linear" else {"output": "logit"}
        margin = weights(name, asked([single], "margin")[0], **params)
        expected = weights(name, single, **params) - weights(name, replace(single, target=OTHER), **params)
        np.testing.assert_allclose(margin, expected, atol=1e-5 * np.abs(expected).max())
    probability = weights("shap_cbm", replace(single, operator="probability"), output="probability")
    np.testing.assert_array_equal(probability, weights("shap_cbm", single, output="probability"))


def test_b_cos_takes_a_margin_apart_completely() -> None:
    """The contributions add up to the margin, and are the difference of those of two logits."""
    net = bcos_net()
    subjects = subjects_of(pictures(2, net.input_px))
    margins = maps_of("bcos", net, asked(subjects, "margin"))
    single = maps_of("bcos", net, subjects)
    others = maps_of("bcos", net, [replace(s, target=OTHER) for s in subjects])
    np.testing.assert_allclose(margins, single - others, atol=1e-5)
    for subject, made in zip(asked(subjects, "margin"), margins, strict=True):
        whole = float(number_of(net.module(subject.pixels[None])[0], subject))
        assert made.sum() == pytest.approx(whole, rel=1e-4, abs=1e-5)


# Probabilities


@pytest.mark.parametrize("name", ["saliency", "gradient_x_input", "guided_backprop"])
def test_a_probability_of_two_classes_is_the_margin_times_a_number(name: str) -> None:
    """Its gradient is p (1 - p) times the margin's."""
    net = pooled_two() if name == "guided_backprop" else two_classes()
    subjects = [replace(s, target=s.target % 2) for s in subjects_of(pictures(4))]
    for subject in subjects:
        [share] = maps_of(name, net, [replace(subject, operator="probability")])
        [margin] = maps_of(name, net, asked([subject], "margin", 1 - subject.target))
        p = float(net.module(subject.pixels[None]).double().softmax(1)[0, subject.target])
        np.testing.assert_allclose(share, p * (1 - p) * margin, atol=1e-6 * np.abs(margin).max())
        assert np.abs(margin).max() > 0


def pooled_two() -> Tiny:
    net = pooled_net()
    head = nn.Linear(4, 2)
    return replace(
        net, module=nn.Sequential(net.module, seeded(head)), labels=("a", "b"), layer="", layouts={}
    )


@pytest.mark.parametrize("name", ["gradient_x_input", "integrated_gradients", "smooth_grad", "occlusion"])
def test_the_probabilities_of_all_classes_explain_nothing_together(name: str) -> None:
    """They add up to 1, whose map is 0 everywhere."""
    net, [subject] = convolutional_net(), subjects_of(pictures(1))
    maps = maps_of(name, net, [replace(subject, target=k, operator="probability") for k in range(4)])
    assert np.abs(maps).max() > 0
    np.testing.assert_allclose(maps.sum(0), 0, atol=1e-6 * np.abs(maps).max() + 1e-8)


@pytest.mark.parametrize("operator", OPERATORS)
def test_integrated_gradients_add_up_to_the_change_of_the_number(operator: Operator) -> None:
    net = convolutional_net()
    subjects = asked(subjects_of(pictures(2)), operator)
    black = torch.zeros(1, 3, SIDE, SIDE)
    for subject in subjects:
        method = open_explainer(Component("integrated_gradients", {"steps": 100}))
        job = Job(0, subject, lambda s=subject, m=method: m.explain(net, s))  # type: ignore[misc]
        (done,) = drive([job], Network(net, rows=8))
        both = number_of(net.module(torch.cat([subject.pixels[None], black])).double(), subject)
        assert 3 * done.result.values.sum() == pytest.approx(float(both[0] - both[1]), rel=1e-3)
        assert done.result.checks["completeness_gap"] < 1e-3


def test_it_covers_what_a_small_probability_rests_on() -> None:
    """Also one of a hundred millionth, whose falls are far below a millionth of 1: against a loop."""
    net, [subject] = two_classes(), subjects_of(pictures(1))
    head: Any = net.layer_module("2")
    head.bias = nn.Parameter(torch.tensor([-18.0, 0.0]), requires_grad=False)
    subject = replace(subject, operator="probability")
    values = maps_of("occlusion", net, [subject], patch_share=0.5, stride_share=0.5)[0]
    double = seeded_double(net)
    x = subject.pixels[None].double()
    whole = float(double(x).softmax(1)[0, 0])
    assert whole < 1e-6
    half = SIDE // 2
    for top in (0, half):
        for left in (0, half):
            copy = x.clone()
            copy[:, :, top : top + half, left : left + half] = 0
            fall = whole - float(double(copy).softmax(1)[0, 0])
            np.testing.assert_allclose(values[top : top + half, left : left + half], fall, rtol=1e-4)


@pytest.mark.parametrize("operator", ["margin", "probability"])
def test_it_leaves_channels_out_one_by_one(operator: Operator) -> None:
    """A margin is linear in the channels before pooling and a linear layer; a probability is not."""
    net = pooled_net()
    subjects = asked(subjects_of(pictures(2)), operator)
    for subject in subjects:
        method = open_explainer(Component("ablation_cam"))
        job = Job(0, subject, lambda s=subject, m=method: m.explain(net, s))  # type: ignore[misc]
        (done,) = drive([job], Network(net, rows=8))
        assert done.result.checks["closed_form"] == float(operator == "margin")
        features: Any = net.layer_module("0")
        rest = nn.Sequential(*list(net.module.children())[1:])
        inside = features(subject.pixels[None])
        whole = number_of(rest(inside), subject)
        coarse = torch.zeros(inside.shape[2:])
        for channel in range(inside.shape[1]):
            without = inside.clone()
            without[:, channel] = 0
            coarse += float(whole - number_of(rest(without), subject)) * inside[0, channel]
        fine = nn.functional.interpolate(coarse.relu()[None, None], size=(SIDE, SIDE), mode="bilinear")[0, 0]
        np.testing.assert_allclose(done.result.values, fine, atol=2e-5 * float(fine.max()) + 1e-9)


# Captum on a wrapped network as a witness


@pytest.mark.parametrize("operator", ["margin", "probability"])
def test_it_agrees_with_captum_on_a_wrapped_network(operator: Operator) -> None:
    net = convolutional_net()
    for subject in asked(subjects_of(pictures(1), first=1), operator):
        x = subject.pixels[None].clone().requires_grad_()

        def said(pictures: Tensor, subject: Subject = subject) -> Tensor:
            return number_of(net.module(pictures), subject)

        def ours(name: str, subject: Subject = subject, **params: Any) -> Maps:
            made: Maps = maps_of(name, net, [subject], **params)[0]
            return made

        expected = captum.attr.Saliency(said).attribute(x)[0].amax(0)
        np.testing.assert_allclose(ours("saliency"), expected, atol=1e-6)
        by_path = captum.attr.IntegratedGradients(said).attribute(x).detach()[0].mean(0)
        size = float(by_path.abs().max())
        np.testing.assert_allclose(ours("captum", method="IntegratedGradients"), by_path, atol=1e-6 * size)
        # By another rule of as many points: they agree in the limit.
        np.testing.assert_allclose(ours("integrated_gradients", steps=200), by_path, atol=2e-4 * size)
        squares = {"sliding_window_shapes": (3, 6, 6), "strides": (3, 6, 6)}
        hidden = captum.attr.Occlusion(said).attribute(x, baselines=0.0, **squares)
        np.testing.assert_allclose(
            ours("occlusion", patch_share=0.25, stride_share=0.25), hidden.detach()[0].mean(0), atol=1e-6
        )


def test_guided_backpropagation_agrees_with_captum_on_a_wrapped_network() -> None:
    net = pooled_net()

    class Shares(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = net.module

        def forward(self, x: Tensor) -> Tensor:
            shares: Tensor = self.inner(x).softmax(1)
            return shares

    [subject] = subjects_of(pictures(1), first=1)
    [ours] = maps_of("guided_backprop", net, [replace(subject, operator="probability")])
    guided = captum.attr.GuidedBackprop(Shares())
    expected = guided.attribute(subject.pixels[None].clone().requires_grad_(), target=1)
    np.testing.assert_allclose(ours, expected[0].mean(0), atol=1e-6 * float(expected.abs().max()))


# Texts


@pytest.mark.parametrize("target", [0, 1])
def test_texts_are_explained_by_their_number(target: int) -> None:
    """Two classes: a margin is the difference of the logits' maps, a probability p (1 - p) times that."""
    net = text_toys.trained("tense", model_count=300, epochs=2)
    text = text_toys.people_of("tense", 300)[0]
    plain = text_toys.subject_of(text, target)
    component = Component("input_gradient_text")

    def values(subject: Subject) -> NDArray[np.float32]:
        made: NDArray[np.float32] = text_toys.explained(net, [subject], component)[0].values
        return made

    margin = values(asked([plain], "margin", 1 - target)[0])
    np.testing.assert_allclose(margin, values(plain) - values(replace(plain, target=1 - target)), atol=1e-6)
    p = text_toys.probabilities_of(net)([text])[0, target]
    share = values(replace(plain, operator="probability"))
    np.testing.assert_allclose(share, p * (1 - p) * margin, atol=1e-6 * np.abs(margin).max())


def test_shapley_values_of_words_add_up_to_the_margin() -> None:
    """Against the logits in closed form: three classes, words that count for one each."""

    def logits_of(text: str) -> list[float]:
        words = text.split()
        return [1.5 * words.count("sun"), 2.0 * words.count("rain"), 0.25 * len(words)]

    net = text_toys.ToyText(logits_of, ("bright", "wet", "long"))
    subject = replace(text_toys.subject_of("sun rain sun", 0), operator="margin", against=1)
    shap = Component("shap_text", {"output": "log_odds"})
    [made] = text_toys.explained(net, [subject], shap)
    np.testing.assert_allclose(made.values, [1.5, -2.0, 1.5], atol=1e-5)
