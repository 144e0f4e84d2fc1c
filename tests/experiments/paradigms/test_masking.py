"""A masked study says neither the words of its task nor the names of its classes, wherever people read."""

from __future__ import annotations

from typing import Any

import pytest

from experiments.paradigms.reverse_turing import ReverseTuring
from experiments.wording.sentence_tables import words_for
from experiments.wording.sentences import page_words
from tests.experiments.definitions import TEXTS, definition

pytestmark = pytest.mark.pure

CLASSES = {"classes": ["past", "present"], "label_names": "drawn"}
MASKED: dict[str, Any] = {
    "paradigm": "reverse_turing",
    "render": {"preset": "reverse-turing"},
    "design": {"task": "masked", "task_words": ["tense", "verb*"]},
}
QUESTION = {"id": "strategy", "kind": "text", "prompt": "How did you decide?", "required": False}
QUIZ = {"id": "q", "prompt": "What is asked?", "choices": ["A class", "A word"], "answer": "A class"}


def problems(stimuli: dict[str, Any] | None = None, **tables: Any) -> dict[str, str]:
    made = definition({**CLASSES, **(stimuli or {})}, **{**MASKED, **tables})
    return {
        problem.key: f"{problem.value} {problem.limit}" for problem in ReverseTuring().check_definition(made)
    }


def test_a_study_that_tells_nothing_passes() -> None:
    assert problems(questions=[QUESTION], quiz=[QUIZ]) == {}


@pytest.mark.parametrize(
    ("tables", "place", "word"),
    [
        ({"title": "Which tense?"}, "title", "tense"),
        ({"slug": "the-past"}, "slug", "past"),
        ({"slug": "the_tense"}, "slug", "tense"),
        ({"texts": {**TEXTS, "instructions": "Look at the VERBS."}}, "texts.instructions", "verb*"),
        ({"texts": {**TEXTS, "consent": "About the\npresent."}}, "texts.consent", "present"),
        ({"quiz": [QUIZ | {"choices": ["A class", "A tense"]}]}, "quiz.0", "tense"),
        ({"questions": [QUESTION | {"prompt": "Was it the tense?"}]}, "questions.strategy", "tense"),
        ({"questions": [QUESTION | {"id": "verbs"}]}, "questions.verbs", "verb*"),
        ({"recruitment": {"description": "Guess the tense."}}, "recruitment.description", "tense"),
        ({"recruitment": {"keywords": ["verb"]}}, "recruitment.keywords", "verb*"),
        ({"platforms": {"mturk": {"note": "Past or not"}}}, "platforms.mturk.note", "past"),
        ({"design": {"task": "masked", "task_words": ["donkey", "oak", "hen", "ivy", "owl", "moss"]}},
         "practice", "oak"),
    ],
)  # fmt: skip
def test_a_word_of_the_task_is_refused_with_its_place(tables: Any, place: str, word: str) -> None:
    told = problems(**tables)
    assert set(told) == {place}
    if place != "practice":
        assert told[place].startswith(repr(word))


def test_classes_by_their_own_names_are_refused() -> None:
    assert set(problems({"label_names": "own"})) == {"stimuli.classes"}


def test_answers_may_be_named_otherwise_but_not_after_the_classes() -> None:
    rows = [
        {"value": "one", "text": "One", "classes": ["past"]},
        {"value": "two", "text": "Two", "classes": ["present"]},
    ]
    assert problems({"label_names": "own"}, answers=rows) == {}
    rows[0] = {"value": "one", "text": "The past one", "classes": ["past"]}
    assert set(problems(answers=rows)) == {"stimuli.classes"}


def test_whole_words_are_looked_for() -> None:
    """Pasta and presents say nothing of past and present, nor does intense of tense."""
    assert problems(title="Intense pasta presents") == {}
    assert "title" in problems(title="Verbally")


def test_short_names_of_classes_stand_in_every_text() -> None:
    assert problems({"classes": ["0", "1"]}, title="Class 1 of 1") == {}


def test_the_debrief_may_tell() -> None:
    assert problems(texts={**TEXTS, "debrief": "It was about tense, past or present."}) == {}


def test_only_the_told_half_of_a_crossed_study_may_be_told() -> None:
    told = {**TEXTS, "instructions_known": "It is about tense.", "instructions_masked": "You will see."}
    crossed = {"task": "masked", "task_words": ["tense"], "masking": "crossed"}
    assert problems(texts=told, design=crossed) == {}
    swapped = {**told, "instructions_masked": "It is about tense."}
    assert set(problems(texts=swapped, design=crossed)) == {"texts.instructions_masked"}


def test_a_masked_study_lists_its_words_and_classes() -> None:
    assert set(problems(design={"task": "masked"})) == {"design.task_words"}
    assert set(problems({"classes": None})) == {"stimuli.classes"}


def test_only_a_masked_task_is_told_to_one_half() -> None:
    told = {**TEXTS, "instructions_known": "k", "instructions_masked": "m"}
    assert set(problems(texts=told, design={"masking": "crossed"})) == {"design.masking"}


@pytest.mark.parametrize("language", ["en", "de"])
def test_only_a_known_task_is_asked_of_a_machine(language: str) -> None:
    known = definition(CLASSES, **{**MASKED, "design": {}, "language": language})
    masked = definition(CLASSES, **MASKED, language=language)
    machine = {"en": "machine", "de": "Maschine"}[language]
    assert machine in page_words(known)["trial.question"] and machine in words_for(known)["practice"]
    for words in (
        page_words(masked),
        {k: v for k, v in words_for(masked).items() if not k.startswith("rate_")},
    ):
        assert not [text for text in words.values() if machine.lower() in text.lower()]
    for study in (known, masked):
        assert words_for(study)["instructed"] != words_for(definition(language=language))["instructed"]
