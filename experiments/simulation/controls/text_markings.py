"""The controls on texts: the same texts, marked by grey in other ways."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.design.rng import Streams
from experiments.simulation import TEXT_OBSERVERS
from experiments.simulation.passage import WORD, Passage, passage_of, word_shades

Spans = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Texts:
    """The texts of a study and what the model says of them.

    `plain(item)` is the whole text; `shown(item, condition)` its pieces with shades as the wire has them,
    None if there are none; `cues(item)` the spans (start, end) of the planted decisive words, None for
    studies without them; `predicted` the model's answer per item, as a choice value; `marked_tests` whether
    test trials show the marks; `unseen` further texts with the model's answers.
    """

    plain: Callable[[str], str]
    shown: Callable[[str, str], Sequence[Mapping[str, Any]] | None]
    predicted: Mapping[str, str]
    marked_tests: bool
    cues: Callable[[str], Spans] | None = None
    unseen: Sequence[tuple[Passage, str]] = ()
    observers: tuple[str, ...] = TEXT_OBSERVERS

    @property
    def has_oracle(self) -> bool:
        return self.cues is not None

    def eye(self, streams: Streams, items: Sequence[str]) -> TextEye:
        return TextEye(self, streams, items)


class TextEye:
    """What is read of every text under each control, each made once."""

    def __init__(self, texts: Texts, streams: Streams, items: Sequence[str]) -> None:
        self.texts, self.streams = texts, streams
        self._donors = sorted(items)
        self._read: dict[tuple[str, str, str], Passage] = {}

    def looking(self, control: str, condition: str) -> Callable[[str], Passage]:
        def look(item: str) -> Passage:
            key = control, condition, item
            if key not in self._read:
                self._read[key] = self._read_passage(*key)
            return self._read[key]

        return look

    def testing(self, control: str, condition: str) -> Callable[[str], Passage]:
        return self.looking(control, condition) if self.texts.marked_tests else self.looking("baseline", "")

    def _read_passage(self, control: str, condition: str, item: str) -> Passage:
        text = self.texts.plain(item)
        words = WORD.findall(text)
        if control == "oracle" and self.texts.cues is not None:
            return passage_of(words, cue_shades(text, self.texts.cues(item)))
        if control in ("shown", "permuted", "other_image"):
            return passage_of(words, self._shades(control, condition, item, len(words)))
        return passage_of(words, [0.0] * len(words))

    def _shades(self, control: str, condition: str, item: str, count: int) -> list[float]:
        if control == "other_image":
            others = [other for other in self._donors if other != item] or [item]
            donor = others[int(self.streams("donor", condition, item).integers(len(others)))]
            return stretch_shades(self._shown_shades(donor, condition), count)
        shades = self._shown_shades(item, condition)
        if control == "permuted":
            order = self.streams("shuffle", condition, item).permutation(len(shades))
            return [shades[place] for place in order]
        return shades

    def _shown_shades(self, item: str, condition: str) -> list[float]:
        pieces = self.texts.shown(item, condition)
        if pieces is None:
            return [0.0] * len(WORD.findall(self.texts.plain(item)))
        return word_shades(pieces)[1]


def cue_shades(text: str, cues: Spans) -> list[float]:
    """1 for each word that a planted span touches, else 0."""
    spans = [match.span() for match in WORD.finditer(text)]
    return [float(any(start < end_ and begin < end for start, end in cues)) for begin, end_ in spans]


def stretch_shades(shades: Sequence[float], count: int) -> list[float]:
    """The shades of another text on `count` words: the mark of a word goes to that at its share of the text,
    or to the next free one."""
    placed = [0.0] * count
    order = sorted(range(len(shades)), key=lambda place: (-shades[place], place))
    for place in order[:count]:
        if shades[place] > 0:
            wanted = int((place + 0.5) / len(shades) * count)
            free = [at for at in range(count) if placed[at] == 0]
            placed[min(free, key=lambda at: (abs(at - wanted), at))] = shades[place]
    return placed
