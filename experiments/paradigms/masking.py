"""What a masked study may not say: the words of its task and the names of its classes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from experiments.definition.study import StudyDefinition
from experiments.errors import Problem
from experiments.paradigms import get_paradigm

NAME_LENGTH_MIN = 3
"""Shorter names of classes, such as 0 and 1, stand in every text."""
TOLD_LATER = frozenset({"debrief", "instructions_known"})
"""Texts that only people read who may know: at the end, or in the half of a crossed study that is told."""
ELSEWHERE = re.compile(
    r"page\.common\.(rating\.|training\.|decide\.|trial\.explanation$)|pages\.(rate_|training$)"
)
"""Sentences of a language file that only studies say which hide nothing."""
WORD = re.compile(r"[^\W_]+")


def task_said(
    definition: StudyDefinition, words: Sequence[str], further: Mapping[str, str]
) -> Iterator[Problem]:
    """A problem for every place that says one of `words` or the name of a class, as whole words without
    regard to case; a word that ends in * stands for all that begin so. `further` are texts that do not stand
    in the definition, by place.
    """
    classes = [*(definition.stimuli.classes or ()), *filter(None, [definition.stimuli.target])]
    named = [name for name in classes if len(name) >= NAME_LENGTH_MIN]
    places = [*_places(definition), *further.items()]
    told = "Say it in words that tell nothing of the task."
    yield from _word_problems(places, words, "is a word of the masked task", told)
    yield from _word_problems(
        places, named, "is the name of a class, which tells the masked task", _OTHER_NAMES
    )


def words_said(
    definition: StudyDefinition, words: Sequence[str], what: str, remedy: str
) -> Iterator[Problem]:
    """A problem for every place of the definition that says one of `words`, read as by `task_said`; `what`
    it is, and the remedy."""
    yield from _word_problems([*_places(definition)], words, what, remedy)


def _word_problems(
    places: Sequence[tuple[str, str]], words: Sequence[str], what: str, remedy: str
) -> Iterator[Problem]:
    for place, text in places:
        said = " ".join(WORD.findall(text.lower()))
        yield from (Problem(place, repr(word), what, remedy) for word in words if _stands_in(word, said))


_OTHER_NAMES = 'Leave it out; answers are named by [stimuli] label_names = "drawn", or by [[answers]].'


def _stands_in(word: str, said: str) -> bool:
    pattern = re.escape(" ".join(WORD.findall(word.lower())))
    end = r"\w*" if word.endswith("*") else ""
    return bool(pattern) and re.search(rf"\b{pattern}{end}\b", said) is not None


def _places(definition: StudyDefinition) -> Iterator[tuple[str, str]]:
    """Everything that people read before the debrief, by the key that holds it."""
    yield "slug", definition.slug
    yield "title", definition.title
    for name, text in definition.texts.items():
        if name not in TOLD_LATER:
            yield f"texts.{name}", text
    for at, asked in enumerate(definition.quiz):
        yield f"quiz.{at}", " \n ".join([asked.prompt, *asked.choices])
    for question in definition.questions:
        yield f"questions.{question.id}", " \n ".join([question.id, question.prompt, *question.choices])
    for value, text in definition.choices:
        yield "stimuli.classes", f"{value} \n {text}"
    yield from _own_sentences(definition)
    yield "ethics.content_warning", definition.ethics.content_warning
    yield "ethics.approval", definition.ethics.approval
    yield "recruitment.description", definition.recruitment.description
    yield "recruitment.keywords", " \n ".join(definition.recruitment.keywords)
    for name, table in definition.platforms.items():
        for key, text in _texts_in(table):
            yield f"platforms.{name}.{key}", text


def _own_sentences(definition: StudyDefinition) -> Iterator[tuple[str, str]]:
    """What a language file of the study says to its people: common sentences, under those of its voices."""
    if definition.interface is None:
        return
    tables, voices = definition.interface.tables, get_paradigm(definition.paradigm).voices(definition)
    spoken = [voice for voice in voices if voice in tables["page"]] or ["neutral"]
    said = {("page", key): (f"page.common.{key}", text) for key, text in tables["page"]["common"].items()}
    for part in ("pages", "entry", "pay", "sight", "legend"):
        said |= {(part, key): (f"{part}.{key}", text) for key, text in tables[part].items()}
    for part, names, over in (("page", spoken, "page"), ("paradigms", voices, "pages")):
        for name in names:
            voice = tables[part].get(name, {})
            said |= {(over, key): (f"{part}.{name}.{key}", text) for key, text in voice.items()}
    yield from (
        (f"interface.words: {path}", text) for path, text in said.values() if not ELSEWHERE.match(path)
    )


def _texts_in(table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in table.items():
        if isinstance(value, str):
            yield key, value
        elif isinstance(value, Mapping):
            yield from ((f"{key}.{inner}", text) for inner, text in _texts_in(value))
        elif isinstance(value, Sequence):
            yield from ((key, text) for text in value if isinstance(text, str))
