"""What no table of study.toml knows alone: answers, roles, sources, checks, bonus."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from experiments.definition.study import ANSWERS_MAX
from experiments.errors import InvalidStudy, Problem
from experiments.paradigms import PARADIGMS, get_paradigm
from experiments.study_files.load import load_study
from tests.experiments.definitions import SMALLEST, answers, definition, several

pytestmark = pytest.mark.pure

ROW = 'slug = "smallest"\n'
METHOD = {"name": "marked", "role": "method", "explainer": {"name": "saliency"}}
CONTROL = {"name": "other", "role": "control", "explainer": {"name": "random"}}
PLAIN = {"name": "plain", "role": "baseline"}
SOURCE = {"name": "people", "role": "source"}
FROZEN = {"name": "marked", "role": "method"}
UNADVISED = {"name": "advice", "role": "advice"}
ADVISED: Mapping[str, Any] = {
    "conditions": [PLAIN, UNADVISED, METHOD],
    "design": {"advice_accuracy": 0.75},
    "stimuli": {**SMALLEST["stimuli"], "balance": "none"},
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """An empty study file with its texts beside it: what it says is given as changes."""
    for name in ("consent", "instructions", "debrief"):
        (tmp_path / f"{name}.md").write_text(f"# {name}\n")
    (tmp_path / "study.toml").write_text(ROW)
    return tmp_path / "study.toml"


def tables(**changes: Any) -> dict[str, Any]:
    """The tables of the smallest study with these replaced."""
    texts = {name: f"{name}.md" for name in ("consent", "instructions", "debrief")}
    return {**SMALLEST, "texts": texts, **changes}


def stimuli(**changes: Any) -> dict[str, Any]:
    return {key: value for key, value in {**SMALLEST["stimuli"], **changes}.items() if value is not None}


def problems(path: Path, **changes: Any) -> list[Problem]:
    """Every mistake of the smallest study with these tables; none if it is in order."""
    try:
        load_study(path, changes=tables(**changes))
    except InvalidStudy as error:
        return list(error.problems)
    return []


def sentences(path: Path, **changes: Any) -> dict[str, str]:
    """Key -> what is wrong there; every key once."""
    faults = problems(path, **changes)
    by_key = {problem.key: f"{problem.value} {problem.limit}" for problem in faults}
    assert len(by_key) == len(faults), faults
    return by_key


def test_the_smallest_study_is_in_order(path: Path) -> None:
    assert problems(path) == []
    study = load_study(path, changes=tables())
    assert study.texts == {n: f"# {n}\n" for n in ("consent", "instructions", "debrief")}
    assert study.choices == (("husky", "Husky"), ("wolf", "Wolf"))


# Answers


def turing(path: Path, count: int) -> dict[str, str]:
    """The problems of a paradigm that takes 2 to ANSWERS_MAX answers, with `count` of them."""
    given = answers(*(f"a{n:02d}" for n in range(count)))
    return sentences(
        path, paradigm="reverse_turing", conditions=[METHOD], stimuli=stimuli(classes=None), answers=given
    )


@pytest.mark.parametrize("count", [2, 3, 19, 20])
def test_it_takes_as_many_answers_as_there_are_keys(path: Path, count: int) -> None:
    assert turing(path, count) == {}


def test_it_refuses_one_answer_by_its_count(path: Path) -> None:
    assert turing(path, 1) == {"stimuli": "1 answers reverse_turing asks people to choose among 2 to 20"}


def test_it_refuses_more_answers_than_keys(path: Path) -> None:
    assert "at most 20" in turing(path, ANSWERS_MAX + 1)["answers"]


@pytest.mark.parametrize("count", [1, 3])
def test_it_wants_two_answers_of_a_paradigm_of_two(path: Path, count: int) -> None:
    faults = sentences(path, answers=answers(*"abc"[:count]), stimuli=stimuli(classes=None))
    assert faults == {"stimuli": f"{count} answers meta_predictor asks people to choose among 2"}


def test_a_rating_needs_no_answers(path: Path) -> None:
    assert (
        problems(path, paradigm="rating", conditions=[METHOD], stimuli=stimuli(classes=None), design={}) == []
    )


def test_it_names_a_value_that_stands_for_two_answers(path: Path) -> None:
    faults = sentences(path, answers=answers("tame", "tame"), stimuli=stimuli(classes=None))
    assert faults == {"answers.value": "'tame' stands for two answers"}


def test_it_names_every_class_of_two_answers(path: Path) -> None:
    given = answers("tame", "wild", tame=("husky", "cat"), wild=("wolf", "cat", "husky"))
    faults = problems(path, answers=given, stimuli=stimuli(classes=None))
    assert [(f.key, f.value) for f in faults] == [
        ("answers.classes", "'cat'"),
        ("answers.classes", "'husky'"),
    ]


def test_a_class_twice_within_one_answer_is_named_too(path: Path) -> None:
    given = answers("tame", "wild", tame=("husky", "husky"))
    assert set(sentences(path, answers=given, stimuli=stimuli(classes=None))) == {"answers.classes"}


def test_answers_to_a_target_are_its_two_values(path: Path) -> None:
    target = stimuli(classes=None, target="wolf")
    assert problems(path, answers=answers("target", "other"), stimuli=target) == []
    for given in (answers("a", "b"), answers("target", "other", target=("wolf",))):
        (fault,) = problems(path, answers=given, stimuli=target)
        assert fault.key == "answers" and 'the values "target" and "other"' in fault.limit
    assert set(sentences(path, answers=answers("target"), stimuli=target)) == {"answers", "stimuli"}


def test_classes_do_not_go_with_a_target(path: Path) -> None:
    faults = sentences(path, stimuli=stimuli(target="wolf"))
    assert set(faults) == {"stimuli"} and "classes" in faults["stimuli"] and "target" in faults["stimuli"]


@pytest.mark.parametrize("value", ["", "Wild", "two words", "<b>", "x" * 41, "_a"])
def test_it_refuses_values_that_could_not_be_stored(path: Path, value: str) -> None:
    given = [{"value": value, "text": "Text"}, *answers("b")]
    assert set(sentences(path, answers=given, stimuli=stimuli(classes=None))) == {"answers.0.value"}


@pytest.mark.parametrize("text", ["", "x" * 81])
def test_it_refuses_texts_that_no_button_holds(path: Path, text: str) -> None:
    given = [{"value": "a", "text": text}, *answers("b")]
    assert set(sentences(path, answers=given, stimuli=stimuli(classes=None))) == {"answers.0.text"}


# Roles

ROLES: Mapping[str, tuple[list[dict[str, Any]], list[dict[str, Any]], str]] = {
    "meta_predictor": ([PLAIN, CONTROL, METHOD], [METHOD], "0 of role 'baseline' exactly 1 is needed"),
    "reverse_turing": (
        [METHOD],
        [PLAIN, {**PLAIN, "name": "bare"}, METHOD],
        "2 of role 'baseline' 0 to 1 are needed",
    ),
}


@pytest.mark.parametrize("paradigm", ROLES)
def test_each_paradigm_counts_its_baselines(path: Path, paradigm: str) -> None:
    good, bad, sentence = ROLES[paradigm]
    assert problems(path, paradigm=paradigm, conditions=good) == []
    assert sentences(path, paradigm=paradigm, conditions=bad) == {"conditions.role": sentence}


@pytest.mark.parametrize("paradigm", list(PARADIGMS))
@pytest.mark.parametrize("role", ["lead", "methods", 3, None])
def test_an_unknown_role_is_answered_with_the_known_ones(path: Path, paradigm: str, role: object) -> None:
    faults = problems(path, paradigm=paradigm, conditions=[{"name": "odd", "role": role}])
    told = [f.limit for f in faults if f.key == "conditions.0.role"]
    assert f"must be one of {', '.join(get_paradigm(paradigm).roles)}" in told


@pytest.mark.parametrize("paradigm", list(PARADIGMS))
def test_every_role_holds_to_what_it_says_of_explanations(path: Path, paradigm: str) -> None:
    for name, role in get_paradigm(paradigm).roles.items():
        for is_explained in (False, True):
            row: dict[str, Any] = {"name": "one-of-them", "role": name}
            row |= {"explainer": {"name": "saliency"}} if is_explained else {}
            faults = problems(path, paradigm=paradigm, conditions=[row])
            is_named = any(f.key == "conditions.0" for f in faults)
            assert is_named == (role.explained is (not is_explained)), (name, is_explained)


def test_it_says_which_way_an_explainer_is_wrong(path: Path) -> None:
    bare = {"name": "marked", "role": "method"}
    dressed = {**PLAIN, "explainer": {"name": "saliency"}}
    faults = sentences(path, conditions=[dressed, bare])
    assert faults == {
        "conditions.0": " role 'baseline' has no explainer",
        "conditions.1": " role 'method' needs an explainer",
    }


def test_people_are_a_source_without_an_explainer(path: Path) -> None:
    """People mark for themselves; the model's marks are an explainer's. A rating has no such role."""
    marked = {**SOURCE, "explainer": {"name": "saliency"}}
    given: dict[str, Any] = {"paradigm": "blind_review", "design": {"role": "solve"}, "stimuli": UNBALANCED}
    assert problems(path, conditions=[SOURCE, METHOD], **given) == []
    assert set(sentences(path, conditions=[marked, METHOD], **given)) == {"conditions.0"}
    assert set(sentences(path, paradigm="rating", conditions=[SOURCE])) == {"conditions.0.role"}


def test_solving_needs_answers_to_choose_from(path: Path) -> None:
    faults = sentences(
        path,
        paradigm="blind_review",
        design={"role": "solve"},
        conditions=[SOURCE, METHOD],
        stimuli=stimuli(classes=None),
    )
    assert faults == {"stimuli": "no answers tasks have 2 or more answers"}


@pytest.mark.parametrize(("role", "solutions_from"), [("review", ""), ("solve", "tasks")])
def test_a_review_names_its_solutions_and_a_first_stage_none(
    path: Path, role: str, solutions_from: str
) -> None:
    design = {"role": role, "solutions_from": solutions_from}
    faults = problems(path, paradigm="blind_review", design=design, conditions=[SOURCE, METHOD])
    assert [f.key for f in faults] == ["design"] and "solutions_from" in faults[0].limit


# Datasets and models


def spread(**named: str) -> dict[str, Any]:
    """The tables of a study with two datasets and two models, whose one condition names these."""
    row = {**METHOD, **named}
    return {
        "paradigm": "rating",
        "stimuli": stimuli(**several(["field", "town"], ["coarse", "fine"]), classes=None),
        "conditions": [row],
    }


def test_a_condition_names_its_dataset_and_its_model(path: Path) -> None:
    assert problems(path, **spread(dataset="town", predictor="fine")) == []


def test_it_lists_the_known_ones_if_a_condition_names_none_or_another(path: Path) -> None:
    assert sentences(path, **spread(dataset="toun")) == {
        "conditions.0.dataset": "'toun' must be one of field, town",
        "conditions.0.predictor": "'' must be one of coarse, fine",
    }


def test_a_condition_names_nothing_if_there_is_one(path: Path) -> None:
    named = {**METHOD, "dataset": "field", "predictor": "fine"}
    assert sentences(path, conditions=[PLAIN, named]) == {
        "conditions.1.dataset": "'field' names one of several, but the study has one dataset",
        "conditions.1.predictor": "'fine' names one of several, but the study has one predictor",
    }


@pytest.mark.parametrize(
    ("field", "entry"), [("dataset", {"name": "folder", "path": "a"}), ("predictor", {"name": "toy"})]
)
def test_it_wants_one_or_several_and_not_both(path: Path, field: str, entry: dict[str, str]) -> None:
    none = stimuli(**{field: None})
    both = stimuli(**{f"{field}s": {"a": entry}})
    for table in (none, both):
        (fault,) = problems(path, stimuli=table)
        assert (fault.key, fault.limit) == ("stimuli", f"one {field} or several")
        assert f"Give either {field}" in fault.remedy and f"[stimuli.{field}s.NAME]" in fault.remedy


def test_every_pair_of_dataset_and_model_is_a_source() -> None:
    study = definition(several(["field", "town"], ["coarse", "fine"]))
    assert list(study.stimuli.sources) == [
        ("field", "coarse"), ("field", "fine"), ("town", "coarse"), ("town", "fine"),
    ]  # fmt: skip
    dataset, predictor = study.stimuli.sources["town", "fine"]
    assert (dataset.component().params["path"], predictor.name) == ("town", "toy")


def test_the_only_pair_has_no_names() -> None:
    assert list(definition().stimuli.sources) == [("", "")]
    two = definition({"predictor": None, "predictors": {"a": {"name": "toy"}, "b": {"name": "toy"}}})
    assert list(two.stimuli.sources) == [("", "a"), ("", "b")]


# Checks and bonus

CONDITIONS: Mapping[str, list[dict[str, Any]]] = {
    "meta_predictor": [PLAIN, METHOD],
    "reverse_turing": [METHOD],
    "rating": [METHOD],
    "blind_review": [SOURCE, METHOD],
    "assisted_decision": ADVISED["conditions"],
}
DESIGN: Mapping[str, dict[str, Any]] = {
    "blind_review": {"role": "solve"},
    "assisted_decision": {"advice_accuracy": 0.75},
}
UNBALANCED = stimuli(balance="none")


@pytest.mark.parametrize(
    ("paradigm", "instructed", "repeat"),
    [
        ("meta_predictor", 2, 3),
        ("reverse_turing", 2, 0),
        ("rating", 2, 0),
        ("blind_review", 2, 0),
        ("assisted_decision", 2, 0),
    ],
)
def test_a_study_that_says_nothing_gets_its_paradigm_s_checks(
    path: Path, paradigm: str, instructed: int, repeat: int
) -> None:
    given = tables(
        paradigm=paradigm,
        conditions=CONDITIONS[paradigm],
        design=DESIGN.get(paradigm, {}),
        stimuli=UNBALANCED,
    )
    study = load_study(path, changes=given)
    assert (study.checks.instructed, study.checks.repeat) == (instructed, repeat)
    said = load_study(path, changes={**given, "checks": {"instructed": 7}})
    assert (said.checks.instructed, said.checks.repeat) == (7, repeat)


@pytest.mark.parametrize("checks", [3, "many", [1]])
def test_checks_that_are_no_table_are_one_mistake(path: Path, checks: object) -> None:
    assert set(sentences(path, checks=checks)) == {"checks"}


BONUS = {"amount_cents": 100, "expected_minutes": 5, "bonus_per_match_cents": 5, "bonus_max_cents": 50}


@pytest.mark.parametrize(
    ("paradigm", "design", "is_earned"),
    [
        ("meta_predictor", {}, True),
        ("reverse_turing", {}, True),
        ("rating", {}, False),
        ("blind_review", {"role": "solve"}, True),
        ("blind_review", {"role": "review", "solutions_from": "tasks"}, False),
        ("assisted_decision", {"advice_accuracy": 0.75}, True),
    ],
)
def test_a_bonus_is_for_what_can_be_right(
    path: Path, paradigm: str, design: dict[str, Any], is_earned: bool
) -> None:
    conditions = [SOURCE, FROZEN] if design.get("role") == "review" else CONDITIONS[paradigm]
    given = {"paradigm": paradigm, "design": design, "conditions": conditions, "reward": BONUS}
    given["stimuli"] = UNBALANCED
    faults = sentences(path, **given)
    assert set(faults) == (set() if is_earned else {"reward.bonus_per_match_cents"})
    if not is_earned:
        assert faults["reward.bonus_per_match_cents"].startswith("5 nothing is right or wrong")


@pytest.mark.parametrize("left_out", ["bonus_per_match_cents", "bonus_max_cents"])
def test_a_bonus_has_a_rate_and_a_limit(path: Path, left_out: str) -> None:
    faults = sentences(path, reward={k: v for k, v in BONUS.items() if k != left_out})
    assert "go together" in faults["reward"]


def test_a_cap_is_no_less_than_what_everybody_gets(path: Path) -> None:
    assert "person_cap_cents is less" in sentences(path, reward={**BONUS, "person_cap_cents": 99})["reward"]
    assert (
        load_study(path, changes=tables(reward={**BONUS, "person_cap_cents": 100})).reward.most_cents == 100
    )
    assert load_study(path, changes=tables(reward=BONUS)).reward.most_cents == 100 + 50


# Other rules between tables


def test_a_rule_over_checks_needs_checks(path: Path) -> None:
    rule = {"instructed_share_min": 0.5}
    assert problems(path, screening=rule, checks={"instructed": 2}) == []
    assert set(sentences(path, screening=rule, checks={"instructed": 1})) == {"checks.instructed"}


def test_a_rule_over_the_quiz_needs_a_quiz(path: Path) -> None:
    faults = sentences(path, screening={"quiz_attempts_max": 2})
    assert faults == {"screening.quiz_attempts_max": " needs a quiz"}


def test_two_questions_have_two_ids(path: Path) -> None:
    asked = {"id": "age", "kind": "number", "prompt": "How old?"}
    assert sentences(path, questions=[asked, asked]) == {"questions.id": "'age' names two questions"}


@pytest.mark.parametrize(
    ("kind", "choices", "is_good"),
    [
        ("choice", ["a"], False),
        ("choice", ["a", "b"], True),
        ("text", ["a", "b"], False),
        ("number", [], True),
    ],
)
def test_only_choice_questions_have_choices(path: Path, kind: str, choices: list[str], is_good: bool) -> None:
    asked = {"id": "q", "kind": kind, "prompt": "Q?", "choices": choices}
    assert (problems(path, questions=[asked]) == []) == is_good


def test_an_unknown_measure_is_named(path: Path) -> None:
    assert set(sentences(path, metrics=[{"name": "insertions"}])) == {"metrics.0"}


# Every mistake at once


def test_mistakes_of_every_sort_come_in_one_run(path: Path) -> None:
    """From the tables, the texts, the paradigm and between the tables: none hides another."""
    (path.parent / "debrief.md").unlink()
    faults = problems(
        path,
        language="fr",
        seed=-1,
        conditions=[PLAIN, {**PLAIN, "role": "bassline"}],
        screening={"total_minutes": [9, 3]},
        design={"blocks": 0},
        rewards=BONUS,
    )
    keys = {fault.key for fault in faults}
    assert keys >= {
        "language", "seed", "conditions.name", "conditions.1.role", "screening.total_minutes",
        "design.blocks", "rewards", "texts.debrief",
    }  # fmt: skip


def test_mistakes_between_sound_tables_come_in_one_run(path: Path) -> None:
    faults = problems(
        path,
        answers=answers("a", "a", a=("husky",)),
        conditions=[{**PLAIN, "dataset": "field"}, METHOD],
        reward=BONUS,
        metrics=[{"name": "insertions"}],
        questions=[{"id": "q", "kind": "text", "prompt": "Q?"}] * 2,
        screening={"instructed_share_min": 1.0},
        checks={"instructed": 0},
    )
    assert {fault.key for fault in faults} == {
        "answers.value", "answers.classes", "conditions.0.dataset", "metrics.0", "questions.id",
        "checks.instructed",
    }  # fmt: skip


@pytest.mark.parametrize("conditions", [[], {}, "three", [3], [[]]])
def test_conditions_of_a_wrong_shape_are_no_traceback(path: Path, conditions: object) -> None:
    assert any(fault.key.startswith("conditions") for fault in problems(path, conditions=conditions))
