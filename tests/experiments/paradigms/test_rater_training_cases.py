"""Which cases the training of raters plants: what is plain, of what the study asks, and no key fits all."""

from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest

from experiments.definition.study import StudyDefinition
from experiments.errors import InvalidStudy
from experiments.paradigms.rater_training import planted_cases
from experiments.paradigms.rating import QUESTIONS
from experiments.study_files.load import load_study
from tests.experiments.protocols import ONE, RATING, TWO_MODELS, write

pytestmark = pytest.mark.pure
MAPS = (("saliency",), ("x_nesyl",), ("saliency", "x_nesyl"))


@pytest.fixture
def definition(tmp_path: Path) -> StudyDefinition:
    return load_study(write(tmp_path, "ratings", "rating", RATING, sources=TWO_MODELS))


def asking(definition: StudyDefinition, *asked: str, explainers: tuple[str, ...] = ("saliency",), **design):  # type: ignore[no-untyped-def]
    first = definition.conditions[0]
    assert first.explainer is not None
    conditions = tuple(
        first.model_copy(
            update={"name": name, "explainer": first.explainer.model_copy(update={"name": name})}
        )
        for name in explainers
    )
    whole = {**definition.design, "asked": list(asked), **design}
    return definition.model_copy(update={"design": whole, "conditions": conditions})


@pytest.mark.parametrize("explainers", MAPS)
def test_no_constant_answer_passes_whatever_is_asked(
    definition: StudyDefinition, explainers: tuple[str, ...]
) -> None:
    """A person who always presses the same key stays below the default share of 0.7."""
    for count in range(1, len(QUESTIONS) + 1):
        for asked in combinations(QUESTIONS, count):
            planted = planted_cases(asking(definition, *asked, explainers=explainers))
            assert {case.question for case in planted} <= set(asked)
            for point in "12345" if planted else "":
                assert sum(point in case.accepted for case in planted) / len(planted) < 0.7, asked


def test_it_asks_nothing_about_trust_and_no_question_of_the_study_s_invention(
    definition: StudyDefinition,
) -> None:
    wording = [{"id": "fun", "text": "How much do you like it?", "low": "little", "high": "much"}]
    assert planted_cases(asking(definition, "q2", "fun", wording=wording)) == ()


def test_all_six_questions_have_nine_cases_of_maps_and_two_more_of_concepts(
    definition: StudyDefinition,
) -> None:
    maps = planted_cases(asking(definition, *QUESTIONS))
    assert Counter(case.question for case in maps) == {"q1": 3, "q3": 2, "q4": 2, "q5": 1, "q6": 1}
    assert {case.case for case in maps} == {"object", "elsewhere", "empty", "noise", "same", "moved"}
    both = planted_cases(asking(definition, *QUESTIONS, explainers=("saliency", "x_nesyl")))
    assert len(both) == 11 and Counter(case.form for case in both) == {"map": 9, "concepts": 2}
    alone = planted_cases(asking(definition, *QUESTIONS, explainers=("x_nesyl",)))
    assert {case.form for case in alone} == {"concepts"}


def test_the_ends_of_the_scale_that_fit_are_those_of_the_case(definition: StudyDefinition) -> None:
    fits = {
        (case.question, case.case): case.accepted for case in planted_cases(asking(definition, *QUESTIONS))
    }
    high, low = ("4", "5"), ("1", "2")
    assert fits["q1", "object"] == fits["q3", "object"] == fits["q6", "moved"] == high
    assert fits["q1", "empty"] == fits["q4", "noise"] == fits["q5", "same"] == low


def test_a_question_that_a_study_turns_round_is_judged_by_the_other_end(definition: StudyDefinition) -> None:
    wording = [{"id": "q3", "text": "How hard is it?", "low": "easy", "high": "hard", "reverse": True}]
    turned = planted_cases(asking(definition, "q3", wording=wording))
    assert {case.case: case.accepted for case in turned} == {"object": ("1", "2"), "noise": ("4", "5")}


def test_a_comparison_that_a_study_makes_no_pair_is_not_trained(definition: StudyDefinition) -> None:
    assert planted_cases(asking(definition, "q5", wording=[{"id": "q5", "text": "How odd is it?"}])) == ()


def test_the_order_follows_from_the_seed(definition: StudyDefinition) -> None:
    first = asking(definition, *QUESTIONS)
    assert planted_cases(first) == planted_cases(first)
    orders = {planted_cases(first.model_copy(update={"seed": seed})) for seed in range(6)}
    assert len(orders) > 1 and len({frozenset(order) for order in orders}) == 1


def test_the_pass_mark_is_part_of_the_digest_only_if_it_is_stated(tmp_path: Path) -> None:
    plain = load_study(write(tmp_path / "a", "ratings", "rating", RATING, sources=TWO_MODELS))
    table = "[training]\nshare_min = 0.8\n"
    stated = load_study(write(tmp_path / "b", "ratings", "rating", RATING + table, sources=TWO_MODELS))
    assert "training" not in plain.as_met() and stated.as_met()["training"] == {"share_min": 0.8}
    default = load_study(
        write(
            tmp_path / "c", "ratings", "rating", RATING + "[training]\nshare_min = 0.7\n", sources=TWO_MODELS
        )
    )
    assert default.digest == plain.digest != stated.digest


def test_a_pass_mark_beyond_all_answers_is_refused_by_its_key(tmp_path: Path) -> None:
    path = write(tmp_path, "ratings", "rating", RATING + "[training]\nshare_min = 1.2\n", sources=ONE)
    with pytest.raises(InvalidStudy, match=r"training.share_min.*less than or equal to 1"):
        load_study(path)
