"""The words of the embedded sentences. All inflect regularly, so that the form of a word carries the answer
and its meaning does not.

None has a hyphen or an apostrophe: a word is a run of letters.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

_READ: dict[str, str] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
_WORDS = {kind: tuple(words.split()) for kind, words in _READ.items()}
PEOPLE = _WORDS["people"]
THINGS = _WORDS["things"]
PLACES = _WORDS["places"]
VERBS = _WORDS["verbs"]
ADJECTIVES = _WORDS["adjectives"]
TRAITS = _WORDS["traits"]
"""Adjectives for people, as ADJECTIVES are for things; some words are in both."""
ADVERBS = _WORDS["adverbs"]
PREPOSITIONS = _WORDS["prepositions"]
DETERMINERS = _WORDS["determiners"]
"""These go with singular and plural: what stands before a noun does not tell its number."""
PRAISE = _WORDS["praise"]
BLAME = _WORDS["blame"]
NEUTRAL = _WORDS["neutral"]
WORKS = _WORDS["works"]
"""What the planted opinions are about."""


def plural(noun: str) -> str:
    """The plural."""
    return _with_s(noun)


def third_person(verb: str) -> str:
    """What one of them does."""
    return _with_s(verb)


def past(verb: str) -> str:
    """What they did; the verbs above double no consonant."""
    if _ends_in_y(verb):
        return verb[:-1] + "ied"
    return verb + ("d" if verb.endswith("e") else "ed")


def _with_s(word: str) -> str:
    if _ends_in_y(word):
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("ch", "sh", "s", "x")) else "s")


def _ends_in_y(word: str) -> bool:
    return word.endswith("y") and word[-2] not in "aeiou"
