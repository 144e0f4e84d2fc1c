"""Which items a study uses and as which answers they count: by hand, by counting, by what must not change."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.definition.study import StudyDefinition
from experiments.paradigms.base import BadDesign, Source, Survey, SurveyItem
from experiments.paradigms.material import (
    as_asked,
    choose_items,
    material_by_condition,
    material_of,
    pool_of,
)
from stimuli.types import Use
from tests.experiments.definitions import definition, several

pytestmark = pytest.mark.pure

LABELS = ("cat", "husky", "wolf")
ONLY: Source = ("", "")


def seen(key: str, truth: str, *logits: float, labels: tuple[str, ...] = LABELS) -> SurveyItem:
    """An item as a model with these logits sees it; the confidence says nothing here."""
    best = max(range(len(logits)), key=lambda place: logits[place])
    return SurveyItem(key, truth, f"group-{key}", labels[best], best, 0.5, logits)


def named(key: str, truth: str, predicted: str) -> SurveyItem:
    """An item of the two classes of the smallest study."""
    place = LABELS.index(predicted)
    return SurveyItem(key, truth, "", predicted, place, 0.5, tuple(float(i == place) for i in range(3)))


def survey(*items: SurveyItem, labels: tuple[str, ...] = LABELS) -> Survey:
    return Survey(labels, items)


def facts(items: list[SurveyItem]) -> list[tuple[str, str, str, int]]:
    return [(item.key, item.truth, item.predicted, item.index) for item in items]


FIVE = survey(
    seen("a", "husky", 0.0, 9.0, 1.0),
    seen("b", "wolf", 0.0, 2.0, 1.0),
    seen("c", "cat", 9.0, 0.0, 0.0),
    seen("d", "wolf", 9.0, 1.0, 3.0),
    seen("e", "husky", 9.0, -2.0, -3.0),
)
"""b is mistaken within the classes, c is of another class, the model puts d and e outside the classes."""


# As the question sees it


def test_it_drops_what_lies_outside_the_classes() -> None:
    study = definition({"outside": "drop"})
    assert facts(as_asked(study, FIVE)) == [("a", "husky", "husky", 1), ("b", "wolf", "husky", 1)]


def test_it_restricts_to_the_likeliest_of_the_classes() -> None:
    """Of d's logits 1 (husky) and 3 (wolf) wolf is more, of e's -2 and -3 the husky; c's truth is none."""
    study = definition({"outside": "restrict"})
    assert facts(as_asked(study, FIVE)) == [
        ("a", "husky", "husky", 1),
        ("b", "wolf", "husky", 1),
        ("d", "wolf", "wolf", 2),
        ("e", "husky", "husky", 1),
    ]


def test_it_restricts_by_the_model_s_order_of_labels_not_the_study_s() -> None:
    study = definition({"outside": "restrict", "classes": ["wolf", "husky"]})
    item = seen("a", "wolf", 9.0, 1.0, 3.0)
    assert facts(as_asked(study, survey(item))) == [("a", "wolf", "wolf", 2)]


def test_it_leaves_logits_group_and_confidence_as_they_were() -> None:
    study = definition({"outside": "restrict"})
    before = {item.key: item for item in FIVE.items}
    for item in as_asked(study, FIVE):
        was = before[item.key]
        assert (item.logits, item.group, item.confidence) == (was.logits, was.group, was.confidence)


def test_a_target_asks_about_every_item_and_drops_none() -> None:
    study = definition({"classes": None, "target": "wolf"})
    asked = as_asked(study, FIVE)
    assert [(i.key, i.truth, i.predicted) for i in asked] == [
        ("a", "other", "other"),
        ("b", "target", "other"),
        ("c", "other", "other"),
        ("d", "target", "other"),
        ("e", "other", "other"),
    ]
    # What is explained stays the model's own class.
    assert [i.index for i in asked] == [1, 1, 0, 0, 0]


def test_a_mistake_between_two_other_classes_is_right_about_the_target() -> None:
    study = definition({"classes": None, "target": "wolf"})
    (item,) = as_asked(study, survey(seen("m", "cat", 0.0, 5.0, 1.0)))
    assert (item.truth, item.predicted) == ("other", "other")


def test_neutral_names_stand_for_the_classes_in_the_study_s_order() -> None:
    study = definition({"label_names": "neutral", "classes": ["wolf", "husky"]})
    assert facts(as_asked(study, FIVE)) == [("a", "class_2", "class_2", 1), ("b", "class_1", "class_2", 1)]


def test_answers_stand_for_the_classes_that_they_list() -> None:
    answers = [
        {"value": "tame", "text": "Tame", "classes": ["husky", "cat"]},
        {"value": "wild", "text": "Wild", "classes": ["wolf"]},
        {"value": "unsure", "text": "Unsure"},
    ]
    study = definition({"classes": None}, answers=answers)
    assert [(i.key, i.truth, i.predicted) for i in as_asked(study, FIVE)] == [
        ("a", "tame", "tame"),
        ("b", "wild", "tame"),
        ("c", "tame", "tame"),
        ("d", "wild", "tame"),
        ("e", "tame", "tame"),
    ]


def test_it_uses_every_class_of_the_model_if_the_study_names_none() -> None:
    study = definition({"classes": None})
    assert facts(as_asked(study, FIVE)) == [(i.key, i.truth, i.predicted, i.index) for i in FIVE.items]


def test_an_item_whose_truth_no_model_knows_is_dropped() -> None:
    study = definition({"classes": None})
    assert as_asked(study, survey(named("a", "zebra", "cat"))) == []


# Choosing

CELLS = [(truth, predicted) for truth in ("husky", "wolf") for predicted in ("husky", "wolf")]


def crowd(counts: tuple[int, ...]) -> list[SurveyItem]:
    """Items by the number in each cell of truth x prediction."""
    cells = zip(CELLS, counts, strict=True)
    return [named(f"{t}-{p}-{n:02d}", t, p) for (t, p), count in cells for n in range(count)]


def per_cell(items: list[SurveyItem]) -> Counter[tuple[str, str]]:
    return Counter((item.truth, item.predicted) for item in items)


@given(st.tuples(*[st.integers(0, 25)] * 4), st.integers(4, 60))
def test_cells_are_as_equal_as_their_sizes_allow(counts: tuple[int, int, int, int], wanted: int) -> None:
    chosen = choose_items(definition({"items": wanted}), crowd(counts))
    assert len(chosen) == min(wanted, sum(counts))
    assert len({item.key for item in chosen}) == len(chosen)
    shares = per_cell(chosen)
    most = max((shares[cell] for cell in CELLS), default=0)
    for cell, size in zip(CELLS, counts, strict=True):
        # A cell falls behind the fullest by more than one item only if it has given all it has.
        assert shares[cell] == size or shares[cell] >= most - 1


@pytest.mark.parametrize(
    ("counts", "wanted", "expected"),
    [
        ((10, 10, 10, 10), 8, (2, 2, 2, 2)),
        ((10, 1, 10, 10), 10, (3, 1, 3, 3)),
        ((10, 0, 0, 10), 8, (4, 0, 0, 4)),
        ((2, 2, 2, 2), 8, (2, 2, 2, 2)),
        ((2, 0, 1, 9), 40, (2, 0, 1, 9)),
    ],
)
def test_small_cells_give_all_they_have(
    counts: tuple[int, ...], wanted: int, expected: tuple[int, ...]
) -> None:
    shares = per_cell(choose_items(definition({"items": wanted}), crowd(counts)))
    assert tuple(shares[cell] for cell in CELLS) == expected


@given(st.randoms(use_true_random=False))
def test_the_order_of_the_survey_does_not_matter(random: Any) -> None:
    items = crowd((9, 4, 4, 9))
    study = definition({"items": 10})
    first = choose_items(study, items)
    random.shuffle(items)
    assert choose_items(study, items) == first == sorted(first, key=lambda item: item.key)


def test_another_seed_draws_other_items_of_the_same_cells() -> None:
    items = crowd((30, 30, 30, 30))
    first, second = (choose_items(definition({"items": 16}, seed=seed), items) for seed in (1, 2))
    assert {i.key for i in first} != {i.key for i in second}
    assert per_cell(first) == per_cell(second)


def test_every_item_has_its_chance() -> None:
    """Over many seeds 4 of 8 items per cell: each of them between a third and two thirds of the draws."""
    items = crowd((8, 8, 8, 8))
    drawn = Counter(
        item.key for seed in range(150) for item in choose_items(definition({"items": 16}, seed=seed), items)
    )
    assert len(drawn) == 32 and all(50 < times < 100 for times in drawn.values())


# One dataset, one model


def test_it_makes_the_planner_s_view_of_one_model() -> None:
    study = definition(checks={"instructed": 4, "repeat": 1})
    material = material_of(study, {ONLY: FIVE})
    assert [(i.key, i.truth, i.predicted, i.correct) for i in material.pool.items] == [
        ("a", "husky", "husky", True),
        ("b", "wolf", "husky", False),
    ]
    assert material.pool.items[0].group == "group-a"
    assert [(c.name, c.role, c.slots) for c in material.pool.conditions] == [
        ("plain", "baseline", 1),
        ("marked", "method", 1),
    ]
    assert (material.pool.check_instructed, material.pool.check_repeat) == (4, 1)
    assert material.pool.explanations == () and material.pool.predictions == {}
    assert [item.key for item in material.chosen[ONLY]] == ["a", "b"]


def test_what_is_rendered_is_what_is_planned() -> None:
    material = material_of(definition({"items": 6}), {ONLY: survey(*crowd((5, 5, 5, 5)))})
    assert [i.key for i in material.pool.items] == [i.key for i in material.chosen[ONLY]]
    assert len(material.pool.items) == 6


@pytest.mark.parametrize("count", [0, 2, 4])
def test_it_refuses_other_than_one_model_with_its_name_and_the_count(count: int) -> None:
    surveys = {("", f"model-{n}"): FIVE for n in range(count)}
    with pytest.raises(BadDesign, match=f"meta_predictor asks about one model.*has {count} pairs"):
        material_of(definition(), surveys)


@pytest.mark.parametrize(
    "stimuli", [{"classes": ["wolf", "zebra"]}, {"classes": None, "target": "zebra"}], ids=["class", "target"]
)
def test_it_refuses_a_class_that_the_model_lacks(stimuli: dict[str, Any]) -> None:
    with pytest.raises(BadDesign, match="no class 'zebra'.*cat, husky, wolf"):
        material_of(definition(stimuli), {ONLY: FIVE})


# Several datasets and models

ROWS = [
    ("plain", "field", "coarse", False),
    ("field-coarse", "field", "coarse", True),
    ("field-fine", "field", "fine", True),
    ("town-coarse", "town", "coarse", True),
    ("town-fine", "town", "fine", True),
]


def table(name: str, dataset: str, predictor: str, is_explained: bool) -> dict[str, Any]:
    row: dict[str, Any] = {"name": name, "role": "method", "dataset": dataset, "predictor": predictor}
    return {**row, "explainer": {"name": "saliency"}} if is_explained else row


def two_by_two(**stimuli: Any) -> StudyDefinition:
    sources = several(["field", "town"], ["coarse", "fine"])
    return definition({**sources, **stimuli}, conditions=[table(*row) for row in ROWS])


def looked() -> dict[Source, Survey]:
    """Two items per dataset; the fine model disagrees about the second item of the field."""
    return {
        ("field", "coarse"): survey(named("field/x", "husky", "husky"), named("field/y", "wolf", "husky")),
        ("field", "fine"): survey(named("field/x", "husky", "husky"), named("field/y", "wolf", "wolf")),
        ("town", "coarse"): survey(named("town/x", "wolf", "wolf"), named("town/z", "husky", "wolf")),
        ("town", "fine"): survey(named("town/x", "wolf", "husky"), named("town/z", "husky", "husky")),
    }


def test_every_condition_has_the_items_of_its_dataset() -> None:
    pool = material_by_condition(two_by_two(), looked()).pool
    assert [item.key for item in pool.items] == ["field/x", "field/y", "town/x", "town/z"]
    assert sorted(pool.predictions) == sorted(
        (f"{dataset}/{letter}", name)
        for name, dataset, _, _ in ROWS
        for letter in ("xy" if dataset == "field" else "xz")
    )


def test_every_condition_hears_its_own_model() -> None:
    pool = material_by_condition(two_by_two(), looked()).pool
    item = {item.key: item for item in pool.items}
    said = {name: pool.predicted(item["field/y"], name) for name in ("plain", "field-coarse", "field-fine")}
    assert said == {"plain": "husky", "field-coarse": "husky", "field-fine": "wolf"}
    town = {name: pool.predicted(item["town/z"], name) for name in ("town-coarse", "town-fine")}
    assert town == {"town-coarse": "wolf", "town-fine": "husky"}
    # The item's own line is what its dataset's first model says.
    assert (item["field/y"].predicted, item["town/x"].predicted) == ("husky", "wolf")


def test_only_explained_conditions_have_explanations() -> None:
    pool = material_by_condition(two_by_two(), looked()).pool
    by_condition = Counter(name for _, name in pool.explanations)
    assert by_condition == {name: 2 for name, _, _, is_explained in ROWS if is_explained}
    assert set(pool.explanations) <= set(pool.predictions)


def test_the_models_of_a_dataset_are_asked_about_the_same_items() -> None:
    many = [named(f"field/{i.key}", i.truth, i.predicted) for i in crowd((6, 6, 6, 6))]
    turned = [named(i.key, i.truth, "husky" if i.predicted == "wolf" else "wolf") for i in many]
    surveys = {**looked(), ("field", "coarse"): survey(*many), ("field", "fine"): survey(*turned)}
    chosen = material_by_condition(two_by_two(items=8), surveys).chosen
    keys = {source: {item.key for item in items} for source, items in chosen.items()}
    assert keys["field", "coarse"] == keys["field", "fine"] and len(keys["field", "fine"]) == 8
    # Chosen by what the first model says: its four cells are equal.
    assert set(per_cell(list(chosen["field", "coarse"])).values()) == {2}


def test_an_item_that_a_further_model_drops_stays_with_the_first() -> None:
    surveys = looked()
    surveys["field", "fine"] = survey(named("field/x", "husky", "husky"), named("field/y", "wolf", "cat"))
    material = material_by_condition(two_by_two(), surveys)
    assert [item.key for item in material.chosen["field", "coarse"]] == ["field/x", "field/y"]
    assert [item.key for item in material.chosen["field", "fine"]] == ["field/x"]
    assert ("field/y", "field-fine") not in {*material.pool.explanations, *material.pool.predictions}
    assert ("field/y", "field-coarse") in material.pool.explanations


def test_models_without_a_condition_are_not_looked_at() -> None:
    study = definition(
        several(["field", "town"], ["coarse", "fine"]), conditions=[table("only", "town", "fine", True)]
    )
    material = material_by_condition(study, {("town", "fine"): looked()["town", "fine"]})
    assert list(material.chosen) == [("town", "fine")]
    assert [item.key for item in material.pool.items] == ["town/x", "town/z"]


@pytest.mark.parametrize("outside", ["drop", "restrict"])
def test_a_class_that_no_model_has_is_refused_with_several_models_too(outside: str) -> None:
    study = two_by_two(classes=["wolf", "zebra"], outside=outside)
    with pytest.raises(BadDesign, match="no class 'zebra'.*cat, husky, wolf"):
        material_by_condition(study, looked())


def test_a_class_that_one_of_the_models_has_is_enough() -> None:
    """A model is restricted to the classes that it knows: here to the only one, the owl."""
    birds = ("owl", "raven")
    surveys = looked()
    for model in ("coarse", "fine"):
        item = seen("town/o", "owl", 1.0, 9.0, labels=birds)
        surveys["town", model] = survey(item, labels=birds)
    study = two_by_two(classes=["husky", "wolf", "owl"], outside="restrict")
    chosen = material_by_condition(study, surveys).chosen
    assert facts(list(chosen["town", "fine"])) == [("town/o", "owl", "owl", 0)]
    assert [item.key for item in chosen["field", "fine"]] == ["field/x", "field/y"]


def test_the_pool_of_no_items_still_knows_the_study() -> None:
    pool = pool_of(definition({"balance": "prediction"}), ())
    assert pool.items == () and pool.balance == "prediction"
    assert pool.choices == (("husky", "Husky"), ("wolf", "Wolf"))


# What items are for


def uses(*drawn: str) -> Survey:
    """Items that differ in their use alone, but for blank ones, which have no truth."""
    items = (
        replace(seen(f"{use}{place}", "" if use == "blank" else "husky", 0.0, 9.0, 1.0), use=use)  # type: ignore[arg-type]
        for place, use in enumerate(drawn)
    )
    return survey(*items)


USES = ("task", "known", "blank", "tuning", "task", "task", "task", "task")


def test_other_protocols_meet_tasks_alone() -> None:
    study = definition({"items": 4})
    made = material_of(study, {ONLY: uses(*USES)})
    assert [item.use for item in made.chosen[ONLY]] == ["task"] * 4 == [i.use for i in made.pool.items]
    wide = definition({"items": 40})
    assert {item.use for item in material_of(wide, {ONLY: uses(*USES)}).pool.items} == {"task"}
    assert {item.use for item in material_by_condition(wide, {ONLY: uses(*USES)}).pool.items} == {"task"}


def test_what_is_no_task_passes_whole_where_it_is_asked_for_and_draws_no_task_away() -> None:
    study, every = definition({"items": 4}), uses(*USES)
    alone = material_of(study, {ONLY: every}).chosen[ONLY]
    made = material_of(study, {ONLY: every}, ("known", "blank", "tuning")).chosen[ONLY]
    assert [item for item in made if item.use == "task"] == list(alone)
    assert sorted(item.use for item in made if item.use != "task") == ["blank", "known", "tuning"]
    beside: tuple[Use, ...] = ("known",)
    asked = material_of(study, {ONLY: every}, beside).chosen[ONLY]
    assert {item.use for item in asked} == {"task", "known"}


@pytest.mark.parametrize("question", [{}, {"outside": "restrict"}, {"classes": None, "target": "husky"}])
def test_a_blank_item_has_no_truth_whatever_is_asked(question: dict[str, Any]) -> None:
    blank = replace(seen("b", "", 9.0, 0.0, 0.0), use="blank")
    assert [(i.truth, i.use) for i in as_asked(definition(question), survey(blank))] == [("", "blank")]


def test_a_flagged_item_is_left_out_whatever_it_is_for() -> None:
    items = [replace(item, flagged=item.use == "known") for item in uses(*USES).items]
    made = material_of(definition({"items": 40}), {ONLY: survey(*items)}, ("known", "blank"))
    assert {item.use for item in made.pool.items} == {"task", "blank"}
