"""Drafts of several datasets and models: what each model predicts, what is to be rendered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.definition.study import StudyDefinition
from experiments.drafting.draft import build_draft, gather
from experiments.drafting.draft_rows import picture_keys
from experiments.drafting.stimulus_specs import specs_of
from experiments.errors import StudyError
from experiments.models import Condition, Item, Prediction, Rendering, Solution, Study
from experiments.opening.opening import stored_pool
from experiments.selectors import definition_of, predictions_of
from experiments.stages.solution_freeze import freeze, solutions_of
from experiments.study_files.load import load_study
from stimuli.models import Stimulus
from stimuli.store import open_store
from tests.experiments.protocols import RATING, REVIEW, TWO_MODELS, USES, solved, write
from tests.experiments.toys import write_toy
from tests.toy.tables import registered
from tests.world import silent, write_study

pytestmark = pytest.mark.django_db
ITEMS = 8


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Two models on one dataset, one method on each."""
    return write(tmp_path / "r", "ratings", "rating", RATING, sources=TWO_MODELS)


def drafted(path: Path) -> Study:
    """A draft of which nothing is rendered."""
    return build_draft(load_study(path), path.parent, silent)


# Two models


def test_every_item_is_stored_once_and_every_further_model_s_view_of_it(path: Path) -> None:
    study = drafted(path)
    assert study.items.count() == ITEMS
    rows = Prediction.objects.filter(item__study=study)
    assert Counter(rows.values_list("predictor", flat=True)) == {"fine": ITEMS}
    assert set(rows.values_list("item", flat=True)) == set(study.items.values_list("pk", flat=True))


def test_each_view_is_whole_in_itself(path: Path) -> None:
    """The prediction is the largest logit, and the confidence its share after a softmax is at least even."""
    study = drafted(path)
    labels = study.predictor["labels"]
    views: list[Item | Prediction] = [
        *Item.objects.filter(study=study),
        *Prediction.objects.filter(item__study=study),
    ]
    for view in views:
        assert len(view.logits) == len(labels) == 2
        assert view.predicted == labels[view.logits.index(max(view.logits))]
        assert 1 / 2 <= view.confidence <= 1
    by_key = {item.key: item.predicted for item in study.items.all()}
    for key, predicted in by_key.items():
        # The pictures were drawn for the quadrant model: their names say what it answers.
        assert predicted == key.split("/")[-1].split("-")[0]


def test_what_further_models_say_is_found_by_item_and_model(path: Path) -> None:
    study = drafted(path)
    rows = Prediction.objects.filter(item__study=study)
    assert predictions_of(study) == {(row.item_id, row.predictor): row.predicted for row in rows}


def test_every_condition_renders_every_item_with_its_own_model(path: Path) -> None:
    study = drafted(path)
    renderings = Rendering.objects.filter(item__study=study).select_related("condition", "stimulus", "item")
    assert renderings.count() == ITEMS * 2
    by_condition: dict[str, dict[str, Stimulus]] = {}
    for row in renderings:
        by_condition.setdefault(row.condition.name, {})[row.item.key] = row.stimulus
    coarse, fine = by_condition["saliency-coarse"], by_condition["saliency-fine"]
    assert set(coarse) == set(fine) and len(coarse) == ITEMS
    models = {
        name: {stimulus.spec["predictor_key"] for stimulus in part.values()}
        for name, part in by_condition.items()
    }
    several = study.predictor["several"]
    assert models == {f"saliency-{name}": {several[name]["key"]} for name in ("coarse", "fine")}
    assert not {s.key for s in coarse.values()} & {s.key for s in fine.values()}


def test_the_page_of_a_study_tells_every_model_by_name(path: Path) -> None:
    study = drafted(path)
    several = study.predictor["several"]
    assert set(several) == {"coarse", "fine"}
    first = {key: value for key, value in study.predictor.items() if key != "several"}
    assert first == several["coarse"] and several["coarse"]["key"] != several["fine"]["key"]


def test_one_model_is_told_without_a_list(tmp_path: Path) -> None:
    study = drafted(write_study(tmp_path / "small"))
    assert "several" not in study.predictor and study.predictor["labels"] == ["left", "right"]
    assert not Prediction.objects.exists()
    assert set(Condition.objects.values_list("dataset", "predictor")) == {("", "")}


def test_the_stimuli_are_asked_for_condition_by_condition_and_once(path: Path) -> None:
    study = drafted(path)
    keys = picture_keys(study)
    assert len(keys) == len(set(keys)) == ITEMS * 2
    assert set(keys) == set(Stimulus.objects.values_list("key", flat=True))
    wanted = Rendering.objects.filter(item__study=study, condition__ordinal=0)
    assert set(keys[:ITEMS]) == set(wanted.values_list("stimulus__key", flat=True))


def test_a_model_that_no_condition_uses_is_not_opened(path: Path, store_folder: Path) -> None:
    text = path.read_text().replace(
        '[[conditions]]\nname = "saliency-fine"', '[[conditions]]\nname = "second"'
    )
    path.write_text(text.replace('predictor = "fine"', 'predictor = "coarse"'))
    gathered = gather(load_study(path), path.parent, open_store(str(store_folder)), silent)
    assert list(gathered.opened) == [("", "coarse")] == list(gathered.surveys)


def test_what_is_planned_dry_is_what_is_stored(path: Path, store_folder: Path) -> None:
    """The pool of the paradigm's material and the pool from the rows give the planner the same."""
    definition = load_study(path)
    material = gather(definition, path.parent, open_store(str(store_folder)), silent).material.pool
    stored = stored_pool(drafted(path), definition)
    assert (stored.items, stored.conditions, stored.choices) == (
        material.items,
        material.conditions,
        material.choices,
    )
    assert stored.explanations == material.explanations
    for item in stored.items:
        for condition in stored.conditions:
            assert stored.predicted(item, condition.name) == material.predicted(item, condition.name)


def test_every_spec_explains_the_class_that_its_own_model_predicts(path: Path, store_folder: Path) -> None:
    definition = load_study(path)
    gathered = gather(definition, path.parent, open_store(str(store_folder)), silent)
    by_source = {
        source: {item.key: item.index for item in items} for source, items in gathered.material.chosen.items()
    }
    specs = specs_of(definition, gathered)
    assert len(specs) == ITEMS * 2
    for (key, name), spec in specs.items():
        source = next(c.source for c in definition.conditions if c.name == name)
        assert spec.target == by_source[source][key]


# Two datasets


@pytest.fixture
def toy(tmp_path: Path) -> Iterator[tuple[Study, StudyDefinition]]:
    with registered():
        path = write_toy(tmp_path / "toy")
        study = drafted(path)
        yield study, definition_of(study)


def test_every_condition_renders_the_items_of_its_own_dataset(toy: tuple[Study, StudyDefinition]) -> None:
    study, definition = toy
    rows = Rendering.objects.filter(item__study=study).values_list("condition__name", "item__key")
    prefixes = Counter((name, key.split("/")[0]) for name, key in rows)
    assert prefixes == {("marked", "texts"): 12, ("shuffled", "texts"): 12, ("photo", "photos"): 12}
    assert not Prediction.objects.filter(item__study=study).exists(), "each dataset has one model"


def test_several_pairs_are_named_by_dataset_and_model(toy: tuple[Study, StudyDefinition]) -> None:
    study, _ = toy
    several = study.predictor["several"]
    assert set(several) == {"texts/reader", "photos/eye"}
    assert several["texts/reader"]["labels"] != several["photos/eye"]["labels"]


def test_a_protocol_without_practice_has_no_practice_pictures(
    toy: tuple[Study, StudyDefinition], tmp_path: Path
) -> None:
    study, _ = toy
    assert study.practice == []
    small = drafted(write_study(tmp_path / "small"))
    assert {row["example"] for row in small.practice} == {True, False}
    assert all(row["answer"] in ("A", "B") and row["width_px"] > 0 for row in small.practice)


# What a protocol can show


def test_pictures_are_refused_by_a_protocol_of_texts(tmp_path: Path) -> None:
    tables = RATING.replace('predictor = "coarse"\n', "").replace('predictor = "fine"\n', "")
    tables = tables[tables.index("[checks]") :]
    path = write(tmp_path / "t", "turing", "reverse_turing", tables)
    with pytest.raises(StudyError, match="show texts, but the predictor 'toy' takes pictures"):
        drafted(path)
    assert not Study.objects.exists() and not Stimulus.objects.exists()


def test_a_method_that_cannot_explain_the_model_is_refused_with_its_condition(path: Path) -> None:
    path.write_text(path.read_text().replace('{ name = "saliency" }', '{ name = "random_text" }', 1))
    with pytest.raises(StudyError, match="^stimuli: condition 'saliency-coarse': "):
        drafted(path)
    assert not Study.objects.exists()


# Building again


def test_building_again_changes_nothing(path: Path) -> None:
    first = drafted(path)
    stimuli = list(Stimulus.objects.order_by("key").values())
    rows = list(Rendering.objects.order_by("pk").values())
    second = drafted(path)
    assert (second.pk, second.created_at) == (first.pk, first.created_at)
    assert list(Stimulus.objects.order_by("key").values()) == stimuli
    assert list(Rendering.objects.order_by("pk").values()) == rows


def test_a_changed_model_is_a_new_draft_and_the_old_stimuli_stay(path: Path) -> None:
    first = drafted(path)
    keys = set(picture_keys(first))
    path.write_text(path.read_text().replace("input_px = 16", "input_px = 8"))
    second = drafted(path)
    assert second.digest != first.digest and Study.objects.count() == 1
    shared = keys & set(picture_keys(second))
    assert len(shared) == ITEMS, "what the other model shows is the same"
    assert keys <= set(Stimulus.objects.values_list("key", flat=True))


def test_a_study_without_its_items_is_built_anew(path: Path) -> None:
    first = drafted(path)
    first.items.all().delete()
    second = drafted(path)
    assert second.pk != first.pk and second.items.count() == ITEMS


# Stages


@pytest.fixture
def tasks(tmp_path: Path) -> Study:
    """The solve stage, answered, closed and frozen."""
    study = solved(tmp_path / "s")
    freeze(study)
    return study


def reviewing(folder: Path) -> Path:
    return write(folder, "judged", "blind_review", REVIEW, uses=USES)


def test_other_solutions_make_another_draft(tasks: Study, tmp_path: Path) -> None:
    path = reviewing(tmp_path / "v")
    first = drafted(path)
    assert drafted(path).pk == first.pk
    Study.objects.filter(pk=tasks.pk).update(frozen_digest="f" * 64)
    with pytest.raises(StudyError, match="'judged' was drafted from other solutions than 'tasks' holds now"):
        stored_pool(first, definition_of(first))
    second = drafted(path)
    assert second.pk != first.pk and second.digest == first.digest
    assert (first.solutions_digest, second.solutions_digest) == (tasks.frozen_digest, "f" * 64)


def test_the_planner_gets_every_solution_without_its_author(tasks: Study, tmp_path: Path) -> None:
    study = drafted(reviewing(tmp_path / "v"))
    solutions = solutions_of(study, definition_of(study))
    stored = Solution.objects.filter(study=tasks)
    assert len(solutions) == stored.count() > 2 * 16
    assert set(map(tuple, solutions)) == {(s.key, s.item.key, s.source, s.choice, s.use) for s in stored}
    assert stored_pool(study, definition_of(study)).solutions == solutions
    assert [row[0] for row in solutions] == sorted(row[0] for row in solutions)


def test_a_stage_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="solutions_from names 'tasks', and there is no such study here"):
        drafted(reviewing(tmp_path / "v"))


def test_a_study_that_starts_from_nothing_has_no_solutions(path: Path) -> None:
    study = drafted(path)
    assert study.solutions_digest == "" and solutions_of(study, definition_of(study)) == ()


def test_a_control_borrows_the_maps_of_the_study_s_own_items(path: Path, store_folder: Path) -> None:
    """Every item of the model lends its map once, to another item that is predicted alike; what the dry plan
    says is what is built."""
    text = path.read_text()
    control = 'explainer = { name = "other_item", of = "saliency" }'
    path.write_text(text.replace('explainer = { name = "saliency" }', control))
    assert path.read_text() != text
    definition = load_study(path)
    gathered = gather(definition, path.parent, open_store(str(store_folder)), silent)
    specs = specs_of(definition, gathered)
    source, name = next((c.source, c.name) for c in definition.conditions if "other_item" in str(c.explainer))
    labels = {view.image_key: view.index for view in gathered.views[source].values()}
    lent = []
    for (_, condition), spec in specs.items():
        if condition == name and spec.explainer is not None:
            donor = str(spec.explainer.params["item"])
            assert donor != spec.image_key and labels[donor] == spec.explainer.params["target"] == spec.target
            lent.append(donor)
    assert len(lent) == len({*lent}) == ITEMS
    assert specs_of(definition, gathered) == specs
