"""A small English grammar: sentences of exactly so many words, with what is asked about them planted.

No word form occurs twice in a sentence, so that taking one word out takes one place out. Determiners go with
singular and plural. Relative clauses, objects and places have tense and number of their own, drawn
independently: a single ending does not give the answer, only the ending of the right word does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from stimuli.datasets.synthetic import grammar_words as lexicon

Word = tuple[str, bool]
"""A word, and whether it carries the answer to the question."""
MIN_WORDS, MAX_WORDS = 5, 28


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, and the spans (start, end) of the words that carry the answer."""

    text: str
    cues: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class SentencePlan:
    """What a sentence has to be: its number of words, the tense of its main verb, the number of its subject,
    which nouns and verbs may stand there, and which of the two carry the answer. `clause_share` (0-1) of the
    sentences that have room for it get a relative clause in any case.
    """

    words: int
    is_past: bool
    is_plural: bool
    subjects: Sequence[str] = lexicon.PEOPLE
    verbs: Sequence[str] = lexicon.VERBS
    cues: frozenset[str] = frozenset()
    clause_share: float = 0.0


@dataclass
class _Phrase:
    """A noun with what stands before it."""

    role: str
    noun: str
    opener: tuple[str, ...] = ()
    determiner: str = ""
    adjectives: list[str] = field(default_factory=list)


class _Stock:
    """Words that are drawn without being put back."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.used: set[str] = set()

    def draw(self, words: Sequence[str]) -> str:
        free = [word for word in words if word not in self.used]
        if not free:
            return ""
        word = free[int(self.rng.integers(len(free)))]
        self.used.add(word)
        return word

    def flip(self, share: float = 0.5) -> bool:
        return bool(self.rng.random() < share)


def write_sentence(wanted: SentencePlan, rng: np.random.Generator) -> Sentence:
    """A sentence as wanted, of MIN_WORDS to MAX_WORDS words; a function of `wanted` and the generator."""
    while True:
        made = _try(wanted, rng)
        if made is not None:
            return made


def _try(wanted: SentencePlan, rng: np.random.Generator) -> Sentence | None:
    """One attempt; None if the drawn parts do not add up to the number of words."""
    stock = _Stock(rng)
    subject = _Phrase("subject", stock.draw(wanted.subjects), determiner=stock.draw(lexicon.DETERMINERS))
    verb = stock.draw(wanted.verbs)
    target = _noun_phrase(stock, "object", lexicon.THINGS)
    phrases = [subject, target]
    adverbs: list[str] = []
    if stock.flip(wanted.clause_share):
        clause = _relative_clause(stock, wanted)
        if sum(map(_size, [*phrases, clause])) < wanted.words:
            phrases.append(clause)
    left = wanted.words - sum(map(_size, phrases)) - 1
    for _ in range(60):
        if left <= 0:
            break
        left -= _grow(stock, wanted, phrases, adverbs, left)
    if left != 0:
        return None
    return _join_words(_order_words(stock, wanted, verb, phrases, adverbs))


def _grow(stock: _Stock, wanted: SentencePlan, phrases: list[_Phrase], adverbs: list[str], left: int) -> int:
    """Add one part at random that has at most `left` words; how many it has."""
    kind = int(stock.rng.integers(4))
    if kind == 0 and len(adverbs) < 2:
        adverbs.append(stock.draw(lexicon.ADVERBS))
        return 1
    if kind == 1:
        phrase = phrases[int(stock.rng.integers(len(phrases)))]
        if len(phrase.adjectives) < 2:
            is_person = phrase.role == "subject"
            phrase.adjectives.append(stock.draw(lexicon.TRAITS if is_person else lexicon.ADJECTIVES))
            return 1
    if kind >= 2 and left >= 4:
        new = _extension(stock, wanted, phrases)
        if new is not None and _size(new) <= left:
            phrases.append(new)
            return _size(new)
    return 0


def _extension(stock: _Stock, wanted: SentencePlan, phrases: list[_Phrase]) -> _Phrase | None:
    """A place, or one relative clause about the subject."""
    roles = ["before", "after subject", "after subject", "after object", "after object", "after object"]
    for phrase in phrases:
        if phrase.role in roles:
            roles.remove(phrase.role)
    if not any(phrase.role == "relative" for phrase in phrases):
        roles += ["relative", "relative"]
    role = roles[int(stock.rng.integers(len(roles)))] if roles else ""
    if role == "relative":
        return _relative_clause(stock, wanted)
    if role:
        phrase = _noun_phrase(stock, role, lexicon.PLACES)
        phrase.opener = (stock.draw(lexicon.PREPOSITIONS),)
        return phrase
    return None


def _relative_clause(stock: _Stock, wanted: SentencePlan) -> _Phrase:
    """What the subject does or did to something else: a verb with a tense of its own."""
    verb = stock.draw(wanted.verbs)
    phrase = _noun_phrase(stock, "relative", lexicon.THINGS)
    phrase.opener = ("who", _verb_form(verb, stock.flip(), wanted.is_plural))
    return phrase


def _noun_phrase(stock: _Stock, role: str, nouns: Sequence[str]) -> _Phrase:
    noun, is_plural = stock.draw(nouns), stock.flip()
    is_bare = is_plural and stock.flip(0.3)
    determiner = "" if is_bare else stock.draw(lexicon.DETERMINERS)
    # Without a determiner left, only many of them can stand alone.
    return _Phrase(role, lexicon.plural(noun) if is_plural or not determiner else noun, (), determiner)


def _order_words(
    stock: _Stock, wanted: SentencePlan, verb: str, phrases: list[_Phrase], adverbs: list[str]
) -> list[Word]:
    """The words in their order, with a comma after a place that comes first."""
    subject, target = phrases[0], phrases[1]
    if wanted.is_plural:
        subject.noun = lexicon.plural(subject.noun)
    words: list[Word] = []
    for phrase in phrases:
        if phrase.role == "before":
            words += _phrase_words(phrase)
            words[-1] = (words[-1][0] + ",", False)
    words += _phrase_words(subject, is_cue="subject" in wanted.cues)
    for role in ("after subject", "relative"):
        for phrase in phrases:
            if phrase.role == role:
                words += _phrase_words(phrase)
    first = adverbs[:1] if len(adverbs) > 1 or stock.flip() else []
    words += [(adverb, False) for adverb in first]
    words.append((_verb_form(verb, wanted.is_past, wanted.is_plural), "verb" in wanted.cues))
    words += _phrase_words(target)
    for phrase in phrases:
        if phrase.role == "after object":
            words += _phrase_words(phrase)
    return words + [(adverb, False) for adverb in adverbs[len(first) :]]


def _phrase_words(phrase: _Phrase, *, is_cue: bool = False) -> list[Word]:
    before = [*phrase.opener, *([phrase.determiner] if phrase.determiner else []), *phrase.adjectives]
    return [*((word, False) for word in before), (phrase.noun, is_cue)]


def _size(phrase: _Phrase) -> int:
    return len(_phrase_words(phrase))


def _verb_form(verb: str, is_past: bool, is_plural: bool) -> str:
    if is_past:
        return lexicon.past(verb)
    return verb if is_plural else lexicon.third_person(verb)


def write_opinion(is_praise: bool, rng: np.random.Generator) -> Sentence:
    """An opinion about two to four things. One or three of its words are planted: those of the right side
    are in the majority, or alone.
    """
    stock = _Stock(rng)
    count = int(rng.integers(2, 5))
    sides = [is_praise]
    if count >= 3 and stock.flip(0.6):
        sides = [is_praise, is_praise, stock.flip(0.3) == is_praise]
    places = rng.permutation(count)[: len(sides)]
    side_at = dict(zip((int(place) for place in places), sides, strict=True))
    words: list[Word] = []
    for at in range(count):
        words.append((stock.draw(lexicon.DETERMINERS[:-1]), False))
        if at not in side_at or stock.flip(0.4):
            words.append((stock.draw(lexicon.NEUTRAL), False))
        if at in side_at:
            planted = lexicon.PRAISE if side_at[at] else lexicon.BLAME
            words.append((stock.draw(planted), side_at[at] == is_praise))
        words.append((stock.draw(lexicon.WORKS), False))
        if at == 0:
            words.append((("has", "offers", "brings")[int(rng.integers(3))], False))
        elif at == count - 2:
            words.append(("and", False))
        elif at < count - 2:
            words[-1] = (words[-1][0] + ",", False)
    return _join_words(words)


def _join_words(words: list[Word]) -> Sentence:
    """The words as a sentence, with the places of its cues."""
    cues: list[tuple[int, int]] = []
    start = 0
    for word, is_cue in words:
        if is_cue:
            cues.append((start, start + len(word.rstrip(","))))
        start += len(word) + 1
    text = " ".join(word for word, _ in words)
    return Sentence(text[0].upper() + text[1:] + ".", tuple(cues))
