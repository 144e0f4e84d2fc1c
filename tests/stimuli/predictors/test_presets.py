"""Presets against the libraries that they are named after, on a ResNet-18 and a vision transformer."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from lime.lime_image import LimeImageExplainer
from numpy.typing import NDArray
from torch import Tensor

from stimuli.errors import BadSpec
from stimuli.explainers import EXPLAINERS, check_explainer
from stimuli.explainers.other_library_presets import PRESETS
from stimuli.explainers.perturbation.segments import segment_picture
from stimuli.planner.values import Subject
from stimuli.predictors.architectures import prefix_of, timm, torchvision
from stimuli.predictors.base import BuiltNetwork, TorchPredictor, assemble
from stimuli.predictors.framing import PictureSettings
from stimuli.spec import Component
from tests.stimuli.cam_networks import library_map, scaled
from tests.stimuli.explainers.image.test_lime_image import Given, chelsea
from tests.stimuli.tiny import Tiny, linear_net, maps_of, pictures, seeded

pytestmark = pytest.mark.pure
SIDE = 96
SAME = 1e-5
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
LABELS = ("a", "b", "c")
CAMS = {
    "grad_cam": "GradCAM",
    "hires_cam": "HiResCAM",
    "grad_cam_elementwise": "GradCAMElementWise",
    "grad_cam_plus_plus": "GradCAMPlusPlus",
    "xgrad_cam": "XGradCAM",
    "layer_cam": "LayerCAM",
    "score_cam": "ScoreCAM",
    "eigen_cam": "EigenCAM",
    "eigen_grad_cam": "EigenGradCAM",
}


@cache
def network(kind: str, side: int = SIDE, factor: float = 1.0) -> TorchPredictor:
    """A published architecture with seeded random weights, behind the usual normalisation; the last layer's
    are multiplied by `factor`.
    """
    made = torchvision("resnet18", 3) if kind == "resnet" else timm("vit_tiny_patch16_224", 3, side)
    built = BuiltNetwork(seeded(made), prefix_of(made))
    head: Any = made.get_submodule("fc" if kind == "resnet" else "head")
    head.weight.mul_(factor)
    return assemble(
        built, PictureSettings(side, MEAN, STD), labels=LABELS, layer="",
        architecture={"kind": kind}, payload=b"", provenance={},
    )  # fmt: skip


def photograph(top: int, side: int = SIDE) -> Tensor:
    return torch.from_numpy(chelsea(240)[top : top + side, top : top + side].copy()).permute(2, 0, 1)


def subjects(layer: str, count: int) -> list[Subject]:
    """Pictures, each with all answers."""
    return [
        Subject(at % 3, f"cat-{at // 3}", 7, layer, photograph(40 * (at // 3), SIDE)) for at in range(count)
    ]


def by_library(name: str, predictor: TorchPredictor, subject: Subject) -> NDArray[np.float32]:
    """The library is given the network alone, and the picture normalised."""
    inside = Tiny(predictor.module.network, LABELS, predictor.layer, predictor.layouts, SIDE)
    mean, std = (torch.tensor(values).view(3, 1, 1) for values in (MEAN, STD))
    return library_map(CAMS[name], inside, (subject.pixels - mean) / std, subject.target)


OTHERS = pytest.mark.long(stays="test_it_draws_what_grad_cam_draws")


@pytest.mark.parametrize("kind", ["resnet", "vit"])
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "grad_cam" else [OTHERS]) for name in CAMS]
)
def test_it_draws_what_grad_cam_draws(name: str, kind: str) -> None:
    """The library adds 1e-7 to what it divides by: its maps by gradients are made large beside that."""
    is_tried = name in ("score_cam", "eigen_cam")
    predictor = network(kind, factor=1.0 if is_tried else 30.0)
    chosen = subjects(predictor.layer, {"score_cam": 1}.get(name, 12))
    maps = maps_of(name, predictor, chosen, rows=16, preset="grad-cam")
    defaults = maps_of(name, predictor, chosen, rows=16)
    expected = [by_library(name, predictor, subject) for subject in chosen]
    assert sum(float(np.ptp(values)) > 0.5 for values in expected) >= min(3, len(chosen))
    for ours, theirs in zip(maps, expected, strict=True):
        np.testing.assert_allclose(scaled(ours), theirs, atol=SAME)
    apart = max(float(np.abs(scaled(a) - b).max()) for a, b in zip(defaults, expected, strict=True))
    sets = bool(PRESETS["grad-cam"].methods[name]) and (name, kind) != ("eigen_cam", "resnet")
    assert apart > 10 * SAME if sets else apart < SAME


def lime_levels(predictor: TorchPredictor, subject: Subject) -> NDArray[np.float64]:
    """PASTA's levels, from the package lime with the same copies: (mask + 1) * 0.49."""
    picture = subject.pixels.permute(1, 2, 0).double().numpy()
    cells = segment_picture(picture.astype(np.float32), "quickshift-1", 50)
    shown = subject.draws("lime", 0).integers(0, 2, (100, cells.max() + 1)).astype(bool)

    def said(copies: list[NDArray[np.float64]]) -> NDArray[np.float64]:
        x = torch.from_numpy(np.stack(copies)).permute(0, 3, 1, 2).float()
        with torch.no_grad():
            return np.asarray(predictor(x).double().softmax(1).numpy(), np.float64)

    explanation = LimeImageExplainer(random_state=Given(shown)).explain_instance(
        picture, said, labels=(subject.target,), hide_color=0, top_labels=None, num_samples=100,
        segmentation_fn=lambda _picture: cells,
    )  # fmt: skip
    _, mask = explanation.get_image_and_mask(
        subject.target, positive_only=False, num_features=5, hide_rest=False
    )
    return np.asarray((mask + 1) * 0.49)


@pytest.mark.parametrize(
    "kind",
    [
        "vit",
        pytest.param("resnet", marks=pytest.mark.long(stays="test_it_draws_the_three_levels_of_pasta")),
    ],
)
def test_it_draws_the_three_levels_of_pasta(kind: str) -> None:
    predictor = network(kind)
    chosen = subjects(predictor.layer, 2)
    maps = maps_of("lime_image", predictor, chosen, rows=16, preset="pasta")
    for subject, values in zip(chosen, maps, strict=True):
        np.testing.assert_allclose(values, lime_levels(predictor, subject), atol=1e-6)
    assert {round(float(value), 2) for value in np.unique(maps)} == {0.0, 0.49, 0.98}


def test_it_draws_one_level_if_no_segment_matters() -> None:
    net = linear_net()
    net.layer_module("1").get_parameter("weight").data.zero_()
    maps = maps_of("lime_image", net, [Subject(0, "flat", 7, "", pictures(1)[0])], preset="pasta",
                   segmentation="grid-1")  # fmt: skip
    np.testing.assert_allclose(maps, 0.49, atol=1e-6)


def occluded_by_loops(predictor: TorchPredictor, subject: Subject) -> NDArray[np.float64]:
    """Xplique's definition, one square after the other: those that fit, and what no square covers is 0."""
    with torch.no_grad():
        whole = float(predictor(subject.pixels[None])[0, subject.target])
        values = np.zeros(subject.pixels.shape[1:])
        side = len(values)
        for top in range(0, side - 2, 3):
            for left in range(0, side - 2, 3):
                copy = subject.pixels.clone()
                copy[:, top : top + 3, left : left + 3] = 0.5
                fall = whole - float(predictor(copy[None])[0, subject.target])
                values[top : top + 3, left : left + 3] += fall
    return values


@pytest.mark.parametrize("kind", ["resnet", "vit"])
def test_it_covers_as_xplique_says(kind: str) -> None:
    """Xplique needs TensorFlow and was not run: a loop of its definition stands for it. Falls are differences
    of scores, and rounded as they are.
    """
    predictor = network(kind, 32, 10.0)
    subject = Subject(1, "cat", 7, "", photograph(20, 32))
    values = maps_of("occlusion", predictor, [subject], rows=16, preset="xplique")[0]
    expected = occluded_by_loops(predictor, subject)
    with torch.no_grad():
        scale = float(predictor(subject.pixels[None]).abs().max())
    np.testing.assert_allclose(values, expected, atol=SAME * scale)
    assert np.abs(values).max() > 0.01 and not values[30:].any() and not values[:, 30:].any()


def test_it_stores_the_parameters_and_not_the_name() -> None:
    named = check_explainer(Component("occlusion", {"preset": "xplique", "baseline": 0.0}))
    spelled = {"patch_px": 3, "stride_px": 3, "overlaps": "sum", "border": "leave", "baseline": 0.0}
    assert named == check_explainer(Component("occlusion", spelled)) and "preset" not in named.params
    assert check_explainer(Component("lime_image", {"levels": "weights"})) == check_explainer(
        Component("lime_image")
    )
    of = check_explainer(Component("random", {"of": "eigen_cam", "parameters": '{"preset": "grad-cam"}'}))
    assert '"sign":"grad-cam"' in str(of.params["parameters"])


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_sets_methods_that_there_are(preset: str) -> None:
    assert PRESETS[preset].source and set(PRESETS[preset].methods) <= set(EXPLAINERS)
    for name in PRESETS[preset].methods:
        check_explainer(Component(name, {"preset": preset}))


@pytest.mark.parametrize(
    ("name", "preset", "said"),
    [
        ("eigen_cam", "captum", "'eigen_cam' has no preset 'captum': known are grad-cam, pasta, xplique"),
        ("rise", "xplique", "preset 'xplique' does not set explainer 'rise': it sets saliency"),
        ("eigen_cam", 3, "'eigen_cam' has no preset 3"),
        ("eigen_cam", ["pasta"], r"'eigen_cam' has no preset \['pasta'\]"),
    ],
)
def test_it_names_what_there_is(name: str, preset: Any, said: str) -> None:
    with pytest.raises(BadSpec, match=said):
        check_explainer(Component(name, {"preset": preset}))
