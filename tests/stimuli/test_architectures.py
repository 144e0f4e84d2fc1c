"""Published architectures by their weights alone, compared with the libraries that have them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from stimuli.errors import BadSpec
from stimuli.predictors import architectures
from stimuli.predictors.base import TorchPredictor
from tests.stimuli.tiny import seeded
from tests.witnesses import timm, torchvision

pytestmark = pytest.mark.pure
SMALL_PX = 64
"""Convolutions take any size; passes are then quick."""


def torchvision_network(name: str, **settings: Any) -> nn.Module:
    torchvision()
    network = getattr(import_module("torchvision.models"), name)(weights=None, **settings)
    return drawn(network)


def timm_network(name: str, **settings: Any) -> nn.Module:
    return drawn(timm().create_model(name, pretrained=False, **settings))


def drawn(network: nn.Module) -> nn.Module:
    """The library's own first weights hide faults: biases, tokens and heads are 0, and statistics 0 and 1."""
    draws = torch.Generator().manual_seed(8)
    for weights in network.parameters():
        weights.data += 0.02 * torch.randn(weights.shape, generator=draws)
    for part in network.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.running_mean += 0.05 * torch.randn(part.running_mean.shape, generator=draws)  # type: ignore[union-attr]
            part.running_var *= 0.9 + 0.2 * torch.rand(part.running_var.shape, generator=draws)  # type: ignore[operator, union-attr]
    return network.eval()


def agree(witness: nn.Module, ours: nn.Module, side: int) -> None:
    """Equal logits and gradients, to 1e-5 of the largest."""
    ours.load_state_dict(witness.state_dict(), strict=True)
    ours.eval()
    x = torch.rand((2, 3, side, side), generator=torch.Generator().manual_seed(1)).sub_(0.5).div_(0.25)
    results = []
    for network in (witness, ours):
        inputs = x.clone().requires_grad_()
        logits = network(inputs)
        (gradient,) = torch.autograd.grad(logits[:, 1].sum(), inputs)
        results.append((logits.detach().numpy(), gradient.numpy()))
    for expected, got in zip(*results, strict=True):
        assert np.abs(expected).max() > 1e-3 * np.abs(x).max().item() or np.abs(expected).max() > 1e-4
        np.testing.assert_allclose(got, expected, atol=1e-5 * float(np.abs(expected).max()))


@pytest.mark.parametrize(
    "name", ["resnet18", "resnet50", "resnext50_32x4d", "wide_resnet50_2", "vgg11", "vgg16_bn"]
)
def test_it_says_what_torchvision_s_network_says(name: str) -> None:
    witness = torchvision_network(name, num_classes=5)
    agree(witness, architectures.torchvision(name, classes=5), SMALL_PX)


def test_it_says_what_torchvision_s_transformer_says() -> None:
    agree(torchvision_network("vit_b_16", num_classes=5), architectures.torchvision("vit_b_16", 5), 224)


@pytest.mark.parametrize("name", ["resnet34", "resnet50"])
def test_it_says_what_timm_s_network_says(name: str) -> None:
    agree(timm_network(name, num_classes=5), architectures.timm(name, classes=5), SMALL_PX)


@pytest.mark.parametrize("name", ["vit_base_patch16_224", "vit_tiny_patch16_224", "deit_small_patch16_224"])
def test_it_says_what_timm_s_transformer_says(name: str) -> None:
    agree(timm_network(name, num_classes=5), architectures.timm(name, classes=5), 224)


NAMES = [
    ("torchvision", name)
    for name in (*architectures.RESNETS, *architectures.VGGS, *architectures.TORCHVISION_VITS)
]
NAMES += [("timm", name) for name in (*architectures.RESNETS, *architectures.TIMM_VITS)]


@pytest.mark.parametrize(("library", "name"), NAMES)
def test_it_has_the_weights_of_every_network_that_it_names(library: str, name: str) -> None:
    """By names and shapes, without a number in memory."""
    with torch.device("meta"):
        ours = getattr(architectures, library)(name)
        if library == "timm":
            theirs = timm().create_model(name, pretrained=False)
        else:
            torchvision()
            theirs = getattr(import_module("torchvision.models"), name)(weights=None)
    shapes = [{key: tuple(value.shape) for key, value in net.state_dict().items()} for net in (ours, theirs)]
    assert shapes[0] == shapes[1]


def test_it_lists_the_names_that_it_knows() -> None:
    with pytest.raises(
        BadSpec, match='name = "vit": of torchvision, resnet18, .* vit_l_32 are built here; export'
    ):
        architectures.torchvision("vit")
    with pytest.raises(BadSpec, match="of timm, resnet18, .* deit_base_patch16_224 are built here"):
        architectures.timm("vgg16")


@pytest.mark.parametrize("name", ["vgg11", "vgg16_bn"])
def test_it_reads_the_last_convolution_of_a_vgg(name: str) -> None:
    """Behind its ReLU and before the pooling, as Grad-CAM's paper has it, not the pooled maps."""
    network = seeded(architectures.torchvision(name, classes=4))
    features = list(network.get_submodule("features"))  # type: ignore[call-overload]
    convolutions = [at for at, part in enumerate(features) if isinstance(part, nn.Conv2d)]
    last = convolutions[-1] + 1 + name.endswith("_bn")
    predictor = assembled_at(network, SMALL_PX)
    assert isinstance(features[last], nn.ReLU) and predictor.layer == f"features.{last}"
    layout = predictor.layouts[predictor.layer]
    assert (layout.channels, layout.height) == (512, SMALL_PX // 16)
    assert min(predictor.layouts["avgpool"].height, predictor.layouts["avgpool"].width) == 7


def assembled_at(network: nn.Module, side: int) -> TorchPredictor:
    from stimuli.predictors.base import Built, assemble

    return assemble(
        Built(network, architectures.prefix_of(network)),
        labels=("a", "b", "c", "d"),
        input_px=side,
        layer="",
        mean=(0.0, 0.0, 0.0),
        std=(1.0, 1.0, 1.0),
        architecture={"kind": "none"},
        payload=b"",
        provenance={},
    )
