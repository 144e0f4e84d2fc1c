"""Every method, every style of a recipe and every paradigm is in the gallery, or its page names it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from django.core.management import call_command
from numpy.typing import NDArray
from PIL import Image

from crowd.rehearsal import documentation_gallery
from experiments.errors import StudyError
from experiments.paradigms import PARADIGMS
from experiments.study_files.load import find_study, load_study
from stimuli.explainers import EXPLAINERS
from stimuli.render.recipe import Style
from stimuli.render.sheet import CELL_PX, GAP_PX, NAME_PX
from tests.services import ROOT

pytestmark = pytest.mark.pure
PAGE = (ROOT / "docs" / "gallery.md").read_text()


def test_no_method_and_no_style_is_missing() -> None:
    shown = {name for methods in documentation_gallery.FAMILIES.values() for name in methods}
    assert shown | set(re.findall(r"`(\w+)`", PAGE)) >= set(EXPLAINERS)
    assert shown <= set(EXPLAINERS)
    assert {recipe.get("style", "heat") for recipe in documentation_gallery.RECIPES.values()} == set(
        get_args(Style)
    )
    sheets = {f"explainers-{family}" for family in documentation_gallery.FAMILIES} | {"recipes"}
    trials = {f"trial-{study}" for study in documentation_gallery.TRIALS}
    assert set(re.findall(r"pictures/([\w-]+)\.webp", PAGE)) == sheets | trials


def test_each_paradigm_is_shown_by_a_study_of_it() -> None:
    shown = {"wolf-or-husky", *documentation_gallery.TRIALS}
    assert sorted(load_study(find_study(study, ())).paradigm for study in shown) == sorted(PARADIGMS)


def test_a_trial_that_no_album_has_is_named(tmp_path: Path) -> None:
    pages = (
        "012-trial-rate-test-saliency",
        "013-trial-rate-test-saliency-marked",
        "014-trial-rate-test-random",
    )
    for name in pages:
        (tmp_path / "en").mkdir(exist_ok=True)
        (tmp_path / "en" / f"{name}.png").touch()
    assert documentation_gallery.picture_of(tmp_path, "rate-test-saliency").stem == pages[0]
    with pytest.raises(StudyError, match="no picture of a trial 'rate-test'"):
        documentation_gallery.picture_of(tmp_path, "rate-test")


def cells(sheet: Image.Image, count: int) -> Iterator[NDArray[np.int64]]:
    """The cells of the first pictures: the picture itself, then each column of each line."""
    pixels = np.asarray(sheet.convert("RGB"), np.int64)
    lines = -(-count // documentation_gallery.COLUMNS)
    for number in range(count):
        line, column = divmod(number, documentation_gallery.COLUMNS)
        top = (line + 1) * pixels.shape[0] // lines - 2 * (CELL_PX + GAP_PX)
        for at in (0, column + 1):
            left = NAME_PX + 2 * GAP_PX + at * (CELL_PX + GAP_PX)
            yield pixels[top : top + CELL_PX, left : left + CELL_PX]


def test_the_command_draws_each_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small: dict[str, dict[str, Any]] = {
        "DATASET": {"size_px": 160, "count": 8, "model_count": 40},
        "PREDICTOR": {"train_items": 40, "epochs": 1, "input_px": 64},
    }
    for name, changes in small.items():
        monkeypatch.setattr(documentation_gallery, name, getattr(documentation_gallery, name) | changes)
    call_command("gallery", "--to", str(tmp_path))
    counts = {f"explainers-{name}": len(methods) for name, methods in documentation_gallery.FAMILIES.items()}
    counts["recipes"] = len(documentation_gallery.RECIPES)
    assert {path.stem for path in tmp_path.iterdir()} == set(counts)
    for name, count in counts.items():
        drawn = list(cells(Image.open(tmp_path / f"{name}.webp"), count))
        for picture, explained in zip(drawn[::2], drawn[1::2], strict=True):
            assert picture.std() > 10, "a picture, not empty ground"
            assert np.abs(picture - explained).mean() > 5, (name, "an explanation lies over it")
