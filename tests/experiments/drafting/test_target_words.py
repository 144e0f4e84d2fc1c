"""One class against all others: drafts name both buttons, and what was opened keeps its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from crowd.study_check.dry_run import dry_run
from experiments.drafting import draft
from experiments.drafting.declared_units import check_target_words
from experiments.drafting.draft import build_draft
from experiments.errors import InvalidStudy
from experiments.models import Study, Trial
from experiments.opening.opening import open_study
from experiments.selectors import definition_of
from experiments.study_files.load import load_study
from stimuli.store.media_access import current_store
from tests.world import draft_study, silent, write_study

pytestmark = pytest.mark.django_db


@pytest.fixture
def path(tmp_path: Path, store_folder: Path) -> Path:
    (tmp_path / "small").mkdir()
    return write_study(tmp_path / "small", slots=1, classes='target = "left"')


def texts_shown(study: Study) -> set[str]:
    """The words on the buttons of every stored trial that asks for the model's answer."""
    trials = Trial.objects.filter(slot__study=study, kind="predict")
    return {choice["text"] for trial in trials for choice in trial.choices}


def test_a_draft_is_refused_until_both_buttons_have_words(path: Path) -> None:
    definition = load_study(path)
    for start in (
        lambda: build_draft(definition, path.parent, silent),
        lambda: dry_run(definition, path.parent, current_store(), silent),
    ):
        with pytest.raises(InvalidStudy, match='the buttons "Target" and "Other"') as refused:
            start()
    assert not Study.objects.exists()
    remedy = str(refused.value).partition("Name both:\n")[2]
    path.write_text(path.read_text() + remedy)
    study = open_study(draft_study(path), silent)
    assert definition_of(study).choices == (("target", "Left"), ("other", "Not left"))
    assert texts_shown(study) == {"Left", "Not left"}


def test_a_study_that_was_opened_before_keeps_its_words_and_its_digest(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    definition = load_study(path)
    with monkeypatch.context() as before:
        before.setattr(draft, "check_target_words", lambda definition: None)
        study = open_study(draft_study(path), silent)
    assert texts_shown(study) == {"Target", "Other"}
    again = build_draft(load_study(path), path.parent, silent)
    assert (again.pk, again.digest) == (study.pk, definition.digest)
    assert definition_of(again).choices == (("target", "Target"), ("other", "Other"))
    check_target_words(definition)
    check_target_words(definition.model_copy(update={"slug": "later", "extends": "small"}))
    with pytest.raises(InvalidStudy):
        check_target_words(definition.model_copy(update={"slug": "another"}))
