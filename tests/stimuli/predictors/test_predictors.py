from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
from numpy.typing import NDArray
from torch import nn

from stimuli.errors import BadSpec, NotApplicable, ShapeMismatch
from stimuli.predictors import open_predictor, restore
from stimuli.predictors.base import TorchPredictor
from stimuli.spec import Component, JsonValue
from stimuli.types import Item, Pixels, Split

pytestmark = pytest.mark.pure
SAFE = {"input_px": 32, "labels": ["cat", "dog"], "mean": [0.4, 0.5, 0.6], "std": [0.2, 0.25, 0.3]}


class NoItems:
    labels = ("cat", "dog")

    def items(self, split: Split) -> tuple[Item, ...]:
        return ()

    def pixels(self, key: str) -> Pixels:
        raise BadSpec("there are no items")


def network(classes: int = 2) -> nn.Sequential:
    torch.manual_seed(3)
    model = nn.Sequential()
    model.add_module("features", nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU()))
    model.add_module("head", nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, classes)))
    return model.eval()


def export(model: nn.Module, path: Path, *, dynamic: bool = True, side: int = 32) -> None:
    shapes = ({0: torch.export.Dim("batch")},) if dynamic else None
    program = torch.export.export(model, (torch.rand(2, 3, side, side),), dynamic_shapes=shapes)
    torch.export.save(program, path)


def views(count: int = 5) -> NDArray[np.uint8]:
    return np.random.default_rng(0).integers(0, 256, (count, 32, 32, 3), dtype=np.uint8)


def load(folder: Path, **params: JsonValue) -> TorchPredictor:
    return opened("torch_image", folder, **{**SAFE, **params})


def opened(predictor: str, study_folder: Path = Path(), /, **params: JsonValue) -> TorchPredictor:
    """An image predictor by its name in the registry, for a dataset of cats and dogs."""
    made = open_predictor(Component(predictor, params), study_folder, NoItems())
    assert isinstance(made, TorchPredictor)
    return made


def restored(predictor: TorchPredictor) -> TorchPredictor:
    back = restore(predictor.dump())
    assert isinstance(back, TorchPredictor)
    return back


def expected(model: nn.Module) -> NDArray[np.float32]:
    """The same logits computed by hand: scale, normalise, pass."""
    scaled = views().transpose(0, 3, 1, 2).astype(np.float32) / 255
    mean, std = (np.array(SAFE[name], dtype=np.float32)[None, :, None, None] for name in ("mean", "std"))
    with torch.no_grad():
        return np.asarray(model(torch.from_numpy((scaled - mean) / std)).numpy())


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported")
    export(network(), folder / "model.pt2")
    return folder


def test_it_reads_an_exported_program_with_its_layers(exported: Path) -> None:
    predictor = load(exported, weights="model.pt2", layer="features")
    assert np.allclose(predictor.logits(views(), batch=2), expected(network()), atol=1e-5)
    assert predictor.layer == "features"
    assert "features.0" in predictor.layers
    assert predictor.layer_module("features.0") is not predictor.layer_module()


def test_it_differentiates_through_an_exported_program(exported: Path) -> None:
    predictor = load(exported, weights="model.pt2")
    inputs = predictor.inputs(views()).requires_grad_()
    predictor(inputs)[:, 1].sum().backward()  # type: ignore[no-untyped-call]
    assert inputs.grad is not None
    assert float(inputs.grad.abs().sum()) > 0


def test_it_hooks_the_layer_of_an_exported_program(exported: Path) -> None:
    predictor = load(exported, weights="model.pt2")
    shapes: list[tuple[int, ...]] = []
    hook = predictor.layer_module("features").register_forward_hook(
        lambda _m, _i, o: shapes.append(tuple(o.shape))
    )
    predictor.logits(views(3))
    hook.remove()
    assert shapes == [(3, 4, 32, 32)]


def test_it_comes_back_from_its_archive_the_same(exported: Path) -> None:
    for predictor in (
        load(exported, weights="model.pt2"),
        *(opened("toy", kind=kind) for kind in ("linear", "quadrant")),
    ):
        back = restored(predictor)
        assert (back.key, back.layer, back.labels, back.layers) == (
            predictor.key,
            predictor.layer,
            predictor.labels,
            predictor.layers,
        )
        assert np.array_equal(back.logits(views()), predictor.logits(views()))
        assert back.dump() == predictor.dump()


def test_it_refuses_an_archive_that_was_changed(exported: Path) -> None:
    toy = opened("toy", kind="linear").dump()
    with pytest.raises(BadSpec, match="was changed"):
        restore(toy.replace(b'"seed":0', b'"seed":1'))
    with pytest.raises(BadSpec, match="no predictor archive"):
        restore(b"PK\x03\x04 something else")
    with pytest.raises(BadSpec, match="damaged|was changed"):
        restore(toy.replace(b'"labels"', b'"lapels"'))


def test_it_has_another_key_for_other_weights_labels_or_normalisation(exported: Path) -> None:
    base = load(exported, weights="model.pt2")
    assert base.key == load(exported, weights="model.pt2").key
    assert base.key != load(exported, weights="model.pt2", labels=["dog", "cat"]).key
    assert base.key != load(exported, weights="model.pt2", mean=[0.0, 0.0, 0.0]).key


def test_it_demands_a_dynamic_batch(tmp_path: Path) -> None:
    export(network(), tmp_path / "fixed.pt2", dynamic=False)
    with pytest.raises(BadSpec, match="batch dimension is fixed.*dynamic_shapes"):
        load(tmp_path, weights="fixed.pt2")


def test_it_says_when_labels_or_pictures_do_not_fit(exported: Path) -> None:
    with pytest.raises(ShapeMismatch, match=r"returns 2 logits, but 3 labels are given \(a, b, c\)"):
        load(exported, weights="model.pt2", labels=["a", "b", "c"])
    with pytest.raises(ShapeMismatch, match="check input_px"):
        load(exported, weights="model.pt2", input_px=48)
    with pytest.raises(BadSpec, match='layer "layer4" puts out no maps.*features'):
        load(exported, weights="model.pt2", layer="layer4")


def test_it_reads_safetensors_with_a_builder(tmp_path: Path) -> None:
    source = "stimuli.training:small_network"
    built = __import__("stimuli.training", fromlist=["small_network"]).small_network(4, 2).eval()
    safetensors.torch.save_file(built.state_dict(), tmp_path / "w.safetensors")
    settings = {"weights": "w.safetensors", "builder": source}
    predictor = load(tmp_path, **settings, builder_params={"width": 4, "classes": 2})
    assert np.allclose(predictor.logits(views()), expected(built), atol=1e-5)
    assert restored(predictor).key == predictor.key
    with pytest.raises(
        ShapeMismatch, match=r'"w.safetensors" does not fit the network: "features.*use the builder'
    ):
        load(tmp_path, **settings, builder_params={"width": 6, "classes": 2})
    with pytest.raises(BadSpec, match="does not take builder_params"):
        load(tmp_path, **settings, builder_params={"depth": 4})


@pytest.mark.parametrize("builder", ["os:system", "subprocess:run", "not_installed_at_all:net", "no colon"])
def test_it_builds_networks_with_installed_packages_only(tmp_path: Path, builder: str) -> None:
    safetensors.torch.save_file(network().state_dict(), tmp_path / "w.safetensors")
    with pytest.raises(BadSpec, match="builder = "):
        load(tmp_path, weights="w.safetensors", builder=builder)


def test_it_never_takes_a_builder_from_the_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mynet.py").write_text("raise SystemExit('the study ran code')")
    monkeypatch.syspath_prepend(tmp_path)
    safetensors.torch.save_file(network().state_dict(), tmp_path / "w.safetensors")
    with pytest.raises(BadSpec, match='"mynet" is not an installed package'):
        load(tmp_path, weights="w.safetensors", builder="mynet:build")


def test_it_reads_no_other_kind_of_file(tmp_path: Path) -> None:
    with pytest.raises(BadSpec, match="only .pt2 and .safetensors are read"):
        load(tmp_path, weights="model.pt")
    with pytest.raises(BadSpec, match="cannot be read"):
        load(tmp_path, weights="model.pt2")
    (tmp_path / "w.safetensors").write_bytes(b"nothing")
    with pytest.raises(BadSpec, match="no safetensors file"):
        load(
            tmp_path,
            weights="w.safetensors",
            builder="stimuli.training:small_network",
            builder_params={"width": 4, "classes": 2},
        )


def test_it_sees_the_centre_of_a_picture_at_its_own_size() -> None:
    toy = opened("toy", input_px=16)
    wide = np.zeros((20, 60, 3), dtype=np.uint8)
    wide[:, 20:40] = 255
    assert toy.view(wide).shape == (16, 16, 3)
    assert toy.view(wide)[:, 3:13].min() > 240
    assert np.array_equal(toy.view(toy.view(wide)), toy.view(wide))
    with pytest.raises(ShapeMismatch, match="make them with view"):
        toy.inputs([wide])


def test_it_answers_in_closed_form() -> None:
    toy = opened("toy", input_px=16)
    picture = np.zeros((16, 16, 3), dtype=np.uint8)
    picture[:8, 8:] = 255
    assert toy.logits([picture]).tolist() == [[0.0, 10.0]]
    assert toy.layer == "cells"


def test_it_says_that_a_linear_model_has_no_layer() -> None:
    linear = opened("toy", kind="linear")
    with pytest.raises(NotApplicable, match="no layer"):
        linear.layer_module()
