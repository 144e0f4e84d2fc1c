"""From a file of weights to a predictor by docs/own-study.md alone, compared with their library."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import nn

from stimuli.datasets.photographs import cut
from stimuli.predictors.base import TorchPredictor
from stimuli.predictors.files.picture_settings import PictureSettings
from stimuli.predictors.framing import Framing
from tests.published import read, train_head
from tests.stimuli.predictors.test_architectures import timm_network, torchvision_network
from tests.stimuli.predictors.test_predictors import opened
from tests.witnesses import timm, torchvision

pytestmark = pytest.mark.pure
PAGE = (Path(__file__).parents[3] / "docs" / "own-study.md").read_text()
SECTION = PAGE.split("### A published model")[1].split("\n## ")[0]
LABELS = ["grass", "gravel"]
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def script(word: str) -> str:
    """The page's Python that names `word`."""
    (block,) = [text for text in re.findall(r"^```python\n(.*?)^```$", SECTION, re.M | re.S) if word in text]
    return str(block)


def described(word: str) -> dict[str, Any]:
    """The page's predictor that names `word`."""
    (block,) = [text for text in re.findall(r"^```toml\n(.*?)^```$", SECTION, re.M | re.S) if word in text]
    return dict(tomllib.loads(block)["stimuli"]["predictor"])


@pytest.fixture(scope="module")
def crops(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Crops of grass and gravel, in `model` and `people`."""
    folder = tmp_path_factory.mktemp("crops")
    cut(folder)
    return folder


def photographs(crops: Path) -> list[NDArray[np.uint8]]:
    """A few pictures of people's, of several proportions."""
    files = [path for label in LABELS for path in sorted((crops / "people" / label).iterdir())[::60]]
    return [read(path)[: 100 + 7 * at] for at, path in enumerate(files)]


def compare(
    predictor: TorchPredictor, witness: nn.Module, transform: Callable[[Any], Any], crops: Path
) -> None:
    pictures = photographs(crops)
    with torch.no_grad():
        expected = witness(torch.stack([transform(Image.fromarray(pixels)) for pixels in pictures])).numpy()
    got = predictor.logits([predictor.view(pixels) for pixels in pictures])
    scale = float(np.abs(expected).max())
    assert float(np.ptp(expected)) > 0
    np.testing.assert_allclose(got, expected, atol=1e-4 * scale)


def preset() -> Any:
    torchvision()
    modes = import_module("torchvision.transforms.functional").InterpolationMode
    kind = import_module("torchvision.transforms._presets").ImageClassification
    return kind(crop_size=224, resize_size=256, interpolation=modes.BILINEAR)


@pytest.mark.long(stays="test_it_takes_a_folder_of_timm_without_timm")
def test_it_takes_torchvision_s_weights_without_torchvision(
    tmp_path: Path, crops: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ResNet-18 whose last layer was trained on the photographs: both answers occur, with errors."""
    witness = torchvision_network("resnet18", num_classes=2)
    settings = PictureSettings(224, MEAN, STD, Framing(256, "bilinear", "crop", "torchvision"))
    train_head(witness, witness.fc, settings, [crops / "model" / label for label in LABELS], most=16)  # type: ignore[arg-type]
    torch.save(witness.state_dict(), tmp_path / "resnet18.pth")
    monkeypatch.chdir(tmp_path)
    exec(script("resnet18.pth"), {})
    params = described("resnet18.safetensors")
    predictor = opened(params.pop("name"), tmp_path, **{**params, "labels": LABELS})
    compare(predictor, witness, preset(), crops)
    assert (predictor.layer, predictor.provenance["published_accuracy"]) == ("layer4", 0.7)
    said = {
        label: predictor.logits([predictor.view(read(path)) for path in files]).argmax(1)
        for label in LABELS
        for files in [sorted((crops / "people" / label).iterdir())[:16]]
    }
    for place, label in enumerate(LABELS):
        assert 0.4 < float((said[label] == place).mean()) < 1


def test_it_takes_a_folder_of_timm_without_timm(tmp_path: Path, crops: Path) -> None:
    """Written as timm writes it for the hub; a smaller network than the page's, which is quick."""
    witness = timm_network("vit_tiny_patch16_224", num_classes=2)
    hub = import_module(f"{timm().__name__}.models._hub")
    hub.save_for_hf(witness, tmp_path, safe_serialization=True)
    params = described("vit_base_patch16_224")
    params["builder_params"]["name"] = "vit_tiny_patch16_224"
    predictor = opened(params.pop("name"), tmp_path, **{**params, "labels": LABELS})
    data = import_module("timm.data")
    transform = data.create_transform(**data.resolve_model_data_config(witness), is_training=False)
    compare(predictor, witness, transform, crops)
    layout = predictor.layouts[predictor.layer]
    assert predictor.layer == "blocks.11.norm1" and (layout.kind, layout.prefix) == ("tokens", 1)
    assert predictor.framing == Framing(248, "bicubic", "crop", "torchvision")


def test_it_takes_an_exported_network_of_torchvision(
    tmp_path: Path, crops: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the page's own function, in an environment that has the library."""
    witness = torchvision_network("mobilenet_v3_small", num_classes=2)
    torch.save(witness.state_dict(), tmp_path / "mobilenet.pth")
    monkeypatch.chdir(tmp_path)
    (whole,) = [
        text
        for text in re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S)
        if "def export_model" in text
    ]
    (function,) = re.findall(r"^def export_model.*?\n\n\n", str(whole), re.M | re.S)
    exec(f"import torch\nfrom torch import nn\n{function}\n{script('mobilenet')}", {})
    params = {**described("resnet18.safetensors"), "weights": "mobilenet.pt2", "labels": LABELS}
    kept = {name: value for name, value in params.items() if not name.startswith(("builder", "name"))}
    compare(opened("torch_image", tmp_path, **kept), witness, preset(), crops)
