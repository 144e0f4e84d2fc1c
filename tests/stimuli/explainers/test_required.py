"""A method is accepted for a network exactly if it explains a picture of it: all methods, many networks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from stimuli.errors import NotApplicable
from stimuli.explainers import BORROWED, EXPLAINERS, RECORDED, kind_of, open_explainer
from stimuli.planner.drive import Job, drive
from stimuli.planner.network import Network
from stimuli.planner.values import Subject
from stimuli.predictors import architectures
from stimuli.predictors.base import TorchPredictor
from stimuli.spec import Component
from tests.stimuli.cam_networks import exported, residual_net
from tests.stimuli.hub_models import save_classifier
from tests.stimuli.predictors.test_architectures import drawn, small_vgg
from tests.stimuli.predictors.test_conformance import CHEAP, bcos_net
from tests.stimuli.predictors.test_layouts import assembled
from tests.stimuli.predictors.test_predictors import opened
from tests.stimuli.tiny import SIDE, TinyTransformer, convolutional_net, pictures, pooled_net, seeded
from tests.witnesses import torchvision

pytestmark = [pytest.mark.pure, pytest.mark.filterwarnings("ignore")]
METHODS = [
    Component(name, CHEAP.get(name, {}))
    for name in EXPLAINERS
    if name not in {*BORROWED, RECORDED} and kind_of(Component(name)) == "image"
]
"""Controls that borrow a map run no network: they require what the borrowed method does."""
FROM_CAPTUM = (
    *("LRP", "LayerLRP", "DeepLift", "LayerGradCam", "LayerActivation", "GuidedBackprop", "GuidedGradCam"),
    *("Deconvolution", "InputXGradient", "LayerDeepLift", "FeatureAblation"),
)
METHODS += [Component("captum", {"method": method, "parts": 2}) for method in FROM_CAPTUM]
WRONG = {
    *("full_grad", "guided_backprop", "GuidedBackprop", "GuidedGradCam", "Deconvolution"),
    *("DeepLift", "LayerDeepLift"),
}
"""Refused if they would draw a map that is not theirs, because their hooks or biases see a part only."""


class BlackBox(nn.Module):
    """No gradient leads out of it."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = pooled_net().module

    def forward(self, inputs: Tensor) -> Tensor:
        logits: Tensor = self.inner(inputs).detach()
        return logits


def from_torchvision(name: str) -> nn.Module:
    """Of the library itself, through an exported program; narrow where a width can be chosen."""
    torchvision()
    models = import_module("torchvision.models")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(2)
        if name == "convnext":
            kind = import_module("torchvision.models.convnext")
            blocks = [kind.CNBlockConfig(8, 16, 1), kind.CNBlockConfig(16, None, 2)]
            network = kind.ConvNeXt(blocks, num_classes=4)
        else:
            # A stage of each kind: with and without growth, with and without a step.
            few = (
                {"inverted_residual_setting": [[1, 16, 1, 1], [6, 24, 2, 2]]}
                if name == "mobilenet_v2"
                else {}
            )
            network = getattr(models, name)(num_classes=4, width_mult=0.25, **few)
    return exported(drawn(network).requires_grad_(False))


def from_transformers(name: str, folder: Path) -> TorchPredictor:
    save_classifier(folder / "net", name)
    return opened("transformers_image", folder, folder="net")


def resnet18() -> nn.Module:
    return seeded(architectures.torchvision("resnet18", 4))


ZOO: dict[str, Callable[[Path], TorchPredictor]] = {
    "resnet18": lambda _: assembled(resnet18(), layer="layer2", input_px=64),
    "vgg": lambda _: assembled(small_vgg()),
    "vit of torchvision": lambda _: assembled(seeded(architectures.TorchvisionVit(8, 12, 2, 2, 4, SIDE)), 1),
    "vit of timm": lambda _: assembled(seeded(architectures.TimmVit(8, 12, 2, 2, 4, SIDE)), 1),
    "vit of nn.MultiheadAttention": lambda _: assembled(seeded(TinyTransformer()), 1),
    "vit, exported": lambda _: assembled(exported(seeded(TinyTransformer())).requires_grad_(False), 1),
    "vit of transformers": partial(from_transformers, "ViT"),
    "swin of transformers": partial(from_transformers, "Swin"),
    "convnext of transformers": partial(from_transformers, "ConvNext"),
    "convnext, exported": lambda _: assembled(from_torchvision("convnext")),
    "mobilenet v2, exported": lambda _: assembled(from_torchvision("mobilenet_v2"), input_px=SIDE),
    "mobilenet v3, exported": lambda _: assembled(from_torchvision("mobilenet_v3_small"), input_px=SIDE),
    "smooth cnn with nn.Flatten": lambda _: assembled(convolutional_net().module),
    "cnn with batch normalisation": lambda _: assembled(pooled_net().module),
    "reused ReLU": lambda _: assembled(residual_net().module),
    "b-cos": lambda _: assembled(bcos_net().module),
    "black box": lambda _: assembled(BlackBox()),
    "linear": lambda _: assembled(seeded(nn.Sequential(nn.Flatten(), nn.Linear(3 * SIDE * SIDE, 4)))),
}


def refusal(component: Component, predictor: TorchPredictor) -> str:
    try:
        open_explainer(component).require(predictor, predictor.layer)
    except NotApplicable as error:
        return str(error)
    return ""


def called(component: Component) -> str:
    return str(component.params.get("method", component.name))


@pytest.mark.long(stays="test_a_control_that_borrows_requires_what_the_borrowed_method_does")
@pytest.mark.parametrize("name", ZOO)
def test_a_method_is_accepted_exactly_if_it_explains_a_picture(name: str, tmp_path: Path) -> None:
    torch.set_num_threads(1)
    predictor = ZOO[name](tmp_path)
    image = pictures(1, predictor.input_px)[0]
    subject = Subject(0, "picture", 7, predictor.layer, image)
    jobs = [
        Job(called(method), subject, partial(open_explainer(method).explain, predictor, subject))
        for method in METHODS
    ]
    refused = {called(method): refusal(method, predictor) for method in METHODS}
    failed = {str(done.name): str(done.error or "") for done in drive(jobs, Network(predictor, rows=4))}
    accepted = {method for method, said in refused.items() if not said}
    assert {method: failed[method] for method in accepted if failed[method]} == {}
    assert {method: refused[method] for method in {*failed} - accepted - WRONG if not failed[method]} == {}
    assert all(len(said) > 40 for said in refused.values() if said)
    assert not all(refused.values())


@pytest.mark.parametrize("name", ["black box", "cnn with batch normalisation"])
@pytest.mark.parametrize("control", sorted(BORROWED))
def test_a_control_that_borrows_requires_what_the_borrowed_method_does(
    control: str, name: str, tmp_path: Path
) -> None:
    predictor = ZOO[name](tmp_path)
    assert refusal(Component(control), predictor) == refusal(Component("saliency"), predictor)
