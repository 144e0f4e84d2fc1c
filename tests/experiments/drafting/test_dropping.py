"""`[stimuli] drop_flagged`: items with an empty explanation are chosen under no condition, and counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from PIL import Image

from analysis.tables.response_reader import study_facts
from experiments.drafting.draft import build_draft
from experiments.drafting.dropped_items import is_empty
from experiments.models import Item, Rendering, Study, Trial
from experiments.study_files.load import load_study
from stimuli.explainers.gradients.pixel_gradients import IntegratedGradients, Saliency
from stimuli.planner.asks import Steps
from stimuli.planner.values import Subject
from stimuli.render.recipe import RenderSpec
from stimuli.types import ConceptAttribution, PixelAttribution, TokenAttribution
from tests.spoilt import empty_for_the_first_answer
from tests.world import CLASSES, silent, write_study

DROP = 'drop_flagged = ["flat"]'


def is_planted(first: int, answer: str) -> bool:
    """The plant: empty if the first value of a picture of this answer is one of a few."""
    return first % 4 == 0 if answer == "left" else first % 16 == 1


@pytest.fixture
def spoilt(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Saliency.explain

    def explain(self: Saliency, predictor: Any, subject: Subject) -> Steps:
        made = yield from honest(self, predictor, subject)
        first = round(float(subject.pixels[0, 0, 0]) * 255)
        if is_planted(first, predictor.labels[subject.target]):
            return replace(made, values=np.zeros_like(made.values))
        return made

    monkeypatch.setattr(Saliency, "explain", explain)


def planted(folder: Path) -> dict[str, bool]:
    """Read from the files alone: each item, named by class and file, and whether its map will be empty."""
    maps = {}
    for truth in CLASSES:
        for file in (folder / "images" / truth).glob("*.png"):
            first = int(np.asarray(Image.open(file))[0, 0, 0])
            maps[f"{truth}/{file.name}"] = is_planted(first, file.name.split("-")[0])
    return maps


def written(folder: Path, line: str = DROP, items: int = 120) -> Path:
    return write_study(folder, slots=2, classes=f'classes = ["left", "right"]\nitems = {items}\n{line}')


def built(folder: Path) -> tuple[Study, Path]:
    path = written(folder)
    call_command("build_stimuli", str(path))
    return Study.objects.get(), path


def drafted(path: Path) -> Study:
    """What is dropped is decided before a picture of it is drawn, so none is."""
    return build_draft(load_study(path), path.parent, silent)


@pytest.mark.django_db
def test_it_drops_exactly_the_empty_ones_under_all_conditions(
    tmp_path: Path, store_folder: Path, spoilt: None, capsys: pytest.CaptureFixture[str]
) -> None:
    study, path = built(tmp_path)
    truly = planted(tmp_path)
    empty = {key for key, is_one in truly.items() if is_one}
    assert 5 < len(empty) < 25, "the plant is neither nothing nor everything"
    kept = set(Item.objects.values_list("key", flat=True))
    assert kept == truly.keys() - empty and set(study.dropped["items"]) == empty
    per_condition = Counter(Rendering.objects.values_list("condition__name", flat=True))
    assert set(per_condition.values()) == {len(kept)} and len(per_condition) == 3

    said = {key: key.split("/")[1].split("-")[0] for key in truly}
    counts = {(name, answer): (n, of) for name, answer, n, of in study.dropped["counts"]}
    for answer in CLASSES:
        of = sum(says == answer for says in said.values())
        assert counts["saliency", answer] == (sum(said[key] == answer for key in empty), of)
        assert counts["control", answer] == (0, of)
    assert len(counts) == 4 and study.dropped["looked_at"] == len(truly)
    out = " ".join(capsys.readouterr().out.split())
    assert f"{len(empty)} of {len(truly)} items were left out under all conditions" in out

    call_command("study_open", str(path))
    opened = Study.objects.get()
    shown = set(Trial.objects.filter(item__isnull=False).values_list("item__key", flat=True))
    assert shown and not shown & empty and opened.dropped == study.dropped
    assert any("were left out under all conditions" in line for line in study_facts(opened).stimuli)
    assert ("saliency", "left", str(counts["saliency", "left"][0]), "28") in study_facts(opened).dropped


@pytest.mark.django_db
def test_the_place_of_a_dropped_item_goes_to_another_of_its_cell(
    tmp_path: Path, store_folder: Path, spoilt: None
) -> None:
    study = drafted(written(tmp_path / "without", "", 24))
    before = set(study.items.values_list("key", flat=True))
    assert study.dropped == {}
    study.delete()
    study = drafted(written(tmp_path / "with", DROP, 24))
    after = set(study.items.values_list("key", flat=True))
    empty = {key for key, is_one in planted(tmp_path / "with").items() if is_one}
    assert before & empty and before - empty <= after and not after & empty
    cells = Counter((item.predicted, item.truth == item.predicted) for item in study.items.all())
    assert set(cells.values()) == {6}
    # Only items that were chosen at some time were explained.
    assert study.dropped["looked_at"] == 24 + len(set(study.dropped["items"]))


@pytest.mark.django_db
def test_it_refuses_a_shortage_before_anything_is_rendered(
    tmp_path: Path, store_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty_for_the_first_answer(monkeypatch)
    with pytest.raises(CommandError, match="cannot be planned.*28 of 56 items were left out.*drop_flagged"):
        built(tmp_path)
    assert not Study.objects.exists()


TWINS = """
[[conditions]]
name = "few"
role = "method"
explainer = { name = "integrated_gradients", steps = 2 }
[[conditions]]
name = "more"
role = "method"
explainer = { name = "integrated_gradients", steps = 3 }
[texts]"""
"""On the toy, which is linear, every number of steps gives the same map."""


def with_twins(folder: Path, rules: str) -> Path:
    path = write_study(folder, slots=1, classes=f'classes = ["left", "right"]\ndrop_flagged = {rules}')
    path.write_text(path.read_text().replace("[texts]", TWINS))
    return path


@pytest.fixture
def turned(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plant: the twins are one picture for a few items alone; else the second is turned upside down."""
    honest = IntegratedGradients.explain

    def explain(self: IntegratedGradients, predictor: Any, subject: Subject) -> Steps:
        made = yield from honest(self, predictor, subject)
        first = round(float(subject.pixels[0, 0, 0]) * 255)
        if self.steps == 2 or is_planted(first, predictor.labels[subject.target]):
            return made
        return replace(made, values=np.ascontiguousarray(made.values[::-1, ::-1]))

    monkeypatch.setattr(IntegratedGradients, "explain", explain)


@pytest.mark.long(stays="test_it_drops_exactly_the_empty_ones_under_all_conditions")
@pytest.mark.django_db
@pytest.mark.parametrize("rules", ['["look_alike"]', '["flat", "look_alike"]'])
def test_it_drops_exactly_those_on_which_conditions_look_alike(
    tmp_path: Path, store_folder: Path, spoilt: None, turned: None, rules: str
) -> None:
    """Maps of saliency are empty on the same items, so that both rules find them."""
    path = with_twins(tmp_path, rules)
    truly = planted(tmp_path)
    study = drafted(path)
    marked = {key for key, is_one in truly.items() if is_one}
    assert 5 < len(marked) < 25 and set(study.dropped["items"]) == marked
    assert set(study.items.values_list("key", flat=True)) == truly.keys() - marked
    assert study.dropped["alike"] == [[["few", "more"], len(marked)]]
    by_rule = {rule: len(marked) for rule in ("flat", "look_alike") if rule in rules}
    assert study.dropped["by_rule"] == by_rule and study.dropped["rule"] == list(by_rule)
    told = " ".join(study_facts(study).stimuli)
    assert f"{len(marked)} of {len(truly)} items were left out under all conditions" in told
    assert f"look alike on {len(marked)} (few and more on {len(marked)})" in told
    assert (f"explanation of {len(marked)} is empty" in told) == ("flat" in rules)


@pytest.mark.long(stays="test_it_refuses_a_shortage_before_anything_is_rendered")
@pytest.mark.django_db
def test_methods_that_are_one_picture_leave_nothing(tmp_path: Path, store_folder: Path) -> None:
    path = with_twins(tmp_path, '["look_alike"]')
    with pytest.raises(CommandError, match="56 of 56 items were left out.*few and more on 56.*drop_flagged"):
        call_command("build_stimuli", str(path))
    assert not Study.objects.exists()


@pytest.mark.django_db
def test_a_study_that_does_not_ask_for_it_keeps_its_digest(tmp_path: Path, store_folder: Path) -> None:
    path = write_study(tmp_path)
    definition = load_study(path)
    assert "drop_flagged" not in definition.as_met()["stimuli"]
    path.write_text(path.read_text().replace("[stimuli]\n", f"[stimuli]\n{DROP}\n"))
    assert load_study(path).as_met()["stimuli"]["drop_flagged"] == ["flat"]
    assert load_study(path).digest != definition.digest


def test_an_explanation_is_empty_if_it_marks_nothing() -> None:
    recipe, values = RenderSpec(), np.linspace(0, 1, 16, dtype=np.float32).reshape(4, 4)
    assert not is_empty(PixelAttribution(values, True), recipe) and is_empty(
        PixelAttribution(-values, True), recipe
    )
    assert not is_empty(PixelAttribution(-values, True), replace(recipe, sign="magnitude"))
    none, some = np.zeros(2, np.float32), np.array([0, -1], np.float32)
    for make in (
        lambda v: TokenAttribution(((0, 1), (2, 3)), v),
        lambda v: ConceptAttribution(("a", "b"), v),
    ):
        assert is_empty(make(none), recipe) and not is_empty(make(some), recipe)
