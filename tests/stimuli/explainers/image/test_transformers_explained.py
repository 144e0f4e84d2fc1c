"""Methods on models of the hub, through the planner, compared with passes by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from stimuli.errors import NotApplicable
from stimuli.explainers import open_explainer
from stimuli.planner.network import Network
from stimuli.planner.values import ExplainedNumber, Subject
from stimuli.predictors.base import TorchPredictor
from stimuli.predictors.files.weights import pack_weights
from stimuli.spec import Component
from tests.stimuli.hub_models import CONFIGS, SIDE, save_classifier, save_clip
from tests.stimuli.predictors.test_predictors import export, opened
from tests.stimuli.tiny import explained, pictures

pytestmark = pytest.mark.pure
NAMES = (*CONFIGS, "CLIP", "SigLIP")
METHODS = (
    "saliency",
    "gradient_x_input",
    Component("integrated_gradients", {"steps": 64}),
    Component("smooth_grad", {"draws": 3}),
    "grad_cam",
    Component("occlusion", {"patch_share": 0.25, "stride_share": 0.25}),
)
TARGET = 1


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, TorchPredictor]:
    made = {}
    for name in NAMES:
        folder: Path = tmp_path_factory.mktemp(name)
        if name in CONFIGS:
            save_classifier(folder / "net", name)
        else:
            save_clip(folder / "net", form=name.lower())
        kind = "transformers_image" if name in CONFIGS else "clip_zero_shot"
        made[name] = opened(kind, folder, folder="net")
    return made


def subjects(count: int = 2) -> list[Subject]:
    return [Subject(TARGET, f"picture-{at}", 7, "", image) for at, image in enumerate(pictures(count, SIDE))]


def maps(predictor: TorchPredictor, *methods: Any) -> dict[str, Any]:
    """What each method says of the first picture of two."""
    done = explained(predictor, subjects(), *methods, rows=4)
    for outcome in done.values():
        if outcome.error is not None:
            raise outcome.error
    return {str(name[1]): outcome.result for name, outcome in done.items() if name[0] == 0}


def gradient(predictor: TorchPredictor, x: Tensor) -> Tensor:
    x = x[None].clone().requires_grad_()
    return torch.autograd.grad(predictor(x)[0, TARGET], x)[0][0]


def cam(predictor: TorchPredictor, x: Tensor) -> Tensor:
    """Grad-CAM from the definition, tokens brought to their places one by one."""
    outputs: list[Tensor] = []
    hook = predictor.layer_module().register_forward_hook(lambda _m, _i, out: outputs.append(out))
    logit = predictor(x[None].clone().requires_grad_())[0, TARGET]
    hook.remove()
    hidden, slope = outputs[0], torch.autograd.grad(logit, outputs[0])[0]
    layout = predictor.layouts[predictor.layer]
    if layout.kind == "tokens":
        grid = torch.zeros(2, layout.channels, layout.height, layout.width)
        for row in range(layout.height):
            for column in range(layout.width):
                token = layout.prefix + row * layout.width + column
                grid[0, :, row, column] = hidden[0, token].detach()
                grid[1, :, row, column] = slope[0, token]
        hidden, slope = grid[:1], grid[1:]
    coarse = (slope.mean((2, 3), keepdim=True) * hidden.detach()).sum(1, keepdim=True).relu()
    return functional.interpolate(coarse, size=(SIDE, SIDE), mode="bilinear", align_corners=False)[0, 0]


@pytest.mark.parametrize("name", NAMES)
def test_it_explains_models_of_the_hub(models: dict[str, TorchPredictor], name: str) -> None:
    predictor, x = models[name], subjects()[0].pixels
    attributions = maps(predictor, *METHODS)
    slope = gradient(predictor, x)
    scale = float(slope.abs().max())
    assert scale > 1e-6
    np.testing.assert_allclose(attributions["saliency"].values, slope.abs().amax(0), atol=1e-4 * scale)
    np.testing.assert_allclose(
        attributions["gradient_x_input"].values, (slope * x).mean(0), atol=1e-4 * scale
    )
    by_hand = cam(predictor, x)
    assert float(by_hand.max()) > 0
    np.testing.assert_allclose(attributions["grad_cam"].values, by_hand, atol=1e-4 * float(by_hand.max()))
    assert attributions["smooth_grad"].values.any()


@pytest.mark.parametrize("name", NAMES)
def test_it_occludes_models_of_the_hub(models: dict[str, TorchPredictor], name: str) -> None:
    predictor, x = models[name], subjects()[0].pixels
    falls = np.zeros((SIDE, SIDE))
    with torch.no_grad():
        whole = float(predictor(x[None])[0, TARGET])
        for top in range(0, SIDE, SIDE // 4):
            for left in range(0, SIDE, SIDE // 4):
                place = np.s_[top : top + SIDE // 4, left : left + SIDE // 4]
                covered = x.clone()
                covered[:, place[0], place[1]] = 0
                falls[place] = whole - float(predictor(covered[None])[0, TARGET])
    values = maps(predictor, METHODS[-1])["occlusion"].values
    np.testing.assert_allclose(values, falls, atol=1e-4 * float(np.abs(falls).max()))


@pytest.mark.parametrize("name", ["ViT", "ConvNext", "CLIP"])
def test_it_integrates_to_the_difference_of_the_logits(models: dict[str, TorchPredictor], name: str) -> None:
    """Completeness: three times the sum over the map, for networks that are smooth enough."""
    predictor, x = models[name], subjects()[0].pixels
    with torch.no_grad():
        ends = predictor(torch.stack([x, torch.zeros_like(x)]))[:, TARGET]
    attribution = maps(predictor, Component("integrated_gradients", {"steps": 200}))["integrated_gradients"]
    assert 3 * float(attribution.values.sum()) == pytest.approx(float(ends[0] - ends[1]), rel=0.05)


def test_it_refuses_cams_if_the_cells_are_not_read(models: dict[str, TorchPredictor]) -> None:
    blind = Component("grad_cam", {"layer": "model.vit.layers.1.layernorm_after"})
    with pytest.raises(NotApplicable, match="only the class token is read behind it. Name an earlier layer"):
        open_explainer(blind).require(models["ViT"], "")
    open_explainer(Component("grad_cam")).require(models["ViT"], "")
    [traced] = Network(models["ViT"], rows=2).trace(
        pictures(1, SIDE), [ExplainedNumber(TARGET)], _trace("model.vit.layers.1.layernorm_after")
    )
    assert not traced.gradients["model.vit.layers.1.layernorm_after"].any()


def _trace(layer: str) -> Any:
    from stimuli.planner.values import Trace

    return Trace((layer,), gradients=True)


@pytest.mark.parametrize("name", NAMES)
def test_it_leaves_models_of_the_hub_as_they_were(models: dict[str, TorchPredictor], name: str) -> None:
    predictor = models[name]
    before, archive = pack_weights(predictor.module), predictor.dump()
    maps(predictor, "saliency", "grad_cam", METHODS[-1])
    assert pack_weights(predictor.module) == before and predictor.dump() == archive
    assert not any(part._forward_hooks or part.training for part in predictor.module.modules())


def test_it_reads_a_model_of_the_hub_that_was_exported(
    models: dict[str, TorchPredictor], tmp_path: Path
) -> None:
    """The program has the layers of the model and says the same."""
    predictor = models["ViT"]
    export(predictor.module, tmp_path / "vit.pt2", side=SIDE)
    settings = {"weights": "vit.pt2", "input_px": SIDE, "labels": list(predictor.labels), "token_prefix": 1}
    program = opened("torch_image", tmp_path, **settings)
    assert program.layer == f"network.{predictor.layer}"
    ours, theirs = maps(predictor, "grad_cam"), maps(program, "grad_cam")
    np.testing.assert_allclose(theirs["grad_cam"].values, ours["grad_cam"].values, rtol=1e-4, atol=1e-9)
