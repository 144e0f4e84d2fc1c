"""Studies with a colour check. Their plates are plain pictures of digits: what people see of real ones is
measured elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw

from experiments.definition.study import StudyDefinition
from experiments.drafting import plates
from experiments.drafting.plates import Plate
from experiments.models import Study
from tests.experiments.protocols import SOLVE, write
from tests.world import Person, opened_study

ETHICS = """contact = "lab@example.org"
special_category = "health data: a colour check with a consent of its own"
deception = "Why the study ends for some people after the colour check."
retention_days = 90"""
VISIONS = ("ordinary", "reduced", "unclear", "skipped")


SHORT = SOLVE.replace("per_list = 10", "per_list = 2").replace("known_per_list = 4", "known_per_list = 0")
"""A solve study of four short lists, without a colour check."""


def checked_tables(plates: str = "") -> str:
    """The same with one; `plates` are lines of its table [plates]."""
    asked = SHORT.replace("[design]", '[design]\ncolour_vision = "plates"')
    return f"{asked}[plates]\n{plates}\n"


def plain_plates(definition: StudyDefinition) -> Iterator[Plate]:
    """Digits on grey: controls are black, the others red."""
    table = definition.plates
    for number in range(0 if table is None else table.count):
        assert table is not None
        digit, is_control = str(3 * number % 10), number % (table.count // table.controls) == 1
        picture = Image.new("RGB", (96, 96), (170, 170, 170))
        ImageDraw.Draw(picture).text(
            (30, 8), digit, (20, 20, 20) if is_control else (180, 60, 60), font_size=72
        )
        yield Plate(np.asarray(picture), digit, is_control)


def checked_study(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    table: str = "",
    language: str = "en",
    picture_px: int = 64,
) -> Study:
    """A solve study with a colour check: four slots of the lane expert, 1.00 USD for everybody."""
    monkeypatch.setattr(plates, "drawn_plates", plain_plates)
    path = write(folder, "tasks", "blind_review", checked_tables(table))
    text = path.read_text().replace('contact = "lab@example.org"', ETHICS)
    text = text.replace("picture_px = 64", f"picture_px = {picture_px}")
    path.write_text(text.replace("seed = 3", f'seed = 3\nlanguage = "{language}"'))
    (folder / "debrief.md").write_text(
        "# Thank you\n\nThe study ends after the colour check for people whose eyes another part needs.\n"
    )
    return opened_study(path)


def person(name: str, vision: str = "ordinary") -> Person:
    return Person(name, slug="tasks", vision=vision)


def at_the_end(each: Person) -> Any:
    """Walks until the end, or until the trials."""
    each.join()
    while each.state["step"] not in ("trials", "finish"):
        assert each.gate(each.good_value()).status_code == 200
    return each.finish().json() if each.state["step"] == "finish" else None
