"""The tables of the server's sentences, one per language, and what a study says by them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from experiments.definition import StudyDefinition
from experiments.paradigms import get_paradigm

FOLDER = Path(__file__).parent / "words"
LANGUAGES = tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))


@lru_cache(maxsize=16)
def table_of(language: str) -> Mapping[str, Any]:
    """The whole table of a language: `pages`, `entry`, `legend`, and `paradigms` by name."""
    return tomllib.loads((FOLDER / f"{language}.toml").read_text(encoding="utf-8"))


def words_for(definition: StudyDefinition) -> Mapping[str, str]:
    """The sentences of a study's pages, in its language and in the words of its paradigm or its own."""
    table, paradigm = table_of(definition.language), get_paradigm(definition.paradigm)
    words = dict(table["pages"])
    for voice in paradigm.voices(definition):
        words |= table["paradigms"].get(voice, {})
    return {**words, **paradigm.wording(definition)}


def buttons_of(definition: StudyDefinition) -> tuple[tuple[str, str], ...]:
    """(value, text) of what the study's trials are answered with; what has no text of its own has the
    table's."""
    buttons, words = get_paradigm(definition.paradigm).buttons(definition), words_for(definition)
    return tuple((value, text or words[value]) for value, text in buttons)
