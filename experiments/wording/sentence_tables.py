"""The tables of the sentences on a study's pages, by language, and what a study says by them.

A study without [interface] has the server's tables of its language, and the browser brings its own sentences.
One with a file of its own language has all sentences from there.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from experiments.definition.study import StudyDefinition
from experiments.paradigms import get_paradigm

FOLDER = Path(__file__).parent / "words"
LANGUAGES = tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))
COMMON = "page.common"
"""Where a language file has the browser's sentences."""


@lru_cache(maxsize=16)
def table_of(language: str) -> Mapping[str, Any]:
    """The whole table of a language: `pages`, `entry`, `legend`, and `paradigms` by name."""
    return tomllib.loads((FOLDER / f"{language}.toml").read_text(encoding="utf-8"))


@lru_cache(maxsize=16)
def page_table_of(language: str) -> Mapping[str, Any]:
    """The browser's sentences in a language, as it has them itself."""
    table: Mapping[str, Any] = json.loads((FOLDER / f"{language}.json").read_text(encoding="utf-8"))
    return table


def sentences_in(tree: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """(path, value) of every leaf."""
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from sentences_in(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", value


def table_for(definition: StudyDefinition | None) -> Mapping[str, Any]:
    """The server's table in the language of a study (English without one): its own sentences, over ours for
    what later versions say besides."""
    if definition is None or definition.interface is None:
        return table_of(definition.language if definition is not None else "en")
    file = definition.interface
    language = file.language.partition("-")[0]
    # What a text promises is found in the languages that we have.
    ours = table_of(language) if language in LANGUAGES else {**table_of("en"), "promises": {}}
    return {part: _over(ours[part], file.tables.get(part, {})) for part in ours}


def _over(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    inner = {
        name: {**ours[name], **table} for name, table in theirs.items() if isinstance(ours.get(name), dict)
    }
    return {**ours, **theirs, **inner}


def words_for(definition: StudyDefinition) -> Mapping[str, str]:
    """The sentences of a study's pages, in its language and in the words of its paradigm or its own."""
    table, paradigm = table_for(definition), get_paradigm(definition.paradigm)
    words = dict(table["pages"])
    for voice in paradigm.voices(definition):
        words |= table["paradigms"].get(voice, {})
    return {**words, **paradigm.wording(definition)}


def buttons_of(definition: StudyDefinition) -> tuple[tuple[str, str], ...]:
    """(value, text) of what the study's trials are answered with; what has no text of its own has the
    table's."""
    buttons, words = get_paradigm(definition.paradigm).buttons(definition), words_for(definition)
    return tuple((value, text or words[value]) for value, text in buttons)
