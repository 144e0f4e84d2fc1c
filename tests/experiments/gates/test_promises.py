"""Texts that promise what their page lacks are found, and the shipped texts promise nothing of the kind."""

import pytest

from experiments.definition.text_tables import TextFiles
from experiments.gates.promises import HELD, LACKS, find_promises, unkept
from experiments.paradigms import PARADIGMS, get_paradigm
from experiments.study_files.load import STUDIES_DIR, find_study, load_study
from experiments.wording.sentence_tables import LANGUAGES, table_of

pytestmark = pytest.mark.pure
SLUGS = sorted(path.parent.name for path in STUDIES_DIR.glob("*/study.toml"))
PLANTED = {
    ("en", "below"): "You may decide again, below or later by writing to us.",
    ("en", "button"): "Please press the blue button to have your answers removed.",
    ("en", "link"): "Please use the link to go back.",
    ("en", "leave"): "You may leave at the bottom of each page.",
    ("en", "code"): "Copy your code before you go.",
    ("de", "below"): "Sie können unten noch einmal entscheiden.",
    ("de", "button"): "Bitte drücken Sie den blauen Knopf, um Ihre Antworten zu löschen.",
    ("de", "link"): "Mit diesem Link kommen Sie zurück.",
    ("de", "leave"): "Sie können am Ende jeder Seite gehen.",
    ("de", "code"): "Kopieren Sie Ihren Code, bevor Sie gehen.",
}


def said_in(language: str, key: str, text: str) -> list[str]:
    study = load_study(find_study("wolf-or-husky"))
    texts = {**study.texts, key: f"# Title\n\nA plain sentence. {text} Another one.\n"}
    return unkept(study.model_copy(update={"texts": texts, "language": language}))


@pytest.mark.parametrize(("language", "control"), list(PLANTED))
def test_it_names_the_sentence_that_promises_what_a_debrief_lacks(language: str, control: str) -> None:
    (warning,) = said_in(language, "debrief", PLANTED[language, control])
    assert f'texts.debrief says "{PLANTED[language, control]}"' in warning
    assert LACKS[control] in warning and "{contact}" in warning


@pytest.mark.parametrize(("language", "control"), list(PLANTED))
def test_it_is_quiet_about_what_the_page_has(language: str, control: str) -> None:
    for key, held in HELD.items():
        assert bool(said_in(language, key, PLANTED[language, control])) == (control not in held), key


def test_a_link_that_is_written_out_is_kept() -> None:
    assert not said_in("en", "debrief", "Please use the link [to our page](https://example.org).")


@pytest.mark.parametrize("slug", SLUGS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_shipped_texts_promise_nothing_that_is_not_there(slug: str, language: str) -> None:
    assert unkept(load_study(find_study(slug)).model_copy(update={"language": language})) == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_looks_for_every_control(language: str) -> None:
    assert set(table_of(language)["promises"]) == set(LACKS)


def test_the_texts_that_are_judged_are_texts_of_studies() -> None:
    further = {name for paradigm in PARADIGMS for name in get_paradigm(paradigm).texts}
    assert set(HELD) <= set(TextFiles.model_fields) | further


def test_a_text_says_a_sentence_once_for_each_control() -> None:
    found_twice = list(
        find_promises("Press the button below. Press the button below.", table_of("en")["promises"])
    )
    assert [control for control, _ in found_twice] == ["below", "button"] * 2
