"""State dicts of all ages: small stand-ins with the quirks of published files, each opened as docs say it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import Tensor, nn

from stimuli.errors import ShapeMismatch
from stimuli.predictors import architectures
from stimuli.predictors.base import TorchPredictor
from stimuli.predictors.files.weights import fit_weights
from stimuli.training import small_network
from tests.stimuli.predictors.test_predictors import opened, views
from tests.stimuli.predictors.test_published_models import script
from tests.stimuli.tiny import seeded

pytestmark = pytest.mark.pure
State = dict[str, Any]
PX = 32


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The published architectures with fewer and narrower blocks, under the same names."""
    monkeypatch.setitem(architectures.RESNETS, "resnet18", (False, (1, 1, 1, 1), 1, 64))
    monkeypatch.setitem(architectures.TORCHVISION_VITS, "vit_b_16", (8, 24, 2, 2))
    monkeypatch.setitem(architectures.TIMM_VITS, "deit_base_patch16_224", (8, 24, 2, 2))


def counted(state: State) -> State:
    """Before torch 0.4.1 (July 2018) no batches were counted; and a state held parameters."""
    return {
        name: nn.Parameter(value, requires_grad=False)
        for name, value in state.items()
        if not name.endswith("num_batches_tracked")
    }


def two_linears(state: State) -> State:
    """torchvision before 0.14 (pytorch/vision 6053) called the layers of a block linear_1 and linear_2."""
    return {
        name.replace("mlp.0.", "mlp.linear_1.").replace("mlp.3.", "mlp.linear_2."): v
        for name, v in state.items()
    }


def inside(key: str, prefix: str = "") -> Callable[[State], State]:
    return lambda state: {"epoch": 3, key: {prefix + name: value for name, value in state.items()}}


VIT = "deit_base_patch16_224"
FILES: dict[str, tuple[str, str, Callable[[State], State], str]] = {
    "torchvision resnet18-5c106cde.pth, 2017": ("torchvision", "resnet18", counted, ""),
    "torchvision vit_b_16-c867db91.pth, 2022": ("torchvision", "vit_b_16", two_linears, ""),
    "DeiT deit_base_patch16_224-b5f2ef4d.pth, 2020": ("timm", VIT, inside("model"), ""),
    "a run of timm, several GPUs": ("timm", VIT, inside("state_dict", "module."), "module."),
    "a run of timm, compiled": ("timm", VIT, inside("state_dict", "_orig_mod.module."), "_orig_mod.module."),
    "a run of Lightning": ("torchvision", "vit_b_16", inside("state_dict", "model."), "model."),
}
"""By file and year: the builder and name here, what is special, and the prefix that is told."""


@pytest.mark.parametrize("file", FILES)
def test_the_published_files_open(file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the page's own script, which reads pickled numbers and writes safetensors."""
    library, name, quirk, prefix = FILES[file]
    sizes = {"image_px": PX} if "patch" in name or "vit" in name else {}
    witness = seeded(getattr(architectures, library)(name, classes=2, **sizes))
    monkeypatch.chdir(tmp_path)
    torch.save(quirk(witness.state_dict()), "resnet18.pth", _use_new_zipfile_serialization="2017" not in file)
    exec(script("resnet18.pth"), {})
    params = {"name": name, "classes": 2, **sizes}
    predictor = opened(
        "torch_image",
        tmp_path,
        weights="resnet18.safetensors",
        builder=library,
        builder_params=params,
        input_px=PX,
        labels=["cat", "dog"],
    )
    with torch.no_grad():
        expected = witness(torch.from_numpy(views()).permute(0, 3, 1, 2).float() / 255).numpy()
    np.testing.assert_allclose(predictor.logits(views()), expected, atol=1e-5 * np.abs(expected).max())
    assert predictor.provenance.get("name_prefix", "") == prefix


@pytest.mark.filterwarnings("ignore:.*which is a no-op")
def test_weights_of_a_vgg_with_normalisations_need_no_counts() -> None:
    """torchvision vgg16_bn-6c64b313.pth, 2017: by names and shapes, without a number in memory."""
    with torch.device("meta"):
        network = architectures.torchvision("vgg16_bn", classes=2)
    fit_weights(network, counted(network.state_dict()), "the file")


def load(folder: Path, state: dict[str, Tensor], **changes: Any) -> TorchPredictor:
    safetensors.torch.save_file(state, folder / "w.safetensors")
    return opened(
        "torch_image",
        folder,
        weights="w.safetensors",
        builder="stimuli.training:small_network",
        builder_params={"width": 4, "classes": 2},
        input_px=PX,
        labels=["cat", "dog"],
    )


NET = small_network(4, 2).eval()


@pytest.mark.parametrize(
    ("names", "prefix"),
    [
        (lambda name: f"module.{name}", "module."),
        (lambda name: f"module.model.{name}", "module.model."),
        (lambda name: f"_orig_mod.{name}", "_orig_mod."),
        (lambda name: name.replace("features.", "features._orig_mod."), "_orig_mod."),
    ],
)
def test_prefixes_of_wrappers_are_taken_off_and_told(
    names: Callable[[str], str], prefix: str, tmp_path: Path
) -> None:
    plain = load(tmp_path, NET.state_dict())
    state = {names(name): value for name, value in NET.state_dict().items()}
    predictor = load(tmp_path, {**state, "n_averaged": torch.zeros(()), "total_ops": torch.zeros(1)})
    assert predictor.provenance["name_prefix"] == prefix and "name_prefix" not in plain.provenance
    assert predictor.key == plain.key, "the network is the same"
    np.testing.assert_array_equal(predictor.logits(views()), plain.logits(views()))


def test_other_names_are_shown(tmp_path: Path) -> None:
    state = NET.state_dict()
    first = next(iter(state))
    lacking = {name: value for name, value in state.items() if name != first}
    with pytest.raises(
        ShapeMismatch, match=rf'does not fit the network: "{first}" is missing; use the builder'
    ):
        load(tmp_path, lacking)
    other = {**lacking, "backbone.first": torch.zeros(2), "backbone.loss": torch.zeros(1)}
    words = rf'"{first}" is missing; "backbone.first", "backbone.loss" are not in the network; use'
    with pytest.raises(ShapeMismatch, match=words):
        load(tmp_path, other)
    wide = {name: torch.zeros(2, 2, 2) for name in state}
    with pytest.raises(ShapeMismatch, match=r"has the shape \(2, 2, 2\), .* and \d+ more; use"):
        load(tmp_path, wide)


def test_a_prefix_that_is_no_wrapper_s_is_named(tmp_path: Path) -> None:
    state = {f"net.{name}": value for name, value in NET.state_dict().items()}
    with pytest.raises(ShapeMismatch, match='every name begins with "net.": save them without it'):
        load(tmp_path, state)
    load(tmp_path, {name.removeprefix("net."): value for name, value in state.items()})


def test_a_builder_may_return_a_wrapper(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plain = load(tmp_path, NET.state_dict())
    made = small_network
    monkeypatch.setattr(
        "stimuli.training.small_network", lambda width, classes: nn.DataParallel(made(width, classes))
    )
    wrapped = load(tmp_path, NET.state_dict())
    assert (wrapped.layers, wrapped.key) == (plain.layers, plain.key)
