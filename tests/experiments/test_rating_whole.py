"""A study of ratings from its file to its plans: two models that are trained here, maps and concepts, and
changed copies."""

from __future__ import annotations

import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from analysis.tables.response_reader import read_frames
from experiments.drafting.draft import build_draft
from experiments.errors import StudyError
from experiments.models import Item, OtherStimulus, Rendering, Study, Trial
from experiments.study_files.load import load_study
from stimuli.errors import BadSpec
from stimuli.predictors import restore
from stimuli.store.files import predictor_file, read_view
from stimuli.store.media_access import current_store
from tests.experiments.protocols import ONE, SENTENCES, write
from tests.world import opened_study, silent

pytestmark = pytest.mark.django_db
ITEMS, RATERS = 4, 2
SOURCES = """dataset = { name = "synthetic", scenario = "biased", count = 8, model_count = 80, size_px = 64 }
[stimuli.predictors.narrow]
name = "trained_cnn"
input_px = 32
width = 4
epochs = 2
train_items = 64
[stimuli.predictors.named]
name = "concept_bottleneck"
input_px = 64
epochs = 2"""
CONDITIONS = (
    ("map-narrow", "narrow", "grad_cam"),
    ("map-named", "named", "saliency"),
    ("concepts", "named", "shap_cbm"),
)
TABLES = """
[design]
raters_per_explanation = 2
list_length = 6
asked = ["q1", "q5", "q6"]
anchors = 1
picture_px = 64
[checks]
instructed = 1
""" + "".join(
    f'[[conditions]]\nname = "{name}"\nrole = "method"\npredictor = "{predictor}"\n'
    f'explainer = {{ name = "{method}" }}\n'
    for name, predictor, method in CONDITIONS
)


@pytest.fixture
def study(tmp_path: Path) -> Study:
    path = write(tmp_path, "ratings", "rating", TABLES, sources=SOURCES)
    path.write_text(path.read_text().replace("items = 8", f"items = {ITEMS}"))
    return opened_study(path)


def models(study: Study) -> dict[str, Any]:
    """Each model by name, read from the archive that the study names."""
    several = study.predictor["several"]
    return {name: restore(current_store().get(predictor_file(row["key"]))) for name, row in several.items()}


def test_a_study_of_two_models_with_maps_and_concepts_is_built_and_opened(study: Study) -> None:
    assert study.state == "open"
    assert study.predictor["several"].keys() == {"narrow", "named"}
    every_rendering_is_of_its_own_model(study)
    copies_are_what_their_models_say(study)
    each_question_is_asked_if_its_copy_exists(study)
    the_export_names_every_copy(study)


def every_rendering_is_of_its_own_model(study: Study) -> None:
    by_condition: dict[str, int] = defaultdict(int)
    for row in Rendering.objects.filter(item__study=study).select_related("condition", "item", "stimulus"):
        source = study.predictor["several"][row.condition.predictor]
        assert row.stimulus.spec["predictor_key"] == source["key"]
        assert row.stimulus.state == "done" and row.stimulus.explanation_file
        if row.item.copy_of is None:
            by_condition[row.condition.name] += 1
    assert by_condition == {name: ITEMS for name, *_ in CONDITIONS}


def copies_are_what_their_models_say(study: Study) -> None:
    """Predicted again, of the stored view, by the restored model."""
    known = models(study)
    copies = study.items.filter(copy_of__isnull=False).select_related("copy_of")
    assert sum(made for *_, made, _ in study.copies["counts"]) == copies.count() > ITEMS
    for copy in copies:
        how = copy.perturbation
        model = known[how["predictor"]]
        (logits,) = model.logits([read_view(current_store(), copy.image_key)])
        assert model.labels[int(logits.argmax())] == copy.predicted == how["label"]
        assert (copy.predicted == how["original"]) == (how["aim"] == "light")


def each_question_is_asked_if_its_copy_exists(study: Study) -> None:
    aims = {"q5": "light", "q6": "strong"}
    there = {
        (row.item.copy_of.key, row.condition.name, row.item.perturbation["aim"])
        for row in Rendering.objects.filter(item__study=study, item__copy_of__isnull=False).select_related(
            "item__copy_of", "condition"
        )
        if row.item.copy_of
    }
    raters: dict[tuple[str, str], int] = defaultdict(int)
    for trial in Trial.objects.filter(slot__study=study, kind="rate").select_related("item", "condition"):
        assert trial.item and trial.condition
        unit = (trial.item.key, trial.condition.name)
        asked = {"q1", *(name for name, aim in aims.items() if (*unit, aim) in there)}
        assert set(trial.extra["questions"]) == asked
        beside = OtherStimulus.objects.filter(trial=trial).select_related("stimulus")
        assert {other.role for other in beside} == {aims[name] for name in asked - {"q1"}}
        for other in beside:
            row = Rendering.objects.get(stimulus=other.stimulus, condition=trial.condition)
            assert row.item.copy_of == trial.item
        raters[unit] += not trial.extra.get("anchor")
    assert sorted(raters.values())[0] == 0 and set(raters.values()) == {0, RATERS}
    assert list(raters.values()).count(0) == 1, "the anchor stands in every list besides"


def the_export_names_every_copy(study: Study) -> None:
    rows = read_frames(study).stimuli
    assert len(rows) == Rendering.objects.filter(item__study=study).count()
    copies = Item.objects.filter(study=study, copy_of__isnull=False).values_list("key", "copy_of__key")
    copied = rows[rows["copy_of"] != ""]
    assert set(zip(copied["item"], copied["copy_of"], strict=True)) == set(copies)


# What is refused before anything is rendered

TEXTS = """
[design]
asked = ["q1"]
[[conditions]]
name = "words"
role = "method"
explainer = { name = "lime_text" }
"""
MAPS = TEXTS.replace("lime_text", "saliency")


def test_it_refuses_texts(tmp_path: Path) -> None:
    path = write(tmp_path, "ratings", "rating", TEXTS, sources=SENTENCES)
    with pytest.raises(
        StudyError, match="the pages of rating show pictures, but the predictor 'trained_text'"
    ):
        build_draft(load_study(path), tmp_path, silent)


def test_it_refuses_pictures_of_a_single_class(tmp_path: Path) -> None:
    path = write(tmp_path, "ratings", "rating", MAPS, sources=ONE)
    shutil.rmtree(tmp_path / "images" / "right")
    with pytest.raises(BadSpec, match="class"):
        build_draft(load_study(path), tmp_path, silent)
    assert not Study.objects.exists()
