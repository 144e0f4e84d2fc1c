"""Class activation maps by activation and gradient, and FullGrad: against pytorch-grad-cam and arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from stimuli.errors import NotApplicable
from stimuli.explainers import open_explainer
from stimuli.planner.biases import BiasMaps
from stimuli.planner.network import Network
from stimuli.planner.values import Subject
from stimuli.predictors.base import NormalisedNetwork
from stimuli.spec import Component
from stimuli.types import Layout
from tests.stimuli.cam_networks import (
    LABELS,
    deep_net,
    exported,
    library_map,
    library_scaled,
    residual_net,
    scaled,
    steeper,
    without_in_place,
)
from tests.stimuli.tiny import (
    SIDE,
    Tiny,
    convolutional_net,
    explained,
    maps_of,
    pictures,
    pooled_net,
    seeded,
    token_net,
)

pytestmark = pytest.mark.pure

BY_GRADIENT = {
    "grad_cam": "GradCAM",
    "hires_cam": "HiResCAM",
    "grad_cam_elementwise": "GradCAMElementWise",
    "grad_cam_plus_plus": "GradCAMPlusPlus",
    "xgrad_cam": "XGradCAM",
    "layer_cam": "LayerCAM",
}
NETWORKS = {
    "convolutional": convolutional_net,
    "pooled": pooled_net,
    "deep": deep_net,
    "residual": residual_net,
    "tokens": token_net,
}
SAME = 6e-6


def all_targets(net: Tiny, count: int = 2, layer: str = "") -> list[Subject]:
    """Every target of a few pictures."""
    return [
        Subject(target, f"image-{at}", 7, layer, image)
        for at, image in enumerate(pictures(count))
        for target in range(len(net.labels))
    ]


def gradient_of(net: Tiny, subject: Subject, layer: str) -> tuple[Tensor, Tensor]:
    """A layer's output and the logit's gradient there, (C, h, w) or (T, C), by torch alone."""
    outputs: list[Tensor] = []

    def note(_module: nn.Module, _inputs: object, output: Tensor) -> Tensor:
        outputs.append(output)
        return output.clone()

    hook = net.layer_module(layer).register_forward_hook(note)
    try:
        logits = net.module(subject.pixels[None].clone().requires_grad_())
    finally:
        hook.remove()
    (gradient,) = torch.autograd.grad(logits[0, subject.target], outputs)
    return outputs[0][0].detach(), gradient[0]


# The library adds 1e-7 to the largest value it divides by: maps are made large beside that.
@pytest.mark.parametrize("ours", BY_GRADIENT)
@pytest.mark.parametrize("kind", NETWORKS)
def test_it_draws_what_the_library_draws(kind: str, ours: str) -> None:
    net = steeper(NETWORKS[kind](), 100)
    subjects = all_targets(net)[1:6]
    params: dict[str, Any] = {"epsilon": 1e-6} if ours == "grad_cam_plus_plus" else {}
    maps = maps_of(ours, net, subjects, **params)
    assert maps.max() > 0.1
    # Weights of tokens are near poles, which enlarge rounding errors.
    limit = 1e-3 if (kind, ours) == ("tokens", "grad_cam_plus_plus") else SAME
    for subject, attribution in zip(subjects, maps, strict=True):
        expected = library_map(BY_GRADIENT[ours], net, subject.pixels, subject.target)
        np.testing.assert_allclose(scaled(attribution), expected, atol=limit)


@pytest.mark.parametrize("ours", ["hires_cam", "grad_cam", "xgrad_cam"])
def test_it_reads_early_layers_too(ours: str) -> None:
    net = steeper(pooled_net(), 1000)
    subjects = all_targets(net, layer="0.2")
    for subject, attribution in zip(subjects, maps_of(ours, net, subjects), strict=True):
        expected = library_map(BY_GRADIENT[ours], net, subject.pixels, subject.target, "0.2")
        np.testing.assert_allclose(scaled(attribution), expected, atol=SAME)


def test_it_draws_one_map_by_three_names_before_pooling_and_a_linear_layer() -> None:
    net = pooled_net()
    subjects = all_targets(net)
    first, second, third = (maps_of(name, net, subjects) for name in ("grad_cam", "hires_cam", "xgrad_cam"))
    assert first.max() > 0
    np.testing.assert_allclose(second, first, atol=1e-6 * first.max())
    np.testing.assert_allclose(third, first, atol=1e-6 * first.max())


def test_it_tells_the_three_apart_elsewhere() -> None:
    net = deep_net()
    subjects = all_targets(net)
    first, second, third = (maps_of(name, net, subjects) for name in ("grad_cam", "hires_cam", "xgrad_cam"))
    assert abs(first - second).max() > 0.1 * first.max()
    assert abs(first - third).max() > 0.1 * first.max()


def test_it_adds_a_signed_hires_map_up_to_the_logit() -> None:
    """On its own grid (here also the picture's) the map sums to the logit less the last layer's bias."""
    last = nn.Linear(7, 4)
    module = nn.Sequential(nn.Conv2d(3, 7, 3, padding=1), nn.AdaptiveAvgPool2d(1), nn.Flatten(), last)
    net = Tiny(seeded(module), LABELS, "0", {"0": Layout("maps", 7, SIDE, SIDE)})
    subjects = all_targets(net)
    maps = maps_of("hires_cam", net, subjects, signed=True)
    assert maps.min() < 0
    for subject, attribution in zip(subjects, maps, strict=True):
        logit = net.module(subject.pixels[None])[0, subject.target] - last.bias[subject.target]
        assert attribution.sum() == pytest.approx(float(logit), abs=1e-5)


def test_it_follows_the_definition_of_plus_plus_where_the_library_drowns_it() -> None:
    """With gradients of 1e-3 and less, 1e-6 is more than their squares."""
    net = pooled_net()
    subjects = all_targets(net)
    maps, as_library = maps_of("grad_cam_plus_plus", net, subjects), []
    for subject, attribution in zip(subjects, maps, strict=True):
        activation, gradient = (value.double() for value in gradient_of(net, subject, net.layer))
        total = activation.sum((1, 2), keepdim=True)
        share = gradient**2 / (2 * gradient**2 + total * gradient**3)
        weights = (share.nan_to_num() * gradient.relu()).sum((1, 2), keepdim=True)
        coarse = (weights * activation).sum(0).relu().float().numpy()
        np.testing.assert_allclose(scaled(attribution), library_scaled(coarse), atol=SAME)
        as_library.append(library_map("GradCAMPlusPlus", net, subject.pixels, subject.target))
    assert (
        max(abs(scaled(values) - other).max() for values, other in zip(maps, as_library, strict=True)) > 0.01
    )


def test_it_keeps_channels_that_rest_finite() -> None:
    """A dead channel has neither activation nor sum: 0 / 0 in two of the definitions."""
    net = pooled_net()
    net.module.get_submodule("0.4").get_parameter("bias").data[:9] = -100.0
    for name in ("xgrad_cam", "grad_cam_plus_plus", "eigen_cam", "eigen_grad_cam", "layer_cam"):
        maps = maps_of(name, net, all_targets(net))
        assert np.isfinite(maps).all()
        assert maps.max() > 0


@pytest.mark.parametrize("name", [*BY_GRADIENT, "eigen_cam", "eigen_grad_cam", "full_grad", "score_cam"])
@pytest.mark.parametrize("layer", ["0.1", "0"])
def test_it_sees_through_steps_that_write_into_their_input(name: str, layer: str) -> None:
    net = deep_net()
    subjects = all_targets(net, layer=layer)
    maps = maps_of(name, net, subjects)
    np.testing.assert_allclose(maps, maps_of(name, without_in_place(net), subjects), rtol=1e-5, atol=1e-8)


def test_it_needs_one_pass_for_all_of_them() -> None:
    net, layer = pooled_net(), "0"
    network = Network(net, rows=4)
    before = network.bill.copy()
    names = (*BY_GRADIENT, "eigen_cam", "eigen_grad_cam", "deep_feature_factorization", "full_grad")
    done = explained(net, all_targets(net, 1, layer)[:1], *names, network=network)
    bill = network.bill.since(before)
    assert not [outcome.error for outcome in done.values() if outcome.error]
    assert (len(done), bill.forwards, bill.backwards) == (10, 1, 1)


@pytest.mark.parametrize("kind", ["pooled", "tokens"])
def test_it_leaves_the_network_as_it_was(kind: str) -> None:
    net = NETWORKS[kind]()
    names = [*BY_GRADIENT, "eigen_cam", "eigen_grad_cam", "score_cam", "ablation_cam"]
    before = {name: value.clone() for name, value in net.module.state_dict().items()}
    done = explained(net, all_targets(net), *names, *(["full_grad"] if kind == "pooled" else []))
    assert not [outcome.error for outcome in done.values() if outcome.error]
    assert all(value.equal(before[name]) for name, value in net.module.state_dict().items())
    for part in net.module.modules():
        assert not part.training
        assert not part._forward_hooks
        assert not part._backward_hooks
    assert all(weights.grad is None and not weights.requires_grad for weights in net.module.parameters())


def test_it_draws_a_picture_alike_in_any_company() -> None:
    net = deep_net()
    subjects = all_targets(net, 3)
    names = (*BY_GRADIENT, "eigen_cam", "eigen_grad_cam", "full_grad", "score_cam", "ablation_cam")
    together = explained(net, subjects, *names)
    for name in names:
        alone = maps_of(name, net, subjects[4:5])
        np.testing.assert_allclose(together[4, name].result.values, alone[0], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", [*BY_GRADIENT, "eigen_grad_cam", "ablation_cam"])
def test_it_refuses_tokens_that_the_logits_do_not_read(name: str) -> None:
    with pytest.raises(NotApplicable, match="'last', which is zero in every cell.*Name an earlier layer"):
        open_explainer(Component(name, {"layer": "last"})).require(token_net(), "")


@pytest.mark.parametrize("name", ["eigen_cam", "score_cam", "deep_feature_factorization"])
def test_it_reads_such_tokens_where_no_gradient_is_needed(name: str) -> None:
    net = token_net()
    open_explainer(Component(name, {"layer": "last"})).require(net, "")
    assert maps_of(name, net, all_targets(net, 1)[:1], layer="last").max() > 0


@pytest.mark.parametrize("name", [*BY_GRADIENT, "eigen_cam", "ablation_cam", "deep_feature_factorization"])
def test_it_names_the_layers_that_there_are(name: str) -> None:
    with pytest.raises(NotApplicable, match="'9', which this predictor does not have: name one of 0.2, 0"):
        open_explainer(Component(name)).require(pooled_net(), "9")


# FullGrad


@pytest.mark.parametrize("kind", ["convolutional", "pooled", "deep", "residual"])
def test_it_adds_biases_up_as_the_library_does(kind: str) -> None:
    net = steeper(NETWORKS[kind](), 100)
    subjects = all_targets(net)
    for subject, attribution in zip(subjects, maps_of("full_grad", net, subjects), strict=True):
        expected = library_map("FullGrad", net, subject.pixels, subject.target)
        np.testing.assert_allclose(scaled(attribution), expected, atol=2e-6)


def test_it_explains_the_picture_as_the_network_has_it_behind_the_normalisation() -> None:
    inner = steeper(pooled_net(), 100)
    mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    module = NormalisedNetwork(inner.module, mean, std).eval()
    net = Tiny(module, inner.labels, "network.0", {"network.0": inner.layouts["0"]})
    subjects = all_targets(net)
    for subject, attribution in zip(subjects, maps_of("full_grad", net, subjects), strict=True):
        inside = (subject.pixels - module.mean[0]) / module.std[0]
        expected = library_map("FullGrad", inner, inside, subject.target)
        np.testing.assert_allclose(scaled(attribution), expected, atol=2e-6)


@pytest.mark.parametrize("kind", ["pooled", "deep", "residual"])
def test_it_knows_all_biases_of_a_network_of_convolutions(kind: str) -> None:
    """Completeness: gradients times input and biases, the linear layers' too, add up to the logit."""
    module = NETWORKS[kind]().module
    parts = [*BiasMaps.layers(module)]
    parts += [(part, part.bias) for part in module.modules() if isinstance(part, nn.Linear)]
    assert len(parts) == {"pooled": 4, "deep": 5, "residual": 6}[kind]
    met: list[tuple[Tensor, Tensor]] = []

    def note(bias: Tensor) -> Callable[..., Tensor]:
        def hook(_module: nn.Module, _inputs: object, output: Tensor) -> Tensor:
            met.append((output, bias.view(-1, 1, 1) if output.ndim == 4 else bias))
            return output.clone()

        return hook

    hooks = [part.register_forward_hook(note(bias)) for part, bias in parts]
    x = pictures(1).requires_grad_()
    logit = module(x)[0, 2]
    for hook in hooks:
        hook.remove()
    first, *gradients = torch.autograd.grad(logit, [x, *(output for output, _ in met)])
    total = (first * x).sum() + sum((g * b).sum() for g, (_, b) in zip(gradients, met, strict=True))
    assert float(total.detach()) == pytest.approx(float(logit.detach()), abs=1e-5)


def test_it_counts_a_normalisation_without_weights() -> None:
    part = nn.BatchNorm2d(2, affine=False).eval()
    assert part.running_mean is not None and part.running_var is not None
    part.running_mean.copy_(torch.tensor([1.0, -2.0]))
    part.running_var.copy_(torch.tensor([4.0, 1.0]))
    ((_, bias),) = BiasMaps.layers(part)
    np.testing.assert_allclose(bias, part(torch.zeros(1, 2, 1, 1)).flatten(), rtol=1e-6)


def test_it_refuses_biases_of_a_network_on_tokens() -> None:
    with pytest.raises(NotApplicable, match="works on tokens.*Use a convolutional network"):
        open_explainer(Component("full_grad")).require(token_net(), "")


def test_it_refuses_normalisations_that_measure_the_picture() -> None:
    module = seeded(nn.Sequential(nn.Conv2d(3, 4, 3), nn.GroupNorm(2, 4), nn.Flatten(), nn.Linear(1936, 2)))
    with pytest.raises(NotApplicable, match="'1' is a GroupNorm.*use a network with batch normalisation"):
        open_explainer(Component("full_grad")).require(Tiny(module, ("a", "b")), "")


def test_it_refuses_programs_whose_modules_carry_no_biases() -> None:
    net = Tiny(exported(pooled_net().module), LABELS)
    with pytest.raises(NotApplicable, match="none that can be found.*build the network from weights"):
        open_explainer(Component("full_grad")).require(net, "")
