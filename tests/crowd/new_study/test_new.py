"""`legible new`, as a researcher types it: own pictures and network, and a study that study_check takes."""

import io
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from django.core.management import CommandError, call_command
from PIL import Image

from crowd.dashboard.rows.checklist import EXAMPLE_APPROVAL
from experiments.study_files.load import STUDIES_DIR, load_study
from tests.crowd.conftest import Outcome

SIDE_PX = 24
PER_CELL = 10
CLASSES = ("moss", "wet_sand")
NETWORK = """
import torch
from torch import nn


class Network(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.maps = nn.Conv2d(3, 4, 3, padding=1)
        self.head = nn.Linear(4, classes)

    def forward(self, pictures):
        return self.head(self.maps(pictures).relu().mean((2, 3)))
"""
"""Of a class, so that a study can hold it only once it is exported."""

pytestmark = pytest.mark.django_db

Made = Callable[..., str]


@pytest.fixture(autouse=True)
def silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """No terminal: nothing is typed."""
    monkeypatch.setattr("sys.stdin", io.StringIO())


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with pictures, nets.py and model.pt: the network says moss of what is green."""
    monkeypatch.chdir(tmp_path)
    draw(tmp_path / "pictures", wrong=PER_CELL)
    (tmp_path / "nets.py").write_text(NETWORK)
    torch.save(weights(), tmp_path / "model.pt")
    return tmp_path


@pytest.fixture
def made(home: Path, store_folder: Path, capsys: pytest.CaptureFixture[str]) -> Made:
    """`new` with its usual options; what it prints, in one line. An option of None is left out."""

    def new(folder: str = "grounds", **changed: str | None) -> str:
        options = {
            **{"pictures": "pictures", "weights": "model.pt", "network": "nets.py:Network"},
            **{"contact": "lab@uni.example", "input-px": str(SIDE_PX)},
            **{name.replace("_", "-"): value for name, value in changed.items()},
        }
        said = [word for name, value in options.items() if value is not None for word in (f"--{name}", value)]
        call_command("new", folder, *said)
        return " ".join(capsys.readouterr().out.split())

    return new


def draw(folder: Path, wrong: int) -> None:
    """PER_CELL pictures of each class that the network is right about, and some that it is wrong about."""
    rng = np.random.default_rng(3)
    for name, other in zip(CLASSES, CLASSES[::-1], strict=True):
        (folder / name).mkdir(parents=True)
        for looks, count in ((name, PER_CELL), (other, wrong)):
            for number in range(count):
                pixels = rng.integers(0, 120, (SIDE_PX, SIDE_PX, 3), dtype=np.uint8)
                pixels[:, :, 1 if looks == "moss" else 0] += 100
                Image.fromarray(pixels).save(folder / name / f"{looks}-{number}.png")


def weights() -> dict[str, torch.Tensor]:
    """Two maps of green and red; the first speaks for moss, the second for sand."""
    kernel = torch.zeros(4, 3, 3, 3)
    kernel[0, 1, 1, 1] = kernel[1, 0, 1, 1] = 1
    head = torch.zeros(2, 4)
    head[0, 0] = head[1, 1] = 9
    return {
        "maps.weight": kernel,
        "maps.bias": torch.zeros(4),
        "head.weight": head,
        "head.bias": torch.zeros(2),
    }


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def shipped_texts() -> set[bytes]:
    return {path.read_bytes() for path in STUDIES_DIR.glob("*/*") if path.suffix in {".md", ".toml"}}


@pytest.mark.parametrize("paradigm", ["meta_predictor", "rating"])
def test_a_folder_and_a_state_dict_become_a_study_that_is_not_refused(
    made: Made, home: Path, outcome: Outcome, paradigm: str
) -> None:
    told = made(paradigm=paradigm, shows="photographs of the ground")
    printed, refused = outcome(home / "grounds")
    assert refused == ""
    assert f"{4 * PER_CELL} pictures for people in 2 classes (moss 20, wet_sand 20)" in told
    assert "Its accuracy on them: 0.50 (20 of 40" in told
    assert "legible study_check grounds" in told and "legible publish grounds" in told
    study = load_study(home / "grounds" / "study.toml")
    assert study.paradigm == paradigm and study.ethics.contact == "lab@uni.example"
    assert study.ethics.approval.startswith(EXAMPLE_APPROVAL)
    read = "\n".join(study.texts.values())
    assert "photographs of the ground" in read
    for _, button in study.choices:
        assert all(button in study.texts[name] for name in ("consent", "instructions", "debrief"))
    assert not shipped_texts() & set(everything(home / "grounds").values())
    assert "Warning: texts" not in printed
    explainers = [c.explainer for c in study.conditions if c.role == "control"]
    assert [e and e.name for e in explainers] != ["random"]


def test_the_size_of_a_session_follows_the_wrong_predictions(made: Made, home: Path) -> None:
    made()
    for path in [
        *(home / "pictures" / "moss").glob("wet_sand-*"),
        *(home / "pictures" / "wet_sand").glob("moss-*"),
    ]:
        if int(path.stem.partition("-")[2]) >= 4:
            path.unlink()
    made("fewer")
    sizes = {name: load_study(home / name / "study.toml").design for name in ("grounds", "fewer")}
    # Two answers, right and wrong: 36 trials take 9 of each, 16 trials 4.
    assert sizes["grounds"] == {"blocks": 3, "train_per_block": 5, "test_per_block": 7}
    assert sizes["fewer"] == {"blocks": 2, "train_per_block": 4, "test_per_block": 4}
    assert (
        "Fewer than usual: a session needs 4 right and wrong" in (home / "fewer" / "study.toml").read_text()
    )


def test_a_network_that_is_always_right_is_refused_and_may_be_rated(
    made: Made, home: Path, outcome: Outcome
) -> None:
    draw(home / "easy", wrong=0)
    with pytest.raises(
        CommandError, match=r"needs at least 4 right and 4 wrong .* wrong on 0 as 'moss'"
    ) as refusal:
        made(pictures="easy")
    assert "--paradigm rating" in str(refusal.value)
    assert not (home / "grounds").exists()
    made(pictures="easy", paradigm="rating")
    assert outcome(home / "grounds")[1] == ""


def test_it_asks_five_questions_at_a_terminal(
    home: Path, store_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed = ["pictures", "model.pt", "nets.py:Network", "wet_sand,moss", "", "lab@uni.example"]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(typed) + "\n"))
    call_command("new", "grounds", "--input-px", str(SIDE_PX))
    study = load_study(home / "grounds" / "study.toml")
    assert study.paradigm == "meta_predictor"
    assert study.choices == (("wet_sand", "Wet sand"), ("moss", "Moss"))
    shown = capsys.readouterr().out
    prompts = (
        *("Folder of pictures", "File of the network's state dict", "Its class, as FILE.py:CLASS"),
        *("Which two classes", "What do people do", "Address that people may write to"),
    )
    places = [shown.index(prompt) for prompt in prompts]
    assert places == sorted(places)


REFUSALS: dict[str, tuple[dict[str, str | None], str]] = {
    "no such folder": ({"pictures": "nowhere"}, "there is no folder"),
    "one class": ({"pictures": "one"}, r"holds 1 class folder\(s\) \(moss\), at least 2"),
    "no such file": ({"weights": "nowhere.pt"}, 'nowhere.pt" cannot be read'),
    "other weights": (
        {"weights": "other.pt"},
        r"does not fit the network: .*name the class that was trained",
    ),
    "a whole network": (
        {"weights": "whole.pt"},
        r"is no state dict .* torch.save\(network.state_dict\(\), FILE\)",
    ),
    "no such class": ({"network": "nets.py:Other"}, "has no class or function Other"),
    "no architecture": ({"network": None}, 'name the class that they were trained with, as "FILE.py:CLASS"'),
    "untrained": ({"weights": "zero.pt"}, "does not know these pictures.*were the trained weights loaded"),
    "labels": ({"labels": "a,b,c"}, "gives 3 answers|does not fit the network"),
    "other answers": ({"answers": "moss,rock"}, "two names are needed"),
    "one number": ({"mean": "1,2"}, "--mean = '1,2': give one number, or three"),
    "no answer": ({"pictures": None, "contact": None}, "no answer to --pictures, --contact"),
}


def test_the_folder_has_the_name_of_a_slug(made: Made, home: Path) -> None:
    with pytest.raises(CommandError, match="'My study' is to be the study's slug: name the folder by"):
        made("My study")
    assert not (home / "My study").exists()


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_writes_nothing(made: Made, home: Path, name: str) -> None:
    (home / "one" / "moss").mkdir(parents=True)
    for path in (home / "pictures" / "moss").iterdir():
        (home / "one" / "moss" / path.name).write_bytes(path.read_bytes())
    torch.save({name: value[:1] for name, value in weights().items()}, home / "other.pt")
    torch.save({name: 0 * value for name, value in weights().items()}, home / "zero.pt")
    torch.save(torch.nn.Linear(2, 2), home / "whole.pt")
    changed, sentence = REFUSALS[name]
    before = everything(home)
    with pytest.raises(CommandError, match=sentence):
        made(**changed)
    # The store keeps what the network answered, as study_check does.
    now = {path for path in everything(home) if not {"__pycache__", "store"} & set(Path(path).parts)}
    assert now == set(before)
    assert not [path for path in home.iterdir() if path.name.startswith((".new", "grounds"))]


def test_a_folder_that_is_there_is_not_touched(made: Made, home: Path) -> None:
    (home / "grounds").mkdir()
    (home / "grounds" / "study.toml").write_text("mine")
    with pytest.raises(CommandError, match="grounds is there already: name another folder"):
        made()
    assert everything(home / "grounds") == {str(home / "grounds" / "study.toml"): b"mine"}


def test_of_train_and_val_people_see_val(made: Made, home: Path) -> None:
    draw(home / "split" / "train", wrong=0)
    draw(home / "split" / "val", wrong=PER_CELL)
    assert "40 pictures for people" in made(pictures="split")
    table: dict[str, Any] = tomllib.loads((home / "grounds" / "study.toml").read_text())["stimuli"]["dataset"]
    assert table == {"name": "folder", "path": "../split/val", "people_share": 1.0}
