"""From a file of published weights to a report, by docs/own-study.md alone, in an empty folder.

The networks are built and saved by their own libraries, which only this test has; their last layer is trained
on the shipped photographs until both answers occur, with errors. The same networks as the libraries draw them
at first, never trained, are refused with that cause.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from crowd.new_study.study_files import NewStudy
from stimuli.datasets.photographs import cut
from stimuli.predictors.files.picture_settings import PictureSettings
from stimuli.predictors.framing import Framing
from tests.journeys.studies.test_own_study import ADDRESS, PAGE, SERVER, Block, Reader, blocks, make_smaller
from tests.published import train_head
from tests.witnesses import timm, torchvision

SECTION = PAGE.split("### A published model")[1].split("\n## ")[0]
LABELS = ("grass", "gravel")
IMAGENET = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
PEOPLE, MODEL = 48, 32
"""Pictures of each class that are kept: a large network is slow on a processor."""
UNTRAINED = "were the trained weights loaded"


@dataclass(frozen=True, slots=True)
class Published:
    """A network as its library hands it out. `write` puts its files into a folder; `script` is a word of the
    page's Python that is run there, `table` one of the page's predictor."""

    network: Callable[[], nn.Module]
    head: str
    settings: PictureSettings
    write: Callable[[nn.Module, Path], None]
    table: str
    script: str = ""
    name: str = ""


def of_torchvision(name: str) -> nn.Module:
    torchvision()
    network: nn.Module = getattr(import_module("torchvision.models"), name)(weights=None, num_classes=2)
    return network


def pickled(network: nn.Module, folder: Path) -> None:
    torch.save(network.state_dict(), folder / "resnet18.pth")


def of_timm() -> nn.Module:
    network: nn.Module = timm().create_model("resnet18", pretrained=False, num_classes=2)
    return network


def for_the_hub(network: nn.Module, folder: Path) -> None:
    hub = import_module(f"{timm().__name__}.models._hub")
    hub.save_for_hf(network, folder, safe_serialization=True)


def of_transformers() -> nn.Module:
    library = import_module("transformers")
    config = library.ViTConfig(num_labels=2, id2label=dict(enumerate(LABELS)))
    network: nn.Module = library.ViTForImageClassification(config)
    return network


def with_processor(network: Any, folder: Path) -> None:
    network.save_pretrained(folder / "vit")
    import_module("transformers").ViTImageProcessor().save_pretrained(folder / "vit")


TORCHVISION = PictureSettings(224, *IMAGENET, Framing(256, "bilinear", "crop", "torchvision"))
HALF = (0.5, 0.5, 0.5)
NETWORKS = {
    "resnet18 of torchvision": Published(
        lambda: of_torchvision("resnet18"), "fc", TORCHVISION, pickled, "resnet18.safetensors", "resnet18.pth"
    ),
    "vit_b_16 of torchvision": Published(
        lambda: of_torchvision("vit_b_16"),
        "heads.head",
        TORCHVISION,
        pickled,
        "resnet18.safetensors",
        "resnet18.pth",
        "vit_b_16",
    ),
    "resnet18 of timm": Published(
        of_timm,
        "fc",
        PictureSettings(224, *IMAGENET, Framing(236, "bicubic", "crop", "torchvision")),
        for_the_hub,
        "vit_base_patch16_224",
        "",
        "resnet18",
    ),
    "ViT-B/16 of transformers": Published(
        of_transformers,
        "classifier",
        PictureSettings(224, HALF, HALF, Framing(None, "bilinear", "squash", "torchvision")),
        with_processor,
        "transformers_image",
    ),
}


def fenced(language: str, word: str) -> str:
    """The one block of the section in this language that has the word."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", SECTION, re.M | re.S)
    (block,) = [text for text in blocks if word in text]
    return str(block)


def with_photographs(text: str) -> str:
    """The page's own two classes become those of the photographs."""
    return text.replace("disc", LABELS[0]).replace("square", LABELS[1])


def steps() -> list[Block]:
    """The page from its first to its last block, without the drawn pictures, the example's own model and the
    study that is made of both."""
    taken = []
    for block in blocks():
        example = ("draw_pictures", "network.py", "train.py", "legible new")
        is_example = any(word in block.file + block.text for word in example)
        if not is_example and (block.language == "sh" or block.file):
            taken.append(Block(block.file, block.language, with_photographs(block.text)))
    return taken


def write_study(published: Published, folder: Path) -> None:
    """As `legible new` writes it, with the section's predictor."""
    table = with_photographs(fenced("toml", published.table))
    if published.name:
        table = re.sub(r'(builder_params = \{ name = )"[^"]+"', rf'\1"{published.name}"', table)
    study = NewStudy(
        slug=folder.name,
        paradigm="meta_predictor",
        contact="lab@example.org",
        shows="photographs of the ground",
        dataset={"name": "folder", "path": "pictures"},
        answers=LABELS,
        predictor=tomllib.loads(table)["stimuli"]["predictor"],
        method="grad_cam",
        size=(3, 5, 7),
    )
    study.write(folder)
    make_smaller(folder / "study.toml")


class Publisher(Reader):
    """A reader with a published network and the shipped photographs in the place of the page's example."""

    def __init__(self, home: Path, env: dict[str, str]) -> None:
        super().__init__(home, env)
        self.folder = self.study / with_photographs("disc-or-square")

    def prepare(self, published: Published, *, is_trained: bool) -> None:
        # Crops so small that the last layer alone errs on them.
        self.folder.mkdir()
        cut(self.folder / "pictures", crop_px=24)
        for split, most in (("people", PEOPLE), ("model", MODEL)):
            for label in LABELS:
                files = sorted((self.folder / "pictures" / split / label).iterdir())
                for path in files[most:]:
                    path.unlink()
        torch.manual_seed(3)
        network = published.network().eval()
        if is_trained:
            head = network.get_submodule(published.head)
            assert isinstance(head, nn.Linear)
            folders = [self.folder / "pictures" / "model" / label for label in LABELS]
            train_head(network, head, published.settings, folders, most=MODEL)
        published.write(network, self.folder)
        if published.script:
            (self.folder / "convert.py").write_text(fenced("python", published.script))
            self.run('cd "$STUDY"; "$LEGIBLE/.venv/bin/python" convert.py')
        write_study(published, self.folder)

    def begin(self, published: Published, *, is_trained: bool) -> list[Block]:
        """The page up to "5. Check it"; returns the rest."""
        todo = steps()
        while todo and "study_check" not in todo[0].text:
            block = todo.pop(0)
            if block.file:
                (self.study / block.file).write_text(block.text)
            else:
                self.run(block.text)
        self.prepare(published, is_trained=is_trained)
        return todo


@pytest.fixture
def publisher(tmp_path: Path, project_env: dict[str, str]) -> Publisher:
    home = tmp_path / "home"
    home.mkdir()
    return Publisher(home, project_env)


@pytest.mark.full
@pytest.mark.parametrize("name", NETWORKS)
def test_it_goes_from_published_weights_to_a_report(name: str, publisher: Publisher) -> None:
    todo = publisher.begin(NETWORKS[name], is_trained=True)
    printed = publisher.run(todo.pop(0).text)
    while todo:
        block = todo.pop(0)
        if SERVER in block.text:
            with publisher.second_terminal(block.text) as url:
                rest = [b for b in todo if b.language == "sh"]
                printed += "".join(publisher.run(b.text.replace(ADDRESS, url)) for b in rest)
            break
        printed += publisher.run(block.text)
    report = json.loads((publisher.study / "report" / "report.json").read_text())
    assert report["heading"] == "Computational observers, not people."
    assert [row["name"] for row in report["conditions"]] == ["baseline", "control", "grad_cam"]


@pytest.mark.full
@pytest.mark.parametrize("name", NETWORKS)
def test_it_refuses_the_same_network_with_the_weights_that_it_began_with(
    name: str, publisher: Publisher
) -> None:
    (check, *_) = publisher.begin(NETWORKS[name], is_trained=False)
    assert UNTRAINED in publisher.refused(check.text)
