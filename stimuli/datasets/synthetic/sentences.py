"""Sentences of our own with planted answers: the reverse Turing test's probing tasks without a download.

`tense` asks for the tense of the main verb, `subject_number` for the number of the subject, `sentence_length`
for the number of words in six bins, `sentiment` for the side that most planted words take. What carries the
answer for people (the main verbs of `tense`, the subjects of `subject_number`) never stands in a sentence
that the model learns from: its ending has to be learnt, not the word. [Conneau et al. 2018; Gonzalez and
Søgaard]
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from stimuli.datasets.synthetic import grammar_words as lexicon
from stimuli.datasets.synthetic.grammar import Sentence, SentencePlan, write_opinion, write_sentence
from stimuli.errors import BadSpec
from stimuli.registry import Params, read_params
from stimuli.spec import Component, canonical_json
from stimuli.types import Item, Split

GRAMMAR_VERSION = 1
SPLIT_WORDS: dict[Split, int] = {"model": 1, "people": 2}
BINS = ((5, 8), (9, 12), (13, 16), (17, 20), (21, 25), (26, 28))
"""Words per sentence, both ends included. [Conneau et al. 2018]"""
SHORT_WORDS = (6, 16)
CLAUSE_SHARE = 0.8
"""Of the sentences about tense: a second verb, so that looking for any verb's ending does not do."""
LABELS = {
    "tense": ("past", "present"),
    "subject_number": ("singular", "plural"),
    "sentence_length": tuple(f"{low} to {high} words" for low, high in BINS),
    "sentiment": ("negative", "positive"),
}


class SentencesParams(Params):
    """`count` sentences for people and `model_count` for training the model, classes in equal shares."""

    task: Literal["tense", "subject_number", "sentence_length", "sentiment"]
    count: Annotated[int, Field(ge=8, le=10_000)] = 240
    model_count: Annotated[int, Field(ge=32, le=20_000)] = 6_000
    seed: Annotated[int, Field(ge=0, lt=1 << 32)] = 0


@dataclass(frozen=True)
class SentencesDataset:
    """Planted sentences; none occurs twice.

    The classes are shuffled over the whole number of sentences of a split. Given its class, a sentence is a
    function of task, seed, split and its own number, unless the same sentence already stands before it (the
    model's come first): then it is drawn again. So `model_count` never changes the classes of the people's
    sentences, but can change a few of the sentences themselves.
    """

    params: SentencesParams
    labels: tuple[str, ...]
    all_items: tuple[Item, ...]
    sentences: dict[str, Sentence]

    def items(self, split: Split) -> Sequence[Item]:
        return tuple(item for item in self.all_items if item.split == split)

    def text(self, key: str) -> str:
        """The sentence: first letter large, full stop at the end, ASCII."""
        return self._sentence(key).text

    def cues(self, key: str) -> tuple[tuple[int, int], ...]:
        """The spans (start, end) of the words that carry the answer; none for `sentence_length`."""
        return self._sentence(key).cues

    def content_digest(self) -> str:
        """SHA-256 over the recipe and all sentences."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        recipe = canonical_json({**self.params.model_dump(), "version": GRAMMAR_VERSION})
        total = hashlib.sha256(recipe.encode())
        for item in self.all_items:
            total.update(f"{item.key}\0{item.truth}\0{self.text(item.key)}\n".encode())
        return total.hexdigest()

    def _sentence(self, key: str) -> Sentence:
        if key not in self.sentences:
            raise BadSpec(f'there is no item "{key}" in the sentences for {self.params.task}')
        return self.sentences[key]


def open_sentences(component: Component, folder: Path) -> SentencesDataset:
    """Write the sentences that the parameters ask for; nothing is read from the folder. Raises BadSpec for
    wrong parameters.
    """
    params = read_params(component, SentencesParams, "dataset")
    labels = LABELS[params.task]
    counts: dict[Split, int] = {"model": params.model_count, "people": params.count}
    items: list[Item] = []
    sentences: dict[str, Sentence] = {}
    seen: set[str] = set()
    for split, count in counts.items():
        for index, label in enumerate(_labels_in_turn(params, split, count)):
            key = f"{split}-{index:05d}"
            sentences[key] = _new_sentence(params, split, index, label, seen)
            items.append(Item(key, labels[label], key, split))
    return SentencesDataset(params, labels, tuple(items), sentences)


def _labels_in_turn(params: SentencesParams, split: Split, count: int) -> list[int]:
    """The classes in equal numbers (but for a remainder), shuffled."""
    classes = len(LABELS[params.task])
    order = np.random.default_rng(_seed(params, split)).permutation(count)
    return [int(place) % classes for place in order]


def _seed(params: SentencesParams, split: Split, *more: int) -> list[int]:
    return [params.seed, list(LABELS).index(params.task), SPLIT_WORDS[split], *more]


def _new_sentence(params: SentencesParams, split: Split, index: int, label: int, seen: set[str]) -> Sentence:
    """Sentence `index` of a split: the first of its own draws that is not among those `seen` before it."""
    attempt = 0
    while True:
        rng = np.random.default_rng(_seed(params, split, index, attempt))
        made = _draw_sentence(params.task, split, label, rng)
        if made.text not in seen:
            seen.add(made.text)
            return made
        attempt += 1


def _draw_sentence(task: str, split: Split, label: int, rng: np.random.Generator) -> Sentence:
    if task == "sentiment":
        return write_opinion(label == 1, rng)
    is_past, is_plural = bool(rng.integers(2)), bool(rng.integers(2))
    low, high = BINS[label] if task == "sentence_length" else SHORT_WORDS
    words = int(rng.integers(low, high + 1))
    if task == "tense":
        own_verbs = _own(lexicon.VERBS, split)
        wanted = SentencePlan(
            words, label == 0, is_plural, verbs=own_verbs, cues=frozenset({"verb"}), clause_share=CLAUSE_SHARE
        )
    elif task == "subject_number":
        own_people = _own(lexicon.PEOPLE, split)
        wanted = SentencePlan(words, is_past, label == 1, subjects=own_people, cues=frozenset({"subject"}))
    else:
        wanted = SentencePlan(words, is_past, is_plural)
    return write_sentence(wanted, rng)


def _own(words: Sequence[str], split: Split) -> Sequence[str]:
    """Every other word of a list: no word of one split is a word of the other."""
    return words[SPLIT_WORDS[split] - 1 :: 2]
