"""What a study of advice declares, and the texts that a paradigm has for the people of some arms."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.experiments.definitions import SMALLEST
from tests.experiments.study_files.test_study_file import (
    ADVISED,
    METHOD,
    PLAIN,
    UNADVISED,
    path,
    problems,
    sentences,
    stimuli,
)

__all__ = ["path"]
pytestmark = pytest.mark.pure

# Texts for the people of some arms

ARM_TEXTS: Mapping[str, tuple[dict[str, Any], set[str], set[str]]] = {
    "crossed": (
        {"masking": "crossed", "task": "masked", "task_words": ["tense"]},
        {"instructions_known", "instructions_masked"},
        set(),
    ),
    "not crossed": ({}, set(), {"instructions_known", "instructions_masked"}),
}


@pytest.mark.parametrize("name", ARM_TEXTS)
def test_a_text_for_some_people_is_there_if_they_are_and_only_then(path: Path, name: str) -> None:
    design, needed, unread = ARM_TEXTS[name]
    given = {"paradigm": "reverse_turing", "design": design, "conditions": [METHOD]}
    given |= {"render": {"preset": "reverse-turing"}, "stimuli": stimuli(label_names="drawn")}
    common = {name: f"{name}.md" for name in ("consent", "instructions", "debrief")}
    for text in ("instructions_known", "instructions_masked"):
        (path.parent / f"{text}.md").write_text("# Told\n")
        common[text] = f"{text}.md"

    def faults(**texts: str) -> dict[str, str]:
        told = sentences(path, texts=texts, **given)
        return {key: said for key, said in told.items() if key.startswith("texts.")}

    without = {name: file for name, file in common.items() if not name.startswith("instructions_")}
    assert faults(**without) == {f"texts.{text}": " is read by people of this study" for text in needed}
    assert faults(**common) == {f"texts.{text}": " is read by nobody in this study" for text in unread}


def test_a_text_of_another_paradigm_is_no_key(path: Path) -> None:
    texts = {name: f"{name}.md" for name in ("consent", "instructions", "debrief")}
    told = sentences(path, texts={**texts, "instructions_known": "known.md"})
    assert set(told) == {"texts.instructions_known"} and "is not a key" in told["texts.instructions_known"]
    texts["instructions_advise"] = "advise.md"
    advised = sentences(path, paradigm="assisted_decision", **ADVISED, texts=texts)
    assert "did you mean 'instructions_advice'" in advised["texts.instructions_advise"]


# Advice


def advised(path: Path, **changes: Any) -> dict[str, str]:
    return sentences(path, paradigm="assisted_decision", **{**ADVISED, **changes})


def test_a_study_of_advice_is_in_order_and_its_texts_are_optional(path: Path) -> None:
    assert advised(path) == {}


def test_the_accuracy_of_the_advice_is_declared_and_makes_a_whole_number_of_items(path: Path) -> None:
    assert advised(path, design={}) == {"design.advice_accuracy": " is missing"}
    odd = {"advice_accuracy": 0.7, "test_items": 15}
    (told,) = problems(path, paradigm="assisted_decision", **{**ADVISED, "design": odd})
    assert "0.7 of 15 test_items are 10.5 items" in told.limit and "0.667 or 0.733" in told.remedy
    for share in (0.667, 0.733, 0.0, 1.0, 1 / 3):
        assert advised(path, design={"advice_accuracy": share, "test_items": 15}) == {}, share
    assert set(advised(path, design={"advice_accuracy": 1.2})) == {"design.advice_accuracy"}


def test_which_answers_are_right_is_declared_once_and_nothing_is_repeated(path: Path) -> None:
    balanced = {**SMALLEST["stimuli"], "balance": "prediction_x_correct"}
    assert "advice_accuracy" in advised(path, stimuli=balanced)["stimuli.balance"]
    assert set(advised(path, checks={"repeat": 1})) == {"checks.repeat"}


@pytest.mark.parametrize(
    ("conditions", "sentence"),
    [
        ([UNADVISED, METHOD], "0 of role 'baseline' exactly 1 is needed"),
        ([PLAIN, METHOD], "0 of role 'advice' exactly 1 is needed"),
    ],
)
def test_advice_is_compared_with_a_second_look_and_explanations_with_plain_advice(
    path: Path, conditions: list[dict[str, Any]], sentence: str
) -> None:
    assert advised(path, conditions=conditions) == {"conditions.role": sentence}
