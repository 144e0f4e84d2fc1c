"""`study_check` reads a study as a participant would: each planted fault is told with its remedy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crowd.study_check.dry_run import DryRun, dry_run, warnings_of
from crowd.study_check.participant_texts import text_warnings
from crowd.study_check.quality_warnings import control_warnings
from experiments.definition.study import StudyDefinition
from experiments.paradigms.blind import BlindScore, knowledge
from experiments.study_files.load import STUDIES_DIR, load_study
from stimuli.quality.look_decodability import Decodability
from stimuli.store.media_access import current_store
from tests.crowd.study_check.test_stimulus_quality import CLEAN
from tests.experiments.definitions import answers, definition
from tests.world import silent, write_study

SHIPPED = sorted(path.parent.name for path in STUDIES_DIR.glob("*/study.toml"))
GERMAN = "Sie sehen ein Bild, und die Maschine sagt, was es ist. Es ist nicht immer der Husky oder ein Wolf."
ENGLISH = (
    "You see a picture, and the machine says what it is. It is not always right: is it the wolf or husky?"
)


def told(instructions: str, **tables: Any) -> str:
    """The warnings about a study of huskies and wolves with these instructions."""
    texts = {"consent": "c", "instructions": instructions, "debrief": "d", **tables.pop("texts", {})}
    return " ".join(text_warnings(definition(texts=texts, **tables)))


def shipped(slug: str) -> StudyDefinition:
    return load_study(STUDIES_DIR / slug / "study.toml")


@pytest.mark.pure
def test_a_button_that_no_text_explains_is_named() -> None:
    assert told("Is it a husky?") == (
        'no text before the trials says "Wolf", which people find on the buttons: explain it in '
        "texts.instructions, or name the buttons by [[answers]]"
    )
    assert 'says "Husky" and "Wolf"' in told("Say what the machine says.")
    assert 'says "Wolf"' in told("Is it a husky?", texts={"debrief": "Some were wolves."}), "that is too late"


@pytest.mark.pure
def test_other_forms_of_a_word_a_quiz_digits_and_neutral_names_explain_it() -> None:
    assert told("Huskies and wolves.") == ""
    quiz = [{"id": "q", "prompt": "Which?", "choices": ["A husky", "A wolf"], "answer": "A wolf"}]
    assert told("Say it.", quiz=quiz) == ""
    assert told("Say it.", stimuli={"label_names": "neutral"}) == ""
    assert told("Say it.", stimuli={"classes": None}, answers=answers("3", "7")) == ""
    wild = answers("tame", "wild")
    assert 'says "Wild"' in told("Husky and wolf: which is tame?", stimuli={"classes": None}, answers=wild)


@pytest.mark.pure
@pytest.mark.parametrize("slug", SHIPPED)
def test_a_shipped_study_is_in_order_and_its_texts_in_another_are_not(slug: str) -> None:
    study = shipped(slug)
    assert text_warnings(study) == []
    (warning,) = text_warnings(study.model_copy(update={"slug": "mine"}))
    assert "texts of a shipped study stand here to the letter" in warning
    assert all(f"texts.{key}" in warning for key in study.texts) and "texts.quiz" in warning


@pytest.mark.pure
def test_a_text_of_ones_own_is_not_counted_among_them() -> None:
    study = shipped("wolf-or-husky")
    texts = {key: f"{text}\n" for key, text in study.texts.items()}
    mine = study.model_copy(update={"slug": "mine", "quiz": (), "texts": texts})
    assert text_warnings(mine) == []
    copied = mine.model_copy(update={"texts": {**texts, "consent": study.texts["consent"]}})
    (warning,) = text_warnings(copied)
    assert "(texts.consent of " in warning and warning.count("texts.") == 1


@pytest.mark.pure
def test_a_text_in_another_language_than_its_pages_is_named() -> None:
    assert told(ENGLISH, language="de") == (
        "texts.instructions: written in English, and the pages around in German: translate, or change "
        "language or [interface]"
    )
    assert "texts.instructions: written in German, and the pages around in English" in told(f"{GERMAN} Wolf.")
    assert (
        told(ENGLISH) == told(f"{GERMAN} Wolf.", language="de") == told("Husky, wolf.", language="de") == ""
    )


@pytest.mark.pure
def test_knowing_the_class_is_told_beyond_the_range_of_balance() -> None:
    def score(strategy: str, pooled: float) -> tuple[BlindScore, ...]:
        return (BlindScore(strategy, (pooled,), pooled, (40,)),)

    assert "the true class is right in 0.80 of the test trials" in str(knowledge(score("true class", 0.798)))
    assert knowledge(score("true class", 0.60)) is None
    assert knowledge(score("model's answer", 0.9)) is None and knowledge(()) is None


LEAK = replace(CLEAN, condition="control", leak=Decodability(0.85, 0.55, 1.0, 0.004, 20), leak_p=0.012)


@pytest.mark.pure
def test_a_control_that_tells_the_answer_is_named() -> None:
    (warning,) = control_warnings([CLEAN, LEAK], {"control": "random"})
    assert warning.startswith(
        "control: a control says nothing of the answer, but the form of the maps of random"
    )
    assert "(target leak 0.85" in warning.replace("\N{NO-BREAK SPACE}", " ")
    for quality in (replace(LEAK, leak_p=0.06), replace(LEAK, leak=None), CLEAN):
        assert control_warnings([quality], {"control": "random"}) == []
    assert control_warnings([LEAK], {}) == [], "a method may tell it"


@pytest.fixture
def run(tmp_path: Path, store_folder: Path) -> DryRun:
    (tmp_path / "small").mkdir()
    path = write_study(tmp_path / "small", slots=1, classes='classes = ["left", "right"]\nbalance = "none"')
    return dry_run(load_study(path), path.parent, current_store(), silent, quality=24)


@pytest.mark.django_db
def test_the_whole_check_says_so_whatever_the_balance_and_its_remedies_hold(run: DryRun) -> None:
    (score,) = [score for score in run.blind if score.strategy == "true class"]
    known = replace(run, blind=(replace(score, pooled=0.798),))
    balanced = run.definition.stimuli.model_copy(update={"balance": "prediction_x_correct"})
    asked = replace(known, definition=run.definition.model_copy(update={"stimuli": balanced}))
    for planted in (known, asked):
        (warning,) = [w for w in warnings_of(planted) if w.startswith("the true class is right in 0.80")]
    assert [
        w for w in warnings_of(replace(run, blind=(replace(score, pooled=0.5),))) if "true class" in w
    ] == []
    said = " ".join(warnings_of(run))
    assert 'says "Left" and "Right"' in said
    # The control of this study is the one that the warning of a leak recommends.
    (control,) = [quality for quality in run.quality if quality.condition == "control"]
    assert control.leak is None or control.leak_p >= 0.05
    assert "a control says nothing" not in said
