"""`study_check` on the mistakes that are made first: each ends in a sentence with value, cause and remedy."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from experiments.wording.language_file import template
from stimuli.datasets import folder as class_folders
from tests import world
from tests.crowd.conftest import Outcome
from tests.experiments.protocols import REVIEW, SOLVE, USES, staged, write
from tests.services import ROOT

pytestmark = pytest.mark.django_db


def changed(path: Path, old: str, new: str) -> Path:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    return path


# Keys


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("blocks = 2", "block = 2", "design.block = 2: is not a key of this table (did you mean 'blocks'?)"),
        ("[checks]", "[check]", "(did you mean 'checks'?)."),
        ("[stimuli]", '[render]\nsigns = "positive"\n[stimuli]', "render.signs = 'positive': is not a key"),
        ("[stimuli]", '[render]\nsigns = "positive"\n[stimuli]', "(did you mean 'sign'?)."),
        ("seed = 11", "seeds = 11", "seeds = 11: is not a key of this table (did you mean 'seed'?)."),
        ('role = "baseline"', 'role = "baseline"\nslot = 3', "conditions.0.slot = 3: is not a key of this"),
        ('role = "baseline"', 'role = "baseline"\nslot = 3', "(did you mean 'slots'?)."),
        ('when = "before"', 'where = "before"', "(did you mean 'when'?)."),
        ("repeat = 1", "zzz = 1", "checks.zzz = 1: is not a key of this table; its keys are instructed,"),
        ('quiz = "quiz.toml"', 'quizz = "quiz.toml"', "is not a key of this table (did you mean 'quiz'?)"),
        ("instructed_share_min", "instruct_share_min", "(did you mean 'instructed_share_min'?)"),
        ("people_share", "peoples_share", "(did you mean 'people_share'?)"),
    ],
)  # fmt: skip
def test_an_unknown_key_is_told_from_the_one_that_was_meant(
    tmp_path: Path, outcome: Outcome, old: str, new: str, said: str
) -> None:
    why = outcome(changed(world.write_study(tmp_path), old, new))[1]
    assert said in why, why


def test_a_quiz_has_tables_too(tmp_path: Path, outcome: Outcome) -> None:
    path = world.write_study(tmp_path)
    changed(tmp_path / "quiz.toml", "prompt", "promt")
    why = outcome(path)[1]
    assert "quiz.0.promt = 'What?': is not a key of this table (did you mean 'prompt'?)." in why


def test_a_table_of_no_platform_is_warned_of(tmp_path: Path, outcome: Outcome) -> None:
    path = world.write_study(tmp_path)
    path.write_text(path.read_text() + '[platforms.prolifc]\nproject = "x"\n')
    printed, why = outcome(path)
    said = "Warning: [platforms.prolifc] belongs to no platform (did you mean 'prolific'?) and is not read"
    assert why == "" and said in printed


def test_it_names_who_translated_the_pages_and_what_is_missing(tmp_path: Path, outcome: Outcome) -> None:
    path = world.write_study(tmp_path)
    path.write_text(path.read_text() + '[interface]\nwords = "own.toml"\n')
    said = template("en-GB").replace('translator = ""', 'translator = "Ada Lovelace"')
    (tmp_path / "own.toml").write_text(said)
    printed, why = outcome(path)
    assert (why, "Sentences of the pages: 570, translated by Ada Lovelace." in printed) == ("", True)
    (tmp_path / "own.toml").write_text(said.replace('\nskip = "', '\nship = "'))
    why = outcome(path)[1]
    assert "'own.toml': lacks 1 of 570 sentences: page.common.skip. Write" in why
    assert "'own.toml': has 1 that no page says: page.common.ship. Remove" in why


@pytest.mark.parametrize(("limit_px", "is_said"), [(500, True), (572, False), (900, False)])
def test_a_window_that_holds_no_whole_trial_is_warned_of(
    tmp_path: Path, outcome: Outcome, limit_px: int, is_said: bool
) -> None:
    path = world.write_study(tmp_path)
    path.write_text(path.read_text() + f"[device]\nmin_width_px = {limit_px}\n")
    printed, why = outcome(path)
    said = (
        f"Warning: [device] lets in windows of {limit_px} x 290 px, but a trial of this study needs 572 x 290"
    )
    assert why == "" and (said in printed) is is_said and ("[device]" in printed) is is_said


def test_nothing_near_and_too_many_keys_list_none(tmp_path: Path, outcome: Outcome) -> None:
    why = outcome(changed(world.write_study(tmp_path), "seed = 11", "seed = 11\nzzzzz = 1"))[1]
    assert "zzzzz = 1: is not a key of this table. Remove it, or mend its spelling." in why


# Files


@pytest.fixture
def without_heic(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the plug-in is not installed."""
    monkeypatch.setattr(class_folders, "DRAFT_SUFFIXES", class_folders.DRAFT_SUFFIXES - class_folders.HEIC)


@pytest.mark.usefixtures("without_heic")
def test_files_that_are_not_read_are_counted(tmp_path: Path, outcome: Outcome) -> None:
    path = world.write_study(tmp_path)
    left = tmp_path / "images" / "left"
    for name in (*(f"IMG_{n}.HEIC" for n in range(9)), "a.gif", "b.gif", "Thumbs.db"):
        (left / name).write_bytes(b"1")
    printed, why = outcome(path)
    said = "12 files are not read: 9 .heic, 2 .gif, 1 Thumbs.db; pictures are .jpeg, .jpg, .png, .webp in"
    assert why == "" and printed.index(said) < printed.index("Pool of items")
    assert f"Warning: {said}" in printed


def test_files_of_file_managers_are_counted_without_a_warning(tmp_path: Path, outcome: Outcome) -> None:
    path = world.write_study(tmp_path)
    for folder in ("", "left", "right"):
        (tmp_path / "images" / folder / ".DS_Store").write_bytes(b"1")
    printed, _ = outcome(path)
    assert "3 files are not read: 3 .DS_Store;" in printed and "Warning: 3 files" not in printed


@pytest.mark.usefixtures("without_heic")
def test_a_class_of_heic_alone_is_refused_with_their_number(tmp_path: Path, outcome: Outcome) -> None:
    path = world.write_study(tmp_path)
    for picture in (tmp_path / "images" / "left").glob("*.png"):
        picture.rename(picture.with_suffix(".heic"))
    why = outcome(path)[1]
    assert 'class "left" has 0 picture(s)' in why and "28 files are not read: 28 .heic; pictures are" in why


def test_pictures_beside_the_class_folders_and_below_them_are_counted(
    tmp_path: Path, outcome: Outcome
) -> None:
    path = world.write_study(tmp_path)
    images = tmp_path / "images"
    (images / "left" / "left-00.png").rename(images / "left-00.png")
    (images / "left" / "more").mkdir()
    (images / "concepts.csv").write_text("image,concept,value\n")
    assert "Warning: 2 files are not read: 1 .png, 1 folder;" in outcome(path)[0]


# Whose pictures


def test_it_says_that_half_the_pictures_are_kept_for_training(tmp_path: Path, outcome: Outcome) -> None:
    printed, why = outcome(changed(world.write_study(tmp_path), ", people_share = 1.0", ""))
    said = "28 of 56 pictures are people's, the other 28 are kept for training the model (people_share = 0.5)"
    assert why == "" and printed.index(said) < printed.index("Pool of items")
    assert "if it was trained elsewhere, set people_share = 1.0." in printed
    assert "are people's" not in outcome(world.write_study(tmp_path / "all"))[0]


@pytest.mark.parametrize(("there", "missing"), [("people", "model"), ("model", "people")])
def test_one_side_alone_is_refused_by_its_name(
    tmp_path: Path, outcome: Outcome, there: str, missing: str
) -> None:
    path = world.write_study(tmp_path)
    images = tmp_path / "images"
    images.rename(tmp_path / there)
    images.mkdir()
    (tmp_path / there).rename(images / there)
    why = outcome(path)[1]
    assert f"has {there}/ and no {missing}/: put {missing}/ beside it" in why
    assert "people_share = 1.0" in why and "class folder(s)" not in why


def test_a_class_may_be_called_people(tmp_path: Path, outcome: Outcome) -> None:
    path = world.write_study(tmp_path)
    (tmp_path / "images" / "left").rename(tmp_path / "images" / "people")
    printed, why = outcome(changed(path, '"left"', '"people"'))
    assert why == "" and 'is says "people" says "right" people 14 14' in printed


def test_one_class_folder_is_named(tmp_path: Path, outcome: Outcome) -> None:
    path = world.write_study(tmp_path)
    for picture in (tmp_path / "images" / "right").iterdir():
        picture.unlink()
    (tmp_path / "images" / "right").rmdir()
    assert "holds 1 class folder(s) (left), at least 2 are needed" in outcome(path)[1]


# Groups


def test_groups_that_cannot_be_divided_are_named(tmp_path: Path, outcome: Outcome) -> None:
    path = world.write_study(tmp_path)
    for name in world.CLASSES:
        for number, picture in enumerate(sorted((tmp_path / "images" / name).glob("*.png"))):
            picture.rename(picture.with_name(f"photo__{number}.png"))
    why = outcome(path)[1]
    assert 'such as the 28 of "left/photo" and the 28 of "right/photo":' in why
    assert 'names are equal up to "__" are one group' in why
    assert "the model is right on" not in why and "weights loaded" not in why
    assert why.endswith("equal files.")


# Colour


class Grey(nn.Module):
    """Takes pictures of other than three channels."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.features = nn.Conv2d(channels, 4, 3)
        self.head = nn.Linear(4, 2)

    def forward(self, pictures: Tensor) -> Tensor:
        made: Tensor = self.head(torch.relu(self.features(pictures)).mean((2, 3)))
        return made


@pytest.mark.parametrize(("channels", "said"), [(1, "1 channel, not of 3"), (4, "4 channels, not of 3")])
def test_a_network_of_other_channels_is_told_so(
    tmp_path: Path, outcome: Outcome, channels: int, said: str
) -> None:
    path = world.write_study(tmp_path)
    pictures, shapes = torch.rand(2, channels, 32, 32), ({0: torch.export.Dim("batch")},)
    program = torch.export.export(Grey(channels).eval(), (pictures,), dynamic_shapes=shapes)
    torch.export.save(program, tmp_path / "model.pt2")
    table = '{ name = "torch_image", weights = "model.pt2", input_px = 32, labels = ["left", "right"] }'
    why = outcome(changed(path, '{ name = "toy", input_px = 32 }', table))[1]
    assert f"the network takes pictures of {said}" in why
    assert "export it with a first layer that takes three channels" in why
    assert "check input_px" not in why


# Stages


def test_a_stage_whose_solutions_are_not_frozen_is_refused_before_anything_is_looked_at(
    tmp_path: Path, outcome: Outcome
) -> None:
    path = write(tmp_path / "v", "judged", "blind_review", REVIEW, uses=USES)
    printed, why = outcome(path)
    assert (printed, "names 'tasks', and there is no such study here. Run it first: open it" in why) == (
        "",
        True,
    )
    staged(tmp_path / "s", "tasks", SOLVE)
    printed, why = outcome(path)
    assert (printed, why) == ("", "The solutions of 'tasks' are not frozen yet. Run freeze tasks first.")


# The database


@pytest.mark.pure
@pytest.mark.parametrize("url", ["sqlite:///{folder}/new.sqlite3", "postgresql://x:y@127.0.0.1:1/rows"])
def test_a_check_needs_no_tables_and_no_database(url: str, tmp_path: Path) -> None:
    """In a process of its own, as on a machine where migrate was never run."""
    env = {**os.environ, "DATABASE_URL": url.format(folder=tmp_path), "LEGIBLE_VAR": str(tmp_path)}
    env |= {"STORAGE_URL": str(tmp_path / "store"), "CELERY_BROKER_URL": ""}
    command = [sys.executable, "manage.py", "study_check", "sentiment"]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Pool of items" in done.stdout
