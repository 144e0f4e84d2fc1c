"""`screenshots` on a study of which one page cannot be shown: what it writes, names, and leaves untouched."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.apps import apps
from django.core import serializers
from PIL import Image

from experiments.models import Session, Study, Trial
from tests.experiments.protocols import RATING, SENTENCES, TURING, TWO_MODELS, as_in_studies, opened, write
from tests.services import ROOT
from tests.world import Person, opened_study, write_study

pytestmark = [pytest.mark.browser, pytest.mark.apart]


def everything() -> dict[str, str]:
    """All rows of all tables, by table."""
    return {
        model._meta.label: serializers.serialize("json", model._default_manager.order_by("pk"))
        for model in apps.get_models()
        if model._meta.managed
    }


@pytest.fixture
def study(transactional_db: None, tmp_path: Path, store_folder: Path) -> Study:
    """One condition can be shown; in the other, reviews stand in the place of examples: they have no page."""
    path = write_study(tmp_path / "small")
    text = path.read_text()
    start = text.index('[[conditions]]\nname = "control"')
    path.write_text(text[:start] + text[text.index('[[conditions]]\nname = "saliency"') :])
    study = opened_study(path)
    examples = Trial.objects.filter(slot__condition__name="saliency", kind="learn")
    examples.update(kind="review", extra={"answer": "left"})
    Person("ada").arrive()
    return study


@pytest.mark.long(stays="test_it_shows_the_pages_that_come_before_each_part")
def test_it_names_what_it_could_not_reach_and_touches_no_row(
    study: Study, server_env: dict[str, str], tmp_path: Path
) -> None:
    before = everything()
    assert Session.objects.count() == 1
    command = [
        sys.executable,
        "manage.py",
        "screenshots",
        "small",
        "--to",
        str(tmp_path / "to"),
        "--language",
        "de",
    ]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **server_env}, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert everything() == before

    files = sorted((tmp_path / "to" / "de").glob("*.png"))
    names = [file.stem.split("-", 1)[1] for file in files]
    unreached = re.findall("Not reached: (.*); condition: (.*); language: de", done.stdout)
    assert "cannot_show" in done.stdout
    # All of the condition that cannot be shown is named, and nothing else is.
    assert {condition for _, condition in unreached} == {"saliency"}
    assert "Trial: review" in {what for what, _ in unreached}
    assert "trial-learn-train-baseline" in names and "trial-review-train-saliency" not in names
    assert {"gate-consent", "gate-device", "end-declined", "trouble-offline", "entry-full"} <= set(names)
    assert len(names) == len(set(names))
    for file in files:
        with Image.open(file) as picture:
            # A picture of one colour shows nothing.
            assert len(picture.convert("RGB").getcolors(1 << 24) or []) > 10, file
    pages = (tmp_path / "to" / "screens.pdf").read_bytes().count(b"/Type /Page\n")
    assert pages > len(files)


WRITTEN = """
[[questions]]
id = "thoughts"
when = "after"
kind = "text"
prompt = "What did you think?"
"""


@pytest.mark.long(stays="test_it_shows_the_pages_that_come_before_each_part")
def test_it_shows_every_page_of_a_study_of_ratings(
    transactional_db: None, store_folder: Path, server_env: dict[str, str], tmp_path: Path
) -> None:
    """People may come twice, and have to write something at the end; to ask in vain for all pictures of a
    part would take half a minute."""
    long = as_in_studies(RATING).replace("list_length = 8", "list_length = 16") + WRITTEN
    opened(tmp_path / "r", "ratings", "rating", long, sources=TWO_MODELS, sittings=2)
    words = ["ratings", "--to", str(tmp_path / "to"), "--language", "de"]
    command = [sys.executable, "manage.py", "screenshots", *words]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **server_env}, capture_output=True, text=True)
    assert done.returncode == 0 and "Not reached" not in done.stdout, done.stdout + done.stderr
    names = [file.stem.split("-", 1)[1] for file in (tmp_path / "to" / "de").glob("*.png")]
    # All lists are met alike, and each has explanations of both models.
    assert {name for name in names if "list" in name and name.startswith(("trial-rate", "end-"))} == {
        "trial-rate-test-saliency-coarse-round-0-list-0",
        "trial-rate-test-saliency-fine-round-0-list-0",
        "end-debrief-round-0-list-0",
    }


SQUARE = (
    ("subsets = 1", 'assignment = "square"\nsubsets = 2'),
    ("instructed = 1", "instructed = 0"),
    ('role = "baseline"', 'role = "baseline"\nslots = 4'),
    ('role = "method"', 'role = "method"\nslots = 4'),
    ("train_items = 3\ntest_items = 2", "train_items = 2\ntest_items = 4"),
)
"""Everybody meets both conditions, and every sort of trial in the first part; three answers follow each other
there without a word, for the ways without a connection."""


def test_it_shows_the_pages_that_come_before_each_part(
    transactional_db: None, store_folder: Path, server_env: dict[str, str], tmp_path: Path
) -> None:
    tables = TURING
    for before, after in SQUARE:
        tables = tables.replace(before, after)
    path = write(tmp_path / "s", "letters", "reverse_turing", tables, sources=SENTENCES)
    told = 'instructions_baseline = "consent.md"\ninstructions_explained = "debrief.md"\n'
    text = path.read_text().replace("[ethics]\n", f"{told}[ethics]\n")
    text = text.replace("\nitems = 8", "\nitems = 30")
    path.write_text(text.replace('balance = "none"', 'balance = "prediction"'))
    opened_study(path)
    words = ["letters", "--short", "--to", str(tmp_path / "to")]
    command = [sys.executable, "manage.py", "screenshots", *words]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **server_env}, capture_output=True, text=True)
    assert done.returncode == 0 and "Not reached" not in done.stdout, done.stdout + done.stderr
    names = " ".join(file.stem for file in (tmp_path / "to" / "en").glob("*.png"))
    assert "gate-instructions_block_0" in names and "gate-instructions_block_1" in names
    others = ("entry-full", "trouble-offline", "end-declined")
    assert not any(other in names for other in others)
