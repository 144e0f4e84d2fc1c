"""Published architectures by their weights alone, compared with the libraries that have them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from stimuli.errors import BadSpec
from stimuli.predictors import architectures
from tests.stimuli.predictors.test_layouts import assembled
from tests.stimuli.predictors.test_predictors import export, opened
from tests.stimuli.tiny import SIDE, seeded
from tests.witnesses import timm, torchvision

pytestmark = pytest.mark.pure
SMALL_PX = 64
"""Convolutions take any size; passes are then quick."""


def torchvision_network(name: str, **settings: Any) -> nn.Module:
    torchvision()
    return drawn(lambda: getattr(import_module("torchvision.models"), name)(weights=None, **settings))


def timm_network(name: str, **settings: Any) -> nn.Module:
    return drawn(lambda: timm().create_model(name, pretrained=False, **settings))


def drawn(make: Callable[[], nn.Module]) -> nn.Module:
    """The library's own first weights hide faults: biases, tokens and heads are 0, and statistics 0 and 1.
    All are drawn by a seed: other tests of the process draw before this one, in an order that may change."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(8)
        network = make()
    draws = torch.Generator().manual_seed(8)
    for weights in network.parameters():
        weights.data += 0.02 * torch.randn(weights.shape, generator=draws)
    for part in network.modules():
        if isinstance(part, nn.BatchNorm2d):
            assert part.running_mean is not None and part.running_var is not None
            part.running_mean += 0.05 * torch.randn(part.running_mean.shape, generator=draws)
            part.running_var *= 0.9 + 0.2 * torch.rand(part.running_var.shape, generator=draws)
    return network.eval()


def agree(witness: nn.Module, ours: nn.Module, side: int) -> None:
    """Equal logits and gradients, to 1e-5 of the largest."""
    ours.load_state_dict(witness.state_dict(), strict=True)
    ours.eval()
    x = torch.rand((2, 3, side, side), generator=torch.Generator().manual_seed(1)).sub_(0.5).div_(0.25)
    logits, gradients = [], []
    for network in (witness, ours):
        inputs = x.clone().requires_grad_()
        logits.append(network(inputs))
        gradients.append(torch.autograd.grad(logits[-1][:, 1].sum(), inputs)[0])
    for expected, got in (logits, gradients):
        largest = float(expected.detach().abs().max())
        assert largest > 0 and float(expected.detach().std()) > 0.01 * largest
        np.testing.assert_allclose(got.detach().numpy(), expected.detach().numpy(), atol=1e-5 * largest)


WIDE = pytest.mark.long(stays="test_it_says_what_torchvision_s_network_says")


@pytest.mark.parametrize(
    "name", ["resnet18", "resnet50", "resnext50_32x4d", pytest.param("vgg11", marks=WIDE)]
)
def test_it_says_what_torchvision_s_network_says(name: str) -> None:
    witness = torchvision_network(name, num_classes=5)
    agree(witness, architectures.torchvision(name, classes=5), SMALL_PX)


def test_it_says_what_torchvision_s_transformer_says() -> None:
    witness = torchvision_network("vit_b_16", num_classes=5, image_size=SMALL_PX)
    agree(witness, architectures.torchvision("vit_b_16", 5, SMALL_PX), SMALL_PX)


def test_it_says_what_timm_s_network_says() -> None:
    agree(timm_network("resnet50", num_classes=5), architectures.timm("resnet50", classes=5), SMALL_PX)


@pytest.mark.parametrize("name", ["vit_tiny_patch16_224", "deit_small_patch16_224"])
def test_it_says_what_timm_s_transformer_says(name: str) -> None:
    witness = timm_network(name, num_classes=5, img_size=SMALL_PX)
    agree(witness, architectures.timm(name, 5, SMALL_PX), SMALL_PX)


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


def small_vgg() -> nn.Module:
    """The last stages of a VGG: its poolings end the part "features", and one more follows."""
    parts: list[nn.Module] = [nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    parts += [nn.Conv2d(6, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    network = nn.Sequential(
        OrderedDict(
            features=nn.Sequential(*parts),
            avgpool=nn.AdaptiveAvgPool2d(3),
            flat=nn.Flatten(),
            classifier=nn.Linear(72, 4),
        )
    )
    return seeded(network)


def test_it_reads_the_last_convolution_of_a_vgg(tmp_path: Path) -> None:
    """Behind its ReLU and before the poolings, as in Grad-CAM's paper; of an exported program too."""
    predictor = assembled(small_vgg())
    assert predictor.layer == "features.4"
    assert predictor.layouts["features.4"].height == SIDE // 2 and predictor.layouts["avgpool"].height == 3
    export(small_vgg(), tmp_path / "vgg.pt2", side=SIDE)
    labels = ["a", "b", "c", "d"]
    program = opened("torch_image", tmp_path, weights="vgg.pt2", input_px=SIDE, labels=labels)
    assert program.layer == "features.4"
    with torch.device("meta"):
        vgg16 = architectures.torchvision("vgg16").get_submodule("features")
    assert [type(part).__name__ for part in list(vgg16.children())[-3:]] == ["Conv2d", "ReLU", "MaxPool2d"]
