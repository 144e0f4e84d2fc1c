"""What people of a study read, as a participant would: words of buttons, texts of others, language."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping

from experiments.definition.study import StudyDefinition
from experiments.paradigms import get_paradigm
from experiments.study_files.load import STUDIES_DIR

WORD = re.compile(r"[^\W_]+")
STEM_MIN = 3
"""Of a longer word the last two letters may differ, as they do between its forms."""
_ENGLISH = "the and of to is you are that not with for this your it or we will be"
_GERMAN = "der das und ist sie nicht ein eine zu mit den ihre auf wir oder wird es sich"
FUNCTION_WORDS: Mapping[str, frozenset[str]] = {
    "en": frozenset(_ENGLISH.split()),
    "de": frozenset(_GERMAN.split()),
}
"""Words that nearly every sentence of a language has, and none of the other one."""
TELLING = 5
"""So many of them, and four times as many as of the other language, tell the language of a text."""
LANGUAGES = {"en": "English", "de": "German"}


def text_warnings(definition: StudyDefinition) -> list[str]:
    """What a participant would stumble over, as sentences with the remedy."""
    return [*_unsaid_buttons(definition), *_texts_of_others(definition), *_foreign_texts(definition)]


def _texts(definition: StudyDefinition) -> Iterator[tuple[str, str]]:
    """All that people read before the trials, by its key."""
    for name, text in definition.texts.items():
        yield f"texts.{name}", text
    if definition.quiz:
        quiz = [part for asked in definition.quiz for part in (asked.prompt, *asked.choices)]
        yield "texts.quiz", " \n ".join(quiz)
    for asked in definition.questions:
        yield f"questions.{asked.id}", " \n ".join([asked.prompt, *asked.choices])


def _unsaid_buttons(definition: StudyDefinition) -> list[str]:
    """Digits and neutral names speak for themselves; of a longer word its beginning is enough."""
    read = [text for key, text in _texts(definition) if key.startswith("texts.") and key != "texts.debrief"]
    words = {word for text in read for word in WORD.findall(text.lower())}
    is_neutral = definition.stimuli.label_names != "own" and not definition.answers
    is_asked = get_paradigm(definition.paradigm).answers_count != (0, 0)
    unsaid = [text for _, text in definition.choices if not _is_said(text, words)]
    if not unsaid or is_neutral or not is_asked:
        return []
    named = " and ".join(f'"{text}"' for text in unsaid)
    return [
        f"no text before the trials says {named}, which people find on the buttons: explain it in "
        "texts.instructions, or name the buttons by [[answers]]"
    ]


def _is_said(button: str, words: set[str]) -> bool:
    parts = [part for part in WORD.findall(button.lower()) if not part.isdigit()]
    return all(any(part[: max(STEM_MIN, len(part) - 2)] in word for word in words) for part in parts)


def _texts_of_others(definition: StudyDefinition) -> list[str]:
    """Texts that were copied from a shipped study and never changed."""
    if definition.extends or (STUDIES_DIR / definition.slug).is_dir():
        return []
    quiz = [asked.model_dump(mode="json") for asked in definition.quiz]
    copied: dict[str, str] = {}
    for folder in sorted(STUDIES_DIR.iterdir()):
        shipped = {path.read_text(encoding="utf-8") for path in folder.glob("*.md")}
        copied |= {f"texts.{key}": folder.name for key, text in definition.texts.items() if text in shipped}
        if quiz and (path := folder / "quiz.toml").is_file():
            asked = tomllib.loads(path.read_text(encoding="utf-8")).get("questions")
            copied |= {"texts.quiz": folder.name} if asked == quiz else {}
    if not copied:
        return []
    places = "; ".join(
        f"{', '.join(key for key in sorted(copied) if copied[key] == slug)} of {slug}"
        for slug in sorted(set(copied.values()))
    )
    return [
        f"texts of a shipped study stand here to the letter ({places}): write what people of your own study "
        "are told and asked"
    ]


def _foreign_texts(definition: StudyDefinition) -> list[str]:
    """Texts in another language than that of the pages around them, where both are known."""
    tag = definition.tag.partition("-")[0]
    foreign: dict[str, list[str]] = {}
    for key, text in _texts(definition):
        language = _language_of(text)
        if language not in ("", tag):
            foreign.setdefault(language, []).append(key)
    return [
        f"{', '.join(keys)}: written in {LANGUAGES[language]}, and the pages around in "
        f"{LANGUAGES.get(tag, repr(tag))}: translate, or change language or [interface]"
        for language, keys in foreign.items()
    ]


def _language_of(text: str) -> str:
    """The tag of English or German; "" if the text is too short to tell, or in another language."""
    words = WORD.findall(text.lower())
    counts = {tag: sum(word in known for word in words) for tag, known in FUNCTION_WORDS.items()}
    best, other = sorted(counts, key=lambda tag: -counts[tag])[:2]
    return best if counts[best] >= max(TELLING, 4 * counts[other], len(words) / 20) else ""
