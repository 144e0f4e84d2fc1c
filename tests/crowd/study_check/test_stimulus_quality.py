"""Before people are paid to look: `study_check` looks at the stimuli, and says what is wrong with them."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crowd.study_check.quality_record import measure, qualities_of, quality_json, quality_of
from crowd.study_check.quality_warnings import faults_in, warnings_about
from crowd.study_check.stimulus_quality import (
    CopyQuality,
    Quality,
    QualitySample,
    _sample_items,
    look_at,
    stimulus_quality,
)
from experiments.definition.study import StudyDefinition
from experiments.drafting.draft import gather, with_copies
from experiments.drafting.material_set import MaterialSet
from experiments.study_files.load import load_study
from stimuli.explainers.concepts.concept_surrogates import ShapCbm
from stimuli.explainers.controls.methods import Random
from stimuli.explainers.text.methods import InputGradientText
from stimuli.planner.asks import Steps
from stimuli.planner.values import Subject
from stimuli.quality.explanation_form import is_drawn_alike
from stimuli.quality.look_decodability import Decodability
from stimuli.render.attribution_field import drawn_field
from stimuli.render.recipe import RenderSpec
from stimuli.store.media_access import current_store
from stimuli.types import (
    ConceptAttribution,
    PictureExplanation,
    PixelAttribution,
    TextExplanation,
    TokenAttribution,
    silent,
)
from tests.crowd.study_check.test_recorded_study import FORMS, explain_all
from tests.crowd.study_check.test_recorded_study import write_study as write_recorded
from tests.crowd.study_check.test_study_check import Check, check, study_with
from tests.experiments.protocols import RATING, SENTENCES, TURING, TWO_MODELS, write
from tests.spoilt import empty_for_the_first_answer
from tests.world import opened_study

__all__ = ["check"]
CLEAN = Quality(
    condition="grad_cam",
    items=120,
    flat={"husky": (0, 60), "wolf": (0, 60)},
    leak=Decodability(0.55, 0.40, 0.70, 0.3, 60),
    leak_p=0.3,
    map_auc=1.0,
    picture_auc=0.9,
    mean_map=0.4,
    lattice=0.01,
    cut_away=0.5,
    on_region=0.7,
    region=0.7,
)
HAPPENED = {"husky": (28, 60), "wolf": (0, 60)}
"""What was measured on photographs: 28 of 60 maps of one answer were empty, none of the other."""


def said(quality: Quality, *, seen_with_answer: bool = True) -> str:
    return " ".join(warnings_about([quality], seen_with_answer=seen_with_answer))


@pytest.mark.pure
def test_honest_material_is_not_accused_however_well_a_map_tells_the_answer() -> None:
    for seen_with_answer in (True, False):
        assert said(CLEAN, seen_with_answer=seen_with_answer) == ""


@pytest.mark.pure
@pytest.mark.parametrize(
    ("flat", "is_told"),
    [
        (HAPPENED, True),
        ({"husky": (3, 60), "wolf": (0, 60)}, False),
        ({"husky": (2, 10), "wolf": (0, 10)}, False),
        ({"husky": (60, 60), "wolf": (60, 60)}, False),
        ({"a": (0, 40), "b": (1, 40), "c": (30, 40)}, True),
    ],
)
def test_empty_explanations_of_one_answer_are_told(flat: dict[str, tuple[int, int]], is_told: bool) -> None:
    assert ("empty explanations by answer" in said(replace(CLEAN, flat=flat))) == is_told


@pytest.mark.pure
@pytest.mark.parametrize(
    ("low", "p", "is_told"), [(0.61, 0.01, True), (0.60, 0.01, False), (0.9, 0.06, False)]
)
def test_a_leak_is_told_only_if_the_explanation_is_seen_before_the_answer(
    low: float, p: float, is_told: bool
) -> None:
    leaking = replace(CLEAN, leak=Decodability(0.95, low, 1.0, p, 60), leak_p=p)
    assert ("which answer it explains" in said(leaking, seen_with_answer=False)) == is_told
    assert said(leaking) == ""
    assert "unknown" in replace(CLEAN, leak=None).leak_words


@pytest.mark.pure
def test_a_grid_is_told() -> None:
    assert "regular grid" in said(replace(CLEAN, lattice=0.55)) and said(replace(CLEAN, lattice=0.2)) == ""


@pytest.mark.pure
@pytest.mark.parametrize(
    ("flat", "told"),
    [
        ({"husky": (10, 10), "wolf": (10, 10)}, "20 of 20 explanations are empty"),
        ({"husky": (9, 10), "wolf": (10, 10)}, "19 of 20 explanations are empty"),
        ({"husky": (5, 10), "wolf": (5, 10)}, ""),
        ({"husky": (5, 10), "wolf": (6, 10)}, "11 of 20 explanations are empty"),
    ],
)
@pytest.mark.parametrize("seen_with_answer", [True, False])
def test_a_method_that_mostly_shows_nothing_is_told(
    flat: dict[str, tuple[int, int]], told: str, seen_with_answer: bool
) -> None:
    faults = faults_in([replace(CLEAN, items=20, flat=flat)], seen_with_answer=seen_with_answer)
    assert [fault.kind for fault in faults] == ["empty"] * bool(told)
    assert not any(fault.refuses for fault in faults) and told in "".join(fault.what for fault in faults)


def looked_at(path: Path, count: int = 12) -> tuple[dict[str, Quality], MaterialSet]:
    definition, store = load_study(path), current_store()
    gathered = gather(definition, path.parent, store, silent)
    looked = look_at(definition, gathered, store, count, silent)
    measured = stimulus_quality(definition, gathered, store, looked)
    return {quality.condition: quality for quality in measured}, gathered


@pytest.mark.django_db
def test_it_explains_each_picture_for_both_answers(tmp_path: Path, store_folder: Path) -> None:
    """The toy's map lies in the corner of the answer: its place tells the answer, its form does not."""
    path = study_with(tmp_path, gradient='{ name = "gradient_x_input" }')
    measured, _ = looked_at(path)
    gradient = measured["gradient"]
    assert gradient.items == 12 and sum(of for _, of in gradient.flat.values()) == 12
    assert gradient.map_auc == 1 and gradient.leak is not None
    assert not gradient.is_flat_by_answer and not gradient.is_leaking
    assert gradient.cut_away == 0, "the picture's values have no sign"


@pytest.mark.django_db
def test_it_draws_items_by_the_seed_from_every_answer(tmp_path: Path, store_folder: Path) -> None:
    """Read from the names of the files, which begin with the class and then what the toy answers."""
    path = study_with(tmp_path)
    sampled: dict[int, set[str]] = {}
    for seed in (1, 2):
        definition = load_study(path, changes={"seed": seed})
        gathered = gather(definition, path.parent, current_store(), silent)
        keys = sorted(item.key for items in gathered.material.chosen.values() for item in items)
        sampled[seed] = _sample_items(definition, gathered, 20)
        assert _sample_items(definition, gathered, 20) == sampled[seed] and len(sampled[seed]) == 20
        assert _sample_items(definition, gathered, 1000) == set(keys)
        answers = Counter(key.split("/")[1].split("-")[0] for key in sampled[seed])
        assert answers == {"left": 10, "right": 10}
        truths = Counter(key.split("/")[0] for key in sampled[seed])
        assert set(truths) == {"left", "right"} and min(truths.values()) >= 4
    assert sampled[1] != sampled[2]


@pytest.mark.django_db
def test_an_answer_that_has_few_items_gives_them_all(tmp_path: Path, store_folder: Path) -> None:
    path = study_with(tmp_path)
    path.write_text(path.read_text().replace("[stimuli]\n", '[stimuli]\nbalance = "none"\n'))
    for file in sorted((path.parent / "images").rglob("left-*.png"))[3:]:
        file.unlink()
    definition = load_study(path)
    gathered = gather(definition, path.parent, current_store(), silent)
    answers = Counter(key.split("/")[1].split("-")[0] for key in _sample_items(definition, gathered, 12))
    assert answers == {"left": 3, "right": 9}


@pytest.mark.django_db
def test_empty_maps_of_one_answer_leak_and_are_counted(
    tmp_path: Path, store_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A planted method: for the first answer it makes nothing."""
    empty_for_the_first_answer(monkeypatch)
    quality = looked_at(study_with(tmp_path, spoilt='{ name = "saliency" }'))[0]["spoilt"]
    assert quality.is_flat_by_answer and quality.is_leaking
    assert sorted(count for count, _ in quality.flat.values())[0] == 0
    assert "empty explanations by answer" in said(quality)


@pytest.mark.django_db
def test_study_check_prints_it(tmp_path: Path, store_folder: Path, check: Check) -> None:
    printed = check(study_with(tmp_path, gradient='{ name = "gradient_x_input" }'), "--quality", "12")
    assert "The form of explanations" in printed and "What they show" in printed
    assert "target leak [95 %]" in printed and "unknown is not clean" in printed
    assert "The form of explanations" not in check(tmp_path / "small" / "study.toml", "--quality", "0")


TEXTS = """
[[conditions]]
name = "gradient"
role = "method"
explainer = { name = "input_gradient_text" }
"""
PLANTED = """dataset = { name = "synthetic", scenario = "biased", count = 24, model_count = 80, size_px = 64 }
predictor = { name = "concept_bottleneck", input_px = 64, epochs = 4 }"""
CONCEPTS = """
[design]
raters_per_explanation = 1
list_length = 8
asked = ["q1", "q2"]
[checks]
instructed = 1
[[conditions]]
name = "concepts"
role = "method"
explainer = { name = "shap_cbm" }
[[conditions]]
name = "map"
role = "method"
explainer = { name = "saliency" }
"""


def turing(folder: Path) -> Path:
    return write(folder, "turing", "reverse_turing", TURING + TEXTS, sources=SENTENCES)


@pytest.mark.django_db
def test_it_looks_at_marked_words(tmp_path: Path, store_folder: Path, check: Check) -> None:
    path = turing(tmp_path)
    measured, _ = looked_at(path)
    assert set(measured) == {"marked", "gradient"}
    for quality in measured.values():
        assert quality.items == 8 and quality.leak is not None and quality.leak.pictures == 8
        assert not quality.is_leaking and not quality.is_flat_by_answer
        row = quality.content_row()
        assert row[1:] == ("-",) * 6, "a text has no map, picture, lattice or region"
    printed = check(path, "--quality", "12")
    assert "The form of explanations" in printed and "gradient" in printed.partition("What they show")[2]


@pytest.mark.django_db
def test_words_that_are_marked_for_one_answer_only_are_told(
    tmp_path: Path, store_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A planted method: for the first answer it marks nothing."""
    empty_for_the_first_answer(monkeypatch, InputGradientText)
    quality = looked_at(turing(tmp_path))[0]["gradient"]
    assert quality.is_leaking and sum(count for count, _ in quality.flat.values()) > 0
    assert all(count in (0, of) for count, of in quality.flat.values())
    assert "which answer it explains" in said(quality, seen_with_answer=False)


@pytest.mark.long(stays="test_study_check_prints_it")
@pytest.mark.django_db
def test_it_looks_at_concepts_beside_maps(tmp_path: Path, store_folder: Path, check: Check) -> None:
    path = write(tmp_path, "rating", "rating", CONCEPTS, sources=PLANTED)
    path.write_text(path.read_text().replace("items = 8", "items = 12"))
    measured, _ = looked_at(path)
    assert set(measured) == {"concepts", "map"}
    concepts, drawn = measured["concepts"], measured["map"]
    assert concepts.items == 12 and concepts.leak is not None and concepts.leak.pictures == 12
    assert concepts.map_auc != concepts.map_auc and concepts.lattice != concepts.lattice
    np.testing.assert_equal(concepts.picture_auc, drawn.picture_auc)
    assert drawn.lattice == drawn.lattice
    assert "concepts 12" in check(path, "--quality", "12")


@pytest.mark.long(stays="test_study_check_prints_it")
@pytest.mark.django_db
def test_it_counts_lists_that_name_what_speaks_against_the_answer(
    tmp_path: Path, store_folder: Path, check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A planted method: for the first answer a concept speaks against it, for the other one hardly weighs."""

    def planted(self: ShapCbm, predictor: Any, subject: Subject) -> Steps:
        names = predictor.bottleneck.concepts
        last = -0.6 if subject.target == 0 else 0.001
        return ConceptAttribution(names, np.array([*[1.0] * (len(names) - 1), last], np.float32))
        yield

    monkeypatch.setattr(ShapCbm, "explain", planted)
    path = write(tmp_path, "rating", "rating", CONCEPTS, sources=PLANTED)
    path.write_text(path.read_text().replace("items = 8", "items = 12"))
    assert "name a concept that" not in check(path, "--quality", "12"), "bars have a length and a side"
    text = path.read_text() + '[render]\nconcept_form = "names"\nconcept_top = 15\n'
    path.write_text(text)
    measured, gathered = looked_at(path)
    (chosen,) = gathered.material.chosen.values()
    answers = [item.index for item in chosen]
    assert 0 < answers.count(0) < len(answers) == 12
    tiny = f"concepts: the words of {answers.count(1)} of 12 explanations name a concept that weighs less"
    said_of_names = check(path, "--quality", "12")
    assert tiny in said_of_names and "speaks against" not in said_of_names, "a minus marks it"
    path.write_text(text + "concept_signed = false\n")
    against = (
        f"the words of {answers.count(0)} of 12 explanations name a concept that speaks against the answer"
    )
    printed = check(path, "--quality", "12")
    assert against in printed and tiny in printed
    assert measured["map"].naming_tiny == 0


@pytest.mark.django_db
def test_sentences_and_pictures_made_elsewhere_have_one_target(
    tmp_path: Path, store_folder: Path, check: Check
) -> None:
    path = write_recorded(tmp_path, **FORMS)
    explain_all(tmp_path)
    measured, _ = looked_at(path)
    assert set(measured) == set(FORMS)
    for quality in measured.values():
        assert quality.leak is None and quality.leak_words == "unknown"
        assert not any(count for count, _ in quality.flat.values())
    printed = check(path, "--quality", "12")
    assert "why 12 left 0/6, right 0/6 unknown" in printed
    assert "With a sign (their evidence for the answer is drawn): heat (" in printed
    assert "Unknown, which is not clean: whether the form of an explanation tells" in printed


@pytest.mark.long(stays="test_study_check_prints_it")
@pytest.mark.django_db
def test_it_says_whether_placebos_are_told_by_their_looks(
    tmp_path: Path, store_folder: Path, check: Check
) -> None:
    """Salt is told from a map that is even within a quarter; maps of other items are the very same maps, so
    that nothing can be learnt; of a method that the study does not show nothing is known."""
    path = study_with(
        tmp_path,
        gradient='{ name = "gradient_x_input" }',
        salt='{ name = "random", of = "gradient_x_input" }',
        lent='{ name = "other_item", of = "gradient_x_input" }',
        absent='{ name = "random", of = "smooth_grad" }',
    )
    measured, _ = looked_at(path)
    salt, lent = measured["salt"].told, measured["lent"].told
    assert salt is not None and salt.auc == 1 and salt.pictures == 12
    assert lent is not None and lent.auc <= 0.5
    assert measured["gradient"].told is None and measured["absent"].told is None
    assert quality_of(json.loads(json.dumps(quality_json(measured["salt"])))).told == salt
    printed = " ".join(check(path, "--quality", "12").split())
    assert "salt: its looks alone tell it from gradient_x_input in 1.00 [1.00, 1.00]" in printed


@pytest.mark.pure
@pytest.mark.parametrize(("alike", "is_told"), [(0, False), (10, False), (11, True), (20, True)])
def test_copies_whose_explanation_does_not_change_are_told_beyond_half(alike: int, is_told: bool) -> None:
    quality = replace(CLEAN, copies=(CopyQuality("light", 30, 2, 3), CopyQuality("strong", 20, 1, alike)))
    faults = faults_in([quality], seen_with_answer=True)
    assert [fault.kind for fault in faults] == ["copies"] * is_told
    assert is_told == (f"{alike} of 20 strong copies" in "".join(fault.what for fault in faults))
    assert "of 30 light copies 2 have an empty explanation, 3 that of their picture" in quality.copies_words
    assert CLEAN.copies_words == ""


@pytest.mark.django_db
def test_explanations_of_changed_copies_are_counted(tmp_path: Path, store_folder: Path) -> None:
    """The same counts before a study is opened, of it when opened, and by hand from the drawn fields."""
    tables = RATING.replace('asked = ["q1", "q2"]', 'asked = ["q1", "q5", "q6"]')
    path = write(tmp_path / "r", "ratings", "rating", tables, sources=TWO_MODELS, sittings=4)
    definition, store = load_study(path), current_store()
    gathered = with_copies(definition, gather(definition, path.parent, store, silent), store, silent)
    looked = look_at(definition, gathered, store, 8, silent)
    measured = {q.condition: q for q in stimulus_quality(definition, gathered, store, looked)}
    made = Counter((c.source[1], c.aim) for c in gathered.copies if c.item is not None)
    for name, model in (("saliency-coarse", "coarse"), ("saliency-fine", "fine")):
        rows = {copied.aim: copied for copied in measured[name].copies}
        assert {aim: copied.of for aim, copied in rows.items()} == {
            aim: made[model, aim] for aim in ("light", "strong")
        }
        for aim, copied in rows.items():
            assert (copied.empty, copied.alike) == counted_by_hand(looked, name, aim, definition)
    study = opened_study(path)
    measure(study, path.parent, silent, 8)
    assert {q.condition: q.copies for q in qualities_of(study)} == {n: q.copies for n, q in measured.items()}


def counted_by_hand(
    looked: QualitySample, name: str, aim: str, definition: StudyDefinition
) -> tuple[int, int]:
    """Empty and equal maps, from the pictures as they are drawn on white, pixel by pixel."""
    recipe, empty, alike = definition.render.spec(), 0, 0
    for (item, condition, role), spec in looked.copies.items():
        if (condition, role) == (name, aim):
            pair = looked.made[spec.attribution_key], looked.made[looked.shown[item, name].attribution_key]
            first, second = (drawn_field(made, recipe) for made in pair if isinstance(made, PixelAttribution))
            empty += bool(np.ptp(first) == 0)
            alike += bool(np.array_equal(np.rint(255 * first), np.rint(255 * second)))
    return empty, alike


@pytest.mark.pure
def test_explanations_are_compared_as_they_are_drawn() -> None:
    recipe = RenderSpec()
    ramp = np.linspace(0, 1, 64, dtype=np.float32).reshape(8, 8)
    maps = [PixelAttribution(ramp, False), PixelAttribution(ramp * 3, False), PixelAttribution(ramp.T, False)]
    assert is_drawn_alike(maps[0], maps[1], recipe) and not is_drawn_alike(maps[0], maps[2], recipe)
    bars = [
        ConceptAttribution(("tail", "ear"), np.array(values, np.float32))
        for values in ([1.0, 0.5], [2.0, 1.0], [0.5, 1.0], [1.0, -0.5])
    ]
    assert [is_drawn_alike(bars[0], other, recipe) for other in bars] == [True, True, False, False]
    words = [TokenAttribution(((0, 3), (4, 8)), np.array(v, np.float32)) for v in ([1, 0], [2, 0], [0, 1])]
    assert [is_drawn_alike(words[0], other, recipe) for other in words] == [True, True, False]
    said = [TextExplanation("A tail."), TextExplanation("A tail."), TextExplanation("An ear.")]
    assert [is_drawn_alike(said[0], other, recipe) for other in said] == [True, True, False]
    grey = np.full((4, 4, 3), 90, np.uint8)
    shown = [PictureExplanation(pictures, ("",) * len(pictures)) for pictures in ((grey,), (grey + 1,), ())]
    assert [is_drawn_alike(shown[0], other, recipe) for other in shown] == [True, False, False]
    assert not is_drawn_alike(maps[0], said[0], recipe)


@pytest.mark.pure
@pytest.mark.parametrize(("same", "is_told"), [(0, False), (6, False), (7, True), (120, True)])
def test_a_control_that_marks_the_same_as_its_method_is_told(same: int, is_told: bool) -> None:
    keys = tuple(f"item-{at}" for at in range(same))
    faults = faults_in([replace(CLEAN, of="saliency", same=keys)], seen_with_answer=True)
    assert [fault.kind for fault in faults] == ["same"] * is_told
    named = (
        f"{same} of 120 explanations mark the same as those of saliency (limit 0.05 of them; item-0, item-1, "
    )
    assert is_told == (named in "".join(fault.what for fault in faults))


@pytest.mark.django_db
def test_a_control_of_maps_that_moves_nothing_is_found(
    tmp_path: Path, store_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A planted control: it gives back the map of its method. The shipped one marks the same on no item."""
    control = '{ name = "random", of = "gradient_x_input" }'
    path = study_with(tmp_path, moved=control, gradient='{ name = "gradient_x_input" }')
    assert looked_at(path)[0]["moved"].same == ()

    def unmoved(self: Random, predictor: Any, subject: Subject) -> Steps:
        return (yield from self.method.explain(predictor, subject))

    monkeypatch.setattr(Random, "explain", unmoved)
    path = study_with(tmp_path / "planted", moved=control, gradient='{ name = "gradient_x_input" }')
    path.write_text(path.read_text().replace("seed = ", "seed = 1"))
    quality = looked_at(path)[0]["moved"]
    assert len(quality.same) == quality.items == 12
    assert quality_of(json.loads(json.dumps(quality_json(quality)))).same == quality.same
