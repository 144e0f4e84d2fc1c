"""docs/blind-review.md, read to the letter: its three studies are built on own pictures, one from the other.

Only sizes are changed, so that it is quick: fewer and smaller pictures, fewer slots and tasks.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from django.core.management import call_command
from PIL import Image

from experiments.models import Solution, Study
from tests.experiments.protocols import seen, take_part
from tests.services import ROOT
from tests.world import Person, opened_study

pytestmark = pytest.mark.django_db

PAGE = (ROOT / "docs" / "blind-review.md").read_text()
SAVED = re.compile(r"^Save as `([^`]+)`:\n\n```toml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMANDS = re.compile(r"^legible (freeze .+)$", re.MULTILINE)
SMALLER = {
    "input_px = 96, epochs = 8": "input_px = 32, epochs = 6, width = 6",
    "solutions_per_task = 3": "solutions_per_task = 1",
    "tasks_per_list = 20": "tasks_per_list = 14",
    "tasks_per_run = 20": "tasks_per_run = 3",
    "tasks_per_run = 40": "tasks_per_run = 4",
    "lures_per_run = 4": "lures_per_run = 1",
    "slots = 16": "slots = 2",
    "slots = 8": "slots = 2",
    "known_share_min = 0.5": "known_share_min = 0.0",
    'explainer = { name = "occlusion" }': 'explainer = { name = "occlusion", patch_share = 0.5, '
    "stride_share = 0.25 }",
}
TASKS, KNOWN, TUNING, BLANK, LEARNT = 12, 6, 1, 4, 24


def draw(path: Path, shape: str, rng: np.random.Generator) -> None:
    """A black disc or a grey square on light ground; a blank picture has the ground alone."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = rng.integers(180, 220, (48, 48, 3)).astype(np.uint8)
    y, x = np.mgrid[:48, :48] - rng.integers(18, 30, 2)[:, None, None]
    inside = {"disc": x**2 + y**2 < 120, "square": (abs(x) < 10) & (abs(y) < 10), "blank": x > 99}[shape]
    pixels[inside] = 20 if shape == "disc" else 120
    Image.fromarray(pixels).save(path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of the page: pictures with their uses, the three files, and texts."""
    rng, lines = np.random.default_rng(3), ["image,use"]
    for shape in ("disc", "square"):
        for number in range(LEARNT):
            draw(tmp_path / "pictures" / "model" / shape / f"{number}.png", shape, rng)
        for number in range(TASKS + KNOWN + TUNING):
            draw(tmp_path / "pictures" / "people" / shape / f"{shape}-{number:03d}.png", shape, rng)
            if number < KNOWN + TUNING:
                use = "known" if number < KNOWN else "tuning"
                lines.append(f"people/{shape}/{shape}-{number:03d}.png,{use}")
    for number in range(BLANK):
        draw(tmp_path / "pictures" / "people" / "blank" / f"{number:03d}.png", "blank", rng)
        lines.append(f"people/blank/{number:03d}.png,blank")
    (tmp_path / "pictures" / "uses.csv").write_text("\n".join(lines))
    for name in ("consent", "solve", "review", "debrief"):
        (tmp_path / f"{name}.md").write_text(f"# {name}\n")
    files = dict(SAVED.findall(PAGE))
    assert set(files) == {"solve.toml", "review.toml", "labels.toml"}
    for before, after in SMALLER.items():
        assert any(before in text for text in files.values()), f"the page no longer says {before!r}"
        files = {name: text.replace(before, after) for name, text in files.items()}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.long(stays="test_the_page_s_review_of_labels_needs_no_other_stage")
def test_the_page_leads_from_pictures_to_a_review(folder: Path) -> None:
    study = opened_study(folder / "solve.toml")
    for number in range(study.slots.count()):
        take_part(Person(f"e{number}", slug=study.slug), seen)
    Study.objects.filter(pk=study.pk).update(state="closed")
    commands = COMMANDS.findall(PAGE)
    assert len(commands) == 2
    for command in commands:
        call_command(*command.split())
    study.refresh_from_db()
    assert study.frozen["settings"] == {"region": "hull", "smooth_cells": 1, "abstain_below": 0.0}
    assert {*Solution.objects.filter(study=study).values_list("use", flat=True)} == {
        "solution",
        "lure",
        "alone",
    }
    review = opened_study(folder / "review.toml")
    take_part(Person("lea", slug=review.slug))
    assert review.slots.count() == 2


def test_the_page_s_review_of_labels_needs_no_other_stage(folder: Path) -> None:
    labels = opened_study(folder / "labels.toml")
    take_part(Person("lea", slug=labels.slug))
    assert Solution.objects.filter(study=labels).exists()
