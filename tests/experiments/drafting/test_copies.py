"""Changed copies of pictures: what is made, stored, shown and exported, and which pictures have none."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from analysis.tables.response_reader import read_frames
from experiments.drafting.draft import build_draft, gather, with_copies
from experiments.drafting.perturbed_copies import copies_sentences
from experiments.errors import StudyError
from experiments.models import Item, OtherStimulus, Rendering, Study, Trial
from experiments.opening.opening import stored_pool
from experiments.paradigms.base import Pool
from experiments.study_files.load import load_study
from stimuli.perturbing.perturbations import perturb_picture
from stimuli.render import png
from stimuli.render.view_placement import shown_picture
from stimuli.store import open_store
from stimuli.store.files import read_view
from stimuli.store.media_access import current_store
from stimuli.types import WHOLE, Pixels
from tests.experiments.protocols import RATING, TWO_MODELS, opened, take_part, write
from tests.world import SIZE_PX, Person, silent

pytestmark = pytest.mark.django_db
ITEMS, MODELS = 8, 2
SHOWN_PX = 128
"""Two pixels for each of the 64 of CSS in which the study shows a picture."""
PAIRS = RATING.replace('asked = ["q1", "q2"]', 'asked = ["q1", "q5", "q6"]')


def rating(folder: Path, tables: str = PAIRS) -> Path:
    return write(folder, "ratings", "rating", tables, sources=TWO_MODELS, sittings=4)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "r"


@pytest.fixture
def study(folder: Path) -> Study:
    return opened(folder, "ratings", "rating", PAIRS, sources=TWO_MODELS, sittings=4)


def brighter_side(pixels: Pixels) -> str:
    """What the quadrant model answers: by the upper half alone."""
    upper = pixels[: len(pixels) // 2].astype(float)
    half = pixels.shape[1] // 2
    return "left" if upper[:, :half].mean() > upper[:, half:].mean() else "right"


def dry_pool(path: Path, store_folder: Path) -> Pool:
    definition, store = load_study(path), open_store(str(store_folder))
    made = with_copies(definition, gather(definition, path.parent, store, silent), store, silent)
    return made.material.pool


def test_what_is_planned_dry_is_what_is_stored(folder: Path, store_folder: Path) -> None:
    path = rating(folder)
    dry = dry_pool(path, store_folder)
    stored = stored_pool(build_draft(load_study(path), path.parent, silent), load_study(path))
    assert stored.copies == dry.copies and len(dry.copies) > ITEMS * MODELS
    assert stored.items == dry.items and len(dry.items) == ITEMS, "no copy is an item of the pool"
    assert stored.explanations == dry.explanations, "no copy is rated alone"


def test_each_copy_keeps_or_changes_what_its_own_model_says(study: Study, folder: Path) -> None:
    """Recomputed from the stored pictures, by the model's rule and the named perturbation alone."""
    copies = list(Item.objects.filter(study=study, copy_of__isnull=False).select_related("copy_of"))
    assert {row.perturbation["aim"] for row in copies} == {"light", "strong"}
    assert {row.perturbation["predictor"] for row in copies} == {"coarse", "fine"}
    for row in copies:
        how = row.perturbation
        assert row.copy_of is not None
        before = row.copy_of.key.split("/")[-1].split("-")[0]
        view = read_view(current_store(), row.image_key)
        assert len(view) == {"coarse": 16, "fine": 32}[how["predictor"]]
        assert how["original"] == before and how["label"] == row.predicted == brighter_side(view)
        assert (row.predicted == before) == (how["aim"] == "light")
        picture = np.asarray(Image.open(folder / "images" / row.copy_of.key).convert("RGB"))
        name, magnitude = how["perturbation"], how["magnitude"]
        changed = perturb_picture(picture, name, magnitude, key=row.copy_of.key, seed=study.seed)
        assert brighter_side(changed) == row.predicted
        shown = png.pixel_key(shown_picture(changed, WHOLE, SHOWN_PX, "smooth"))
        specs = Rendering.objects.filter(item=row).values_list("stimulus__spec", flat=True)
        assert {spec["canvas"]["picture"] for spec in specs} == {shown}, "people see the changed picture"
        assert 1 <= magnitude <= 5 if how["aim"] == "light" else 6 <= magnitude <= 10


def test_a_copy_is_explained_by_every_method_of_its_own_model(study: Study) -> None:
    for row in Rendering.objects.filter(item__copy_of__isnull=False).select_related(
        "item", "condition", "stimulus"
    ):
        assert row.condition.predictor == row.item.perturbation["predictor"]
        label = study.predictor["labels"][row.stimulus.spec["target"]]
        assert label == row.item.predicted, "explained is the class that is predicted of the copy itself"
        assert row.stimulus.spec["image_key"] == row.item.image_key
    copies = Item.objects.filter(study=study, copy_of__isnull=False).count()
    assert Rendering.objects.filter(item__copy_of__isnull=False).count() == copies
    assert Rendering.objects.filter(item__copy_of=None).count() == ITEMS * MODELS


def test_a_trial_shows_the_copies_of_its_own_item_and_condition(study: Study) -> None:
    rows = OtherStimulus.objects.filter(trial__slot__study=study)
    assert rows.exists()
    for row in rows.select_related("trial__item", "trial__condition"):
        beside = Rendering.objects.get(stimulus=row.stimulus, condition=row.trial.condition)
        assert beside.item.copy_of == row.trial.item and beside.item.perturbation["aim"] == row.role
        assert row.explained
    trials = Trial.objects.filter(slot__study=study, kind="rate")
    assert not trials.filter(item__copy_of__isnull=False).exists()
    for trial in trials:
        assert {pair[1] for pair in trial.extra.get("pairs", {}).values()} == {
            other.role for other in trial.others.all()
        }


def test_the_page_gets_both_sides_and_no_word_of_the_change(study: Study) -> None:
    ann = Person("ann", slug="ratings")
    ann.arrive()
    for trial in ann.state["block"]["trials"]:
        if trial["kind"] != "rate":
            continue
        questions = {row["id"]: row for row in trial["content"]["questions"]}
        assert questions["q1"]["pair"] is None
        for name in questions.keys() & {"q5", "q6"}:
            original, copy = questions[name]["pair"]
            assert original["image"]["url"] == trial["content"]["image"]["url"]
            assert original["mark"]["url"] == trial["content"]["mark"]["url"]
            assert copy["image"]["url"] != original["image"]["url"]
            assert copy["mark"]["width_px"] == original["mark"]["width_px"]
            for side in (original, copy):
                for media in (side["image"], side["mark"]):
                    assert ann.client.get(media["url"]).status_code == 200
    sent = json.dumps(ann.state)
    names = Item.objects.filter(copy_of__isnull=False).values_list("perturbation__perturbation", flat=True)
    assert not [word for word in {*names, "perturbation", "magnitude", "copy_of"} if word in sent]


def test_the_order_of_the_questions_is_the_person_s_and_is_exported(study: Study) -> None:
    """The same on every page, after a reload, and in the next session; the export has it as it was seen."""
    ann = Person("ann", slug="ratings", submission="a1")
    ann.arrive()
    shown = [[q["id"] for q in t["content"]["questions"]] for t in _ratings(ann)]
    ann.refresh()
    assert [[q["id"] for q in t["content"]["questions"]] for t in _ratings(ann)] == shown
    whole = max(shown, key=len)
    take_part(ann)
    again = Person("ann", slug="ratings", submission="a2")
    again.arrive()
    later = [[q["id"] for q in t["content"]["questions"]] for t in _ratings(again)]
    for order in [*shown, *later]:
        assert order == [name for name in whole if name in order]
    trials = read_frames(study).trials
    asked = [json.loads(row) for row in trials.loc[trials["kind"] == "rate", "questions_asked"]]
    assert asked == shown
    assert not trials.loc[trials["kind"] == "rate", "anchor"].astype(bool).any()


def _ratings(person: Person) -> list[dict[str, Any]]:
    return [trial for trial in person.state["block"]["trials"] if trial["kind"] == "rate"]


def test_it_exports_what_was_changed(study: Study) -> None:
    rows = read_frames(study).stimuli
    copies = rows[rows["copy_of"] != ""]
    assert len(copies) == Rendering.objects.filter(item__copy_of__isnull=False).count() > 0
    for _, row in copies.iterrows():
        how = json.loads(row["perturbation"])
        assert {"aim", "rule", "perturbation", "magnitude", "original", "label", "tried"} <= how.keys()
        assert row["predicted"] == how["label"]
    originals = rows[rows["copy_of"] == ""]
    assert len(originals) == ITEMS * MODELS and set(originals["perturbation"]) == {""}


TABLE = "[design.perturbations]\n"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('names = ["saturation", "contrast"]\nlight = [1.0]\nstrong = [6.0]', "a large change that changes"),
        ('names = ["rotation"]', "no perturbation 'rotation'"),
        ("light = [3.0, 2.0]", "Magnitudes must rise"),
        ("strong = [12.0]", "at most 10"),
        ('light_requires = "right"', "kept_and_correct"),
    ],
)
def test_it_refuses_searches_that_find_nothing(folder: Path, lines: str, message: str) -> None:
    path = rating(folder, PAIRS.replace("[checks]", f"{TABLE}{lines}\n[checks]"))
    with pytest.raises(StudyError, match=message):
        build_draft(load_study(path), folder, silent)
    assert not Study.objects.exists()


def test_a_question_is_not_asked_of_a_picture_without_its_copy(folder: Path) -> None:
    """PASTA's rule: a light copy of pictures that the model is right about, which here are every second."""
    lines = f'{TABLE}light_requires = "kept_and_correct"\n'
    study = opened(
        folder, "ratings", "rating", PAIRS.replace("[checks]", f"{lines}[checks]"), sources=TWO_MODELS
    )
    wrong = {item.key for item in study.items.filter(copy_of=None) if item.truth != item.predicted}
    assert len(wrong) == ITEMS / 2
    missing = {(key, aim) for *_, aim, key, _ in study.copies["missing"]}
    for trial in Trial.objects.filter(slot__study=study, kind="rate").select_related("item"):
        assert trial.item is not None
        gaps = {name for name, aim in (("q5", "light"), ("q6", "strong")) if (trial.item.key, aim) in missing}
        assert gaps == {"q1", "q5", "q6"} - set(trial.extra["questions"])
    light = Counter(reason for *_, aim, key, reason in study.copies["missing"] if aim == "light")
    assert light["the model is wrong about the picture itself"] == len(wrong) * MODELS
    told = copies_sentences(study.copies)
    assert any(f"{ITEMS // 2} of {ITEMS} pictures have a small change that keeps" in line for line in told)
    for line in told:
        assert line.startswith(f"{ITEMS} of") != ("the question is not asked of the others" in line)


def test_studies_without_such_questions_make_no_copies(folder: Path) -> None:
    study = opened(folder, "ratings", "rating", RATING, sources=TWO_MODELS)
    assert study.copies == {} and not study.items.filter(copy_of__isnull=False).exists()


assert SIZE_PX < SHOWN_PX, "pictures of this size are changed as they are"
