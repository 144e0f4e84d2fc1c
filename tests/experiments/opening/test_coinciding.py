"""Pages that are the same to the pixel under several conditions: which they are, and who rates them."""

from __future__ import annotations

import io
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from analysis.tables.response_reader import read_frames
from experiments.drafting.draft import build_draft
from experiments.models import Rendering, Study, Trial
from experiments.opening.identical_pages import coinciding, coinciding_sentences
from experiments.opening.opening import plan_pilot
from experiments.study_files.load import load_study
from stimuli.store.media_access import current_store
from tests.experiments.protocols import ONE, RATING, TWO_MODELS, opened, write
from tests.world import silent

pytestmark = pytest.mark.django_db
ITEMS = 8
HEAD = RATING.partition("[[conditions]]")[0]
THREE = """[[conditions]]
name = "{}"
role = "method"
{}explainer = {{ name = "saliency" }}
[[conditions]]
name = "{}"
role = "method"
{}explainer = {{ name = "smooth_grad", draws = 4 }}
[[conditions]]
name = "other"
role = "method"
{}explainer = {{ name = "occlusion" }}
"""
ONE_MODEL = HEAD + THREE.format("plain", "", "smoothed", "", "")
"""The model is linear, so that its gradient is the same wherever it is taken."""


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return opened(tmp_path, "ratings", "rating", ONE_MODEL, sources=ONE)


def pixels(file: str) -> bytes:
    picture = Image.open(io.BytesIO(current_store().get(file))).convert("RGBA")
    return np.asarray(picture).tobytes()


def same_by_pixels(study: Study) -> set[tuple[str, str, str]]:
    """(item, earlier condition, later condition) of equal pictures, every two compared by themselves."""
    shown: dict[str, list[tuple[str, bytes]]] = defaultdict(list)
    rows = Rendering.objects.filter(item__study=study, item__copy_of=None).select_related("stimulus")
    for row in rows.select_related("item", "condition").order_by("condition__ordinal"):
        shown[row.item.key].append((row.condition.name, pixels(row.stimulus.explanation_file)))
    return {
        (item, first, second)
        for item, made in shown.items()
        for place, (first, before) in enumerate(made)
        for second, after in made[place + 1 :]
        if before == after
    }


def test_it_finds_the_pages_that_are_equal_to_the_pixel(study: Study) -> None:
    expected = same_by_pixels(study)
    assert {(item, "plain", "smoothed") for item in study.items.values_list("key", flat=True)} == expected
    assert coinciding(study) == {(item, later): first for item, first, later in expected}


def test_only_the_first_of_them_is_rated_and_stands_for_all(study: Study) -> None:
    trials = Trial.objects.filter(slot__study=study, kind="rate")
    conditions = trials.values_list("condition__name", flat=True)
    assert set(conditions) == {"plain", "other"}
    assert len(conditions) == 2 * 2 * ITEMS, "two people for each explanation of two conditions"
    rows = read_frames(study).stimuli
    assert dict(zip(rows["condition"], rows["rated_as"], strict=True)) == {
        "plain": "",
        "smoothed": "plain",
        "other": "",
    }
    assert plan_pilot(study, 2, silent) == 2
    pilot = Trial.objects.filter(slot__study=study, slot__pilot=True, kind="rate")
    assert set(pilot.values_list("condition__name", flat=True)) == {"plain", "other"}


def test_it_prints_them(study: Study) -> None:
    told = coinciding_sentences(coinciding(study), ITEMS)
    assert told == [
        "plain and smoothed coincide to the pixel on 8 of 8 pictures: such a page is rated once, and the "
        "rating stands for both."
    ]
    three = {("a", "c2"): "c1", ("a", "c3"): "c1", ("b", "c3"): "c1"}
    assert coinciding_sentences(three, 5) == [
        "c1, c2 and c3 coincide to the pixel on 1 of 5 pictures: such a page is rated once, and the rating "
        "stands for all.",
        "c1 and c3 coincide to the pixel on 1 of 5 pictures: such a page is rated once, and the rating "
        "stands for both.",
    ]
    assert coinciding_sentences({}, 5) == []


def test_pages_that_say_another_answer_do_not_coincide(study: Study) -> None:
    """The picture is the same, but the page names what the condition's own model says."""
    first = next(iter(study.items.all()))
    first.predictions.create(predictor="", predicted="another", confidence=1.0, logits=[0, 1])
    assert len(coinciding(study)) == ITEMS, "no condition names a model here, so all say the same"
    study.conditions.filter(name="smoothed").update(predictor="second")
    first.predictions.create(predictor="second", predicted="a third", confidence=1.0, logits=[0, 1])
    assert (first.key, "smoothed") not in coinciding(study)
    assert len(coinciding(study)) == ITEMS - 1


PAIRS = 'asked = ["q1", "q6"]'


def test_pages_with_other_copies_do_not_coincide(tmp_path: Path) -> None:
    """Explained alike, but beside the copy of one of them stands another picture."""
    tables = ONE_MODEL.replace('asked = ["q1", "q2"]', PAIRS)
    study = opened(tmp_path, "ratings", "rating", tables, sources=ONE)
    whole = coinciding(study)
    with_copy = Rendering.objects.filter(condition__name="smoothed", item__copy_of__isnull=False)
    row = with_copy.select_related("item__copy_of", "stimulus").first()
    assert len(whole) == ITEMS and row is not None and row.item.copy_of is not None
    row.stimulus.picture_digest = "0" * 64
    row.stimulus.save()
    left = whole.keys() - coinciding(study).keys()
    assert left == {(row.item.copy_of.key, "smoothed")}


def test_what_is_not_rendered_coincides_with_nothing(tmp_path: Path) -> None:
    path = write(tmp_path, "ratings", "rating", ONE_MODEL, sources=ONE)
    assert coinciding(build_draft(load_study(path), tmp_path, silent)) == {}


def test_methods_on_two_models_coincide_as_their_pixels_do(tmp_path: Path) -> None:
    study = opened(tmp_path, "ratings", "rating", RATING, sources=TWO_MODELS)
    assert coinciding(study) == {(item, later): first for item, first, later in same_by_pixels(study)}
