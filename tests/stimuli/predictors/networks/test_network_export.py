"""A state dict becomes a file that a study reads: same answers, no code."""

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from stimuli.errors import BadSpec, ShapeMismatch
from stimuli.predictors.architectures import timm
from stimuli.predictors.files.network_export import network_file
from stimuli.predictors.files.program import read_program

pytestmark = pytest.mark.pure

SIDE_PX = 8
GREY = """
from beside import CHANNELS
from torch import nn


def grey(classes, *, dropout=0.0):
    pooled = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return nn.Sequential(nn.Conv2d(CHANNELS, 2, 3), *pooled, nn.Linear(2, classes))


def broken(first, second):
    return None


network = 3
"""


@pytest.fixture
def grey(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> nn.Module:
    """A network of one channel, its code, which imports what lies beside it, and its weights."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "beside.py").write_text("CHANNELS = 1\n")
    (tmp_path / "nets.py").write_text(GREY)
    torch.manual_seed(4)
    network = nn.Sequential(nn.Conv2d(1, 2, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2, 3)).eval()
    torch.save({"state_dict": network.state_dict(), "epoch": 3}, tmp_path / "weights.pth")
    return network


def test_a_network_of_grey_pictures_sees_them_as_pillow_makes_them(grey: nn.Module) -> None:
    made = network_file(Path("weights.pth"), "nets.py:grey", SIDE_PX, 3)
    assert (made.name, made.logits, dict(made.table)) == ("model.pt2", 3, {})
    assert "of one channel" in made.words
    pictures = torch.rand(5, 3, SIDE_PX, SIDE_PX)
    red, green, blue = pictures.unbind(1)
    luma: Tensor = (0.299 * red + 0.587 * green + 0.114 * blue)[:, None]
    assert torch.allclose(read_program(made.data, "it")(pictures), grey(luma), atol=1e-6)
    again = Path("again.pt2")
    again.write_bytes(made.data)
    assert network_file(again, "", SIDE_PX, 3).data == made.data


def test_the_architecture_of_published_weights_is_found(tmp_path: Path) -> None:
    network = timm("vit_tiny_patch16_224", classes=3)
    path = tmp_path / "weights.pt"
    torch.save(network.state_dict(), path)
    made = network_file(path, "", 224, 2)
    assert (made.name, made.logits) == ("model.safetensors", 3)
    assert made.table["builder"] == "timm"
    assert made.table["builder_params"] == {"name": "vit_tiny_patch16_224", "classes": 3}
    assert made.table["mean"] == [0.485, 0.456, 0.406]


@pytest.mark.parametrize(
    ("network", "sentence"),
    [
        ("missing.py:grey", "cannot be read .*; mend that file"),
        ("nets.py:nothing", "nets.py has no class or function nothing"),
        ("nets.py:network", "nets.py has no class or function network"),
        ("nets.py:broken", "cannot be built .*takes nothing or the number of classes"),
        ("resnet18", "does not fit the network"),
        ("resnet19", 'network = "resnet19" is none of the architectures .*"FILE.py:CLASS"'),
        ("", 'the weights in "weights.pth" are those of none'),
    ],
)
def test_what_cannot_be_built_is_refused(grey: nn.Module, network: str, sentence: str) -> None:
    with pytest.raises((BadSpec, ShapeMismatch), match=sentence):
        network_file(Path("weights.pth"), network, SIDE_PX, 3)


def test_the_size_that_it_does_not_take_is_told(grey: nn.Module) -> None:
    Path("flat.py").write_text(
        "from torch import nn\ndef flat():\n    return nn.Sequential(nn.Flatten(), nn.Linear(48, 2))\n"
    )
    torch.save(nn.Sequential(nn.Flatten(), nn.Linear(48, 2)).state_dict(), "flat.pt")
    with pytest.raises(ShapeMismatch, match="pictures of 3 x 8 x 8 .*--input-px"):
        network_file(Path("flat.pt"), "flat.py:flat", SIDE_PX, 2)
    assert network_file(Path("flat.pt"), "flat.py:flat", 4, 2).logits == 2


def test_code_in_a_file_of_weights_is_not_run(tmp_path: Path) -> None:
    path = tmp_path / "weights.pt"
    torch.save(nn.Linear(2, 2), path)  # a pickle of a class
    with pytest.raises(BadSpec, match=r"is no state dict .*torch.save\(network.state_dict\(\), FILE\)"):
        network_file(path, "nets.py:grey", SIDE_PX, 2)
