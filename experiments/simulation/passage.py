"""How the frozen observers read a text: which words they notice, alone or led by the grey behind them.

A reader knows words by their form and their ending, and sees how many there are; no grammar and no meaning.
Pure values; every number is declared in readers.toml.

References: Rayner and McConkie (1976) and Rayner (1998), long words are fixated and short ones skipped;
Torralba et al. (2006), guides multiply; Miller (1956), steps of one scale.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from experiments.simulation.declared import declared_value

FILE = "readers.toml"
WORD = re.compile(r"\w+(?:['’]\w+)*")


@dataclass(frozen=True, slots=True)
class Passage:
    """A text as it was read: `words` in lower case, and how likely each is noticed, `notice` (0-1), of the
    same length. `led` says that grey marks led the reading."""

    words: tuple[str, ...]
    notice: tuple[float, ...]
    led: bool

    @property
    def signs(self) -> dict[str, float]:
        """What was noticed: the form ("=walked") and the endings ("-ed") of each word, and how likely (0-1);
        of a sign that stands in several words the likeliest."""
        signs: dict[str, float] = {}
        for word, notice in zip(self.words, self.notice, strict=True):
            if notice > 0:
                for sign in signs_of(word):
                    signs[sign] = max(notice, signs.get(sign, 0.0))
        return signs


@lru_cache(maxsize=1 << 14)
def signs_of(word: str) -> tuple[str, ...]:
    """The form of a word, and those endings that leave a stem."""
    longest = int(declared_value(FILE, "word", "ending_letters"))
    stem = int(declared_value(FILE, "word", "stem_letters"))
    endings = (f"-{word[-size:]}" for size in range(1, longest + 1) if len(word) - size >= stem)
    return (f"={word}", *endings)


def read_text(tokens: Sequence[Mapping[str, Any]]) -> Passage:
    """Reads the pieces of a text as the wire has them: `text`, and `shade` (0-1) or None if it is not
    marked."""
    return passage_of(*word_shades(tokens))


def word_shades(tokens: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[float]]:
    """The words of a text in pieces, and their shades (0-1): a word is as dark as the darkest piece that it
    stands in."""
    text = "".join(str(token["text"]) for token in tokens)
    shades: list[float] = []
    for token in tokens:
        shades += [float(token["shade"] or 0)] * len(str(token["text"]))
    spans = [match.span() for match in WORD.finditer(text)]
    return [text[start:end] for start, end in spans], [max(shades[start:end]) for start, end in spans]


def passage_of(words: Sequence[str], shades: Sequence[float]) -> Passage:
    """What is read of these words with these shades (0-1; all 0: not marked)."""
    alone = [_fixated(word) for word in words]
    low, high = min(shades, default=0.0), max(shades, default=0.0)
    led = high - low >= declared_value(FILE, "marks", "least_span")
    # Guides multiply, as they do over pictures: grey that is everywhere leads nowhere.
    notice = (
        [n * (shade - low) / (high - low) for n, shade in zip(alone, shades, strict=True)] if led else alone
    )
    return Passage(tuple(word.casefold() for word in words), tuple(notice), led)


def _fixated(word: str) -> float:
    """How likely a word is fixated in reading, by its letters."""
    few, many = (
        declared_value(FILE, "reading", "short_letters"),
        declared_value(FILE, "reading", "long_letters"),
    )
    least = declared_value(FILE, "reading", "short_share")
    most = declared_value(FILE, "reading", "long_share")
    place = min(1.0, max(0.0, (len(word) - few) / (many - few)))
    return least + (most - least) * place
