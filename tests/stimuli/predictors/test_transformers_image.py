"""Classifiers of the transformers library, compared with the library's own passes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file

from stimuli import explain
from stimuli.errors import BadSpec
from stimuli.predictors.base import TorchPredictor
from stimuli.spec import JsonValue
from tests.stimuli.hub_models import (
    CONFIGS,
    LABELS,
    MEAN,
    SIDE,
    STD,
    save_classifier,
    write_settings,
)
from tests.stimuli.predictors.test_predictors import NoItems, opened, restored

pytestmark = pytest.mark.pure
NAMES = tuple(CONFIGS)


def load(study_folder: Path, **params: JsonValue) -> TorchPredictor:
    return opened("transformers_image", study_folder, **{"folder": "net", **params})


def views(count: int = 3) -> NDArray[np.uint8]:
    return np.random.default_rng(0).integers(0, 256, (count, SIDE, SIDE, 3), dtype=np.uint8)


def expected(model: Any) -> NDArray[np.float32]:
    """What the library's model says, to pictures scaled and normalised by hand."""
    scaled = views().transpose(0, 3, 1, 2).astype(np.float32) / 255
    mean, std = (np.array(values, np.float32)[None, :, None, None] for values in (MEAN, STD))
    with torch.no_grad():
        return np.asarray(model(pixel_values=torch.from_numpy((scaled - mean) / std)).logits.numpy())


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Any]]:
    """One study folder per architecture, each with its model in `net`."""
    folders = {name: tmp_path_factory.mktemp(name) for name in NAMES}
    return {name: (path, save_classifier(path / "net", name)) for name, path in folders.items()}


@pytest.mark.parametrize("name", NAMES)
def test_it_says_what_the_library_says(saved: dict[str, tuple[Path, Any]], name: str) -> None:
    folder, model = saved[name]
    predictor = load(folder)
    assert predictor.labels == tuple(LABELS.values())
    assert (predictor.input_px, list(predictor.mean), list(predictor.std)) == (SIDE, MEAN, STD)
    assert float(np.abs(expected(model)).max()) > 0.05
    np.testing.assert_allclose(predictor.logits(views(), batch=2), expected(model), atol=2e-5)


@pytest.mark.parametrize("name", NAMES)
def test_it_comes_back_without_its_folder(
    saved: dict[str, tuple[Path, Any]], name: str, tmp_path: Path
) -> None:
    predictor = load(saved[name][0])
    back = restored(predictor)
    assert (back.key, back.layer, back.layouts) == (predictor.key, predictor.layer, predictor.layouts)
    np.testing.assert_array_equal(back.logits(views()), predictor.logits(views()))
    assert back.dump() == predictor.dump() == load(saved[name][0]).dump()


LAYERS = {
    "ViT": ("model.vit.layers.1.layernorm_before", 4, 1),
    "DeiT": ("model.deit.layers.1.layernorm_before", 4, 2),
    # Its head reads the mean of all cells too, so the last normalisation sees the logits.
    "Dinov2WithRegisters": ("model.dinov2_with_registers.layernorm", 4, 5),
    "Swin": ("model.swin.layernorm", 4, 0),
    "ResNet": ("model.resnet.encoder.stages.1", 4, 0),
    "ConvNext": ("model.convnext.encoder.stages.1", 4, 0),
}


@pytest.mark.parametrize("name", NAMES)
def test_it_reads_the_last_layer_whose_cells_bear_on_the_logits(
    saved: dict[str, tuple[Path, Any]], name: str
) -> None:
    predictor = load(saved[name][0])
    layer, side, prefix = LAYERS[name]
    layout = predictor.layouts[layer]
    assert predictor.layer == layer
    assert (layout.height, layout.width, layout.prefix, layout.sees_target) == (side, side, prefix, True)


def test_it_knows_that_a_class_token_alone_is_read_in_the_end(saved: dict[str, tuple[Path, Any]]) -> None:
    layouts = load(saved["ViT"][0]).layouts
    blind = {name for name, layout in layouts.items() if not layout.sees_target}
    assert "model.vit.layers.1.layernorm_after" in blind and "model.vit.layernorm" in blind
    assert not any(name.startswith("model.vit.layers.0") for name in blind)


@pytest.mark.parametrize("name", ["ViT", "DeiT", "Dinov2WithRegisters", "Swin"])
def test_it_lays_the_cells_out_as_the_picture_lies(saved: dict[str, tuple[Path, Any]], name: str) -> None:
    """A change in one corner of the picture moves the cells there first, and at the patches only those."""
    from stimuli.planner.layers import spatial

    predictor = load(saved[name][0])
    first = next(name for name, layout in predictor.layouts.items() if layout.kind == "tokens")
    layout = predictor.layouts[first]
    outputs: list[torch.Tensor] = []
    hook = predictor.layer_module(first).register_forward_hook(
        lambda _m, _i, out: outputs.append(out.clone())
    )
    plain = torch.full((1, 3, SIDE, SIDE), 0.5)
    spot = plain.clone()
    spot[:, :, : SIDE // 4, 3 * SIDE // 4 :] = 1.0  # top right
    with torch.no_grad():
        predictor(plain), predictor(spot)
    hook.remove()
    moved = (spatial(outputs[1][0], layout) - spatial(outputs[0][0], layout)).abs().sum(0) > 1e-6
    quarter = layout.height // 4
    assert moved[:quarter, -quarter:].all()
    assert int(moved.sum()) == quarter * quarter


def test_it_leaves_out_what_is_no_map(saved: dict[str, tuple[Path, Any]]) -> None:
    convnext = load(saved["ConvNext"][0]).layouts
    assert not any("stages.1" in name and "pwconv" in name for name in convnext)  # channels last
    swin = load(saved["Swin"][0]).layouts
    assert not any(name.endswith("blocks.0.dropout") for name in swin)  # runs twice in a pass
    assert not any("layers.0" in name and name.endswith("proj") for name in swin)  # windows, not pictures
    assert "model.swin.pooler" not in swin  # one number per channel


def test_it_takes_the_study_s_settings_over_the_folder_s(saved: dict[str, tuple[Path, Any]]) -> None:
    folder, _ = saved["ViT"]
    named = load(folder, labels=["tom", "rex", "eve"], mean=[0, 0, 0], std=[1, 1, 1], token_prefix=1)
    assert (named.labels, named.mean, named.std) == (("tom", "rex", "eve"), (0, 0, 0), (1, 1, 1))
    other = load(folder, layer="model.vit.layers.0")
    assert other.layer == "model.vit.layers.0"
    keys = {named.key, load(folder).key, load(folder, token_prefix=2).key}
    assert len(keys) == 3 and other.key == load(folder).key
    assert not any(
        layout.kind == "tokens" and layout.height > 3
        for layout in load(folder, token_prefix=2).layouts.values()
    )


def test_it_reads_the_sizes_that_preprocessors_write(tmp_path: Path) -> None:
    save_classifier(tmp_path / "net", "ResNet")
    for size, px in (
        ({"size": 48}, 48),
        (
            {"size": {"shortest_edge": 64}, "do_center_crop": True, "crop_size": {"height": 40, "width": 40}},
            40,
        ),
        ({"size": {"shortest_edge": 64}, "do_center_crop": False, "crop_size": 40}, 64),
    ):
        write_settings(tmp_path / "net", **size)
        assert load(tmp_path).input_px == px
    assert load(tmp_path, input_px=56).input_px == 56


def test_it_reads_weights_in_parts_and_in_half_precision(tmp_path: Path) -> None:
    model = save_classifier(tmp_path / "net", "ViT")
    whole = load(tmp_path)
    (tmp_path / "net" / "model.safetensors").unlink()
    model.save_pretrained(tmp_path / "net", max_shard_size="10KB")
    assert len(list((tmp_path / "net").glob("*.safetensors"))) > 1
    assert load(tmp_path).key == whole.key
    for part in (tmp_path / "net").glob("model*"):
        part.unlink()
    model.half().save_pretrained(tmp_path / "net")
    np.testing.assert_allclose(load(tmp_path).logits(views()), whole.logits(views()), atol=0.02)


def test_it_gives_labels_that_stand_twice_their_number(tmp_path: Path) -> None:
    save_classifier(tmp_path / "net", "ResNet", id2label={0: "crane", 1: "cat", 2: "crane"})
    assert load(tmp_path).labels == ("crane (0)", "cat", "crane (2)")
    save_classifier(tmp_path / "net", "ResNet", id2label={0: "LABEL_0", 1: "LABEL_1"})
    assert load(tmp_path).labels == NoItems.labels


def test_it_leaves_the_world_as_it_was(saved: dict[str, tuple[Path, Any]], capfd: Any) -> None:
    from transformers.utils import logging

    before, words = torch.get_rng_state(), (logging.get_verbosity(), logging.is_progress_bar_enabled())
    load(saved["ViT"][0])
    assert torch.equal(torch.get_rng_state(), before)
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == words
    assert capfd.readouterr() == ("", "")


def test_it_says_what_to_install_when_the_library_is_missing(saved: dict[str, tuple[Path, Any]]) -> None:
    folder = str(saved["ViT"][0])
    code = (
        "import sys; sys.modules['transformers'] = None\n"
        "from pathlib import Path\n"
        "from stimuli.errors import BadSpec\n"
        "from stimuli.predictors import open_predictor\n"
        "from stimuli.spec import Component\n"
        "for name in ('transformers_image', 'clip_zero_shot'):\n"
        "    class Two:\n"
        "        labels = ('cat', 'dog')\n"
        "    try:\n"
        f"        open_predictor(Component(name, {{'folder': 'net'}}), Path({folder!r}), Two())\n"
        "    except BadSpec as error:\n"
        "        print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    first, second = done.stdout.splitlines()
    assert 'need the package "transformers"' in first and 'pip install "legible[transformers]"' in first
    assert 'pip install "legible[transformers]"' in second


def test_it_takes_one_logit_for_two_labels(tmp_path: Path) -> None:
    """A model of one logit is a binary head: the softmax of what comes of it is the sigmoid."""
    model = save_classifier(tmp_path / "net", "ViT", id2label={0: "LABEL_0"})
    predictor = load(tmp_path, labels=["no", "yes"])
    logit = expected(model)[:, 0]
    assert logit.shape == (3,) and predictor.labels == ("no", "yes")
    powers = np.exp(predictor.logits(views()).astype(np.float64))
    np.testing.assert_allclose(powers[:, 1] / powers.sum(1), 1 / (1 + np.exp(-logit)), atol=1e-5)


def test_it_reads_weights_that_were_saved_inside_a_wrapper(tmp_path: Path) -> None:
    save_classifier(tmp_path / "net", "ViT")
    plain, file = load(tmp_path), tmp_path / "net" / "model.safetensors"
    save_file({f"module.{name}": value for name, value in load_file(file).items()}, file)
    assert load(tmp_path).key == plain.key


@pytest.mark.parametrize(
    "problem", ["single_label_classification", "multi_label_classification", "regression"]
)
def test_it_reads_the_problem_that_a_model_was_trained_for(tmp_path: Path, problem: str) -> None:
    """Of a folder, and of a model in memory."""
    model = save_classifier(tmp_path / "net", "ViT", problem_type=problem)
    pictures = [np.asarray(view) for view in views()]
    if problem == "regression":
        for use in (
            lambda: load(tmp_path),
            lambda: explain(model, pictures, ["none"], preprocess=tmp_path / "net"),
        ):
            with pytest.raises(BadSpec, match="regression.* are measures, not logits of classes"):
                use()
    else:
        told = load(tmp_path).provenance.get("problem_type")
        assert told == (problem if problem.startswith("multi") else None)
        assert explain(model, pictures, ["none"], preprocess=tmp_path / "net").names == ("0", "1", "2")
