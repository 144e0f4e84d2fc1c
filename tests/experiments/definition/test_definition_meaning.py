"""What a definition means: what its digest covers, how long a place is held, which answer a class has."""

from typing import Any

import pytest
from pydantic import ValidationError

from experiments.definition.study import StudyDefinition
from tests.experiments.definitions import SMALLEST, answers, definition

pytestmark = pytest.mark.pure

METHOD = {"name": "marked", "role": "method", "explainer": {"name": "saliency"}}
PLAIN = {"name": "plain", "role": "baseline"}


LATER: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("render", {"concept_form": "bars"}, {"concept_form": "names"}),
    ("render", {"concept_top": 6}, {"concept_top": 7}),
    ("presentation", {"exposure_ms": None, "phases": "test"}, {"exposure_ms": 100}),
    ("presentation", {"fullscreen": False}, {"fullscreen": True}),
    ("render", {"concept_signed": True}, {"concept_signed": False}),
    ("render", {"concept_letters": None}, {"concept_letters": 0.05}),
    (
        "stimuli",
        {**SMALLEST["stimuli"], "precision": "float32"},
        {**SMALLEST["stimuli"], "precision": "tf32"},
    ),
]


@pytest.mark.parametrize(("table", "default", "other"), LATER)
def test_a_key_that_joined_later_changes_the_digest_only_if_it_says_something(
    table: str, default: dict[str, Any], other: dict[str, Any]
) -> None:
    before = definition().digest
    if table == "stimuli":
        assert definition(default).digest == before != definition(other).digest
    else:
        assert definition(**{table: default}).digest == before != definition(**{table: other}).digest


def test_what_the_digest_covers_has_the_keys_of_the_first_studies() -> None:
    """Written down from the first release: what a digest was made of then."""
    met = definition(render={"absolute": True}).as_met()
    assert set(met["stimuli"]) == {
        "dataset", "predictor", "classes", "target", "outside", "label_names", "balance", "items",
    }  # fmt: skip
    assert set(met["render"]) == {"colormap", "alpha", "clip_low", "clip_high", "absolute", "tile_px"}
    assert [set(row) for row in met["conditions"]] == [{"name", "role", "slots", "explainer", "label"}] * 2
    assert not {"answers", "recruitment", "package", "platforms", "metrics", "presentation"} & set(met)


@pytest.mark.parametrize(
    "changes",
    [
        {"recruitment": {"description": "Look at animals.", "keywords": ["animals"]}},
        {"package": {"licence": "CC-BY-4.0", "authors": ["Ada Lovelace"], "doi": "10.5281/zenodo.1"}},
        {"platforms": {"prolific": {"batch": "b"}}},
        {"metrics": [{"name": "insertion"}]},
    ],
)
def test_what_no_participant_meets_leaves_the_digest_alone(changes: dict[str, Any]) -> None:
    assert definition(**changes).digest == definition().digest


@pytest.mark.parametrize(
    "changes",
    [
        {"texts": {"consent": "c ", "instructions": "i", "debrief": "d"}},
        {"language": "de"},
        {"answers": answers("a", "b")},
        {"checks": {"repeat": 4}},
        {"device": {"min_width_px": 701}},
        {"reward": {"amount_cents": 101, "expected_minutes": 5}},
        {"conditions": [PLAIN, {**METHOD, "slots": 2}]},
        {"policy": {"screened_share": 0.5}},
    ],
)
def test_what_a_participant_meets_changes_the_digest(changes: dict[str, Any]) -> None:
    assert definition(**changes).digest != definition().digest


def test_a_stored_definition_is_read_back_with_its_digest() -> None:
    study = definition(answers=answers("a", "b", a=("husky",)), screening={"total_minutes": [1, 60]})
    stored = study.model_dump(mode="json")
    assert StudyDefinition.model_validate(stored).digest == study.digest


def test_a_definition_does_not_change() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        definition().seed = 6


# How long a place is held


@pytest.mark.parametrize(
    ("tables", "minutes"),
    [
        ({}, 2 * 4 * 5),
        ({"screening": {"total_minutes": [2, 30]}}, 2 * 30),
        ({"screening": {"total_minutes": {"limit": [2, 30]}}, "policy": {"lease_minutes": 11}}, 11),
    ],
)
def test_a_place_is_held_for_twice_the_longest_session(tables: dict[str, Any], minutes: float) -> None:
    assert definition(**tables).lease_minutes == minutes


# Which answer a class has


@pytest.mark.parametrize(
    ("stimuli", "answers_given", "label", "value"),
    [
        ({}, (), "wolf", "wolf"),
        ({"label_names": "neutral"}, (), "wolf", "class_2"),
        ({"classes": None}, ("wild", "tame"), "wolf", "wild"),
        ({"classes": None}, ("wild", "tame"), "zebra", "zebra"),
        ({}, (), "zebra", "zebra"),
        ({"classes": None}, (), "wolf", "wolf"),
    ],
)
def test_a_class_has_an_answer_or_stands_for_itself(
    stimuli: dict[str, Any], answers_given: tuple[str, ...], label: str, value: str
) -> None:
    study = definition(stimuli, answers=answers(*answers_given, wild=("wolf",), tame=("husky",)))
    assert study.value_of(label) == value


def test_drawn_names_follow_the_seed_and_not_the_order_of_the_classes() -> None:
    """Six lengths: the numbers are a permutation; over seeds each class has each number about as often."""
    lengths = [f"len_{n}" for n in range(6)]
    numbers = []
    for seed in range(300):
        study = definition({"classes": lengths, "label_names": "drawn"}, seed=seed)
        values = [study.value_of(name) for name in lengths]
        assert sorted(values) == [value for value, _ in study.choices]
        numbers.append([int(value.removeprefix("class_")) for value in values])
    # A mean of 300 numbers from 1 to 6 has a standard error of .1.
    assert all(abs(sum(column) / 300 - 3.5) < 0.5 for column in zip(*numbers, strict=True))


def test_buttons_say_the_classes_as_words() -> None:
    study = definition({"classes": ["red_fox", "wolf"]})
    assert study.choices == (("red_fox", "Red fox"), ("wolf", "Wolf"))
    neutral = definition({"classes": ["red_fox", "wolf"], "label_names": "neutral"})
    assert neutral.choices == (("class_1", "Class 1"), ("class_2", "Class 2"))
    target = definition({"classes": None, "target": "wolf"})
    assert target.choices == (("target", "Target"), ("other", "Other"))
