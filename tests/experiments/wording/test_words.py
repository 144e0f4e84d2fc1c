"""Every language says everything: the server's tables, and the placeholders within each sentence."""

import re
from typing import get_args

import pytest

from experiments.definition.study import StudyDefinition
from experiments.gates import GATES
from experiments.paradigms import PARADIGMS
from experiments.wording.language_file import PLACE
from experiments.wording.sentence_tables import LANGUAGES, page_table_of, sentences_in, table_of

pytestmark = pytest.mark.pure
TELLING = r"\b(ai|artificial|model|machine|algorithm|predict\w*|explain\w*|explanation|legible|ki|modell"
TELLING += r"|maschine|vorhersag\w*|erklär\w*|erklärung)\b"


def sentences(language: str) -> dict[str, str]:
    """Every sentence of a language by the path of its table and key."""
    table = table_of(language)
    by_name = {
        f"{part}.{key}": text for part in ("pages", "entry", "pay") for key, text in table[part].items()
    }
    by_name |= dict(sentences_in(page_table_of(language), "page.common."))
    for part in ("paradigms", "page"):
        for name, texts in table[part].items():
            by_name |= {f"{part}.{name}.{key}": text for key, text in texts.items()}
    return by_name


def test_it_ships_the_languages_that_a_study_may_name() -> None:
    assert set(LANGUAGES) == set(get_args(StudyDefinition.model_fields["language"].annotation))


@pytest.mark.parametrize("language", LANGUAGES)
def test_it_says_everything_in_every_language(language: str) -> None:
    whole = {key for name in LANGUAGES for key in sentences(name)}
    assert whole - set(sentences(language)) == set()
    assert all(text.strip() for text in sentences(language).values())


@pytest.mark.parametrize("language", LANGUAGES)
def test_it_fills_the_same_places_in_every_language(language: str) -> None:
    for key, text in sentences("en").items():
        assert set(PLACE.findall(sentences(language)[key])) == set(PLACE.findall(text)), key


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_paradigm_rewords_only_what_there_is(language: str) -> None:
    table = table_of(language)
    for name, texts in table["paradigms"].items():
        assert name.removesuffix("_known") in PARADIGMS and set(texts) <= set(table["pages"]), name


@pytest.mark.parametrize("language", LANGUAGES)
def test_practice_asks_of_a_machine_what_the_trials_ask(language: str) -> None:
    """A machine that answered is not asked about in the one place, and one that answers in the other."""
    table = table_of(language)
    asked = {voice: texts.get("practice_question") for voice, texts in table["paradigms"].items()}
    of_texts = table["page"]["reverse_turing_known"]["trial.question"]
    assert asked["reverse_turing_known"] == of_texts != asked["meta_predictor"]
    assert page_table_of(language)["trial"]["question"] == asked["meta_predictor"]


def test_every_gate_without_a_text_of_its_own_has_a_sentence() -> None:
    by_study = {"consent", "instructions"}
    stops = {"questions": {"questions_before", "questions_after"}}
    wanted = {kind for gate in set(GATES.names) - by_study for kind in stops.get(gate, {gate})}
    assert wanted <= set(table_of("en")["pages"])


def test_the_page_knows_every_phrase_that_a_study_may_say_otherwise() -> None:
    """A path that the page does not know changes nothing; a text may name only what the page fills in."""
    common = dict(sentences_in(page_table_of("en")))
    for language in LANGUAGES:
        for name, phrases in table_of(language)["page"].items():
            for key, text in phrases.items():
                assert set(PLACE.findall(text)) <= set(PLACE.findall(common[key])), (name, key)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_neutral_phrases_tell_no_secret_either(language: str) -> None:
    for key, text in table_of(language)["page"]["neutral"].items():
        assert not telling(text), (key, text)


def telling(text: str) -> list[str]:
    return [match.group(0) for match in re.finditer(TELLING, text, re.IGNORECASE)]


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_common_words_do_not_tell_that_a_model_is_behind(language: str) -> None:
    """A blind review says nothing of this; rated explanations are called so by the study's own texts."""
    spared = {key for key in table_of(language)["pages"] if key.startswith("rate_")}
    for key, text in table_of(language)["pages"].items():
        assert key in spared or not telling(text), (key, telling(text))


def test_the_scan_finds_a_planted_word() -> None:
    assert telling("A very simple machine sorts these shapes.") == ["machine"]
    assert telling("Bild mit einer Erklärung") == ["Erklärung"]
    assert not telling("Sorted by a simple rule.")
