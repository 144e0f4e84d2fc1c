"""Layer-wise relevance propagation: conserved, equal to zennit's, and by hand."""

from __future__ import annotations

import copy
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from stimuli.errors import NotApplicable
from stimuli.explainers import open_explainer
from stimuli.planner.steps.relevance import Propagating
from stimuli.planner.values import Relevance
from stimuli.predictors import architectures
from stimuli.spec import Component
from tests.stimuli.cam_networks import exported, residual_net
from tests.stimuli.predictors.test_architectures import SMALL_PX, torchvision_network
from tests.stimuli.predictors.test_layouts import assembled
from tests.stimuli.tiny import (
    SIDE,
    Tiny,
    TinyTransformer,
    explained,
    linear_net,
    pictures,
    pooled_net,
    seeded,
    subjects_of,
    token_net,
)
from tests.witnesses import torchvision, zennit

pytestmark = pytest.mark.pure
TINY = 1e-9
"""Zennit's sums and poolings have an epsilon as well, which ours have not: too small to count."""


def relevance(module: nn.Module, x: Tensor, target: int, asked: Relevance) -> tuple[Tensor, Tensor]:
    """Of every input (N, 3, H, W), and the logits; the network's weights are frozen."""
    given = x.clone().requires_grad_()
    with Propagating(asked):
        logits = module(given)
    (factor,) = torch.autograd.grad(logits[:, target].sum(), given)
    return factor * x, logits.detach()


def zennit_relevance(module: nn.Module, x: Tensor, target: int, canonizer: str) -> tuple[Tensor, Tensor]:
    zennit()
    torchvision()
    canonizers = [getattr(import_module("zennit.torchvision"), canonizer)()]
    composite = import_module("zennit.composites").EpsilonPlus(
        epsilon=TINY, stabilizer=TINY, canonizers=canonizers
    )
    witness = copy.deepcopy(module).requires_grad_(True)

    def chosen(logits: Tensor) -> Tensor:
        return logits * nn.functional.one_hot(torch.full((len(x),), target), logits.shape[1])

    with import_module("zennit.attribution").Gradient(witness, composite) as attributor:
        logits, got = attributor(x.clone(), chosen)
    return got.detach(), logits.detach()


WIDE = pytest.mark.long(stays="test_it_is_zennit_s")


@pytest.mark.parametrize(
    ("name", "canonizer", "tolerance"),
    [
        pytest.param("vgg11", "VGGCanonizer", 1e-8, marks=WIDE),
        pytest.param("vgg11_bn", "VGGCanonizer", 1e-8, marks=WIDE),
        ("resnet18", "ResNetCanonizer", 1e-5),
        ("resnet50", "ResNetCanonizer", 1e-5),
    ],
)
def test_it_is_zennit_s(name: str, canonizer: str, tolerance: float) -> None:
    """Batch normalisations without epsilon: zennit merges them, and leaves one of variance 1 with its epsilon
    behind, which divides by 1.000005 once more. In double precision: in single precision the rounding of a
    processor decides which of two nearly equal values wins a max pooling."""
    witness = torchvision_network(name, num_classes=5)
    for part in witness.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.eps = 0.0
    ours = architectures.torchvision(name, classes=5)
    ours.load_state_dict(witness.state_dict())
    for part in ours.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.eps = 0.0
    x = (
        torch.rand((2, 3, SMALL_PX, SMALL_PX), generator=torch.Generator().manual_seed(1))
        .sub_(0.5)
        .div_(0.25)
    )
    x, witness, ours = x.double(), witness.double(), ours.double()
    expected, theirs = zennit_relevance(witness, x, 2, canonizer)
    got, logits = relevance(ours.eval().requires_grad_(False), x, 2, Relevance(epsilon=TINY))
    largest = float(expected.abs().max())
    np.testing.assert_allclose(logits, theirs, atol=1e-5 * float(theirs.abs().max()))
    np.testing.assert_allclose(got, expected, atol=tolerance * largest)


def without_constants(module: nn.Module) -> nn.Module:
    """Biases, shifts of normalisations, class tokens and embeddings of places are 0."""
    constant = ("bias", "token", "embed", "places", "embedding")
    for name, weights in module.named_parameters():
        if any(name.endswith(word) for word in constant):
            weights.data.zero_()
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            assert part.running_mean is not None
            part.running_mean.zero_()
    return module


def small_resnet() -> nn.Module:
    return seeded(architectures.ResNet(False, (1, 1, 1, 1), 1, 64, 4))


def small_vit() -> nn.Module:
    return seeded(architectures.TimmVit(8, 32, 3, 4, 4, SIDE))


@pytest.mark.parametrize(
    "make",
    [small_resnet, small_vit, lambda: seeded(TinyTransformer()), lambda: pooled_net().module],
    ids=["resnet", "vit", "nn.MultiheadAttention", "cnn"],
)
@pytest.mark.parametrize("composite", ["epsilon", "epsilon_plus"])
def test_it_conserves_relevance_without_biases(make: Any, composite: Any) -> None:
    """Conservation [Bach et al. 2015, equation 2]: what the pixels have adds up to the logit."""
    module, x = without_constants(make()).double(), pictures(3).double() - 0.4
    got, logits = relevance(module, x, 1, Relevance(composite, 0.0, "constant"))
    assert float(logits.abs().min()) > 1e-6
    np.testing.assert_allclose(got.sum((1, 2, 3)), logits[:, 1], rtol=1e-9)


class AttentionAlone(nn.Module):
    """Queries, keys and values (N, 3, T, D), nothing else."""

    def forward(self, parts: Tensor) -> Tensor:
        query, key, value = parts.unbind(1)
        mixed: Tensor = nn.functional.scaled_dot_product_attention(query, key, value)
        return mixed


@pytest.mark.parametrize("softmax", ["taylor", "constant"])
def test_it_follows_the_rules_of_attention_by_hand(softmax: Any) -> None:
    """Achtibat et al. 2024, proposition 3.1 (softmax) and 3.3 (products); CP-LRP stops at the weights."""
    draws = np.random.default_rng(2)
    query, key, value = draws.normal(size=(3, 4, 5))
    scores = query @ key.T / np.sqrt(5)
    weights = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    mixed = weights @ value
    over = 1.0 if softmax == "constant" else 2.0
    per_output = mixed / (over * mixed)  # relevance of each output is its value
    of_value = np.einsum("ji,ip,jp->ip", weights, value, per_output)
    of_weights = np.einsum("ji,ip,jp->ji", weights, value, per_output) * (softmax == "taylor")
    of_scores = scores * (of_weights - weights * of_weights.sum(1, keepdims=True))
    shared = of_scores / (2 * scores) / np.sqrt(5)
    of_query = np.einsum("jp,ip,ji->jp", query, key, shared)
    of_key = np.einsum("jp,ip,ji->ip", query, key, shared)
    x = torch.from_numpy(np.stack([query, key, value])[None]).requires_grad_()
    with Propagating(Relevance(softmax=softmax)):
        output = AttentionAlone()(x)
    got = torch.autograd.grad(output.sum(), x)[0] * x
    np.testing.assert_allclose(got[0].detach(), np.stack([of_query, of_key, of_value]), rtol=1e-9, atol=1e-12)


def test_it_follows_the_epsilon_and_z_plus_rules_by_hand() -> None:
    """Bach et al. 2015, equations 58 and 60, place by place, on inputs and weights of both signs."""
    draws = np.random.default_rng(3)
    weight, bias, last = draws.normal(size=(6, 3)), draws.normal(size=6), draws.normal(size=(2, 6))
    module = nn.Sequential(nn.Conv2d(3, 6, 1), nn.ReLU(), nn.Flatten(), nn.Linear(6, 2, bias=False)).double()
    convolution, linear = module[0], module[3]
    convolution.weight.data = torch.from_numpy(weight)[:, :, None, None]
    convolution.bias.data, linear.weight.data = torch.from_numpy(bias), torch.from_numpy(last)
    x = draws.normal(size=3)
    hidden = np.maximum(weight @ x + bias, 0)
    logit, epsilon = float(last[1] @ hidden), 0.1
    of_hidden = last[1] * hidden / (logit + epsilon * np.sign(logit)) * logit
    expected = np.zeros(3)
    for at in range(6):
        positive = np.maximum(weight[at] * x, 0)
        total = positive.sum() + max(bias[at], 0)
        expected += positive / (total + epsilon) * of_hidden[at]
    module.requires_grad_(False)
    got, _ = relevance(module, torch.from_numpy(x)[None, :, None, None], 1, Relevance(epsilon=epsilon))
    np.testing.assert_allclose(got.flatten(), expected, rtol=1e-9)


def test_a_linear_network_has_weight_times_input_and_its_bias_is_absorbed() -> None:
    net, x = linear_net(), pictures(1)
    (done,) = explained(net, subjects_of(x), Component("lrp", {"epsilon": 0.0})).values()
    weights, bias = net.module[1].weight[0], float(net.module[1].bias[0])  # type: ignore[index]
    expected = (weights * x[0].flatten()).view(3, SIDE, SIDE).sum(0)
    np.testing.assert_allclose(done.result.values, expected, atol=1e-7)
    assert done.result.signed
    assert done.result.checks["absorbed_share"] == pytest.approx(bias / float(net.module(x)[0, 0]), abs=1e-5)


def test_it_explains_what_the_network_is_given_behind_its_normalisation() -> None:
    """Pixels at the mean have no relevance, as in zennit, which is handed the normalised picture."""
    mean, std = (0.4, 0.5, 0.6), (0.2, 0.25, 0.3)
    network = seeded(
        nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 4))
    )
    predictor = assembled(network, mean=mean, std=std)
    x = pictures(1)
    shift, scale = torch.tensor(mean).view(1, 3, 1, 1), torch.tensor(std).view(1, 3, 1, 1)
    expected, _ = relevance(network, (x - shift) / scale, 0, Relevance())
    (done,) = explained(predictor, subjects_of(x), "lrp").values()
    np.testing.assert_allclose(
        done.result.values, expected[0].sum(0), atol=1e-6 * float(expected.abs().max())
    )


@pytest.mark.parametrize("net", [token_net(), pooled_net()], ids=["vit", "cnn"])
def test_an_exported_program_has_the_same_relevance(net: Tiny) -> None:
    program = Tiny(exported(net.module), net.labels, net.layer, net.layouts)
    for part in program.module.parameters():
        part.requires_grad_(False)
    open_explainer(Component("lrp")).require(program, "")
    x = pictures(2)
    expected, got = (relevance(kind.module, x, 1, Relevance())[0] for kind in (net, program))
    np.testing.assert_allclose(got, expected, atol=1e-5 * float(expected.abs().max()))


def test_it_leaves_the_logits_as_they_are() -> None:
    for net in (token_net(), pooled_net(), residual_net()):
        x = pictures(3)
        _, logits = relevance(net.module, x, 0, Relevance())
        np.testing.assert_allclose(logits, net.module(x), atol=2e-6)


class Gated(nn.Module):
    """A gate, for which no rule is offered."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Conv2d(3, 4, 3)
        self.head = nn.Linear(4, 4)

    def forward(self, pictures: Tensor) -> Tensor:
        maps = self.inner(pictures)
        logits: Tensor = self.head((maps * maps.sigmoid()).mean((2, 3)))
        return logits


def test_it_names_the_step_that_has_no_rule() -> None:
    net = Tiny(seeded(Gated()), ("a", "b", "c", "d"))
    for _ in range(2):  # the second time from what is known of the network
        with pytest.raises(NotApplicable, match="no rule for its step 'sigmoid'. Use another method"):
            open_explainer(Component("lrp")).require(net, "")
    (done,) = explained(net, subjects_of(pictures(1)), "lrp").values()
    assert isinstance(done.error, NotApplicable)
