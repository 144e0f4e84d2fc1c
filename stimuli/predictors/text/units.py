"""Units of a text: what methods can mark and hide, cut once and stored beside the text.

Studies that declare none have `legacy`: runs of letters and digits, as `TextPredictor.words` finds them.
Words and characters are cut by ICU, after UAX #29 with its dictionaries for scripts that write no spaces,
tokens by the model. A token that crosses the edges of units joins these units into one, and so does a span
that was explained elsewhere: so each belongs to one unit at most, and the weights of tokens and of spans add
up to those of units.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import version
from typing import Any

from stimuli.errors import BadSpec
from stimuli.spec import JsonValue
from stimuli.types import Span, Units

PIECE = re.compile(r"\w+|[^\w\s]")
JOINERS = frozenset("\u200c\u200d")
LOCALE = "und"
"""The rules and dictionaries of all languages; none of a single one."""
LONGEST = {"CJK": 2.5, "HIRAGANA": 2.5, "KATAKANA": 2.5}
LONGEST |= dict.fromkeys(("THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN", "TAI", "JAVANESE", "BALINESE"), 6.0)
"""Scripts that write no spaces between words, by the first word of their letters' names, and how many letters
a word has in them on average at most: if spaces and marks divide longer pieces, they do not divide words."""


@dataclass(frozen=True, slots=True)
class TextUnits:
    """The units of a text: `by` names how they were cut, with library and version; `spans` are in order and
    without overlap. What lies between them is never marked.
    """

    by: str
    spans: tuple[Span, ...]

    def as_json(self) -> dict[str, JsonValue]:
        return {"by": self.by, "spans": [list(span) for span in self.spans]}


def cutter_name(units: Units) -> str:
    """What cuts texts into such units, with its version; "" for legacy. BadSpec if it is not installed."""
    if units == "legacy":
        return ""
    if units == "tokens":
        return units
    library = _icu()
    return f"{units}, icu4py {version('icu4py')}, ICU {library.icu_version}"


def cut_text(text: str, units: Units, tokens: Sequence[Span]) -> TextUnits:
    """The units of a text with a letter or digit (of tokens: with a character that is no space), joined where
    one of the model's `tokens` crosses their edges. Raises as `cutter_name`.
    """
    if units == "tokens":
        spans = [(at + len(text[at:to]) - len(text[at:to].lstrip()), to) for at, to in sorted(tokens)]
        spans = [(at, at + len(text[at:to].rstrip())) for at, to in spans if text[at:to].strip()]
    else:
        spans = [(at, to) for at, to in _icu_spans(text, units) if any(map(str.isalnum, text[at:to]))]
    return TextUnits(cutter_name(units), join_units(spans, tokens))


def join_units(spans: Sequence[Span], tokens: Sequence[Span]) -> tuple[Span, ...]:
    """The spans, in order, with those as one that overlap or that one token touches."""
    starts, ends = [start for start, _ in spans], [end for _, end in spans]
    glued = {at for at in range(1, len(spans)) if starts[at] < ends[at - 1]}
    for start, end in tokens:
        first, last = bisect_right(ends, start), bisect_left(starts, end) - 1
        glued.update(range(first + 1, last + 1))
    joined: list[Span] = []
    for at, (start, end) in enumerate(spans):
        if at in glued:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return tuple(joined)


def lacks_spaces(text: str) -> bool:
    """Whether most letters are of scripts without spaces between words, and nothing else divides words."""
    letters = sum(letter.isalpha() for letter in text)
    lengths: dict[float, list[int]] = {}
    for start, end in piece_spans(text):
        limits = [limit for letter in text[start:end] if (limit := _longest(letter))]
        if limits:
            lengths.setdefault(max(limits), []).append(len(limits))
    if 2 * sum(sum(runs) for runs in lengths.values()) < letters:
        return False
    return any(sum(runs) > limit * len(runs) for limit, runs in lengths.items())


def piece_spans(text: str) -> list[Span]:
    """The spans (start, end) of the words and single marks of a text.

    Vowel signs, accents and joiners belong to what they stand behind: many scripts write words with them.
    """
    spans: list[Span] = []
    for match in PIECE.finditer(text):
        start, end = match.span()
        follows = bool(spans) and spans[-1][1] == start
        # Letters right behind a word are there only if it was carried over such a sign.
        if follows and (combines(text[start]) or (is_word(text[start]) and is_word(text[spans[-1][0]]))):
            spans[-1] = spans[-1][0], end
        else:
            spans.append((start, end))
    return spans


def letter_spans(text: str) -> list[Span]:
    """As `piece_spans`, but each letter of a script without spaces between words, with what combines with it,
    is a piece.
    """
    spans: list[Span] = []
    for start, end in piece_spans(text):
        before = 0.0
        for at in range(start, end):
            limit = _longest(text[at])
            if at > start and (combines(text[at]) or not (limit or before)):
                spans[-1] = spans[-1][0], at + 1
            else:
                spans.append((at, at + 1))
                before = limit
    return spans


def is_word(letter: str) -> bool:
    """Whether a word can begin with it: a letter, a digit or _."""
    return letter.isalnum() or letter == "_"


def combines(letter: str) -> bool:
    """Whether it is a part of the letter before it: a combining mark, or a joiner of zero width."""
    return unicodedata.category(letter).startswith("M") or letter in JOINERS


@cache
def _longest(letter: str) -> float:
    """The entry of LONGEST for a letter; 0 for all others."""
    return LONGEST.get(unicodedata.name(letter, "").partition(" ")[0], 0.0) if letter.isalpha() else 0.0


def _icu_spans(text: str, units: Units) -> Iterator[Span]:
    breakers = _icu(".breakers")
    # Of its segments the strings are right, but the places count UTF-16.
    breaker = breakers.WordBreaker if units == "words" else breakers.CharacterBreaker
    start = 0
    for piece in breaker(text, LOCALE):
        yield start, start + len(piece)
        start += len(piece)


def _icu(part: str = "") -> Any:
    try:
        return import_module(f"icu4py{part}")
    except ImportError:
        raise BadSpec(
            'units = "words" and "characters" need the library icu4py, which '
            'is not installed: run pip install "legible[units]"'
        ) from None
